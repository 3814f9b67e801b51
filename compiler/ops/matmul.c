// matmul.c: matrix products: matmul and dense. They stay single nodes down to the choice of kernels (gemm); the pull form
// here says what they are. Their gradients are matmuls with transposed operands, so no transposed copy is ever made.
#include "op.h"

// --- matmul -----------------------------------------------------------------------------------------------------------------------

#define MATMUL_ATTRS {.name = "transpose_a", .kind = ATTR_BOOL, .initial = "false", .brief = "the last two axes of a change places"}, \
                     {.name = "transpose_b", .kind = ATTR_BOOL, .initial = "false", .brief = "the last two axes of b change places"}

// One operand, seen as matrices: its rows and columns after transposing, and its axes before them.
typedef struct Matrix { bool vector, transposed; Size rows, columns; Shape batch; } Matrix;

static Matrix matrix_of(Context *cx, const Value *v, bool transposed, bool left)
{
    const Shape *s = &v->type.shape;
    Size one = size_const(cx, 1);
    if (s->rank == 1)
        return (Matrix){.vector = true, .rows = left ? one : s->dim[0], .columns = left ? s->dim[0] : one};
    Matrix m = {.transposed = transposed, .rows = s->dim[s->rank - (transposed ? 1 : 2)], .columns = s->dim[s->rank - (transposed ? 2 : 1)]};
    m.batch.rank = s->rank - 2;
    for (int i = 0; i < m.batch.rank; i++)
        m.batch.dim[i] = s->dim[i];
    return m;
}

static bool matmul_shape(OpCall *call)
{
    Context *cx = call->cx;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_rank(call, 1, 1, RANK_MAX))
        return false;
    const Type *ta = &call->in[0]->type, *tb = &call->in[1]->type;
    Matrix a = matrix_of(cx, call->in[0], call_attr(call, "transpose_a")->i, true), b = matrix_of(cx, call->in[1], call_attr(call, "transpose_b")->i, false);
    Type type = {.dtype = ta->dtype};
    if (ta->dtype != tb->dtype || !size_equal(a.columns, b.rows) || !shape_broadcast(cx, &a.batch, &b.batch, &type.shape))
        return op_error(call, MESSAGE_E0315, "matmul", type_text(cx, ta), type_text(cx, tb));
    if (!a.vector)
        type.shape.dim[type.shape.rank++] = a.rows;
    if (!b.vector)
        type.shape.dim[type.shape.rank++] = b.columns;
    return op_one(call, type);
}

// The indices into an operand of the element (row, column) of the batch that axes 0 … of the result name.
static Expr *matrix_load(Context *cx, Value *v, const Matrix *m, int batch_rank, Expr *row, Expr *column, Expr *along)
{
    Expr *index[RANK_MAX];
    if (m->vector)
        return e_load(cx, v, &along);
    for (int i = 0; i < m->batch.rank; i++) {
        int64_t n;
        bool one = size_known(m->batch.dim[i], &n) && n == 1;
        index[i] = one ? e_whole(cx, 0) : e_axis(cx, batch_rank - m->batch.rank + i);
    }
    index[m->batch.rank] = m->transposed ? column : row;
    index[m->batch.rank + 1] = m->transposed ? row : column;
    return e_load(cx, v, index);
}

static void matmul_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Matrix a = matrix_of(cx, node->in[0], node_flag(node, "transpose_a"), true), b = matrix_of(cx, node->in[1], node_flag(node, "transpose_b"), false);
    compute_over(out, &node->out[0]->type.shape);
    int batch = out->rank - !a.vector - !b.vector;
    Expr *k = e_axis(cx, compute_reduce(out, REDUCE_SUM, a.columns));
    Expr *x = matrix_load(cx, node->in[0], &a, batch, e_axis(cx, batch), k, k);
    Expr *y = matrix_load(cx, node->in[1], &b, batch, k, e_axis(cx, out->rank - 1), k);
    out->body = e_prim(cx, PRIM_mul, x, y);
}

static Value *build_matmul(Builder *b, Value *x, Value *y, bool transpose_x, bool transpose_y)
{
    OpCall call = call_new(b, "matmul", 2, (Value *[]){x, y});
    call_bool(&call, "transpose_a", transpose_x);
    call_bool(&call, "transpose_b", transpose_y);
    return op_build(b, &call);
}

// (rows, columns), all axes before the last joined; of a vector one row.
static Value *as_rows(Builder *b, Value *x)
{
    const Shape *s = &x->type.shape;
    Shape shape = {.rank = 2, .dim = {size_const(b->cx, 1), s->dim[s->rank - 1]}};
    for (int i = 0; i < s->rank - 1; i++)
        shape.dim[0] = size_times(b->cx, shape.dim[0], s->dim[i]);
    return shape_equal(&shape, s) ? x : build_reshape(b, x, &shape);
}

// A vector as a matrix of one row or one column.
static Value *as_matrix(Builder *b, Value *x, bool row)
{
    Size one = size_const(b->cx, 1), n = x->type.shape.dim[0];
    return x->type.shape.rank > 1 ? x : build_reshape(b, x, &(Shape){.rank = 2, .dim = {row ? one : n, row ? n : one}});
}

static Value *as_product(Builder *b, const Node *node, Value *dy)
{
    Shape shape = dy->type.shape;
    if (node->in[0]->type.shape.rank == 1) {            // a row of one: before the last axis, or last
        int at = shape.rank - (node->in[1]->type.shape.rank > 1);
        for (int i = shape.rank++; i > at; i--)
            shape.dim[i] = shape.dim[i - 1];
        shape.dim[at] = size_const(b->cx, 1);
    }
    if (node->in[1]->type.shape.rank == 1)
        shape.dim[shape.rank++] = size_const(b->cx, 1);
    return shape_equal(&shape, &dy->type.shape) ? dy : build_reshape(b, dy, &shape);
}

// c = a b: da = dc b', db = a' dc; of a transposed operand the transpose of that.
static void matmul_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    bool ta = node_flag(node, "transpose_a") && node->in[0]->type.shape.rank > 1, tb = node_flag(node, "transpose_b") && node->in[1]->type.shape.rank > 1;
    Value *x = as_matrix(b, node->in[0], true), *y = as_matrix(b, node->in[1], false), *dc = as_product(b, node, dy[0]);
    Value *da = ta ? build_matmul(b, y, dc, tb, true) : build_matmul(b, dc, y, false, !tb), *db;
    if (y->type.shape.rank == 2 && x->type.shape.rank > 2 && !ta) {     // one matrix for the whole batch
        Value *rows = as_rows(b, x), *product = as_rows(b, dc);
        db = tb ? build_matmul(b, product, rows, true, false) : build_matmul(b, rows, product, true, false);
    } else {
        db = tb ? build_matmul(b, dc, x, true, ta) : build_matmul(b, x, dc, !ta, false);
    }
    da = build_sum_to(b, da, &x->type.shape);
    db = build_sum_to(b, db, &y->type.shape);
    dx[0] = x == node->in[0] ? da : build_reshape(b, da, &node->in[0]->type.shape);
    dx[1] = y == node->in[1] ? db : build_reshape(b, db, &node->in[1]->type.shape);
}

static Size matmul_flops(Context *cx, const Node *node)
{
    Matrix a = matrix_of(cx, node->in[0], node_flag(node, "transpose_a"), true);
    return size_times(cx, flops_of_count(cx, &node->out[0]->type.shape, 2), a.columns);
}

const OpDef op_matmul = {
    .name = "matmul", .brief = "the matrix product, over any axes before the last two", .inputs = "a: float, b: float", .outputs = "c", .example = "c = matmul(a, b, transpose_b = true)",
    .doc = "c[…, i, j] = sum over k of a[…, i, k] b[…, k, j]. Axes before the last two broadcast. A vector on the left is one row, on the right one column, and that axis is dropped.",
    .attrs = {MATMUL_ATTRS}, .shape = matmul_shape, .compute = matmul_compute, .grad = matmul_grad, .flops = matmul_flops, .traits = OP_DATA, .along = "mixes", .precision = "f32", .quantize = "int8",
    .onnx = {{"MatMul", 1, 0}},
    .cases = CASES("a: f32[2,3]; b: f32[3,4]", "a: f32[3,2]; b: f32[3,4]; transpose_a = true", "a: f32[2,3]; b: f32[4,3]; transpose_b = true", "a: f32[3,2]; b: f32[4,3]; transpose_a = true; transpose_b = true",
                   "a: f32[N,2,3]; b: f32[3,4]", "a: f32[N,2,3]; b: f32[4,3]; transpose_b = true", "a: f32[2,1,2,3]; b: f32[N,3,2]", "a: f32[3]; b: f32[3]", "a: f32[3]; b: f32[N,3,2]", "a: f32[N,2,3]; b: f32[3]",
                   "a: f32[3,N,2]; b: f32[N,2]; transpose_a = true", "a: f32[2,0]; b: f32[0,3]", "a: f32[1,1]; b: f32[1,1]"),
};

// --- dense ------------------------------------------------------------------------------------------------------------------------

static bool in_out(const Attr *layout) { return strcmp(layout->word, "in_out") == 0; }

static bool dense_shape(OpCall *call)
{
    Context *cx = call->cx;
    Type type = call->in[0]->type;
    if (!op_rank(call, 0, 1, RANK_MAX))
        return false;
    Size in = type.shape.dim[type.shape.rank - 1], features = size_const(cx, call_attr(call, "features")->i);
    Size weight[] = {features, in}, turned[] = {in, features};
    if (!op_owned(call, "weight", type_of(type.dtype, 2, in_out(call_attr(call, "layout")) ? turned : weight)))
        return false;
    if (call_attr(call, "bias")->i && !op_owned(call, "bias", type_of(type.dtype, 1, &features)))
        return false;
    type.shape.dim[type.shape.rank - 1] = features;
    return op_one(call, type);
}

static Value *bias_of(const Node *node) { return node->n_in > 2 ? node->in[2] : NULL; }

// The bias is added once, where the sum begins.
static Expr *with_bias(Context *cx, Expr *term, Expr *first, Expr *bias)
{
    return e_prim(cx, PRIM_add, term, e_select(cx, first, bias, e_zero(cx, term->type)));
}

static void dense_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *x = node->in[0], *w = node->in[1], *bias = bias_of(node);
    bool turned = in_out(node_attr(node, "layout"));
    compute_over(out, &node->out[0]->type.shape);
    int last = out->rank - 1;
    Expr *feature = e_axis(cx, last), *k = e_axis(cx, compute_reduce(out, REDUCE_SUM, x->type.shape.dim[last])), *at[RANK_MAX];
    for (int i = 0; i < last; i++)
        at[i] = e_axis(cx, i);
    at[last] = k;
    Expr *weight = e_load(cx, w, turned ? (Expr *[]){k, feature} : (Expr *[]){feature, k});
    out->body = e_prim(cx, PRIM_mul, e_load(cx, x, at), weight);
    if (bias != NULL)
        out->body = with_bias(cx, out->body, e_prim(cx, PRIM_eq, k, e_whole(cx, 0)), e_load(cx, bias, &feature));
}

static void dense_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    bool turned = in_out(node_attr(node, "layout"));
    Value *x = as_rows(b, node->in[0]), *d = as_rows(b, dy[0]), *back = build_matmul(b, d, node->in[1], false, turned);
    dx[0] = x == node->in[0] ? back : build_reshape(b, back, &node->in[0]->type.shape);
    dx[1] = turned ? build_matmul(b, x, d, true, false) : build_matmul(b, d, x, true, false);
    if (bias_of(node) != NULL)
        dx[2] = build_reduce(b, "sum", d, (bool[RANK_MAX]){true}, false);
}

static Size dense_flops(Context *cx, const Node *node)
{
    const Shape *x = &node->in[0]->type.shape;
    return size_times(cx, flops_of_count(cx, &node->out[0]->type.shape, 2), x->dim[x->rank - 1]);
}

const OpDef op_dense = {
    .name = "dense", .brief = "a fully connected layer: x w' + bias, along the last axis", .inputs = "x: float, weight: like x, bias: like x?", .outputs = "y", .example = "y = dense(x, 120) @fc1",
    .doc = "y[…, j] = bias[j] + sum over k of x[…, k] weight[j, k]. `weight = @other.weight` shares one. Layout in_out keeps the weight as (in, out).",
    .attrs = {{.name = "features", .kind = ATTR_INT, .least = 1, .most = 2147483647, .positional = true, .brief = "numbers in the result"},
              {.name = "bias", .kind = ATTR_BOOL, .initial = "true", .brief = "whether there is one"},
              {.name = "layout", .kind = ATTR_WORD, .initial = "out_in", .words = "out_in in_out", .brief = "how the weight lies"}},
    .owned = {{"weight", ROLE_WEIGHT, "kaiming_uniform(a = 2.2360679774997896)", NULL}, {"bias", ROLE_BIAS, "uniform_fan", "bias"}},
    .shape = dense_shape, .compute = dense_compute, .grad = dense_grad, .flops = dense_flops, .along = "each", .precision = "f32", .quantize = "int8", .onnx = {{"Gemm", 7, 0}},
    .cases = CASES("x: f32[N,3]; weight: f32[2,3]; bias: f32[2]; features = 2", "x: f32[2,N,3]; weight: f32[4,3]; features = 4; bias = false", "x: f32[3]; weight: f32[2,3]; bias: f32[2]; features = 2",
                   "x: f32[2,3]; weight: f32[3,4]; bias: f32[4]; features = 4; layout = in_out", "x: f32[1,1]; weight: f32[1,1]; bias: f32[1]; features = 1"),
};
