// activation.c: the functions between layers, element by element. Where the plain formula would overflow or lose all
// digits at an end, the row has the form that does not.
#include "op.h"

#define ACTIVATION(id, text, ...)                                                                                        \
    const OpDef op_##id = {.name = #id, .brief = text, .inputs = "x: float", .outputs = "y", .shape = same_shape,         \
                           .traits = OP_DATA, .along = "each", .precision = "any", .quantize = "int8", __VA_ARGS__}
// 0 is a kink of some; the cases keep away from the kinks
#define ALL_CASES .cases = CASES("x: f32[2,3]", "x: f32[N,5] in -4 4", "x: f32[]", "x: f32[0,4]", "x: f32[1]")
#define KINK_CASES .cases = CASES("x: f32[2,3] in 0.1 2", "x: f32[N,5] in -2 -0.1", "x: f32[0,4]", "x: f32[1] in 0.1 2")

static void relu_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    dx[0] = build_map2(b, "select(x0 > 0, x1, 0)", node->out[0], dy[0]);
}

ACTIVATION(relu, "max(x, 0): keeps what is positive", .formula = "max(x, 0)", .grad = relu_grad, .onnx = {{"Relu", 6, 0}},
           .doc = "The gradient passes where the result is positive; at 0 it is 0, as in PyTorch. NaN stays NaN.", KINK_CASES);

ACTIVATION(leaky_relu, "x, and slope times x where it is negative", .doc = "The negative side keeps a little of its gradient (Maas et al. 2013). PyTorch calls the slope negative_slope.", .formula = "select(x > 0, x, slope * x)", .example = "y = leaky_relu(x, 0.2)",
           .attrs = {{.name = "slope", .kind = ATTR_FLOAT, .initial = "0.01", .positional = true, .onnx = "alpha", .brief = "of the negative side"}},
           .onnx = {{"LeakyRelu", 6, 0}}, KINK_CASES);

ACTIVATION(relu6, "min(max(x, 0), 6)", .doc = "Keeps numbers small for arithmetic with few bits (MobileNet).", .formula = "min(max(x, 0), 6)", .cases = CASES("x: f32[2,3] in 0.1 5.9", "x: f32[N,5] in -2 -0.1", "x: f32[4] in 6.1 9"));

ACTIVATION(elu, "x, and alpha (exp(x) - 1) where it is negative (Clevert et al. 2016)", .doc = "Negative values go to -alpha smoothly, so means stay nearer to 0.", .formula = "select(x > 0, x, alpha * expm1(x))", .example = "y = elu(x)",
           .attrs = {{.name = "alpha", .kind = ATTR_FLOAT, .initial = "1", .brief = "how far below zero it goes"}}, .onnx = {{"Elu", 6, 0}}, KINK_CASES);

ACTIVATION(celu, "x, and alpha (exp(x / alpha) - 1) where it is negative (Barron 2017)", .doc = "Unlike elu its derivative is continuous for every alpha.", .formula = "select(x > 0, x, alpha * expm1(x / alpha))", .example = "y = celu(x, alpha = 0.5)",
           .attrs = {{.name = "alpha", .kind = ATTR_FLOAT, .initial = "1", .least = 1e-6, .most = 1e6, .brief = "how far below zero it goes"}}, .onnx = {{"Celu", 12, 0}}, KINK_CASES);

ACTIVATION(selu, "elu scaled so that layers keep mean 0 and variance 1 (Klambauer et al. 2017)", .doc = "The two constants make mean 0 and variance 1 a fixed point, if weights start with variance 1 / fan_in.",
           .formula = "1.0507009873554804934193349852946 * select(x > 0, x, 1.6732632423543772848170429916717 * expm1(x))", .onnx = {{"Selu", 6, 0}}, KINK_CASES);

ACTIVATION(sigmoid, "1 / (1 + exp(-x))", .doc = "Computed without overflow on both sides. For a loss take the logits: bce_with_logits.", .formula = "sigmoid(x)", .onnx = {{"Sigmoid", 6, 0}}, ALL_CASES);
ACTIVATION(tanh, "the hyperbolic tangent", .doc = "tanh x = 2 sigmoid(2 x) - 1.", .formula = "tanh(x)", .onnx = {{"Tanh", 6, 0}}, ALL_CASES);

ACTIVATION(hard_sigmoid, "a straight line for the sigmoid: alpha x + beta, kept in 0 … 1", .doc = "No exponential, so cheap where there is no fast one. Frameworks differ in the slope: 1/6 in PyTorch, 0.2 in Keras and as ONNX default.", .formula = "min(max(alpha * x + beta, 0), 1)", .example = "y = hard_sigmoid(x)",
           .attrs = {{.name = "alpha", .kind = ATTR_FLOAT, .initial = "0.16666666666666666", .brief = "the slope (PyTorch's; ONNX has 0.2 if nothing is said)"},
                     {.name = "beta", .kind = ATTR_FLOAT, .initial = "0.5", .brief = "the value at 0"}}, .onnx = {{"HardSigmoid", 6, 0}},
           .cases = CASES("x: f32[2,3]", "x: f32[4] in 3.1 5", "x: f32[N] in -5 -3.1"));

ACTIVATION(hard_swish, "x times hard_sigmoid(x) (Howard et al. 2019)", .doc = "silu with the straight line in place of the sigmoid (MobileNetV3).", .formula = "x * min(max(x / 6 + 0.5, 0), 1)", .onnx = {{"HardSwish", 14, 0}},
           .cases = CASES("x: f32[2,3]", "x: f32[4] in 3.1 5", "x: f32[N] in -5 -3.1"));

ACTIVATION(silu, "x sigmoid(x), also called swish (Elfwing et al. 2018)", .doc = "Smooth, and slightly negative before 0, with its minimum -0.278 at -1.278.", .formula = "x * sigmoid(x)", ALL_CASES);

ACTIVATION(softplus, "log(1 + exp(x))", .formula = "max(x, 0) + log1p(exp(-abs(x)))", .onnx = {{"Softplus", 1, 0}},
           .doc = "Written as max(x, 0) + log(1 + exp(-|x|)), which does not overflow.", ALL_CASES);

ACTIVATION(log_sigmoid, "log(sigmoid(x))", .formula = "min(x, 0) - log1p(exp(-abs(x)))",
           .doc = "Written as min(x, 0) - log(1 + exp(-|x|)), which stays finite.", ALL_CASES);

ACTIVATION(mish, "x tanh(softplus(x)) (Misra 2020)", .doc = "Close to silu, a little steeper. Costs two exponentials.", .formula = "x * tanh(max(x, 0) + log1p(exp(-abs(x))))", .onnx = {{"Mish", 18, 0}}, ALL_CASES);
ACTIVATION(softsign, "x / (1 + |x|)", .doc = "Like tanh, but it reaches its ends more slowly.", .formula = "x / (1 + abs(x))", .onnx = {{"Softsign", 1, 0}}, .cases = CASES("x: f32[2,3] in 0.1 2", "x: f32[N,5] in -2 -0.1"));

// In the tanh form the argument is kept in -10 … 10, where tanh is 1 to the last bit of a double: its cube cannot overflow,
// and the gradient stays finite.
static void gelu_expand(Builder *b, const Node *node, Value **out)
{
    const Attr *form = node_attr(node, "approximate");
    const char *z = "min(max(x0, -10), 10)";
    const char *f = strcmp(form->word, "tanh") != 0 ? "0.5 * x0 * (1 + erf(x0 * 0.70710678118654752))"
                  : arena_printf(b->cx->arena, "0.5 * x0 * (1 + tanh(0.79788456080286536 * (%s + 0.044715 * %s * %s * %s)))", z, z, z, z);
    out[0] = build_map(b, f, 1, node->in);
}

const OpDef op_gelu = {
    .name = "gelu", .brief = "x times the normal distribution function of x (Hendrycks and Gimpel 2016)",
    .doc = "none: x/2 (1 + erf(x / sqrt(2))) · tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as GPT-2 has it.",
    .example = "y = gelu(x, approximate = tanh)", .inputs = "x: float", .outputs = "y", .shape = same_shape, .expand = gelu_expand,
    .attrs = {{.name = "approximate", .kind = ATTR_WORD, .initial = "none", .words = "none tanh", .brief = "which formula"}},
    .traits = OP_DATA, .along = "each", .precision = "any", .onnx = {{"Gelu", 20, 0}},
    .cases = CASES("x: f32[2,3]", "x: f32[N,5] in -4 4; approximate = tanh", "x: f32[0,4]"),
};

// The slope belongs to channels: one for all, or one for each place along axis 1.
static bool prelu_shape(OpCall *call)
{
    int64_t count = call_attr(call, "count")->i;
    const Type *x = &call->in[0]->type;
    Size dim[] = {size_const(call->cx, count)};
    if (count > 1 && (x->shape.rank < 2 || !size_equal(x->shape.dim[1], dim[0])))
        return op_error(call, MESSAGE_E0311, "count of prelu", "1, or the number of channels", arena_printf(call->cx->arena, "%d", (int)count));
    return op_owned(call, "weight", type_of(x->dtype, 1, dim)) && same_shape(call);
}

static void prelu_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0], *slope = node->in[1];
    Shape shape = {.rank = x->type.shape.rank};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i == 1 ? slope->type.shape.dim[0] : size_const(b->cx, 1);
    if (shape.rank == 1)
        shape.dim[0] = slope->type.shape.dim[0];
    out[0] = build_map2(b, "select(x0 > 0, x0, x1 * x0)", x, build_reshape(b, slope, &shape));
}

const OpDef op_prelu = {
    .name = "prelu", .brief = "leaky_relu with a slope that is learned (He et al. 2015)",
    .doc = "The weight starts at 0.25. Weight decay pulls it towards relu; He et al. used none.", .inputs = "x: float, weight: float", .outputs = "y",
    .example = "y = prelu(x) @act", .attrs = {{.name = "count", .kind = ATTR_INT, .initial = "1", .least = 1, .most = 1e9, .positional = true, .brief = "slopes: 1, or one a channel"}},
    .owned = {{"weight", ROLE_WEIGHT, "constant(0.25)", NULL}}, .shape = prelu_shape, .expand = prelu_expand, .along = "each", .precision = "any", .onnx = {{"PRelu", 7, 0}},
    .cases = CASES("x: f32[2,3] in -2 -0.1; weight: f32[1]", "x: f32[N,4,2] in -2 -0.1; weight: f32[4]; count = 4", "x: f32[N,4] in 0.1 2; weight: f32[1]"),
};

ACTIVATION(hard_tanh, "x, but not below `least` nor above `most`", .doc = "At a bound half of the gradient passes; clip passes all of it.", .formula = "min(max(x, least), most)", .example = "y = hard_tanh(x)",
           .attrs = {{.name = "least", .kind = ATTR_FLOAT, .initial = "-1", .brief = "the lower bound"}, {.name = "most", .kind = ATTR_FLOAT, .initial = "1", .brief = "the upper bound"}},
           .cases = CASES("x: f32[2,3] in -0.9 0.9", "x: f32[N,5] in 1.1 3", "x: f32[7] in -3 -1.1"));

ACTIVATION(hard_shrink, "x, and 0 between -bound and bound", .formula = "select(abs(x) > bound, x, 0)", .example = "y = hard_shrink(x)", .attrs = {{.name = "bound", .kind = ATTR_FLOAT, .initial = "0.5", .least = 0, .most = 1e30, .onnx = "lambd", .brief = "how near to 0"}},
           .onnx = {{"Shrink", 9, 0}}, .cases = CASES("x: f32[2,3] in 0.6 2", "x: f32[N,5] in -0.4 0.4", "x: f32[1] in -2 -0.6"));

ACTIVATION(soft_shrink, "x brought nearer to 0 by bound, and 0 within it", .doc = "The proximal step of the l1 norm: what solves min |z| bound + (x - z)^2 / 2.", .formula = "select(x > bound, x - bound, select(x < -bound, x + bound, 0))", .example = "y = soft_shrink(x)",
           .attrs = {{.name = "bound", .kind = ATTR_FLOAT, .initial = "0.5", .least = 0, .most = 1e30, .onnx = "bias", .brief = "by how much"}}, .onnx = {{"Shrink", 9, 0}}, .cases = CASES("x: f32[2,3] in 0.6 2", "x: f32[N,5] in -0.4 0.4", "x: f32[1] in -2 -0.6"));

ACTIVATION(tanh_shrink, "x - tanh(x)", .formula = "x - tanh(x)", ALL_CASES);

ACTIVATION(threshold, "x where it is above a bound, else a number", .formula = "select(x > bound, x, value)", .example = "y = threshold(x, 0.1)",
           .attrs = {{.name = "bound", .kind = ATTR_FLOAT, .initial = "0", .positional = true, .onnx = "alpha", .brief = "the bound"}, {.name = "value", .kind = ATTR_FLOAT, .initial = "0", .brief = "what stands for the others"}}, .onnx = {{"ThresholdedRelu", 10, 0}}, KINK_CASES);

static bool glu_shape(OpCall *call)
{
    Context *cx = call->cx;
    Type type = call->in[0]->type;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", type.shape.rank, &axis))
        return false;
    Size half = size_over(cx, type.shape.dim[axis], size_const(cx, 2));
    if (half == NULL)
        return op_error(call, MESSAGE_E0306, "half of glu", arena_printf(cx->arena, "axis %d of %s, divided by 2", axis, type_text(cx, &type)));
    type.shape.dim[axis] = half;
    return op_one(call, type);
}

static void glu_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0];
    int axis = node_axis(node, "axis", x->type.shape.rank);
    Size half = node->out[0]->type.shape.dim[axis];
    const char *gate = node_attr(node, "gate")->word, *f = strcmp(gate, "silu") == 0 ? "x0 * sigmoid(x0) * x1" : "x1 * sigmoid(x0)";
    Value *first = build_slice(b, x, axis, size_const(b->cx, 0), half, 1), *second = build_slice(b, x, axis, half, half, 1);
    bool swish = strcmp(gate, "silu") == 0;
    out[0] = build_map2(b, f, swish ? first : second, swish ? second : first);
}

const OpDef op_glu = {
    .name = "glu", .brief = "one half of an axis, opened and closed by the other (Dauphin et al. 2017)", .inputs = "x: float", .outputs = "y", .example = "y = glu(dense(x, 512))",
    .doc = "With halves a, b: a sigmoid(b). With gate = silu it is silu(a) b, the SwiGLU of Shazeer 2020 as Llama has it.",
    .attrs = {{.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "which axis is halved"}, {.name = "gate", .kind = ATTR_WORD, .initial = "sigmoid", .words = "sigmoid silu", .brief = "what opens and closes"}},
    .shape = glu_shape, .expand = glu_expand, .traits = OP_DATA, .along = "each", .precision = "any", .cases = CASES("x: f32[2,6]", "x: f32[N,4,3]; axis = 1", "x: f32[2]; gate = silu", "x: f32[N,10]; gate = silu"),
};
