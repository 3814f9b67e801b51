// math.c: arithmetic, comparisons and logic, element by element. Each row is a formula; gradient, fusion and code follow.
#include <float.h>

#include "op.h"

// A row of one operand; the rest (attributes, ONNX names, …) comes as designated initialisers.
#define UNARY(id, kind, f, text, ...)  UNARY_BY(id, kind, same_shape, f, text, __VA_ARGS__)
#define NUMBER(id, f, text, ...)       UNARY_BY(id, "any", same_number_shape, f, text, __VA_ARGS__)
#define UNARY_BY(id, kind, rule, f, text, ...)                                                                                   \
    const OpDef op_##id = {.name = #id, .brief = text, .inputs = "x: " kind, .outputs = "y", .shape = rule,              \
                           .formula = f, .traits = OP_DATA, .along = "each", .precision = "any", __VA_ARGS__}
#define BINARY(id, kind, rule, f, text, ...)                                                                            \
    const OpDef op_##id = {.name = #id, .brief = text, .inputs = "x: " kind ", y: like x", .outputs = "z", .shape = rule, \
                           .formula = f, .along = "each", .precision = "any", __VA_ARGS__}
#define PLAIN_CASES .cases = CASES("x: f32[2,3]", "x: f32[N,5]", "x: f32[]", "x: f32[0,4]", "x: f32[1]")
#define POSITIVE_CASES .cases = CASES("x: f32[2,3] in 0.2 3", "x: f32[N] in 0.2 3", "x: f32[]  in 0.2 3", "x: f32[0,4]")
#define PAIR_CASES .cases = CASES("x: f32[2,3]; y: f32[2,3]", "x: f32[N,4]; y: f32[4]", "x: f32[N,1,2]; y: f32[5,1]", "x: f32[]; y: f32[N]", "x: f32[0,3]; y: f32[3]")
#define FLAT "constant between its steps, so the gradient is zero"
#define TRUTH "the result is true or false"

// --- arithmetic ---------------------------------------------------------------------------------------------------------------

BINARY(add, "any", broadcast_number_shape, "x + y", "x + y", .traits = OP_COMMUTES | OP_DATA, .example = "z = x + y", .onnx = {{"Add", 7, 0}}, PAIR_CASES);
BINARY(sub, "any", broadcast_number_shape, "x - y", "x - y", .traits = OP_DATA, .example = "z = x - y", .onnx = {{"Sub", 7, 0}}, PAIR_CASES);
BINARY(mul, "any", broadcast_number_shape, "x * y", "x * y", .traits = OP_COMMUTES | OP_DATA, .example = "z = x * y", .onnx = {{"Mul", 7, 0}}, PAIR_CASES);
BINARY(div, "float", broadcast_number_shape, "x / y", "x / y; of integers the quotient is a float", .traits = OP_DATA, .example = "z = x / y",
       .onnx = {{"Div", 7, 0}}, .cases = CASES("x: f32[2,3]; y: f32[2,3] in 0.3 2", "x: f32[N,4]; y: f32[4] in 0.3 2", "x: f32[N,1,2]; y: f32[5,1] in 0.3 2"));
BINARY(floordiv, "any", broadcast_number_shape, "floordiv(x, y)", "the quotient rounded down; stays whole for integers", .traits = OP_DATA,
       .example = "z = floordiv(x, 2)", .no_grad = FLAT, .cases = CASES("x: i32[2,3] in -9 9; y: i32[2,3] in 1 4", "x: f32[N,4] in -9 9; y: f32[4] in 1 3"));
BINARY(mod, "any", broadcast_number_shape, "mod(x, y)", "the remainder of floordiv; has the sign of y", .traits = OP_DATA,
       .doc = "mod(x, y) = x - y * floordiv(x, y). The gradient by x is 1; by y none is given (it is -floordiv(x, y) between the jumps).",
       .example = "z = mod(x, 2)", .onnx = {{"Mod", 10, 0}}, .no_grad = "it jumps wherever x is a multiple of y",
       .cases = CASES("x: i32[2,3] in -9 9; y: i32[2,3] in 1 4", "x: f32[N,4] in -9 9; y: f32[4] in 1 3"));
NUMBER(neg, "-x", "-x", .example = "y = -x", .onnx = {{"Neg", 6, 0}}, PLAIN_CASES);
NUMBER(abs, "abs(x)", "the distance from zero", .onnx = {{"Abs", 6, 0}}, .doc = "The gradient at 0 is 0.", .cases = CASES("x: f32[2,3] in 0.1 2", "x: f32[N,5] in -3 -0.1"));
NUMBER(sign, "select(x > 0, 1, select(x < 0, -1, 0))", "1, 0 or -1", .onnx = {{"Sign", 9, 0}}, .no_grad = FLAT, PLAIN_CASES);
NUMBER(square, "x * x", "x * x", PLAIN_CASES);
UNARY(reciprocal, "float", "1 / x", "1 / x", .onnx = {{"Reciprocal", 6, 0}}, POSITIVE_CASES);
UNARY(identity, "any", "x", "x itself", .onnx = {{"Identity", 1, 0}}, PLAIN_CASES);
UNARY(stop_gradient, "any", "x", "x itself, through which no gradient goes back", .example = "y = stop_gradient(f(x) - x) + x",
      .no_grad = "that is its purpose", PLAIN_CASES);

// --- powers, exponentials, logarithms -----------------------------------------------------------------------------------------

UNARY(exp, "float", "exp(x)", "e to the power of x", .onnx = {{"Exp", 6, 0}}, PLAIN_CASES);
UNARY(expm1, "float", "expm1(x)", "exp(x) - 1, exact near 0", PLAIN_CASES);
UNARY(log, "float", "log(x)", "the natural logarithm", .onnx = {{"Log", 6, 0}}, POSITIVE_CASES);
UNARY(log1p, "float", "log1p(x)", "log(1 + x), exact near 0", POSITIVE_CASES);
UNARY(sqrt, "float", "sqrt(x)", "the square root", .onnx = {{"Sqrt", 6, 0}}, POSITIVE_CASES);
UNARY(rsqrt, "float", "1 / sqrt(x)", "1 / sqrt(x)", POSITIVE_CASES);

static bool is_number(const Value *v, double *x)
{
    if (v->kind != VALUE_CONST || v->type.shape.rank != 0)
        return false;
    if (v->type.dtype == TYPE_f32)
        *x = *(const float *)v->data;
    else if (v->type.dtype == TYPE_f64)
        *x = *(const double *)v->data;
    else
        return false;
    return true;
}

// y x^(y-1), which is 0 for y = 0 also at x = 0; x^y log x, which tends to 0 at x = 0.
static void pow_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *x = node->in[0], *y = node->in[1], *g = dy[0];
    double exponent;
    if (is_number(y, &exponent)) {
        const char *f = exponent == 2 ? "2 * x0 * x1" : exponent == 1 ? "x1" : exponent == 0 ? "0 * x1" : exponent == 0.5 ? "0.5 * x1 / sqrt(x0)"
                      : arena_printf(b->cx->arena, "%.17g * pow(x0, %.17g) * x1", exponent, exponent - 1);
        dx[0] = build_map2(b, f, x, g);
        return;
    }
    Value *in[] = {x, y, g, node->out[0]};
    dx[0] = build_sum_to(b, build_map3(b, "select(x1 == 0, 0, x1 * pow(x0, x1 - 1) * x2)", x, y, g), &x->type.shape);
    dx[1] = build_sum_to(b, build_map(b, "select(x0 > 0, x3 * log(x0) * x2, 0)", 4, in), &y->type.shape);
}

BINARY(pow, "any", broadcast_number_shape, "pow(x, y)", "x to the power of y", .traits = OP_DATA, .example = "z = x ^ 2", .grad = pow_grad, .onnx = {{"Pow", 7, 0}},
       .doc = "The gradient by x is y x^(y-1), 0 where y is 0; the gradient by y is x^y log x, 0 where x is not positive.",
       .cases = CASES("x: f32[2,3] in 0.2 2; y: f32[2,3]", "x: f32[N,4] in 0.2 2; y: f32[4]", "x: f32[] in 0.2 2; y: f32[N]"));

// --- waves ------------------------------------------------------------------------------------------------------------------------

UNARY(log2, "float", "log(x) * 1.4426950408889634", "the logarithm to base 2", POSITIVE_CASES);
UNARY(log10, "float", "log(x) * 0.4342944819032518", "the logarithm to base 10", POSITIVE_CASES);
UNARY(exp2, "float", "exp(x * 0.6931471805599453)", "2 to the power of x", PLAIN_CASES);
// From expm1, which keeps the digits near 0; beyond 20 both are half of e^|x|, in two factors that do not overflow too early.
UNARY(sinh, "float", "select(abs(x) < 20, 0.5 * (expm1(x) + expm1(x) / (expm1(x) + 1)), select(x > 0, 1, -1) * 0.5 * exp(0.5 * abs(x)) * exp(0.5 * abs(x)))", "the hyperbolic sine", .onnx = {{"Sinh", 9, 0}}, .cases = CASES("x: f32[2,3]", "x: f32[N,5] in -9 9", "x: f32[]", "x: f32[3] in 21 25"));
UNARY(cosh, "float", "0.5 * exp(0.5 * abs(x)) * exp(0.5 * abs(x)) + 0.5 * exp(-abs(x))", "the hyperbolic cosine", .onnx = {{"Cosh", 9, 0}}, .cases = CASES("x: f32[2,3]", "x: f32[N,5] in -9 9", "x: f32[]"));
UNARY(asinh, "float", "select(x > 0, 1, -1) * select(abs(x) < 1e9, log1p(abs(x) + abs(x) * abs(x) / (1 + sqrt(1 + x * x))), log(abs(x)) + 0.6931471805599453)", "the inverse of sinh", .onnx = {{"Asinh", 9, 0}}, .cases = CASES("x: f32[2,3] in 0.1 2", "x: f32[N,5] in -9 -0.1", "x: f32[1] in 1e10 1e12"));
UNARY(acosh, "float", "log1p(x - 1 + sqrt((x - 1) * (x + 1)))", "the inverse of cosh, for x from 1 on", .onnx = {{"Acosh", 9, 0}}, .cases = CASES("x: f32[2,3] in 1.1 2", "x: f32[N,5] in 2 9"));
UNARY(atanh, "float", "0.5 * (log1p(x) - log1p(-x))", "the inverse of tanh, for x between -1 and 1", .onnx = {{"Atanh", 9, 0}}, .cases = CASES("x: f32[2,3] in -0.9 0.9", "x: f32[N,5] in -0.1 0.1"));
UNARY(sin, "float", "sin(x)", "the sine, of radians", .onnx = {{"Sin", 7, 0}}, PLAIN_CASES);
UNARY(cos, "float", "cos(x)", "the cosine, of radians", .onnx = {{"Cos", 7, 0}}, PLAIN_CASES);
UNARY(tan, "float", "sin(x) / cos(x)", "the tangent, of radians", .onnx = {{"Tan", 7, 0}}, .cases = CASES("x: f32[2,3] in -1 1", "x: f32[N] in -1 1"));
UNARY(erf, "float", "erf(x)", "the error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x", .onnx = {{"Erf", 9, 0}}, PLAIN_CASES);

// --- rounding ---------------------------------------------------------------------------------------------------------------------

UNARY(floor, "float", "floor(x)", "the next whole number below", .onnx = {{"Floor", 6, 0}}, .no_grad = FLAT, PLAIN_CASES);
UNARY(ceil, "float", "ceil(x)", "the next whole number above", .onnx = {{"Ceil", 6, 0}}, .no_grad = FLAT, PLAIN_CASES);
UNARY(trunc, "float", "select(x < 0, ceil(x), floor(x))", "the next whole number towards 0", .no_grad = FLAT, PLAIN_CASES);
UNARY(round, "float", "round(x)", "the nearest whole number, halves to the even one", .onnx = {{"Round", 11, 0}}, .no_grad = FLAT, PLAIN_CASES);

// --- the larger and the smaller ---------------------------------------------------------------------------------------------------

BINARY(minimum, "any", broadcast_number_shape, "min(x, y)", "the smaller of two", .traits = OP_COMMUTES | OP_DATA, .example = "z = minimum(x, 1)",
       .doc = "Where both are equal, each gets half of the gradient. NaN wins. Along an axis: min.", .onnx = {{"Min", 8, 0}}, PAIR_CASES);
BINARY(maximum, "any", broadcast_number_shape, "max(x, y)", "the larger of two", .traits = OP_COMMUTES | OP_DATA, .example = "z = maximum(x, 0)",
       .doc = "Where both are equal, each gets half of the gradient. NaN wins. Along an axis: max.", .onnx = {{"Max", 8, 0}}, PAIR_CASES);

static void clip_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    double least = node_attr(node, "least")->f, most = node_attr(node, "most")->f;
    Arena *arena = b->cx->arena;
    const char *f = "x1";
    if (most <= DBL_MAX)
        f = arena_printf(arena, "select(x0 > %.17g, 0, %s)", most, f);
    if (least >= -DBL_MAX)
        f = arena_printf(arena, "select(x0 < %.17g, 0, %s)", least, f);
    dx[0] = build_map2(b, f, node->in[0], dy[0]);
}

UNARY(clip, "float", "min(max(x, least), most)", "x, but not below `least` nor above `most`", .example = "y = clip(x, 0, 1)", .grad = clip_grad,
      .attrs = {{.name = "least", .kind = ATTR_FLOAT, .initial = "-1e999", .positional = true, .onnx = "min", .brief = "the lower bound"},
                {.name = "most", .kind = ATTR_FLOAT, .initial = "1e999", .positional = true, .onnx = "max", .brief = "the upper bound"}},
      .doc = "The gradient passes where the bounds are kept, the bounds included.", .onnx = {{"Clip", 6, 0}},
      .cases = CASES("x: f32[2,3]; least = -0.5; most = 0.75", "x: f32[N,5]; least = 0", "x: f32[4]; most = 0.25"));

// --- comparisons -----------------------------------------------------------------------------------------------------------------

#define COMPARISON(id, sign, words, ...) \
    BINARY(id, "any", broadcast_bool_shape, "x " sign " y", words, .example = "z = x " sign " y", .no_grad = TRUTH, \
           .cases = CASES("x: f32[2,3]; y: f32[2,3]", "x: i32[N,4] in 0 3; y: i32[4] in 0 3"), __VA_ARGS__)

COMPARISON(equal, "==", "whether x and y are equal", .traits = OP_COMMUTES | OP_DATA, .onnx = {{"Equal", 7, 0}});
COMPARISON(not_equal, "!=", "whether x and y differ", .traits = OP_COMMUTES | OP_DATA);
COMPARISON(less, "<", "whether x is below y", .traits = OP_DATA, .onnx = {{"Less", 7, 0}});
COMPARISON(less_equal, "<=", "whether x is not above y", .traits = OP_DATA, .onnx = {{"LessOrEqual", 12, 0}});
COMPARISON(greater, ">", "whether x is above y", .traits = OP_DATA, .onnx = {{"Greater", 7, 0}});
COMPARISON(greater_equal, ">=", "whether x is not below y", .traits = OP_DATA, .onnx = {{"GreaterOrEqual", 12, 0}});

// --- logic ------------------------------------------------------------------------------------------------------------------------

#define TRUTH_CASES .cases = CASES("x: bool[2,3]; y: bool[2,3]", "x: bool[N,4]; y: bool[4]")

const OpDef op_and = {.name = "and", .brief = "whether both are true", .inputs = "x: bool, y: bool", .outputs = "z", .shape = broadcast_bool_shape, .along = "each",
    .formula = "and(x, y)", .traits = OP_COMMUTES | OP_DATA, .example = "z = x and y", .no_grad = TRUTH, .onnx = {{"And", 7, 0}}, TRUTH_CASES};
const OpDef op_or = {.name = "or", .brief = "whether one of them is true", .inputs = "x: bool, y: bool", .outputs = "z", .shape = broadcast_bool_shape, .along = "each",
    .formula = "or(x, y)", .traits = OP_COMMUTES | OP_DATA, .example = "z = x or y", .no_grad = TRUTH, .onnx = {{"Or", 7, 0}}, TRUTH_CASES};
const OpDef op_xor = {.name = "xor", .brief = "whether just one of them is true", .inputs = "x: bool, y: bool", .outputs = "z", .shape = broadcast_bool_shape, .along = "each",
    .formula = "x != y", .traits = OP_COMMUTES | OP_DATA, .example = "z = xor(x, y)", .no_grad = TRUTH, .onnx = {{"Xor", 7, 0}}, TRUTH_CASES};
const OpDef op_not = {.name = "not", .brief = "whether x is false", .inputs = "x: bool", .outputs = "y", .shape = same_shape, .along = "each",
    .formula = "not(x)", .traits = OP_DATA, .example = "y = not x", .no_grad = TRUTH, .onnx = {{"Not", 1, 0}}, .cases = CASES("x: bool[2,3]", "x: bool[N]")};

const OpDef op_isnan = {.name = "isnan", .brief = "whether x is not a number", .inputs = "x: float", .outputs = "y", .shape = same_bool_shape, .along = "each",
    .formula = "x != x", .traits = OP_DATA, .example = "y = isnan(x)", .no_grad = TRUTH, .onnx = {{"IsNaN", 9, 0}}, PLAIN_CASES};
const OpDef op_isinf = {.name = "isinf", .brief = "whether x is infinite", .inputs = "x: float", .outputs = "y", .shape = same_bool_shape, .along = "each",
    .formula = "and(x == x, x - x != 0)", .traits = OP_DATA, .example = "y = isinf(x)", .no_grad = TRUTH, .onnx = {{"IsInf", 10, 0}}, PLAIN_CASES};

const OpDef op_where = {
    .name = "where", .brief = "x where the condition is true, else y", .inputs = "condition: bool, x: any, y: like x", .outputs = "z",
    .doc = "Both x and y are computed; only the chosen one gets a gradient.", .example = "z = where(x > 0, x, 0.1 * x)",
    .shape = select_shape, .formula = "select(condition, x, y)", .traits = OP_DATA, .along = "each", .precision = "any", .onnx = {{"Where", 9, 0}},
    .cases = CASES("condition: bool[2,3]; x: f32[2,3]; y: f32[2,3]", "condition: bool[N,1]; x: f32[N,4]; y: f32[4]"),
};

// --- other element types ----------------------------------------------------------------------------------------------------------

static bool cast_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    type.dtype = call_attr(call, "type")->type;
    return op_one(call, type);
}

static void cast_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *index[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        index[i] = e_axis(cx, i);
    DType to = node->out[0]->type.dtype;
    Expr *x = e_load(cx, node->in[0], index);
    out->body = to != TYPE_bool ? expr_cast(cx, to, x) : e_prim(cx, PRIM_ne, x, e_zero(cx, x->type));
}

static void cast_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    if (type_is_float(node->in[0]->type.dtype) && type_is_float(node->out[0]->type.dtype))
        dx[0] = build_cast(b, dy[0], node->in[0]->type.dtype);
}

const OpDef op_cast = {
    .name = "cast", .brief = "the same numbers in another element type", .inputs = "x: any", .outputs = "y", .example = "y = cast(x, f16)",
    .doc = "Floats become integers by dropping the fraction. Everything but 0 is true.",
    .attrs = {{.name = "type", .kind = ATTR_TYPE, .positional = true, .onnx = "to", .brief = "the new element type"}},
    .shape = cast_shape, .compute = cast_compute, .grad = cast_grad, .traits = OP_DATA, .along = "each", .precision = "any", .onnx = {{"Cast", 6, 0}},
    .cases = CASES("x: f32[2,3]; type = f64", "x: i32[N,4] in -5 5; type = f32", "x: f32[N] in -5 5; type = i32", "x: i32[5] in 0 2; type = bool", "x: bool[4]; type = f32"),
};

// --- any formula --------------------------------------------------------------------------------------------------------------------

static bool map_shape(OpCall *call)
{
    Type type = {.dtype = call_attr(call, "formula")->formula->type};
    return op_broadcast(call, &type.shape) && op_one(call, type);
}

const OpDef op_map = {
    .name = "map", .brief = "a formula over x0, x1, …, element by element", .inputs = "*x: any", .outputs = "y", .traits = OP_INTERNAL,
    .doc = "What passes make of elementwise ops and of gradients: one node for one formula. Broadcasts as numpy.",
    .example = "y = map(x, g, formula = x1 * select(x0 > 0, 1, 0))",
    .attrs = {{.name = "formula", .kind = ATTR_FORMULA, .brief = "over x0, x1, …"}},
    .shape = map_shape, .along = "each", .precision = "any",
    .cases = CASES("x0: f32[2,3]; x1: f32[3]; formula = x0 * exp(x1) - x0 / 2", "x0: f32[N,1]; x1: f32[4]; x2: f32[]; formula = select(x0 > 0, x1, x2) * x0"),
};
