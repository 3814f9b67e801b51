// ops_index.c: what reads or writes where indices say, and what can be said by that.
#include "import.h"

#include <limits.h>
#include <math.h>

// --- Elements and slices -------------------------------------------------------------------------------------------------

void onnx_gather_elements(OnnxCall *c)
{
    int64_t axis = axis_of(c, int_of(c, "axis", 0), rank_of(c->in[0]));
    OpCall call = call2(c->m, "gather_elements", c->in[0], c->in[1]);
    call_int(&call, "axis", axis);
    c->out[0] = emit(c->m, &call);
}

static const char *joining(OnnxCall *c)
{
    const char *how = word_of(c, "reduction", "none");
    const char *mine = strcmp(how, "add") == 0 ? "sum" : how;
    if (strcmp(mine, "none") != 0 && strcmp(mine, "sum") != 0 && strcmp(mine, "max") != 0 && strcmp(mine, "min") != 0)
        refuse_node(c, "reduction = %s is not available in this version", how);
    return mine;
}

void onnx_scatter_elements(OnnxCall *c)
{
    int64_t axis = axis_of(c, int_of(c, "axis", 0), rank_of(c->in[0]));
    const char *how = joining(c);
    OpCall call = call_new(&c->m->b, "scatter_elements", 3, c->in);
    call_int(&call, "axis", axis);
    call_word(&call, "reduce", how);
    c->out[0] = emit(c->m, &call);
}

// Tuples of indices into the axes from `first` on become one index; one outside of its axis lies outside of all.
static Value *flat_index(OnnxCall *c, Value *x, Value *index, int first, int k, int64_t *total)
{
    Import *m = c->m;
    Value *flat = NULL;
    int last = rank_of(index) - 1;
    int64_t n[RANK_MAX];
    *total = 1;
    for (int i = 0; i < k; i++)
        if (!size_known(dim_of(x, first + i), &n[i]) || !size_mul(*total, n[i], total)) {
            refuse_node(c, "an axis whose size is known only when running is not available in this version");
            return NULL;
        }
    int64_t stride = *total;
    for (int i = 0; i < k; i++) {
        stride = n[i] > 0 ? stride / n[i] : 0;
        Value *part = sliced(m, index, last, whole(m, i), whole(m, 1), 1);
        part = part != NULL ? cast_to(m, reshape_to(m, part, last, part->type.shape.dim), TYPE_i64) : NULL;
        part = formula(m, "select(x0 < -x1, x3, select(x0 >= x1, x3, select(x0 < 0, x0 + x1, x0) * x2))", 4,
                       (Value *[]){part, number(m, TYPE_i64, (double)n[i]), number(m, TYPE_i64, (double)stride), number(m, TYPE_i64, 0x1p50)});
        flat = flat == NULL ? part : op2(m, "add", flat, part);
    }
    return flat;
}

static bool tuple_size(OnnxCall *c, Value *index, int room, int64_t *k)
{
    if (rank_of(index) < 1 || !size_known(dim_of(index, rank_of(index) - 1), k) || *k < 1 || *k > room) {
        refuse_node(c, "its indices do not fit its input");
        return false;
    }
    return true;
}

void onnx_gather_nd(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0], *index = c->in[1];
    int64_t batch = int_of(c, "batch_dims", 0), k, total, groups = 1, n;
    if (batch < 0 || batch >= rank_of(index) || batch >= rank_of(x)) {
        refuse_node(c, "batch_dims = %d does not fit", (int)batch);
        return;
    }
    if (!tuple_size(c, index, rank_of(x) - (int)batch, &k))
        return;
    Value *flat = flat_index(c, x, index, (int)batch, (int)k, &total);
    if (flat == NULL)
        return;
    for (int i = 0; i < batch; i++) {
        if (!size_known(dim_of(x, i), &n)) {
            refuse_node(c, "an axis whose size is known only when running is not available in this version");
            return;
        }
        groups *= n;
    }
    Size dims[RANK_MAX] = {whole(m, groups * total)}, out[RANK_MAX];
    int rank = 1, rank_out = rank_of(flat);
    for (int i = 0; i < rank_out; i++)
        out[i] = dim_of(flat, i);
    for (int i = (int)(batch + k); i < rank_of(x); i++)
        dims[rank++] = out[rank_out++] = dim_of(x, i);
    if (batch > 0) {                                    // each group has its own part of x
        int64_t each = 1;
        Size two[2] = {whole(m, groups), NULL};
        for (int i = (int)batch; i < rank_of(flat); i++) {
            if (!size_known(dim_of(flat, i), &n)) {
                refuse_node(c, "an axis whose size is known only when running is not available in this version");
                return;
            }
            each *= n;
        }
        two[1] = whole(m, each);
        Tensor *start = tensor_new(m->cx->arena, TYPE_i64, 2, (int64_t[]){groups, 1});
        for (int64_t i = 0; i < groups; i++)
            ((int64_t *)start->data)[i] = i * total;
        flat = op2(m, "add", reshape_to(m, flat, 2, two), constant(m, start));
    }
    if (rank_out > RANK_MAX) {
        refuse_node(c, "its result has more than 8 axes");
        return;
    }
    c->out[0] = reshape_to(m, op2(m, "gather", reshape_to(m, x, rank, dims), flat), rank_out, out);
}

void onnx_scatter_nd(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0], *index = c->in[1], *values = c->in[2];
    int64_t k, total, n, many = 1;
    const char *how = joining(c);
    if (m->failed || !tuple_size(c, index, rank_of(x), &k))
        return;
    Value *flat = flat_index(c, x, index, 0, (int)k, &total);
    if (flat == NULL)
        return;
    for (int i = 0; i < rank_of(flat); i++) {
        if (!size_known(dim_of(flat, i), &n)) {
            refuse_node(c, "an axis whose size is known only when running is not available in this version");
            return;
        }
        many *= n;
    }
    Size dims[RANK_MAX] = {whole(m, total)}, of_values[RANK_MAX] = {whole(m, many)};
    int rank = 1;
    for (int i = (int)k; i < rank_of(x); i++, rank++)
        dims[rank] = of_values[rank] = dim_of(x, i);
    OpCall call = call_new(&m->b, "scatter", 3, (Value *[]){reshape_to(m, x, rank, dims), reshape_to(m, flat, 1, of_values), reshape_to(m, values, rank, of_values)});
    call_word(&call, "reduce", how);
    c->out[0] = reshape_to(m, emit(m, &call), rank_of(x), x->type.shape.dim);
}

// The elements that a condition, which must be known, marks.
void onnx_compress(OnnxCall *c)
{
    Import *m = c->m;
    const Onnx__Attribute *a = attribute(c, "axis");
    Value *x = c->in[0];
    int64_t axis = int_of(c, "axis", 0), marks[4096], list[4096], n;
    int count = known_ints(c, c->in[1], "the condition", marks, COUNT(marks)), many = 0;
    if (count < 0)
        return;
    if (a == NULL) {
        Size all = shape_count(m->cx, &x->type.shape);
        x = reshape_to(m, x, 1, &all);
    }
    axis = axis_of(c, axis, rank_of(x));
    if (m->failed)
        return;
    if (!size_known(dim_of(x, (int)axis), &n)) {
        refuse_node(c, "an axis whose size is known only when running is not available in this version");
        return;
    }
    for (int i = 0; i < count && i < n; i++)
        if (marks[i])
            list[many++] = i;
    OpCall call = call2(m, "gather", x, numbers(m, TYPE_i64, many, list));
    call_int(&call, "axis", axis);
    c->out[0] = emit(m, &call);
}

void onnx_reverse_sequence(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0];
    int64_t batch = axis_of(c, int_of(c, "batch_axis", 1), rank_of(x)), time = axis_of(c, int_of(c, "time_axis", 0), rank_of(x));
    Size dims[RANK_MAX], at[RANK_MAX];
    if (m->failed)
        return;
    if (batch == time) {
        refuse_node(c, "batch_axis and time_axis are the same");
        return;
    }
    for (int i = 0; i < rank_of(x); i++) {
        dims[i] = i == batch ? dim_of(x, i) : whole(m, 1);
        at[i] = i == time ? dim_of(x, i) : whole(m, 1);
    }
    OpCall range = call_new(&m->b, "range", 0, NULL);
    call_sizes(&range, "count", 1, &x->type.shape.dim[time]);
    call_type(&range, "type", TYPE_i64);
    Value *place = reshape_to(m, emit(m, &range), rank_of(x), at), *length = reshape_to(m, cast_to(m, c->in[1], TYPE_i64), rank_of(x), dims);
    Value *index = broadcast_as(m, formula2(m, "select(x0 < x1, x1 - 1 - x0, x0)", place, length), rank_of(x), x->type.shape.dim);
    OpCall call = call2(m, "gather_elements", x, index);
    call_int(&call, "axis", time);
    c->out[0] = emit(m, &call);
}

void onnx_center_crop_pad(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0];
    int64_t shape[RANK_MAX], axes[RANK_MAX], n;
    int rank = rank_of(x), count = known_ints(c, c->in[1], "the shape", shape, RANK_MAX), n_axes = ints_of(c, "axes", axes, RANK_MAX);
    if (count < 0)
        return;
    if (count != (n_axes < 0 ? rank : n_axes)) {
        refuse_node(c, "its shape has %d sizes", count);
        return;
    }
    for (int i = 0; i < count && x != NULL && !m->failed; i++) {
        int axis = (int)axis_of(c, n_axes < 0 ? i : axes[i], rank);
        int64_t pads[2 * RANK_MAX] = {0};
        if (m->failed || !size_known(dim_of(x, axis), &n) || shape[i] < 0) {
            refuse_node(c, "an axis whose size is known only when running is not available in this version");
            return;
        }
        if (shape[i] < n)
            x = sliced(m, x, axis, whole(m, (n - shape[i]) / 2), whole(m, shape[i]), 1);
        if (shape[i] > n) {
            pads[axis] = (shape[i] - n) / 2;
            pads[rank + axis] = shape[i] - n - pads[axis];
            OpCall pad = call1(m, "pad", x);
            call_ints(&pad, "pads", 2 * rank, pads);
            x = emit(m, &pad);
        }
    }
    c->out[0] = x == c->in[0] ? op1(m, "identity", x) : x;
}

// --- Sums of products ------------------------------------------------------------------------------------------------------

typedef struct Terms { char label[64]; int count; } Terms;

// The labels of one operand; those of "..." are numbers, counted from the last of its axes.
static bool read_term(const char *text, size_t length, int rank, Terms *t)
{
    int named = 0;
    bool dots = false;
    t->count = 0;
    for (size_t i = 0; i < length; i++)
        named += text[i] != ' ' && text[i] != '.';
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ')
            continue;
        if (text[i] == '.') {
            if (dots || i + 2 >= length || text[i + 1] != '.' || text[i + 2] != '.' || rank - named > 20)
                return false;
            for (int k = rank - named; k > 0; k--)
                t->label[t->count++] = (char)(1 + k);   // no letter
            dots = true;
            i += 2;
            continue;
        }
        if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) || t->count >= 32)
            return false;
        t->label[t->count++] = text[i];
    }
    return rank < 0 || t->count == rank;
}

static int place_of(const Terms *t, char label)
{
    for (int i = 0; i < t->count; i++)
        if (t->label[i] == label)
            return i;
    return -1;
}

void onnx_einsum(OnnxCall *c)
{
    Import *m = c->m;
    const char *text = word_of(c, "equation", ""), *arrow = strstr(text, "->"), *p = text;
    Terms in[INPUTS_MAX], out = {.count = 0}, all = {.count = 0};
    Size size[64];
    for (int i = 0; i < c->n_in; i++) {
        size_t length = strcspn(p, ",-");
        if (!read_term(p, length, rank_of(c->in[i]), &in[i]) || (i + 1 < c->n_in) != (p[length] == ',')) {
            refuse_node(c, "the equation %s does not fit its inputs", text);
            return;
        }
        p += length + (p[length] == ',');
        for (int k = 0; k < in[i].count; k++) {
            char label = in[i].label[k];
            int at = place_of(&all, label);
            int64_t n;
            if (place_of(&in[i], label) != k) {
                refuse_node(c, "a letter twice in one operand of %s is not available in this version", text);
                return;
            }
            if (at < 0 && all.count < 60)
                all.label[at = all.count++] = label, size[at] = dim_of(c->in[i], k);
            else if (at >= 0 && size_known(size[at], &n) && n == 1)
                size[at] = dim_of(c->in[i], k);
        }
    }
    int dots = 0;
    for (int i = 0; i < all.count; i++)
        dots += all.label[i] < 32;
    if (arrow != NULL) {
        const char *right = arrow + 2;
        int named = 0;
        bool has_dots = strchr(right, '.') != NULL;
        for (const char *q = right; *q != 0; q++)
            named += *q != ' ' && *q != '.';
        if (!read_term(right, strlen(right), has_dots ? named + dots : named, &out)) {
            refuse_node(c, "the equation %s cannot be read", text);
            return;
        }
    } else {                                            // letters that come once, in their order, behind "..."
        for (int k = dots; k > 0; k--)
            out.label[out.count++] = (char)(1 + k);
        for (int letter = 'A'; letter <= 'z'; letter++) {
            int times = 0;
            for (int i = 0; i < c->n_in; i++)
                times += place_of(&in[i], (char)letter) >= 0;
            if (times == 1 && out.count < 60)
                out.label[out.count++] = (char)letter;
        }
    }
    Terms order = out;                                  // the result's axes, then those that are summed
    for (int i = 0; i < all.count; i++)
        if (place_of(&order, all.label[i]) < 0 && order.count < 60)
            order.label[order.count++] = all.label[i];
    for (int i = 0; i < out.count; i++)
        if (place_of(&all, out.label[i]) < 0 || place_of(&out, out.label[i]) != i) {
            refuse_node(c, "the equation %s cannot be read", text);
            return;
        }
    if (order.count > RANK_MAX) {
        refuse_node(c, "more than 8 letters are not available in this version");
        return;
    }
    Value *product = NULL;
    for (int i = 0; i < c->n_in; i++) {
        int64_t perm[RANK_MAX];
        Size dims[RANK_MAX];
        int n = 0;
        for (int k = 0; k < order.count; k++) {
            int at = place_of(&in[i], order.label[k]);
            dims[k] = at >= 0 ? dim_of(c->in[i], at) : whole(m, 1);
            if (at >= 0)
                perm[n++] = at;
        }
        Value *x = reshape_to(m, n > 0 ? transposed(m, c->in[i], perm) : c->in[i], order.count, dims);
        product = product == NULL ? x : op2(m, "mul", product, x);
    }
    int64_t axes[RANK_MAX];
    int n = 0;
    for (int k = out.count; k < order.count; k++)
        axes[n++] = k;
    if (product == NULL)
        return;
    Size dims[RANK_MAX];                                // axes that no operand has in full length are repeated
    for (int k = 0; k < order.count; k++)
        dims[k] = size[place_of(&all, order.label[k])];
    product = broadcast_as(m, product, order.count, dims);
    c->out[0] = n > 0 ? reduced(m, "sum", product, n, axes, false) : c->n_in == 1 ? op1(m, "identity", product) : product;
}

// --- Signals ---------------------------------------------------------------------------------------------------------------

void onnx_window(OnnxCall *c)
{
    static const double weights[3][3] = {{0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}};
    const double *w = weights[strcmp(c->detail, "hann") == 0 ? 0 : strcmp(c->detail, "hamming") == 0 ? 1 : 2];
    bool periodic = int_of(c, "periodic", 1) != 0;
    DType type = dtype_of(c, (int)int_of(c, "output_datatype", 1));
    int64_t n;
    if (known_ints(c, c->in[0], "the size", &n, 1) != 1 || c->m->failed)
        return;
    if (n < 0 || n > 1 << 24) {
        refuse_node(c, "its size is too large");
        return;
    }
    Tensor *t = tensor_new(c->m->cx->arena, type, 1, &n);
    double by = periodic ? (double)n : (double)(n - 1);
    for (int64_t i = 0; i < n; i++) {
        double x = by == 0 ? 0 : 2 * acos(-1) * (double)i / by;
        tensor_set(t, i, w[0] - w[1] * cos(x) + w[2] * cos(2 * x));
    }
    c->out[0] = constant(c->m, t);
}

// By the definition, as a product with a matrix of cosines and sines, in f64.
static Value *transform(OnnxCall *c, Value *x, int64_t n, int64_t bins, bool inverse, DType type)
{
    Import *m = c->m;
    bool complex_in = false;
    int64_t parts;
    int last = rank_of(x) - 1;                          // (…, n, 1 or 2)
    if (!size_known(dim_of(x, last), &parts) || (parts != 1 && parts != 2) || n > 4096 || n < 1) {
        refuse_node(c, "%s cannot be transformed in this version", type_text(m->cx, &x->type));
        return NULL;
    }
    complex_in = parts == 2;
    Tensor *cosine = tensor_new(m->cx->arena, TYPE_f64, 2, (int64_t[]){n, bins}), *sine = tensor_new(m->cx->arena, TYPE_f64, 2, (int64_t[]){n, bins});
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < bins; k++) {
            double at = 2 * acos(-1) * (double)(i * k % n) / (double)n;
            ((double *)cosine->data)[i * bins + k] = cos(at) / (inverse ? (double)n : 1);
            ((double *)sine->data)[i * bins + k] = (inverse ? 1 : -1) * sin(at) / (inverse ? (double)n : 1);
        }
    Size dims[RANK_MAX];
    for (int i = 0; i < last; i++)
        dims[i] = dim_of(x, i);
    Value *re = cast_to(m, reshape_to(m, sliced(m, x, last, whole(m, 0), whole(m, 1), 1), last, dims), TYPE_f64), *im = NULL;
    if (complex_in)
        im = cast_to(m, reshape_to(m, sliced(m, x, last, whole(m, 1), whole(m, 1), 1), last, dims), TYPE_f64);
    Value *co = constant(m, cosine), *si = constant(m, sine);
    Value *y_re = op2(m, "matmul", re, co), *y_im = op2(m, "matmul", re, si);
    if (im != NULL) {
        y_re = op2(m, "sub", y_re, op2(m, "matmul", im, si));
        y_im = op2(m, "add", y_im, op2(m, "matmul", im, co));
    }
    dims[last - 1] = whole(m, bins), dims[last] = whole(m, 1);
    return cast_to(m, joined(m, 2, (Value *[]){reshape_to(m, y_re, last + 1, dims), reshape_to(m, y_im, last + 1, dims)}, last), type);
}

void onnx_dft(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0];
    int64_t axis = -2, length, n;
    bool inverse = int_of(c, "inverse", 0) != 0, onesided = int_of(c, "onesided", 0) != 0;
    int rank = rank_of(x);
    if (c->version < 20)
        axis = int_of(c, "axis", 1);
    else if (input_of(c, 2) != NULL && known_ints(c, c->in[2], "the axis", &axis, 1) != 1)
        return;
    axis = axis_of(c, axis, rank);
    if (m->failed)
        return;
    if (rank < 2 || axis == rank - 1 || !size_known(dim_of(x, (int)axis), &n) || (inverse && onesided)) {
        refuse_node(c, "this form is not available in this version");
        return;
    }
    length = n;
    if (input_of(c, 1) != NULL && known_ints(c, c->in[1], "the length", &length, 1) != 1)
        return;
    if (length < n && length > 0)
        x = sliced(m, x, (int)axis, whole(m, 0), whole(m, length), 1);
    if (length > n) {
        int64_t pads[2 * RANK_MAX] = {0};
        pads[rank + axis] = length - n;
        OpCall pad = call1(m, "pad", x);
        call_ints(&pad, "pads", 2 * rank, pads);
        x = emit(m, &pad);
    }
    int64_t perm[RANK_MAX];                             // the axis goes before the last
    for (int i = 0; i < rank; i++)
        perm[i] = i < axis || i == rank - 1 ? i : i == rank - 2 ? axis : i + 1;
    x = transposed(m, x, perm);
    x = x != NULL ? transform(c, x, length, onesided ? length / 2 + 1 : length, inverse, c->in[0]->type.dtype) : NULL;
    int64_t back[RANK_MAX];
    for (int i = 0; i < rank; i++)
        back[perm[i]] = i;
    c->out[0] = transposed(m, x, back);
}

// --- Whole numbers by their bits -----------------------------------------------------------------------------------------------

// Shifts are products with, or quotients by, powers of two, of which each bit of the distance has one.
void onnx_bit_shift(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0], *y = c->in[1], *power = NULL;
    const char *way = word_of(c, "direction", "");
    DType type = x->type.dtype;
    int bits = 8 * type_def(type)->bytes;
    bool left = strcmp(way, "LEFT") == 0, sign = type_def(type)->kind == KIND_INT;
    if (type_is_float(type) || type == TYPE_bool || (!left && strcmp(way, "RIGHT") != 0)) {
        refuse_node(c, "it shifts whole numbers LEFT or RIGHT");
        return;
    }
    y = cast_to(m, y, type);
    Value *rest = y;
    for (int step = 1; step < bits; step *= 2) {        // 2, 4, 16, 256, …
        Value *half = formula1(m, "floordiv(x0, 2)", rest);
        Tensor *factor = tensor_new(m->cx->arena, type, 0, NULL);
        tensor_set_whole(factor, 0, (int64_t)((uint64_t)1 << step));
        Value *now = op3(m, "where", formula2(m, "x0 - 2 * x1 != 0", rest, half), constant(m, factor), number(m, type, 1));
        power = power == NULL ? now : op2(m, "mul", power, now);
        rest = half;
    }
    Value *far = formula2(m, sign ? "or(x0 < 0, x0 >= x1)" : "x0 >= x1", y, number(m, type, left || !sign ? bits : bits - 1)), *none = number(m, type, 0);
    if (left)
        c->out[0] = op3(m, "where", far, none, op2(m, "mul", x, power));
    else
        c->out[0] = op3(m, "where", far, sign ? op3(m, "where", formula1(m, "x0 < 0", x), number(m, type, -1), none) : none, op2(m, "floordiv", x, power));
}
