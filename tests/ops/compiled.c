// compiled.c: every case of every row as C. Many cases go into one graph, results and gradients by their inputs as outputs;
// the graph runs in the interpreter, and through all passes and the C compiler. Floats agree to 1e-5 (sums may be taken in
// another order, and the elementary functions are rounded once more), everything else to the bit.
//
// usage: compiled CC FOLDER [OP …]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../codegen/codegen.h"
#include "case.h"

enum { CASES_MAX = 72, JOBS = 2 };

static const double allowed_c = 1e-5;           // relative to the larger of the value and 1

#define FLAGS "-std=c11 -O1 -march=native -fopenmp-simd -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra -Werror"

typedef struct Output { Value *value; const OpDef *op; const char *text; Tensor *wanted; } Output;

typedef struct Batch {                  // one graph, one C file
    int      number;
    Arena   *arena;
    Context *cx;
    Graph   *g;
    int      cases;
    LIST(Output) outputs;
    LIST(Tensor *) inputs;              // by the order of g->inputs
    LIST(Value *) of;                   // the value of each
    pid_t    compiler;
} Batch;

static Batch batch_new(int number, bool training)
{
    Batch b = {.number = number, .arena = arena_new()};
    b.cx = context_new(b.arena);
    b.g = graph_new(b.cx, "cases");
    b.g->training = training;
    b.g->stage = STAGE_TYPED;
    size_symbol(b.cx, "N", N);
    ((Symbol *)map_get(b.cx->symbols, "N"))->batch = true;
    return b;
}

static void note_input(Batch *b, Value *v, Tensor *t)
{
    Tensor *copy = tensor_new(b->arena, v->type.dtype, t->rank, t->dim);
    for (int64_t i = 0; i < tensor_count(t); i++)
        tensor_set(copy, i, tensor_get(t, i));
    LIST_ADD(b->arena, b->of, v);
    LIST_ADD(b->arena, b->inputs, copy);
}

static void note_output(Batch *b, Value *v, const OpDef *op, const char *text)
{
    LIST_ADD(b->arena, b->outputs, ((Output){v, op, text, NULL}));
    LIST_ADD(b->arena, b->g->outputs, ((NamedValue){.name = arena_printf(b->arena, "y%d", b->outputs.count), .value = v}));
}

static void add_to_loss(Batch *b, Case *c)
{
    Builder builder = {.cx = b->cx, .graph = b->g, .scope = "", .training = b->g->training};
    Value *factors = graph_input(b->g, "factors", c->out[0]->type, (DiagPlace){0});
    Tensor *t = tensor_at(c, &c->out[0]->type, TYPE_f64);
    for (int64_t i = 0; i < tensor_count(t); i++)
        tensor_set(t, i, draw() * 2 - 1);
    note_input(b, factors, t);
    bool all[RANK_MAX] = {true, true, true, true, true, true, true, true};
    Value *product = build_map2(&builder, "x0 * x1", c->out[0], factors);
    Value *sum = build_cast(&builder, build_reduce(&builder, "sum", product, all, false), TYPE_f32);
    b->g->loss = b->g->loss == NULL ? sum : build_map2(&builder, "x0 + x1", b->g->loss, sum);
}

static void add_case(void *context, const OpDef *op, const char *text, bool training)
{
    Batch *b = context;
    Case c;
    if (training != b->g->training || (op->traits & OP_RANDOM && !(op->traits & OP_MODE)) || (op->traits & OP_RANDOM && training))
        return;                         // objects draw no numbers; trainers' runs test those
    b->cases++;
    if (!case_into(&c, b->arena, b->cx, b->g, op, text))
        return;
    for (int k = 0; k < c.call.n_in; k++)
        if (c.value[k] != NULL && c.call.in[k] != NULL)      // `like` is let go
            note_input(b, c.call.in[k], c.value[k]);
    for (int k = 0; k < c.call.n_out; k++)
        note_output(b, c.out[k], op, text);
    if (op->no_grad == NULL && type_is_float(c.out[0]->type.dtype) && training)
        add_to_loss(b, &c);
    else
        for (int k = 0; k < c.call.n_in; k++)
            if (c.call.in[k] != NULL && c.call.in[k]->param != NULL)
                c.call.in[k]->param->trainable = false;
}

static void differentiate(Batch *b)
{
    if (b->g->loss == NULL)
        return;
    Work work = {.cx = b->cx, .graph = b->g, .batch = N};
    pass_expand(&work);
    for (int i = 0; i < b->outputs.count; i++)
        b->outputs.at[i].value = b->g->outputs.at[i].value;
    graph_grad(b->g);
    for (int i = 0; i < b->g->gradients.count; i++) {
        const Param *param = b->g->gradients.at[i].param;
        note_output(b, b->g->gradients.at[i].value, op_find(param->op->name), param->path);
    }
    b->g->gradients.count = 0;
    b->g->updates.count = 0;
    b->g->loss = NULL;
}

// Parameters become inputs, so that all memory is the caller's.
static void inputs_in_order(Batch *b)
{
    b->g->inputs.count = 0;
    for (int i = 0; i < b->of.count; i++) {
        Value *v = b->of.at[i];
        v->kind = VALUE_INPUT;
        v->param = NULL;
        v->name = arena_printf(b->arena, "x%d", i);
        v->index = i;
        LIST_ADD(b->arena, b->g->inputs, v);
    }
}

static void interpret(Batch *b)
{
    int64_t symbols[] = {N, N, N, N};
    Eval eval = {.arena = b->arena, .symbols = symbols, .seed = 7, .step = 1};
    eval.at = NEW_ARRAY(b->arena, Tensor *, b->g->values.count);
    for (int i = 0; i < b->of.count; i++)
        eval.at[b->of.at[i]->id] = b->inputs.at[i];
    if (!eval_graph(b->g, &eval))
        fail("all", "", eval.error != NULL ? eval.error : "the interpreter does not run");
    for (int i = 0; i < b->outputs.count; i++)
        b->outputs.at[i].wanted = eval.at[b->outputs.at[i].value->id];
}

static void put_text(const char *path, const char *text, size_t length)
{
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(text, 1, length, out) != length || fclose(out) != 0) {
        perror(path);
        exit(1);
    }
}

// An object has room for 64 inputs and as many outputs; here there are more.
static void put_with_room(const char *path, const Text *c)
{
    const char *in = strstr(c->at, "in[64]"), *out = strstr(c->at, "out[64]");
    CHECK(in != NULL && out != NULL && in < out);
    Text text = {0};
    text.arena = c->arena;
    text_put(&text, c->at, (size_t)(in - c->at));
    text_add(&text, "in[2048]");
    text_put(&text, in + 6, (size_t)(out - in - 6));
    text_add(&text, "out[2048]");
    text_put(&text, out + 7, strlen(out + 7));
    put_text(path, text.at, text.length);
}

static void start_compiler(Batch *b, const char *cc, const char *folder)
{
    Model *model = NEW(b->arena, Model);
    *model = (Model){.cx = b->cx, .name = "cases", .path = "cases.net", .infer = b->g, .settings = map_new(b->arena)};
    b->g->stage = STAGE_DIFFERENTIATED;
    Program *program = program_of_graph(model, b->g, N);
    if (program == NULL) {
        diag_print(b->cx->diag, stderr);
        fail("all", "", "the passes refuse it");
        return;
    }
    Text c = {.arena = b->arena}, header = {.arena = b->arena};
    codegen_object(&c, &header, model, program, NULL, NULL);
    const char *at = arena_printf(b->arena, "%s/cases%d", folder, b->number);
    put_with_room(arena_printf(b->arena, "%s.c", at), &c);
    const char *command = arena_printf(b->arena, "%s " FLAGS " -fPIC -shared %s.c -o %s.so -lm", cc, at, at);
    if ((b->compiler = fork()) == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
}

static void compare(const Output *o, const char *data)
{
    const Tensor *want = o->wanted;
    Tensor got = *want;
    got.data = (void *)(uintptr_t)data;
    for (int64_t i = 0; i < tensor_count(want); i++) {
        double x = tensor_get(&got, i), y = tensor_get(want, i);
        bool close = type_is_float(want->dtype) && fabs(x - y) <= allowed_c * fmax(1, fabs(y));
        if (x == y || (isnan(x) && isnan(y)) || close)
            continue;
        char line[120];
        snprintf(line, sizeof line, "element %d is %.9g in C, %.9g in the interpreter", (int)i, x, y);
        fail(o->op->name, o->text, line);
        return;
    }
}

static void *symbol(void *library, const char *name)
{
    void *at = dlsym(library, name);
    if (at == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(at != NULL);
    return at;
}

// Which index it was that the object has refused.
static void report_status(Batch *b, int status)
{
    fail("all", "", arena_printf(b->arena, "the object says %d", status));
    for (int i = 0; i < b->inputs.count; i++)
        for (int64_t k = 0, below = b->of.at[i]->below; below > 0 && k < tensor_count(b->inputs.at[i]); k++)
            if (tensor_get(b->inputs.at[i], k) < 0 || tensor_get(b->inputs.at[i], k) >= (double)below)
                fprintf(stderr, "    input %d (%s, element %d) should be below %d\n", i, type_text(b->cx, &b->of.at[i]->type), (int)k, (int)below);
}

static void run_compiled(Batch *b, const char *folder)
{
    int status;
    if (b->compiler == 0 || waitpid(b->compiler, &status, 0) < 0 || status != 0) {
        fail("all", "", "the C compiler refuses it");
        return;
    }
    void *library = dlopen(arena_printf(b->arena, "%s/cases%d.so", folder, b->number), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fail("all", "", dlerror());
        return;
    }
    int (*run)(const void *io, int64_t batch, void *arena, size_t bytes) = symbol(library, "cases_run");
    size_t (*arena_bytes)(int64_t batch) = symbol(library, "cases_arena_bytes");
    void **io = NEW_ARRAY(b->arena, void *, b->inputs.count + b->outputs.count);
    char *room = NULL;
    int at = 0;
    for (int i = 0; i < b->inputs.count; i++)
        io[at++] = b->inputs.at[i]->data;
    int first = at;
    for (int i = 0; i < b->outputs.count; i++) {
        const Tensor *t = b->outputs.at[i].wanted;
        size_t bytes = (size_t)tensor_count(t) * (size_t)type_def(t->dtype)->bytes;
        io[at++] = memset(arena_alloc(b->arena, bytes + 16), 0xff, bytes + 16);
    }
    size_t bytes = arena_bytes(N);
    if (posix_memalign((void **)&room, 64, bytes + 64) != 0)
        exit(1);
    memset(room, 0xff, bytes + 64);     // NaN: what is read before it is written shows
    status = run(io, N, room, bytes);
    if (status != 0)
        report_status(b, status);
    for (int i = 0; i < b->outputs.count && status == 0; i++)
        compare(&b->outputs.at[i], io[first + i]);
    free(room);
    dlclose(library);
}

static bool named(const OpDef *op, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], op->name) == 0)
            return true;
    return count == 0;
}

static void finish(Batch *b, const char *folder)
{
    run_compiled(b, folder);
    arena_free(b->arena);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: compiled CC FOLDER [OP …]\n");
        return 2;
    }
    Batch batch[JOBS];
    int started = 0, cases = 0, outputs = 0, next = 0;
    for (int training = 1; training >= 0; training--)
        for (next = 0; next < op_count();) {
            Batch b = batch_new(started, training != 0);
            for (; next < op_count() && b.cases < CASES_MAX; next++)
                if (named(op_at(next), argc - 3, argv + 3))
                    each_case(op_at(next), add_case, &b);
            differentiate(&b);
            inputs_in_order(&b);
            interpret(&b);
            cases += b.cases;
            outputs += b.outputs.count;
            if (b.cases == 0) {
                arena_free(b.arena);
                continue;
            }
            if (started >= JOBS)
                finish(&batch[started % JOBS], argv[2]);
            start_compiler(&b, argv[1], argv[2]);
            batch[started++ % JOBS] = b;
        }
    for (int i = started > JOBS ? started - JOBS : 0; i < started; i++)
        finish(&batch[i % JOBS], argv[2]);
    printf("ops in C: %d cases, %d results in %d files, %d failures\n", cases, outputs, started, failures);
    return failures > 0;
}
