// ops_test.c: every row of the op table on every one of its cases: the call is accepted, the interpreter runs it, f32 agrees
// with double, and the gradient of sum(y * random) by every float input agrees with central differences in double. Some
// right answers were worked out by hand: rows must not only agree with themselves.
//
// A case is a line such as "x: f32[N,4] in 0.2 3; axis = 1": inputs with their types (N is 3) and the range of their random
// numbers, then attributes. With a file name as the argument, the table of errors is written there.
#include "case.h"

static const double step = 1e-5;                // of the differences: their own error is then about 1e-10
static const double allowed = 1e-6;             // relative to the larger of the gradient and 1
static const double allowed_f32 = 2e-4;         // of results in f32, for sums of a few dozen terms of size 1

// loss = sum(out[0] * weight)
static void add_loss(Case *c)
{
    Builder b = {.cx = c->cx, .graph = c->g, .scope = "", .training = c->g->training};
    c->weight = graph_input(c->g, "factors", c->out[0]->type, (DiagPlace){0});
    c->factors = tensor_at(c, &c->out[0]->type, TYPE_f64);
    for (int64_t i = 0; i < tensor_count(c->factors); i++)
        tensor_set(c->factors, i, draw() * 2 - 1);
    bool all[RANK_MAX] = {true, true, true, true, true, true, true, true};
    c->g->loss = build_reduce(&b, "sum", build_map2(&b, "x0 * x1", c->out[0], c->weight), all, false);
}

// All composite ops, or those alone that have no gradient rule.
static void write_out(Case *c, bool all)
{
    c->g->stage = all ? STAGE_DIFFERENTIATED : STAGE_TYPED;
    Work work = {.cx = c->cx, .graph = c->g, .batch = N};
    for (int i = 0; i < c->call.n_out || i == 0; i++)
        LIST_ADD(c->arena, c->g->outputs, ((NamedValue){.name = "y", .value = c->out[i]}));
    pass_expand(&work);
}

static bool run(Case *c, Eval *eval, bool in_double)
{
    static int64_t symbols[] = {N, N, N, N};
    *eval = (Eval){.arena = c->arena, .symbols = symbols, .seed = 7, .step = 1, .in_double = in_double};
    eval->at = NEW_ARRAY(c->arena, Tensor *, c->g->values.count);
    for (int k = 0; k < c->call.n_in; k++) {
        const Value *v = c->call.in[k];
        if (v == NULL)
            continue;
        Tensor *t = c->value[k];
        if (!in_double && type_is_float(v->type.dtype)) {
            t = tensor_at(c, &v->type, v->type.dtype);
            for (int64_t i = 0; i < tensor_count(t); i++)
                tensor_set(t, i, tensor_get(c->value[k], i));
        }
        eval->at[v->id] = t;
    }
    if (c->weight != NULL)
        eval->at[c->weight->id] = c->factors;
    if (eval_graph(c->g, eval))
        return true;
    fail(c->call.op->name, c->text, eval->error != NULL ? eval->error : "it does not run");
    return false;
}

// --- f32 against double -----------------------------------------------------------------------------------------------------------

static void compare_types(const OpDef *op, const char *text, bool training)
{
    Case c;
    Eval single, twice;
    if (case_open(&c, op, text, training)) {
        write_out(&c, true);
        if (run(&c, &single, false) && run(&c, &twice, true))
            for (int k = 0; k < c.g->outputs.count; k++) {
                const Tensor *a = single.at[c.g->outputs.at[k].value->id], *b = twice.at[c.g->outputs.at[k].value->id];
                bool same = tensor_count(a) == tensor_count(b);
                for (int64_t i = 0; same && i < tensor_count(a); i++) {
                    double x = tensor_get(a, i), y = tensor_get(b, i);
                    same = isnan(x) ? isnan(y) : x == y || fabs(x - y) <= allowed_f32 * fmax(1, fabs(y));
                }
                if (!same)
                    fail(op->name, text, "f32 and double differ");
            }
    }
    arena_free(c.arena);
}

// --- gradients against differences ---------------------------------------------------------------------------------------------------

static double loss_at(Case *c, Tensor *t, int64_t i, double x)
{
    Eval eval;
    double before = tensor_get(t, i);
    tensor_set(t, i, x);
    double loss = run(c, &eval, true) ? tensor_get(eval.at[c->g->loss->id], 0) : NAN;
    tensor_set(t, i, before);
    return loss;
}

static const Tensor *gradient_of(Case *c, const Eval *eval, const Value *v)
{
    for (int i = 0; i < c->g->gradients.count; i++)
        if (c->g->gradients.at[i].param == v->param)
            return eval->at[c->g->gradients.at[i].value->id];
    return NULL;
}

// By these a row passes no gradient on purpose, and its manual says so.
static bool held(const OpDef *op, int input)
{
    static const char *const names[][2] = {{"roi_align", "boxes"}, {"sample_axis", "values"}, {"sample_axis_grad", "values"}};
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(op->name, names[i][0]) == 0 && op_input_index(op, names[i][1]) == input)
            return true;
    return false;
}

// The largest error over the elements of input k, relative to the larger of the gradient and 1.
static double error_of(Case *c, const Eval *eval, int k)
{
    const Tensor *g = gradient_of(c, eval, c->call.in[k]);
    Tensor *t = c->value[k];
    double most = 0;
    if (g == NULL || tensor_count(g) != tensor_count(t))
        return INFINITY;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        double x = tensor_get(t, i), d = (loss_at(c, t, i, x + step) - loss_at(c, t, i, x - step)) / (2 * step);
        double error = fabs(d - tensor_get(g, i)) / fmax(1, fabs(d));
        most = isnan(error) ? INFINITY : fmax(most, error);
    }
    return most;
}

static double check_gradient(const OpDef *op, const char *text, bool training, int *inputs)
{
    Case c;
    Eval eval;
    double most = 0;
    if (case_open(&c, op, text, training) && type_is_float(c.out[0]->type.dtype)) {
        add_loss(&c);
        write_out(&c, false);
        graph_grad(c.g);
        graph_verify(c.g);
        c.g->stage = STAGE_DIFFERENTIATED;
        Work work = {.cx = c.cx, .graph = c.g, .batch = N};
        for (int i = 0; i < c.g->gradients.count; i++)
            LIST_ADD(c.arena, c.g->outputs, ((NamedValue){.name = "gradient", .value = c.g->gradients.at[i].value}));
        int first = c.g->outputs.count - c.g->gradients.count;
        pass_expand(&work);
        for (int i = 0; i < c.g->gradients.count; i++)
            c.g->gradients.at[i].value = c.g->outputs.at[first + i].value;
        if (run(&c, &eval, true))
            for (int k = 0; k < c.call.n_in; k++)
                if (c.call.in[k] != NULL && c.call.in[k]->param != NULL && !held(op, k)) {
                    double error = error_of(&c, &eval, k);
                    *inputs += 1;
                    most = fmax(most, error);
                    if (!(error <= allowed))
                        fail(op->name, text, arena_printf(c.arena, "the gradient by input %d is off by %g", k, error));
                }
    }
    arena_free(c.arena);
    return most;
}

// Rounded up to a power of ten, so that the table is the same on all machines.
static const char *shown(double error)
{
    static const char *const words[] = {"< 1e-9", "< 1e-8", "< 1e-7", "< 1e-6"};
    for (int i = 0; i < COUNT(words); i++)
        if (error < pow(10, i - 9))
            return words[i];
    return "wrong";
}

static void check_row(const OpDef *op, FILE *table)
{
    double most = 0;
    int inputs = 0;
    if (strcmp(op->name, "gradient") == 0)              // needs an input that is made from the other: tests/unit/gradient.c
        return;
    if (op->cases == NULL || op->cases[0] == NULL) {
        fail(op->name, "", "the row has no cases");
        return;
    }
    for (int i = 0; op->cases[i] != NULL; i++)
        for (int training = 1; training >= (op->traits & OP_MODE ? 0 : 1); training--) {
            state = 1000 + (uint64_t)i;
            compare_types(op, op->cases[i], training);
            state = 1000 + (uint64_t)i;
            if (op->no_grad == NULL)
                most = fmax(most, check_gradient(op, op->cases[i], training, &inputs));
        }
    if (table != NULL && op->no_grad != NULL)
        fprintf(table, "%-18s none: %s\n", op->name, op->no_grad);
    else if (table != NULL)
        fprintf(table, "%-18s %s\n", op->name, inputs > 0 ? shown(most) : "no float input");
    if (op->no_grad == NULL && inputs == 0)
        fail(op->name, "", "no case has a gradient, and the row does not say why");
}

// --- answers by hand -----------------------------------------------------------------------------------------------------------------

typedef struct Answer { const char *op, *text; double in[3][16]; double out[16]; int count; } Answer;

static const Answer answers[] = {
    {"softmax", "x: f32[3]", {{1000, 1000, -1000}}, {0.5, 0.5, 0}, 3},
    {"logsumexp", "x: f32[2]", {{-INFINITY, -INFINITY}}, {-INFINITY}, 1},
    {"logsumexp", "x: f32[2]", {{800, 800}}, {800.69314718055995}, 1},
    {"cross_entropy", "logits: f32[1,3]; label: i32[1]", {{1, 2, 3}, {0}}, {2.4076059644443806}, 1},
    {"cross_entropy", "logits: f32[2,2]; label: i32[2]; ignore = -100", {{1000, -1000, 0, 0}, {1, -100}}, {2000}, 1},
    {"cross_entropy", "logits: f32[1,2]; label: i32[1]; smoothing = 0.5", {{0, 2}, {1}}, {0.62692801104297252}, 1},
    {"bce_with_logits", "y: f32[2]; t: f32[2]; reduce = none", {{100, -100}, {0, 0}}, {100, 0}, 2},
    {"mean", "x: f32[4]; where: bool[4]", {{1, 2, 4, 100}, {1, 1, 1, 0}}, {7.0 / 3}, 1},
    // same with an even window: the odd row goes to the end, so y[i] = x[i] + 10 x[i+1]
    {"conv", "x: f32[1,1,3]; weight: f32[1,1,2]; channels = 1; kernel = 2; pad = same; bias = false", {{1, 2, 3}, {1, 10}}, {21, 32, 3}, 3},
    {"conv", "x: f32[1,1,4]; weight: f32[1,1,3]; bias: f32[1]; channels = 1; kernel = 3; stride = 2; pad = same", {{1, 2, 3, 4}, {1, 1, 1}, {0.5}}, {6.5, 7.5}, 2},
    // windows 1 2, 3 4, 5: the last hangs over and has one element
    {"avgpool", "x: f32[1,1,5]; kernel = 2; ceil = true", {{1, 2, 3, 4, 5}}, {1.5, 3.5, 5}, 3},
    {"avgpool", "x: f32[1,1,3]; kernel = 3; stride = 2; pad = 1", {{3, 6, 9}}, {3, 5}, 2},
    {"avgpool", "x: f32[1,1,3]; kernel = 3; stride = 2; pad = 1; count_pad = false", {{3, 6, 9}}, {4.5, 7.5}, 2},
    {"maxpool", "x: f32[1,1,3]; kernel = 2; stride = 2; pad = 1", {{-3, -2, -1}}, {-3, -1}, 2},
    {"argmax", "x: f32[4]", {{1, 7, 7, 2}}, {1}, 1},
    {"argmax", "x: f32[3]", {{1, NAN, 2}}, {1}, 1},
    {"accuracy", "logits: f32[2,2]; label: i32[2]", {{NAN, NAN, 1, 3}, {0, 1}}, {0.5}, 1},
    {"confusion", "logits: f32[3,2]; label: i32[3]", {{1, 0, 0, 1, 1, 0}, {0, 0, 1}}, {1, 1, 1, 0}, 4},
    {"slice", "x: f32[5]; from = -1; step = -2", {{1, 2, 3, 4, 5}}, {5, 3, 1}, 3},
    {"pad", "x: f32[3]; pads = [2, 1]; mode = reflect", {{1, 2, 3}}, {3, 2, 1, 2, 3, 2}, 6},
    {"var", "x: f32[4]", {{10001, 10002, 10003, 10004}}, {5.0 / 3}, 1},
    {"mod", "x: i32[4]; y: i32[4]", {{7, -7, 7, -7}, {3, 3, -3, -3}}, {1, 2, -2, -1}, 4},
    {"floordiv", "x: i32[4]; y: i32[4]", {{7, -7, 7, -7}, {3, 3, -3, -3}}, {2, -3, -3, 2}, 4},
    {"gelu", "x: f32[3]; approximate = tanh", {{1e30, -1e30, 0}}, {1e30, 0, 0}, 3},
    {"round", "x: f32[4]", {{0.5, 1.5, -0.5, 2.5}}, {0, 2, 0, 2}, 4},
    {"triangular", "x: f32[2,3]; diagonal = 1", {{1, 2, 3, 4, 5, 6}}, {1, 2, 0, 4, 5, 6}, 6},
    {"isinf", "x: f32[3]", {{INFINITY, 1, NAN}}, {1, 0, 0}, 3},
    {"matmul", "a: f32[2,2]; b: f32[2,2]; transpose_b = true", {{1, 2, 3, 4}, {5, 6, 7, 8}}, {17, 23, 39, 53}, 4},
};

static void check_answer(const Answer *answer)
{
    Case c;
    Eval eval;
    if (!case_open(&c, op_find(answer->op), answer->text, true))
        return;
    for (int k = 0; k < c.call.n_in && k < 3; k++)
        for (int64_t i = 0; c.value[k] != NULL && i < tensor_count(c.value[k]); i++)
            tensor_set(c.value[k], i, answer->in[k][i]);
    write_out(&c, true);
    if (run(&c, &eval, false)) {
        const Tensor *y = eval.at[c.g->outputs.at[0].value->id];
        if (tensor_count(y) != answer->count)
            fail(answer->op, answer->text, "the result has another size");
        for (int i = 0; i < answer->count && i < tensor_count(y); i++) {
            double got = tensor_get(y, i), want = answer->out[i];
            if (!(got == want || fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
                fail(answer->op, answer->text, arena_printf(c.arena, "element %d is %.9g, not %.9g", i, got, want));
        }
    }
    arena_free(c.arena);
}

static char *whole_file(Arena *arena, const char *path)
{
    Text text = {.arena = arena};
    char block[4096];
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        return NULL;
    text_put(&text, "", 0);
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
        text_put(&text, block, n);
    fclose(in);
    return text.at;
}

// --- what an outside oracle says -------------------------------------------------------------------------------------------------------

// answers.txt: "op <tab> training <tab> output <tab> case", then the numbers; "none <tab> op <tab> reason". By record.py.
static const double allowed_oracle = 2e-7;      // in double; the file has nine digits

typedef struct Recorded { const char *op, *text, *numbers; bool training; int output; } Recorded;
typedef struct Oracle { Arena *arena; LIST(Recorded) all; Map *none; int compared; } Oracle;

static const char *next_field(Oracle *o, const char **at)
{
    size_t length = strcspn(*at, "\t\n");
    const char *field = arena_string(o->arena, *at, length);
    *at += length + ((*at)[length] != 0);
    return field;
}

static void read_answers(Oracle *o, const char *text)
{
    for (const char *at = text; *at != 0;) {
        if (*at == '#') {
            at += strcspn(at, "\n") + 1;
            continue;
        }
        const char *op = next_field(o, &at);
        if (strcmp(op, "none") == 0) {
            op = next_field(o, &at);
            map_set(o->none, op, (void *)(uintptr_t)next_field(o, &at));
            continue;
        }
        Recorded r = {.op = op, .training = next_field(o, &at)[0] == '1'};
        r.output = atoi(next_field(o, &at));
        r.text = next_field(o, &at);
        r.numbers = at;
        at += strcspn(at, "\n") + 1;
        LIST_ADD(o->arena, o->all, r);
    }
}

static const Recorded *recorded(const Oracle *o, const char *op, const char *text, bool training, int output)
{
    for (int i = 0; i < o->all.count; i++) {
        const Recorded *r = &o->all.at[i];
        if (r->training == training && r->output == output && strcmp(r->op, op) == 0 && strcmp(r->text, text) == 0)
            return r;
    }
    return NULL;
}

static void compare_recorded(Case *c, const Recorded *r, const Tensor *y)
{
    const char *at = r->numbers;
    for (int64_t i = 0; i < tensor_count(y); i++) {
        char *end;
        double want = strtod(at, &end), got = tensor_get(y, i);
        if (end == at || *at == '\n') {
            fail(r->op, r->text, "has more elements than the oracle's");
            return;
        }
        at = end;
        if (!(got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= allowed_oracle * fmax(1, fabs(want)))) {
            fail(r->op, r->text, arena_printf(c->arena, "element %d of result %d is %.9g, the oracle's is %.9g", (int)i, r->output, got, want));
            return;
        }
    }
    if (at[strspn(at, " ")] != '\n')
        fail(r->op, r->text, "has fewer elements than the oracle's");
}

static void check_oracle(void *context, const OpDef *op, const char *text, bool training)
{
    Oracle *o = context;
    Case c;
    Eval eval;
    if (map_get(o->none, op->name) != NULL)
        return;
    if (recorded(o, op->name, text, training, 0) == NULL) {
        fail(op->name, text, "the oracle was not asked: run record.py, or say there why not");
        return;
    }
    if (!case_open(&c, op, text, training))
        return;
    write_out(&c, true);
    if (run(&c, &eval, true))
        for (int k = 0; k < c.g->outputs.count; k++) {
            const Recorded *r = recorded(o, op->name, text, training, k);
            o->compared += r != NULL;
            if (r != NULL)
                compare_recorded(&c, r, eval.at[c.g->outputs.at[k].value->id]);
        }
    arena_free(c.arena);
}

static void check_oracles(const char *path)
{
    Oracle o = {.arena = arena_new()};
    const char *text = whole_file(o.arena, path);
    o.none = map_new(o.arena);
    if (text == NULL)
        fail("oracle", path, "cannot be read");
    else
        read_answers(&o, text);
    for (int i = 0; i < op_count(); i++)
        if (!(op_at(i)->traits & OP_INTERNAL))
            each_case(op_at(i), check_oracle, &o);
    printf("ops: %d results compared with PyTorch's\n", o.compared);
    arena_free(o.arena);
}

// For record.py: op, training, number of the case, inputs, defaults, case.
static void print_case(void *context, const OpDef *op, const char *text, bool training)
{
    (void)context;
    const char *names[INPUTS_MAX];
    bool optional[INPUTS_MAX], variadic;
    int count = op_inputs(op, names, optional, &variadic);
    printf("%s\t%d\t%d\t%s", op->name, training, (int)(state - 1000), variadic ? "*" : "");
    for (int i = 0; i < count; i++)
        printf("%s%s", i > 0 ? "," : "", names[i]);
    printf("\t");
    for (int i = 0; i < ATTRS_MAX && op->attrs[i].name != NULL; i++)
        printf("%s=%s;", op->attrs[i].name, op->attrs[i].initial != NULL ? op->attrs[i].initial : "");
    printf("\t%s\n", text);
}

static int print_cases(void)
{
    for (int i = 0; i < op_count(); i++)
        if (!(op_at(i)->traits & OP_INTERNAL))
            each_case(op_at(i), print_case, NULL);
    return 0;
}

// --- what is refused -----------------------------------------------------------------------------------------------------------------

typedef struct Refusal { const char *op, *text; MessageId id; } Refusal;

static const Refusal refusals[] = {
    {"add", "x: f32[2,3]; y: f32[2,4]", MESSAGE_E0301},
    {"mse", "y: f32[3,1]; t: f32[3]", MESSAGE_E0303},
    {"cross_entropy", "logits: f32[N,5,4]; label: i32[N,4]", MESSAGE_E0304},
    {"conv", "x: f32[1,1,4,4]; weight: f32[1,1,5,5]; channels = 1; kernel = 5; bias = false", MESSAGE_E0309},
    {"conv", "x: f32[1,3,4,4]; weight: f32[2,1,1,1]; channels = 2; kernel = 1; groups = 2; bias = false", MESSAGE_E0306},
    {"sum", "x: f32[2,3]; axis = 2", MESSAGE_E0312},
    {"reshape", "x: f32[2,3]; shape = [4, -1]", MESSAGE_E0306},
    {"split", "x: f32[2,5]; parts = 2", MESSAGE_E0306},
    {"matmul", "a: f32[2,3]; b: f32[2,3]", MESSAGE_E0315},
    {"neg", "x: bool[2]", MESSAGE_E0311},
    {"slice", "x: f32[3]; from = 2; count = 2", MESSAGE_E0312},
    {"split", "x: f32[2,6]; parts = [2, 3]", MESSAGE_E0311},
    {"split", "x: f32[2,34]; parts = 17", MESSAGE_E0318},
    {"pad", "x: f32[2]; pads = [2, 0]; mode = reflect", MESSAGE_E0312},
    {"roll", "x: f32[2,3]; shift = [1, 2]; axis = [0]", MESSAGE_E0311},
    {"meshgrid", "x0: f32[2,3]; x1: f32[2]", MESSAGE_E0311},
    {"zeros", "", MESSAGE_E0209},
    {"random_int", "shape = 3; below = 2; from = 5", MESSAGE_E0311},
    {"random_normal", "shape = 3; type = i32", MESSAGE_E0311},
    {"topk", "x: f32[5]; k = 6", MESSAGE_E0318},
    {"sort", "x: f32[5]; axis = 1", MESSAGE_E0312},
    {"cumsum", "x: f32[]", MESSAGE_E0311},
    {"gather", "x: f32[2,3]; index: i32[3,1]; axis = 1; batch = 1", MESSAGE_E0315},
    {"scatter", "x: f32[4]; index: i32[2]; values: f32[3]", MESSAGE_E0311},
    {"gather_elements", "x: f32[2,3]; index: i32[4,5]; axis = 1", MESSAGE_E0315},
    {"attention", "q: f32[2,3,5]; k: f32[2,3,5]; v: f32[2,3,5]; heads = 2", MESSAGE_E0306},
    {"attention", "q: f32[2,3,6]; k: f32[2,3,4]; v: f32[2,3,4]; heads = 2", MESSAGE_E0315},
    {"attention", "q: f32[2,3,6]; k: f32[2,3,4]; v: f32[2,3,4]; heads = 3; kv_heads = 2", MESSAGE_E0306},
    {"attention", "q: f32[2,3,4]; k: f32[2,5,4]; v: f32[2,5,4]; mask: bool[3,4]", MESSAGE_E0311},
    {"rotary", "x: f32[2,3,5]", MESSAGE_E0306},
    {"lstm", "x: f32[2,3]; hidden = 2", MESSAGE_E0311},
    {"lstm", "x: f32[2,3,4]; lengths: i32[3]; hidden = 2", MESSAGE_E0311},
    {"gru", "x: f32[2,3,4]; weight_ih_l0: f32[6,3]; hidden = 2", MESSAGE_E0311},
    {"rnn", "x: f32[2,3,4]; start: f32[1,2,3]; hidden = 2", MESSAGE_E0311},
    {"conv_transpose", "x: f32[1,2,3,3]; channels = 1; kernel = 2; stride = 2; output_pad = 2", MESSAGE_E0311},
    {"conv_transpose", "x: f32[1,3,3,3]; channels = 2; kernel = 2; groups = 2", MESSAGE_E0306},
    {"adaptive_maxpool", "x: f32[1,1,5,5]; size = 2", MESSAGE_E0306},
    {"adaptive_avgpool", "x: f32[1,1,N,5]; size = 2", MESSAGE_E0311},
    {"global_avgpool", "x: f32[2,3]", MESSAGE_E0311},
    {"normalize", "x: f32[3,2,2]; mean: f32[2]; std: f32[3]", MESSAGE_E0311},
    {"glu", "x: f32[2,5]", MESSAGE_E0306},
    {"einsum", "x0: f32[2,3]; x1: f32[4,5]; equation = ij,jk->ik", MESSAGE_E0315},
    {"einsum", "x0: f32[2,2]; equation = ii->i", MESSAGE_E0311},
    {"einsum", "x0: f32[2,3]; equation = ij", MESSAGE_E0311},
    {"einsum", "x0: f32[2,3]; equation = ij->ik", MESSAGE_E0311},
    {"cross_entropy", "logits: f32[N,5]; label: i32[N]; weight: f32[4]", MESSAGE_E0311},
    {"kl_divergence", "logp: f32[2,3]; t: f32[3]", MESSAGE_E0303},
    {"cosine_embedding", "x: f32[2,3]; y: f32[2,3]; t: f32[3]", MESSAGE_E0311},
    {"triplet", "x: f32[2,3]; positive: f32[2,3]; negative: f32[2,4]", MESSAGE_E0303},
    {"ctc", "logits: f32[2,5,3]; truth: i32[2,2]; blank = 3", MESSAGE_E0318},
    {"ctc", "logits: f32[2,5,3]; truth: i32[3,2]", MESSAGE_E0315},
    {"resize", "x: f32[1,1,4,4]", MESSAGE_E0308},
    {"resize", "x: u8[4,4]; size = 2", MESSAGE_E0311},
    {"resize", "x: f32[1,1,4,4]; size = [2, 3, 4]", MESSAGE_E0311},
    {"pixel_shuffle", "x: f32[1,6,2,2]; factor = 2", MESSAGE_E0306},
    {"grid_sample", "x: f32[1,1,4,4]; grid: f32[1,2,2,3]", MESSAGE_E0311},
    {"roi_align", "x: f32[1,1,4,4]; boxes: f32[2,3,4]; size = 2", MESSAGE_E0315},
    {"box_iou", "x: f32[2,5]; y: f32[3,4]", MESSAGE_E0311},
    {"nms", "boxes: f32[1,5,4]; score: f32[1,6,2]", MESSAGE_E0315},
    {"mean_iou", "x: i32[3]; truth: i32[4]; classes = 2", MESSAGE_E0303},
    {"auc", "logits: f32[3,3]; label: i32[3]", MESSAGE_E0311},
    {"character_error", "x: i32[2,3]; truth: i32[3,3]", MESSAGE_E0315},
};

static void check_refusal(const Refusal *refusal)
{
    Case c = {.text = refusal->text, .arena = arena_new()};
    const OpDef *op = op_find(refusal->op);
    c.cx = context_new(c.arena);
    c.g = graph_new(c.cx, op->name);
    Builder b = {.cx = c.cx, .graph = c.g, .scope = ""};
    c.call = call_new(&b, op->name, 0, NULL);
    read_items(&c);
    bool accepted = graph_call(c.g, &c.call, "case", c.out);
    const Diag *diag = c.cx->diag;
    if (accepted || diag->all.count == 0 || diag->all.at[0]->id != refusal->id)
        fail(refusal->op, refusal->text, accepted ? "is accepted" : "another message than expected");
    arena_free(c.arena);
}

// The table in the repository is what the test finds.
static void check_table(const char *path, FILE *table)
{
    Arena *arena = arena_new();
    Text text = {.arena = arena};
    const char *published = whole_file(arena, path);
    rewind(table);
    for (int c; (c = fgetc(table)) != EOF;)
        text_put(&text, &(char){(char)c}, 1);
    if (published == NULL || strcmp(published, text.at) != 0)
        fail("gradients", path, "is not what was found; test_ops FILE writes it");
    arena_free(arena);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--cases") == 0)
        return print_cases();
    FILE *table = argc > 1 ? fopen(argv[1], "w+") : tmpfile();
    if (table != NULL)
        fprintf(table, "# Largest error of each gradient against central differences in double, relative to the larger of the gradient and 1.\n# Written by tests/ops/ops_test.c; an error of 1e-6 fails.\n");
    for (int i = 0; i < op_count(); i++)
        check_row(op_at(i), table);
    for (int i = 0; i < COUNT(answers); i++)
        check_answer(&answers[i]);
    for (int i = 0; i < COUNT(refusals); i++)
        check_refusal(&refusals[i]);
    check_oracles("tests/ops/answers.txt");
    if (table != NULL && argc == 1)
        check_table("tests/ops/gradients.txt", table);
    if (table != NULL)
        fclose(table);
    printf("ops: %d rows, %d answers, %d failures\n", op_count(), COUNT(answers), failures);
    return failures > 0;
}
