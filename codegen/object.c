// object.c: an inference object: C that needs nobody, and its header.
//
// No heap, no variable outside of functions, no table of pointers (which a linker would have to write to): the steps are
// called one after the other, names and shapes are arrays in read-only data. The weights stand in the object as bytes that
// the assembler reads from a file (.incbin), or come from the caller. The caller gives an arena of the size that the header
// says; two models, or two threads with two arenas, never meet.
#include "codegen.h"

#include <string.h>

enum { ARENA_ALIGNMENT = 64, LARGEST_BATCH = 1 << 30, STACK_LIMIT = 65536 };

typedef struct Port {
    const char *name, *field;
    const Value *value;
    bool input;
} Port;

typedef struct Object {
    Context *cx;
    Model *model;
    Program *infer, *data;  // data: NULL where the model has no mapping, or one too large for the stack
    const char *prefix, *weights_file;
    Text *out;
    LIST(Port) ports;            // inputs, then outputs
    LIST(const Symbol *) sizes;  // named sizes but for the batch
    const Symbol *batch;         // NULL: one sample at a time
    int64_t max_batch, weight_bytes, arena_bytes;
    DataNeeds needs;
} Object;

// --- What the model has ----------------------------------------------------------------------------------------------

static const char *field_name(Object *o, const char *name)
{
    const char *word = public_word(o->cx, name);
    for (int i = 0; i < o->ports.count; i++)
        if (strcmp(o->ports.at[i].field, word) == 0)
            return arena_printf(o->cx->arena, "%s_%d", word, o->ports.count);
    return word;
}

static void add_port(Object *o, const char *name, const Value *value, bool input)
{
    Port port = {name, field_name(o, name), value, input};
    LIST_ADD(o->cx->arena, o->ports, port);
}

static void add_sizes(Object *o, const Shape *shape)
{
    for (int i = 0; i < shape->rank; i++) {
        const Symbol *symbols[16];
        int count = size_symbols(shape->dim[i], symbols, COUNT(symbols));
        for (int k = 0; k < count; k++) {
            bool known = symbols[k]->batch;
            for (int s = 0; s < o->sizes.count; s++)
                known |= o->sizes.at[s] == symbols[k];
            if (!known)
                LIST_ADD(o->cx->arena, o->sizes, symbols[k]);
            if (symbols[k]->batch)
                o->batch = symbols[k];
        }
    }
}

static int64_t padded(int64_t bytes) { return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT; }

static Object object_new(Model *model, Program *infer, Program *data, const char *weights_file)
{
    Object o = {.cx = model->cx,
                .model = model,
                .infer = infer,
                .weights_file = weights_file,
                .prefix = identifier(model->cx, model->name),
                .weight_bytes = params_end(model, true) * (int64_t)sizeof(float)};
    const Graph *graph = infer->graph;
    for (int i = 0; i < graph->inputs.count; i++)
        add_port(&o, graph->inputs.at[i]->name, graph->inputs.at[i], true);
    for (int i = 0; i < graph->outputs.count; i++)
        add_port(&o, graph->outputs.at[i].name, graph->outputs.at[i].value, false);
    for (int i = 0; i < o.ports.count; i++)
        add_sizes(&o, &o.ports.at[i].value->type.shape);
    o.max_batch = o.batch == NULL                                        ? 1
                  : o.batch->bound > 0 && o.batch->bound < LARGEST_BATCH ? o.batch->bound
                                                                         : LARGEST_BATCH;
    o.arena_bytes = padded(infer->arena_bytes) + padded(infer->scratch_bytes);
    if (o.arena_bytes == 0)
        o.arena_bytes = ARENA_ALIGNMENT;
    if (data != NULL && model->recipe != NULL && data->arena_bytes <= STACK_LIMIT) {
        o.data = data;
        o.needs = data_needs(data, graph);
    }
    return o;
}

// The caller gives the weights. A net that has none asks for none.
static bool takes_weights(const Object *o) { return o->weights_file == NULL && o->weight_bytes > 0; }

// --- Header ----------------------------------------------------------------------------------------------------------

static const char *upper(Context *cx, const char *word)
{
    char *copy = arena_string(cx->arena, word, strlen(word));
    for (char *at = copy; *at != 0; at++)
        if (*at >= 'a' && *at <= 'z')
            *at = (char)(*at - 'a' + 'A');
    return copy;
}

static const char *port_shape(Object *o, const Value *value)
{
    Text text = {.arena = o->cx->arena}, safe = {.arena = o->cx->arena};
    text_add(&text, "(");
    for (int i = 0; i < value->type.shape.rank; i++) {
        text_add(&text, i > 0 ? ", " : "");
        const Symbol *symbols[1];
        int64_t n;
        if (o->batch != NULL && size_symbols(value->type.shape.dim[i], symbols, 1) == 1 && symbols[0] == o->batch &&
            !size_known(value->type.shape.dim[i], &n) && i == 0)
            text_add(&text, "batch");
        else
            size_print(&text, value->type.shape.dim[i]);
    }
    text_add(&text, ")");
    put_remark(&safe, text.at);
    return safe.at;
}

static const char *port_type(const Port *port) { return type_def(port->value->type.dtype)->c; }

static void header_opening(Object *o, Text *out)
{
    text_add(out, "// ");
    put_name(out, o->model->name);
    text_add(out, ": inference, made from ");
    put_name(out, source_name(o->model->path, o->model->path));
    text_add(out, " by mlc %s.\n//\n", MLC_VERSION);
    text_add(out, "//   weights      ");
    put_grouped(out, o->weight_bytes);
    text_add(out, !takes_weights(o) ? " bytes, in the object\n" : " bytes, given by the caller\n");
    text_add(out, "//   arena        ");
    put_grouped(out, o->arena_bytes);
    text_add(out, " bytes, given by the caller for each thread that runs the model\n//   batch        up to %lld\n//\n",
             (long long)o->max_batch);
    text_add(
        out,
        "// Threads: nothing here is shared or kept between calls. Any number of threads may call %s_run at the same "
        "time,\n"
        "// each with an arena and outputs of its own. It allocates nothing, calls only libm, and leaves the\n"
        "// floating-point mode as it was. The same inputs give the same bits, whatever the batch they come in.\n//\n",
        o->prefix);
}

// A whole program in the comment: the tests compile it.
static void header_example(Object *o, Text *out)
{
    const char *m = o->prefix;
    text_add(out, "// Example:\n//\n//   #include \"%s.h\"\n//   #include <stdio.h>\n//\n//   int main(void)\n//   {\n",
             m);
    text_add(out, "//       static _Alignas(%d) char arena[%lld];\n", ARENA_ALIGNMENT, (long long)o->arena_bytes);
    if (takes_weights(o))
        text_add(out, "//       static float weights[%lld];    // fill from a file\n",
                 (long long)(o->weight_bytes / 4));
    text_add(out, "//       %s_io io = {0};\n", m);
    for (int i = 0; i < o->sizes.count; i++)
        text_add(out, "//       io.%s = 1;\n", size_name(o->cx, o->sizes.at[i]));
    if (takes_weights(o))
        text_add(out, "//       io.weights = weights;\n");
    for (int i = 0; i < o->ports.count; i++) {
        const Port *port = &o->ports.at[i];
        int64_t count = 1, n;
        for (int d = 0; d < port->value->type.shape.rank; d++) {
            const Symbol *symbols[1];
            count *= size_known(port->value->type.shape.dim[d], &n)                                       ? n
                     : size_symbols(port->value->type.shape.dim[d], symbols, 1) == 1 && symbols[0]->batch ? 1
                     : size_upper(port->value->type.shape.dim[d], &n)                                     ? n
                                                                                                          : 1;
        }
        text_add(out, "//       static %s %s[%lld];\n//       io.%s = %s;\n", port_type(port), port->field,
                 (long long)(count > 0 ? count : 1), port->field, port->field);
    }
    text_add(out, "//       %s_status status = %s_run(&io, 1, arena, sizeof arena);\n", m, m);
    text_add(out, "//       puts(%s_status_text(status));\n//       return status != %s_OK;\n//   }\n", m, m);
}

static void header_io(Object *o, Text *out)
{
    const char *m = o->prefix;
    text_add(out, "// What a call reads and writes. Arrays are row-major without gaps. Outputs overlap neither inputs "
                  "nor each other.\n");
    text_add(out, "typedef struct %s_io {\n", m);
    if (takes_weights(o))
        text_add(out, "    const void *weights;        // %lld bytes, the flat block that `mlc` writes, aligned to 4\n",
                 (long long)o->weight_bytes);
    for (int i = 0; i < o->sizes.count; i++) {
        text_add(out, "    int64_t %s;", size_name(o->cx, o->sizes.at[i]));
        text_pad(out, 32);
        text_add(out, "// 1 ... %lld\n", (long long)o->sizes.at[i]->bound);
    }
    for (int i = 0; i < o->ports.count; i++) {
        const Port *port = &o->ports.at[i];
        text_add(out, "    %s%s *%s;", port->input ? "const " : "", port_type(port), port->field);
        text_pad(out, 32);
        text_add(out, "// %s %s%s", port->input ? "input" : "output", port_shape(o, port->value),
                 port->value->type.dtype == TYPE_f16    ? " f16"
                 : port->value->type.dtype == TYPE_bf16 ? " bf16"
                 : port->value->type.dtype == TYPE_bool ? " 0 or 1"
                                                        : "");
        if (port->input && port->value->below > 0)
            text_add(out, ", each 0 ... %lld", (long long)(port->value->below - 1));
        text_add(out, ", aligned to %d\n", type_def(port->value->type.dtype)->bytes);
    }
    text_add(out, "} %s_io;\n\n", m);
}

typedef struct StatusRow {
    const char *name, *text;
} StatusRow;

static const StatusRow status_rows[] = {
    {"OK", "done"},
    {"NULL_POINTER", "a pointer is NULL"},
    {"BAD_BATCH", "the batch is below 1 or above the largest that the memory is planned for"},
    {"BAD_SIZE", "a named size is below 1 or above its bound"},
    {"BAD_ALIGNMENT", "a pointer is not aligned as its elements are, or the arena not to 64"},
    {"SMALL_ARENA", "the arena is smaller than the model needs"},
    {"BAD_INDEX", "an input that holds indices has one out of range"},
};

static int64_t longest_name(const Object *o)
{
    size_t length = 0;
    for (int i = 0; i < o->ports.count; i++)
        length = strlen(o->ports.at[i].name) > length ? strlen(o->ports.at[i].name) : length;
    return (int64_t)(length / 8 + 1) * 8;
}

static int input_count(const Object *o) { return o->infer->graph->inputs.count; }

static void header_info(Object *o, Text *out)
{
    const char *m = o->prefix;
    text_add(out,
             "typedef struct %s_tensor {\n    char    name[%lld], type[8];         // type: \"f32\", \"i32\", ...\n", m,
             (long long)longest_name(o));
    text_add(out, "    int32_t rank, labels;       // how many labels its last axis has; 0: none\n");
    text_add(out, "    int64_t dim[8];             // -1: the batch, or a named size\n} %s_tensor;\n\n", m);
    text_add(out,
             "// Names and shapes, in the order of the net.\ntypedef struct %s_description {\n    char    name[%d], "
             "version[16];\n",
             m, (int)strlen(o->model->name) + 1);
    text_add(out, "    int64_t weight_bytes, max_batch;\n    int32_t inputs, outputs;\n");
    text_add(out, "    %s_tensor input[%d], output[%d];\n} %s_description;\n\n", m,
             input_count(o) > 0 ? input_count(o) : 1,
             o->ports.count > input_count(o) ? o->ports.count - input_count(o) : 1, m);
    text_add(out, "extern const %s_description %s_info;\n\n", m, m);
}

static void header_functions(Object *o, Text *out)
{
    const char *m = o->prefix;
    text_add(out,
             "// Bytes of arena that a call with this batch needs; 0: no such batch. Any memory that is aligned to %d "
             "will do.\n"
             "size_t %s_arena_bytes(int64_t batch);\n\n",
             ARENA_ALIGNMENT, m);
    text_add(out,
             "// Computes the outputs of `batch` samples. What is wrong with the arguments is found before anything is "
             "written.\n"
             "%s_status %s_run(const %s_io *io, int64_t batch, void *arena, size_t arena_bytes);\n\n",
             m, m, m);
    text_add(out,
             "// One line for each status. Label i of output `output`, by their order; NULL: there is none.\n"
             "const char *%s_status_text(%s_status status);\nconst char *%s_label(int output, int i);\n\n",
             m, m, m);
}

static const char *field_word(Object *o, const Field *field)
{
    if (field->name != NULL)
        return public_word(o->cx, field->name);
    return field->first == field->last
               ? arena_printf(o->cx->arena, "column_%lld", (long long)field->first)
               : arena_printf(o->cx->arena, "columns_%lld_to_%lld", (long long)field->first, (long long)field->last);
}

// A field by the name it has in the source, or by its columns; with a number where another field has that name.
static const char *source_field(Object *o, const Field *field)
{
    const char *word = field_word(o, field);
    for (const Field *other = o->model->recipe->fields.at; other < field; other++)
        if (strcmp(field_word(o, other), word) == 0)
            return arena_printf(o->cx->arena, "%s_%d", word, (int)(field - o->model->recipe->fields.at));
    return word;
}

static bool field_needed(const Object *o, const Field *field) { return o->needs.field[field->value->index]; }

// A category that an input is made of, and whose words are known.
static bool has_code(const Object *o, const Field *field)
{
    return o->data != NULL && field->codes != NULL && field->names.count > 0 && field_needed(o, field);
}

static void header_codes(Object *o, Text *out)
{
    for (int f = 0; f < o->model->recipe->fields.count; f++) {
        const Field *field = &o->model->recipe->fields.at[f];
        if (has_code(o, field))
            text_add(out, "// The code of a word of %s, as training numbered them; %s.\nint32_t %s_code_%s(const char *word);\n\n",
                     source_field(o, field), strcmp(field->codes, "category") == 0 ? "0 for one that it did not meet" : "-1: there is none",
                     o->prefix, source_field(o, field));
    }
}

static void header_prepare(Object *o, Text *out)
{
    const char *m = o->prefix;
    if (o->data == NULL)
        return;
    text_add(out, "// What the data has for one sample, before the net's `data` mapping.\ntypedef struct %s_fields {\n",
             m);
    for (int i = 0; i < o->model->recipe->fields.count; i++) {
        const Field *field = &o->model->recipe->fields.at[i];
        if (!field_needed(o, field))
            continue;
        text_add(out, "    const %s *%s;", type_def(field->value->type.dtype)->c, source_field(o, field));
        text_pad(out, 40);
        text_add(out, "// %s%s\n", port_shape(o, field->value),
                 field->codes != NULL ? ", the code of the category" : "");
    }
    text_add(out,
             "} %s_fields;\n\n// The inputs of one sample: row i of the batch is at %s_io's pointer plus i rows.\n", m,
             m);
    text_add(out, "typedef struct %s_sample {\n", m);
    for (int i = 0; i < input_count(o); i++)
        text_add(out, "    %s *%s;\n", port_type(&o->ports.at[i]), o->ports.at[i].field);
    text_add(out,
             "} %s_sample;\n\n// Makes the inputs of one sample, as training does: the same steps, the same bits.\n",
             m);
    text_add(out, "%s_status %s_prepare(const %s_fields *fields, const %s_sample *sample);\n\n", m, m, m, m);
    header_codes(o, out);
}

static void print_header(Object *o, Text *out)
{
    const char *m = o->prefix, *guard = upper(o->cx, m);
    header_opening(o, out);
    header_example(o, out);
    text_add(out, "#ifndef %s_MODEL_H\n#define %s_MODEL_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n", guard,
             guard);
    text_add(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    text_add(out, "enum { %s_ABI = 1, %s_MAX_BATCH = %lld };\n\n", m, m, (long long)o->max_batch);
    text_add(out, "typedef enum %s_status {\n", m);
    for (int i = 0; i < COUNT(status_rows); i++) {
        text_add(out, "    %s_%s%s", m, status_rows[i].name, i + 1 < COUNT(status_rows) ? "," : "");
        text_pad(out, strlen(m) + 22);
        text_add(out, "// %s\n", status_rows[i].text);
    }
    text_add(out, "} %s_status;\n\n", m);
    header_io(o, out);
    header_info(o, out);
    header_functions(o, out);
    header_prepare(o, out);
    text_add(out, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

// --- Tables ----------------------------------------------------------------------------------------------------------

// The names of the values of an output: those that the net gives, or else the classes of a text column that has as many.
static Labels labels_of(const Object *o, const Port *port)
{
    const Shape *shape = &port->value->type.shape;
    int64_t count;
    for (int i = 0; !port->input && i < o->model->labels.count; i++)
        if (strcmp(o->model->labels.at[i].output, port->name) == 0)
            return o->model->labels.at[i];
    for (int f = 0; !port->input && o->model->recipe != NULL && f < o->model->recipe->fields.count; f++) {
        const Field *field = &o->model->recipe->fields.at[f];
        bool classes = field->codes != NULL && strcmp(field->codes, "classes") == 0;
        if (classes && shape->rank == 2 && size_known(shape->dim[1], &count) && count > 1 && count == field->names.count)
            return (Labels){port->name, field->names.count, field->names.at};
    }
    return (Labels){port->name, 0, NULL};
}

static void print_tensor(Object *o, const Port *port)
{
    const Shape *shape = &port->value->type.shape;
    const Labels labels = labels_of(o, port);
    int64_t n;
    text_add(o->out, "        {");
    put_string(o->out, port->name);
    text_add(o->out, ", \"%s\", %d, %d, {", type_def(port->value->type.dtype)->name, shape->rank,
             labels.count);
    for (int i = 0; i < shape->rank; i++)
        text_add(o->out, i > 0 ? ", %lld" : "%lld", size_known(shape->dim[i], &n) ? (long long)n : -1LL);
    text_add(o->out, shape->rank > 0 ? "}},\n" : "0}},\n");
}

static void print_info(Object *o)
{
    text_add(o->out, "const %s_description %s_info = {\n    ", o->prefix, o->prefix);
    put_string(o->out, o->model->name);
    text_add(o->out, ", \"%s\", %lld, %lld, %d, %d,\n    {\n", MLC_VERSION, (long long)o->weight_bytes,
             (long long)o->max_batch, input_count(o), o->ports.count - input_count(o));
    for (int i = 0; i < input_count(o); i++)
        print_tensor(o, &o->ports.at[i]);
    text_add(o->out, input_count(o) > 0 ? "    },\n    {\n" : "        {\"\", \"\", 0, 0, {0}},\n    },\n    {\n");
    for (int i = input_count(o); i < o->ports.count; i++)
        print_tensor(o, &o->ports.at[i]);
    text_add(o->out, "    },\n};\n\n");
}

// Names of one length each, so that no pointer to them is stored: static const char labels_0[2][6] = {"left", "right"};
static void print_names(Object *o, const char *array, int count, const char *const *names)
{
    size_t longest = 0, line = o->out->length;
    for (int k = 0; k < count; k++)
        longest = strlen(names[k]) > longest ? strlen(names[k]) : longest;
    text_add(o->out, "static const char %s[%d][%zu] = {", array, count, longest + 1);
    for (int k = 0; k < count; k++) {
        bool wrap = k > 0 && o->out->length - line + strlen(names[k]) + 8 > LINE_WIDTH;
        line = wrap ? o->out->length : line;
        text_add(o->out, k == 0 ? "" : wrap ? ",\n    " : ", ");
        put_string(o->out, names[k]);
    }
    text_add(o->out, "};\n\n");
}

static void print_labels(Object *o)
{
    Text choice = {.arena = o->cx->arena};
    for (int i = input_count(o); i < o->ports.count; i++) {
        const Labels labels = labels_of(o, &o->ports.at[i]);
        if (labels.count == 0)
            continue;
        int output = i - input_count(o);
        print_names(o, arena_printf(o->cx->arena, "labels_%d", output), labels.count, labels.names);
        text_add(&choice, "    if (output == %d && i >= 0 && i < %d)\n        return labels_%d[i];\n", output,
                 labels.count, output);
    }
    text_add(o->out, "const char *%s_label(int output, int i)\n{\n%s    return NULL;\n}\n\n", o->prefix,
             choice.at != NULL ? choice.at : "    (void)output, (void)i;\n");
}

// For each text column a function from its words to their codes. As the trainer has it: in a category 0 is any other word.
static void print_codes(Object *o)
{
    for (int f = 0; o->data != NULL && f < o->model->recipe->fields.count; f++) {
        const Field *field = &o->model->recipe->fields.at[f];
        if (!has_code(o, field))
            continue;
        const char *array = arena_printf(o->cx->arena, "words_%d", f);
        bool category = strcmp(field->codes, "category") == 0;
        print_names(o, array, field->names.count, field->names.at);
        text_add(o->out,
                 "int32_t %s_code_%s(const char *word)\n{\n    for (int32_t i = 0; word != NULL && i < %d; i++) {\n"
                 "        int k = 0;\n        while (%s[i][k] != 0 && word[k] == %s[i][k])\n            k++;\n"
                 "        if (word[k] == %s[i][k])\n            return i%s;\n    }\n    return %d;\n}\n\n",
                 o->prefix, source_field(o, field), field->names.count, array, array, array, category ? " + 1" : "",
                 category ? 0 : -1);
    }
}

static void print_status_text(Object *o)
{
    text_add(o->out, "const char *%s_status_text(%s_status status)\n{\n    switch (status) {\n", o->prefix, o->prefix);
    for (int i = 0; i < COUNT(status_rows); i++)
        text_add(o->out, "    case %s_%s: return \"%s\";\n", o->prefix, status_rows[i].name, status_rows[i].text);
    text_add(o->out, "    }\n    return \"no such status\";\n}\n\n");
}

// --- Weights ---------------------------------------------------------------------------------------------------------

// A path inside a string of the assembler, which stands inside a string of C.
static void put_assembler_path(Text *out, const char *path)
{
    for (; *path != 0; path++) {
        unsigned char c = (unsigned char)*path;
        if (c == '"' || c == '\\' || c < ' ' || c > '~' || c == '?')
            text_add(out, "\\\\%03o", c);
        else
            text_put(out, path, 1);
    }
}

static void print_weights(Object *o)
{
    if (o->weights_file == NULL || o->weight_bytes == 0)
        return;
    const char *m = o->prefix;
    text_add(o->out, "// The weights: bytes that the assembler takes from a file, in read-only data.\n");
    text_add(o->out,
             "__asm__(\".pushsection .rodata, \\\"a\\\"\\n\"\n    \".balign 64\\n\"\n    \".globl %s_weights\\n\"\n"
             "    \".hidden %s_weights\\n\"\n    \"%s_weights:\\n\"\n    \".incbin \\\"",
             m, m, m);
    put_assembler_path(o->out, o->weights_file);
    text_add(o->out, "\\\"\\n\"\n    \".popsection\\n\");\n");
    text_add(o->out, "extern const char %s_weights[%lld] __attribute__((visibility(\"hidden\")));\n\n", m,
             (long long)o->weight_bytes);
}

// --- Running ---------------------------------------------------------------------------------------------------------

static void print_arena_bytes(Object *o)
{
    text_add(o->out,
             "size_t %s_arena_bytes(int64_t batch)\n{\n    return batch >= 1 && batch <= %lld ? %lld : 0;\n}\n\n",
             o->prefix, (long long)o->max_batch, (long long)o->arena_bytes);
}

static void refuse(Object *o, Text *out, const char *condition, const char *status)
{
    text_add(out, "    if (%s)\n        return %s_%s;\n", condition, o->prefix, status);
}

// A condition of many parts, on as many lines as it needs.
typedef struct Condition {
    Text text;
    size_t line;
} Condition;

static void add_condition(Condition *c, const char *part)
{
    bool wrap = c->text.length - c->line + strlen(part) > LINE_WIDTH - 16;
    text_add(&c->text, c->text.at == NULL ? "" : wrap ? " ||\n        " : " || ");
    c->line = wrap ? c->text.length : c->line;
    text_add(&c->text, "%s", part);
}

static void refuse_where(Object *o, Text *out, const Condition *condition, const char *status)
{
    if (condition->text.at != NULL)
        refuse(o, out, condition->text.at, status);
}

// A pointer that has to be given, and to stand where its elements may.
static void check_pointer(Object *o, Condition *null, Condition *aligned, const char *pointer, DType type)
{
    add_condition(null, arena_printf(o->cx->arena, "%s == NULL", pointer));
    if (type_def(type)->bytes > 1)
        add_condition(aligned, arena_printf(o->cx->arena, "!is_aligned(%s, %d)", pointer, type_def(type)->bytes));
}

static void check_pointers(Object *o, Text *out)
{
    Arena *arena = o->cx->arena;
    Condition null = {{.arena = arena}, 0}, aligned = null;
    for (int i = 0; i < o->ports.count; i++)
        check_pointer(o, &null, &aligned, arena_printf(arena, "io->%s", o->ports.at[i].field), o->ports.at[i].value->type.dtype);
    refuse(o, out, "io == NULL || arena == NULL", "NULL_POINTER");
    if (takes_weights(o))
        refuse(o, out, "io->weights == NULL", "NULL_POINTER");
    refuse_where(o, out, &null, "NULL_POINTER");
    refuse(o, out, arena_printf(arena, "batch < 1 || batch > %lld", (long long)o->max_batch), "BAD_BATCH");
    for (int i = 0; i < o->sizes.count; i++) {
        const char *name = size_name(o->cx, o->sizes.at[i]);
        refuse(o, out, arena_printf(arena, "io->%s < 1 || io->%s > %lld", name, name, (long long)o->sizes.at[i]->bound),
               "BAD_SIZE");
    }
    refuse(o, out,
           arena_printf(arena,
                        takes_weights(o) ? "!is_aligned(arena, %d) || !is_aligned(io->weights, 4)"
                                                : "!is_aligned(arena, %d)",
                        ARENA_ALIGNMENT),
           "BAD_ALIGNMENT");
    refuse_where(o, out, &aligned, "BAD_ALIGNMENT");
    refuse(o, out, arena_printf(arena, "arena_bytes < %lld", (long long)o->arena_bytes), "SMALL_ARENA");
}

static bool is_index_port(const Port *port)
{
    return port->input && port->value->below > 0 && !type_is_float(port->value->type.dtype);
}

// A function for each type that has indices.
static void print_index_checks(Object *o)
{
    for (DType type = TYPE_NONE + 1; type < TYPE_COUNT; type++) {
        bool used = false;
        for (int i = 0; i < o->ports.count; i++)
            used |= is_index_port(&o->ports.at[i]) && o->ports.at[i].value->type.dtype == type;
        if (!used)
            continue;
        text_add(o->out,
                 "// Whether all `count` indices are in 0 ... below - 1.\n"
                 "static int indices_inside_%s(const %s *at, int64_t count, int64_t below)\n{\n    int outside = 0;\n"
                 "    for (int64_t i = 0; i < count; i++)\n        outside |= %sat[i] >= below;\n    return !outside;\n}\n\n",
                 type_def(type)->name, type_def(type)->c, type_def(type)->kind == KIND_INT ? "at[i] < 0 || " : "");
    }
}

static void check_indices(Object *o, Printer *p)
{
    for (int i = 0; i < input_count(o); i++) {
        const Port *port = &o->ports.at[i];
        const DType type = port->value->type.dtype;
        if (!is_index_port(port))
            continue;
        refuse(o, p->out,
               arena_printf(o->cx->arena, "!indices_inside_%s(io->%s, %s, %lld)", type_def(type)->name, port->field,
                            grouped_text(p, port->value), (long long)port->value->below),
               "BAD_INDEX");
    }
}

static void print_check(Object *o)
{
    print_index_checks(o);
    Text checks = {.arena = o->cx->arena}, indices = {.arena = o->cx->arena};
    check_pointers(o, &checks);
    Printer p = printer_new(o->infer, &dialect_c, "infer", &indices);
    check_indices(o, &p);
    text_add(o->out,
             "static %s_status check(const %s_io *io, int64_t batch, const void *arena, size_t arena_bytes)\n{\n%s",
             o->prefix, o->prefix, checks.at);
    if (indices.at != NULL) {
        for (int i = 0; i < p.sizes.count; i++) {
            const char *name = size_name(o->cx, p.sizes.at[i]);
            text_add(o->out,
                     p.sizes.at[i]->batch ? "    const int64_t %s = batch;\n" : "    const int64_t %s = io->%s;\n",
                     name, name);
        }
        text_add(o->out, "%s", indices.at);
    }
    text_add(o->out, "    return %s_OK;\n}\n\n", o->prefix);
}

static void print_run_struct(Object *o)
{
    Text *out = o->out;
    text_add(out, "    const Run here = {\n        .arena = arena,\n        .scratch = (char *)arena + %lld,\n",
             (long long)padded(o->infer->arena_bytes));
    if (takes_weights(o))
        text_add(out, "        .param = (char *)io->weights,\n");
    else if (o->weight_bytes > 0)
        text_add(out, "        .param = (char *)%s_weights,\n", o->prefix);
    for (int i = 0; i < o->ports.count; i++) {
        const Port *port = &o->ports.at[i];
        int index = port->input ? i : i - input_count(o);
        text_add(out,
                 port->input ? "        .in[%d] = (char *)io->%s,\n" : "        .out[%d] = (char *)io->%s,\n",
                 index, port->field);
    }
    text_add(out, "        .size[0] = batch,\n");
    for (int i = 0; i < o->sizes.count; i++)
        text_add(out, "        .size[%d] = io->%s,\n", size_slot(o->infer, o->sizes.at[i]),
                 size_name(o->cx, o->sizes.at[i]));
    text_add(out, "    };\n    const Run *run = &here;\n");
}

static void print_copies(Object *o)
{
    Text copies = {.arena = o->cx->arena};
    Printer p = printer_new(o->infer, &dialect_c, "infer", &copies);
    p.indent = 1;
    for (int i = input_count(o); i < o->ports.count; i++)
        print_output_copy(&p, o->ports.at[i].value, i - input_count(o));
    print_sizes(&p, o->out);
    text_put(o->out, copies.at != NULL ? copies.at : "", copies.length);
}

static void print_run(Object *o)
{
    Text *out = o->out;
    const char *m = o->prefix;
    text_add(out, "%s_status %s_run(const %s_io *io, int64_t batch, void *arena, size_t arena_bytes)\n{\n", m, m, m);
    text_add(out,
             "    const %s_status status = check(io, batch, arena, arena_bytes);\n    if (status != %s_OK)\n        "
             "return status;\n",
             m, m);
    print_run_struct(o);
    text_add(out, "    const uint64_t mode = float_mode_enter();\n");
    Printer p = printer_new(o->infer, &dialect_c, "infer", out);
    p.indent = 1;
    print_call_steps(&p, NULL, true);
    print_copies(o);
    text_add(out, "    float_mode_leave(mode);\n    return %s_OK;\n}\n", m);
}

// --- Preparing inputs ------------------------------------------------------------------------------------------------

static void print_prepare_checks(Object *o)
{
    Arena *arena = o->cx->arena;
    Condition null = {{.arena = arena}, 0}, aligned = null;
    add_condition(&null, "fields == NULL || sample == NULL");
    for (int i = 0; i < o->model->recipe->fields.count; i++) {
        const Field *field = &o->model->recipe->fields.at[i];
        if (field_needed(o, field))
            check_pointer(o, &null, &aligned, arena_printf(arena, "fields->%s", source_field(o, field)), field->value->type.dtype);
    }
    for (int i = 0; i < o->data->graph->outputs.count; i++) {
        const char *name = o->data->graph->outputs.at[i].name;
        if (!data_fills_input(o->infer->graph, name))
            continue;
        const Port *port = &o->ports.at[data_port(o->infer->graph, name)];
        check_pointer(o, &null, &aligned, arena_printf(arena, "sample->%s", port->field), port->value->type.dtype);
    }
    refuse_where(o, o->out, &null, "NULL_POINTER");
    refuse_where(o, o->out, &aligned, "BAD_ALIGNMENT");
}

static void print_prepare(Object *o)
{
    const char *m = o->prefix;
    Text *out = o->out;
    if (o->data == NULL)
        return;
    text_add(out, "\n%s_status %s_prepare(const %s_fields *fields, const %s_sample *sample)\n{\n", m, m, m, m);
    print_prepare_checks(o);
    if (o->data->arena_bytes > 0)
        text_add(out, "    _Alignas(64) char arena[%lld];\n", (long long)o->data->arena_bytes);
    text_add(out, "    const Run here = {\n        .size[0] = 1,\n%s",
             o->data->arena_bytes > 0 ? "        .arena = arena,\n" : "");
    for (int i = 0; i < o->model->recipe->fields.count; i++) {
        const Field *field = &o->model->recipe->fields.at[i];
        if (field_needed(o, field))
            text_add(out, "        .in[%d] = (char *)fields->%s,\n", field->value->index, source_field(o, field));
    }
    for (int i = 0; i < o->data->graph->outputs.count; i++) {
        const char *name = o->data->graph->outputs.at[i].name;
        if (data_fills_input(o->infer->graph, name))
            text_add(out, "        .out[%d] = (char *)sample->%s,\n", i,
                     o->ports.at[data_port(o->infer->graph, name)].field);
    }
    text_add(out, "    };\n    const Run *run = &here;\n    const uint64_t mode = float_mode_enter();\n");
    Printer p = printer_new(o->data, &dialect_c, "data", out);
    p.indent = 1;
    print_mapping(&p, o->infer->graph, &o->needs, true);
    text_add(out, "    float_mode_leave(mode);\n    return %s_OK;\n}\n", m);
}

// --- The object ------------------------------------------------------------------------------------------------------

void codegen_object(Text *c, Text *header, Model *model, Program *infer, Program *data, const char *weights_file)
{
    Text code = {.arena = model->cx->arena};
    index_bounds(infer);
    Object o = object_new(model, infer, data, weights_file);
    o.out = &code;
    heading(&code, "Steps");
    Functions *functions = functions_new(model->cx);
    functions_count(functions, infer, &dialect_c, "infer");
    print_steps(&code, infer, &dialect_c, "infer", functions);
    if (o.data != NULL)
        print_steps_of(&code, o.data, &dialect_c, "data", NULL, o.needs.step);
    heading(&code, "Interface");
    print_weights(&o);
    print_info(&o);
    print_labels(&o);
    print_codes(&o);
    print_status_text(&o);
    print_arena_bytes(&o);
    print_check(&o);
    print_run(&o);
    print_prepare(&o);

    print_header(&o, header);
    text_put(c, header->at, header->length);
    text_add(c, "\n// Here ends the header. What follows is the model.\n\n#include <math.h>\n#include <string.h>\n\n");
    paste_file(c, "contract.h");
    text_add(c, "\n");
    paste_file(c, "float_mode.h");
    text_add(c, "\n");
    paste_file(c, "object_run.h");
    text_add(c, "\n");
    heading(c, "Kernels");
    paste_kernels(model->cx, c, code.at);
    text_put(c, code.at, code.length);
}

ObjectNames object_names(Model *model, Program *infer)
{
    const Object o = object_new(model, infer, NULL, NULL);
    ObjectNames names = {.prefix = o.prefix, .arena_bytes = o.arena_bytes, .max_batch = o.max_batch, .batch = o.batch};
    for (int i = 0; i < o.ports.count; i++)
        LIST_ADD(model->cx->arena, names.port, o.ports.at[i].field);
    for (int i = 0; i < o.sizes.count; i++)
        LIST_ADD(model->cx->arena, names.size, o.sizes.at[i]);
    return names;
}
