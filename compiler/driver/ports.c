// ports.c: the table by which runtime/slots.h calls a model with files: as a value for mlc itself, which interprets, and as C
// text for what it compiles. Both are made from the inputs and outputs of the graph, so they cannot differ.
#include "driver.h"

#include "../../codegen/codegen.h"

#include <string.h>

// --- The table -------------------------------------------------------------------------------------------------------

MlrtType ports_type(DType type)
{
    for (int i = 0; i < MLRT_TYPE_COUNT; i++)
        if (strcmp(mlrt_type_name((MlrtType)i), type_def(type)->name) == 0)
            return (MlrtType)i;
    BUG("the runtime has no type %s", type_def(type)->name);
}

static void add_symbols(Context *cx, Ports *ports, Size size)
{
    const Symbol *symbols[16];
    int count = size_symbols(size, symbols, COUNT(symbols));
    for (int i = 0; i < count; i++) {
        bool known = false;
        for (int k = 0; k < ports->symbols.count; k++)
            known |= ports->symbols.at[k] == symbols[i];
        if (!known && !symbols[i]->batch)
            LIST_ADD(cx->arena, ports->symbols, symbols[i]);
    }
}

static const Symbol *batch_of(Context *cx)
{
    for (int i = 0; i < map_count(cx->symbols); i++)
        if (((const Symbol *)map_value(cx->symbols, i))->batch)
            return map_value(cx->symbols, i);
    return NULL;
}

static int bind_of(const Ports *ports, Size size)
{
    const Symbol *symbols[2];
    Text text = {.arena = ports->cx->arena};
    size_print(&text, size);
    if (size_symbols(size, symbols, 2) == 1 && strcmp(text.at, symbols[0]->name) == 0)
        for (int i = 0; i < ports->symbols.count; i++)
            if (ports->symbols.at[i] == symbols[0])
                return i;
    return -1;
}

static void add_port(Ports *ports, const char *name, const Type *type)
{
    MlrtSlot port = {.name = name, .type = ports_type(type->dtype), .rank = type->shape.rank};
    Text shape = {.arena = ports->cx->arena};
    text_add(&shape, "(");
    for (int i = 0; i < type->shape.rank; i++) {
        port.bind[i] = bind_of(ports, type->shape.dim[i]);
        text_add(&shape, i > 0 ? ", " : "");
        size_print(&shape, type->shape.dim[i]);
    }
    text_add(&shape, type->shape.rank == 1 ? ",)" : ")");
    port.shape = shape.at;
    LIST_ADD(ports->cx->arena, ports->port, port);
    LIST_ADD(ports->cx->arena, ports->type, *type);
}

static const Type *type_of_port(const Graph *graph, int i)
{
    int inputs = graph->inputs.count;
    return i < inputs ? &graph->inputs.at[i]->type : &graph->outputs.at[i - inputs].value->type;
}

bool ports_make(Command *command, Model *model, Ports *ports)
{
    Context *cx = model->cx;
    const Graph *graph = model->infer;
    int count = graph->inputs.count + graph->outputs.count;
    *ports = (Ports){.cx = cx};
    LIST_ADD(cx->arena, ports->symbols, batch_of(cx));
    for (int i = 0; i < count; i++)
        for (int k = 0; k < type_of_port(graph, i)->shape.rank; k++)
            add_symbols(cx, ports, type_of_port(graph, i)->shape.dim[k]);
    if (count > MLRT_SLOTS || ports->symbols.count > MLRT_SLOT_SIZES)
        return fail_input(command, MESSAGE_E0901, arena_printf(cx->arena, "running a model of %d inputs and outputs and %d sizes",
                                                               count, ports->symbols.count)), false;
    for (int i = 0; i < count; i++)
        add_port(ports, i < graph->inputs.count ? graph->inputs.at[i]->name : graph->outputs.at[i - graph->inputs.count].name,
                 type_of_port(graph, i));
    for (int i = 0; i < ports->symbols.count; i++) {
        const Symbol *symbol = ports->symbols.at[i];
        LIST_ADD(cx->arena, ports->names, symbol != NULL ? symbol->name : "");
        LIST_ADD(cx->arena, ports->bounds, symbol == NULL ? 1 : symbol->batch ? 0 : symbol->bound);
    }
    ports->object = (MlrtObject){.name = model->name, .n_in = graph->inputs.count, .n_out = graph->outputs.count,
                                 .n_sizes = ports->symbols.count, .port = ports->port.at, .size = ports->names.at,
                                 .bound = ports->bounds.at, .shape = ports_shape, .user = ports};
    return true;
}

// The values by Symbol id, from those by place in the table.
int64_t *ports_symbols(const Ports *ports, const int64_t *size)
{
    int64_t *values = NEW_ARRAY(ports->cx->arena, int64_t, map_count(ports->cx->symbols) + 1);
    for (int i = 0; i < ports->symbols.count; i++)
        if (ports->symbols.at[i] != NULL)
            values[ports->symbols.at[i]->id] = size[i];
    return values;
}

void ports_shape(void *user, const int64_t *size, int port, int64_t *dim)
{
    const Ports *ports = user;
    const int64_t *values = ports_symbols(ports, size);
    for (int i = 0; i < ports->type.at[port].shape.rank; i++)
        dim[i] = size_at(ports->type.at[port].shape.dim[i], values);
}

// --- As C ------------------------------------------------------------------------------------------------------------

static void print_shapes(Text *out, const Ports *ports, Program *infer)
{
    Text cases = {.arena = out->arena};
    Printer p = printer_new(infer, &dialect_c, "infer", &cases);
    for (int i = 0; i < ports->type.count; i++) {
        const Shape *shape = &ports->type.at[i].shape;
        text_add(&cases, "    case %d:\n", i);
        for (int k = 0; k < shape->rank; k++) {
            text_add(&cases, "        dim[%d] = ", k);
            print_size(&p, &cases, shape->dim[k]);
            text_add(&cases, ";\n");
        }
        text_add(&cases, "        break;\n");
    }
    text_add(out, "static void shape(void *user, const int64_t *size, int port, int64_t *dim)\n{\n");
    for (int i = 0; i < ports->symbols.count; i++)
        if (ports->symbols.at[i] != NULL)
            text_add(out, "    const int64_t %s = size[%d];\n", size_name(ports->cx, ports->symbols.at[i]), i);
    text_add(out, "    (void)user, (void)size, (void)dim");
    for (int i = 0; i < ports->symbols.count; i++)
        if (ports->symbols.at[i] != NULL)
            text_add(out, ", (void)%s", size_name(ports->cx, ports->symbols.at[i]));
    text_add(out, ";\n    switch (port) {\n%s    }\n}\n\n", cases.at);
}

static void print_call(Text *out, const Ports *ports, const ObjectNames *names, bool takes_weights)
{
    int inputs = ports->object.n_in;
    text_add(out, "static const char *run(void *user, const void *const *in, void *const *out, const int64_t *size, const void *weights,\n"
                  "                       void *arena, size_t arena_bytes)\n{\n    const %s_io io = {\n", names->prefix);
    if (takes_weights)
        text_add(out, "        .weights = weights,\n");
    for (int i = 0; i < ports->symbols.count; i++)
        for (int k = 0; k < names->size.count; k++)
            if (names->size.at[k] == ports->symbols.at[i])
                text_add(out, "        .%s = size[%d],\n", size_name(ports->cx, ports->symbols.at[i]), i);
    for (int i = 0; i < names->port.count; i++)
        text_add(out, i < inputs ? "        .%s = in[%d],\n" : "        .%s = out[%d],\n", names->port.at[i], i < inputs ? i : i - inputs);
    text_add(out, "    };\n    const %s_status status = %s_run(&io, size[0], arena, arena_bytes);\n"
                  "    (void)user, (void)in, (void)out, (void)weights;\n"
                  "    return status == %s_OK ? NULL : %s_status_text(status);\n}\n\n",
             names->prefix, names->prefix, names->prefix, names->prefix);
}

static void print_table(Text *out, const Ports *ports, const ObjectNames *names)
{
    text_add(out, "static const MlrtSlot ports[] = {\n");
    for (int i = 0; i < ports->port.count; i++) {
        const MlrtSlot *port = &ports->port.at[i];
        text_add(out, "    {");
        put_string(out, port->name);
        text_add(out, ", MLRT_%s, %d, {", mlrt_type_name(port->type), port->rank);
        for (int k = 0; k < port->rank; k++)
            text_add(out, k > 0 ? ", %d" : "%d", port->bind[k]);
        text_add(out, port->rank > 0 ? "}, " : "0}, ");
        put_string(out, port->shape);
        text_add(out, "},\n");
    }
    text_add(out, "};\n\nstatic const char *const sizes[] = {");
    for (int i = 0; i < ports->names.count; i++) {
        text_add(out, i > 0 ? ", " : "");
        put_string(out, ports->names.at[i]);
    }
    text_add(out, "};\nstatic const int64_t bounds[] = {");
    for (int i = 0; i < ports->bounds.count; i++)
        text_add(out, i > 0 ? ", %lld" : "%lld", (long long)(i == 0 ? names->max_batch : ports->bounds.at[i]));
    text_add(out, "};\n\nconst MlrtObject mlc_object = {\n    .name = ");
    put_string(out, ports->object.name);
    text_add(out, ",\n    .n_in = %d,\n    .n_out = %d,\n    .n_sizes = %d,\n    .port = ports,\n    .size = sizes,\n    .bound = bounds,\n"
                  "    .arena_bytes = %lld,\n    .shape = shape,\n    .run = run,\n};\n",
             ports->object.n_in, ports->object.n_out, ports->object.n_sizes, (long long)names->arena_bytes);
}

void ports_print(Text *out, const Ports *ports, Model *model, Program *infer, bool with_main, bool takes_weights)
{
    const ObjectNames names = object_names(model, infer);
    text_add(out, "// The model called with files: what it takes and gives, as runtime/slots.h wants it.\n#include \"%s.h\"\n"
                  "#include \"slots.h\"\n\n", names.prefix);
    print_shapes(out, ports, infer);
    print_call(out, ports, &names, takes_weights);
    print_table(out, ports, &names);
    if (with_main)
        text_add(out, "\nint main(int argc, char **argv) { return mlrt_object_main(&mlc_object, argc, argv); }\n");
}
