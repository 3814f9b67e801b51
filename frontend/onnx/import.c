// import.c: an ONNX model becomes a Model with one Graph. Nodes are visited in an order in which every value is made before it is
// used, whatever the order in the file; each is built by the function of its row (onnx.def). What is not known is refused by
// name, everything at once. A shape that depends on an input makes that input a constant, if the caller has given its value.
#include "import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NEWEST_OPSET = 28, NEWEST_IR = 14, SUBGRAPHS_DEEP = 16 };

#define ARENA(m) ((m)->cx->arena)

#define fail(m, ...) (diag_report_file((m)->cx->diag, (m)->path, __VA_ARGS__), (m)->failed = true)

// --- Operators ---------------------------------------------------------------------------------------------------------

static const OnnxOp ops[] = {
#define ONNX(domain, name, since, least, most, build, detail) {domain, #name, since, least, most, build, detail},
#include "onnx.def"
#undef ONNX
};

const OnnxOp *onnx_op_at(int i) { return i < COUNT(ops) ? &ops[i] : NULL; }

const OnnxOp *onnx_op(const char *domain, const char *name)
{
    for (int i = 0; i < COUNT(ops); i++)
        if (strcmp(ops[i].name, name) == 0 && strcmp(ops[i].domain, domain) == 0)
            return &ops[i];
    return NULL;
}

void onnx_list(Text *text)
{
    for (int i = 0; i < COUNT(ops); i++)
        text_add(text, "%-12s %-28s from opset %d\n", *ops[i].domain ? ops[i].domain : "ai.onnx", ops[i].name, ops[i].since);
}

static const char *domain_of(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static int64_t version_of(const Import *m, const char *domain)
{
    return *domain == 0 ? m->versions.ai : strcmp(domain, "ai.onnx.ml") == 0 ? m->versions.ml : strcmp(domain, "ai.onnx.preview.training") == 0 ? m->versions.training : m->versions.preview;
}

static bool read_versions(Import *m)
{
    for (size_t i = 0; i < m->file->n_opset_import; i++) {
        const Onnx__OperatorSet *set = m->file->opset_import[i];
        const char *domain = domain_of(set->domain);
        if (set->version < 1 || (*domain == 0 && set->version > NEWEST_OPSET))
            return fail(m, MESSAGE_E0809, arena_printf(ARENA(m), "operator set %s", *domain ? domain : "ai.onnx"), set->version, (int64_t)NEWEST_OPSET), false;
        *(*domain == 0 ? &m->versions.ai : strcmp(domain, "ai.onnx.ml") == 0 ? &m->versions.ml : strcmp(domain, "ai.onnx.preview.training") == 0 ? &m->versions.training : &m->versions.preview) = set->version;
    }
    if (m->file->ir_version > NEWEST_IR)
        return fail(m, MESSAGE_E0809, "the IR version", m->file->ir_version, (int64_t)NEWEST_IR), false;
    m->versions.ai += m->versions.ai == 0;
    return true;
}

// --- Tensors -----------------------------------------------------------------------------------------------------------

// A relative path of plain parts, none of which leads out of the folder.
static bool is_beneath(const char *location)
{
    size_t length = strlen(location);
    if (length == 0 || length > 4096 || location[0] == '/' || strchr(location, '\\') != NULL)
        return false;
    for (const char *p = location; *p != 0;) {
        size_t part = strcspn(p, "/");
        if (part == 0 || (part == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += part + (p[part] == '/');
        if (p[-1] == '/' && *p == 0)
            return false;
    }
    return true;
}

// Component by component, and no link is followed behind the folder.
static int open_beneath(const char *folder, const char *location)
{
    int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *p = location; at >= 0;) {
        char part[256];
        size_t length = strcspn(p, "/");
        bool last = p[length] == 0;
        if (length >= sizeof part) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, p, length);
        part[length] = 0;
        int next = openat(at, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
        int reason = errno;
        close(at);
        errno = reason;
        if (last || next < 0)
            return next;
        at = next;
        p += length + 1;
    }
    return -1;
}

static bool digits(const char *text, int64_t *n)
{
    *n = 0;
    size_t length = strlen(text);
    if (length == 0 || length > 18 || strspn(text, "0123456789") != length)
        return false;
    *n = strtoll(text, NULL, 10);
    return true;
}

static const void *read_outside(Import *m, const Onnx__Tensor *p, size_t *bytes, const char **why)
{
    const char *location = NULL, *slash = strrchr(m->path, '/');
    int64_t offset = 0, length = -1;
    bool seen[4] = {false};
    for (size_t i = 0; i < p->n_external_data; i++) {
        static const char *const keys[] = {"location", "offset", "length", "checksum"};
        const char *key = p->external_data[i]->key, *value = p->external_data[i]->value;
        int k = 0;
        while (k < COUNT(keys) && (key == NULL || strcmp(key, keys[k]) != 0))
            k++;
        if (k == COUNT(keys) || seen[k] || value == NULL)
            return *why = "its external data are described by an unknown key, or by one twice", NULL;
        seen[k] = true;
        location = k == 0 ? value : location;
        if ((k == 1 && !digits(value, &offset)) || (k == 2 && !digits(value, &length)))
            return *why = "offset or length of its external data is no number", NULL;
    }
    if (location == NULL || !is_beneath(location))
        return *why = arena_printf(ARENA(m), "its external data lie outside of the folder of the model (%s)", location != NULL ? location : "no location"), NULL;
    const char *folder = slash == NULL ? "." : slash == m->path ? "/" : arena_string(ARENA(m), m->path, (size_t)(slash - m->path));
    int file = open_beneath(folder, location);
    struct stat about;
    if (file < 0)
        return *why = arena_printf(ARENA(m), "its external data in %s cannot be read: %s", location, errno == ELOOP ? "it is a symbolic link; copy the file" : strerror(errno)), NULL;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || offset > about.st_size || (length >= 0 && length > about.st_size - offset)) {
        close(file);
        return *why = arena_printf(ARENA(m), "its external data end behind %s, or that is no plain file", location), NULL;
    }
    *bytes = (size_t)(length >= 0 ? length : about.st_size - offset);
    char *data = arena_alloc(ARENA(m), *bytes + 1);
    for (size_t got = 0; got < *bytes;) {
        ssize_t n = pread(file, data + got, *bytes - got, offset + (off_t)got);
        if (n <= 0) {
            close(file);
            return *why = arena_printf(ARENA(m), "its external data in %s cannot be read", location), NULL;
        }
        got += (size_t)n;
    }
    close(file);
    return data;
}

Tensor *import_tensor(Import *m, const Onnx__Tensor *p, const char *name)
{
    const char *why = NULL;
    size_t bytes = 0;
    const void *outside = p->data_location == 1 ? read_outside(m, p, &bytes, &why) : NULL;
    Tensor *t = why == NULL ? onnx_tensor(ARENA(m), p, outside, bytes, &why) : NULL;
    if (t == NULL)
        fail(m, MESSAGE_E0804, name, why);
    return t;
}

// --- Names -------------------------------------------------------------------------------------------------------------

Item *import_find(Import *m, const char *name)
{
    for (Scope *scope = m->scope; scope != NULL; scope = scope->outer) {
        Item *item = map_get(scope->items, name);
        if (item != NULL)
            return item;
    }
    return NULL;
}

static Item *item_add(Import *m, const char *name, Value *value, const Tensor *tensor)
{
    Item *item = NEW(ARENA(m), Item);
    *item = (Item){name, value, tensor};
    map_set(m->scope->items, name, item);
    return item;
}

// Floats with an axis are parameters, which can be trained; the rest are constants.
Value *import_value(Import *m, Item *item)
{
    if (item->value != NULL || item->tensor == NULL)
        return item->value;
    const Tensor *t = item->tensor;
    Type type = {.dtype = t->dtype, .shape = {.rank = t->rank}};
    for (int i = 0; i < t->rank; i++)
        type.shape.dim[i] = size_const(m->cx, t->dim[i]);
    if (t->dtype != TYPE_f32 || t->rank == 0 || tensor_count(t) == 0) {
        item->value = graph_const(m->g, type, t->data);
        item->value->name = item->name;
    } else {
        Param *param = NEW(ARENA(m), Param);
        *param = (Param){.path = item->name, .type = type, .role = t->rank > 1 ? ROLE_WEIGHT : ROLE_BIAS, .trainable = true, .data = t->data};
        item->value = graph_param(m->g, param);
    }
    pointer_map_set(m->known, item->value, (void *)(uintptr_t)t);
    return item->value;
}

// --- Order of the nodes ------------------------------------------------------------------------------------------------

static const char *node_label(Import *m, const Onnx__Node *p)
{
    const char *op = p->op_type != NULL ? p->op_type : "?";
    if (p->name != NULL && *p->name)
        return arena_printf(ARENA(m), "%s (%s)", p->name, op);
    return arena_printf(ARENA(m), "%s, which gives %s,", op, p->n_output > 0 ? p->output[0] : "nothing");
}

static void names_of_graph(const Onnx__Graph *g, Arena *arena, int depth, const char ***names, int *count, int *room)
{
    if (g == NULL || depth > SUBGRAPHS_DEEP)
        return;
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++) {
            list_grow(arena, (void **)names, *count, room, sizeof **names);
            (*names)[(*count)++] = g->node[i]->input[k];
        }
    for (size_t i = 0; i < g->n_output; i++)
        if (g->output[i]->name != NULL) {
            list_grow(arena, (void **)names, *count, room, sizeof **names);
            (*names)[(*count)++] = g->output[i]->name;
        }
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_attribute; k++)
            names_of_graph(g->node[i]->attribute[k]->g, arena, depth + 1, names, count, room);
}

// All names that a node reads, those of its subgraphs included.
static void names_read_by(const Onnx__Node *p, Arena *arena, const char ***names, int *count)
{
    int room = 0;
    *names = NULL;
    *count = 0;
    for (size_t i = 0; i < p->n_input; i++) {
        list_grow(arena, (void **)names, *count, &room, sizeof **names);
        (*names)[(*count)++] = p->input[i];
    }
    for (size_t k = 0; k < p->n_attribute; k++)
        names_of_graph(p->attribute[k]->g, arena, 1, names, count, &room);
}

// Numbers of the nodes in an order of execution; false after a report of a cycle.
static bool sort_nodes(Import *m, const Onnx__Graph *g, int *sorted)
{
    int n = (int)g->n_node, done = 0, depth = 0;
    Map *maker = map_new(ARENA(m));
    char *state = NEW_ARRAY(ARENA(m), char, n + 1);         // 0 new, 1 on the stack, 2 done
    struct { int node, next, count; const char **names; } *stack = arena_alloc_array(ARENA(m), sizeof *stack, n + 1);
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++) {
            const char *name = g->node[i]->output[k];
            if (*name == 0)
                continue;
            if (map_get(maker, name) != NULL || map_get(m->scope->items, name) != NULL)
                return fail(m, MESSAGE_E0806, name), false;
            map_set(maker, name, (void *)(uintptr_t)(i + 1));
        }
    for (int i = 0; i < n; i++) {
        if (state[i] != 0)
            continue;
        stack[depth].node = i, stack[depth].next = 0;
        names_read_by(g->node[i], ARENA(m), &stack[depth].names, &stack[depth].count);
        depth++;
        state[i] = 1;
        while (depth > 0) {
            int top = depth - 1;
            if (stack[top].next == stack[top].count) {
                state[stack[top].node] = 2;
                sorted[done++] = stack[top].node;
                depth--;
                continue;
            }
            int from = (int)(uintptr_t)map_get(maker, stack[top].names[stack[top].next++]) - 1;
            if (from < 0 || state[from] == 2)
                continue;
            if (state[from] == 1) {
                int first = top;
                while (first > 0 && stack[first].node != from)
                    first--;
                Text cycle = {.arena = ARENA(m)};
                for (int k = first; k <= top && k < first + 8; k++)
                    text_add(&cycle, "%s%s", k > first ? ", " : "", node_label(m, g->node[stack[k].node]));
                return fail(m, MESSAGE_E0807, cycle.at), false;
            }
            state[from] = 1;
            stack[depth].node = from, stack[depth].next = 0;
            names_read_by(g->node[from], ARENA(m), &stack[depth].names, &stack[depth].count);
            depth++;
        }
    }
    return true;
}

// --- Nodes -------------------------------------------------------------------------------------------------------------

// All operators that are not known, each with the names of some of its nodes.
static void check_operators(Import *m, const Onnx__Graph *g, Map *unknown, int depth)
{
    for (size_t i = 0; i < g->n_node && depth <= SUBGRAPHS_DEEP; i++) {
        const Onnx__Node *p = g->node[i];
        const char *domain = domain_of(p->domain), *name = p->op_type != NULL ? p->op_type : "";
        const OnnxOp *op = onnx_op(domain, name);
        for (size_t k = 0; k < p->n_attribute; k++)
            if (p->attribute[k]->g != NULL)
                check_operators(m, p->attribute[k]->g, unknown, depth + 1);
        if (op != NULL && version_of(m, domain) >= op->since)
            continue;
        const char *key = arena_printf(ARENA(m), "%s%s%s (opset %d)", domain, *domain ? "." : "", name, (int)version_of(m, domain));
        const char *label = p->name != NULL && *p->name ? p->name : p->n_output > 0 ? p->output[0] : "?", *before = map_get(unknown, key);
        if (before == NULL || strlen(before) < 100)
            map_set(unknown, key, before == NULL ? arena_printf(ARENA(m), "%s", label) : arena_printf(ARENA(m), "%s, %s", before, label));
    }
}

static bool attributes_fit(OnnxCall *c)
{
    if (c->p->n_attribute > COUNT(c->read)) {
        refuse_node(c, "it has more than 64 attributes");
        return false;
    }
    for (size_t i = 0; i < c->p->n_attribute; i++) {
        if (c->p->attribute[i]->name == NULL) {
            refuse_node(c, "an attribute has no name");
            return false;
        }
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->p->attribute[i]->name, c->p->attribute[k]->name) == 0) {
                refuse_node(c, "the attribute %s is given twice", c->p->attribute[i]->name);
                return false;
            }
    }
    return true;
}

static void import_node(Import *m, const Onnx__Node *p)
{
    const char *domain = domain_of(p->domain);
    const OnnxOp *op = onnx_op(domain, p->op_type != NULL ? p->op_type : "");
    OnnxCall call = {.m = m, .p = p, .op = op->name, .detail = op->detail, .version = version_of(m, domain), .n_in = (int)p->n_input, .n_out = (int)p->n_output}, *c = &call;
    m->node = node_label(m, p);
    m->b.scope = p->name != NULL && *p->name ? p->name : p->n_output > 0 ? p->output[0] : "";
    if (p->n_output == 0) {
        refuse_node(c, "it has no outputs");
        return;
    }
    if (p->n_input > INPUTS_MAX || p->n_output > OUTPUTS_MAX) {
        refuse_node(c, "more than %d inputs or %d outputs are not available in this version", INPUTS_MAX, OUTPUTS_MAX);
        return;
    }
    if (c->n_in < op->least || c->n_in > op->most) {
        refuse_node(c, "it has %d inputs", c->n_in);
        return;
    }
    for (int i = 0; i < c->n_in; i++) {
        Item *item = *p->input[i] ? import_find(m, p->input[i]) : NULL;
        if (*p->input[i] && item == NULL) {
            refuse_node(c, "there is no value called %s", p->input[i]);
            return;
        }
        c->in[i] = item != NULL ? import_value(m, item) : NULL;
        if (i < op->least && c->in[i] == NULL) {
            refuse_node(c, "input %d is left out", i);
            return;
        }
    }
    if (!attributes_fit(c))
        return;
    int errors = m->cx->diag->errors;
    op->build(c);
    if (m->cx->diag->errors > errors && !m->again)
        diag_help(m->cx->diag, "it is node %s", m->node);
    for (size_t i = 0; i < p->n_attribute && !m->failed; i++)
        if (!c->read[i])
            refuse_node(c, "the attribute %s is not known", p->attribute[i]->name);
    for (int i = 0; i < c->n_out && !m->failed; i++) {
        if (*p->output[i] == 0)
            continue;
        if (c->out[i] == NULL) {
            refuse_node(c, "its output %d is not available in this version", i);
            return;
        }
        if (c->out[i]->kind == VALUE_RESULT && (c->out[i]->name == NULL || strcmp(c->out[i]->name, c->out[i]->node->op->name) == 0))
            c->out[i]->name = p->output[i];
        item_add(m, p->output[i], c->out[i], NULL);
    }
}

static bool import_initializers(Import *m, const Onnx__Graph *g)
{
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__Tensor *p = g->initializer[i];
        const char *name = p->name != NULL ? p->name : "";
        Tensor *t = import_tensor(m, p, name);
        if (t == NULL)
            return false;
        if (map_get(m->scope->items, name) != NULL)
            return fail(m, MESSAGE_E0806, name), false;
        item_add(m, name, NULL, t);
    }
    if (g->n_sparse_initializer > 0)
        return fail(m, MESSAGE_E0901, "a sparse initializer"), false;
    return true;
}

static void import_nodes(Import *m, const Onnx__Graph *g)
{
    int *sorted = NEW_ARRAY(ARENA(m), int, g->n_node + 1);
    if ((int64_t)g->n_node > diag_limit(m->cx->diag, LIMIT_graph_nodes)) {
        diag_report_limit(m->cx->diag, (DiagPlace){0}, LIMIT_graph_nodes, m->path);
        m->failed = true;
        return;
    }
    if (!sort_nodes(m, g, sorted))
        return;
    for (size_t i = 0; i < g->n_node && !m->failed; i++)
        import_node(m, g->node[sorted[i]]);
}

void import_graph(Import *m, const Onnx__Graph *p, int n, Value *const *in, Value **out)
{
    Scope scope = {.items = map_new(ARENA(m)), .outer = m->scope, .depth = m->scope->depth + 1};
    const char *node = m->node, *label = m->b.scope;
    if (scope.depth > SUBGRAPHS_DEEP) {
        fail(m, MESSAGE_E0803, m->node, "subgraphs are nested more than 16 deep");
        return;
    }
    m->scope = &scope;
    for (int i = 0; i < n && (size_t)i < p->n_input; i++)
        if (p->input[i]->name != NULL)
            item_add(m, p->input[i]->name, in[i], NULL);
    if (import_initializers(m, p))
        import_nodes(m, p);
    for (size_t i = 0; i < p->n_output && !m->failed; i++) {
        Item *item = import_find(m, p->output[i]->name != NULL ? p->output[i]->name : "");
        if (item == NULL)
            fail(m, MESSAGE_E0803, node, arena_printf(ARENA(m), "nothing in its subgraph makes %s", p->output[i]->name));
        else
            out[i] = import_value(m, item);
    }
    m->scope = scope.outer;
    m->node = node;
    m->b.scope = label;
}

// --- Inputs and outputs ------------------------------------------------------------------------------------------------

static const OnnxFixed *given(const OnnxFixed *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (list[i].name != NULL && strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static bool input_dim(Import *m, const Onnx__Dimension *d, const char *name, int axis, const Tensor *like, Size *size)
{
    if (d->value_case == ONNX__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0)
        return *size = size_const(m->cx, d->dim_value), true;
    if (like != NULL && m->options->pin)
        return *size = size_const(m->cx, like->dim[axis]), true;
    const char *symbol = d->value_case == ONNX__DIMENSION__VALUE_DIM_PARAM && *d->dim_param ? d->dim_param : arena_printf(ARENA(m), "%s_dim_%d", name, axis);
    Symbol *known = map_get(m->cx->symbols, symbol);
    *size = size_symbol(m->cx, symbol, 0);
    known = map_get(m->cx->symbols, symbol);
    if (like != NULL && like->dim[axis] > known->bound)
        known->bound = like->dim[axis];
    return true;
}

static Value *import_input(Import *m, const Onnx__ValueInfo *p)
{
    const char *name = p->name != NULL ? p->name : "";
    const OnnxFixed *like = given(m->options->shapes, m->options->n_shapes, name);
    if (p->type == NULL || p->type->value_case != ONNX__TYPE__VALUE_TENSOR_TYPE)
        return fail(m, MESSAGE_E0803, arena_printf(ARENA(m), "input %s", name), "it is a sequence, map, optional or sparse tensor, which is not available in this version"), NULL;
    const Onnx__Type__TensorType *t = p->type->tensor_type;
    Type type = {.dtype = onnx_type(t->elem_type)};
    if (type.dtype == TYPE_NONE)
        return fail(m, MESSAGE_E0803, arena_printf(ARENA(m), "input %s", name),
                    arena_printf(ARENA(m), "elements of type %s are not available in this version", onnx_type_name(t->elem_type))), NULL;
    if (t->shape == NULL && (like == NULL || !m->options->pin))
        return fail(m, MESSAGE_E0803, arena_printf(ARENA(m), "input %s", name), "its number of axes is not known"), NULL;
    type.shape.rank = t->shape != NULL ? (int)t->shape->n_dim : like->tensor->rank;
    if (type.shape.rank > RANK_MAX)
        return fail(m, MESSAGE_E0803, arena_printf(ARENA(m), "input %s", name), "it has more than 8 axes"), NULL;
    if (like != NULL && (like->tensor->rank != type.shape.rank || like->tensor->dtype != type.dtype))
        return fail(m, MESSAGE_E0803, arena_printf(ARENA(m), "input %s", name), "the tensor that is given has another type or number of axes"), NULL;
    for (int i = 0; i < type.shape.rank; i++)
        if (t->shape == NULL)
            type.shape.dim[i] = size_const(m->cx, like->tensor->dim[i]);
        else
            input_dim(m, t->shape->dim[i], name, i, like != NULL ? like->tensor : NULL, &type.shape.dim[i]);
    return graph_input(m->g, name, type, (DiagPlace){0});
}

static void import_inputs(Import *m)
{
    const Onnx__Graph *g = m->file->graph;
    for (size_t i = 0; i < g->n_input && !m->failed; i++) {
        const char *name = g->input[i]->name != NULL ? g->input[i]->name : "";
        if (map_get(m->scope->items, name) != NULL)
            continue;                                   // an initializer that may also be given: its value is taken
        const OnnxFixed *fixed = map_get(m->taken, name) != NULL ? given(m->options->fixed, m->options->n_fixed, name) : NULL;
        Value *value = fixed != NULL ? constant(m, fixed->tensor) : import_input(m, g->input[i]);
        if (value != NULL)
            item_add(m, name, value, NULL);
    }
}

static bool dims_may_be(const Onnx__Shape *shape, const Type *type)
{
    if (shape == NULL)
        return true;
    bool fits = (int)shape->n_dim == type->shape.rank;
    for (int i = 0; fits && i < type->shape.rank; i++) {
        int64_t n;
        fits = shape->dim[i]->value_case != ONNX__DIMENSION__VALUE_DIM_VALUE || !size_known(type->shape.dim[i], &n) || n == shape->dim[i]->dim_value;
    }
    return fits;
}

static void import_outputs(Import *m)
{
    const Onnx__Graph *g = m->file->graph;
    for (size_t i = 0; i < g->n_output && !m->failed; i++) {
        const char *name = g->output[i]->name != NULL ? g->output[i]->name : "";
        Item *item = import_find(m, name);
        if (item == NULL) {
            fail(m, MESSAGE_E0803, arena_printf(ARENA(m), "output %s", name), "nothing makes it");
            return;
        }
        Value *value = import_value(m, item);
        const Onnx__Type *type = g->output[i]->type;
        if (type != NULL && type->value_case == ONNX__TYPE__VALUE_TENSOR_TYPE &&
            ((type->tensor_type->elem_type != 0 && onnx_type(type->tensor_type->elem_type) != value->type.dtype) || !dims_may_be(type->tensor_type->shape, &value->type))) {
            fail(m, MESSAGE_E0803, arena_printf(ARENA(m), "output %s", name), arena_printf(ARENA(m), "it is %s, and the file says otherwise", type_text(m->cx, &value->type)));
            return;
        }
        LIST_ADD(ARENA(m), m->g->outputs, ((NamedValue){.name = name, .value = value}));
    }
}

// Only the parameters that something reads.
static void collect_params(Import *m)
{
    bool *used = NEW_ARRAY(ARENA(m), bool, m->g->values.count + 1);
    for (int i = 0; i < m->g->nodes.count; i++)
        for (int k = 0; k < m->g->nodes.at[i]->n_in; k++)
            if (m->g->nodes.at[i]->in[k] != NULL)
                used[m->g->nodes.at[i]->in[k]->id] = true;
    for (int i = 0; i < m->g->outputs.count; i++)
        used[m->g->outputs.at[i].value->id] = true;
    for (int i = 0; i < m->g->values.count; i++)
        if (used[i] && m->g->values.at[i]->kind == VALUE_PARAM)
            LIST_ADD(ARENA(m), m->model->params, m->g->values.at[i]->param);
}

// --- The model ---------------------------------------------------------------------------------------------------------

static const char *model_name(Context *cx, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');
    return arena_string(cx->arena, name, dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name));
}

static Model *import_once(Import *m)
{
    Scope scope = {.items = map_new(ARENA(m))};
    Map *unknown = map_new(ARENA(m));
    m->scope = &scope;
    m->again = m->failed = false;
    m->known = pointer_map_new(ARENA(m));
    m->model = NEW(ARENA(m), Model);
    *m->model = (Model){.cx = m->cx, .name = model_name(m->cx, m->path), .path = m->path, .settings = map_new(ARENA(m))};
    m->g = m->model->infer = graph_new(m->cx, "infer");
    m->b = (Builder){.cx = m->cx, .graph = m->g};
    check_operators(m, m->file->graph, unknown, 0);
    for (int i = 0; i < map_count(unknown); i++)
        fail(m, MESSAGE_E0802, map_key(unknown, i), (const char *)map_value(unknown, i));
    if (m->failed || !import_initializers(m, m->file->graph))
        return NULL;
    import_inputs(m);
    if (!m->failed)
        import_nodes(m, m->file->graph);
    if (!m->failed)
        import_outputs(m);
    if (m->failed)
        return NULL;
    graph_prune(m->g);
    collect_params(m);
    return m->model;
}

bool onnx_is_model(const char *path, const char *bytes, size_t length)
{
    size_t end = strlen(path);
    (void)bytes, (void)length;
    return end > 5 && strcmp(path + end - 5, ".onnx") == 0;
}

Model *onnx_read(Context *cx, const char *path, const char *bytes, size_t length, const OnnxOptions *options)
{
    static const OnnxOptions none = {0};
    Wire wire;
    Import m = {.cx = cx, .path = path, .options = options != NULL ? options : &none, .taken = map_new(cx->arena), .demanded = pointer_map_new(cx->arena)};
    m.file = (const Onnx__Model *)wire_unpack(cx->arena, &onnx__model__descriptor, (const uint8_t *)bytes, length, &wire);
    if (m.file == NULL)
        return diag_report_file(cx->diag, path, MESSAGE_E0801, wire.why), NULL;
    if (m.file->graph == NULL)
        return diag_report_file(cx->diag, path, MESSAGE_E0801, "it has no graph"), NULL;
    if (m.file->n_functions > 0)
        return diag_report_file(cx->diag, path, MESSAGE_E0901, "a function of the model's own"), NULL;
    if (!read_versions(&m))
        return NULL;
    Model *model = import_once(&m);
    while (m.again)                                     // each time one more input is fixed
        model = import_once(&m);
    return model;
}

static bool is_initializer(const Onnx__Graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (g->initializer[i]->name != NULL && strcmp(g->initializer[i]->name, name) == 0)
            return true;
    return false;
}

int onnx_input_names(Arena *arena, const char *bytes, size_t length, const char ***names)
{
    Wire wire;
    const Onnx__Model *file = (const Onnx__Model *)wire_unpack(arena, &onnx__model__descriptor, (const uint8_t *)bytes, length, &wire);
    int all = file != NULL && file->graph != NULL ? (int)file->graph->n_input : 0, n = 0;
    *names = NEW_ARRAY(arena, const char *, all + 1);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < all; i++) {
            const char *name = file->graph->input[i]->name != NULL ? file->graph->input[i]->name : "";
            if (is_initializer(file->graph, name) == (pass == 1))
                (*names)[n++] = name;
        }
    return n;
}
