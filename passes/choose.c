// choose.c: which node is a call of a kernel file (kernels/kernels.def), and with which arguments. A row each; the first
// that fits is taken, and a node that none fits becomes loops. The kernels are for f32.
#include "choose.h"

#include <math.h>
#include <string.h>

enum { GEMM_PARTS = 8, GEMM_PANEL = 32, GEMM_BLOCK = 256 };

static void add_arg(Kernel *kernel, KernelArg arg)
{
    CHECK(kernel->n_args < COUNT(kernel->arg));
    kernel->arg[kernel->n_args++] = arg;
}

void add_size(Kernel *kernel, Size size) { add_arg(kernel, (KernelArg){.kind = ARG_SIZE, .size = size}); }
void add_number(Kernel *kernel, int64_t n) { add_arg(kernel, (KernelArg){.kind = ARG_NUMBER, .number = n}); }
void add_value(Kernel *kernel, Value *value)
{
    add_arg(kernel, (KernelArg){.kind = value != NULL ? ARG_VALUE : ARG_NULL, .value = value});
}

bool all_f32(const Node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] != NULL && node->in[i]->type.dtype != TYPE_f32)
            return false;
    return node->out[0]->type.dtype == TYPE_f32;
}

Value *input(const Node *node, const char *name)
{
    int i = op_input_index(node->op, name);
    return i >= 0 && i < node->n_in ? node->in[i] : NULL;
}

void add_window(Kernel *kernel, const Window *w)
{
    for (int i = 0; i < 2; i++)
        add_number(kernel, w->stride[i]);
    for (int i = 0; i < 2; i++)
        add_number(kernel, w->before[i]);
    for (int i = 0; i < 2; i++)
        add_number(kernel, w->dilation[i]);
}

// --- Matrix products --------------------------------------------------------------------------------------------------------

// C (m, n) = A B, with A (m, k) or its transpose, B (k, n) or its transpose.
typedef struct Gemm { Size m, n, k; bool turn_a, turn_b; Value *a, *b, *c, *bias; Size repeat; } Gemm;

// Good numbers are n / 32 columns, or m / 8 rows where there are few columns. With few rows and B transposed, a part turns
// its rows of A (mlk_gemm_turned), which pays for many columns only.
static int gemm_parts(const Gemm *g)
{
    double m = size_largest(g->m), n = size_largest(g->n), k = size_largest(g->k);
    double most = n / 32 > m / 8 ? n / 32 : m / 8;
    int parts = parts_for(m * n * k / 4);       // a multiply-add takes a fraction of what an element of a formula does
    parts = parts < GEMM_PARTS ? parts : GEMM_PARTS;
    if (g->turn_b && !g->turn_a && m < n)
        most = ceil(m / GEMM_PANEL) * ceil(n / GEMM_BLOCK);
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

static bool dense_fits(Work *work, const Node *node)
{
    (void)work;
    return all_f32(node) && node->in[0]->type.shape.rank >= 1 && node->in[1]->type.shape.rank == 2;
}

// x (…, in), weight (out, in), or (in, out) by the layout
static void bind_dense(Work *work, const Node *node, Kernel *kernel)
{
    const Shape *x = &node->in[0]->type.shape, *y = &node->out[0]->type.shape;
    Gemm g = {.m = leading(work->cx, x, 1), .n = y->dim[y->rank - 1], .k = x->dim[x->rank - 1], .a = node->in[0], .b = node->in[1],
              .c = node->out[0], .bias = node->n_in > 2 ? node->in[2] : NULL};
    g.turn_b = strcmp(node_attr(node, "layout")->word, "out_in") == 0;
    bind_gemm(work->cx, &g, kernel);
}

static bool same_leading(const Shape *a, const Shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank - 2; i++)
        same = size_equal(a->dim[i], b->dim[i]);
    return same;
}

// Both are matrices, or stacks of the same height, or b is one matrix for all.
static bool matmul_fits(Work *work, const Node *node)
{
    (void)work;
    const Shape *a = &node->in[0]->type.shape, *b = &node->in[1]->type.shape, *c = &node->out[0]->type.shape;
    return all_f32(node) && a->rank >= 2 && b->rank >= 2 && same_leading(a, c) && (b->rank == 2 || same_leading(b, c));
}

static void bind_matmul(Work *work, const Node *node, Kernel *kernel)
{
    const Shape *a = &node->in[0]->type.shape, *b = &node->in[1]->type.shape, *c = &node->out[0]->type.shape;
    Gemm g = {.turn_a = node_flag(node, "transpose_a"), .turn_b = node_flag(node, "transpose_b"), .a = node->in[0],
              .b = node->in[1], .c = node->out[0]};
    g.m = c->dim[c->rank - 2];
    g.n = c->dim[c->rank - 1];
    g.k = a->dim[g.turn_a ? a->rank - 2 : a->rank - 1];
    if (c->rank > 2 && b->rank == 2 && !g.turn_a)
        g.m = leading(work->cx, c, 1);                // one tall matrix
    else if (c->rank > 2)
        g.repeat = leading(work->cx, c, 2);
    bind_gemm(work->cx, &g, kernel);
}

// --- Pooling -----------------------------------------------------------------------------------------------------------------

static Window pool_window(Context *cx, const Node *node, const Value *x)
{
    Window w;
    CHECK(window_of(cx, node->op, node->attr, &x->type.shape, NULL, NULL, &w));
    return w;
}

static bool is_image(const Value *value) { return value->type.shape.rank == 4; }

// The places of maxima are bytes.
static bool maxpool_fits(Work *work, const Node *node)
{
    Window w;
    if (!is_image(node->out[0]) || node->out[0]->type.dtype != TYPE_f32)
        return false;
    const Value *places = node->n_out > 1 ? node->out[1] : input(node, "place");
    w = pool_window(work->cx, node, input(node, "x") != NULL ? input(node, "x") : node->out[0]);
    return places != NULL ? places->type.dtype == TYPE_u8 : w.kernel[0] * w.kernel[1] <= 255;
}

// The kernel takes the padding behind to be as wide as before.
static bool avgpool_fits(Work *work, const Node *node)
{
    if (!is_image(node->out[0]) || !all_f32(node))
        return false;
    Window w = pool_window(work->cx, node, input(node, "x") != NULL ? input(node, "x") : node->out[0]);
    return w.before[0] == w.after[0] && w.before[1] == w.after[1];
}

// The fields of MlkPool2d.
static void add_pool_sizes(Work *work, const Node *node, const Value *x, const Value *y, Kernel *kernel)
{
    const Shape *xs = &x->type.shape, *ys = &y->type.shape;
    Window w = pool_window(work->cx, node, x);
    add_size(kernel, size_times(work->cx, xs->dim[0], xs->dim[1]));
    for (int i = 2; i < 4; i++)
        add_size(kernel, xs->dim[i]);
    for (int i = 2; i < 4; i++)
        add_size(kernel, ys->dim[i]);
    for (int i = 0; i < 2; i++)
        add_number(kernel, w.kernel[i]);
    add_window(kernel, &w);
    double planes = size_largest(xs->dim[0]) * size_largest(xs->dim[1]);
    int parts = parts_for(planes * size_largest(xs->dim[2]) * size_largest(xs->dim[3]) * 4);
    kernel->parts = parts < planes ? parts : planes < 1 ? 1 : (int)planes;
}

// Where nothing asks for the places, they go to memory that lives for this step.
static void bind_maxpool(Work *work, const Node *node, Kernel *kernel)
{
    Value *x = input(node, "x"), *y = node->out[0], *places = node->n_out > 1 ? node->out[1] : NULL;
    if (places == NULL)
        places = graph_scratch(work->graph, "places", (Type){TYPE_u8, y->type.shape});
    kernel->file = "mlk_maxpool2d";
    add_pool_sizes(work, node, x, y, kernel);
    add_value(kernel, x);
    add_value(kernel, y);
    add_value(kernel, places);
    LIST_ADD(work->cx->arena, kernel->writes, places);
}

static void bind_maxpool_grad(Work *work, const Node *node, Kernel *kernel)
{
    Value *dy = input(node, "dy"), *dx = node->out[0];
    kernel->file = "mlk_maxpool2d_grad";
    add_pool_sizes(work, node, dx, dy, kernel);
    add_value(kernel, dy);
    add_value(kernel, input(node, "place"));
    add_value(kernel, dx);
}

static void bind_avgpool(Work *work, const Node *node, Kernel *kernel)
{
    Value *x = input(node, "x"), *y = node->out[0];
    kernel->file = "mlk_avgpool2d";
    add_pool_sizes(work, node, x, y, kernel);
    add_value(kernel, x);
    add_value(kernel, y);
    add_number(kernel, node_flag(node, "count_pad"));
}

static void bind_avgpool_grad(Work *work, const Node *node, Kernel *kernel)
{
    Value *dy = input(node, "dy"), *dx = node->out[0];
    kernel->file = "mlk_avgpool2d_grad";
    add_pool_sizes(work, node, dx, dy, kernel);
    add_value(kernel, dy);
    add_value(kernel, dx);
    add_number(kernel, node_flag(node, "count_pad"));
}

// --- Recurrent layers ---------------------------------------------------------------------------------------------------------

enum { SCAN_ROWS = 8, SCAN_PAD = 16 };

// Lengths of samples are left to loops.
static bool lstm_fits(Work *work, const Node *node)
{
    (void)work;
    return input(node, "lengths") == NULL && all_f32(node);
}

// The fields of MlkScan, parts, and what both kernels keep: weights in panels of 32, and rows of `k` floats of each sample.
static void bind_scan(const Node *node, const Value *gates, int64_t k, int64_t columns, Kernel *kernel)
{
    const Shape *shape = &gates->type.shape;
    int64_t units = size_value(shape->dim[2]) / 4;
    double n = size_largest(shape->dim[0]), steps = size_largest(shape->dim[1]);
    for (int i = 0; i < 2; i++)
        add_size(kernel, shape->dim[i]);
    add_number(kernel, units);
    add_number(kernel, node_flag(node, "reverse"));
    int parts = parts_for(n * steps * (double)(k * columns)), most = (int)ceil(n / SCAN_ROWS);
    kernel->parts = parts < most ? parts : most < 1 ? 1 : most;
    kernel->scratch = 4 * ((columns + GEMM_PANEL - 1) / GEMM_PANEL * GEMM_PANEL * k + (int64_t)n * (k + SCAN_PAD));
}

static void bind_lstm(Work *work, const Node *node, Kernel *kernel)
{
    (void)work;
    Value *x = input(node, "x");
    int64_t units = size_value(x->type.shape.dim[2]) / 4;
    kernel->file = "mlk_lstm_scan";
    bind_scan(node, x, units, 4 * units, kernel);
    static const char *const names[] = {"x", "weight", "start", "cell"};
    for (int i = 0; i < COUNT(names); i++)
        add_value(kernel, input(node, names[i]));
    for (int i = 0; i < 3; i++)
        add_value(kernel, node->out[i]);
}

static void bind_lstm_grad(Work *work, const Node *node, Kernel *kernel)
{
    (void)work;
    Value *gates = input(node, "gates");
    int64_t units = size_value(gates->type.shape.dim[2]) / 4;
    kernel->file = "mlk_lstm_scan_grad";
    bind_scan(node, gates, 4 * units, units, kernel);
    static const char *const names[] = {"turned", "gates", "c", "cell", "dy", "dcell"};
    for (int i = 0; i < COUNT(names); i++)
        add_value(kernel, input(node, names[i]));
    for (int i = 0; i < 3; i++)
        add_value(kernel, node->out[i]);
}

// --- The table --------------------------------------------------------------------------------------------------------------

static const Choice choices[] = {
    {"dense",  dense_fits,  bind_dense,  NULL},
    {"matmul", matmul_fits, bind_matmul, NULL},
    {"conv", winograd_fits, bind_winograd, NULL},
    {"conv_grad_input", winograd_fits, bind_winograd_grad_input, NULL},
    {"conv_grad_weight", winograd_fits, bind_winograd_grad_weight, NULL},
    {"conv", conv_fits, bind_conv, NULL},
    {"conv_grad_input", conv_fits, bind_conv_grad_input, NULL},
    {"conv_grad_weight", conv_fits, bind_conv_grad_weight, NULL},
    {"lstm_scan", lstm_fits, bind_lstm, NULL},
    {"lstm_scan_grad", lstm_fits, bind_lstm_grad, NULL},
    {"maxpool", maxpool_fits, bind_maxpool, NULL},
    {"maxpool_places", maxpool_fits, bind_maxpool, NULL},
    {"maxpool_grad", maxpool_fits, bind_maxpool_grad, NULL},
    {"avgpool", avgpool_fits, bind_avgpool, NULL},
    {"avgpool_grad", avgpool_fits, bind_avgpool_grad, NULL},
};

const Choice *choice_of(Work *work, const Node *node)
{
    for (int i = 0; i < COUNT(choices); i++)
        if (strcmp(choices[i].op, node->op->name) == 0 && choices[i].fits(work, node))
            return &choices[i];
    return NULL;
}
