// codegen.c: hand-made programs through the printers: what is printed, that it compiles without a warning, and that it
// computes. The C compiler's name comes as the first argument, a folder to write in as the second, the repository's root as
// the third.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../codegen/codegen.h"

static int failures;

static void expect(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "codegen: %s\n", what);
        failures++;
    }
}

static void expect_text(const Text *text, const char *part)
{
    if (text->at == NULL || strstr(text->at, part) == NULL) {
        fprintf(stderr, "codegen: not printed: %s\nbut:\n%s\n", part, text->at != NULL ? text->at : "");
        failures++;
    }
}

static Arena *arena;  // of all tests

static Context *context_new(void)
{
    Context *cx = NEW(arena, Context);
    *cx = (Context){.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
    return cx;
}

// --- A hand-made program: two inputs, a weight, three steps ----------------------------------------------------------

typedef struct Made {
    Context *cx;
    Model *model;
    Program *program;
    Graph *graph;
    Size n;
} Made;

static Value *made_value(Made *m, ValueKind kind, const char *name, Type type)
{
    Value *value = NEW(m->cx->arena, Value);
    *value = (Value){.id = m->graph->values.count, .kind = kind, .name = name, .type = type};
    LIST_ADD(m->cx->arena, m->graph->values, value);
    return value;
}

static void made_place(Made *m, Value *value, Space space, int64_t offset, int64_t bytes, int index)
{
    Buffer *buffer = NEW(m->cx->arena, Buffer);
    *buffer = (Buffer){.value = value, .space = space, .offset = offset, .bytes = bytes, .index = index};
    m->program->buffer[value->id] = buffer;
}

static Made made_new(const char *name)
{
    Made m = {.cx = context_new()};
    m.n = size_symbol(m.cx, "N", 4);
    Symbol *batch = map_get(m.cx->symbols, "N");
    batch->batch = true;
    batch->bound = 4;
    m.graph = NEW(m.cx->arena, Graph);
    *m.graph = (Graph){.cx = m.cx, .name = name};
    m.model = NEW(m.cx->arena, Model);
    *m.model = (Model){.cx = m.cx, .name = name, .path = "made.net", .settings = map_new(m.cx->arena)};
    m.program = NEW(m.cx->arena, Program);
    *m.program =
        (Program){.cx = m.cx, .model = m.model, .graph = m.graph, .buffer = NEW_ARRAY(m.cx->arena, Buffer *, 64)};
    return m;
}

static Type type2(Context *cx, DType dtype, Size a, int64_t b)
{
    Size dims[] = {a, size_const(cx, b)};
    return type_of(dtype, 2, dims);
}

static Kernel *made_kernel(Made *m, const char *name, const char *equation)
{
    Kernel *kernel = NEW(m->cx->arena, Kernel);
    *kernel = (Kernel){
        .id = m->program->steps.count, .name = name, .scope = name, .op = "map", .equation = equation, .parts = 1};
    LIST_ADD(m->cx->arena, m->program->steps, kernel);
    return kernel;
}

static Expr *load2(Context *cx, Value *value, int a, int b)
{
    Expr *index[] = {expr_index(cx, a), expr_index(cx, b)};
    return expr_load(cx, value, 2, index);
}

static Loop *store2(Context *cx, Value *value, int a, int b, Expr *e)
{
    Loop *store = loop_new(cx, LOOP_STORE);
    store->target = value;
    store->count = 2;
    store->index[0] = expr_index(cx, a);
    store->index[1] = expr_index(cx, b);
    store->value = e;
    return store;
}

static Loop *loop_over(Context *cx, int var, AxisMark mark, Size to)
{
    return loop_for(cx, var, mark, expr_whole(cx, 0), expr_size(cx, to));
}

// h[n][j] = max(x[n][j] - (x[n][j] - 0.5), 0) * scale over a parallel and a vector loop.
static void add_relu(Made *m, Value *x, Value *y, int parts)
{
    Context *cx = m->cx;
    Kernel *kernel = made_kernel(m, "relu1", "y = max(x - (x - 0.5), 0) * x");
    Expr *e = load2(cx, x, 0, 1);
    e = expr_prim(cx, PRIM_sub, e, expr_prim(cx, PRIM_sub, load2(cx, x, 0, 1), expr_number(cx, TYPE_f32, 0.5), NULL),
                  NULL);
    e = expr_prim(cx, PRIM_max, e, expr_number(cx, TYPE_f32, 0), NULL);
    e = expr_prim(cx, PRIM_mul, e, load2(cx, x, 0, 1), NULL);
    Loop *outer = loop_over(cx, 0, AXIS_PARALLEL, m->n), *inner = loop_over(cx, 1, AXIS_VECTOR, size_const(cx, 6));
    loop_add(cx, inner, store2(cx, y, 0, 1, e));
    loop_add(cx, outer, inner);
    kernel->loops = outer;
    kernel->parts = parts;
    LIST_ADD(cx->arena, kernel->reads, x);
    LIST_ADD(cx->arena, kernel->writes, y);
}

static KernelArg arg_size(Size size) { return (KernelArg){.kind = ARG_SIZE, .size = size}; }
static KernelArg arg_number(int64_t number) { return (KernelArg){.kind = ARG_NUMBER, .number = number}; }
static KernelArg arg_value(Value *value) { return (KernelArg){.kind = ARG_VALUE, .value = value}; }

// y (N, 3) = h (N, 6) w (3, 6)' by the kernel file
static void add_dense(Made *m, Value *h, Value *w, Value *y)
{
    Kernel *kernel = made_kernel(m, "fc1", "y = h w'");
    const KernelArg args[] = {arg_size(m->n), arg_number(3), arg_number(6),      arg_value(h),
                              arg_number(6),  arg_number(1), arg_value(w),       arg_number(6),
                              arg_value(y),   arg_number(3), {.kind = ARG_NULL}, arg_number(0)};
    kernel->file = "gemm_nt";
    kernel->n_args = COUNT(args);
    memcpy(kernel->arg, args, sizeof args);
    kernel->parts = 2;
    kernel->scratch = 4 * 8192;
    m->program->scratch_bytes = 4 * 8192;
    LIST_ADD(m->cx->arena, kernel->reads, h);
    LIST_ADD(m->cx->arena, kernel->reads, w);
    LIST_ADD(m->cx->arena, kernel->writes, y);
}

// total[n] = sum over j of y[n][j]; the vector mark must not let the C compiler choose the order of the sum.
static void add_sum(Made *m, Value *y, Value *total)
{
    Context *cx = m->cx;
    Kernel *kernel = made_kernel(m, "total", "t[n] = sum y[n][j]");
    Loop *outer = loop_over(cx, 0, AXIS_SERIAL, m->n), *sum = loop_new(cx, LOOP_ACCUMULATOR);
    sum->var = 7;
    sum->type = TYPE_f32;
    sum->value = expr_number(cx, TYPE_f32, 0);
    Loop *inner = loop_over(cx, 1, AXIS_VECTOR, size_const(cx, 3)), *update = loop_new(cx, LOOP_UPDATE);
    update->var = 7;
    update->reduce = REDUCE_SUM;
    update->value = load2(cx, y, 0, 1);
    loop_add(cx, inner, update);
    Loop *store = loop_new(cx, LOOP_STORE);
    store->target = total;
    store->count = 1;
    store->index[0] = expr_index(cx, 0);
    store->value = expr_local(cx, TYPE_f32, 7);
    loop_add(cx, outer, sum);
    loop_add(cx, outer, inner);
    loop_add(cx, outer, store);
    kernel->loops = outer;
    LIST_ADD(cx->arena, kernel->reads, y);
    LIST_ADD(cx->arena, kernel->writes, total);
}

static Made made_program(const char *name)
{
    Made m = made_new(name);
    Context *cx = m.cx;
    Value *x = made_value(&m, VALUE_INPUT, "int", type2(cx, TYPE_f32, m.n, 6));  // a name that C would not take
    Value *h = made_value(&m, VALUE_RESULT, "relu1", type2(cx, TYPE_f32, m.n, 6));
    Param *param = NEW(cx->arena, Param);
    *param = (Param){.path = "fc1.weight", .type = type2(cx, TYPE_f32, size_const(cx, 3), 6), .trainable = true};
    LIST_ADD(cx->arena, m.model->params, param);
    Value *w = made_value(&m, VALUE_PARAM, "fc1.weight", param->type);
    w->param = param;
    Value *y = made_value(&m, VALUE_RESULT, "logits", type2(cx, TYPE_f32, m.n, 3));
    Value *total = made_value(&m, VALUE_RESULT, "total", type_of(TYPE_f32, 1, &m.n));
    made_place(&m, x, SPACE_INPUT, 0, 0, 0);
    made_place(&m, h, SPACE_ARENA, 64, 4 * 24, 0);
    made_place(&m, y, SPACE_OUTPUT, 0, 0, 0);
    made_place(&m, total, SPACE_OUTPUT, 0, 0, 1);
    m.program->arena_bytes = 192;
    LIST_ADD(cx->arena, m.graph->inputs, x);
    NamedValue logits = {.name = "logits", .value = y}, sums = {.name = "total", .value = total};
    LIST_ADD(cx->arena, m.graph->outputs, logits);
    LIST_ADD(cx->arena, m.graph->outputs, sums);
    add_relu(&m, x, h, 3);
    add_dense(&m, h, w, y);
    add_sum(&m, y, total);
    return m;
}

// --- Tests -----------------------------------------------------------------------------------------------------------

static void test_words(void)
{
    Context *cx = context_new();
    Text text = {.arena = cx->arena};
    put_name(&text, "a*/b\\\n\?\?/c.d");
    expect_text(&text, "a\\x2A/b\\x5C\\x0A\\x3F\\x3F/c.d");
    text = (Text){.arena = cx->arena};
    put_number(&text, 0.1, TYPE_f32);
    text_add(&text, " ");
    put_number(&text, 1e30, TYPE_f32);
    text_add(&text, " ");
    put_number(&text, 0.1, TYPE_f64);
    text_add(&text, " ");
    put_number(&text, 2, TYPE_f32);
    expect_text(&text, "0.1f 1e+30f 0.1 2.0f");
    text = (Text){.arena = cx->arena};
    put_string(&text, "say \"\?\?/\"\n\001");
    expect_text(&text, "\"say \\\"\\\?\?/\\\"\\n\\001\"");
    expect(strcmp(identifier(cx, "1.bad name"), "v1_bad_name") == 0, "identifier");
    expect(strcmp(public_word(cx, "int"), "int_") == 0, "public_word");
    text = (Text){.arena = cx->arena};
    put_grouped(&text, 1234567);
    text_add(&text, " ");
    put_amount(&text, 12800000);
    expect_text(&text, "1,234,567 12.8 M");
}

static void test_loops(void)
{
    Made m = made_program("made");
    Text text = {.arena = m.cx->arena};
    print_steps(&text, m.program, &dialect_c, "infer", NULL);
    expect_text(&text,
                "    const float (*restrict int_0)[6] = (void *)run->in[0];\n"
                "    float (*restrict relu1_1)[6] = (void *)(run->arena + 64);\n"
                "    for (int64_t n = mlk_share(N, part, 3), n_end = mlk_share(N, part + 1, 3); n < n_end; n++)\n"
                "        #pragma omp simd\n"
                "        for (int64_t i = 0; i < 6; i++)\n"
                "            relu1_1[n][i] = mlk_max2(int_0[n][i] - (int_0[n][i] - 0.5f), 0.0f) * int_0[n][i];\n");
    expect_text(&text,
                "mlk_gemm_nt(N, 3, 6, relu1_1, 6, 1, fc1_weight_2, 6, logits_3, 3, NULL, 0, (void *)run->scratch");
    expect_text(&text, "        for (int64_t i = 0; i < 3; i++)\n            sum += logits_3[n][i];\n");
}

static void test_in_place(void)
{
    Made m = made_program("made");
    m.program->buffer[1]->space = SPACE_INPUT;
    m.program->buffer[1]->index = 0;
    Text text = {.arena = m.cx->arena};
    print_steps(&text, m.program, &dialect_c, "infer", NULL);
    expect_text(
        &text,
        "    const float (*int_0)[6] = (void *)run->in[0];\n    float (*relu1_1)[6] = (void *)run->in[0];\n");
}

static void write_file(const char *path, const Text *text)
{
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(text->at, 1, text->length, out) != text->length || fclose(out) != 0) {
        perror(path);
        exit(1);
    }
}

#define FLAGS "-std=c11 -O2 -Wall -Wextra -Werror -fopenmp-simd -ffp-contract=off -fno-math-errno -fno-trapping-math"

static void run(const char *command)
{
    if (system(command) != 0) {
        fprintf(stderr, "codegen: failed: %s\n", command);
        failures++;
    }
}

static const char user[] = "#include \"made.h\"\n#include <stdio.h>\n#include <string.h>\n"
                           "int main(void)\n{\n"
                           "    static char arena[70000] __attribute__((aligned(64)));\n"
                           "    static float x[4][6], y[4][3], t[4], w[3][6];\n"
                           "    made_io io = {w, &x[0][0], &y[0][0], t};\n"
                           "    for (int i = 0; i < 24; i++) x[i / 6][i % 6] = (float)i;\n"
                           "    for (int i = 0; i < 18; i++) w[i / 6][i % 6] = 1.0f;\n"
                           "    if (made_run(&io, 3, arena, made_arena_bytes(3)) != made_OK) return 1;\n"
                           "    if (made_run(&io, 5, arena, sizeof arena) != made_BAD_BATCH) return 2;\n"
                           "    if (made_run(&io, 3, arena + 4, sizeof arena - 4) != made_BAD_ALIGNMENT) return 3;\n"
                           "    if (made_run(&io, 3, arena, 64) != made_SMALL_ARENA) return 4;\n"
                           "    for (int n = 0; n < 3; n++) {\n"
                           "        float sum = 0;\n"
                           "        for (int j = 0; j < 6; j++) sum += 0.5f * x[n][j];\n"
                           "        for (int j = 0; j < 3; j++) if (y[n][j] != sum) return 5;\n"
                           "        if (t[n] != 3 * sum) return 6;\n"
                           "    }\n"
                           "    if (t[3] != 0) return 7;\n"
                           "    return strcmp(made_info.input[0].name, \"int\") == 0 ? 0 : 8;\n}\n";

// The object compiles without a warning, has no variables, and gives what the formulas say; so does C++ read its header.
static void test_object(const char *cc, const char *folder)
{
    Made m = made_program("made");
    Text c = {.arena = m.cx->arena}, header = {.arena = m.cx->arena}, program = {.arena = m.cx->arena};
    codegen_object(&c, &header, m.model, m.program, NULL, NULL);
    text_put(&program, user, strlen(user));
    const char *at = arena_printf(m.cx->arena, "%s/made", folder);
    write_file(arena_printf(m.cx->arena, "%s.c", at), &c);
    write_file(arena_printf(m.cx->arena, "%s.h", at), &header);
    write_file(arena_printf(m.cx->arena, "%s_user.c", at), &program);
    run(arena_printf(m.cx->arena, "%s " FLAGS " -march=native -c %s.c -o %s.o", cc, at, at));
    run(arena_printf(m.cx->arena, "! nm %s.o | grep ' [bBdDC] '", at));
    run(arena_printf(
        m.cx->arena,
        "%s -std=c99 -Wall -Wextra -pedantic -Werror -Wno-gnu-empty-initializer %s_user.c %s.o -lm -o %s && %s", cc, at,
        at, at, at));
    run(arena_printf(m.cx->arena,
                     "%s -x c++ -std=c++11 -Wall -Wextra -pedantic -Werror -fsyntax-only -include %s.h /dev/null", cc,
                     at));
    run(arena_printf(
        m.cx->arena,
        "sed -n '/Example:/,/^#ifndef/s|^//   ||p' %s.h > %s_example.c && %s -std=c11 -Wall -Wextra -Werror -I%s "
        "%s_example.c %s.o -lm -o %s_example && %s_example > %s_example.out",
        at, at, cc, folder, at, at, at, at, at));
    Text again = {.arena = m.cx->arena}, header_again = {.arena = m.cx->arena};
    Made m2 = made_program("made");
    codegen_object(&again, &header_again, m2.model, m2.program, NULL, NULL);
    expect(strcmp(again.at, c.at) == 0, "the same input gives other bytes");
}

// Weights in the object, an index input that is checked, two named sizes, an output that is an input, labels.
// `shift`: a number is added to the index, so that it is compared where it is used instead of when it comes in.
static Made made_lookup(int64_t shift)
{
    Made m = made_new("lookup");
    Context *cx = m.cx;
    Size length = size_symbol(cx, "T", 8), dims[] = {m.n, length};
    Value *index = made_value(&m, VALUE_INPUT, "index", type_of(TYPE_i32, 2, dims));
    Param *param = NEW(cx->arena, Param);
    *param = (Param){.path = "table.weight", .type = type2(cx, TYPE_f32, size_const(cx, 3), 2)};
    LIST_ADD(cx->arena, m.model->params, param);
    Value *table = made_value(&m, VALUE_PARAM, "table.weight", param->type);
    table->param = param;
    Size dims3[] = {m.n, length, size_const(cx, 2)};
    Value *y = made_value(&m, VALUE_RESULT, "y", type_of(TYPE_f32, 3, dims3));
    made_place(&m, index, SPACE_INPUT, 0, 0, 0);
    made_place(&m, y, SPACE_OUTPUT, 0, 0, 0);
    LIST_ADD(cx->arena, m.graph->inputs, index);
    NamedValue out = {.name = "y", .value = y}, same = {.name = "same", .value = index};
    LIST_ADD(cx->arena, m.graph->outputs, out);
    LIST_ADD(cx->arena, m.graph->outputs, same);
    static const char *names[] = {"left \"and\"", "right"};
    LIST_ADD(cx->arena, m.model->labels, ((Labels){"y", 2, names}));
    Kernel *kernel = made_kernel(&m, "table", "y[n, t] = table[index[n, t]]");
    Expr *row = expr_cast(cx, TYPE_i64, load2(cx, index, 0, 1));
    if (shift != 0)
        row = expr_prim(cx, PRIM_add, row, expr_whole(cx, shift), NULL);
    Expr *at[] = {row, expr_index(cx, 2)};
    Loop *n = loop_over(cx, 0, AXIS_PARALLEL, m.n), *t = loop_over(cx, 1, AXIS_SERIAL, length);
    Loop *i = loop_over(cx, 2, AXIS_VECTOR, size_const(cx, 2)),
         *store = store2(cx, y, 0, 1, expr_load(cx, table, 2, at));
    store->index[store->count++] = expr_index(cx, 2);
    loop_add(cx, i, store);
    loop_add(cx, t, i);
    loop_add(cx, n, t);
    kernel->loops = n;
    return m;
}

static const char lookup_user[] =
    "#include \"lookup.h\"\n#include <string.h>\n"
    "int main(void)\n{\n"
    "    static char arena[64] __attribute__((aligned(64)));\n"
    "    static int32_t index[2][3] = {{0, 1, 2}, {2, 2, 1}}, same[2][3];\n"
    "    static float y[2][3][2];\n"
    "    lookup_io io = {3, &index[0][0], &y[0][0][0], &same[0][0]};\n"
    "    if (lookup_run(&io, 2, arena, sizeof arena) != lookup_OK) return 1;\n"
    "    for (int i = 0; i < 12; i++) if ((&y[0][0][0])[i] != (float)(2 * (&index[0][0])[i / 2] + i % 2)) return 2;\n"
    "    if (memcmp(index, same, sizeof same) != 0) return 3;\n"
    "    index[1][2] = 3;\n"
    "    if (lookup_run(&io, 2, arena, sizeof arena) != lookup_BAD_INDEX) return 4;\n"
    "    if (lookup_run(&io, 1, arena, sizeof arena) != lookup_OK) return 5;\n"
    "    io.T = 9;\n"
    "    if (lookup_run(&io, 1, arena, sizeof arena) != lookup_BAD_SIZE) return 6;\n"
    "    if (strcmp(lookup_label(0, 0), \"left \\\"and\\\"\") != 0 || lookup_label(0, 2) != 0 || lookup_label(1, 0) != "
    "0) return 7;\n"
    "    return lookup_run(&io, 1, 0, 64) == lookup_NULL_POINTER ? 0 : 8;\n}\n";

static void test_weights(const char *cc, const char *folder)
{
    Made m = made_lookup(0);
    Context *cx = m.cx;
    const float weights[] = {0, 1, 2, 3, 4, 5};
    Text c = {.arena = cx->arena}, header = c, program = c, bytes = c;
    text_put(&bytes, (const char *)weights, sizeof weights);
    text_put(&program, lookup_user, strlen(lookup_user));
    const char *at = arena_printf(cx->arena, "%s/lookup", folder);
    write_file(arena_printf(cx->arena, "%s weights.bin", at), &bytes);
    codegen_object(&c, &header, m.model, m.program, NULL, arena_printf(cx->arena, "%s weights.bin", at));
    write_file(arena_printf(cx->arena, "%s.c", at), &c);
    write_file(arena_printf(cx->arena, "%s.h", at), &header);
    write_file(arena_printf(cx->arena, "%s_user.c", at), &program);
    run(arena_printf(cx->arena, "%s " FLAGS " -fPIC -c %s.c -o %s.o", cc, at, at));
    run(arena_printf(cx->arena, "! nm %s.o | grep ' [bBdDC] '", at));
    run(arena_printf(cx->arena, "%s " FLAGS " %s_user.c %s.o -lm -o %s && %s", cc, at, at, at, at));
}

static const char shifted_user[] =
    "#include \"lookup.h\"\n#include <math.h>\n"
    "int main(void)\n{\n"
    "    static char arena[64] __attribute__((aligned(64)));\n"
    "    static int32_t index[4] = {1, 3, 0, INT32_MAX}, same[4];\n"
    "    static float y[4][2];\n"
    "    static const float weights[] = {0, 1, 2, 3, 4, 5};\n"
    "    lookup_io io = {weights, 4, index, &y[0][0], same};\n"
    "    if (lookup_run(&io, 1, arena, sizeof arena) != lookup_OK) return 1;\n"
    "    return y[0][0] == 0 && y[0][1] == 1 && y[1][1] == 5 && isnan(y[2][0]) && isnan(y[3][1]) ? 0 : 2;\n}\n";

// An index that is computed and falls outside reads nothing, and gives NaN.
static void test_shifted(const char *cc, const char *folder)
{
    Made m = made_lookup(-1);
    Context *cx = m.cx;
    Text c = {.arena = cx->arena}, header = c, program = c;
    codegen_object(&c, &header, m.model, m.program, NULL, NULL);
    expect_text(&c, "mlk_in_range(");
    text_put(&program, shifted_user, strlen(shifted_user));
    const char *at = arena_printf(cx->arena, "%s/lookup", folder);
    write_file(arena_printf(cx->arena, "%s.c", at), &c);
    write_file(arena_printf(cx->arena, "%s.h", at), &header);
    write_file(arena_printf(cx->arena, "%s_user.c", at), &program);
    run(arena_printf(cx->arena, "%s " FLAGS " -fsanitize=address,undefined -fno-sanitize-recover %s.c %s_user.c -lm -o %s && %s", cc, at, at, at, at));
}

// at[n] = where row n is largest, with a choice inside the loop; y[n] = what stands there, doubled where it is positive.
static Loop *update_local(Context *cx, int var, Expr *value)
{
    Loop *update = loop_new(cx, LOOP_UPDATE);
    update->var = var;
    update->value = value;
    return update;
}

static Loop *accumulator(Context *cx, int var, DType type, Expr *start)
{
    Loop *loop = loop_new(cx, LOOP_ACCUMULATOR);
    loop->var = var;
    loop->type = type;
    loop->value = start;
    return loop;
}

static Loop *store1(Context *cx, Value *value, Expr *e)
{
    Loop *store = loop_new(cx, LOOP_STORE);
    store->target = value;
    store->count = 1;
    store->index[0] = expr_index(cx, 0);
    store->value = e;
    return store;
}

static Made made_choice(void)
{
    Made m = made_new("choice");
    Context *cx = m.cx;
    Value *x = made_value(&m, VALUE_INPUT, "x", type2(cx, TYPE_f32, m.n, 6));
    Value *at = made_value(&m, VALUE_RESULT, "at", type_of(TYPE_i32, 1, &m.n));
    Value *y = made_value(&m, VALUE_RESULT, "y", type_of(TYPE_f32, 1, &m.n));
    made_place(&m, x, SPACE_INPUT, 0, 0, 0);
    made_place(&m, at, SPACE_OUTPUT, 0, 0, 0);
    made_place(&m, y, SPACE_OUTPUT, 0, 0, 1);
    LIST_ADD(cx->arena, m.graph->inputs, x);
    LIST_ADD(cx->arena, m.graph->outputs, ((NamedValue){.name = "at", .value = at}));
    LIST_ADD(cx->arena, m.graph->outputs, ((NamedValue){.name = "y", .value = y}));
    Expr *first[] = {expr_index(cx, 0), expr_whole(cx, 0)};
    Loop *rows = loop_over(cx, 0, AXIS_SERIAL, m.n), *columns = loop_over(cx, 1, AXIS_SERIAL, size_const(cx, 6));
    columns->from = expr_whole(cx, 1);
    Loop *larger = loop_new(cx, LOOP_IF), *positive = loop_new(cx, LOOP_IF), *other = loop_new(cx, LOOP_BLOCK);
    larger->value = expr_prim(cx, PRIM_gt, load2(cx, x, 0, 1), expr_local(cx, TYPE_f32, 1), NULL);
    loop_add(cx, larger, update_local(cx, 1, load2(cx, x, 0, 1)));
    loop_add(cx, larger, update_local(cx, 2, expr_index(cx, 1)));
    loop_add(cx, columns, larger);
    Expr *most = expr_local(cx, TYPE_f32, 1);
    positive->value = expr_prim(cx, PRIM_gt, most, expr_number(cx, TYPE_f32, 0), NULL);
    loop_add(cx, positive, store1(cx, y, expr_prim(cx, PRIM_mul, expr_number(cx, TYPE_f32, 2), most, NULL)));
    loop_add(cx, other, store1(cx, y, most));
    positive->other = other;
    loop_add(cx, rows, accumulator(cx, 1, TYPE_f32, expr_load(cx, x, 2, first)));
    loop_add(cx, rows, accumulator(cx, 2, TYPE_i64, expr_whole(cx, 0)));
    loop_add(cx, rows, columns);
    loop_add(cx, rows, store1(cx, at, expr_cast(cx, TYPE_i32, expr_local(cx, TYPE_i64, 2))));
    loop_add(cx, rows, positive);
    made_kernel(&m, "choice", "")->loops = rows;
    return m;
}

static const char choice_user[] =
    "#include \"choice.h\"\n"
    "int main(void)\n{\n"
    "    static char arena[64] __attribute__((aligned(64)));\n"
    "    static const float x[2][6] = {{1, 5, 2, 5, 0, 1}, {-3, -2, -1, -4, -1, -9}};\n"
    "    int32_t at[2];\n"
    "    float y[2];\n"
    "    choice_io io = {&x[0][0], at, y};\n"
    "    if (choice_run(&io, 2, arena, sizeof arena) != choice_OK) return 1;\n"
    "    return at[0] == 1 && at[1] == 2 && y[0] == 10 && y[1] == -1 ? 0 : 2;\n}\n";

static void test_choice(const char *cc, const char *folder)
{
    Made m = made_choice();
    Context *cx = m.cx;
    Text c = {.arena = cx->arena}, header = c, program = c;
    codegen_object(&c, &header, m.model, m.program, NULL, "/dev/null");
    text_put(&program, choice_user, strlen(choice_user));
    const char *at = arena_printf(cx->arena, "%s/choice", folder);
    write_file(arena_printf(cx->arena, "%s.c", at), &c);
    write_file(arena_printf(cx->arena, "%s.h", at), &header);
    write_file(arena_printf(cx->arena, "%s_user.c", at), &program);
    run(arena_printf(cx->arena, "%s " FLAGS " %s.c %s_user.c -lm -o %s && %s", cc, at, at, at, at));
}

// Every primitive on every type it takes, and every cast, in one step for each type: the text compiles without a warning.
static Expr *all_prims(Context *cx, DType type, Expr *a, Expr *b)
{
    bool is_float = type_is_float(type);
    Expr *sum = a;
    for (int prim = 0; prim < PRIM_COUNT; prim++) {
        const PrimDef *def = prim_def(prim);
        bool logic = prim == PRIM_and || prim == PRIM_or || prim == PRIM_not,
             only_float = strchr(def->c, '(') != NULL && prim != PRIM_floordiv && prim != PRIM_mod &&
                          prim != PRIM_abs && prim != PRIM_min && prim != PRIM_max;
        if (prim == PRIM_random || (only_float && !is_float) || (logic && type != TYPE_bool))
            continue;
        Expr *e = def->operands == 3 ? expr_prim(cx, prim, expr_prim(cx, PRIM_lt, a, b, NULL), b, a)
                                     : expr_prim(cx, prim, a, def->operands > 1 ? b : NULL, NULL);
        if (def->result == PRIM_BOOL && type != TYPE_bool)
            e = expr_prim(cx, PRIM_select, e, a, b);
        sum = type == TYPE_bool ? expr_prim(cx, PRIM_or, sum, e, NULL) : expr_prim(cx, PRIM_sub, e, sum, NULL);
    }
    for (DType from = TYPE_NONE + 1; from < TYPE_COUNT; from++)
        sum = expr_prim(cx, type == TYPE_bool ? PRIM_or : PRIM_add, sum, expr_cast(cx, type, expr_cast(cx, from, a)),
                        NULL);
    return sum;
}

static void test_formulas(const char *cc, const char *folder)
{
    Made m = made_new("formulas");
    Context *cx = m.cx;
    for (DType type = TYPE_NONE + 1; type < TYPE_COUNT; type++) {
        Value *x = made_value(&m, VALUE_INPUT, "x", type2(cx, type, m.n, 6)),
              *y = made_value(&m, VALUE_RESULT, "y", x->type);
        made_place(&m, x, SPACE_INPUT, 0, 0, type - 1);
        made_place(&m, y, SPACE_OUTPUT, 0, 0, type - 1);
        LIST_ADD(cx->arena, m.graph->inputs, x);
        NamedValue output = {.name = "y", .value = y};
        LIST_ADD(cx->arena, m.graph->outputs, output);
        Kernel *kernel = made_kernel(&m, type_def(type)->name, "all primitives");
        Expr *back = expr_prim(cx, PRIM_sub, expr_whole(cx, 5), expr_index(cx, 1), NULL);
        Expr *half = expr_prim(cx, PRIM_floordiv, expr_index(cx, 1), expr_whole(cx, 2), NULL);
        Expr *index[] = {expr_index(cx, 0), back},
             *other[] = {expr_index(cx, 0), expr_prim(cx, PRIM_add, half, half, NULL)};
        Loop *outer = loop_over(cx, 0, AXIS_SERIAL, m.n), *inner = loop_over(cx, 1, AXIS_SERIAL, size_const(cx, 6));
        loop_add(cx, inner,
                 store2(cx, y, 0, 1, all_prims(cx, type, expr_load(cx, x, 2, index), expr_load(cx, x, 2, other))));
        loop_add(cx, outer, inner);
        kernel->loops = outer;
    }
    Text c = {.arena = cx->arena}, header = {.arena = cx->arena};
    codegen_object(&c, &header, m.model, m.program, NULL, NULL);
    expect_text(&c, "[n][5 - i]");
    expect_text(&c, "[n][i / 2 + i / 2]");
    const char *at = arena_printf(cx->arena, "%s/formulas", folder);
    write_file(arena_printf(cx->arena, "%s.c", at), &c);
    run(arena_printf(cx->arena, "%s " FLAGS " -c %s.c -o %s.o", cc, at, at));
}

// A data mapping: int = columns(0..5) / 16 + table, label = column(6) as it is.
static Program *made_mapping(Made *m)
{
    Context *cx = m->cx;
    Made data = *m;
    data.graph = NEW(cx->arena, Graph);
    *data.graph = (Graph){.cx = cx, .name = "data"};
    data.program = NEW(cx->arena, Program);
    *data.program =
        (Program){.cx = cx, .model = m->model, .graph = data.graph, .buffer = NEW_ARRAY(cx->arena, Buffer *, 64)};
    Size six = size_const(cx, 6);
    static const float table[6] = {0.25f, 0, 0, 0, 0, -1e-7f};
    Value *columns = made_value(&data, VALUE_INPUT, "columns", type_of(TYPE_f32, 1, &six));
    Value *column = made_value(&data, VALUE_INPUT, "column", type_of(TYPE_i32, 0, NULL));
    Value *constant = made_value(&data, VALUE_CONST, "table", type_of(TYPE_f32, 1, &six));
    Value *unused = made_value(&data, VALUE_CONST, "unused", type_of(TYPE_f32, 1, &six));
    Value *y = made_value(&data, VALUE_RESULT, "y", type_of(TYPE_f32, 1, &six));
    constant->data = unused->data = table;
    column->index = 1;
    made_place(&data, columns, SPACE_INPUT, 0, 0, 0);
    made_place(&data, column, SPACE_INPUT, 0, 0, 1);
    made_place(&data, constant, SPACE_CONST, 0, 24, 0);
    made_place(&data, y, SPACE_OUTPUT, 0, 0, 0);
    LIST_ADD(cx->arena, data.graph->inputs, columns);
    LIST_ADD(cx->arena, data.graph->inputs, column);
    LIST_ADD(cx->arena, data.graph->outputs, ((NamedValue){.name = "int", .value = y}));
    LIST_ADD(cx->arena, data.graph->outputs, ((NamedValue){.name = "label", .value = column}));
    LIST_ADD(cx->arena, m->model->recipe->fields,
             ((Field){.how = FIELD_COLUMNS, .first = 0, .last = 5, .value = columns}));
    LIST_ADD(cx->arena, m->model->recipe->fields,
             ((Field){.how = FIELD_COLUMNS, .first = 6, .last = 6, .value = column}));
    Kernel *kernel = made_kernel(&data, "scale", "y = columns / 16 + table");
    Expr *at[] = {expr_index(cx, 0)};
    Loop *loop = loop_over(cx, 0, AXIS_VECTOR, six), *store = loop_new(cx, LOOP_STORE);
    store->target = y;
    store->count = 1;
    store->index[0] = at[0];
    store->value = expr_prim(cx, PRIM_div, expr_load(cx, columns, 1, at), expr_number(cx, TYPE_f32, 16), NULL);
    store->value = expr_prim(cx, PRIM_add, store->value, expr_load(cx, constant, 1, at), NULL);
    loop_add(cx, loop, store);
    kernel->loops = loop;
    LIST_ADD(cx->arena, kernel->reads, columns);
    LIST_ADD(cx->arena, kernel->reads, constant);
    LIST_ADD(cx->arena, kernel->writes, y);
    return data.program;
}

static const char prepare_user[] =
    "#include \"made.h\"\n"
    "int main(void)\n{\n"
    "    static const float columns[6] = {16, 8, 4, 0, 2, 0};\n"
    "    float x[6];\n"
    "    const made_fields fields = {columns};\n"
    "    const made_sample sample = {x};\n"
    "    if (made_prepare(&fields, &sample) != made_OK || made_prepare(0, &sample) != made_NULL_POINTER) return 1;\n"
    "    return x[0] == 1.25f && x[1] == 0.5f && x[2] == 0.25f && x[5] == -1e-7f ? 0 : 2;\n}\n";

static void test_prepare(const char *cc, const char *folder)
{
    Made m = made_program("made");
    Context *cx = m.cx;
    m.model->recipe = NEW(cx->arena, Recipe);
    Program *data = made_mapping(&m);
    Text c = {.arena = cx->arena}, header = c, program = c;
    codegen_object(&c, &header, m.model, m.program, data, NULL);
    text_put(&program, prepare_user, strlen(prepare_user));
    const char *at = arena_printf(cx->arena, "%s/made", folder);
    write_file(arena_printf(cx->arena, "%s.c", at), &c);
    write_file(arena_printf(cx->arena, "%s.h", at), &header);
    write_file(arena_printf(cx->arena, "%s_prepare.c", at), &program);
    run(arena_printf(cx->arena, "%s " FLAGS " %s.c %s_prepare.c -lm -o %s_prepare && %s_prepare", cc, at, at, at, at));
}

// A training program of the same steps, for each optimiser: it compiles, and its update is the optimiser's.
static void test_train(const char *cc, const char *folder, const char *root)
{
    for (int i = 0; optimizer_at(i) != NULL; i++) {
        Made m = made_program("made");
        Context *cx = m.cx;
        Recipe *recipe = NEW(cx->arena, Recipe);
        *recipe = (Recipe){.batch = 4, .epochs = 1, .optimizer = optimizer_at(i), .seed = 1};
        OptimizerGroup group = {.arg = {0}};
        for (int k = 0; k < recipe->optimizer->n_args; k++)  // not the defaults, so that every argument matters
            group.arg[k] = recipe->optimizer->arg[k].initial != 0 ? recipe->optimizer->arg[k].initial * 0.75 : 0.25;
        LIST_ADD(cx->arena, recipe->groups, group);
        LIST_ADD(cx->arena, recipe->splits, ((Split){"train", 1, NULL}));
        m.model->recipe = recipe;
        m.graph->loss = m.graph->outputs.at[1].value;
        Value *label = made_value(&m, VALUE_INPUT, "label", type_of(TYPE_i32, 1, &m.n));
        label->below = 3;
        LIST_ADD(cx->arena, m.graph->inputs, label);
        m.graph->n_targets = 1;
        Text c = {.arena = cx->arena};
        codegen_train(&c, m.model, m.program, m.program, made_mapping(&m));
        expect_text(&c, "    if (!target_too)\n        return;\n    memcpy(run->out[1], run->in[1], 4);\n}");
        expect_text(&c, "int main(int argc, char **argv) { return mlrt_main(&model, argc, argv); }");
        const char *at = arena_printf(cx->arena, "%s/train_%s", folder, optimizer_at(i)->name);
        write_file(arena_printf(cx->arena, "%s.c", at), &c);
        run(arena_printf(cx->arena, "%s " FLAGS " -I%s/runtime %s.c %s/tests/unit/codegen_update.c -lm -o %s && %s", cc,
                         root, at, root, at, at));
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: codegen CC FOLDER ROOT\n");
        return 2;
    }
    arena = arena_new();
    test_words();
    test_loops();
    test_in_place();
    test_formulas(argv[1], argv[2]);
    test_object(argv[1], argv[2]);
    test_choice(argv[1], argv[2]);
    test_weights(argv[1], argv[2]);
    test_shifted(argv[1], argv[2]);
    test_prepare(argv[1], argv[2]);
    test_train(argv[1], argv[2], argv[3]);
    arena_free(arena);
    return failures > 0;
}
