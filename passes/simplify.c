// simplify.c: smaller graphs with the same results: the rules of simplify.rules, moves of elements that undo each other,
// nodes that compute the same, nodes that nothing uses.
//
// A rule is a pattern and a replacement, both calls of ops as text; they are read once and matched from the node down. Moves
// (reshape, transpose, casts) carry attributes and are functions here. All is repeated until nothing changes.
#include "passes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../compiler/ops/op.h"

enum { PATTERN_ARGS = 3, VARIABLES = 26, ROUNDS = 32, SMALL_CONST = 65536 };

static const RuleDef rules[] = {
#define RULE(name, from, to) {#name, from, to},
#include "simplify.rules"
#undef RULE
};

const RuleDef *rule_at(int i) { return i >= 0 && i < COUNT(rules) ? &rules[i] : NULL; }

// --- Patterns ---------------------------------------------------------------------------------------------------------------

typedef struct Pattern {                // op(args), a variable, or a number
    const OpDef *op;
    char    variable;                   // 0: none
    double  number;
    int     count;
    struct Pattern *arg[PATTERN_ARGS];
} Pattern;

static Pattern *pattern_read(Arena *arena, const char **at)
{
    Pattern *p = NEW(arena, Pattern);
    size_t length = 0;
    *at += strspn(*at, " ");
    while (isalnum((unsigned char)(*at)[length]) || (*at)[length] == '_')
        length++;
    if ((*at)[0] == '-' || isdigit((unsigned char)(*at)[0])) {
        p->number = strtod(*at, (char **)(uintptr_t)at);
        return p;
    }
    if ((*at)[length] != '(') {
        CHECK(length == 1);
        p->variable = *(*at)++;
        return p;
    }
    p->op = op_find(arena_string(arena, *at, length));
    CHECK(p->op != NULL);
    *at += length;
    while (**at == '(' || **at == ',') {
        (*at)++;
        CHECK(p->count < PATTERN_ARGS);
        p->arg[p->count++] = pattern_read(arena, at);
        *at += strspn(*at, " ");
    }
    CHECK(*(*at)++ == ')');
    return p;
}

static double element_of(const Value *value, int64_t i)
{
    Tensor tensor = {.dtype = value->type.dtype, .rank = 1, .dim = {i + 1}, .data = (void *)(uintptr_t)value->data};
    return tensor_get(&tensor, i);
}

static bool is_number(const Value *value, double number)
{
    int64_t count = 1, n;
    if (value->kind != VALUE_CONST || value->type.dtype == TYPE_bool)
        return false;
    for (int i = 0; i < value->type.shape.rank; i++)
        if (!size_known(value->type.shape.dim[i], &n) || !size_mul(count, n, &count))
            return false;
    for (int64_t i = 0; i < count; i++)
        if (count > SMALL_CONST || element_of(value, i) != number)
            return false;
    return count > 0;
}

typedef struct Found { Value *variable[VARIABLES]; } Found;

static bool pattern_matches(const Pattern *p, Value *value, Found *found)
{
    if (value == NULL)
        return false;
    if (p->variable != 0) {
        Value **known = &found->variable[p->variable - 'a'];
        *known = *known == NULL ? value : *known;
        return *known == value;
    }
    if (p->op == NULL)
        return is_number(value, p->number);
    if (value->node == NULL || value->node->op != p->op || value->node->n_in != p->count)
        return false;
    Found before = *found;
    bool matches = true;
    for (int i = 0; i < p->count; i++)
        matches = matches && pattern_matches(p->arg[i], value->node->in[i], found);
    if (matches || p->count != 2 || !(p->op->traits & OP_COMMUTES))
        return matches;
    *found = before;
    return pattern_matches(p->arg[0], value->node->in[1], found) && pattern_matches(p->arg[1], value->node->in[0], found);
}

static Value *pattern_build(Builder *b, const Pattern *p, const Found *found)
{
    Value *in[PATTERN_ARGS];
    if (p->variable != 0)
        return found->variable[p->variable - 'a'];
    CHECK(p->op != NULL);
    for (int i = 0; i < p->count; i++)
        in[i] = pattern_build(b, p->arg[i], found);
    return build(b, p->op->name, p->count, in, "");
}

// --- Replacing --------------------------------------------------------------------------------------------------------------

typedef struct Simplifier {
    Context *cx;
    Graph   *g;
    Pattern *from[COUNT(rules)], *to[COUNT(rules)];
    bool     changed;
} Simplifier;

static Builder builder_at(Simplifier *s, const Node *node)
{
    return (Builder){.cx = s->cx, .graph = s->g, .scope = node->scope, .place = node->place, .phase = node->phase, .training = s->g->training};
}

// Where a value is known under a name, the name goes on to what replaces it.
static void take_over(Simplifier *s, Value *from, Value *to)
{
    if (to->kind == VALUE_RESULT && from->name != NULL && to->below == 0)
        to->below = from->below;
    graph_replace(s->g, from, to);
    s->changed = true;
}

static bool apply_rule(Simplifier *s, int rule, Node *node)
{
    Found found = {{NULL}};
    if (node->op != s->from[rule]->op || !pattern_matches(s->from[rule], node->out[0], &found))
        return false;
    Builder b = builder_at(s, node);
    if (s->to[rule]->variable != 0 && !type_equal(&found.variable[s->to[rule]->variable - 'a']->type, &node->out[0]->type))
        return false;
    Value *to = pattern_build(&b, s->to[rule], &found);
    if (!type_equal(&to->type, &node->out[0]->type))
        return false;
    take_over(s, node->out[0], to);
    return true;
}

// --- Moves ----------------------------------------------------------------------------------------------------------------------

static bool is_op(const Value *value, const char *name) { return value->node != NULL && strcmp(value->node->op->name, name) == 0; }

static bool simplify_reshape(Simplifier *s, Node *node)
{
    if (!op_reshapes(node->op))
        return false;
    Value *x = node->in[0];
    if (type_equal(&x->type, &node->out[0]->type)) {
        take_over(s, node->out[0], x);
        return true;
    }
    if (x->node == NULL || !op_reshapes(x->node->op))
        return false;
    Builder b = builder_at(s, node);
    take_over(s, node->out[0], build_reshape(&b, x->node->in[0], &node->out[0]->type.shape));
    return true;
}

static void transpose_order(const Node *node, int64_t order[RANK_MAX])
{
    const Attr *axes = node_attr(node, "axes");
    int rank = node->out[0]->type.shape.rank;
    for (int i = 0; i < rank; i++)
        order[i] = axes->kind != ATTR_NONE ? attr_axis(axes, i, rank) : i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i;
}

static bool simplify_transpose(Simplifier *s, Node *node)
{
    if (!is_op(node->out[0], "transpose"))
        return false;
    int64_t order[RANK_MAX], inner[RANK_MAX];
    int rank = node->out[0]->type.shape.rank;
    bool nothing = true, twice = is_op(node->in[0], "transpose");
    transpose_order(node, order);
    if (twice)
        transpose_order(node->in[0]->node, inner);
    for (int i = 0; i < rank; i++) {
        order[i] = twice ? inner[order[i]] : order[i];
        nothing = nothing && order[i] == i;
    }
    Value *x = twice ? node->in[0]->node->in[0] : node->in[0];
    if (!nothing && !twice)
        return false;
    Builder b = builder_at(s, node);
    OpCall call = call_new(&b, "transpose", 1, &x);
    call_ints(&call, "axes", rank, order);
    take_over(s, node->out[0], nothing ? x : op_build(&b, &call));
    return true;
}

// Moves that move nothing: to the same type, or to the same shape.
static bool simplify_still(Simplifier *s, Node *node)
{
    static const char *const names[] = {"cast", "broadcast_to", "slice", "pad", "tile", "concat"};
    for (int i = 0; i < COUNT(names); i++) {
        bool one = node->n_in == 1 && is_op(node->out[0], names[i]);
        if (one && type_equal(&node->in[0]->type, &node->out[0]->type) && (strcmp(names[i], "slice") != 0 || node_attr(node, "step")->i == 1)) {
            take_over(s, node->out[0], node->in[0]);
            return true;
        }
    }
    return false;
}

// Once gradients are made, or where none will be, it has done its work.
static bool simplify_stop(Simplifier *s, Node *node)
{
    if (!is_op(node->out[0], "stop_gradient") || (s->g->training && s->g->stage < STAGE_DIFFERENTIATED))
        return false;
    take_over(s, node->out[0], node->in[0]);
    return true;
}

static int uses_of(const Simplifier *s, const Value *value)
{
    int uses = 0;
    for (int i = 0; i < s->g->nodes.count; i++)
        for (int k = 0; k < s->g->nodes.at[i]->n_in; k++)
            uses += s->g->nodes.at[i]->in[k] == value;
    for (int i = 0; i < s->g->outputs.count; i++)
        uses += s->g->outputs.at[i].value == value;
    return uses;
}

// maxpool(relu(x)) is relu(maxpool(x)): fewer elements, and nothing of x's size to be kept for the gradient. The two choose
// another place only where the whole window is not positive, and no gradient comes back. Every window must see a pixel.
static bool simplify_pooled(Simplifier *s, Node *node)
{
    Window w;
    if (!is_op(node->out[0], "maxpool") || !is_op(node->in[0], "relu") || uses_of(s, node->in[0]) != 1 ||
        !window_of(s->cx, node->op, node->attr, &node->in[0]->type.shape, NULL, NULL, &w))
        return false;
    for (int i = 0; i < w.axes; i++)
        if (w.before[i] >= w.kernel[i] || w.after[i] >= w.kernel[i] || (w.dilation[i] > 1 && w.before[i] + w.after[i] > 0))
            return false;
    Builder b = builder_at(s, node);
    OpCall call = call_new(&b, "maxpool", 1, node->in[0]->node->in);
    memcpy(call.attr, node->attr, sizeof call.attr);
    take_over(s, node->out[0], build1(&b, "relu", op_build(&b, &call), ""));
    return true;
}

static bool (*const moves[])(Simplifier *s, Node *node) = {simplify_reshape, simplify_transpose, simplify_still, simplify_stop,
                                                           simplify_pooled};

// --- Common subexpressions --------------------------------------------------------------------------------------------------------

static bool same_expr(const Expr *a, const Expr *b)
{
    if (a == NULL || b == NULL || a == b)
        return a == b;
    if (a->kind != b->kind || a->type != b->type || a->prim != b->prim || a->var != b->var || a->arg != b->arg || a->whole != b->whole ||
        memcmp(&a->number, &b->number, sizeof a->number) != 0 || a->value != b->value || a->name != b->name || a->count != b->count ||
        (a->size != b->size && (a->size == NULL || b->size == NULL || !size_equal(a->size, b->size))))
        return false;
    for (int i = 0; i < a->count; i++)
        if (!same_expr(a->operand[i], b->operand[i]))
            return false;
    return true;
}

static bool same_attr(const Attr *a, const Attr *b)
{
    bool same = a->kind == b->kind && a->i == b->i && memcmp(&a->f, &b->f, sizeof a->f) == 0 && a->word == b->word && a->count == b->count &&
                a->type == b->type && same_expr(a->formula, b->formula);
    for (int i = 0; same && i < a->count; i++)
        same = a->kind == ATTR_SIZES ? size_equal(a->sizes[i], b->sizes[i]) : a->ints[i] == b->ints[i];
    return same;
}

static bool same_node(const Node *a, const Node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || (a->op->traits & OP_RANDOM))
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (a->in[i] != b->in[i])
            return false;
    for (int i = 0; i < ATTRS_MAX && a->op->attrs[i].name != NULL; i++)
        if (!same_attr(&a->attr[i], &b->attr[i]))
            return false;
    return true;
}

// The number of scratch buckets follows the number of nodes, so that this stays linear.
static uint64_t node_hash(const Node *node)
{
    uint64_t hash = (uint64_t)(uintptr_t)node->op->name[0] * 131 + (uint64_t)node->n_in;
    for (int i = 0; i < node->n_in; i++)
        hash = hash * 1000003 + (node->in[i] != NULL ? (uint64_t)node->in[i]->id + 1 : 0);
    return hash;
}

static void join_common(Simplifier *s)
{
    int buckets = s->g->nodes.count + 1;
    int *head = NEW_ARRAY(s->cx->arena, int, buckets), *next = NEW_ARRAY(s->cx->arena, int, buckets);
    for (int i = 0; i < s->g->nodes.count; i++) {
        Node *node = s->g->nodes.at[i], *same = NULL;
        int bucket = (int)(node_hash(node) % (uint64_t)buckets);
        for (int k = head[bucket]; k > 0 && same == NULL; k = next[k - 1])
            same = same_node(s->g->nodes.at[k - 1], node) ? s->g->nodes.at[k - 1] : NULL;
        for (int k = 0; same != NULL && k < node->n_out; k++)
            take_over(s, node->out[k], same->out[k]);
        if (same == NULL) {
            next[i] = head[bucket];
            head[bucket] = i + 1;
        }
    }
}

// --- The pass -------------------------------------------------------------------------------------------------------------------

static bool simplify_node(Simplifier *s, Node *node)
{
    for (int i = 0; i < COUNT(moves); i++)
        if (moves[i](s, node))
            return true;
    for (int i = 0; i < COUNT(rules); i++)
        if (apply_rule(s, i, node))
            return true;
    return false;
}

// New nodes come right before the node they replace.
static void simplify_nodes(Simplifier *s)
{
    Graph *g = s->g;
    for (int i = 0; i < g->nodes.count; i++) {
        int before = g->nodes.count;
        simplify_node(s, g->nodes.at[i]);
        int made = g->nodes.count - before;
        if (made > 0)
            nodes_place(g, before, i);
        i += made;
    }
}

bool pass_simplify(Work *work)
{
    Simplifier s = {.cx = work->cx, .g = work->graph};
    bool changed = false;
    for (int i = 0; i < COUNT(rules); i++) {
        const char *from = rules[i].from, *to = rules[i].to;
        s.from[i] = pattern_read(work->cx->arena, &from);
        s.to[i] = pattern_read(work->cx->arena, &to);
    }
    int before = work->graph->nodes.count;
    graph_prune(work->graph);
    for (int round = 0; round < ROUNDS; round++) {
        s.changed = false;
        simplify_nodes(&s);
        join_common(&s);
        graph_prune(work->graph);
        changed |= s.changed;
        if (!s.changed)
            break;
    }
    return changed || before != work->graph->nodes.count;
}
