// shapes.c: the shape rules that many rows share, and what single rules are made of: axes, element types, owned inputs.
#include "op.h"


bool op_one(OpCall *call, Type type)
{
    call->n_out = 1;
    call->out[0] = type;
    return true;
}

const char *op_input_name(const OpCall *call, int input)
{
    const char *names[INPUTS_MAX];
    bool optional[INPUTS_MAX], variadic;
    int count = op_inputs(call->op, names, optional, &variadic);
    const Value *v = call->in[input];
    return v != NULL && v->kind != VALUE_RESULT && v->name != NULL ? v->name : input < count ? names[input] : "an input";
}

static const char *size_words(Context *cx, Size size)
{
    Text text = {.arena = cx->arena};
    size_print(&text, size);
    return text.at;
}

// --- element by element -------------------------------------------------------------------------------------------------------

bool same_shape(OpCall *call) { return op_one(call, call->in[0]->type); }

static bool not_boolean(OpCall *call)
{
    if (call->in[0]->type.dtype != TYPE_bool)
        return true;
    return op_error(call, MESSAGE_E0311, arena_printf(call->cx->arena, "%s of %s", op_input_name(call, 0), call->op->name), "a number",
                    type_text(call->cx, &call->in[0]->type));
}

bool same_number_shape(OpCall *call) { return not_boolean(call) && same_shape(call); }

bool same_bool_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    type.dtype = TYPE_bool;
    return op_one(call, type);
}

// The first axis, counted in the larger rank, on which two shapes do not fit.
static bool report_differ(OpCall *call, const Type *a, const Type *b)
{
    Context *cx = call->cx;
    int rank = a->shape.rank > b->shape.rank ? a->shape.rank : b->shape.rank;
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - a->shape.rank), ib = i - (rank - b->shape.rank);
        if (ia < 0 || ib < 0)
            continue;
        Size p = a->shape.dim[ia], q = b->shape.dim[ib];
        if (!size_equal(p, q) && !size_is(p, 1) && !size_is(q, 1))
            return op_error(call, MESSAGE_E0301, call->op->name, type_text(cx, a), type_text(cx, b), i, size_words(cx, p), size_words(cx, q));
    }
    BUG("%s: shapes that fit were refused", call->op->name);
}

bool op_broadcast(OpCall *call, Shape *out)
{
    Type type = {0};
    for (int i = 0; i < call->n_in; i++) {
        if (call->in[i] == NULL)
            continue;
        Type next = call->in[i]->type;
        Shape both;
        if (!shape_broadcast(call->cx, &type.shape, &next.shape, &both)) {
            type.dtype = next.dtype;
            return report_differ(call, &type, &next);
        }
        type.shape = both;
    }
    *out = type.shape;
    return true;
}

// All inputs from `from` on have one element type.
static bool one_dtype(OpCall *call, int from)
{
    for (int i = from + 1; i < call->n_in; i++)
        if (call->in[i]->type.dtype != call->in[from]->type.dtype)
            return op_error(call, MESSAGE_E0315, call->op->name, type_text(call->cx, &call->in[from]->type), type_text(call->cx, &call->in[i]->type));
    return true;
}

static bool elementwise(OpCall *call, int from, DType dtype)
{
    Type type = {.dtype = dtype};
    return one_dtype(call, from) && op_broadcast(call, &type.shape) && op_one(call, type);
}

bool broadcast_shape(OpCall *call) { return elementwise(call, 0, call->in[0]->type.dtype); }

bool broadcast_number_shape(OpCall *call) { return not_boolean(call) && broadcast_shape(call); }
bool broadcast_bool_shape(OpCall *call) { return elementwise(call, 0, TYPE_bool); }
bool select_shape(OpCall *call)         { return elementwise(call, 1, call->in[1]->type.dtype); }

// --- like with like ---------------------------------------------------------------------------------------------------------------

bool op_like(OpCall *call, int a, int b)
{
    const Type *x = &call->in[a]->type, *y = &call->in[b]->type;
    if (x->dtype == y->dtype && shape_equal(&x->shape, &y->shape))
        return true;
    op_error(call, MESSAGE_E0303, call->op->name, op_input_name(call, a), type_text(call->cx, x), op_input_name(call, b), type_text(call->cx, y));
    diag_help(call->cx->diag, "declare %s: %s", op_input_name(call, b), type_text(call->cx, x));
    return false;
}

static bool wrong_input(OpCall *call, int input, const char *wanted)
{
    return op_error(call, MESSAGE_E0311, arena_printf(call->cx->arena, "%s of %s", op_input_name(call, input), call->op->name), wanted,
                    type_text(call->cx, &call->in[input]->type));
}

bool op_rank(OpCall *call, int input, int least, int most)
{
    int rank = call->in[input]->type.shape.rank;
    if (rank >= least && rank <= most)
        return true;
    Arena *arena = call->cx->arena;
    return wrong_input(call, input, least == most ? arena_printf(arena, "of rank %d", least) : arena_printf(arena, "of rank %d to %d", least, most));
}

bool op_matches(OpCall *call, const char *input, Type type)
{
    int i = op_input_index(call->op, input);
    const Value *v = i < call->n_in ? call->in[i] : NULL;
    if (v == NULL || (v->type.dtype == type.dtype && shape_equal(&v->type.shape, &type.shape)))
        return true;
    return wrong_input(call, i, type_text(call->cx, &type));
}

bool op_owned(OpCall *call, const char *input, Type type)
{
    int i = op_input_index(call->op, input);
    CHECK(i >= 0);
    call->owned[i] = type;
    return op_matches(call, input, type);
}

// Nothing depends on the elements of `like`: its type is taken, and the input is gone.
Type type_like(OpCall *call, DType initial)
{
    int like = op_input_index(call->op, "like");
    Attr *shape = NULL, *type = NULL;
    for (int i = 0; i < ATTRS_MAX && call->op->attrs[i].name != NULL; i++) {
        shape = strcmp(call->op->attrs[i].name, "shape") == 0 ? &call->attr[i] : shape;
        type = strcmp(call->op->attrs[i].name, "type") == 0 ? &call->attr[i] : type;
    }
    Value *v = like < call->n_in ? call->in[like] : NULL;
    if (v != NULL) {
        *shape = (Attr){.kind = ATTR_SIZES, .count = v->type.shape.rank};
        for (int i = 0; i < v->type.shape.rank; i++)
            shape->sizes[i] = v->type.shape.dim[i];
        call->in[like] = NULL;
    }
    if (v != NULL && type->kind == ATTR_NONE && (initial == TYPE_NONE || type_is_float(v->type.dtype) == type_is_float(initial)))
        *type = (Attr){.kind = ATTR_TYPE, .type = v->type.dtype};
    if (type->kind == ATTR_NONE)
        *type = (Attr){.kind = ATTR_TYPE, .type = initial != TYPE_NONE ? initial : TYPE_f32};
    Type out = {.dtype = type->type, .shape = {.rank = shape->kind == ATTR_NONE ? -1 : shape->count}};
    for (int i = 0; i < out.shape.rank; i++)
        out.shape.dim[i] = shape->sizes[i];
    if (out.shape.rank < 0)
        op_error(call, MESSAGE_E0209, call->op->name, "shape, or like");
    return out;
}

// --- axes -----------------------------------------------------------------------------------------------------------------------------

static int64_t from_start(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

int64_t attr_axis(const Attr *attr, int i, int rank) { return from_start(attr->kind == ATTR_INT ? attr->i : attr->ints[i], rank); }

static bool axis_good(OpCall *call, int64_t axis, int rank)
{
    return (from_start(axis, rank) >= 0 && from_start(axis, rank) < rank) || op_error(call, MESSAGE_E0312, axis, (int64_t)rank);
}

bool op_axis(OpCall *call, const char *attr, int rank, int *axis)
{
    int64_t given = call_attr(call, attr)->i;
    if (!axis_good(call, given, rank))
        return false;
    *axis = (int)from_start(given, rank);
    return true;
}

static void axes_of(const Attr *attr, int rank, bool *in)
{
    for (int i = 0; i < RANK_MAX; i++)
        in[i] = attr->kind == ATTR_NONE && i < rank;
    for (int i = 0; attr->kind != ATTR_NONE && i < attr->count; i++)
        in[from_start(attr->ints[i], rank)] = true;
}

bool op_axes(OpCall *call, const char *attr, int rank, bool *in)
{
    const Attr *a = call_attr(call, attr);
    for (int i = 0; a->kind != ATTR_NONE && i < a->count; i++) {
        if (!axis_good(call, a->ints[i], rank))
            return false;
        for (int j = 0; j < i; j++)
            if (from_start(a->ints[i], rank) == from_start(a->ints[j], rank))
                return op_error(call, MESSAGE_E0211, arena_printf(call->cx->arena, "axis %d of %s", (int)a->ints[i], call->op->name));
    }
    axes_of(a, rank, in);
    return true;
}

int node_axis(const Node *node, const char *attr, int rank) { return (int)from_start(node_attr(node, attr)->i, rank); }
void node_axes(const Node *node, const char *attr, int rank, bool *in) { axes_of(node_attr(node, attr), rank, in); }
bool node_flag(const Node *node, const char *attr) { return node_attr(node, attr)->i != 0; }

// --- reductions -------------------------------------------------------------------------------------------------------------------------

Shape shape_without(Context *cx, const Shape *x, const bool *axes, bool keep)
{
    Shape out = {0};
    for (int i = 0; i < x->rank; i++)
        if (!axes[i])
            out.dim[out.rank++] = x->dim[i];
        else if (keep)
            out.dim[out.rank++] = size_const(cx, 1);
    return out;
}

static bool reduced_type(OpCall *call, DType dtype)
{
    Type type = {.dtype = dtype};
    bool axes[RANK_MAX], keep = call_attr(call, "keep")->i != 0;
    const Shape *x = &call->in[0]->type.shape;
    if (!op_axes(call, "axis", x->rank, axes))
        return false;
    type.shape = shape_without(call->cx, x, axes, keep);
    return op_one(call, type);
}

bool reduce_shape(OpCall *call)       { return reduced_type(call, call->in[0]->type.dtype); }
bool reduce_index_shape(OpCall *call) { return reduced_type(call, TYPE_i32); }

Size flops_of_count(Context *cx, const Shape *shape, int64_t each) { return size_times(cx, shape_count(cx, shape), size_const(cx, each)); }
