// window.c: how the windows of conv and pool walk over a picture: padding, strides, dilation, ceil mode. Every rule, loop
// and gradient that has a window asks here.
//
//   pad = 0, a number: on all sides · [top, left]: of each axis, on both sides · [top, left, bottom, right] · same: the
//   result is in / stride, rounded up; of an odd number of rows to add, the last one goes to the end (as TensorFlow and
//   ONNX's SAME_UPPER)
//   ceil: a last window that hangs over counts, if it begins inside of the picture or of the padding before it (PyTorch)
#include "op.h"

static const Attr *attr_of(const OpDef *op, const Attr *attr, const char *name)
{
    for (int i = 0; i < ATTRS_MAX && op->attrs[i].name != NULL; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return attr[i].kind == ATTR_NONE ? NULL : &attr[i];
    return NULL;
}

static const char *shown(Context *cx, int axes, const Size *sizes, const int64_t *numbers)
{
    Text text = {.arena = cx->arena};
    for (int i = 0; i < axes; i++) {
        text_add(&text, i > 0 ? " x " : "");
        if (sizes != NULL)
            size_print(&text, sizes[i]);
        else
            text_add(&text, "%lld", (long long)numbers[i]);
    }
    return text.at;
}

static bool refuse(OpCall *call, const char *what, const char *wanted, const char *given)
{
    if (call == NULL)
        BUG("a window: %s should be %s, not %s", what, wanted, given);
    return op_error(call, MESSAGE_E0311, arena_printf(call->cx->arena, "%s of %s", what, call->op->name), wanted, given);
}

// One number for all axes, or one for each.
static bool numbers_of(const OpDef *op, const Attr *attr, const char *name, int axes, OpCall *call, int64_t *out)
{
    const Attr *a = attr_of(op, attr, name);
    for (int i = 0; i < axes; i++)
        out[i] = a == NULL ? 1 : a->kind == ATTR_INT ? a->i : a->ints[a->count == 1 ? 0 : i];
    if (a == NULL || a->kind == ATTR_INT || a->count == 1 || a->count == axes)
        return true;
    return refuse(call, name, "one number, or one for each axis", "a list of another length");
}

static bool is_same(const Attr *pad) { return pad != NULL && pad->kind == ATTR_WORD; }

static bool pad_of(const OpDef *op, const Attr *attr, int axes, OpCall *call, Window *w)
{
    const Attr *pad = attr_of(op, attr, "pad");
    if (is_same(pad) || pad == NULL)
        return true;
    if (pad->kind != ATTR_INT && pad->count != 1 && pad->count != axes && pad->count != 2 * axes)
        return refuse(call, "pad", "a number, one for each axis, or one for each side", "a list of another length");
    for (int i = 0; i < axes; i++) {
        w->before[i] = pad->kind == ATTR_INT ? pad->i : pad->ints[pad->count == 1 ? 0 : i];
        w->after[i] = pad->kind != ATTR_INT && pad->count == 2 * axes ? pad->ints[axes + i] : w->before[i];
    }
    return true;
}

static int64_t reach(const Window *w, int i) { return (w->kernel[i] - 1) * w->dilation[i] + 1; }

static bool same_axis(Context *cx, OpCall *call, Window *w, int i)
{
    int64_t n, total;
    w->out[i] = size_ceildiv(cx, w->in[i], w->stride[i]);
    if (size_known(w->in[i], &n))
        total = ((n + w->stride[i] - 1) / w->stride[i] - 1) * w->stride[i] + reach(w, i) - n;
    else if (w->stride[i] == 1)
        total = reach(w, i) - 1;
    else
        return refuse(call, "pad", "a number where the size of the picture is known only when running", "same");
    if (total < 0)
        total = 0;
    w->before[i] = total / 2;
    w->after[i] = total - total / 2;
    return true;
}

static bool plain_axis(Context *cx, OpCall *call, bool ceil, Window *w, int i)
{
    int64_t n, room, extra = w->before[i] + w->after[i] - reach(w, i), stride = w->stride[i];
    Size span = size_plus(cx, w->in[i], size_const(cx, extra));
    bool known = size_known(w->in[i], &n);
    if (known && n + extra < 0) {
        if (call == NULL)
            BUG("a window larger than the picture");
        return op_error(call, MESSAGE_E0309, shown(cx, w->axes, NULL, w->kernel), shown(cx, w->axes, w->in, NULL));
    }
    if (ceil && known) {
        room = (n + extra + stride - 1) / stride + 1;
        if ((room - 1) * stride >= n + w->before[i])
            room--;
        w->out[i] = size_const(cx, room);
        return true;
    }
    if (ceil)
        return refuse(call, "ceil", "false where the size of the picture is known only when running", "true");
    w->out[i] = size_plus(cx, size_floordiv(cx, span, stride), size_const(cx, 1));
    return true;
}

bool window_read(const OpDef *op, const Attr *attr, const Shape *x, const int64_t *kernel, OpCall *call, Window *w)
{
    int axes = x->rank - 2;
    *w = (Window){.axes = axes};
    CHECK(axes >= 1 && axes <= 3);
    for (int i = 0; i < axes; i++)
        w->in[i] = x->dim[2 + i];
    if (kernel != NULL)
        memcpy(w->kernel, kernel, sizeof(int64_t) * (size_t)axes);
    else if (!numbers_of(op, attr, "kernel", axes, call, w->kernel))
        return false;
    const Attr *stride = attr_of(op, attr, "stride");
    if (stride == NULL)                             // pooling: as wide as the window
        memcpy(w->stride, w->kernel, sizeof w->stride);
    else if (!numbers_of(op, attr, "stride", axes, call, w->stride))
        return false;
    return numbers_of(op, attr, "dilation", axes, call, w->dilation) && pad_of(op, attr, axes, call, w);
}

bool window_of(Context *cx, const OpDef *op, const Attr *attr, const Shape *x, const int64_t *kernel, OpCall *call, Window *w)
{
    const Attr *ceil = attr_of(op, attr, "ceil");
    if (!window_read(op, attr, x, kernel, call, w))
        return false;
    int axes = w->axes;
    for (int i = 0; i < axes; i++)
        if (!(is_same(attr_of(op, attr, "pad")) ? same_axis(cx, call, w, i) : plain_axis(cx, call, ceil != NULL && ceil->i, w, i)))
            return false;
    return true;
}

Expr *window_at(Context *cx, const Window *w, int axis, Expr *out, Expr *tap)
{
    Expr *at = e_add(cx, e_mul(cx, out, e_whole(cx, w->stride[axis])), e_mul(cx, tap, e_whole(cx, w->dilation[axis])));
    return e_sub(cx, at, e_whole(cx, w->before[axis]));
}

Expr *window_inside(Context *cx, const Window *w, int axis, Expr *at)
{
    int64_t n, out, last;
    Expr *above = NULL, *below = NULL;
    if (w->before[axis] > 0)
        above = e_prim(cx, PRIM_ge, at, e_whole(cx, 0));
    bool known = size_known(w->in[axis], &n) && size_known(w->out[axis], &out);
    last = known ? (out - 1) * w->stride[axis] - w->before[axis] + reach(w, axis) - 1 : 0;
    bool fits = known ? last < n : w->after[axis] == 0;         // floor mode: what is not padded is inside
    if (!fits)
        below = e_prim(cx, PRIM_lt, at, e_size(cx, w->in[axis]));
    return e_and(cx, above, below);
}

Expr *window_back(Context *cx, const Window *w, int axis, Expr *in, Expr *tap, Expr **exists)
{
    Expr *from = e_sub(cx, e_add(cx, in, e_whole(cx, w->before[axis])), e_mul(cx, tap, e_whole(cx, w->dilation[axis])));
    Expr *out = e_div(cx, from, w->stride[axis]);
    Expr *inside = e_and(cx, e_prim(cx, PRIM_ge, from, e_whole(cx, 0)), e_prim(cx, PRIM_lt, out, e_size(cx, w->out[axis])));
    if (w->stride[axis] > 1)
        inside = e_and(cx, inside, e_prim(cx, PRIM_eq, e_mod(cx, from, w->stride[axis]), e_whole(cx, 0)));
    *exists = inside;
    return out;
}
