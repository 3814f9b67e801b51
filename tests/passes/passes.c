// passes.c: each pass on small graphs. Rules are evaluated on both sides; programs (fused, lowered, in planned memory) run
// against the interpreter of graphs: the same bits where no long sum is reordered, else within a bound that is said there.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../passes/passes.h"

static int failures;
static Arena *arena;
static uint64_t state = 88172645463325252u;

static void fail(const char *test, const char *what)
{
    fprintf(stderr, "passes: %s: %s\n", test, what);
    failures++;
}

static double draw(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) / (double)(1ull << 53);
}

// --- Graphs from C ------------------------------------------------------------------------------------------------------------

typedef struct Made { Context *cx; Model *model; Graph *g; Builder b; Size n; } Made;

static Made made_new(const char *name, int64_t batch)
{
    Made m = {.cx = NEW(arena, Context)};
    *m.cx = (Context){.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
    m.n = size_symbol(m.cx, "N", 0);
    ((Symbol *)map_get(m.cx->symbols, "N"))->batch = true;
    ((Symbol *)map_get(m.cx->symbols, "N"))->bound = batch;
    m.g = graph_new(m.cx, name);
    m.model = NEW(arena, Model);
    *m.model = (Model){.cx = m.cx, .name = name, .infer = m.g};
    m.b = (Builder){.cx = m.cx, .graph = m.g, .scope = name};
    return m;
}

// Dimensions: -1 is the batch, 0 ends.
static Value *made_input(Made *m, const char *name, DType dtype, const int *dims)
{
    Size sizes[RANK_MAX];
    int rank = 0;
    for (; dims[rank] != 0; rank++)
        sizes[rank] = dims[rank] < 0 ? m->n : size_const(m->cx, dims[rank]);
    return graph_input(m->g, name, type_of(dtype, rank, sizes), (DiagPlace){0});
}
#define INPUT(m, name, ...) made_input((m), (name), TYPE_f32, (const int[]){__VA_ARGS__, 0})

static Value *made_param(Made *m, const char *path, const int *dims)
{
    Size sizes[RANK_MAX];
    int rank = 0;
    for (; dims[rank] != 0; rank++)
        sizes[rank] = size_const(m->cx, dims[rank]);
    Param *param = NEW(arena, Param);
    *param = (Param){.path = path, .type = type_of(TYPE_f32, rank, sizes), .trainable = true, .init = {.name = "zeros"}};
    LIST_ADD(arena, m->model->params, param);
    return graph_param(m->g, param);
}
#define PARAM(m, path, ...) made_param((m), (path), (const int[]){__VA_ARGS__, 0})

static void made_output(Made *m, Value *value)
{
    NamedValue output = {.name = "y", .value = value};
    LIST_ADD(arena, m->g->outputs, output);
    m->g->stage = STAGE_TYPED;
}

// --- Running graphs and programs --------------------------------------------------------------------------------------------------

static Tensor *random_tensor(const Value *value, const int64_t *symbols)
{
    int64_t dim[RANK_MAX];
    for (int i = 0; i < value->type.shape.rank; i++)
        dim[i] = size_at(value->type.shape.dim[i], symbols);
    Tensor *tensor = tensor_new(arena, value->type.dtype, value->type.shape.rank, dim);
    for (int64_t i = 0; i < tensor_count(tensor); i++)
        tensor_set(tensor, i, type_is_float(value->type.dtype) ? 4 * draw() - 2 : floor(draw() * (value->below > 0 ? (double)value->below : 2)));
    return tensor;
}

static Eval eval_new(const Graph *g, int64_t batch)
{
    Eval eval = {.arena = arena, .at = NEW_ARRAY(arena, Tensor *, g->values.count + 4096), .symbols = NEW_ARRAY(arena, int64_t, 64), .seed = 7, .step = 3};
    for (int i = 0; i < map_count(g->cx->symbols); i++)
        eval.symbols[((Symbol *)map_value(g->cx->symbols, i))->id] = batch;
    for (int i = 0; i < g->values.count; i++)
        if (g->values.at[i]->kind == VALUE_INPUT || g->values.at[i]->kind == VALUE_PARAM)
            eval.at[i] = random_tensor(g->values.at[i], eval.symbols);
    return eval;
}

static bool near(const Tensor *a, const Tensor *b, double bound, double *worst)
{
    *worst = 0;
    if (a == NULL || b == NULL || tensor_count(a) != tensor_count(b))
        return false;
    for (int64_t i = 0; i < tensor_count(a); i++) {
        double x = tensor_get(a, i), y = tensor_get(b, i), far = fabs(x - y) / (1 + fabs(x));
        if ((x != y && !(isnan(x) && isnan(y)) && !(far <= bound)))
            *worst = isnan(far) ? INFINITY : fmax(far, *worst);
    }
    return *worst == 0;
}

// The graph as it was built is the judge; the program runs with a full batch and with a smaller one.
static int most_var(const Loop *loop)
{
    int most = loop->var;
    for (int i = 0; i < loop->body.count; i++)
        most = most_var(loop->body.at[i]) > most ? most_var(loop->body.at[i]) : most;
    return loop->other != NULL && most_var(loop->other) > most ? most_var(loop->other) : most;
}

// Variables are numbered from 0 in each kernel.
static void check_numbers(const char *test, const Program *program)
{
    for (int i = 0; i < program->steps.count; i++)
        if (program->steps.at[i]->loops != NULL && most_var(program->steps.at[i]->loops) >= 64)
            fail(test, "a loop variable has a large number");
}

static Program *check_program(const char *test, Made *m, int64_t batch, double bound)
{
    Graph *before = graph_copy(m->g);
    Program *program = program_of_graph(m->model, m->g, batch);
    if (program == NULL) {
        diag_print(m->cx->diag, stderr);
        fail(test, "no program");
        return NULL;
    }
    check_numbers(test, program);
    for (int64_t n = batch; n > 0; n = n > batch / 2 ? batch / 2 : 0) {
        Eval judge = eval_new(before, n), eval = judge;
        eval.at = NEW_ARRAY(arena, Tensor *, m->g->values.count);
        for (int i = 0; i < before->values.count; i++)
            eval.at[i] = before->values.at[i]->kind == VALUE_RESULT ? NULL : judge.at[i];
        if (!eval_graph(before, &judge) || !program_run(program, &eval)) {
            fail(test, judge.error != NULL ? judge.error : eval.error != NULL ? eval.error : "it does not run");
            return program;
        }
        for (int i = 0; i < before->outputs.count; i++) {
            double worst;
            if (!near(judge.at[before->outputs.at[i].value->id], eval.at[m->g->outputs.at[i].value->id], bound, &worst)) {
                Text text = {.arena = arena};
                for (int s = 0; s < program->steps.count; s++)
                    loop_print(&text, program->steps.at[s]->loops, 1);
                fail(test, arena_printf(arena, "N = %d: program and graph differ by %g\n%s", (int)n, worst, text.at != NULL ? text.at : ""));
                return program;
            }
        }
    }
    return program;
}

static void expect_steps(const char *test, const Program *program, int steps)
{
    if (program != NULL && program->steps.count != steps) {
        Text text = {.arena = arena};
        for (int i = 0; i < program->steps.count; i++)
            text_add(&text, "  %s: %s\n", program->steps.at[i]->name, program->steps.at[i]->equation);
        fail(test, arena_printf(arena, "%d steps, expected %d:\n%s", program->steps.count, steps, text.at));
    }
}

// --- Rules ------------------------------------------------------------------------------------------------------------------------

// Builds what a rule's text says, on inputs x and y of one type.
static Value *build_text(Made *m, const char **at, Value *const *variable)
{
    char name[32];
    int length = (int)strcspn(*at, "(,)");
    snprintf(name, sizeof name, "%.*s", length, *at + strspn(*at, " "));
    name[strcspn(name, "(,) ")] = 0;
    *at += length;
    if (**at != '(') {
        double number;
        bool is_number = sscanf(name, "%lf", &number) == 1;
        return is_number ? build_number(&m->b, variable[0]->type.dtype, number) : variable[name[0] - 'x'];
    }
    Value *in[3];
    int count = 0;
    while (**at == '(' || **at == ',') {
        (*at)++;
        in[count++] = build_text(m, at, variable);
    }
    (*at)++;
    return build(&m->b, name, count, in, "");
}

static void test_rule(const RuleDef *rule)
{
    Made m = made_new(rule->name, 4);
    DType type = strncmp(rule->from, "not", 3) == 0 ? TYPE_bool : TYPE_f32;
    Value *variable[] = {made_input(&m, "x", type, (const int[]){-1, 5, 0}), made_input(&m, "y", type, (const int[]){-1, 5, 0})};
    const char *from = rule->from, *to = rule->to;
    made_output(&m, build_text(&m, &from, variable));
    made_output(&m, build_text(&m, &to, variable));
    int before = m.g->nodes.count;
    Graph *copy = graph_copy(m.g);
    Work work = {.cx = m.cx, .model = m.model, .graph = m.g};
    m.g->stage = STAGE_PLAIN;
    if (!pass_simplify(&work) || m.g->nodes.count >= before || m.g->outputs.at[0].value != m.g->outputs.at[1].value)
        fail(rule->name, "the rule was not taken");
    Eval eval = eval_new(copy, 4);
    double worst;
    if (!eval_graph(copy, &eval) || !near(eval.at[copy->outputs.at[0].value->id], eval.at[copy->outputs.at[1].value->id], 0, &worst))
        fail(rule->name, "the two sides differ");
}

// --- Passes before and after ------------------------------------------------------------------------------------------------------

static void expect_nodes(const char *test, const Graph *g, const char *ops)
{
    Text text = {.arena = arena};
    text_add(&text, "%s", "");
    for (int i = 0; i < g->nodes.count; i++)
        text_add(&text, "%s%s", i > 0 ? " " : "", g->nodes.at[i]->op->name);
    if (strcmp(text.at, ops) != 0)
        fail(test, arena_printf(arena, "got \"%s\", expected \"%s\"", text.at, ops));
}

static void run_until(Made *m, Stage stage)
{
    Work work = {.cx = m->cx, .model = m->model, .graph = m->g, .batch = 4};
    passes_run(&work, stage);
}

static void test_simplify(void)
{
    Made m = made_new("moves", 4);
    Value *x = INPUT(&m, "x", -1, 6);
    Value *turned = build1(&m.b, "transpose", build1(&m.b, "transpose", x, ""), "");
    Value *shaped = build1(&m.b, "flatten", build1(&m.b, "reshape", turned, "shape = [-1, 2, 3]"), "");
    build1(&m.b, "exp", shaped, "");                    // nothing uses it
    Value *a = build1(&m.b, "tanh", shaped, ""), *again = build1(&m.b, "tanh", x, "");
    made_output(&m, build2(&m.b, "mul", a, again, ""));
    run_until(&m, STAGE_PLAIN);
    expect_nodes("moves", m.g, "tanh mul");
}

static void test_pooled(void)
{
    Made m = made_new("pooled", 4);
    Value *x = INPUT(&m, "x", -1, 3, 8, 8);
    made_output(&m, build1(&m.b, "maxpool", build1(&m.b, "relu", x, ""), "kernel = 2"));
    Value *both = build1(&m.b, "relu", build1(&m.b, "tanh", x, ""), "");        // wanted as it is
    made_output(&m, build1(&m.b, "maxpool", both, "kernel = 3, stride = 2, pad = 1"));
    made_output(&m, both);
    run_until(&m, STAGE_PLAIN);
    expect_nodes("pooled", m.g, "maxpool relu tanh relu maxpool");
}

static void test_fold(void)
{
    Made m = made_new("fold", 4);
    Value *x = INPUT(&m, "x", -1, 6), *two = build_number(&m.b, TYPE_f32, 2);
    Value *eight = build2(&m.b, "mul", two, build2(&m.b, "add", two, two, ""), "");
    made_output(&m, build2(&m.b, "add", x, eight, ""));
    run_until(&m, STAGE_PLAIN);
    expect_nodes("fold", m.g, "add");
}

static void test_expand(void)
{
    Made m = made_new("expand", 4);
    Value *x = INPUT(&m, "x", -1, 6);
    made_output(&m, build1(&m.b, "mean", x, "axis = 1"));
    run_until(&m, STAGE_PLAIN);
    expect_nodes("expand", m.g, "sum per");
}

// --- Programs ------------------------------------------------------------------------------------------------------------------------

static void test_elementwise(void)
{
    Made m = made_new("elementwise", 5);
    Value *x = INPUT(&m, "x", -1, 3, 4), *y = INPUT(&m, "y", 4), *z = INPUT(&m, "z", -1, 3, 4);
    Value *e = build2(&m.b, "add", build1(&m.b, "exp", x, ""), y, "");
    made_output(&m, build2(&m.b, "mul", build1(&m.b, "tanh", e, ""), z, ""));
    expect_steps("elementwise", check_program("elementwise", &m, 5, 0), 1);
}

static void test_shared(void)                           // exp is used twice: it is computed once
{
    Made m = made_new("shared", 5);
    Value *x = INPUT(&m, "x", -1, 3), *e = build1(&m.b, "exp", x, "");
    made_output(&m, build2(&m.b, "div", e, build1(&m.b, "sum", e, "axis = 1, keep = true"), ""));
    expect_steps("shared", check_program("shared", &m, 5, 0), 2);       // sum and quotient are joined by rows
}

static void test_in_place(void)
{
    Made m = made_new("in_place", 8);
    Value *x = INPUT(&m, "x", -1, 16), *w = PARAM(&m, "w", 16, 16);
    Value *h = build1(&m.b, "relu", build2(&m.b, "matmul", x, w, ""), "");
    h = build1(&m.b, "tanh", build2(&m.b, "matmul", h, w, ""), "");
    made_output(&m, build2(&m.b, "matmul", h, w, ""));
    Program *program = check_program("in_place", &m, 8, 0);
    if (program != NULL && (program->arena_bytes != 2 * 8 * 16 * 4 || program->lower_bound != program->arena_bytes))
        fail("in_place", arena_printf(arena, "%d bytes in the arena, bound %d", (int)program->arena_bytes, (int)program->lower_bound));
}

static void test_reductions(const char *op, double bound)
{
    static const char *const axes[] = {"axis = 0", "axis = 1", "axis = 2", "axis = [0, 2]", "axis = [1, 2]", "axis = [0, 1]", "", "axis = [0, 2], keep = true"};
    for (int i = 0; i < COUNT(axes); i++)
        for (int wide = 0; wide < 2; wide++) {
            Made m = made_new(op, 6);
            Value *x = wide ? INPUT(&m, "x", -1, 9, 67) : INPUT(&m, "x", -1, 3, 5), *y = wide ? INPUT(&m, "y", 9, 1) : INPUT(&m, "y", 3, 1);
            made_output(&m, build1(&m.b, op, build2(&m.b, "mul", x, y, ""), axes[i]));
            expect_steps(op, check_program(arena_printf(arena, "%s %s", op, axes[i]), &m, 6, bound), 1);
        }
}

static void test_parts(void)                            // large enough to be cut
{
    Made m = made_new("parts", 70);
    Value *x = INPUT(&m, "x", -1, 40, 150);
    Value *e = build1(&m.b, "exp", x, "");
    made_output(&m, e);
    made_output(&m, build1(&m.b, "sum", x, "axis = 2"));
    made_output(&m, build1(&m.b, "sum", x, "axis = [0, 1]"));
    made_output(&m, build1(&m.b, "sum", x, "axis = 0"));
    Program *program = check_program("parts", &m, 70, 1e-4);        // sums of 2800 and more numbers in another order
    for (int i = 0; program != NULL && i < program->steps.count; i++)
        if (program->steps.at[i]->parts < 2 && program->steps.at[i]->flops != NULL && i != 2)
            fail("parts", program->steps.at[i]->equation);
}

static void test_movement(void)
{
    Made m = made_new("heads", 3);
    Value *x = INPUT(&m, "x", -1, 5, 24), *w = PARAM(&m, "w", 24, 24);
    Value *q = build2(&m.b, "matmul", x, w, "");
    Value *heads = build1(&m.b, "transpose", build1(&m.b, "reshape", q, "shape = [-1, 5, 4, 6]"), "axes = [0, 2, 1, 3]");
    Value *scores = build2(&m.b, "matmul", heads, heads, "transpose_b = true");
    Value *back = build1(&m.b, "transpose", build2(&m.b, "matmul", scores, heads, ""), "axes = [0, 2, 1, 3]");
    made_output(&m, build1(&m.b, "reshape", back, "shape = [-1, 5, 24]"));
    check_program("heads", &m, 3, 0);
}

static void test_slices(void)
{
    Made m = made_new("slices", 4);
    Value *x = INPUT(&m, "x", -1, 6, 5);
    Value *a = build1(&m.b, "slice", x, "axis = 1, from = 2, count = 3"), *b = build1(&m.b, "slice", x, "axis = 1, from = 0, count = 3");
    Value *both[] = {build1(&m.b, "exp", a, ""), b};
    Value *joined = build(&m.b, "concat", 2, both, "axis = 2");
    made_output(&m, build1(&m.b, "pad", joined, "pads = [0, 1, 0, 0, 0, 2]"));
    check_program("slices", &m, 4, 0);
}

static void test_image(void)
{
    Made m = made_new("image", 3);
    Value *x = INPUT(&m, "x", -1, 2, 9, 8), *w = PARAM(&m, "w", 4, 2, 3, 3), *bias = PARAM(&m, "b", 4);
    Value *in[] = {x, w, bias};
    Value *c = build1(&m.b, "relu", build(&m.b, "conv", 3, in, "channels = 4, kernel = 3, pad = 1"), "");
    Value *p = build1(&m.b, "maxpool", c, "kernel = 2");
    made_output(&m, build1(&m.b, "flatten", p, ""));
    made_output(&m, build1(&m.b, "softmax", build1(&m.b, "flatten", build1(&m.b, "avgpool", c, "kernel = 2"), ""), ""));
    check_program("image", &m, 3, 1e-6);
}

static void test_results(void)                          // results that are inputs, parameters, or the same twice
{
    Made m = made_new("results", 3);
    Value *x = INPUT(&m, "x", -1, 4), *w = PARAM(&m, "w", 4), *y = build2(&m.b, "add", x, w, "");
    Value *const all[] = {x, w, y, y, build1(&m.b, "reshape", y, "shape = [-1, 2, 2]")};
    for (int i = 0; i < COUNT(all); i++)
        made_output(&m, all[i]);
    check_program("results", &m, 3, 0);
}

// One value is the gradient of two parameters, a third parameter has none: each has its place in the block.
static void test_gradients(void)
{
    Made m = made_new("gradients", 3);
    Value *x = INPUT(&m, "x", -1, 4), *w = PARAM(&m, "w", 4), *v = PARAM(&m, "v", 4), *u = PARAM(&m, "u", 4);
    Value *sum = build1(&m.b, "sum", build2(&m.b, "mul", x, w, ""), "axis = 0");
    Value *all[] = {sum, sum, NULL}, *params[] = {w, v, u};
    made_output(&m, build2(&m.b, "add", sum, build2(&m.b, "mul", u, v, ""), ""));
    m.g->loss = build1(&m.b, "sum", sum, "");
    for (int i = 0; i < 3; i++) {
        Gradient gradient = {params[i]->param, all[i]};
        LIST_ADD(arena, m.g->gradients, gradient);
    }
    Program *program = program_of_graph(m.model, m.g, 3);
    Eval eval = eval_new(m.g, 3);
    if (program == NULL || !program_run(program, &eval)) {
        fail("gradients", "it does not run");
        return;
    }
    for (int i = 0; i < 3; i++) {
        const Gradient *gradient = &m.g->gradients.at[i];
        const Buffer *buffer = program->buffer[gradient->value->id];
        if (buffer->space != SPACE_GRAD || buffer->offset != 4 * gradient->param->offset || buffer->offset % 64 != 0)
            fail("gradients", "a gradient lies in another place");
        double first = tensor_get(eval.at[m.g->gradients.at[0].value->id], 1), here = tensor_get(eval.at[gradient->value->id], 1);
        if (here != (i < 2 ? first : 0))
            fail("gradients", "a gradient is another one");
    }
}

static void test_bound(void)
{
    Made m = made_new("bound", 3);
    Size dims[] = {m.n, size_symbol(m.cx, "T", 0)};
    Value *x = graph_input(m.g, "x", type_of(TYPE_f32, 2, dims), (DiagPlace){0});
    made_output(&m, build1(&m.b, "exp", x, ""));
    if (program_of_graph(m.model, m.g, 3) != NULL || m.cx->diag->errors != 1)
        fail("bound", "a size without a bound was planned");
}

static void test_plan(void)
{
    Made m = made_new("plan", 3);
    Value *x = INPUT(&m, "x", -1, 4), *w = PARAM(&m, "w", 4, 4);
    made_output(&m, build2(&m.b, "matmul", build1(&m.b, "relu", build2(&m.b, "matmul", x, w, ""), ""), w, ""));
    Program *program = program_of_graph(m.model, m.g, 3);
    Text text = {.arena = arena}, list = {.arena = arena};
    plan_print(&text, program);
    passes_list(&list);
    if (strstr(text.at, "lower bound") == NULL || strstr(list.at, "before") == NULL)
        fail("plan", text.at);
}

int main(void)
{
    arena = arena_new();
    if (passes_check() != NULL)
        fail("order", passes_check());
    for (int i = 0; rule_at(i) != NULL; i++)
        test_rule(rule_at(i));
    test_simplify();
    test_pooled();
    test_fold();
    test_expand();
    test_elementwise();
    test_shared();
    test_in_place();
    test_reductions("sum", 2e-5);                       // 603 numbers up to 4 in another order: 603 roundings of about 2e-6
    test_reductions("max", 0);
    test_parts();
    test_movement();
    test_slices();
    test_image();
    test_results();
    test_gradients();
    test_bound();
    test_plan();
    printf("passes: %s\n", failures == 0 ? "all right" : "failed");
    arena_free(arena);
    return failures == 0 ? 0 : 1;
}
