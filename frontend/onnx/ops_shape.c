// ops_shape.c: constants, shapes, and what moves elements.
#include "import.h"

#include <limits.h>
#include <math.h>

// --- Constants and shapes ----------------------------------------------------------------------------------------------

static Value *floats(OnnxCall *c, int rank, size_t n, const float *x)
{
    Tensor *t = tensor_new(c->m->cx->arena, TYPE_f32, rank, (int64_t[]){(int64_t)n});
    for (size_t i = 0; i < n; i++)
        ((float *)t->data)[i] = x[i];
    return constant(c->m, t);
}

void onnx_constant(OnnxCall *c)
{
    const Onnx__Attribute *a;
    if ((a = attribute(c, "value")) != NULL && a->t != NULL) {
        Tensor *t = import_tensor(c->m, a->t, c->p->output[0]);
        if (t == NULL)
            return;
        Item item = {.name = c->p->output[0], .tensor = t};
        c->out[0] = tensor_count(t) > 64 ? import_value(c->m, &item) : constant(c->m, t);
    } else if ((a = attribute(c, "value_float")) != NULL)
        c->out[0] = floats(c, 0, 1, &a->f);
    else if ((a = attribute(c, "value_floats")) != NULL)
        c->out[0] = floats(c, 1, a->n_floats, a->floats);
    else if ((a = attribute(c, "value_int")) != NULL) {
        Tensor *t = tensor_new(c->m->cx->arena, TYPE_i64, 0, NULL);
        tensor_set_whole(t, 0, a->i);
        c->out[0] = constant(c->m, t);
    } else if ((a = attribute(c, "value_ints")) != NULL && a->n_ints <= INT_MAX)
        c->out[0] = numbers(c->m, TYPE_i64, (int)a->n_ints, a->ints);
    else
        refuse_node(c, "a constant of this kind (sparse, strings) is not available in this version");
}

static Value *sizes_value(Import *m, int n, const Size *sizes)
{
    int64_t known[RANK_MAX];
    bool all = true;
    for (int i = 0; i < n; i++)
        all &= size_known(sizes[i], &known[i]);
    if (all)
        return numbers(m, TYPE_i64, n, known);
    OpCall call = call_new(&m->b, "sizes", 0, NULL);
    call_sizes(&call, "sizes", n, sizes);
    return emit(m, &call);
}

void onnx_shape(OnnxCall *c)
{
    int64_t rank = rank_of(c->in[0]), start = int_of(c, "start", 0), end = int_of(c, "end", rank);
    start += start < 0 ? rank : 0;
    end += end < 0 ? rank : 0;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    c->out[0] = sizes_value(c->m, (int)(end - start), c->in[0]->type.shape.dim + start);
}

void onnx_size(OnnxCall *c)
{
    Size count = shape_count(c->m->cx, &c->in[0]->type.shape);
    c->out[0] = reshape_to(c->m, sizes_value(c->m, 1, &count), 0, NULL);
}

void onnx_constant_of_shape(OnnxCall *c)
{
    const Onnx__Attribute *a = attribute(c, "value");
    Size dims[RANK_MAX];
    int rank = known_sizes(c, c->in[0], "the shape", dims, RANK_MAX);
    Tensor *t = a != NULL && a->t != NULL ? import_tensor(c->m, a->t, "value") : tensor_new(c->m->cx->arena, TYPE_f32, 0, NULL);
    if (rank < 0 || t == NULL)
        return;
    if (tensor_count(t) != 1)
        refuse_node(c, "its value should be one number");
    else
        c->out[0] = broadcast_as(c->m, reshape_to(c->m, constant(c->m, t), 0, NULL), rank, dims);
}

void onnx_identity(OnnxCall *c) { c->out[0] = op1(c->m, "identity", c->in[0]); }

void onnx_range(OnnxCall *c)
{
    DType type = c->in[0]->type.dtype;
    const Tensor *start = known_value(c->m, c->in[0]), *delta = known_value(c->m, c->in[2]);
    Size limit;
    int n;
    double from, to, by;
    if (!type_is_float(type) && start != NULL && delta != NULL && known_value(c->m, c->in[1]) == NULL && sizes_of(c->m, c->in[1], &limit, 1, &n) &&
        tensor_count(start) == 1 && tensor_get_whole(start, 0) == 0 && tensor_count(delta) == 1 && tensor_get_whole(delta, 0) == 1) {
        OpCall call = call_new(&c->m->b, "range", 0, NULL);
        call_sizes(&call, "count", 1, &limit);
        call_type(&call, "type", type);
        c->out[0] = emit(c->m, &call);
        return;
    }
    if (!known_number(c, c->in[0], "the start", &from) || !known_number(c, c->in[1], "the limit", &to) || !known_number(c, c->in[2], "the step", &by))
        return;
    double count = by != 0 ? ceil((to - from) / by) : NAN;
    if (!(count < 1 << 24)) {
        refuse_node(c, "it would have more than 16 million elements");
        return;
    }
    int64_t dim = count > 0 ? (int64_t)count : 0;
    Tensor *t = tensor_new(c->m->cx->arena, type, 1, &dim);
    for (int64_t i = 0; i < dim; i++)
        if (type_is_float(type))
            tensor_set(t, i, from + (double)i * by);
        else
            tensor_set_whole(t, i, (int64_t)from + i * (int64_t)by);
    c->out[0] = constant(c->m, t);
}

void onnx_eye_like(OnnxCall *c)
{
    int64_t n[2], k = int_of(c, "k", 0), to = int_of(c, "dtype", 0);
    DType type = to != 0 ? dtype_of(c, (int)to) : c->in[0]->type.dtype;
    if (rank_of(c->in[0]) != 2 || !size_known(dim_of(c->in[0], 0), &n[0]) || !size_known(dim_of(c->in[0], 1), &n[1]) || type == TYPE_NONE) {
        refuse_node(c, "it takes a matrix whose sizes are known when compiling");
        return;
    }
    Tensor *t = tensor_new(c->m->cx->arena, type, 2, n);
    for (int64_t i = 0; i < n[0]; i++)
        if (i + k >= 0 && i + k < n[1])
            tensor_set(t, i * n[1] + i + k, 1);
    c->out[0] = constant(c->m, t);
}

// --- Shapes of values --------------------------------------------------------------------------------------------------

void onnx_reshape(OnnxCall *c)
{
    Value *x = c->in[0];
    Size dims[RANK_MAX], given = whole(c->m, 1), total = shape_count(c->m->cx, &x->type.shape);
    int64_t n, list[RANK_MAX], unused[8];
    int rank, open = -1;
    bool zero_is_zero = c->version >= 14 && int_of(c, "allowzero", 0) != 0;
    if (c->version < 5) {
        ints_of(c, "consumed_inputs", unused, 8);
        rank = ints_of(c, "shape", list, RANK_MAX);
        for (int i = 0; i < rank; i++)
            dims[i] = whole(c->m, list[i]);
    } else
        rank = known_sizes(c, input_of(c, 1), "the shape", dims, RANK_MAX);
    if (rank < 0) {
        if (!c->m->failed)
            refuse_node(c, "its shape is not given");
        return;
    }
    for (int i = 0; i < rank; i++) {
        bool known = size_known(dims[i], &n);
        if (known && n == 0 && !zero_is_zero) {
            if (i >= rank_of(x)) {
                refuse_node(c, "size %d is to be copied, and the input has %d axes", i, rank_of(x));
                return;
            }
            dims[i] = dim_of(x, i);
        } else if (known && n < -1) {
            refuse_node(c, "a size is negative");
            return;
        } else if (known && n == -1) {
            if (open >= 0) {
                refuse_node(c, "two sizes are -1");
                return;
            }
            open = i;
            continue;
        }
        given = size_times(c->m->cx, given, dims[i]);
    }
    if (open >= 0) {
        dims[open] = size_known(given, &n) && n == 0 ? NULL : size_over(c->m->cx, total, given);
        if (dims[open] == NULL) {
            refuse_node(c, "the size that is -1 does not come out whole for %s", type_text(c->m->cx, &x->type));
            return;
        }
    }
    c->out[0] = reshape_to(c->m, x, rank, dims);
    if (c->out[0] == x)
        c->out[0] = op1(c->m, "identity", x);
}

void onnx_flatten(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t axis = int_of(c, "axis", 1);
    axis += axis < 0 ? rank_of(x) : 0;
    if (axis < 0 || axis > rank_of(x)) {
        refuse_node(c, "its axis is outside of %d axes", rank_of(x));
        return;
    }
    Size dims[2] = {whole(c->m, 1), whole(c->m, 1)};
    for (int i = 0; i < rank_of(x); i++)
        dims[i >= axis] = size_times(c->m->cx, dims[i >= axis], dim_of(x, i));
    c->out[0] = reshape_to(c->m, x, 2, dims);
}

// Axes of an attribute, or of input 1 from opset 13 on; -1: not given.
static int axes_given(OnnxCall *c, int64_t *axes)
{
    if (c->version < 13)
        return ints_of(c, "axes", axes, RANK_MAX);
    return input_of(c, 1) != NULL ? known_ints(c, c->in[1], "the axes", axes, RANK_MAX) : -1;
}

void onnx_squeeze(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t axes[RANK_MAX], n;
    bool drop[RANK_MAX] = {false};
    int count = axes_given(c, axes), rank = 0;
    Size dims[RANK_MAX];
    if (c->m->failed)
        return;
    for (int i = 0; i < count; i++)
        drop[axis_of(c, axes[i], rank_of(x))] = true;
    for (int i = 0; i < rank_of(x) && !c->m->failed; i++) {
        bool one = size_known(dim_of(x, i), &n) && n == 1;
        if (count < 0)
            drop[i] = one;
        if (drop[i] && !one) {
            refuse_node(c, "axis %d of %s is not 1", i, type_text(c->m->cx, &x->type));
            return;
        }
        if (!drop[i])
            dims[rank++] = dim_of(x, i);
    }
    c->out[0] = reshape_to(c->m, x, rank, dims);
}

void onnx_unsqueeze(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t axes[RANK_MAX];
    bool is_new[RANK_MAX] = {false};
    int count = axes_given(c, axes), rank = rank_of(x) + count;
    Size dims[RANK_MAX];
    if (c->m->failed)
        return;
    if (count < 0 || rank > RANK_MAX) {
        refuse_node(c, count < 0 ? "its axes are not given" : "more than 8 axes are not available");
        return;
    }
    for (int i = 0; i < count; i++) {
        int64_t at = axis_of(c, axes[i], rank);
        if (is_new[at])
            refuse_node(c, "axis %d is given twice", (int)at);
        is_new[at] = true;
    }
    for (int i = 0, from = 0; i < rank && !c->m->failed; i++)
        dims[i] = is_new[i] ? whole(c->m, 1) : dim_of(x, from++);
    if (!c->m->failed)
        c->out[0] = reshape_to(c->m, x, rank, dims);
}

void onnx_transpose(OnnxCall *c)
{
    int64_t perm[RANK_MAX];
    int rank = rank_of(c->in[0]), n = ints_of(c, "perm", perm, RANK_MAX);
    bool seen[RANK_MAX] = {false};
    for (int i = 0; n < 0 && i < rank; i++)
        perm[i] = rank - 1 - i;
    for (int i = 0; n >= 0 && i < rank; i++) {
        int64_t at = i < n ? axis_of(c, perm[i], rank) : 0;
        if (n != rank || seen[at]) {
            refuse_node(c, "its perm is no order of %d axes", rank);
            return;
        }
        seen[at] = true;
        perm[i] = at;
    }
    if (rank == 0 || c->m->failed)
        c->out[0] = op1(c->m, "identity", c->in[0]);
    else
        c->out[0] = transposed(c->m, c->in[0], perm);
}

void onnx_expand(OnnxCall *c)
{
    Value *x = c->in[0];
    Size dims[RANK_MAX];
    int n = known_sizes(c, c->in[1], "the shape", dims, RANK_MAX);
    if (n < 0)
        return;
    Shape wanted = {.rank = n}, both;
    for (int i = 0; i < n; i++)
        wanted.dim[i] = dims[i];
    if (!shape_broadcast(c->m->cx, &x->type.shape, &wanted, &both)) {
        refuse_node(c, "%s cannot be expanded so", type_text(c->m->cx, &x->type));
        return;
    }
    c->out[0] = broadcast_as(c->m, x, both.rank, both.dim);
}

void onnx_tile(OnnxCall *c)
{
    int64_t repeats[RANK_MAX];
    int n = known_ints(c, c->in[1], "the repeats", repeats, RANK_MAX);
    if (n < 0)
        return;
    if (n != rank_of(c->in[0])) {
        refuse_node(c, "it has %d repeats for %d axes", n, rank_of(c->in[0]));
        return;
    }
    for (int i = 0; i < n; i++)
        if (repeats[i] < 0)
            refuse_node(c, "a repeat is negative");
    Value *x = c->in[0];                                // axis by axis: what is repeated, besides each axis
    Size dims[RANK_MAX];
    for (int i = 0; i < n && !c->m->failed; i++) {
        if (repeats[i] == 1 || x == NULL)
            continue;
        if (n == RANK_MAX) {
            refuse_node(c, "8 axes are not available in this version");
            return;
        }
        Size with[RANK_MAX];
        for (int k = 0, at = 0; k <= n; k++)
            with[k] = k == i ? whole(c->m, 1) : dim_of(x, at++);
        x = reshape_to(c->m, x, n + 1, with);
        with[i] = whole(c->m, repeats[i]);
        x = broadcast_as(c->m, x, n + 1, with);
        for (int k = 0; k < n; k++)
            dims[k] = k == i ? size_times(c->m->cx, with[i], with[i + 1]) : with[k < i ? k : k + 1];
        x = reshape_to(c->m, x, n, dims);
    }
    c->out[0] = x == c->in[0] ? op1(c->m, "identity", x) : x;
}

void onnx_concat(OnnxCall *c)
{
    int64_t axis = axis_of(c, int_of(c, "axis", c->version < 4 ? 1 : INT_MAX), rank_of(c->in[0]));
    if (!c->m->failed)
        c->out[0] = c->n_in == 1 ? op1(c->m, "identity", c->in[0]) : joined(c->m, c->n_in, c->in, (int)axis);
}

void onnx_split(OnnxCall *c)
{
    Value *x = c->in[0];
    int axis = (int)axis_of(c, int_of(c, "axis", 0), rank_of(x));
    int64_t parts[OUTPUTS_MAX], n, given = c->version >= 18 ? int_of(c, "num_outputs", 0) : 0;
    int count = c->version < 13 ? ints_of(c, "split", parts, OUTPUTS_MAX) : input_of(c, 1) != NULL ? known_ints(c, c->in[1], "the sizes of the parts", parts, OUTPUTS_MAX) : -1;
    if (c->m->failed)
        return;
    if (c->version < 2 && c->n_in > 1) {
        refuse_node(c, "this form is not available in this version");
        return;
    }
    if (count < 0) {
        count = given > 0 ? (int)given : c->n_out;
        if (!size_known(dim_of(x, axis), &n) || count != c->n_out) {
            refuse_node(c, "axis %d of %s cannot be divided into %d parts", axis, type_text(c->m->cx, &x->type), count);
            return;
        }
        int64_t each = (n + count - 1) / count;
        for (int i = 0; i < count; i++)
            parts[i] = i < count - 1 ? each : n - each * (count - 1);
        if (c->version < 18 && n % count != 0)
            refuse_node(c, "axis %d of %s cannot be divided into %d equal parts", axis, type_text(c->m->cx, &x->type), count);
    }
    int64_t from = 0;
    if (count != c->n_out)
        refuse_node(c, "it has %d outputs for %d parts", c->n_out, count);
    for (int i = 0; i < count && !c->m->failed; from += parts[i++])
        if (parts[i] < 0)
            refuse_node(c, "a part is negative");
        else
            c->out[i] = sliced(c->m, x, axis, whole(c->m, from), whole(c->m, parts[i]), 1);
    if (!c->m->failed && size_known(dim_of(x, axis), &n) && from != n)
        refuse_node(c, "its parts do not make up axis %d of %s", axis, type_text(c->m->cx, &x->type));
}

static int64_t bounded(int64_t n, int64_t least, int64_t most) { return n < least ? least : n > most ? most : n; }

static Value *slice_axis(OnnxCall *c, Value *x, int axis, int64_t start, int64_t end, int64_t step)
{
    int64_t n, count;
    Context *cx = c->m->cx;
    if (step == 0) {
        refuse_node(c, "a step is 0");
        return NULL;
    }
    if (!size_known(dim_of(x, axis), &n)) {
        bool to_end = end >= INT32_MAX;
        if (step != 1 || (!to_end && (start < 0) != (end < 0) && start != 0)) {
            refuse_node(c, "this part of axis %d, whose size is known only when running, is not available in this version", axis);
            return NULL;
        }
        Size from = start >= 0 ? whole(c->m, start) : size_plus(cx, dim_of(x, axis), whole(c->m, start));
        Size to = to_end ? dim_of(x, axis) : end >= 0 ? whole(c->m, end) : size_plus(cx, dim_of(x, axis), whole(c->m, end));
        return sliced(c->m, x, axis, from, size_minus(cx, to, from), 1);
    }
    start = start < 0 && start >= -n ? start + n : start;
    end = end < 0 && end >= -n ? end + n : end;
    if (step > 0) {
        start = bounded(start, 0, n);
        end = bounded(end, 0, n);
        count = end > start ? (end - start - 1) / step + 1 : 0;
    } else {
        start = bounded(start, -1, n - 1);
        end = bounded(end, -1, n - 1);
        count = start > end ? (step == INT64_MIN ? 1 : (start - end - 1) / -step + 1) : 0;
    }
    if (count <= 1)
        step = 1;
    if (count == 0)
        start = 0;
    return start == 0 && count == n && step == 1 ? x : sliced(c->m, x, axis, whole(c->m, start), whole(c->m, count), step);
}

void onnx_slice(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t starts[RANK_MAX], ends[RANK_MAX], axes[RANK_MAX], steps[RANK_MAX];
    bool seen[RANK_MAX] = {false};
    int n, n_ends, n_axes = -1, n_steps = -1;
    if (c->version < 10) {
        n = ints_of(c, "starts", starts, RANK_MAX);
        n_ends = ints_of(c, "ends", ends, RANK_MAX);
        n_axes = ints_of(c, "axes", axes, RANK_MAX);
    } else {
        n = known_ints(c, input_of(c, 1), "the starts", starts, RANK_MAX);
        n_ends = known_ints(c, input_of(c, 2), "the ends", ends, RANK_MAX);
        if (input_of(c, 3) != NULL)
            n_axes = known_ints(c, c->in[3], "the axes", axes, RANK_MAX);
        if (input_of(c, 4) != NULL)
            n_steps = known_ints(c, c->in[4], "the steps", steps, RANK_MAX);
    }
    if (c->m->failed)
        return;
    if (n < 0 || n != n_ends || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n) || n > rank_of(x)) {
        refuse_node(c, "its starts, ends, axes and steps do not have the same length");
        return;
    }
    for (int i = 0; i < n && !c->m->failed; i++) {
        int axis = (int)axis_of(c, n_axes >= 0 ? axes[i] : i, rank_of(c->in[0]));
        if (seen[axis])
            refuse_node(c, "axis %d is given twice", axis);
        seen[axis] = true;
        if (!c->m->failed)
            x = slice_axis(c, x, axis, starts[i], ends[i], n_steps >= 0 ? steps[i] : 1);
    }
    c->out[0] = x == c->in[0] ? op1(c->m, "identity", x) : x;
}

// --- Indices -------------------------------------------------------------------------------------------------------------

// Indices counted from the end become indices from the start.
static Value *from_start(OnnxCall *c, Value *index, Size length)
{
    Import *m = c->m;
    const Tensor *known = known_value(m, index);
    int64_t n;
    if (index == NULL || type_is_float(index->type.dtype))
        return index;
    if (known != NULL && size_known(length, &n)) {
        Tensor *t = tensor_new(m->cx->arena, known->dtype, known->rank, known->dim);
        for (int64_t i = 0; i < tensor_count(t); i++) {
            int64_t at = tensor_get_whole(known, i);
            if (at < -n || at >= n) {
                refuse_node(c, "the index %lld is outside of %lld", (long long)at, (long long)n);
                return NULL;
            }
            tensor_set_whole(t, i, at < 0 ? at + n : at);
        }
        return constant(m, t);
    }
    if (size_known(length, &n) && n <= INT32_MAX)
        return formula2(m, "select(x0 < 0, x0 + x1, x0)", index, number(m, index->type.dtype, (double)n));
    Value *size = cast_to(m, reshape_to(m, sizes_value(m, 1, &length), 0, NULL), index->type.dtype);
    return formula2(m, "select(x0 < 0, x0 + x1, x0)", index, size);
}

void onnx_gather(OnnxCall *c)
{
    int axis = (int)axis_of(c, int_of(c, "axis", 0), rank_of(c->in[0]));
    if (c->m->failed)
        return;
    OpCall call = call2(c->m, "gather", c->in[0], from_start(c, c->in[1], dim_of(c->in[0], axis)));
    call_int(&call, "axis", axis);
    c->out[0] = emit(c->m, &call);
}

void onnx_one_hot(OnnxCall *c)
{
    Value *index = c->in[0], *values = c->in[2];
    double depth;
    int64_t axis = int_of(c, "axis", -1);
    if (!known_number(c, c->in[1], "the depth", &depth))
        return;
    int rank = rank_of(index) + 1;
    axis = axis_of(c, axis, rank);
    if (rank > RANK_MAX || depth < 0 || depth > 1e9)
        refuse_node(c, "its depth or number of axes is too large");
    if (c->m->failed)
        return;
    Size dims[RANK_MAX], along[RANK_MAX];
    for (int i = 0, from = 0; i < rank; i++) {
        dims[i] = i == axis ? whole(c->m, 1) : dim_of(index, from++);
        along[i] = i == axis ? whole(c->m, (int64_t)depth) : whole(c->m, 1);
    }
    Value *at = cast_to(c->m, index, TYPE_i64);
    at = reshape_to(c->m, formula2(c->m, "select(x0 < 0, x0 + x1, x0)", at, number(c->m, TYPE_i64, depth)), rank, dims);
    OpCall range = call_new(&c->m->b, "range", 0, NULL);
    call_sizes(&range, "count", 1, (Size[]){whole(c->m, (int64_t)depth)});
    call_type(&range, "type", TYPE_i64);
    Value *place = reshape_to(c->m, emit(c->m, &range), rank, along);
    Value *off = sliced(c->m, values, 0, whole(c->m, 0), whole(c->m, 1), 1), *on = sliced(c->m, values, 0, whole(c->m, 1), whole(c->m, 1), 1);
    c->out[0] = op3(c->m, "where", op2(c->m, "equal", at, place), reshape_to(c->m, on, 0, NULL), reshape_to(c->m, off, 0, NULL));
}

void onnx_trilu(OnnxCall *c)
{
    double k = 0;
    bool upper = int_of(c, "upper", 1) != 0;
    if (input_of(c, 1) != NULL && !known_number(c, c->in[1], "the diagonal", &k))
        return;
    OpCall call = call1(c->m, "triangular", c->in[0]);
    call_bool(&call, "upper", upper);
    call_int(&call, "diagonal", (int64_t)k);
    c->out[0] = emit(c->m, &call);
}

// Elements of an axis by number.
static Value *taken(Import *m, Value *x, int axis, int64_t n, const int64_t *index)
{
    if (n > INT_MAX)
        return NULL;
    OpCall call = call2(m, "gather", x, numbers(m, TYPE_i64, (int)n, index));
    call_int(&call, "axis", axis);
    return emit(m, &call);
}

// --- Pad, depth and space --------------------------------------------------------------------------------------------------

static int64_t mirrored(int64_t i, int64_t n)
{
    int64_t period = 2 * (n - 1);
    if (n == 1)
        return 0;
    i = (i % period + period) % period;
    return i < n ? i : period - i;
}

static Value *pad_axis(OnnxCall *c, Value *x, int axis, int64_t before, int64_t after, const char *mode)
{
    int64_t n;
    if (before == 0 && after == 0)
        return x;
    if (!size_known(dim_of(x, axis), &n) || n + before + after > 1 << 26 || n + before + after < 0 || n == 0) {
        refuse_node(c, "mode %s on axis %d of %s is not available in this version", mode, axis, type_text(c->m->cx, &x->type));
        return NULL;
    }
    int64_t many = n + before + after, *index = NEW_ARRAY(c->m->cx->arena, int64_t, many + 1);
    for (int64_t i = 0; i < many; i++) {
        int64_t at = i - before;
        index[i] = strcmp(mode, "edge") == 0 ? bounded(at, 0, n - 1) : strcmp(mode, "wrap") == 0 ? (at % n + n) % n : mirrored(at, n);
    }
    return taken(c->m, x, axis, many, index);
}

void onnx_pad(OnnxCall *c)
{
    Value *x = c->in[0];
    int rank = rank_of(x), n, n_axes = -1;
    int64_t pads[2 * RANK_MAX], axes[RANK_MAX], all[2 * RANK_MAX] = {0};
    const char *mode = word_of(c, "mode", "constant");
    double value = 0;
    if (c->version < 11) {
        n = ints_of(c, c->version < 2 ? "paddings" : "pads", pads, COUNT(pads));
        value = float_of(c, "value", 0);
    } else {
        n = known_ints(c, input_of(c, 1), "the pads", pads, COUNT(pads));
        if (input_of(c, 2) != NULL && !known_number(c, c->in[2], "the number to pad with", &value))
            return;
        if (input_of(c, 3) != NULL)
            n_axes = known_ints(c, c->in[3], "the axes", axes, RANK_MAX);
    }
    if (c->m->failed)
        return;
    if (n != 2 * (n_axes >= 0 ? n_axes : rank)) {
        refuse_node(c, "it has %d pads for %d axes", n, n_axes >= 0 ? n_axes : rank);
        return;
    }
    for (int i = 0; i < n / 2; i++) {
        int64_t axis = axis_of(c, n_axes >= 0 ? axes[i] : i, rank);
        all[axis] = pads[i];
        all[rank + axis] = pads[n / 2 + i];
    }
    if (c->m->failed)
        return;
    bool is_constant = strcmp(mode, "constant") == 0, known = is_constant || strcmp(mode, "reflect") == 0 || strcmp(mode, "edge") == 0 || strcmp(mode, "wrap") == 0;
    if (!known) {
        refuse_node(c, "mode %s is not known", mode);
        return;
    }
    for (int i = 0; i < rank && x != NULL; i++) {       // negative: cut off
        int64_t before = all[i] < 0 ? -all[i] : 0, after = all[rank + i] < 0 ? -all[rank + i] : 0, size;
        if (before + after > 0 && !size_known(dim_of(x, i), &size)) {
            refuse_node(c, "a negative pad of an axis whose size is known only when running is not available in this version");
            return;
        }
        if (before + after > 0)
            x = before + after <= size ? sliced(c->m, x, i, whole(c->m, before), whole(c->m, size - before - after), 1) : NULL;
        if (x == NULL) {
            refuse_node(c, "more is cut off than there is");
            return;
        }
        all[i] = all[i] < 0 ? 0 : all[i];
        all[rank + i] = all[rank + i] < 0 ? 0 : all[rank + i];
        if (!is_constant)
            x = pad_axis(c, x, i, all[i], all[rank + i], mode);
    }
    if (is_constant && x != NULL && rank > 0) {
        OpCall call = call1(c->m, "pad", x);
        call_ints(&call, "pads", 2 * rank, all);
        call_float(&call, "value", value);
        x = emit(c->m, &call);
    }
    c->out[0] = x == c->in[0] ? op1(c->m, "identity", x) : x;
}

void onnx_depth_to_space(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t block = int_of(c, "blocksize", 0), channels;
    const char *mode = word_of(c, "mode", "DCR");
    bool first = strcmp(mode, "DCR") == 0;
    if (rank_of(x) != 4 || block < 1 || !size_known(dim_of(x, 1), &channels) || channels % (block * block) != 0 || (!first && strcmp(mode, "CRD") != 0)) {
        refuse_node(c, "%s cannot be turned so", type_text(c->m->cx, &x->type));
        return;
    }
    Size b = whole(c->m, block), rest = whole(c->m, channels / block / block), n = dim_of(x, 0), h = dim_of(x, 2), w = dim_of(x, 3);
    x = first ? reshape_to(c->m, x, 6, (Size[]){n, b, b, rest, h, w}) : reshape_to(c->m, x, 6, (Size[]){n, rest, b, b, h, w});
    x = first ? transposed(c->m, x, (int64_t[]){0, 3, 4, 1, 5, 2}) : transposed(c->m, x, (int64_t[]){0, 1, 4, 2, 5, 3});
    c->out[0] = reshape_to(c->m, x, 4, (Size[]){n, rest, size_times(c->m->cx, h, b), size_times(c->m->cx, w, b)});
}

void onnx_space_to_depth(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t block = int_of(c, "blocksize", 0);
    const char *mode = c->version >= 28 ? word_of(c, "mode", "DCR") : "DCR";
    bool first = strcmp(mode, "DCR") == 0;
    Size b = whole(c->m, block), h, w;
    if (rank_of(x) != 4 || block < 1 || (!first && strcmp(mode, "CRD") != 0) || (h = size_over(c->m->cx, dim_of(x, 2), b)) == NULL ||
        (w = size_over(c->m->cx, dim_of(x, 3), b)) == NULL) {
        refuse_node(c, "%s cannot be turned so", type_text(c->m->cx, &x->type));
        return;
    }
    Size n = dim_of(x, 0), channels = dim_of(x, 1);
    x = reshape_to(c->m, x, 6, (Size[]){n, channels, h, b, w, b});
    x = first ? transposed(c->m, x, (int64_t[]){0, 3, 5, 1, 2, 4}) : transposed(c->m, x, (int64_t[]){0, 1, 3, 5, 2, 4});
    c->out[0] = reshape_to(c->m, x, 4, (Size[]){n, size_times(c->m->cx, channels, whole(c->m, block * block)), h, w});
}
