// print.c: a Graph as text, one line a value, that graph_read takes back to the same Graph, and as a drawing for Graphviz.
//
//   graph digits (training, plain) {
//       size N <= 64 batch
//       param conv1.weight_0: f32[16, 1, 3, 3] weight
//       input image_2: f32[N, 1, 8, 8]
//       conv_3: f32[N, 16, 8, 8] = conv(image_2, conv1.weight_0, pad = same) @conv1
//       map_4: f32[N, 16, 8, 8] = map(conv_3, formula = "max(x0, 0)") @conv1 backward
//       output logits = dense_9
//       loss = mean_12
//       update bn.running_mean_5 = add_30
//       gradient conv1.weight_0 = conv2d_grad_41
//   }
//
// A value is called by its name and its id. Attributes are written where they differ from the row's default; absent inputs as
// `none`. Places in the user's file are not kept.
#include <ctype.h>
#include <string.h>

#include "mlc.h"
#include "ops/op.h"

const char *const stage_names[STAGE_COUNT] = {"read", "typed", "plain", "differentiated", "fused", "planned"};
static const char *const phase_names[] = {"", " backward", " update"};

static void print_name(Text *text, const Value *value)
{
    for (const char *p = value->name != NULL ? value->name : "const"; *p != 0; p++)
        text_put(text, isalnum((unsigned char)*p) || *p == '.' || *p == '_' ? p : "_", 1);
    text_add(text, "_%d", value->id);
}

static void print_string(Text *text, const char *s)
{
    text_put(text, "\"", 1);
    for (; *s != 0; s++) {
        if (*s == '"' || *s == '\\')
            text_put(text, "\\", 1);
        text_put(text, s, 1);
    }
    text_put(text, "\"", 1);
}

static bool is_plain(const char *name)
{
    for (const char *p = name; *p != 0; p++)
        if (!isalnum((unsigned char)*p) && *p != '.' && *p != '_')
            return false;
    return name[0] != 0;
}

// name_id ["the name itself"]: type [< below]
static void print_declared(Text *text, const Value *value)
{
    print_name(text, value);
    if (value->name != NULL && !is_plain(value->name)) {
        text_put(text, " ", 1);
        print_string(text, value->name);
    }
    text_put(text, ": ", 2);
    type_print(text, &value->type);
    if (value->below > 0)
        text_add(text, " < %lld", (long long)value->below);
}

// --- Attributes --------------------------------------------------------------------------------------------------------------

static void print_attr_value(Text *text, const Attr *attr)
{
    switch (attr->kind) {
    case ATTR_NONE:  text_add(text, "none"); break;
    case ATTR_INT:   text_add(text, "%lld", (long long)attr->i); break;
    case ATTR_BOOL:  text_add(text, attr->i ? "true" : "false"); break;
    case ATTR_FLOAT: number_print(text, TYPE_f64, attr->f); break;
    case ATTR_WORD:  text_add(text, "%s", attr->word); break;
    case ATTR_TEXT:  print_string(text, attr->word); break;
    case ATTR_TYPE:  text_add(text, "%s", type_def(attr->type)->name); break;
    case ATTR_FORMULA:
        text_put(text, "\"", 1);
        expr_print(text, attr->formula, NULL);
        text_put(text, "\"", 1);
        break;
    case ATTR_INTS: case ATTR_SIZES:
        for (int i = 0; i < attr->count; i++) {
            text_add(text, i > 0 ? ", " : "[");
            if (attr->kind == ATTR_INTS)
                text_add(text, "%lld", (long long)attr->ints[i]);
            else
                size_print(text, attr->sizes[i]);
        }
        text_add(text, attr->count > 0 ? "]" : "[]");
        break;
    }
}

bool attr_equal(const Attr *a, const Attr *b)
{
    if (a->kind != b->kind || a->i != b->i || memcmp(&a->f, &b->f, sizeof a->f) != 0 || a->count != b->count || a->type != b->type)
        return false;
    if ((a->word == NULL) != (b->word == NULL) || (a->word != NULL && strcmp(a->word, b->word) != 0))
        return false;
    if ((a->formula == NULL) != (b->formula == NULL) || (a->formula != NULL && !expr_equal(a->formula, b->formula)))
        return false;
    for (int i = 0; i < a->count; i++)
        if (a->kind == ATTR_SIZES ? !size_equal(a->sizes[i], b->sizes[i]) : a->ints[i] != b->ints[i])
            return false;
    return true;
}

static void print_call(Text *text, const Graph *g, const Node *node)
{
    const char *comma = "";
    text_add(text, "%s(", node->op->name);
    for (int i = 0; i < node->n_in; i++, comma = ", ") {
        text_add(text, "%s", comma);
        if (node->in[i] != NULL)
            print_name(text, node->in[i]);
        else
            text_add(text, "none");
    }
    for (int i = 0; i < ATTRS_MAX && node->op->attrs[i].name != NULL; i++) {
        Attr initial = {0};
        if (node->op->attrs[i].initial != NULL)
            attr_read(g->cx, &node->op->attrs[i], node->op->attrs[i].initial, &initial);
        if (attr_equal(&initial, &node->attr[i]))
            continue;
        text_add(text, "%s%s = ", comma, node->op->attrs[i].name);
        print_attr_value(text, &node->attr[i]);
        comma = ", ";
    }
    text_put(text, ")", 1);
}

// --- Lines ---------------------------------------------------------------------------------------------------------------------

static void print_node(Text *text, const Graph *g, const Node *node)
{
    text_add(text, "    ");
    for (int i = 0; i < node->n_out; i++) {
        text_add(text, i > 0 ? ", " : "");
        print_declared(text, node->out[i]);
    }
    text_add(text, " = ");
    print_call(text, g, node);
    if (node->scope != NULL && node->scope[0] != 0) {
        text_add(text, " @");
        if (is_plain(node->scope))
            text_add(text, "%s", node->scope);
        else
            print_string(text, node->scope);
    }
    text_add(text, "%s", phase_names[node->phase]);
    if (node->salt != 0)
        text_add(text, " draw %u", node->salt);
    text_put(text, "\n", 1);
}

static void print_constant(Text *text, const Value *value)
{
    Tensor t = {.dtype = value->type.dtype, .rank = value->type.shape.rank, .data = (void *)(uintptr_t)value->data};
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = size_value(value->type.shape.dim[i]);
    text_add(text, "    const ");
    print_declared(text, value);
    text_add(text, " = [");
    for (int64_t i = 0; i < tensor_count(&t); i++) {
        text_add(text, i > 0 ? ", " : "");
        if (type_is_float(t.dtype))
            number_print(text, t.dtype, tensor_get(&t, i));
        else
            text_add(text, "%lld", (long long)tensor_get_whole(&t, i));
    }
    text_add(text, "]\n");
}

const char *const role_names[ROLE_COUNT] = {"weight", "bias", "norm", "embedding", "buffer"};

static void print_leaf(Text *text, const Graph *g, const Value *value)
{
    if (value->kind == VALUE_CONST) {
        print_constant(text, value);
        return;
    }
    if (value->kind == VALUE_RESULT)
        return;
    bool target = value->kind == VALUE_INPUT && value->index >= g->inputs.count - g->n_targets;
    text_add(text, "    %s ", value->kind == VALUE_PARAM ? "param" : target ? "target" : "input");
    print_declared(text, value);
    if (value->kind == VALUE_PARAM)
        text_add(text, " %s%s", role_names[value->param->role], value->param->trainable ? "" : " frozen");
    text_put(text, "\n", 1);
}

static void print_named(Text *text, const char *what, const NamedValue *named)
{
    text_add(text, "    %s ", what);
    print_string(text, named->name);
    text_add(text, " = ");
    print_name(text, named->value);
    for (int i = 0; named->metric != NULL && i < op_count(); i++)
        if (&op_at(i)->metric == named->metric)
            text_add(text, " by %s", op_at(i)->name);
    if (named->better != 0)
        text_add(text, named->better > 0 ? " maximize" : " minimize");
    text_put(text, "\n", 1);
}

static void print_pair(Text *text, const char *what, const Graph *g, const Param *param, const Value *value)
{
    const Value *of = pointer_map_get(g->of_param, param);
    if (value == NULL || of == NULL)
        return;
    text_add(text, "    %s ", what);
    print_name(text, of);
    text_add(text, " = ");
    print_name(text, value);
    text_put(text, "\n", 1);
}

// Which values the text needs: those that nodes use, and inputs and parameters at any rate.
static bool *values_used(const Graph *g)
{
    bool *used = NEW_ARRAY(g->cx->arena, bool, g->values.count);
    for (int i = 0; i < g->values.count; i++)
        used[i] = g->values.at[i]->kind == VALUE_INPUT || g->values.at[i]->kind == VALUE_PARAM;
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.at[i]->n_in; k++)
            if (g->nodes.at[i]->in[k] != NULL)
                used[g->nodes.at[i]->in[k]->id] = true;
    for (int i = 0; i < g->outputs.count; i++)
        used[g->outputs.at[i].value->id] = true;
    for (int i = 0; i < g->gradients.count; i++)
        if (g->gradients.at[i].value != NULL)
            used[g->gradients.at[i].value->id] = true;
    if (g->loss != NULL)
        used[g->loss->id] = true;
    return used;
}

void graph_print(Text *text, const Graph *g)
{
    const bool *used = values_used(g);
    text_add(text, "graph %s (%s%s) {\n", g->name != NULL && is_plain(g->name) ? g->name : "net", g->training ? "training, " : "", stage_names[g->stage]);
    for (int i = 0; i < map_count(g->cx->symbols); i++) {
        const Symbol *symbol = map_value(g->cx->symbols, i);
        text_add(text, "    size %s", symbol->name);
        text_add(text, symbol->bound > 0 ? " <= %lld" : "", (long long)symbol->bound);
        text_add(text, symbol->batch ? " batch\n" : "\n");
    }
    for (int i = 0; i < g->values.count; i++)
        if (used[i])
            print_leaf(text, g, g->values.at[i]);
    for (int i = 0; i < g->nodes.count; i++)
        print_node(text, g, g->nodes.at[i]);
    for (int i = 0; i < g->outputs.count; i++)
        print_named(text, "output", &g->outputs.at[i]);
    for (int i = 0; i < g->metrics.count; i++)
        print_named(text, "metric", &g->metrics.at[i]);
    for (int i = 0; i < g->auxiliary.count; i++)
        print_named(text, "auxiliary", &g->auxiliary.at[i]);
    if (g->loss != NULL) {
        text_add(text, "    loss = ");
        print_name(text, g->loss);
        text_put(text, "\n", 1);
    }
    for (int i = 0; i < g->updates.count; i++)
        print_pair(text, "update", g, g->updates.at[i].param, g->updates.at[i].value);
    for (int i = 0; i < g->gradients.count; i++)
        print_pair(text, "gradient", g, g->gradients.at[i].param, g->gradients.at[i].value);
    text_add(text, "}\n");
}

// --- Drawing -------------------------------------------------------------------------------------------------------------------

static void dot_value(Text *text, const Value *value, const char *shape, const char *label)
{
    text_add(text, "    v%d [shape=%s, label=", value->id, shape);
    print_string(text, label);
    text_add(text, "];\n");
}

static void dot_edges(Text *text, const Node *node)
{
    for (int i = 0; i < node->n_in; i++) {
        const Value *in = node->in[i];
        if (in == NULL || in->kind == VALUE_CONST || in->kind == VALUE_PARAM)
            continue;
        if (in->node != NULL)
            text_add(text, "    n%d -> n%d [label=", in->node->id, node->id);
        else
            text_add(text, "    v%d -> n%d [label=", in->id, node->id);
        Text type = {.arena = text->arena};
        type_print(&type, &in->type);
        print_string(text, type.at);
        text_add(text, "];\n");
    }
}

static void dot_node(Text *text, const Node *node)
{
    const char *params = "";
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] != NULL && node->in[i]->kind == VALUE_PARAM) {
            Text type = {.arena = text->arena};
            type_print(&type, &node->in[i]->type);
            params = arena_printf(text->arena, "%s\n%s: %s", params, node->in[i]->name, type.at);
        }
    bool scoped = node->scope != NULL && node->scope[0] != 0;
    text_add(text, "    n%d [shape=box, style=rounded, label=", node->id);
    print_string(text, arena_printf(text->arena, "%s%s%s%s", scoped ? node->scope : "", scoped ? ": " : "", node->op->name, params));
    text_add(text, "];\n");
    dot_edges(text, node);
}

void graph_dot(Text *text, const Graph *g)
{
    text_add(text, "digraph ");
    print_string(text, g->name != NULL ? g->name : "net");
    text_add(text, " {\n    node [fontname=\"Helvetica\"];\n    edge [fontname=\"Helvetica\", fontsize=10];\n");
    for (int i = 0; i < g->inputs.count; i++)
        dot_value(text, g->inputs.at[i], "ellipse", g->inputs.at[i]->name);
    for (int i = 0; i < g->nodes.count; i++)
        dot_node(text, g->nodes.at[i]);
    for (int i = 0; i < g->outputs.count; i++) {
        const Value *value = g->outputs.at[i].value;
        text_add(text, "    o%d [shape=ellipse, label=", i);
        print_string(text, g->outputs.at[i].name);
        text_add(text, value->node != NULL ? "];\n    n%d -> o%d;\n" : "];\n    v%d -> o%d;\n", value->node != NULL ? value->node->id : value->id, i);
    }
    text_add(text, "}\n");
}
