// ops_nn.c: layers: convolution, pooling, normalisation, losses.
#include "import.h"

#include <math.h>

// --- Windows -----------------------------------------------------------------------------------------------------------

typedef struct Walk { int axes; int64_t kernel[3], stride[3], dilation[3], pad[6]; bool same_upper, same_lower, ceil, padded; } Walk;

static void list_of(OnnxCall *c, const char *name, int axes, int64_t otherwise, int64_t *to)
{
    int64_t list[6];
    int n = ints_of(c, name, list, 6);
    for (int i = 0; i < axes; i++) {
        to[i] = n < 0 ? otherwise : i < n ? list[i] : 0;
        if (to[i] < 1 || to[i] > 1000000)
            refuse_node(c, "%s should have %d numbers from 1 to a million", name, axes);
    }
    if (n >= 0 && n != axes)
        refuse_node(c, "%s should have %d numbers", name, axes);
}

// What the node says of its window; sizes of SAME padding follow from `x` where they are known.
static bool walk_of(OnnxCall *c, const int64_t *kernel, Walk *w)
{
    Value *x = c->in[0];
    *w = (Walk){.axes = rank_of(x) - 2};
    if (w->axes < 1 || w->axes > 3) {
        refuse_node(c, "%s: one to three axes behind the channels are available in this version", type_text(c->m->cx, &x->type));
        return false;
    }
    const char *word = word_of(c, "auto_pad", "NOTSET");
    int n = ints_of(c, "pads", w->pad, 6);
    list_of(c, "strides", w->axes, 1, w->stride);
    if (attribute(c, "dilations") != NULL)
        list_of(c, "dilations", w->axes, 1, w->dilation);
    for (int i = 0; i < w->axes; i++)
        w->dilation[i] += w->dilation[i] == 0;
    if (kernel == NULL)
        list_of(c, "kernel_shape", w->axes, 0, w->kernel);
    else
        memcpy(w->kernel, kernel, sizeof(int64_t) * (size_t)w->axes);
    if (n >= 0 && n != 2 * w->axes)
        refuse_node(c, "pads should have %d numbers", 2 * w->axes);
    for (int i = 0; i < (n < 0 ? 0 : n); i++) {
        if (w->pad[i] < 0 || w->pad[i] > 1000000)
            refuse_node(c, "a negative pad is not available in this version");
        w->padded |= w->pad[i] > 0;
    }
    w->same_upper = strcmp(word, "SAME_UPPER") == 0;
    w->same_lower = strcmp(word, "SAME_LOWER") == 0;
    if (!w->same_upper && !w->same_lower && strcmp(word, "NOTSET") != 0 && strcmp(word, "VALID") != 0)
        refuse_node(c, "auto_pad = %s is not known", word);
    if (strcmp(word, "NOTSET") != 0 && w->padded)
        refuse_node(c, "pads and auto_pad are both given");
    return !c->m->failed;
}

// SAME padding in numbers: of an odd number, the last goes to the end (upper) or to the beginning.
static bool same_pads(OnnxCall *c, Walk *w)
{
    for (int i = 0; (w->same_upper || w->same_lower) && i < w->axes; i++) {
        int64_t n, total, reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (!size_known(dim_of(c->in[0], 2 + i), &n) && w->stride[i] != 1) {
            refuse_node(c, "SAME padding with a stride where the size of the picture is known only when running is not available in this version");
            return false;
        }
        total = w->stride[i] == 1 ? reach - 1 : ((n + w->stride[i] - 1) / w->stride[i] - 1) * w->stride[i] + reach - n;
        total = total < 0 ? 0 : total;
        w->pad[i] = w->same_upper ? total / 2 : total - total / 2;
        w->pad[w->axes + i] = total - w->pad[i];
        w->padded |= total > 0;
    }
    return true;
}

static void window_attrs(OpCall *call, const Walk *w, bool with_dilation)
{
    call_ints(call, "kernel", w->axes, w->kernel);
    call_ints(call, "stride", w->axes, w->stride);
    call_ints(call, "pad", 2 * w->axes, w->pad);
    if (with_dilation)
        call_ints(call, "dilation", w->axes, w->dilation);
}

static bool weight_sizes(OnnxCall *c, Value *weight, int64_t *sizes)
{
    int64_t kernel[3];
    int rank = rank_of(weight), n = ints_of(c, "kernel_shape", kernel, 3);
    if (rank != rank_of(c->in[0]) || rank > 5) {
        refuse_node(c, "the weights have %d axes for %d", rank, rank_of(c->in[0]));
        return false;
    }
    for (int i = 0; i < rank; i++)
        if (!size_known(dim_of(weight, i), &sizes[i]) || (n >= 0 && i >= 2 && (n != rank - 2 || kernel[i - 2] != sizes[i]))) {
            refuse_node(c, "the sizes of its weights are not known, or kernel_shape differs from them");
            return false;
        }
    return true;
}

Value *conv_of(OnnxCall *c, Value *x, Value *weight, Value *bias)
{
    int64_t sizes[RANK_MAX];
    Walk w;
    int64_t groups = int_of(c, "group", 1);
    if (!weight_sizes(c, weight, sizes) || !walk_of(c, sizes + 2, &w) || !same_pads(c, &w))
        return NULL;
    OpCall call = call_new(&c->m->b, "conv", bias != NULL ? 3 : 2, (Value *[]){x, weight, bias});
    window_attrs(&call, &w, true);
    call_int(&call, "channels", sizes[0]);
    call_int(&call, "groups", groups);
    call_bool(&call, "bias", bias != NULL);
    if (groups < 1 || groups > sizes[0]) {
        refuse_node(c, "it has %d groups", (int)groups);
        return NULL;
    }
    return emit(c->m, &call);
}

void onnx_conv(OnnxCall *c) { c->out[0] = conv_of(c, c->in[0], c->in[1], input_of(c, 2)); }

void onnx_conv_transpose(OnnxCall *c)
{
    Value *x = c->in[0], *bias = input_of(c, 2);
    int64_t sizes[RANK_MAX], extra[3] = {0}, shape[5], n;
    Walk w;
    int64_t groups = int_of(c, "group", 1);
    int n_extra = ints_of(c, "output_padding", extra, 3), n_shape = ints_of(c, "output_shape", shape, 5);
    if (!weight_sizes(c, c->in[1], sizes) || !walk_of(c, sizes + 2, &w))
        return;
    if ((n_extra >= 0 && n_extra != w.axes) || (n_shape >= 0 && n_shape != w.axes && n_shape != w.axes + 2) || groups < 1) {
        refuse_node(c, "output_padding and output_shape should have %d numbers", w.axes);
        return;
    }
    for (int i = 0; (n_shape >= 0 || w.same_upper || w.same_lower) && i < w.axes; i++) {
        int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1, wanted;
        if (!size_known(dim_of(x, 2 + i), &n)) {
            refuse_node(c, "a picture whose size is known only when running is not available in this version");
            return;
        }
        wanted = n_shape >= 0 ? shape[n_shape - w.axes + i] : n * w.stride[i];
        int64_t total = w.stride[i] * (n - 1) + extra[i] + reach - wanted;
        if (total < 0 && n_shape >= 0) {                // the result is larger: what is behind is filled
            extra[i] -= total;
            total = 0;
        }
        if (total < 0) {
            refuse_node(c, "the output is larger than what its windows reach");
            return;
        }
        w.pad[i] = w.same_upper ? total / 2 : total - total / 2;
        w.pad[w.axes + i] = total - w.pad[i];
    }
    OpCall call = call_new(&c->m->b, "conv_transpose", bias != NULL ? 3 : 2, (Value *[]){x, c->in[1], bias});
    window_attrs(&call, &w, true);
    call_ints(&call, "output_pad", w.axes, extra);
    call_int(&call, "channels", sizes[1] * groups);
    call_int(&call, "groups", groups);
    call_bool(&call, "bias", bias != NULL);
    c->out[0] = emit(c->m, &call);
}

// Where each maximum was, as a number in the whole of x, of the tap that maxpool_places gives.
static Value *places_of_maxima(OnnxCall *c, const Walk *w, Value *y, Value *tap)
{
    Import *m = c->m;
    int64_t n[5], taps = 1;
    int rank = rank_of(c->in[0]);
    bool columns = int_of(c, "storage_order", 0) != 0;
    for (int i = 0; i < rank; i++)
        if (!size_known(dim_of(c->in[0], i), &n[i])) {
            refuse_node(c, "indices of a picture whose size is known only when running are not available in this version");
            return NULL;
        }
    Value *number_of = NULL;
    tap = cast_to(m, tap, TYPE_i64);
    int64_t stride = 1, strides[5];
    for (int i = rank - 1; i >= 2; i--)
        taps *= w->kernel[i - 2];
    for (int k = 0; k < rank; k++) {                    // of what lies behind: row by row, or column by column
        int i = k < rank - 2 ? (columns ? 2 + k : rank - 1 - k) : (k == rank - 2 ? 1 : 0);
        strides[i] = stride;
        stride *= n[i];
    }
    for (int i = 0, rest = (int)taps; i < rank; i++) {
        OpCall range = call_new(&m->b, "range", 0, NULL);
        Size dims[5];
        for (int k = 0; k < rank; k++)
            dims[k] = k == i ? dim_of(y, i) : whole(m, 1);
        call_sizes(&range, "count", 1, &y->type.shape.dim[i]);
        call_type(&range, "type", TYPE_i64);
        Value *at = reshape_to(m, emit(m, &range), rank, dims);
        if (i >= 2) {
            rest /= (int)w->kernel[i - 2];
            at = formula(m, "x0 * x1 - x2 + mod(floordiv(x3, x4), x5) * x6", 7,
                         (Value *[]){at, number(m, TYPE_i64, (double)w->stride[i - 2]), number(m, TYPE_i64, (double)w->pad[i - 2]), tap, number(m, TYPE_i64, rest),
                                     number(m, TYPE_i64, (double)w->kernel[i - 2]), number(m, TYPE_i64, (double)w->dilation[i - 2])});
        }
        at = op2(m, "mul", at, number(m, TYPE_i64, (double)strides[i]));
        number_of = number_of == NULL ? at : op2(m, "add", number_of, at);
    }
    return number_of;
}

void onnx_maxpool(OnnxCall *c)
{
    Walk w;
    Value *x = c->in[0], *out[OUTPUTS_MAX];
    DType type = x->type.dtype;
    bool ceil = int_of(c, "ceil_mode", 0) != 0, places = c->n_out > 1 && *c->p->output[1];
    if (!walk_of(c, NULL, &w) || !same_pads(c, &w))
        return;
    if (type != TYPE_u8 && type != TYPE_i8 && !type_is_float(type)) {
        refuse_node(c, "elements of type %s are not available in this version", type_def(type)->name);
        return;
    }
    x = type_is_float(type) ? x : cast_to(c->m, x, TYPE_f32);
    OpCall call = call1(c->m, places ? "maxpool_places" : "maxpool", x);
    window_attrs(&call, &w, true);
    call_bool(&call, "ceil", ceil);
    if (!emit_all(c->m, &call, out))
        return;
    c->out[0] = cast_to(c->m, out[0], type);
    if (places)
        c->out[1] = places_of_maxima(c, &w, out[0], out[1]);
    else
        int_of(c, "storage_order", 0);
}

void onnx_avgpool(OnnxCall *c)
{
    Walk w;
    bool ceil = int_of(c, "ceil_mode", 0) != 0, count = int_of(c, "count_include_pad", 0) != 0;
    if (!walk_of(c, NULL, &w) || !same_pads(c, &w))
        return;
    for (int i = 0; i < w.axes; i++)
        if (w.dilation[i] != 1) {
            refuse_node(c, "dilations are not available in this version");
            return;
        }
    OpCall call = call1(c->m, "avgpool", c->in[0]);
    window_attrs(&call, &w, false);
    call_bool(&call, "ceil", ceil);
    call_bool(&call, "count_pad", count);
    c->out[0] = emit(c->m, &call);
}

void onnx_lppool(OnnxCall *c)
{
    Walk w;
    const Onnx__Attribute *a = c->version < 2 ? attribute(c, "p") : NULL;
    int64_t p = a != NULL ? (int64_t)a->f : int_of(c, "p", 2);
    bool ceil = int_of(c, "ceil_mode", 0) != 0;
    if (!walk_of(c, NULL, &w) || !same_pads(c, &w))
        return;
    for (int i = 0; i < w.axes; i++)
        if (w.dilation[i] != 1 || ceil) {
            refuse_node(c, "dilations and ceil_mode are not available in this version");
            return;
        }
    OpCall call = call1(c->m, "lppool", c->in[0]);
    window_attrs(&call, &w, false);
    call_int(&call, "p", p);
    c->out[0] = emit(c->m, &call);
}

static int picture_axes(const Value *x, int64_t *axes)
{
    for (int i = 2; i < rank_of(x); i++)
        axes[i - 2] = i;
    return rank_of(x) - 2;
}

void onnx_global_pool(OnnxCall *c)
{
    int64_t axes[RANK_MAX];
    int n = picture_axes(c->in[0], axes);
    if (n < 1)
        refuse_node(c, "it takes a picture");
    else
        c->out[0] = reduced(c->m, c->detail, c->in[0], n, axes, true);
}

// --- Normalisation -------------------------------------------------------------------------------------------------------

// A list with one element a channel, to be combined with x.
static Value *per_channel(Import *m, Value *list, int rank)
{
    Size dims[RANK_MAX];
    for (int i = 0; i < rank; i++)
        dims[i] = i == 1 && list != NULL ? dim_of(list, 0) : whole(m, 1);
    return rank > 1 ? reshape_to(m, list, rank, dims) : list;
}

void onnx_batchnorm(OnnxCall *c)
{
    Value *x = c->in[0];
    double eps = float_of(c, "epsilon", (double)1e-5f), momentum = float_of(c, "momentum", (double)0.9f);
    bool training = c->version >= 14 && int_of(c, "training_mode", 0) != 0;
    int rank = rank_of(x);
    int64_t unused[8], axes[RANK_MAX];
    if (c->version < 6)
        ints_of(c, "consumed_inputs", unused, 8);
    if (c->version < 7 && int_of(c, "is_test", 0) == 0 && c->n_out > 1)
        refuse_node(c, "training mode is not available in this version");
    if (c->version < 9 && int_of(c, "spatial", 1) == 0)
        refuse_node(c, "spatial = 0 is not available in this version");
    if (rank < 1 || c->m->failed)
        return;
    Import *m = c->m;
    DType type = x->type.dtype, inner = type == TYPE_f64 ? TYPE_f64 : TYPE_f32;
    if (!training && rank >= 2 && type == TYPE_f32 && c->in[1]->type.dtype == type && c->in[3]->type.dtype == type && eps <= 1) {
        OpCall call = call_new(&m->b, "batchnorm", 5, (Value *[]){x, c->in[1], c->in[2], c->in[3], c->in[4]});
        call_float(&call, "eps", eps);
        c->out[0] = emit(m, &call);
        return;
    }
    Value *wide = cast_to(m, x, inner), *mean = cast_to(m, c->in[3], inner), *var = cast_to(m, c->in[4], inner);
    if (training) {
        int n = 0;
        for (int i = 0; i < rank; i++)
            if (i != 1)
                axes[n++] = i;
        Value *now = reduced(m, "mean", wide, n, axes, false);
        Value *square = reduced(m, "mean", op1(m, "square", op2(m, "sub", wide, per_channel(m, now, rank))), n, axes, false);
        Value *share = number(m, inner, momentum);
        c->out[1] = cast_to(m, formula3(m, "x0 * x2 + x1 * (1 - x2)", mean, now, share), c->in[3]->type.dtype);
        c->out[2] = cast_to(m, formula3(m, "x0 * x2 + x1 * (1 - x2)", var, square, share), c->in[4]->type.dtype);
        mean = now, var = square;
    }
    Value *y = formula(m, "(x0 - x1) / sqrt(x2 + x3) * x4 + x5", 6,
                       (Value *[]){wide, per_channel(m, mean, rank), per_channel(m, var, rank), number(m, inner, eps),
                                   per_channel(m, cast_to(m, c->in[1], inner), rank), per_channel(m, cast_to(m, c->in[2], inner), rank)});
    c->out[0] = cast_to(m, y, type);
}

// To mean 0 and variance 1 over some axes; mean and 1 / deviation besides, with those axes kept.
static Value *standardised(Import *m, Value *x, int n, const int64_t *axes, double eps, Value **mean, Value **inverse)
{
    if (x == NULL)
        return NULL;
    *mean = reduced(m, "mean", x, n, axes, true);
    Value *away = op2(m, "sub", x, *mean);
    *inverse = formula2(m, "1 / sqrt(x0 + x1)", reduced(m, "mean", op1(m, "square", away), n, axes, true), number(m, x->type.dtype, eps));
    return op2(m, "mul", away, *inverse);
}

void onnx_instancenorm(OnnxCall *c)
{
    Value *x = c->in[0], *mean, *inverse;
    double eps = float_of(c, "epsilon", (double)1e-5f);
    int64_t axes[RANK_MAX], unused[8];
    int n = picture_axes(x, axes);
    if (c->version < 6)
        ints_of(c, "consumed_inputs", unused, 8);
    if (n < 1) {
        refuse_node(c, "it takes a picture");
        return;
    }
    DType type = x->type.dtype, inner = type == TYPE_f64 ? TYPE_f64 : TYPE_f32;
    Value *y = standardised(c->m, cast_to(c->m, x, inner), n, axes, eps, &mean, &inverse);
    y = formula3(c->m, "x0 * x1 + x2", y, per_channel(c->m, cast_to(c->m, c->in[1], inner), rank_of(x)), per_channel(c->m, cast_to(c->m, c->in[2], inner), rank_of(x)));
    c->out[0] = cast_to(c->m, y, type);
}

static int axes_from(OnnxCall *c, int64_t *axes)
{
    int rank = rank_of(c->in[0]);
    int64_t from = axis_of(c, int_of(c, "axis", -1), rank);
    for (int64_t i = from; i < rank; i++)
        axes[i - from] = i;
    return rank - (int)from;
}

static DType stash(OnnxCall *c)
{
    int64_t number = int_of(c, "stash_type", 1);
    DType type = number == 0 ? c->in[0]->type.dtype : dtype_of(c, (int)number);
    return c->in[0]->type.dtype == TYPE_f64 ? TYPE_f64 : type;
}

void onnx_layernorm(OnnxCall *c)
{
    Value *x = c->in[0], *mean, *inverse, *bias = input_of(c, 2);
    int64_t axes[RANK_MAX];
    double eps = float_of(c, "epsilon", (double)1e-5f);
    int n = axes_from(c, axes);
    DType type = x->type.dtype, inner = stash(c);
    if (c->m->failed)
        return;
    Value *y = cast_to(c->m, standardised(c->m, cast_to(c->m, x, inner), n, axes, eps, &mean, &inverse), type);
    y = op2(c->m, "mul", y, c->in[1]);
    c->out[0] = bias != NULL ? op2(c->m, "add", y, bias) : y;
    c->out[1] = mean;
    c->out[2] = inverse;
}

void onnx_rmsnorm(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t axes[RANK_MAX];
    double eps = float_of(c, "epsilon", (double)1e-5f);
    int n = axes_from(c, axes);
    DType inner = stash(c);
    if (c->m->failed)
        return;
    x = cast_to(c->m, x, inner);
    Value *y = formula3(c->m, "x0 / sqrt(x1 + x2)", x, reduced(c->m, "mean", op1(c->m, "square", x), n, axes, true), number(c->m, inner, eps));
    y = cast_to(c->m, y, c->in[0]->type.dtype);
    c->out[0] = op2(c->m, "mul", cast_to(c->m, y, c->in[1]->type.dtype), c->in[1]);
}

void onnx_groupnorm(OnnxCall *c)
{
    Value *x = c->in[0], *mean, *inverse, *scale = c->in[1], *bias = c->in[2];
    int64_t groups = int_of(c, "num_groups", 0), channels;
    double eps = float_of(c, "epsilon", (double)1e-5f);
    int rank = rank_of(x);
    DType inner = c->version >= 21 ? stash(c) : x->type.dtype == TYPE_f64 ? TYPE_f64 : TYPE_f32;
    if (rank < 3 || groups < 1 || !size_known(dim_of(x, 1), &channels) || channels % groups != 0 || rank_of(scale) != 1 || rank_of(bias) != 1) {
        refuse_node(c, "%s cannot be divided into %d groups", type_text(c->m->cx, &x->type), (int)groups);
        return;
    }
    Import *m = c->m;
    Size rest = whole(m, channels / groups);
    for (int i = 2; i < rank; i++)
        rest = size_times(m->cx, rest, dim_of(x, i));
    Value *y = reshape_to(m, cast_to(m, x, inner), 3, (Size[]){dim_of(x, 0), whole(m, groups), rest});
    y = standardised(m, y, 1, (int64_t[]){2}, eps, &mean, &inverse);
    scale = cast_to(m, scale, inner), bias = cast_to(m, bias, inner);
    if (c->version < 21) {                              // one a group
        y = op2(m, "mul", y, reshape_to(m, scale, 2, (Size[]){whole(m, groups), whole(m, 1)}));
        y = op2(m, "add", y, reshape_to(m, bias, 2, (Size[]){whole(m, groups), whole(m, 1)}));
        y = reshape_to(m, y, rank, x->type.shape.dim);
    } else {
        y = reshape_to(m, y, rank, x->type.shape.dim);
        y = formula3(m, "x0 * x1 + x2", y, per_channel(m, scale, rank), per_channel(m, bias, rank));
    }
    c->out[0] = cast_to(m, y, x->type.dtype);
}

void onnx_mvn(OnnxCall *c)
{
    int64_t axes[RANK_MAX] = {0, 2, 3};
    Value *x = c->in[0];
    int n = ints_of(c, "axes", axes, RANK_MAX);
    n = n < 0 ? 3 : n;
    for (int i = 0; i < n; i++)
        axes[i] = axis_of(c, axes[i], rank_of(x));
    if (c->m->failed)
        return;
    Value *mean = reduced(c->m, "mean", x, n, axes, true), *away = op2(c->m, "sub", x, mean);
    Value *deviation = op1(c->m, "sqrt", reduced(c->m, "mean", op1(c->m, "square", away), n, axes, true));
    c->out[0] = formula2(c->m, "x0 / (x1 + 1e-9)", away, deviation);
}

void onnx_lp_normalization(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t axis = axis_of(c, int_of(c, "axis", -1), rank_of(x)), p = int_of(c, "p", 2);
    if (p != 1 && p != 2)
        refuse_node(c, "p = %d is not known", (int)p);
    if (c->m->failed)
        return;
    Value *size = reduced(c->m, "sum", op1(c->m, p == 1 ? "abs" : "square", x), 1, &axis, true);
    size = p == 1 ? size : op1(c->m, "sqrt", size);
    c->out[0] = formula2(c->m, "select(x1 == 0, 0, x0 / x1)", x, size);
}

void onnx_lrn(OnnxCall *c)
{
    Value *x = c->in[0], *sum = NULL;
    int64_t size = int_of(c, "size", 0), channels, pads[2 * RANK_MAX] = {0};
    double alpha = float_of(c, "alpha", (double)1e-4f), beta = float_of(c, "beta", 0.75), bias = float_of(c, "bias", 1);
    if (rank_of(x) < 2 || size < 1 || size > 1000 || !size_known(dim_of(x, 1), &channels)) {
        refuse_node(c, "it takes a picture, and neighbours");
        return;
    }
    pads[1] = (size - 1) / 2;
    pads[rank_of(x) + 1] = size - 1 - pads[1];
    OpCall pad = call1(c->m, "pad", op1(c->m, "square", x));
    call_ints(&pad, "pads", 2 * rank_of(x), pads);
    Value *squares = emit(c->m, &pad);
    for (int64_t i = 0; i < size; i++) {
        Value *part = sliced(c->m, squares, 1, whole(c->m, i), whole(c->m, channels), 1);
        sum = sum == NULL ? part : op2(c->m, "add", sum, part);
    }
    if (sum != NULL)
        c->out[0] = formula(c->m, "x0 / pow(x2 + x3 * x1, x4)", 5, (Value *[]){x, sum, number(c->m, x->type.dtype, bias), number(c->m, x->type.dtype, alpha / (double)size), number(c->m, x->type.dtype, beta)});
}

void onnx_dropout(OnnxCall *c)
{
    double mode = 0;
    int_of(c, "seed", 0);
    float_of(c, "ratio", 0.5);
    if (c->version < 7)
        int_of(c, "is_test", 0);
    if (input_of(c, 2) != NULL && !known_number(c, c->in[2], "the training mode", &mode))
        return;
    if (mode != 0) {
        double ratio = 0.5;
        if (input_of(c, 1) != NULL && !known_number(c, c->in[1], "the ratio", &ratio))
            return;
        if (ratio != 0) {
            refuse_node(c, "training mode, which draws numbers, is not available in this version");
            return;
        }
    }
    c->out[0] = op1(c->m, "identity", c->in[0]);
    c->out[1] = broadcast_as(c->m, number(c->m, TYPE_bool, 1), rank_of(c->in[0]), c->in[0]->type.shape.dim);
}

// --- Losses ----------------------------------------------------------------------------------------------------------------

static void class_loss(OnnxCall *c, Value *logp)
{
    Import *m = c->m;
    Value *label = c->in[1], *weight = input_of(c, 2), *valid = NULL;
    const char *how = word_of(c, "reduction", "mean");
    const Onnx__Attribute *ignore = attribute(c, "ignore_index");
    if (logp == NULL || label == NULL)
        return;
    DType type = logp->type.dtype;
    if (ignore != NULL) {
        valid = op2(m, "not_equal", label, number(m, label->type.dtype, (double)ignore->i));
        label = op3(m, "where", valid, label, number(m, label->type.dtype, 0));
    }
    OpCall pick = call2(m, "pick", logp, label);
    call_int(&pick, "axis", 1);
    Value *loss = op1(m, "neg", emit(m, &pick)), *w = NULL;
    if (weight != NULL) {
        OpCall gather = call2(m, "gather", weight, label);
        call_int(&gather, "axis", 0);
        w = emit(m, &gather);
        if (valid != NULL)
            w = op3(m, "where", valid, w, number(m, type, 0));
    } else if (valid != NULL)
        w = cast_to(m, valid, type);
    if (w != NULL)
        loss = op2(m, "mul", loss, w);
    if (valid != NULL)
        loss = op3(m, "where", valid, loss, number(m, type, 0));
    if (loss == NULL)
        return;
    if (strcmp(how, "none") == 0)
        c->out[0] = loss;
    else if (strcmp(how, "sum") == 0)
        c->out[0] = op1(m, "sum", loss);
    else if (strcmp(how, "mean") != 0)
        refuse_node(c, "reduction = %s is not known", how);
    else
        c->out[0] = w == NULL ? op1(m, "mean", loss) : op2(m, "div", op1(m, "sum", loss), op1(m, "sum", w));
}

void onnx_nll(OnnxCall *c) { class_loss(c, c->in[0]); }

void onnx_softmax_loss(OnnxCall *c)
{
    OpCall call = call1(c->m, "log_softmax", c->in[0]);
    call_int(&call, "axis", 1);
    c->out[1] = emit(c->m, &call);
    class_loss(c, c->out[1]);
}

// --- The largest ---------------------------------------------------------------------------------------------------------

// How many elements come before each one, then the one that has so many: right for any order of equal ones and of NaN.
void onnx_topk(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0];
    int64_t axis = axis_of(c, int_of(c, "axis", -1), rank_of(x)), k = c->version < 10 ? int_of(c, "k", 0) : 0, n;
    bool largest = c->version < 11 || int_of(c, "largest", 1) != 0;
    if (c->version >= 11)
        int_of(c, "sorted", 1);
    if (c->version >= 10 && known_ints(c, input_of(c, 1), "k", &k, 1) != 1)
        return;
    int rank = rank_of(x);
    if (c->m->failed)
        return;
    if (!size_known(dim_of(x, (int)axis), &n) || n > 4096 || k < 0 || k > n || rank == RANK_MAX) {
        refuse_node(c, "k = %d of %s is not available in this version", (int)k, type_text(m->cx, &x->type));
        return;
    }
    int64_t perm[RANK_MAX], back[RANK_MAX];
    for (int i = 0; i < rank; i++) {                    // the axis goes to the end
        perm[i] = i < axis ? i : i < rank - 1 ? i + 1 : axis;
        back[perm[i]] = i;
    }
    x = transposed(m, x, perm);
    Size row[RANK_MAX], column[RANK_MAX], of_k[RANK_MAX];
    for (int i = 0; i < rank - 1; i++)
        row[i] = column[i] = x != NULL ? dim_of(x, i) : NULL, of_k[i] = whole(m, 1);
    row[rank - 1] = column[rank] = whole(m, 1), row[rank] = column[rank - 1] = whole(m, n);
    of_k[rank - 1] = whole(m, k), of_k[rank] = whole(m, 1);
    Tensor *later = tensor_new(m->cx->arena, TYPE_bool, 2, (int64_t[]){n, n}), *first = tensor_new(m->cx->arena, TYPE_i64, 1, &k), *all = tensor_new(m->cx->arena, TYPE_i64, 1, &n);
    for (int64_t i = 0; i < n * n; i++)
        ((uint8_t *)later->data)[i] = i % n < i / n;    // [element, other]: the other stands before
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)all->data)[i] = i;
    for (int64_t i = 0; i < k; i++)
        ((int64_t *)first->data)[i] = i;
    Value *self = reshape_to(m, x, rank + 1, column), *other = reshape_to(m, x, rank + 1, row);
    const char *text = largest ? "or(x1 > x0, or(and(x1 != x1, x0 == x0), and(x2, not(or(x0 > x1, and(x0 != x0, x1 == x1))))))"
                               : "or(x1 < x0, or(and(x0 != x0, x1 == x1), and(x2, not(or(x0 < x1, and(x1 != x1, x0 == x0))))))";
    Value *before = cast_to(m, formula3(m, text, self, other, constant(m, later)), TYPE_i64);
    Value *place = reduced(m, "sum", before, 1, (int64_t[]){rank}, false);
    Value *is = op2(m, "equal", reshape_to(m, place, rank + 1, row), reshape_to(m, constant(m, first), rank + 1, of_k));
    Value *at = reduced(m, "sum", op3(m, "where", is, constant(m, all), number(m, TYPE_i64, 0)), 1, (int64_t[]){rank}, false);
    Value *y = reduced(m, "sum", op3(m, "where", is, other, number(m, c->in[0]->type.dtype, 0)), 1, (int64_t[]){rank}, false);
    c->out[0] = transposed(m, y, back);
    c->out[1] = transposed(m, at, back);
}

// --- Resize ------------------------------------------------------------------------------------------------------------------

typedef struct Zoom { const char *where, *how, *nearest; double cubic; bool outside_counts, antialias; double extra; } Zoom;

static double original(const Zoom *z, int64_t i, double scale, int64_t in, int64_t out, double start, double end)
{
    double x = (double)i;
    if (strcmp(z->where, "half_pixel") == 0)
        return (x + 0.5) / scale - 0.5;
    if (strcmp(z->where, "half_pixel_symmetric") == 0) {
        double wide = scale * (double)in, adjust = (double)out / wide, center = (double)in / 2;
        return center * (1 - adjust) + (x + 0.5) / scale - 0.5;
    }
    if (strcmp(z->where, "pytorch_half_pixel") == 0)
        return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
    if (strcmp(z->where, "align_corners") == 0)         // the length that the scale asks for, before it is rounded
        return scale * (double)in == 1 ? 0 : x * (double)(in - 1) / (scale * (double)in - 1);
    if (strcmp(z->where, "tf_crop_and_resize") == 0)
        return out > 1 ? start * (double)(in - 1) + x * (end - start) * (double)(in - 1) / (double)(out - 1) : 0.5 * (start + end) * (double)(in - 1);
    if (strcmp(z->where, "tf_half_pixel_for_nn") == 0)
        return (x + 0.5) / scale;
    return x / scale;                                   // asymmetric
}

static double weight_of(const Zoom *z, double x)
{
    double a = z->cubic;
    x = fabs(x);
    if (strcmp(z->how, "linear") == 0)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t nearest_of(const Zoom *z, double x)
{
    if (strcmp(z->nearest, "round_prefer_floor") == 0)
        return x == floor(x) + 0.5 ? (int64_t)floor(x) : (int64_t)floor(x + 0.5);
    if (strcmp(z->nearest, "round_prefer_ceil") == 0)
        return (int64_t)floor(x + 0.5);
    return strcmp(z->nearest, "floor") == 0 ? (int64_t)floor(x) : (int64_t)ceil(x);
}

static int64_t within(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

// One axis: each element of the result is a sum of some elements, with weights; numbers and weights are constants.
static Value *zoom_axis(OnnxCall *c, Value *x, int axis, const Zoom *z, double scale, int64_t in, int64_t out, double start, double end)
{
    Import *m = c->m;
    bool near = strcmp(z->how, "nearest") == 0, linear = strcmp(z->how, "linear") == 0, crop = strcmp(z->where, "tf_crop_and_resize") == 0;
    double squeeze = z->antialias && scale < 1 ? scale : 1;
    int taps = near ? 1 : 2 * (int)ceil((linear ? 1 : 2) / squeeze);
    int64_t *index = NEW_ARRAY(m->cx->arena, int64_t, out * taps + 1);
    Tensor *weights = tensor_new(m->cx->arena, TYPE_f32, 2, (int64_t[]){out, taps}), *inside = tensor_new(m->cx->arena, TYPE_bool, 1, &out);
    if (x == NULL || in == 0 || out * taps > 1 << 26 || rank_of(x) == RANK_MAX) {
        refuse_node(c, "sizes such as these are not available in this version");
        return NULL;
    }
    bool clipped = false;
    for (int64_t i = 0; i < out; i++) {
        double at = original(z, i, scale, in, out, start, end), sum = 0, w[256];
        ((uint8_t *)inside->data)[i] = !(crop && (at < 0 || at > (double)(in - 1)));
        clipped |= !((uint8_t *)inside->data)[i];
        if (near) {
            index[i] = within(nearest_of(z, at), in);
            continue;
        }
        if (taps > COUNT(w)) {
            refuse_node(c, "scales below 1/64 with antialias are not available in this version");
            return NULL;
        }
        int64_t first = (int64_t)floor(at) - taps / 2 + 1;
        for (int k = 0; k < taps; k++) {
            bool there = first + k >= 0 && first + k < in;
            w[k] = weight_of(z, squeeze * ((double)(first + k) - at));
            w[k] = z->outside_counts || there ? w[k] : 0;
            sum += w[k];
            index[i * taps + k] = within(first + k, in);
        }
        for (int k = 0; k < taps; k++)
            ((float *)weights->data)[i * taps + k] = (float)(sum != 0 && (!z->outside_counts || z->antialias) ? w[k] / sum : w[k]);
    }
    OpCall call = call2(m, "gather", x, numbers(m, TYPE_i64, (int)(out * taps), index));
    call_int(&call, "axis", axis);
    x = emit(m, &call);
    Size dims[RANK_MAX], of_weights[RANK_MAX];
    for (int i = 0; x != NULL && i <= rank_of(x); i++) {
        dims[i] = i == axis ? whole(m, out) : i == axis + 1 ? whole(m, taps) : dim_of(x, i < axis ? i : i - 1);
        of_weights[i] = i == axis ? whole(m, out) : i == axis + 1 ? whole(m, taps) : whole(m, 1);
    }
    if (!near && x != NULL) {
        int rank = rank_of(x);
        x = op2(m, "mul", reshape_to(m, x, rank + 1, dims), reshape_to(m, constant(m, weights), rank + 1, of_weights));
        x = reduced(m, "sum", x, 1, (int64_t[]){axis + 1}, false);
    }
    if (clipped && x != NULL) {
        for (int i = 0; i < rank_of(x); i++)
            dims[i] = i == axis ? whole(m, out) : whole(m, 1);
        x = op3(m, "where", reshape_to(m, constant(m, inside), rank_of(x), dims), x, number(m, x->type.dtype, z->extra));
    }
    return x;
}

static void zoom(OnnxCall *c, const Zoom *z, int n, const int64_t *axes, const double *scales, const int64_t *sizes, const double *roi)
{
    Value *x = c->in[0];
    DType type = x->type.dtype;
    bool near = strcmp(z->how, "nearest") == 0;
    if (!near)
        x = cast_to(c->m, x, TYPE_f32);
    if (!near && type == TYPE_f64) {
        refuse_node(c, "elements of type f64 are not available in this version");
        return;
    }
    for (int i = 0; i < n && !c->m->failed; i++) {
        int64_t in, out, axis = axes[i];
        double start = roi != NULL ? roi[i] : 0, end = roi != NULL ? roi[n + i] : 1;
        if (!size_known(dim_of(c->in[0], (int)axis), &in)) {
            if (scales != NULL && scales[i] == 1 && roi == NULL)
                continue;
            refuse_node(c, "an axis whose size is known only when running is not available in this version");
            return;
        }
        out = sizes != NULL ? sizes[i] : (int64_t)floor((double)in * (strcmp(z->where, "tf_crop_and_resize") == 0 ? end - start : 1) * scales[i]);
        double scale = scales != NULL ? scales[i] : (double)out / (double)in;
        if (out < 0 || out > 1 << 24 || !(scale > 0)) {
            refuse_node(c, "an axis of %lld elements is not available", (long long)out);
            return;
        }
        if (out != in || scale != 1 || strcmp(z->where, "tf_crop_and_resize") == 0)
            x = zoom_axis(c, x, (int)axis, z, scale, in, out, start, end);
    }
    c->out[0] = x == c->in[0] ? op1(c->m, "identity", x) : cast_to(c->m, x, type);
}

static int known_list(OnnxCall *c, Value *v, const char *what, double *to, int room)
{
    const Tensor *t = known_value(c->m, v);
    int64_t unused[1];
    if (t == NULL) {
        if (!c->m->failed && v != NULL)
            known_ints(c, v, what, unused, 0);
        return -1;
    }
    if (tensor_count(t) > room) {
        refuse_node(c, "%s has too many numbers", what);
        return -1;
    }
    for (int64_t i = 0; i < tensor_count(t); i++)
        to[i] = tensor_get(t, i);
    return (int)tensor_count(t);
}

static bool one_of(OnnxCall *c, const char *what, const char *word, const char *list)
{
    size_t length = strlen(word);
    for (const char *p = list; *p != 0; p += strcspn(p, " "), p += strspn(p, " "))
        if (strcspn(p, " ") == length && strncmp(p, word, length) == 0)
            return true;
    refuse_node(c, "%s = %s is not known", what, word);
    return false;
}

void onnx_resize(OnnxCall *c)
{
    int rank = rank_of(c->in[0]), n_axes = c->version >= 18 ? 0 : -1, n, n_roi = 0;
    int64_t axes[RANK_MAX], sizes[RANK_MAX];
    double scales[RANK_MAX], roi[2 * RANK_MAX];
    Zoom z = {.how = word_of(c, "mode", "nearest")};
    bool old = c->version < 11;
    z.where = old ? "asymmetric" : word_of(c, "coordinate_transformation_mode", "half_pixel");
    z.nearest = old ? "floor" : word_of(c, "nearest_mode", "round_prefer_floor");
    z.cubic = old ? -0.75 : float_of(c, "cubic_coeff_a", -0.75);
    z.outside_counts = old || int_of(c, "exclude_outside", 0) == 0;
    z.extra = old ? 0 : float_of(c, "extrapolation_value", 0);
    z.antialias = c->version >= 18 && int_of(c, "antialias", 0) != 0;
    const char *policy = c->version >= 18 ? word_of(c, "keep_aspect_ratio_policy", "stretch") : "stretch";
    if (c->version >= 18)
        n_axes = ints_of(c, "axes", axes, RANK_MAX);
    if (!one_of(c, "mode", z.how, "nearest linear cubic") || !one_of(c, "nearest_mode", z.nearest, "round_prefer_floor round_prefer_ceil floor ceil") ||
        !one_of(c, "coordinate_transformation_mode", z.where, "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_crop_and_resize tf_half_pixel_for_nn") ||
        !one_of(c, "keep_aspect_ratio_policy", policy, "stretch not_larger not_smaller"))
        return;
    bool crop = strcmp(z.where, "tf_crop_and_resize") == 0;
    for (int i = 0; i < (n_axes < 0 ? rank : n_axes); i++)
        axes[i] = n_axes < 0 ? i : axis_of(c, axes[i], rank);
    n = n_axes < 0 ? rank : n_axes;
    Value *scales_in = input_of(c, old ? 1 : 2), *sizes_in = old ? NULL : input_of(c, 3);
    const Tensor *known = known_value(c->m, scales_in);
    if (sizes_in != NULL && known != NULL && tensor_count(known) == 0)
        scales_in = NULL;                               // opset 11 has an empty list for "not given"
    if (crop && (n_roi = known_list(c, input_of(c, 1), "the region", roi, 2 * RANK_MAX)) != 2 * n) {
        refuse_node(c, "its region should have %d numbers", 2 * n);
        return;
    }
    bool by_size = scales_in == NULL;
    if (by_size ? known_ints(c, sizes_in, "the sizes", sizes, RANK_MAX) != n : known_list(c, scales_in, "the scales", scales, RANK_MAX) != n) {
        refuse_node(c, "its scales or sizes should have %d numbers", n);
        return;
    }
    if (by_size && strcmp(policy, "stretch") != 0) {
        double best = 0;
        for (int i = 0; i < n; i++) {
            int64_t in;
            if (!size_known(dim_of(c->in[0], (int)axes[i]), &in) || in == 0) {
                refuse_node(c, "an axis whose size is known only when running is not available in this version");
                return;
            }
            double s = (double)sizes[i] / (double)in;
            best = i == 0 || (strcmp(policy, "not_larger") == 0 ? s < best : s > best) ? s : best;
        }
        for (int i = 0; i < n; i++) {
            int64_t in;
            size_known(dim_of(c->in[0], (int)axes[i]), &in);
            scales[i] = best;
            sizes[i] = (int64_t)floor(best * (double)in + 0.5);
        }
        zoom(c, &z, n, axes, scales, sizes, crop ? roi : NULL);
        return;
    }
    zoom(c, &z, n, axes, by_size ? NULL : scales, by_size ? sizes : NULL, crop ? roi : NULL);
}

void onnx_upsample(OnnxCall *c)
{
    int64_t axes[RANK_MAX];
    double scales[RANK_MAX];
    int rank = rank_of(c->in[0]), n;
    Zoom z = {.how = word_of(c, "mode", "nearest"), .where = "asymmetric", .nearest = "floor", .outside_counts = true};
    if (!one_of(c, "mode", z.how, "nearest linear"))
        return;
    if (c->version < 9) {
        const Onnx__Attribute *a = attribute(c, "scales");
        n = a != NULL && a->n_floats <= RANK_MAX ? (int)a->n_floats : -1;
        for (int i = 0; i < n; i++)
            scales[i] = (double)a->floats[i];
    } else
        n = known_list(c, input_of(c, 1), "the scales", scales, RANK_MAX);
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    if (n != rank)
        refuse_node(c, "its scales should have %d numbers", rank);
    else
        zoom(c, &z, n, axes, scales, NULL, NULL);
}
