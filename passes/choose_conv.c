// choose_conv.c: convolutions as calls of kernel files: direct sums on shifted images, or for 3x3 taps with stride 1, when
// training, Winograd's.
#include "choose.h"

#include <string.h>

enum { CONV_MARGIN = 128, IMAGES_MAX = 16 };

// --- Convolution, NCHW ------------------------------------------------------------------------------------------------------

// x (n, c, h, w), weight (oc, c / groups, kh, kw), y (n, oc, oh, ow)
typedef struct Conv { Shape x, weight, y; Window window; int64_t groups; } Conv;

static Conv conv_of(Context *cx, const Node *node, const Shape *x, const Shape *weight, const Shape *y)
{
    Conv c = {.x = *x, .weight = *weight, .y = *y, .groups = node_attr(node, "groups")->i};
    int64_t kernel[] = {size_value(weight->dim[2]), size_value(weight->dim[3])};
    CHECK(window_of(cx, node->op, node->attr, x, kernel, NULL, &c.window));
    return c;
}

bool conv_fits(Work *work, const Node *node)
{
    (void)work;
    for (int i = 0; i < node->n_in && i < 2; i++)
        if (node->in[i] == NULL || node->in[i]->type.shape.rank != 4)
            return false;
    return all_f32(node) && node->out[0]->type.shape.rank == 4;
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

// As mlk_conv2d_strided and its scratch.
static bool conv_strided(const Conv *c) { return c->groups == 1 && c->window.stride[0] * c->window.stride[1] > 1; }

enum { STRIDED_PIXELS = 512, STRIDED_FLOATS = 1 << 17, STRIDED_CHANNELS = 16 };

static int64_t strided_scratch(const Conv *c)
{
    int64_t area = largest(c->y.dim[2]) * largest(c->y.dim[3]), n = largest(c->x.dim[0]), channels = largest(c->x.dim[1]);
    int64_t taps = c->window.kernel[0] * c->window.kernel[1], images = area > 0 && STRIDED_PIXELS / area > 1 ? STRIDED_PIXELS / area : 1;
    images = images < n ? images : n > 0 ? n : 1;
    int64_t most = STRIDED_FLOATS / (taps * images * (area > 0 ? area : 1));
    most = most < 1 ? 1 : most < channels ? most : channels;
    return GEMM_SCRATCH + images * area * largest(c->y.dim[1]) + (STRIDED_FLOATS > most * taps * images * area ? STRIDED_FLOATS : most * taps * images * area);
}

static int64_t input_scratch(const Conv *c)
{
    if (conv_strided(c))
        return strided_scratch(c);
    int64_t area = 1;
    for (int i = 0; i < 2; i++) {
        int64_t before = c->window.before[i], stride = c->window.stride[i], reach = (c->window.kernel[i] - 1) * c->window.dilation[i];
        area *= (largest(c->x.dim[2 + i]) - 1 + before) / stride - before / stride + 1 + reach / stride;
    }
    return largest(c->weight.dim[0]) / c->groups * (area + 2 * c->window.kernel[0] * c->window.kernel[1]) + CONV_MARGIN;
}

// As mlk_conv2d_few.
static bool conv_few(const Conv *c)
{
    return c->window.kernel[0] * c->window.kernel[1] == 9 && c->groups == 1 && largest(c->weight.dim[1]) <= 4;
}

static int64_t weight_scratch(const Conv *c)
{
    if (conv_few(c))
        return conv_planes(c) + 2 * conv_taps(c) + 16 * conv_taps(c) * largest(c->weight.dim[0]);
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

void bind_conv(Work *work, const Node *node, Kernel *kernel)
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

void bind_conv_grad_input(Work *work, const Node *node, Kernel *kernel)
{
    Value *dy = input(node, "dy"), *weight = input(node, "weight"), *dx = node->out[0];
    Conv c = conv_of(work->cx, node, &dx->type.shape, &weight->type.shape, &dy->type.shape);
    kernel->file = "mlk_conv2d_grad_input";
    add_conv_sizes(kernel, &c);
    add_value(kernel, dy);
    add_value(kernel, weight);
    add_value(kernel, dx);
    kernel->parts = image_parts(&c);
    int shares = (int)((largest(c.x.dim[1]) + STRIDED_CHANNELS - 1) / STRIDED_CHANNELS);
    if (conv_strided(&c) && kernel->parts > shares)
        kernel->parts = shares < 1 ? 1 : shares;
    kernel->scratch = 4 * input_scratch(&c);
}

// As mlk_conv2d_grad_weight_parts: blocks of output channels, then of input channels.
static int weight_parts(const Conv *c)
{
    int64_t channels = largest(c->weight.dim[1]), blocks = c->groups * ((largest(c->weight.dim[0]) / c->groups + 31) / 32);
    int64_t splits = conv_taps(c) / 128 < channels ? conv_taps(c) / 128 : channels;
    int64_t most = conv_few(c) ? (largest(c->weight.dim[0]) + 5) / 6 : blocks * (splits > 1 ? splits : 1), parts = parts_for(conv_work(c));
    return (int)(parts < most ? parts : most);
}

void bind_conv_grad_weight(Work *work, const Node *node, Kernel *kernel)
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

// --- Winograd: 3x3 taps, stride 1 -------------------------------------------------------------------------------------------
//
// The mapped weights are a value of their own, made by a step before; so are the sums of the weights' gradient. Evaluation
// and deployment take the direct sums: they see one image or few, and the mapped weights would cost more than they save.

enum { WINOGRAD_CHANNELS = 16, WINOGRAD_PANEL = 32, WINOGRAD_POINTS = 36, WINOGRAD_PAD = 16, WINOGRAD_TILES = 64 };
enum { WINOGRAD_PARTS = 8, WINOGRAD_SUMS = 1 << 20 };  // floats of sums that shares of the images may take

// The convolution that a node is, or that its gradient of the input is: dy with the taps seen from the other side.
static Conv winograd_of(Context *cx, const Node *node)
{
    Value *x = input(node, "x"), *dy = input(node, "dy"), *weight = input(node, "weight"), *out = node->out[0];
    if (dy == NULL)
        return conv_of(cx, node, &x->type.shape, &weight->type.shape, &out->type.shape);
    if (weight == NULL)
        return conv_of(cx, node, &x->type.shape, &out->type.shape, &dy->type.shape);
    Conv c = conv_of(cx, node, &out->type.shape, &weight->type.shape, &dy->type.shape), turned = c;
    turned.x = c.y, turned.y = c.x;
    for (int i = 0; i < 2; i++)
        turned.window.before[i] = 2 - c.window.before[i];
    return turned;
}

static int64_t tiles_along(Size size) { return (largest(size) + 3) / 4; }
static int64_t winograd_tiles(const Conv *c) { return tiles_along(c->y.dim[2]) * tiles_along(c->y.dim[3]); }

bool winograd_fits(Work *work, const Node *node)
{
    if (!work->graph->training || !conv_fits(work, node))
        return false;
    Conv c = winograd_of(work->cx, node);
    for (int i = 0; i < 2; i++)
        if (c.window.kernel[i] != 3 || c.window.stride[i] != 1 || c.window.dilation[i] != 1)
            return false;
    double results = size_largest(c.y.dim[2]) * size_largest(c.y.dim[3]);
    bool whole = WINOGRAD_POINTS * (double)winograd_tiles(&c) < 0.7 * 9 * results;      // few tiles hang over the edge
    return c.groups == 1 && whole && largest(c.x.dim[1]) >= WINOGRAD_CHANNELS && largest(c.y.dim[1]) >= WINOGRAD_CHANNELS;
}

static int64_t panels_of(const Conv *c) { return (largest(c->y.dim[1]) + WINOGRAD_PANEL - 1) / WINOGRAD_PANEL; }

// As mlk_odd_lines.
static int64_t odd_lines(int64_t floats) { return ((floats + 15) / 16 | 1) * 16; }

// Mapped weights, or `splits` times as many sums.
static Value *winograd_scratch_value(Work *work, const Conv *c, const char *name, int64_t splits)
{
    int64_t dims[] = {splits * panels_of(c), WINOGRAD_POINTS, odd_lines(largest(c->x.dim[1]) * WINOGRAD_PANEL)};
    Size sizes[COUNT(dims)];
    for (int i = 0; i < COUNT(dims); i++)
        sizes[i] = size_const(work->cx, dims[i]);
    return graph_scratch(work->graph, name, type_of(TYPE_f32, COUNT(dims), sizes));
}

// As mlk_winograd_tiling and the scratch functions, with vectors of 16: tiles of a block, rows of tiles, images.
static int64_t winograd_floats(const Conv *c, int64_t wanted, bool gradient)
{
    int64_t all = winograd_tiles(c), width = tiles_along(c->y.dim[3]), rows = tiles_along(c->y.dim[2]), images = 1;
    int64_t n = largest(c->x.dim[0]), channels = (largest(c->x.dim[1]) + 15) / 16 * 16, ow = largest(c->y.dim[3]);
    if (all > wanted)
        rows = wanted / width > 1 ? wanted / width : 1;
    else
        images = wanted / all < n ? wanted / all : n;
    int64_t tiles = images * rows * width, h = largest(c->x.dim[2]), seen = 4 * rows + 2 < h ? 4 * rows + 2 : h;
    int64_t pixels = images * seen * largest(c->x.dim[3]) * channels, results = 4 * rows * ow * WINOGRAD_PANEL;
    int64_t points = WINOGRAD_POINTS * (odd_lines(tiles * (channels + WINOGRAD_PAD)) + odd_lines(tiles * WINOGRAD_PANEL));
    int64_t blank = channels > WINOGRAD_PANEL ? channels : WINOGRAD_PANEL;
    if (!gradient)
        return blank + pixels + points + results;
    return blank + (pixels > images * results ? pixels : images * results) + points;
}

static void add_weights_step(Work *work, const Node *node, const Conv *c, Value *weight, bool turned, Value *mapped)
{
    Kernel *kernel = step_before(work, node, "winograd_weight");
    kernel->file = "mlk_winograd_weight";
    kernel->equation = "u = G w G'";
    kernel->flops = size_times(work->cx, shape_count(work->cx, &mapped->type.shape), size_const(work->cx, 4));
    add_conv_sizes(kernel, c);
    add_value(kernel, weight);
    add_number(kernel, turned);
    add_value(kernel, mapped);
    int64_t parts = parts_for(4 * size_largest(shape_count(work->cx, &mapped->type.shape)));
    kernel->parts = (int)(parts < largest(c->x.dim[1]) ? parts : largest(c->x.dim[1]));
    LIST_ADD(work->cx->arena, kernel->reads, weight);
    LIST_ADD(work->cx->arena, kernel->writes, mapped);
}

// Shares of the images while each has tiles enough to use the weights well; then shares of the channels.
static void bind_winograd_call(Work *work, const Node *node, Kernel *kernel, Value *x, Value *bias, bool turned)
{
    Conv c = winograd_of(work->cx, node);
    Value *mapped = winograd_scratch_value(work, &c, "mapped", 1);
    add_weights_step(work, node, &c, input(node, "weight"), turned, mapped);
    kernel->file = "mlk_winograd";
    add_conv_sizes(kernel, &c);
    add_value(kernel, x);
    add_value(kernel, mapped);
    add_value(kernel, bias);
    add_value(kernel, node->out[0]);
    int64_t parts = parts_for(conv_work(&c)), images = largest(c.x.dim[0]);
    int64_t rows = images * winograd_tiles(&c) / WINOGRAD_TILES, columns = 1;
    rows = rows < 1 ? 1 : rows < parts ? rows : parts;
    rows = rows < images ? rows : images < 1 ? 1 : images;
    while (rows * columns * 2 <= WINOGRAD_PARTS && rows * columns * 2 <= parts && columns * 4 <= panels_of(&c))
        columns *= 2;
    add_number(kernel, columns);
    kernel->parts = (int)(rows * columns);
    kernel->scratch = 4 * winograd_floats(&c, largest(c.x.dim[1]) <= 64 ? 32 : 64, false);
}

void bind_winograd(Work *work, const Node *node, Kernel *kernel)
{
    bind_winograd_call(work, node, kernel, input(node, "x"), input(node, "bias"), false);
}

void bind_winograd_grad_input(Work *work, const Node *node, Kernel *kernel)
{
    bind_winograd_call(work, node, kernel, input(node, "dy"), NULL, true);
}

// Shares of the images have sums of their own, which a second step adds up; where the sums are large, shares of the channels.
void bind_winograd_grad_weight(Work *work, const Node *node, Kernel *kernel)
{
    Context *cx = work->cx;
    Conv c = winograd_of(cx, node);
    Value *x = input(node, "x"), *dy = input(node, "dy");
    int64_t size = panels_of(&c) * WINOGRAD_POINTS * odd_lines(largest(c.x.dim[1]) * WINOGRAD_PANEL), splits = WINOGRAD_SUMS / size, columns = 1;
    int64_t parts = parts_for(conv_work(&c)), images = largest(c.x.dim[0]), most = parts < WINOGRAD_PARTS ? parts : WINOGRAD_PARTS;
    splits = splits < most ? splits : most;
    splits = splits < images ? splits : images;
    splits = splits < 1 ? 1 : splits;
    while (splits * columns * 2 <= most && columns * 4 <= panels_of(&c))
        columns *= 2;
    Value *sums = winograd_scratch_value(work, &c, "sums", splits);
    Kernel *products = step_before(work, node, "winograd_grad_weight");
    products->file = "mlk_winograd_grad_weight";
    products->equation = "sums = sum over tiles of (B' x B) (A dy A')";
    products->flops = kernel->flops;
    add_conv_sizes(products, &c);
    add_value(products, x);
    add_value(products, dy);
    add_value(products, sums);
    add_number(products, splits);
    products->parts = (int)(splits * columns);
    products->scratch = 4 * winograd_floats(&c, WINOGRAD_TILES, true);
    LIST_ADD(cx->arena, products->reads, x);
    LIST_ADD(cx->arena, products->reads, dy);
    LIST_ADD(cx->arena, products->writes, sums);
    kernel->file = "mlk_winograd_grad_finish";
    kernel->equation = "dw = G' sums G";
    kernel->flops = size_times(cx, shape_count(cx, &sums->type.shape), size_const(cx, 2));
    add_conv_sizes(kernel, &c);
    add_value(kernel, sums);
    add_number(kernel, splits);
    add_value(kernel, node->out[0]);
    int64_t finish = parts_for(4 * (double)(splits * size));
    kernel->parts = (int)(finish < largest(c.x.dim[1]) ? finish : largest(c.x.dim[1]));
}
