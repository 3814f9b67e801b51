// table.c: finding rows, and what their one-line columns say.
#include "op.h"

static const OpDef *const ops[] = {
#define OP(name) &op_##name,
#include "ops.def"
#undef OP
};

int op_count(void) { return COUNT(ops); }
const OpDef *op_at(int i) { return ops[i]; }

const OpDef *op_find(const char *name)
{
    for (int i = 0; i < COUNT(ops); i++)
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    return NULL;
}

// All names that rows give to their inputs, so that a name can be handed out without a copy.
#define LAYER(l) "weight_ih_l" l, "weight_hh_l" l, "bias_ih_l" l, "bias_hh_l" l
static const char *const input_names[] = {
    "x", "y", "t", "a", "b", "c", "q", "k", "v", "h", "dy", "where", "condition", "weight", "bias", "running_mean", "running_var", "index", "label", "logits", "logp", "place",
    "mask", "position", "values", "like", "lengths", "start", "cell", "turned", "gates", "dcell", "boxes", "score", "image", "grid", "truth", "positive", "negative",
    "mean", "std", "found", "confidence", "class", "count",
    LAYER("0"), LAYER("1"), LAYER("2"), LAYER("3"), LAYER("0_reverse"), LAYER("1_reverse"), LAYER("2_reverse"), LAYER("3_reverse"),
};
#undef LAYER

static const char *input_name(const OpDef *op, const char *from, size_t length)
{
    for (int i = 0; i < COUNT(input_names); i++)
        if (strlen(input_names[i]) == length && memcmp(input_names[i], from, length) == 0)
            return input_names[i];
    BUG("%s has an input that input_names lacks: %.*s", op->name, (int)length, from);
}

int op_inputs(const OpDef *op, const char *names[INPUTS_MAX], bool optional[INPUTS_MAX], bool *variadic)
{
    int count = 0;
    *variadic = op->inputs[0] == '*';
    for (const char *p = op->inputs + *variadic; *p != 0; p += strcspn(p, ","), p += strspn(p, ", ")) {
        CHECK(count < INPUTS_MAX);
        names[count] = input_name(op, p, strcspn(p, ":"));
        optional[count++] = p[strcspn(p, ",") - 1] == '?';
    }
    return count;
}

int op_input_index(const OpDef *op, const char *name)
{
    const char *names[INPUTS_MAX];
    bool optional[INPUTS_MAX], variadic;
    int count = op_inputs(op, names, optional, &variadic);
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static const Attr *attr_named(const OpDef *op, const Attr *attr, const char *name)
{
    for (int i = 0; i < ATTRS_MAX && op->attrs[i].name != NULL; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return &attr[i];
    BUG("%s has no attribute %s", op->name, name);
}

const Attr *node_attr(const Node *node, const char *name)   { return attr_named(node->op, node->attr, name); }
const Attr *call_attr(const OpCall *call, const char *name) { return attr_named(call->op, call->attr, name); }
