// choose.c: which node is a call of a kernel file (kernels/kernels.def), and with which arguments. A row each; the first
// that fits is taken, and a node that none fits becomes loops. The kernels are for f32.
#include "passes.h"

#include <string.h>

#include "../compiler/ops/op.h"

enum { GEMM_SCRATCH = 8192, CONV_BORDER = 128, PARTS_MAX = 16 };

static void add_arg(Kernel *kernel, KernelArg arg)
{
    CHECK(kernel->n_args < COUNT(kernel->arg));
    kernel->arg[kernel->n_args++] = arg;
}

static void add_size(Kernel *kernel, Size size) { add_arg(kernel, (KernelArg){.kind = ARG_SIZE, .size = size}); }
static void add_number(Kernel *kernel, int64_t n) { add_arg(kernel, (KernelArg){.kind = ARG_NUMBER, .number = n}); }
static void add_value(Kernel *kernel, Value *value)
{
    add_arg(kernel, (KernelArg){.kind = value != NULL ? ARG_VALUE : ARG_NULL, .value = value});
}

static bool all_f32(const Node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] != NULL && node->in[i]->type.dtype != TYPE_f32)
            return false;
    return node->out[0]->type.dtype == TYPE_f32;
}

// --- Matrix products --------------------------------------------------------------------------------------------------------

// C (m, n) = A B, with A (m, k) or its transpose, B (k, n) or its transpose.
typedef struct Gemm { Size m, n, k; bool turn_a, turn_b; Value *a, *b, *c, *bias; Size repeat; } Gemm;

// Good numbers are n / 32 columns, or m / 8 rows where there are few columns.
static int gemm_parts(const Gemm *g)
{
    double m = size_largest(g->m), n = size_largest(g->n), k = size_largest(g->k);
    double most = n / 32 > m / 8 ? n / 32 : m / 8;
    int parts = parts_for(m * n * k);
    return parts < most ? parts : most < 1 ? 1 : (int)most;
}

static void bind_gemm(Context *cx, const Gemm *g, Kernel *kernel)
{
    Size one = size_const(cx, 1);
    kernel->file = g->turn_b ? "mlk_gemm_nt" : "mlk_gemm";
    add_size(kernel, g->m);
    add_size(kernel, g->n);
    add_size(kernel, g->k);
    add_value(kernel, g->a);
    add_size(kernel, g->turn_a ? one : g->k);
    add_size(kernel, g->turn_a ? g->m : one);
    add_value(kernel, g->b);
    add_size(kernel, g->turn_b ? g->k : g->n);
    add_value(kernel, g->c);
    add_size(kernel, g->n);
    add_value(kernel, g->bias);
    add_number(kernel, 0);
    kernel->repeat = g->repeat;
    kernel->parts = gemm_parts(g);
    kernel->scratch = GEMM_SCRATCH * 4;
}

static Size leading(Context *cx, const Shape *shape, int last)
{
    Size product = size_const(cx, 1);
    for (int i = 0; i < shape->rank - last; i++)
        product = size_times(cx, product, shape->dim[i]);
    return product;
}

static bool dense_fits(Context *cx, const Node *node)
{
    (void)cx;
    return all_f32(node) && node->in[0]->type.shape.rank >= 1 && node->in[1]->type.shape.rank == 2;
}

// x (…, in), weight (out, in)
static void bind_dense(Context *cx, const Node *node, Kernel *kernel)
{
    const Shape *x = &node->in[0]->type.shape, *w = &node->in[1]->type.shape;
    Gemm g = {.m = leading(cx, x, 1), .n = w->dim[0], .k = w->dim[1], .turn_b = true, .a = node->in[0], .b = node->in[1],
              .c = node->out[0], .bias = node->n_in > 2 ? node->in[2] : NULL};
    bind_gemm(cx, &g, kernel);
}

static bool same_leading(const Shape *a, const Shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank - 2; i++)
        same = size_equal(a->dim[i], b->dim[i]);
    return same;
}

// Both are matrices, or stacks of the same height, or b is one matrix for all.
static bool matmul_fits(Context *cx, const Node *node)
{
    (void)cx;
    const Shape *a = &node->in[0]->type.shape, *b = &node->in[1]->type.shape, *c = &node->out[0]->type.shape;
    return all_f32(node) && a->rank >= 2 && b->rank >= 2 && same_leading(a, c) && (b->rank == 2 || same_leading(b, c));
}

static void bind_matmul(Context *cx, const Node *node, Kernel *kernel)
{
    const Shape *a = &node->in[0]->type.shape, *b = &node->in[1]->type.shape, *c = &node->out[0]->type.shape;
    Gemm g = {.turn_a = node_flag(node, "transpose_a"), .turn_b = node_flag(node, "transpose_b"), .a = node->in[0],
              .b = node->in[1], .c = node->out[0]};
    g.m = c->dim[c->rank - 2];
    g.n = c->dim[c->rank - 1];
    g.k = a->dim[g.turn_a ? a->rank - 2 : a->rank - 1];
    if (c->rank > 2 && b->rank == 2 && !g.turn_a)
        g.m = leading(cx, c, 1);                // one tall matrix
    else if (c->rank > 2)
        g.repeat = leading(cx, c, 2);
    bind_gemm(cx, &g, kernel);
}
