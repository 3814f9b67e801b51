// build.c: what the functions of the operators are written with. Each takes NULL for a value that could not be made, and gives
// NULL then; so a function may go on after a failure, and is stopped by its caller.
#include "import.h"

void refuse_node(OnnxCall *c, const char *format, ...)
{
    va_list args;
    if (c->m->failed)
        return;
    va_start(args, format);
    diag_report_file(c->m->cx->diag, c->m->path, MESSAGE_E0803, arena_printf(c->m->cx->arena, "node %s", c->m->node), arena_vprintf(c->m->cx->arena, format, args));
    va_end(args);
    c->m->failed = true;
}

// --- Attributes --------------------------------------------------------------------------------------------------------

const Onnx__Attribute *attribute(OnnxCall *c, const char *name)
{
    for (size_t i = 0; i < c->p->n_attribute; i++)
        if (strcmp(c->p->attribute[i]->name, name) == 0) {
            c->read[i] = true;
            return c->p->attribute[i];
        }
    return NULL;
}

// Attribute `name`, if it is given and of that kind (onnx.proto says which numbers these are; 0: an old file does not say).
static const Onnx__Attribute *of_kind(OnnxCall *c, const char *name, int kind, bool is_there)
{
    const Onnx__Attribute *a = attribute(c, name);
    if (a == NULL)
        return NULL;
    if ((a->type == 0 && is_there) || a->type == kind)
        return a;
    refuse_node(c, "the attribute %s is of another kind than it should be", name);
    return NULL;
}

int64_t int_of(OnnxCall *c, const char *name, int64_t otherwise)
{
    const Onnx__Attribute *a = of_kind(c, name, 2, true);
    return a != NULL ? a->i : otherwise;
}

double float_of(OnnxCall *c, const char *name, double otherwise)
{
    const Onnx__Attribute *a = of_kind(c, name, 1, true);
    return a != NULL ? (double)a->f : otherwise;
}

const char *word_of(OnnxCall *c, const char *name, const char *otherwise)
{
    const Onnx__Attribute *a = of_kind(c, name, 3, true);
    return a != NULL ? arena_string(c->m->cx->arena, (const char *)a->s.data, a->s.len) : otherwise;
}

int ints_of(OnnxCall *c, const char *name, int64_t *to, int room)
{
    const Onnx__Attribute *a = of_kind(c, name, 7, true);
    if (a == NULL)
        return -1;
    if (a->n_ints > (size_t)room) {
        refuse_node(c, "the attribute %s has %zu numbers; %d are the most", name, a->n_ints, room);
        return -1;
    }
    for (size_t i = 0; i < a->n_ints; i++)
        to[i] = a->ints[i];
    return (int)a->n_ints;
}

Value *input_of(OnnxCall *c, int i) { return i < c->n_in ? c->in[i] : NULL; }

DType dtype_of(OnnxCall *c, int number)
{
    DType type = onnx_type(number);
    if (type == TYPE_NONE)
        refuse_node(c, "elements of type %s are not available in this version", onnx_type_name(number));
    return type;
}

int64_t axis_of(OnnxCall *c, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank) {
        refuse_node(c, "axis %lld is outside of %d axes", (long long)axis, rank);
        return 0;
    }
    return axis < 0 ? axis + rank : axis;
}

// --- Calls -------------------------------------------------------------------------------------------------------------

bool emit_all(Import *m, OpCall *call, Value **out)
{
    const char *names[INPUTS_MAX];
    bool optional[INPUTS_MAX], variadic;
    int count = op_inputs(call->op, names, optional, &variadic);
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] == NULL && (variadic || i >= count || !optional[i]))
            m->failed = true;
    if (m->failed)
        return false;
    if (!graph_call(m->g, call, m->b.scope, out)) {
        m->failed = true;
        return false;
    }
    return true;
}

Value *emit(Import *m, OpCall *call)
{
    Value *out[OUTPUTS_MAX];
    return emit_all(m, call, out) ? out[0] : NULL;
}

OpCall call1(Import *m, const char *op, Value *x)           { return call_new(&m->b, op, 1, (Value *[]){x}); }
OpCall call2(Import *m, const char *op, Value *x, Value *y) { return call_new(&m->b, op, 2, (Value *[]){x, y}); }

static Value *op_of(Import *m, const char *op, int n, Value *const *in)
{
    OpCall call = call_new(&m->b, op, n, in);
    return emit(m, &call);
}

Value *op1(Import *m, const char *op, Value *x)                     { return op_of(m, op, 1, (Value *[]){x}); }
Value *op2(Import *m, const char *op, Value *x, Value *y)           { return op_of(m, op, 2, (Value *[]){x, y}); }
Value *op3(Import *m, const char *op, Value *x, Value *y, Value *z) { return op_of(m, op, 3, (Value *[]){x, y, z}); }

Value *formula(Import *m, const char *text, int n, Value *const *in)
{
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    Expr *arg[COUNT(names)];
    for (int i = 0; i < n; i++) {
        if (in[i] == NULL)
            return NULL;
        arg[i] = expr_arg(m->cx, in[i]->type.dtype, i);
    }
    OpCall call = call_new(&m->b, "map", n, in);
    for (int i = 0; i < ATTRS_MAX && call.op->attrs[i].name != NULL; i++)
        if (strcmp(call.op->attrs[i].name, "formula") == 0)
            call.attr[i] = (Attr){.kind = ATTR_FORMULA, .formula = expr_parse(m->cx, text, names, arg, n)};
    return emit(m, &call);
}

Value *constant(Import *m, const Tensor *t)
{
    Type type = {.dtype = t->dtype, .shape = {.rank = t->rank}};
    for (int i = 0; i < t->rank; i++)
        type.shape.dim[i] = size_const(m->cx, t->dim[i]);
    Value *value = graph_const(m->g, type, t->data);
    pointer_map_set(m->known, value, (void *)(uintptr_t)t);
    return value;
}

Value *number(Import *m, DType type, double x)
{
    Tensor *t = tensor_new(m->cx->arena, type, 0, NULL);
    tensor_set(t, 0, x);
    return constant(m, t);
}

Value *numbers(Import *m, DType type, int n, const int64_t *x)
{
    Tensor *t = tensor_new(m->cx->arena, type, 1, (int64_t[]){n});
    for (int i = 0; i < n; i++)
        tensor_set_whole(t, i, x[i]);
    return constant(m, t);
}

Value *cast_to(Import *m, Value *x, DType type)
{
    if (x == NULL || x->type.dtype == type)
        return x;
    OpCall call = call1(m, "cast", x);
    call_type(&call, "type", type);
    return emit(m, &call);
}

Value *reshape_to(Import *m, Value *x, int rank, const Size *dims)
{
    Shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dim[i] = dims[i];
    if (x != NULL && shape_equal(&x->type.shape, &shape))
        return x;
    const Tensor *known = x != NULL && x->kind == VALUE_CONST ? pointer_map_get(m->known, x) : NULL;
    if (known != NULL) {                                // the same elements, as another constant
        Tensor *t = NEW(m->cx->arena, Tensor);
        int64_t count = 1;
        *t = (Tensor){.dtype = known->dtype, .rank = rank, .data = known->data};
        for (int i = 0; i < rank; i++)
            if (!size_known(dims[i], &t->dim[i]) || !size_mul(count, t->dim[i], &count))
                count = -1, i = rank;
        if (count == tensor_count(known))
            return constant(m, t);
    }
    OpCall call = call1(m, "reshape", x);
    call_sizes(&call, "shape", rank, dims);
    return emit(m, &call);
}

Value *broadcast_as(Import *m, Value *x, int rank, const Size *dims)
{
    Shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dim[i] = dims[i];
    if (x != NULL && shape_equal(&x->type.shape, &shape))
        return x;
    OpCall call = call1(m, "broadcast_to", x);
    call_sizes(&call, "shape", rank, dims);
    return emit(m, &call);
}

Value *transposed(Import *m, Value *x, const int64_t *perm)
{
    if (x == NULL)
        return NULL;
    bool same = true;
    for (int i = 0; i < rank_of(x); i++)
        same &= perm[i] == i;
    if (same)
        return x;
    OpCall call = call1(m, "transpose", x);
    call_ints(&call, "axes", rank_of(x), perm);
    return emit(m, &call);
}

Value *sliced(Import *m, Value *x, int axis, Size from, Size count, int64_t step)
{
    OpCall call = call1(m, "slice", x);
    call_int(&call, "axis", axis);
    call_sizes(&call, "from", 1, &from);
    call_sizes(&call, "count", 1, &count);
    call_int(&call, "step", step);
    return emit(m, &call);
}

Value *reduced(Import *m, const char *op, Value *x, int n, const int64_t *axes, bool keep)
{
    OpCall call = call1(m, op, x);
    call_ints(&call, "axis", n, axes);
    call_bool(&call, "keep", keep);
    return emit(m, &call);
}

Value *joined(Import *m, int n, Value *const *in, int axis)
{
    if (n == 1)
        return in[0];
    OpCall call = call_new(&m->b, "concat", n, in);
    call_int(&call, "axis", axis);
    return emit(m, &call);
}

int  rank_of(const Value *v)         { return v != NULL ? v->type.shape.rank : 0; }
Size dim_of(const Value *v, int i)   { return v->type.shape.dim[i]; }
Size whole(Import *m, int64_t n)     { return size_const(m->cx, n); }
bool is_number(const Value *v)       { return v != NULL && v->type.dtype != TYPE_bool; }
