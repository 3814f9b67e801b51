// choose.c: which node is a call of a kernel file (kernels/kernels.def), and with which arguments. A row each; the first
// that fits is taken, and a node that none fits becomes loops. The kernels are for f32.
#include "passes.h"

#include <string.h>

#include "../compiler/ops/op.h"

enum { GEMM_SCRATCH = 8192, CONV_MARGIN = 128, IMAGES_MAX = 16 };

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
static bool matmul_fits(Context *cx, const Node *node)
{
    (void)cx;
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

// --- Convolution, NCHW ------------------------------------------------------------------------------------------------------

static Value *input(const Node *node, const char *name)
{
    int i = op_input_index(node->op, name);
    return i >= 0 && i < node->n_in ? node->in[i] : NULL;
}

// x (n, c, h, w), weight (oc, c / groups, kh, kw), y (n, oc, oh, ow)
typedef struct Conv { Shape x, weight, y; Window window; int64_t groups; } Conv;

static Conv conv_of(Context *cx, const Node *node, const Shape *x, const Shape *weight, const Shape *y)
{
    Conv c = {.x = *x, .weight = *weight, .y = *y, .groups = node_attr(node, "groups")->i};
    int64_t kernel[] = {size_value(weight->dim[2]), size_value(weight->dim[3])};
    CHECK(window_of(cx, node->op, node->attr, x, kernel, NULL, &c.window));
    return c;
}

static bool conv_fits(Context *cx, const Node *node)
{
    (void)cx;
    for (int i = 0; i < node->n_in && i < 2; i++)
        if (node->in[i] == NULL || node->in[i]->type.shape.rank != 4)
            return false;
    return all_f32(node) && node->out[0]->type.shape.rank == 4;
}

static void add_window(Kernel *kernel, const Window *w)
{
    for (int i = 0; i < 2; i++)
        add_number(kernel, w->stride[i]);
    for (int i = 0; i < 2; i++)
        add_number(kernel, w->before[i]);
    for (int i = 0; i < 2; i++)
        add_number(kernel, w->dilation[i]);
}

// The fields of MlkConv2d.
static void add_conv_sizes(Kernel *kernel, const Conv *c)
{
    for (int i = 0; i < 4; i++)
        add_size(kernel, c->x.dim[i]);
    for (int i = 1; i < 4; i++)
        add_size(kernel, c->y.dim[i]);
    for (int i = 2; i < 4; i++)
        add_size(kernel, c->weight.dim[i]);
    add_window(kernel, &c->window);
    add_number(kernel, c->groups);
}

// The bounds of kernels.def, in floats.
static int64_t largest(Size size) { return (int64_t)size_largest(size); }

static int64_t conv_planes(const Conv *c)
{
    int64_t floats = largest(c->weight.dim[1]);
    for (int i = 0; i < 2; i++) {
        int64_t reach = (c->window.kernel[i] - 1) * c->window.dilation[i], stride = c->window.stride[i];
        floats *= (stride < reach + 1 ? stride : reach + 1) * (largest(c->y.dim[2 + i]) + reach / stride);
    }
    return CONV_MARGIN + floats;
}

static int64_t conv_taps(const Conv *c) { return largest(c->weight.dim[1]) * c->window.kernel[0] * c->window.kernel[1]; }

static int64_t forward_scratch(const Conv *c) { return conv_planes(c) + 2 * conv_taps(c); }

static int64_t input_scratch(const Conv *c)
{
    int64_t area = 1;
    for (int i = 0; i < 2; i++) {
        int64_t before = c->window.before[i], stride = c->window.stride[i], reach = (c->window.kernel[i] - 1) * c->window.dilation[i];
        area *= (largest(c->x.dim[2 + i]) - 1 + before) / stride - before / stride + 1 + reach / stride;
    }
    return largest(c->weight.dim[0]) / c->groups * (area + 2 * c->window.kernel[0] * c->window.kernel[1]) + CONV_MARGIN;
}

static int64_t weight_scratch(const Conv *c)
{
    return conv_planes(c) + 2 * conv_taps(c) + 32 * (conv_taps(c) + largest(c->y.dim[2]) * largest(c->y.dim[3]));
}

static double conv_work(const Conv *c)
{
    return size_largest(c->y.dim[0]) * size_largest(c->y.dim[1]) * size_largest(c->y.dim[2]) * size_largest(c->y.dim[3]) * (double)conv_taps(c);
}

static int image_parts(const Conv *c)
{
    int parts = parts_for(conv_work(c));
    double images = size_largest(c->x.dim[0]);
    return parts < images || images < 1 ? parts : images < IMAGES_MAX ? (int)images : IMAGES_MAX;
}

static void bind_conv(Work *work, const Node *node, Kernel *kernel)
{
    Value *x = input(node, "x"), *weight = input(node, "weight"), *y = node->out[0];
    Conv c = conv_of(work->cx, node, &x->type.shape, &weight->type.shape, &y->type.shape);
    kernel->file = "mlk_conv2d";
    add_conv_sizes(kernel, &c);
    add_value(kernel, x);
    add_value(kernel, weight);
    add_value(kernel, input(node, "bias"));
    add_value(kernel, y);
    kernel->parts = image_parts(&c);
    kernel->scratch = 4 * forward_scratch(&c);
}

static void bind_conv_grad_input(Work *work, const Node *node, Kernel *kernel)
{
    Value *dy = input(node, "dy"), *weight = input(node, "weight"), *dx = node->out[0];
    Conv c = conv_of(work->cx, node, &dx->type.shape, &weight->type.shape, &dy->type.shape);
    kernel->file = "mlk_conv2d_grad_input";
    add_conv_sizes(kernel, &c);
    add_value(kernel, dy);
    add_value(kernel, weight);
    add_value(kernel, dx);
    kernel->parts = image_parts(&c);
    kernel->scratch = 4 * input_scratch(&c);
}

// As mlk_conv2d_grad_weight_parts: blocks of output channels, then of input channels.
static int weight_parts(const Conv *c)
{
    int64_t channels = largest(c->weight.dim[1]), blocks = c->groups * ((largest(c->weight.dim[0]) / c->groups + 31) / 32);
    int64_t splits = conv_taps(c) / 128 < channels ? conv_taps(c) / 128 : channels;
    int64_t most = blocks * (splits > 1 ? splits : 1), parts = parts_for(conv_work(c));
    return (int)(parts < most ? parts : most);
}

static void bind_conv_grad_weight(Work *work, const Node *node, Kernel *kernel)
{
    Value *x = input(node, "x"), *dy = input(node, "dy"), *dw = node->out[0];
    Conv c = conv_of(work->cx, node, &x->type.shape, &dw->type.shape, &dy->type.shape);
    kernel->file = "mlk_conv2d_grad_weight";
    add_conv_sizes(kernel, &c);
    add_value(kernel, x);
    add_value(kernel, dy);
    add_value(kernel, dw);
    kernel->parts = weight_parts(&c);
    kernel->scratch = 4 * weight_scratch(&c);
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
static bool maxpool_fits(Context *cx, const Node *node)
{
    Window w;
    if (!is_image(node->out[0]) || node->out[0]->type.dtype != TYPE_f32)
        return false;
    const Value *places = node->n_out > 1 ? node->out[1] : input(node, "place");
    w = pool_window(cx, node, input(node, "x") != NULL ? input(node, "x") : node->out[0]);
    return places != NULL ? places->type.dtype == TYPE_u8 : w.kernel[0] * w.kernel[1] <= 255;
}

// The kernel takes the padding behind to be as wide as before.
static bool avgpool_fits(Context *cx, const Node *node)
{
    if (!is_image(node->out[0]) || !all_f32(node))
        return false;
    Window w = pool_window(cx, node, input(node, "x") != NULL ? input(node, "x") : node->out[0]);
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

// --- The table --------------------------------------------------------------------------------------------------------------

static const Choice choices[] = {
    {"dense",  dense_fits,  bind_dense,  NULL},
    {"matmul", matmul_fits, bind_matmul, NULL},
    {"conv", conv_fits, bind_conv, NULL},
    {"conv_grad_input", conv_fits, bind_conv_grad_input, NULL},
    {"conv_grad_weight", conv_fits, bind_conv_grad_weight, NULL},
    {"maxpool", maxpool_fits, bind_maxpool, NULL},
    {"maxpool_places", maxpool_fits, bind_maxpool, NULL},
    {"maxpool_grad", maxpool_fits, bind_maxpool_grad, NULL},
    {"avgpool", avgpool_fits, bind_avgpool, NULL},
    {"avgpool_grad", avgpool_fits, bind_avgpool_grad, NULL},
};

const Choice *choice_of(Context *cx, const Node *node)
{
    for (int i = 0; i < COUNT(choices); i++)
        if (strcmp(choices[i].op, node->op->name) == 0 && choices[i].fits(cx, node))
            return &choices[i];
    return NULL;
}
