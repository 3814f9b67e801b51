// build_val.c: numbers, lists and words, which exist only while a model is built. Numbers are fractions of 64-bit integers
// as long as they fit what was written: 1/3 * 3 is 1. What leaves 64 bits is an error, what is not rational is a double.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

// --- making and showing ---------------------------------------------------------------------------------------------------

Val val_int(int64_t n)
{
    return (Val){.kind = VAL_NUMBER, .number = {true, n, 1, (double)n}};
}

Val val_real(double x)
{
    return (Val){.kind = VAL_NUMBER, .number = {false, 0, 1, x}};
}

Val val_bool(bool b)
{
    Val v = val_int(b);
    v.kind = VAL_BOOL;
    return v;
}

Val val_tensor(Value *tensor) { return (Val){.kind = VAL_TENSOR, .tensor = tensor}; }

Val val_size(Size size)
{
    int64_t n;
    return size_known(size, &n) ? val_int(n) : (Val){.kind = VAL_SIZE, .size = size};
}

bool val_is_number(const Val *v) { return v->kind == VAL_NUMBER || v->kind == VAL_BOOL; }

bool val_is_whole(const Val *v, int64_t *n)
{
    if (v->kind != VAL_NUMBER || !v->number.exact || v->number.den != 1)
        return false;
    *n = v->number.num;
    return true;
}

const char *val_kind(const Val *v)
{
    static const char *const names[] = {
        "nothing", "a number", "a boolean", "a string", "a word", "a type", "a duration", "a list", "several values",
        "a block", "an op", "a size", "a tensor", "a field of the data",
    };
    return names[v->kind];
}

const char *count_text(Net *net, int n) { return arena_printf(net->arena, n == 1 ? "%d value" : "%d values", n); }

static void number_add(Text *text, const NetNumber *n)
{
    if (n->exact && n->den == 1)
        text_add(text, "%lld", (long long)n->num);
    else
        text_add(text, "%.9g", n->real);
}

static void val_add(Net *net, Text *text, const Val *v)
{
    switch (v->kind) {
    case VAL_NUMBER:   number_add(text, &v->number); break;
    case VAL_BOOL:     text_add(text, "%s", v->number.num ? "true" : "false"); break;
    case VAL_STRING:   text_add(text, "\"%s\"", v->text); break;
    case VAL_WORD:     text_add(text, "%s", v->text); break;
    case VAL_TYPE:     text_add(text, "%s", type_def(v->type)->name); break;
    case VAL_DURATION: number_add(text, &v->number); text_add(text, " %s", v->text); break;
    case VAL_SIZE:     size_print(text, v->size); break;
    case VAL_TENSOR:   type_print(text, &v->tensor->type); break;
    case VAL_BLOCK:    text_add(text, "%s", v->block->name); break;
    case VAL_OP:       text_add(text, "%s", v->op->name); break;
    case VAL_LIST:
    case VAL_TUPLE:
        text_put(text, "[", 1);
        for (int i = 0; i < v->count && i < 16; i++) {
            text_put(text, ", ", i > 0 ? 2 : 0);
            val_add(net, text, &v->items[i]);
        }
        text_add(text, v->count > 16 ? ", …]" : "]");
        break;
    default: text_add(text, "%s", val_kind(v));
    }
}

const char *val_text(Net *net, const Val *v)
{
    Text text = {.arena = net->arena};
    text_put(&text, "", 0);
    val_add(net, &text, v);
    return text.at;
}

// Room for the elements of a list, counted over the whole model: lists are copied when they grow.
Val *list_new(Net *net, const Ast *ast, int64_t count)
{
    Diag *diag = net->cx->diag;
    net->list_elements += count;
    if (count <= diag_limit(diag, LIMIT_net_list_length) && net->list_elements <= diag_limit(diag, LIMIT_net_list_elements))
        return NEW_ARRAY(net->arena, Val, count);
    diag_report_limit(diag, ast->place, count > diag_limit(diag, LIMIT_net_list_length) ? LIMIT_net_list_length : LIMIT_net_list_elements,
                      "this list");
    return NULL;
}

// --- exact arithmetic -----------------------------------------------------------------------------------------------------

typedef __int128 Wide;

static bool narrow(Wide num, Wide den, Val *result)
{
    if (den < 0) {
        num = -num;
        den = -den;
    }
    Wide a = num < 0 ? -num : num, b = den;
    while (b != 0) {
        Wide rest = a % b;
        a = b;
        b = rest;
    }
    if (a > 1) {
        num /= a;
        den /= a;
    }
    if (num > INT64_MAX || num < -(Wide)INT64_MAX || den > INT64_MAX)
        return false;
    *result = val_int((int64_t)num);
    result->number.den = (int64_t)den;
    result->number.real = (double)(int64_t)num / (double)(int64_t)den;
    return true;
}

static bool power(const NetNumber *base, int64_t exponent, Val *result)
{
    Wide num = 1, den = 1;
    for (int64_t i = exponent < 0 ? -exponent : exponent; i > 0; i--) {
        num *= base->num;
        den *= base->den;
        if (num > INT64_MAX || num < -(Wide)INT64_MAX || den > INT64_MAX)
            return false;
        if ((base->num == 0 || base->num == 1 || base->num == -1) && base->den == 1)
            i = i > 2 ? 2 - i % 2 : i;              // 0, 1, -1: only whether the exponent is odd counts
    }
    return exponent >= 0 ? narrow(num, den, result) : narrow(den, num, result);
}

typedef enum Outcome { DONE, TOO_LARGE, BY_ZERO, NOT_EXACT } Outcome;

static Outcome exact(char sign, const NetNumber *a, const NetNumber *b, Val *result)
{
    Wide p = a->num, q = a->den, r = b->num, s = b->den;
    switch (sign) {
    case '+': return narrow(p * s + r * q, q * s, result) ? DONE : TOO_LARGE;
    case '-': return narrow(p * s - r * q, q * s, result) ? DONE : TOO_LARGE;
    case '*': return narrow(p * r, q * s, result) ? DONE : TOO_LARGE;
    case '/': return r == 0 ? BY_ZERO : narrow(p * s, q * r, result) ? DONE : TOO_LARGE;
    default:
        if (s != 1)
            return NOT_EXACT;
        if (p == 0 && r < 0)
            return BY_ZERO;
        return power(a, b->num, result) ? DONE : TOO_LARGE;
    }
}

static double real(char sign, double a, double b)
{
    return sign == '+' ? a + b : sign == '-' ? a - b : sign == '*' ? a * b : sign == '/' ? a / b : pow(a, b);
}

static Val arithmetic(Net *net, const Ast *ast, char sign, const Val *a, const Val *b)
{
    Val result = {0};
    Outcome outcome = a->number.exact && b->number.exact ? exact(sign, &a->number, &b->number, &result) : NOT_EXACT;
    bool fraction = a->number.den != 1 || b->number.den != 1;
    if (outcome == NOT_EXACT || (outcome == TOO_LARGE && fraction)) {
        if (sign == '/' && b->number.real == 0)
            outcome = BY_ZERO;
        else
            return val_real(real(sign, a->number.real, b->number.real));
    }
    if (outcome == BY_ZERO)
        diag_report(net->cx->diag, ast->place, MESSAGE_E0314);
    else if (outcome == TOO_LARGE)
        diag_report(net->cx->diag, ast->place, MESSAGE_E0313, arena_printf(net->arena, "%s %c %s", val_text(net, a), sign, val_text(net, b)));
    else
        return result;
    note_frames(net);
    return (Val){0};
}

static int compare(const NetNumber *a, const NetNumber *b)
{
    if (a->exact && b->exact) {
        Wide left = (Wide)a->num * b->den, right = (Wide)b->num * a->den;
        return (left > right) - (left < right);
    }
    return (a->real > b->real) - (a->real < b->real);
}

static bool same(const Val *a, const Val *b)
{
    if (val_is_number(a) && val_is_number(b))
        return compare(&a->number, &b->number) == 0;
    if (a->kind == VAL_LIST && b->kind == VAL_LIST && a->count == b->count) {
        for (int i = 0; i < a->count; i++)
            if (!same(&a->items[i], &b->items[i]))
                return false;
        return true;
    }
    bool text = (a->kind == VAL_STRING || a->kind == VAL_WORD) && (b->kind == VAL_STRING || b->kind == VAL_WORD);
    if (text)
        return strcmp(a->text, b->text) == 0;
    return a->kind == b->kind && ((a->kind == VAL_TYPE && a->type == b->type) || (a->kind == VAL_OP && a->op == b->op) ||
                                  (a->kind == VAL_BLOCK && a->block == b->block) ||
                                  (a->kind == VAL_SIZE && size_equal(a->size, b->size)));
}

static Size as_size(Net *net, const Val *v)
{
    int64_t n;
    return v->kind == VAL_SIZE ? v->size : val_is_whole(v, &n) ? size_const(net->cx, n) : NULL;
}

// A size with a size or a whole number. None: there is no such size.
static Val size_arithmetic(Net *net, char sign, Size a, Size b)
{
    int64_t n;
    switch (sign) {
    case '+': return val_size(size_plus(net->cx, a, b));
    case '-': return val_size(size_minus(net->cx, a, b));
    case '*': return val_size(size_times(net->cx, a, b));
    case '/': {
        if (size_known(b, &n) && n == 0)
            return (Val){0};
        Size whole = size_over(net->cx, a, b);
        return whole != NULL ? val_size(whole) : (Val){0};
    }
    default: {
        if (!size_known(b, &n) || n < 0 || n > 8)
            return (Val){0};
        Size result = size_const(net->cx, 1);
        for (; n > 0; n--)
            result = size_times(net->cx, result, a);
        return val_size(result);
    }
    }
}

static Val range(Net *net, const Ast *ast, const Val *a, const Val *b)
{
    int64_t from, to;
    Val list = {.kind = VAL_LIST};
    if (!val_is_whole(a, &from) || !val_is_whole(b, &to)) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0315, "..", val_text(net, a), val_text(net, b));
        diag_help(net->cx->diag, "a range goes from a whole number to a whole number, both included");
        note_frames(net);
        return (Val){0};
    }
    if (to < from)
        return list;
    if ((Wide)to - from >= INT32_MAX)
        to = from + INT32_MAX;                  // the limit is far below
    list.items = list_new(net, ast, to - from + 1);
    if (list.items == NULL)
        return (Val){0};
    list.count = (int)(to - from + 1);
    for (int i = 0; i < list.count; i++)
        list.items[i] = val_int(from + i);
    return list;
}

static Val wrong_operands(Net *net, const Ast *ast, const char *sign, const Val *a, const Val *b)
{
    diag_report(net->cx->diag, ast->place, MESSAGE_E0315, sign, val_text(net, a), val_text(net, b));
    note_frames(net);
    return (Val){0};
}

static Val comparison(Net *net, const Ast *ast, const char *sign, const Val *a, const Val *b)
{
    if (strcmp(sign, "==") == 0)
        return val_bool(same(a, b));
    if (strcmp(sign, "!=") == 0)
        return val_bool(!same(a, b));
    if (!val_is_number(a) || !val_is_number(b))
        return wrong_operands(net, ast, sign, a, b);
    int order = compare(&a->number, &b->number);
    return val_bool(sign[0] == '<' ? order < 0 || (sign[1] != 0 && order == 0) : order > 0 || (sign[1] != 0 && order == 0));
}

static Val with_size(Net *net, const Ast *ast, const char *sign, const Val *a, const Val *b)
{
    Size p = as_size(net, a), q = as_size(net, b);
    Val result = p != NULL && q != NULL ? size_arithmetic(net, sign[0], p, q) : (Val){0};
    if (result.kind != VAL_NONE)
        return result;
    if (sign[0] != '/' || p == NULL || q == NULL)
        return wrong_operands(net, ast, sign, a, b);
    diag_report(net->cx->diag, ast->place, MESSAGE_E0306, "the quotient", arena_printf(net->arena, "%s / %s", val_text(net, a), val_text(net, b)));
    note_frames(net);
    return (Val){0};
}

static bool is_share(const Val *v) { return v->percent; }

static Val binary(Net *net, const Ast *ast, const char *sign, const Val *a, const Val *b)
{
    if (a->kind == VAL_NONE || b->kind == VAL_NONE)
        return (Val){0};
    if (strcmp(sign, "..") == 0)
        return range(net, ast, a, b);
    if (strcmp(sign, "and") == 0 || strcmp(sign, "or") == 0) {
        if (a->kind != VAL_BOOL || b->kind != VAL_BOOL)
            return wrong_operands(net, ast, sign, a, b);
        return val_bool(sign[0] == 'a' ? a->number.num && b->number.num : a->number.num || b->number.num);
    }
    bool compares = strchr("=!<>", sign[0]) != NULL;
    if (compares && a->kind != VAL_SIZE && b->kind != VAL_SIZE)
        return comparison(net, ast, sign, a, b);
    if (compares && (strcmp(sign, "==") == 0 || strcmp(sign, "!=") == 0) && same(a, b))
        return val_bool(sign[0] == '=');
    if (compares) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0307, net->deciding != NULL ? net->deciding : "a comparison of numbers",
                    val_text(net, a->kind == VAL_SIZE ? a : b));
        note_frames(net);
        return (Val){0};
    }
    if (a->kind == VAL_SIZE || b->kind == VAL_SIZE)
        return with_size(net, ast, sign, a, b);
    if (!val_is_number(a) || !val_is_number(b))
        return wrong_operands(net, ast, sign, a, b);
    Val result = arithmetic(net, ast, sign[0], a, b);
    result.percent = is_share(a) && is_share(b);
    return result;
}

Val val_binary(Net *net, const Ast *ast, const char *sign, const Val *a, const Val *b)
{
    Val result = binary(net, ast, sign, a, b);
    result.running = a->running || b->running;
    return result;
}

Val val_negate(Net *net, const Ast *ast, const Val *a)
{
    Val zero = val_int(0);
    return val_binary(net, ast, "-", &zero, a);
}

// --- functions ------------------------------------------------------------------------------------------------------------

static double f_sign(double x) { return (x > 0) - (x < 0); }
static double f_rsqrt(double x) { return 1 / sqrt(x); }

typedef struct Function1 { const char *name; double (*of)(double); bool whole; } Function1;

// Of one number. `whole`: the result is whole, and exact if it fits.
static const Function1 of_one[] = {
    {"floor", floor, true}, {"ceil", ceil, true},   {"round", rint, true},  {"sqrt", sqrt, false},   {"rsqrt", f_rsqrt, false},
    {"exp", exp, false},    {"log", log, false},    {"sin", sin, false},    {"cos", cos, false},     {"tan", tan, false},
    {"tanh", tanh, false},  {"atan", atan, false},  {"sign", f_sign, true}, {"log2", log2, false},
};

static Val whole_of(double x)
{
    return fabs(x) < 9007199254740992.0 ? val_int((int64_t)x) : val_real(x);
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

static bool function1(const char *name, const Val *a, Val *result)
{
    if (strcmp(name, "abs") == 0) {
        *result = *a;
        result->number.num = a->number.num < 0 ? -a->number.num : a->number.num;
        result->number.real = fabs(a->number.real);
        return true;
    }
    for (int i = 0; i < COUNT(of_one); i++) {
        if (strcmp(of_one[i].name, name) != 0)
            continue;
        if (of_one[i].whole && a->number.exact && strcmp(name, "round") != 0 && strcmp(name, "sign") != 0) {
            int64_t down = floor_div(a->number.num, a->number.den);
            *result = val_int(down + (name[0] == 'c' && a->number.den != 1));
            return true;
        }
        double x = of_one[i].of(a->number.real);
        *result = of_one[i].whole ? whole_of(x) : val_real(x);
        return true;
    }
    return false;
}

static bool function2(Net *net, const Ast *call, const char *name, const Val *a, const Val *b, Val *result)
{
    int64_t m = 0, n = 0;
    bool whole = val_is_whole(a, &m) && val_is_whole(b, &n);
    if (strcmp(name, "minimum") == 0 || strcmp(name, "maximum") == 0) {
        *result = (compare(&a->number, &b->number) < 0) == (name[1] == 'i') ? *a : *b;
        return true;
    }
    if (strcmp(name, "pow") == 0) {
        *result = val_binary(net, call, "^", a, b);
        return true;
    }
    bool mod = strcmp(name, "mod") == 0;
    if (!mod && strcmp(name, "floordiv") != 0)
        return false;
    if (b->number.real == 0) {
        diag_report(net->cx->diag, call->place, MESSAGE_E0314);
        note_frames(net);
        *result = (Val){0};
    } else if (whole) {
        int64_t quotient = floor_div(m, n);
        *result = val_int(mod ? m - quotient * n : quotient);
    } else {
        double quotient = floor(a->number.real / b->number.real);
        *result = mod ? val_real(a->number.real - quotient * b->number.real) : whole_of(quotient);
    }
    return true;
}

static bool list_function(Net *net, const Ast *call, const char *name, const Val *args, int count, Val *result)
{
    if (strcmp(name, "length") == 0 && count == 1 && args[0].kind == VAL_LIST) {
        *result = val_int(args[0].count);
        return true;
    }
    if (strcmp(name, "length") == 0 && count == 1 && args[0].kind == VAL_STRING) {
        int64_t letters = 0;
        for (const char *p = args[0].text; *p != 0; p++)
            letters += ((unsigned char)*p & 0xC0) != 0x80;
        *result = val_int(letters);
        return true;
    }
    if (strcmp(name, "reverse") == 0 && count == 1 && args[0].kind == VAL_LIST) {
        *result = args[0];
        result->items = list_new(net, call, args[0].count);
        if (result->items == NULL)
            *result = (Val){0};
        for (int i = 0; i < result->count; i++)
            result->items[i] = args[0].items[args[0].count - 1 - i];
        return true;
    }
    if (strcmp(name, "append") == 0 && count == 2 && args[0].kind == VAL_LIST) {
        *result = args[0];
        result->items = list_new(net, call, (int64_t)args[0].count + 1);
        if (result->items == NULL) {
            *result = (Val){0};
            return true;
        }
        if (args[0].count > 0)
            memcpy(result->items, args[0].items, (size_t)args[0].count * sizeof(Val));
        result->items[result->count++] = args[1];
        return true;
    }
    return false;
}

static bool function(Net *net, const Ast *call, const char *name, const Val *args, int count, Val *result)
{
    if (list_function(net, call, name, args, count, result))
        return true;
    if (count == 1 && val_is_number(&args[0]))
        return function1(name, &args[0], result);
    if (count == 2 && args[0].kind == VAL_SIZE && strcmp(name, "floordiv") == 0) {
        int64_t n;
        if (!val_is_whole(&args[1], &n) || n <= 0)
            return false;
        *result = val_size(size_floordiv(net->cx, args[0].size, n));
        return true;
    }
    return count == 2 && val_is_number(&args[0]) && val_is_number(&args[1]) &&
           function2(net, call, name, &args[0], &args[1], result);
}

bool val_function(Net *net, const Ast *call, const char *name, const Val *args, int count, Val *result)
{
    bool done = function(net, call, name, args, count, result);
    for (int i = 0; done && i < count; i++)
        result->running |= args[i].running;
    return done;
}

bool val_function_known(const char *name)
{
    static const char *const others[] = {"length", "reverse", "append", "abs", "minimum", "maximum", "pow", "mod", "floordiv"};
    for (int i = 0; i < COUNT(others); i++)
        if (strcmp(others[i], name) == 0)
            return true;
    for (int i = 0; i < COUNT(of_one); i++)
        if (strcmp(of_one[i].name, name) == 0)
            return true;
    return false;
}
