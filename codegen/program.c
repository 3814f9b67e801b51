// program.c: each step of a program as one function, with what it computes and costs in the comment over it.
//
// A function takes the places of its values from the run (arena, parameters, the caller's buffers) as pointers to arrays
// with their real dimensions, and then computes. Where two values share memory (in place), the pointers say nothing of
// being apart; everywhere else they do (restrict).
#include "codegen.h"

#include <string.h>

Printer printer_new(const Program *program, const Dialect *dialect, const char *prefix, Text *out)
{
    return (Printer){.cx = program->cx, .dialect = dialect, .program = program, .prefix = prefix, .out = out};
}

// --- Places ----------------------------------------------------------------------------------------------------------

const Buffer *buffer_home(const Program *program, const Value *value)
{
    const Buffer *buffer = program->buffer[value->id];
    while (buffer != NULL && buffer->alias != NULL)
        buffer = buffer->alias;
    return buffer;
}

const char *value_name(Context *cx, const Value *value)
{
    const Value *origin = value_origin(value);
    const char *name = origin->kind == VALUE_PARAM   ? origin->param->path
                       : origin->kind == VALUE_CONST ? "constant"
                                                     : origin->name;
    return arena_printf(cx->arena, "%s_%d", identifier(cx, name), value->id);
}

const char *kernel_name(Context *cx, const char *prefix, const Kernel *kernel)
{
    return arena_printf(cx->arena, "%s_%d_%s", prefix, kernel->id, identifier(cx, kernel->name));
}

static int64_t param_offset(const Param *param) { return param->offset * type_def(param->type.dtype)->bytes; }

static void put_offset(Text *out, const char *base, int64_t offset)
{
    text_add(out, offset != 0 ? "run->%s + %lld" : "run->%s", base, (long long)offset);
}

// The constant a value is, or shares the memory of.
const Value *constant_of(const Program *program, const Value *value)
{
    const Buffer *buffer = buffer_home(program, value);
    if (value->kind == VALUE_CONST || buffer == NULL)
        return value->kind == VALUE_CONST ? value : NULL;
    return buffer->space == SPACE_CONST ? buffer->value : NULL;
}

static const char *constant_name(const Printer *p, const Value *value)
{
    return arena_printf(p->cx->arena, "%s_%s", p->prefix, value_name(p->cx, value));
}

// The place of a value in the run, or the constant that it is.
void put_place(Printer *p, const Value *value, Text *out)
{
    static const char *const base[] = {[SPACE_ARENA] = "arena", [SPACE_PARAM] = "param", [SPACE_GRAD] = "grad",
                                       [SPACE_STATE] = "state", [SPACE_INPUT] = "in",    [SPACE_OUTPUT] = "out"};
    const Buffer *buffer = buffer_home(p->program, value);
    const Value *constant = constant_of(p->program, value);
    if (constant != NULL) {
        text_add(out, "%s", constant_name(p, constant));
        return;
    }
    if (buffer == NULL && value->kind == VALUE_PARAM)
        put_offset(out, base[SPACE_PARAM], param_offset(value->param));
    else if (buffer == NULL)
        BUG("kernel %s uses %s, which has no place in memory", p->kernel->name, value->name);
    else if (buffer->space == SPACE_INPUT || buffer->space == SPACE_OUTPUT)
        text_add(out, "run->%s[%d]", base[buffer->space], buffer->index);
    else
        put_offset(out, base[buffer->space], buffer->offset);
}

// --- Constants -------------------------------------------------------------------------------------------------------

static void put_constant_element(Text *out, const void *data, DType type, int64_t i)
{
    switch (type) {
    case TYPE_f32: put_number(out, ((const float *)data)[i], TYPE_f32); break;
    case TYPE_f64: put_number(out, ((const double *)data)[i], TYPE_f64); break;
    case TYPE_f16:
    case TYPE_bf16: text_add(out, "0x%04x", ((const uint16_t *)data)[i]); break;
    case TYPE_bool:
    case TYPE_u8: text_add(out, "%d", ((const uint8_t *)data)[i]); break;
    case TYPE_i8: text_add(out, "%d", ((const int8_t *)data)[i]); break;
    case TYPE_i16: text_add(out, "%d", ((const int16_t *)data)[i]); break;
    case TYPE_u16: text_add(out, "%d", ((const uint16_t *)data)[i]); break;
    case TYPE_u32: text_add(out, "%uu", ((const uint32_t *)data)[i]); break;
    case TYPE_u64: text_add(out, "%lluu", (unsigned long long)((const uint64_t *)data)[i]); break;
    case TYPE_i32:
        if (((const int32_t *)data)[i] == INT32_MIN)
            text_add(out, "INT32_MIN");
        else
            text_add(out, "%d", ((const int32_t *)data)[i]);
        break;
    case TYPE_i64:
        if (((const int64_t *)data)[i] == INT64_MIN)
            text_add(out, "INT64_MIN");
        else
            text_add(out, "%lld", (long long)((const int64_t *)data)[i]);
        break;
    default: BUG("a constant has no element type");
    }
}

static void print_constant(Printer *p, const Value *value)
{
    int64_t count = 1;
    for (int i = 0; i < value->type.shape.rank; i++)
        count *= size_value(value->type.shape.dim[i]);
    text_add(p->out, "// ");
    put_remark(p->out, type_text(p->cx, &value->type));
    text_add(p->out, "\nstatic const %s %s[%lld] = {", type_def(value->type.dtype)->c, constant_name(p, value),
             (long long)(count > 0 ? count : 1));
    size_t line = p->out->length;
    for (int64_t i = 0; i < count; i++) {
        bool wrap = p->out->length - line > LINE_WIDTH - 20;
        if (wrap)
            line = p->out->length;
        text_add(p->out, i == 0 ? "" : wrap ? ",\n    " : ", ");
        put_constant_element(p->out, value->data, value->type.dtype, i);
    }
    text_add(p->out, count > 0 ? "};\n" : "0};\n");
}

static bool is_output(const Graph *graph, const Value *value)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.at[i].value == value)
            return true;
    return false;
}

// Whether a text has a name, and not as the beginning of a longer one.
static bool names(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + length, name))
        if (strchr(";,)", at[length]) != NULL && at[length] != 0)
            return true;
    return false;
}

// The constants that the text of the steps names, or that are outputs themselves.
static void print_constants(Printer *p, const char *steps)
{
    size_t before = p->out->length;
    for (int i = 0; i < p->program->graph->values.count; i++) {
        const Value *value = p->program->graph->values.at[i];
        if (value->kind != VALUE_CONST)
            continue;
        if (names(steps, constant_name(p, value)) || is_output(p->program->graph, value))
            print_constant(p, value);
    }
    text_add(p->out, p->out->length > before ? "\n" : "");
}

// --- Pointers --------------------------------------------------------------------------------------------------------

static bool listed(Value *const *at, int count, const Value *value)
{
    for (int i = 0; i < count; i++)
        if (at[i] == value)
            return true;
    return false;
}

static bool is_written(const Printer *p, const Value *value) { return listed(p->written.at, p->written.count, value); }

static bool overlap(const Printer *p, const Value *a, const Value *b)
{
    const Buffer *x = buffer_home(p->program, a), *y = buffer_home(p->program, b);
    if (x == NULL || y == NULL || x->space != y->space)
        return false;
    if (x == y)
        return true;
    if (x->space == SPACE_INPUT || x->space == SPACE_OUTPUT)
        return x->index == y->index;
    return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

// A pointer is restrict unless the kernel reaches the same memory by another one, and writes there.
static bool stands_apart(const Printer *p, const Value *value)
{
    bool both = listed(p->flat.at, p->flat.count, value) && listed(p->shaped.at, p->shaped.count, value);
    if (both)
        return false;
    for (int i = 0; i < p->touched.count; i++) {
        const Value *other = p->touched.at[i];
        if (other != value && (is_written(p, other) || is_written(p, value)) && overlap(p, value, other))
            return false;
    }
    return true;
}

// The place of a value, as a pointer to void: (void *)(run->arena + 64).
const char *place_text(Printer *p, const Value *value)
{
    Text place = {.arena = p->cx->arena};
    put_place(p, value, &place);
    return arena_printf(p->cx->arena, strchr(place.at, '+') != NULL ? "(void *)(%s)" : "(void *)%s", place.at);
}

// In a function that several steps share (share.c) the places are arguments: NAME_at.
static void put_pointer(Printer *p, Text *out, const Value *value, const char *ending, bool shaped, bool at)
{
    const Shape *shape = &value->type.shape;
    const char *quality = is_written(p, value) ? "" : "const ";
    const char *apart = stands_apart(p, value) ? p->dialect->restrict_word : "";
    const char *type = type_def(value->type.dtype)->c, *name = value_name(p->cx, value);
    bool array = shaped && shape->rank > 1;
    text_add(out, array ? "    %s%s (*%s%s%s)" : "    %s%s *%s%s%s", quality, type, apart, name, ending);
    for (int i = 1; array && i < shape->rank; i++) {
        text_add(out, "[");
        print_size(p, out, shape->dim[i]);
        text_add(out, "]");
    }
    if (at)
        text_add(out, " = %s_at;\n", name);
    else
        text_add(out, " = %s;\n", place_text(p, value));
}

static void put_pointers(Printer *p, Text *out, bool at)
{
    for (int i = 0; i < p->touched.count; i++) {
        const Value *value = p->touched.at[i];
        bool flat = listed(p->flat.at, p->flat.count, value), shaped = listed(p->shaped.at, p->shaped.count, value);
        if (shaped)
            put_pointer(p, out, value, "", true, at);
        if (flat)
            put_pointer(p, out, value, shaped ? "_flat" : "", false, at);
    }
}

// --- Calls of kernel files -------------------------------------------------------------------------------------------

static void note_argument(Printer *p, const Kernel *kernel, Value *value)
{
    if (!listed(p->touched.at, p->touched.count, value)) {
        LIST_ADD(p->cx->arena, p->touched, value);
        LIST_ADD(p->cx->arena, p->flat, value);
    }
    if (listed(kernel->writes.at, kernel->writes.count, value) && !is_written(p, value))
        LIST_ADD(p->cx->arena, p->written, value);
}

static void put_count(Printer *p, Text *out, const KernelArg *arg)
{
    if (arg->kind == ARG_SIZE)
        print_size(p, out, arg->size);
    else
        text_add(out, "%lld", (long long)arg->number);
}

// Batched products: each call takes the next matrix of the values that have several.
static void put_argument(Printer *p, Text *out, const Kernel *kernel, const KernelArg *arg)
{
    if (arg->kind == ARG_NULL)
        text_add(out, "NULL");
    else if (arg->kind != ARG_VALUE)
        put_count(p, out, arg);
    else {
        const Shape *shape = &arg->value->type.shape;
        text_add(out, "%s", value_name(p->cx, arg->value));
        if (kernel->repeat != NULL && shape->rank > 2) {
            text_add(out, " + i * (");
            print_size(p, out, size_times(p->cx, shape->dim[shape->rank - 2], shape->dim[shape->rank - 1]));
            text_add(out, ")");
        }
    }
}

// Adds one of several words that stand between brackets, on a new line where the present one is full.
static void put_word(Printer *p, size_t *line, bool first, const char *word, bool last)
{
    size_t used = p->out->length - *line, more = strlen(word) + (last ? strlen(");") : strlen(", ,"));
    if (first)
        text_add(p->out, "%s", word);
    else if (used + more > LINE_WIDTH) {
        text_add(p->out, ",\n%*s%s", 4 * p->indent + 4, "", word);
        *line = p->out->length - strlen(word) - 4 * (size_t)p->indent - 4;
    } else
        text_add(p->out, ", %s", word);
}

// A struct of sizes that begins the arguments: const MlkConv2d sizes = {.n = N, .c = 16, …};
static int put_sizes_struct(Printer *p, const Kernel *kernel, const char *parameters)
{
    if (strncmp(parameters, "const Mlk", 9) != 0)
        return 0;
    const char *type = arena_string(p->cx->arena, parameters + 6, strcspn(parameters + 6, " ")), *fields[24];
    int count = kernel_fields(p->cx, type, fields, COUNT(fields));
    size_t line = p->out->length;
    put_indent(p);
    text_add(p->out, "const %s sizes = {", type);
    for (int i = 0; i < count; i++) {
        CHECK(i < kernel->n_args && (kernel->arg[i].kind == ARG_SIZE || kernel->arg[i].kind == ARG_NUMBER));
        Text word = {.arena = p->cx->arena};
        text_add(&word, ".%s = ", fields[i]);
        put_count(p, &word, &kernel->arg[i]);
        put_word(p, &line, i == 0, word.at, i + 1 == count);
    }
    text_add(p->out, "};\n");
    return count;
}

// The name of a parameter: the last word before the comma.
static const char *parameter_next(const char *at, char name[64])
{
    size_t length = strcspn(at, ",");
    const char *end = at + length, *from = end;
    while (from > at && from[-1] != ' ' && from[-1] != '*')
        from--;
    snprintf(name, 64, "%.*s", (int)(end - from), from);
    return *end == ',' ? end + 1 + strspn(end + 1, " \n") : end;
}

// The arguments of the kernel, then what the function's own declaration asks for: scratch, part, parts.
static void put_call(Printer *p, const Kernel *kernel, const char *function, const char *parameters, int next)
{
    bool batched = kernel->repeat != NULL;
    if (batched) {
        put_indent(p);
        text_add(p->out, "for (int64_t i = 0; i < ");
        print_size(p, p->out, kernel->repeat);
        text_add(p->out, "; i++)\n");
        p->indent++;
    }
    size_t line = p->out->length;
    put_indent(p);
    text_add(p->out, "%s(", function);
    char name[64];
    for (const char *at = parameters; *at != 0;) {
        bool first = at == parameters, sizes = first && next > 0;
        at = parameter_next(at, name);
        Text word = {.arena = p->cx->arena};
        if (sizes)
            text_add(&word, "&sizes");
        else if (strcmp(name, "scratch") == 0)
            text_add(&word, "(void *)run->scratch");
        else if (strcmp(name, "part") == 0)
            text_add(&word, "part"), p->part_used = true;
        else if (strcmp(name, "parts") == 0)
            text_add(&word, "%d", kernel->parts);
        else {
            CHECK(next < kernel->n_args);
            put_argument(p, &word, kernel, &kernel->arg[next++]);
        }
        put_word(p, &line, first, word.at, *at == 0);
    }
    CHECK(next == kernel->n_args);
    text_add(p->out, ");\n");
    p->indent -= batched;
}

static void print_file_kernel(Printer *p, const Kernel *kernel)
{
    const char *function =
        strncmp(kernel->file, "mlk_", 4) == 0 ? kernel->file : arena_printf(p->cx->arena, "mlk_%s", kernel->file);
    const char *parameters = kernel_parameters(p->cx, function);
    if (parameters == NULL)
        BUG("no kernel file defines %s", function);
    for (int i = 0; i < kernel->n_args; i++)
        if (kernel->arg[i].kind == ARG_VALUE)
            note_argument(p, kernel, kernel->arg[i].value);
    put_call(p, kernel, function, parameters, put_sizes_struct(p, kernel, parameters));
}

// --- Steps -----------------------------------------------------------------------------------------------------------

// A piece of the comment, on a new line where the present one is full.
static void put_piece(Text *out, size_t *line, const char *piece)
{
    if (out->length - *line + strlen(piece) > LINE_WIDTH - 4) {
        text_add(out, "\n//  ");
        *line = out->length - 4;
    }
    text_add(out, " %s", piece);
}

static const char *shape_piece(Context *cx, const Value *value)
{
    Text piece = {.arena = cx->arena}, dims = {.arena = cx->arena};
    text_add(&dims, "(");
    for (int i = 0; i < value->type.shape.rank; i++) {
        text_add(&dims, i > 0 ? ", " : "");
        size_print(&dims, value->type.shape.dim[i]);
    }
    text_add(&dims, ")");
    text_add(&piece, " %s ", value_name(cx, value));
    if (value->type.dtype != TYPE_f32)
        text_add(&piece, "%s ", type_def(value->type.dtype)->name);
    put_remark(&piece, dims.at);
    return piece.at;
}

// The name of a source as the net that is compiled would call it: without the folder that they share.
const char *source_name(const char *net, const char *source)
{
    const char *slash = strrchr(net, '/');
    size_t folder = slash != NULL ? (size_t)(slash - net) + 1 : 0;
    return strncmp(source, net, folder) == 0 ? source + folder : source;
}

// digits.net:7, without the column; "" for what was not written by the user.
static const char *where_text(Printer *p, DiagPlace place)
{
    if (place.source == 0)
        return "";
    Text where = {.arena = p->cx->arena};
    put_name(&where, source_name(p->program->model->path, p->cx->diag->sources.at[place.source - 1].name));
    text_add(&where, ":%d", diag_line(p->cx->diag, place));
    return where.at;
}

// The ops it computes, each once: conv + relu.
static void put_ops(Text *out, const Kernel *kernel)
{
    if (kernel->nodes.count == 0)
        put_name(out, kernel->op != NULL ? kernel->op : "");
    for (int i = 0; i < kernel->nodes.count; i++) {
        bool again = false;
        for (int k = 0; k < i; k++)
            again |= kernel->nodes.at[k]->op == kernel->nodes.at[i]->op;
        if (again)
            continue;
        text_add(out, i > 0 ? " + " : "");
        put_name(out, kernel->nodes.at[i]->op->name);
    }
}

// Text of a comment, broken at blanks where a line is full.
static void put_wrapped(Text *out, const char *text)
{
    size_t line = out->length;
    text_add(out, "//  ");
    while (*text != 0) {
        size_t word = strcspn(text, " ");
        if (out->length - line + 1 + word > LINE_WIDTH && out->length - line > 4) {
            line = out->length + 1;
            text_add(out, "\n//      ");
        }
        text_add(out, " %.*s", (int)word, text);
        text += word + (text[word] == ' ');
    }
    text_add(out, "\n");
}

// The layer; where there is none, what the user calls the result.
static const char *title_name(const Kernel *kernel)
{
    const Value *result = kernel->writes.count > 0 ? kernel->writes.at[kernel->writes.count - 1] : NULL;
    if (kernel->scope != NULL && kernel->scope[0] != 0)
        return kernel->scope;
    return result != NULL && result->name != NULL && result->node != NULL ? result->name : kernel->name;
}

// What it is, its equation, and where it was written: on one line, or the equation on lines of its own.
static void print_title(Printer *p, const Kernel *kernel)
{
    Text title = {.arena = p->cx->arena}, equation = {.arena = p->cx->arena};
    const char *where = where_text(p, kernel->place);
    text_add(&title, "// ");
    put_name(&title, title_name(kernel));
    text_add(&title, " (");
    put_ops(&title, kernel);
    text_add(&title, kernel->phase == PHASE_BACKWARD ? ", gradient)" : ")");
    put_remark(&equation, kernel->equation != NULL ? kernel->equation : "");
    bool fits = title.length + equation.length + strlen(where) + 3 <= LINE_WIDTH;
    if (fits && equation.length > 0)
        text_add(&title, ": %s", equation.at);
    if (*where != 0) {
        text_pad(&title, LINE_WIDTH - 1 - strlen(where));
        text_add(&title, " %s", where);
    }
    text_add(p->out, "%s\n", title.at);
    if (!fits)
        put_wrapped(p->out, equation.at);
}

void print_comment(Printer *p, const Kernel *kernel)
{
    Text *out = p->out;
    print_title(p, kernel);
    text_add(out, "//  ");
    size_t line = out->length - 4;
    for (int i = 0; i < p->touched.count; i++)
        put_piece(out, &line, shape_piece(p->cx, p->touched.at[i]));
    int64_t flops;
    if (kernel->flops != NULL && size_upper(kernel->flops, &flops)) {
        Text cost = {.arena = p->cx->arena};
        text_add(&cost, "  ");
        put_amount(&cost, flops);
        text_add(&cost, " operations");
        put_piece(out, &line, cost.at);
    }
    text_add(out, "\n");
}

// The named sizes that were used, as locals.
void print_sizes(const Printer *p, Text *out)
{
    for (int i = 0; i < p->sizes.count; i++) {
        text_add(out, "    const int64_t %s = run->size[%d];\n", size_name(p->cx, p->sizes.at[i]),
                 size_slot(p->program, p->sizes.at[i]));
    }
}

// The body first, into a text of its own: it shows which pointers and sizes the function needs.
KernelText kernel_text(const Printer *p, const Kernel *kernel, bool at)
{
    KernelText text = {.own = printer_new(p->program, p->dialect, p->prefix, NULL)};
    Text body = {.arena = p->cx->arena}, pointers = body, sizes = body;
    text.own.out = &body;
    text.own.kernel = kernel;
    text.own.indent = 1;
    if (kernel->loops != NULL) {
        name_loops(&text.own, kernel->loops);
        print_loops(&text.own, kernel->loops);
    } else
        print_file_kernel(&text.own, kernel);
    put_pointers(&text.own, &pointers, at);
    print_sizes(&text.own, &sizes);
    text.own.out = NULL;
    text.sizes = sizes.at != NULL ? sizes.at : "";
    text.pointers = pointers.at != NULL ? pointers.at : "";
    text.body = body.at != NULL ? body.at : "";
    text.run_used = text.sizes[0] != 0 || strstr(text.pointers, "run->") != NULL || strstr(text.body, "run->") != NULL;
    return text;
}

void print_function_body(Text *out, const KernelText *text)
{
    text_add(out, "{\n");
    if (!text->own.part_used)
        text_add(out, "    (void)part;\n");
    if (!text->run_used)
        text_add(out, "    (void)run;\n");
    text_add(out, "%s%s%s}\n\n", text->sizes, text->pointers, text->body);
}

void print_steps_of(Text *out, const Program *program, const Dialect *dialect, const char *prefix, Functions *functions,
                    const bool *which)
{
    Text steps = {.arena = program->cx->arena};
    Printer p = printer_new(program, dialect, prefix, &steps);
    for (int i = 0; i < program->steps.count; i++)
        if (which == NULL || which[i])
            print_kernel(&p, program->steps.at[i], functions);
    p.out = out;
    print_constants(&p, steps.at != NULL ? steps.at : "");
    text_put(out, steps.at != NULL ? steps.at : "", steps.length);
}

void print_steps(Text *out, const Program *program, const Dialect *dialect, const char *prefix, Functions *functions)
{
    print_steps_of(out, program, dialect, prefix, functions, NULL);
}

// The steps as calls, one after the other, each with all its parts.
void print_call_steps(Printer *p, const bool *which, bool wanted)
{
    for (int s = 0; s < p->program->steps.count; s++) {
        const Kernel *step = p->program->steps.at[s];
        if (which != NULL && which[s] != wanted)
            continue;
        if (step->parts > 1) {
            put_line(p, "for (int part = 0; part < %d; part++)", step->parts);
            put_line(p, "    %s(run, part);", kernel_name(p->cx, p->prefix, step));
        } else
            put_line(p, "%s(run, 0);", kernel_name(p->cx, p->prefix, step));
    }
}

// How many elements a value has, in the named sizes.
const char *grouped_text(Printer *p, const Value *value)
{
    Text text = {.arena = p->cx->arena};
    for (int i = 0; i < value->type.shape.rank; i++) {
        Text dim = {.arena = p->cx->arena};
        print_size(p, &dim, value->type.shape.dim[i]);
        text_add(&text, i > 0 ? " * " : "");
        text_add(&text, strchr(dim.at, ' ') != NULL ? "(%s)" : "%s", dim.at);
    }
    return text.at != NULL ? text.at : "1";
}

// An output that is an input, a constant or another output as it stands has no place of its own, and is copied.
void print_output_copy(Printer *p, const Value *value, int index)
{
    const Buffer *home = buffer_home(p->program, value);
    if (home != NULL && home->space == SPACE_OUTPUT && home->index == index)
        return;
    Text place = {.arena = p->cx->arena};
    put_place(p, value, &place);
    int bytes = type_def(value->type.dtype)->bytes;
    int64_t count;
    if (size_known(shape_count(p->cx, &value->type.shape), &count))
        put_line(p, "memcpy(run->out[%d], %s, %lld);", index, place.at, (long long)(count * bytes));
    else
        put_line(p, "memcpy(run->out[%d], %s, (size_t)(%s * %d));", index, place.at, grouped_text(p, value), bytes);
}

// --- Memory plan -----------------------------------------------------------------------------------------------------

void print_memory(Text *out, const Program *program, const char *title)
{
    text_add(out, "//   %-12s ", title);
    put_grouped(out, program->arena_bytes);
    text_add(out, " bytes of activations in %d steps", program->steps.count);
    if (program->lower_bound > 0) {
        text_add(out, " (live at once: ");
        put_grouped(out, program->lower_bound);
        text_add(out, ")");
    }
    text_add(out, "\n");
}
