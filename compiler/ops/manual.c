// manual.c: what `mlc ops` prints, from the rows: the list of ops, and a page for one.
#include "op.h"

static int attr_count(const OpDef *op)
{
    int n = 0;
    while (n < ATTRS_MAX && op->attrs[n].name != NULL)
        n++;
    return n;
}

void ops_list(Text *text)
{
    for (int i = 0; i < op_count(); i++) {
        const OpDef *op = op_at(i);
        if (op->traits & OP_INTERNAL)
            continue;
        text_add(text, "%s ", op->name);
        text_pad(text, 18);
        text_add(text, "%s\n", op->brief);
    }
}

// --- A page ---------------------------------------------------------------------------------------------------------------------

// Prose is broken at 90 columns.
static void put_prose(Text *text, const char *prose)
{
    int column = 0;
    for (const char *p = prose + strspn(prose, " "); *p != 0; p += strspn(p, " ")) {
        int length = (int)strcspn(p, " ");
        if (column > 0 && column + 1 + length > 90) {
            text_add(text, "\n");
            column = 0;
        }
        text_add(text, "%s%.*s", column > 0 ? " " : "", length, p);
        column += length + (column > 0);
        p += length;
    }
    text_add(text, "\n");
}

static const char *initial_text(const AttrDef *def)
{
    if (strcmp(def->initial, "1e999") == 0 || strcmp(def->initial, "-1e999") == 0)
        return def->initial[0] == '-' ? "-inf" : "inf";
    return def->initial;
}

static void put_signature(Text *text, const OpDef *op)
{
    const char *names[INPUTS_MAX], *comma = "";
    bool optional[INPUTS_MAX], variadic;
    int count = op_inputs(op, names, optional, &variadic);
    text_add(text, "%s(", op->name);
    for (int i = 0; i < count; i++) {
        bool owned = false;
        for (int k = 0; k < OWNED_MAX && op->owned[k].input != NULL; k++)
            owned |= strcmp(op->owned[k].input, names[i]) == 0;
        if (owned)
            continue;
        text_add(text, variadic ? "%s%s0, %s1, …" : optional[i] ? "%s[%s]" : "%s%s", comma, names[i], names[i]);
        comma = ", ";
    }
    for (int i = 0; i < attr_count(op); i++) {
        const AttrDef *def = &op->attrs[i];
        text_add(text, def->positional ? "%s%s" : "%s%s =", comma, def->name);
        if (def->initial != NULL && def->initial[0] != 0)
            text_add(text, def->positional ? " = %s" : " %s", initial_text(def));
        else if (!def->positional)
            text_add(text, " …");
        comma = ", ";
    }
    text_add(text, ")\n");
}

static const char *kind_text(const AttrDef *def)
{
    switch (def->kind) {
    case ATTR_INT:   return "a whole number";
    case ATTR_FLOAT: return "a number";
    case ATTR_BOOL:  return "true or false";
    case ATTR_INTS:  return "a whole number or a list of them";
    case ATTR_SIZES: return "a size or a list of sizes";
    case ATTR_TYPE:  return "an element type";
    case ATTR_TEXT:  return "a string";
    case ATTR_FORMULA: return "a formula";
    default:         return "a word";
    }
}

static void put_attr(Text *text, const AttrDef *def)
{
    text_add(text, "  %s ", def->name);
    text_pad(text, 18);
    text_add(text, "%s\n", def->brief);
    text_pad(text, 18);
    text_add(text, "%s", kind_text(def));
    if (def->words != NULL)
        text_add(text, def->kind == ATTR_WORD ? ": %s" : ", or: %s", def->words);
    if (def->least < def->most)
        text_add(text, ", %.10g to %.10g", def->least, def->most);
    if (def->initial == NULL)
        text_add(text, "; must be given");
    else if (def->initial[0] != 0)
        text_add(text, "; default %s", initial_text(def));
    if (def->onnx != NULL)
        text_add(text, "; in ONNX %s", def->onnx);
    text_add(text, "\n");
}

static void put_params(Text *text, const OpDef *op)
{
    static const char *const roles[] = {[ROLE_WEIGHT] = "weight", [ROLE_BIAS] = "bias", [ROLE_NORM] = "scale or shift of a norm", [ROLE_EMBEDDING] = "embedding", [ROLE_BUFFER] = "buffer, not trained"};
    int count = 0, shown = 0;
    while (count < OWNED_MAX && op->owned[count].input != NULL)
        count++;
    text_add(text, "\nparameters\n");
    for (int i = 0; i < count && (shown < 4 || count <= 8); i++, shown++) {
        const OwnedDef *owned = &op->owned[i];
        text_add(text, "  %s ", owned->input);
        text_pad(text, 18);
        text_add(text, "%s; starts as %s", roles[owned->role], owned->init);
        if (owned->unless != NULL)
            text_add(text, "; none with %s = false", owned->unless);
        text_add(text, "\n");
    }
    if (shown < count)
        text_add(text, "  and so on, as far as they are needed, to %s\n", op->owned[count - 1].input);
}

static void put_onnx(Text *text, const OpDef *op)
{
    if (op->onnx[0].name == NULL)
        return;
    text_add(text, "\nONNX\n ");
    for (int i = 0; i < COUNT(op->onnx) && op->onnx[i].name != NULL; i++) {
        text_add(text, "%s %s, from operator set %d", i > 0 ? ";" : "", op->onnx[i].name, op->onnx[i].since);
        if (op->onnx[i].until > 0)
            text_add(text, " to %d", op->onnx[i].until);
    }
    text_add(text, "\n");
}

static void put_notes(Text *text, const OpDef *op)
{
    if (op->traits & OP_RANDOM)
        text_add(text, "Random: a function of the seed, the step, the place in the net, and the element.\n");
    if (op->traits & OP_MODE)
        text_add(text, "Follows `training`.\n");
    if (op->traits & OP_METRIC && op->metric.better != 0)
        text_add(text, "As a metric, %s is better.\n", op->metric.better > 0 ? "higher" : "lower");
    if (op->traits & OP_DATA && !(op->traits & OP_RANDOM))
        text_add(text, "May be used in `data`.\n");
    if (op->no_grad != NULL)
        text_add(text, "No gradient: %s.\n", op->no_grad);
}

static const char *kind_words(const char *kind, size_t length)
{
    static const char *const words[][2] = {{"float", "of a float type"}, {"int", "integers"}, {"index", "integers, indices"}, {"bool", "booleans"}, {"any", "of any type"}, {"like x", "of the type of x"}};
    for (int i = 0; i < COUNT(words); i++)
        if (strlen(words[i][0]) == length && memcmp(words[i][0], kind, length) == 0)
            return words[i][1];
    return "";
}

static bool is_owned(const OpDef *op, const char *name, size_t length)
{
    for (int i = 0; i < OWNED_MAX && op->owned[i].input != NULL; i++)
        if (strlen(op->owned[i].input) == length && memcmp(op->owned[i].input, name, length) == 0)
            return true;
    return false;
}

// "x: float, where: bool?"
static void put_inputs(Text *text, const OpDef *op)
{
    const char *title = "\ninputs\n";
    for (const char *p = op->inputs + (op->inputs[0] == '*'); *p != 0; p += strcspn(p, ","), p += strspn(p, ", ")) {
        size_t length = strcspn(p, ":");
        const char *kind = p + length + 1 + strspn(p + length + 1, " ");
        size_t width = strcspn(kind, "?,");
        if (is_owned(op, p, length))
            continue;
        text_add(text, "%s  %.*s%s ", title, (int)length, p, op->inputs[0] == '*' ? "0, x1" : "");
        text_pad(text, 18);
        text_add(text, "%s%s\n", kind_words(kind, width), kind[width] == '?' ? "; may be left out" : "");
        title = "";
    }
}

// What is said of it once, in the row.
static void put_formula(Text *text, const OpDef *op)
{
    if (op->formula != NULL)
        text_add(text, "%s = %s, element by element.\n", op->outputs, op->formula);
    if (op->formula != NULL && op->no_grad == NULL && op->grad == NULL)
        text_add(text, "The gradient is the derivative of that.\n");
}

void op_manual(Text *text, const OpDef *op)
{
    text_add(text, "%s: %s\n\n  ", op->name, op->brief);
    put_signature(text, op);
    text_add(text, "\n");
    put_formula(text, op);
    if (op->doc != NULL)
        put_prose(text, op->doc);
    put_notes(text, op);
    put_inputs(text, op);
    if (attr_count(op) > 0)
        text_add(text, "\nattributes\n");
    for (int i = 0; i < attr_count(op); i++)
        put_attr(text, &op->attrs[i]);
    if (op->owned[0].input != NULL)
        put_params(text, op);
    text_add(text, "\nexample\n  ");
    text_add(text, op->example != NULL ? "%s\n" : "y = %s(x)\n", op->example != NULL ? op->example : op->name);
    put_onnx(text, op);
}
