// known.c: what is known of a value when importing. A value that depends on constants alone is computed by the interpreter, when
// somebody asks; so every op folds shape arithmetic without a line of its own. Where sizes have names, the elements of a list
// are followed as Sizes through the few ops that shape arithmetic is made of.
#include "import.h"

enum { FOLD_NODES = 100000 };
static const int64_t fold_bytes = 64 << 20;

// --- Numbers -----------------------------------------------------------------------------------------------------------

static bool is_fixed_type(const Type *type)
{
    int64_t n;
    for (int i = 0; i < type->shape.rank; i++)
        if (!size_known(type->shape.dim[i], &n))
            return false;
    return true;
}

#define PUSH(x) (list_grow(m->cx->arena, (void **)&stack, depth, &room, sizeof *stack), stack[depth++] = (x))

// Marks what `v` is made of; false where an input, or something random, is among it.
static bool reach(Import *m, Value *v, PointerMap *seen, int *count)
{
    Value **stack = NULL;
    int depth = 0, room = 0;
    PUSH(v);
    while (depth > 0) {
        Value *at = stack[--depth];
        if (at == NULL || pointer_map_get(m->known, at) != NULL || pointer_map_get(seen, at) != NULL)
            continue;
        pointer_map_set(seen, at, at);
        if (at->kind != VALUE_RESULT || at->node->op->traits & OP_RANDOM || !is_fixed_type(&at->type) || ++*count > FOLD_NODES) {
            if (at->kind == VALUE_CONST)
                continue;
            if (at->kind == VALUE_INPUT)
                pointer_map_set(m->demanded, at, at);
            return false;
        }
        for (int i = 0; i < at->node->n_in; i++)
            PUSH(at->node->in[i]);
    }
    return true;
}

static const Tensor *tensor_of_const(Import *m, const Value *v)
{
    int64_t dim[RANK_MAX], n;
    for (int i = 0; i < v->type.shape.rank; i++) {
        size_known(v->type.shape.dim[i], &n);
        dim[i] = n;
    }
    Tensor *t = NEW(m->cx->arena, Tensor);
    *t = (Tensor){.dtype = v->type.dtype, .rank = v->type.shape.rank, .data = (void *)(uintptr_t)v->data};
    memcpy(t->dim, dim, sizeof t->dim);
    return t;
}

// A graph of just the nodes that were marked, with what is known already as its constants.
static const Tensor *compute(Import *m, Value *v, PointerMap *seen)
{
    Graph part = *m->g;
    Arena *arena = m->cx->arena;
    part.nodes.at = NULL, part.nodes.count = part.nodes.room = 0;
    part.outputs.at = NULL, part.outputs.count = part.outputs.room = 0;
    part.values.at = arena_copy(arena, m->g->values.at, sizeof(Value *) * (size_t)m->g->values.count);
    Eval eval = {.arena = arena, .at = NEW_ARRAY(arena, Tensor *, m->g->values.count + 1), .symbols = NEW_ARRAY(arena, int64_t, map_count(m->cx->symbols) + 1)};
    int64_t bytes = 0;
    for (int i = 0; i < m->g->nodes.count; i++) {
        Node *node = m->g->nodes.at[i];
        bool wanted = false;
        for (int k = 0; k < node->n_out; k++)
            wanted |= pointer_map_get(seen, node->out[k]) != NULL;
        if (!wanted)
            continue;
        LIST_ADD(arena, part.nodes, node);
        for (int k = 0; k < node->n_out; k++) {
            int64_t count = 1, n;
            for (int a = 0; a < node->out[k]->type.shape.rank; a++)
                if (!size_known(node->out[k]->type.shape.dim[a], &n) || !size_mul(count, n, &count))
                    return NULL;
            if (!size_mul(count, 8, &count) || (bytes += count) > fold_bytes)
                return NULL;
        }
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] != NULL)
                eval.at[node->in[k]->id] = pointer_map_get(m->known, node->in[k]);
    }
    LIST_ADD(arena, part.outputs, ((NamedValue){.name = "known", .value = v}));
    return eval_graph(&part, &eval) ? eval.at[v->id] : NULL;
}

const Tensor *known_value(Import *m, Value *v)
{
    if (v == NULL || m->failed)
        return NULL;
    const Tensor *t = pointer_map_get(m->known, v);
    if (t != NULL)
        return t;
    PointerMap *seen = pointer_map_new(m->cx->arena);
    int count = 0;
    if (v->kind == VALUE_CONST)
        t = tensor_of_const(m, v);
    else if (reach(m, v, seen, &count))
        t = compute(m, v, seen);
    if (t != NULL)
        pointer_map_set(m->known, v, (void *)(uintptr_t)t);
    return t;
}

// --- Sizes -------------------------------------------------------------------------------------------------------------

static bool elements_of(Import *m, Value *v, Size *to, int room, int *count);

static bool binary(Import *m, const Node *node, Size (*op)(Context *, Size, Size), Size *to, int room, int *count)
{
    Size a[32], b[32];
    int na, nb;
    if (!elements_of(m, node->in[0], a, COUNT(a), &na) || !elements_of(m, node->in[1], b, COUNT(b), &nb) || (na != nb && na != 1 && nb != 1))
        return false;
    *count = na > nb ? na : nb;
    for (int i = 0; i < *count && i < room; i++)
        to[i] = op(m->cx, a[na == 1 ? 0 : i], b[nb == 1 ? 0 : i]);
    return *count <= room;
}

// Only where the quotient is exact, so that it does not matter how it is rounded.
static Size quotient(Context *cx, Size a, Size b)
{
    int64_t n, k;
    Size q = size_over(cx, a, b);
    return q != NULL ? q : size_known(b, &n) && n > 0 && !size_known(a, &k) ? size_floordiv(cx, a, n) : NULL;
}

static bool joined_elements(Import *m, const Node *node, Size *to, int room, int *count)
{
    *count = 0;
    for (int i = 0; i < node->n_in; i++) {
        int n;
        if (!elements_of(m, node->in[i], to + *count, room - *count, &n))
            return false;
        *count += n;
    }
    return true;
}

static bool taken_elements(Import *m, const Node *node, Size *to, int room, int *count)
{
    Size x[64];
    int n;
    const Tensor *index = known_value(m, node->in[1]);
    if (index == NULL || !elements_of(m, node->in[0], x, COUNT(x), &n) || tensor_count(index) > room)
        return false;
    *count = (int)tensor_count(index);
    for (int i = 0; i < *count; i++) {
        int64_t at = tensor_get_whole(index, i);
        if (at < 0 || at >= n)
            return false;
        to[i] = x[at];
    }
    return true;
}

static bool cut_elements(Import *m, const Node *node, Size *to, int room, int *count)
{
    Size x[64];
    int64_t from, many, step = node_attr(node, "step")->i;
    int n;
    if (!elements_of(m, node->in[0], x, COUNT(x), &n) || !size_known(node->out[0]->type.shape.dim[0], &many) || many > room ||
        !size_known(node_attr(node, "from")->sizes[0], &from))
        return false;
    from += from < 0 ? n : 0;
    *count = (int)many;
    for (int64_t i = 0; i < many; i++)
        if (from + i * step < 0 || from + i * step >= n)
            return false;
        else
            to[i] = x[from + i * step];
    return true;
}

static bool is_identity(const char *op)
{
    static const char *const names[] = {"reshape", "expand", "squeeze", "identity", "flatten"};
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(op, names[i]) == 0)
            return true;
    return false;
}

static bool elements_of(Import *m, Value *v, Size *to, int room, int *count)
{
    if (v == NULL || type_def(v->type.dtype)->kind == KIND_FLOAT || rank_of(v) > 1)
        return false;
    const Tensor *t = known_value(m, v);
    if (t != NULL) {
        *count = (int)(tensor_count(t) <= room ? tensor_count(t) : room + 1);
        for (int i = 0; i < *count && i < room; i++)
            to[i] = size_const(m->cx, tensor_get_whole(t, i));
        return *count <= room;
    }
    if (v->kind != VALUE_RESULT)
        return false;
    const Node *node = v->node;
    const char *op = node->op->name;
    if (strcmp(op, "sizes") == 0) {
        const Attr *a = node_attr(node, "sizes");
        *count = a->count;
        for (int i = 0; i < a->count && i < room; i++)
            to[i] = a->sizes[i];
        return *count <= room;
    }
    if (is_identity(op) || (strcmp(op, "cast") == 0 && type_def(v->type.dtype)->bytes >= 4))
        return elements_of(m, node->in[0], to, room, count);
    if (strcmp(op, "concat") == 0)
        return joined_elements(m, node, to, room, count);
    if (strcmp(op, "gather") == 0)
        return taken_elements(m, node, to, room, count);
    if (strcmp(op, "slice") == 0)
        return cut_elements(m, node, to, room, count);
    if (strcmp(op, "add") == 0)
        return binary(m, node, size_plus, to, room, count);
    if (strcmp(op, "sub") == 0)
        return binary(m, node, size_minus, to, room, count);
    if (strcmp(op, "mul") == 0)
        return binary(m, node, size_times, to, room, count);
    if (strcmp(op, "quotient") == 0 && binary(m, node, quotient, to, room, count)) {
        for (int i = 0; i < *count; i++)
            if (to[i] == NULL)
                return false;
        return true;
    }
    return false;
}

bool sizes_of(Import *m, Value *v, Size *to, int room, int *count) { return elements_of(m, v, to, room, count); }

// --- What must be known --------------------------------------------------------------------------------------------------

// The first input that `v` depends on: it is fixed, if its value was given; otherwise the user is told.
static void demand(OnnxCall *c, Value *v, const char *what)
{
    Import *m = c->m;
    PointerMap *seen = pointer_map_new(m->cx->arena);
    Value **stack = NULL, *first = NULL;
    int depth = 0, room = 0;
    PUSH(v);
    while (depth > 0 && first == NULL) {
        Value *at = stack[--depth];
        if (at == NULL || pointer_map_get(seen, at) != NULL)
            continue;
        pointer_map_set(seen, at, at);
        if (at->kind == VALUE_INPUT)
            first = at;
        for (int i = 0; at->kind == VALUE_RESULT && i < at->node->n_in; i++)
            PUSH(at->node->in[i]);
    }
    for (int i = 0; first != NULL && i < m->options->n_fixed; i++)
        if (m->options->fixed[i].name != NULL && strcmp(m->options->fixed[i].name, first->name) == 0) {
            map_set(m->taken, first->name, first);
            m->again = m->failed = true;
            return;
        }
    refuse_node(c, first != NULL ? "%s must be known when compiling, and depends on the input %s" : "%s must be known when compiling", what, first != NULL ? first->name : "");
    if (first != NULL)
        diag_help(m->cx->diag, "--fix %s=FILE makes that input a constant", first->name);
}

int known_sizes(OnnxCall *c, Value *v, const char *what, Size *to, int room)
{
    int count;
    if (c->m->failed || v == NULL)
        return -1;
    if (elements_of(c->m, v, to, room, &count))
        return count;
    if (!c->m->failed)
        demand(c, v, what);
    return -1;
}

int known_ints(OnnxCall *c, Value *v, const char *what, int64_t *to, int room)
{
    const Tensor *t = known_value(c->m, v);
    if (t == NULL) {
        if (!c->m->failed && v != NULL)
            demand(c, v, what);
        return -1;
    }
    if (tensor_count(t) > room || type_is_float(t->dtype)) {
        refuse_node(c, "%s has %lld elements; %d are the most", what, (long long)tensor_count(t), room);
        return -1;
    }
    for (int64_t i = 0; i < tensor_count(t); i++)
        to[i] = tensor_get_whole(t, i);
    return (int)tensor_count(t);
}

bool known_number(OnnxCall *c, Value *v, const char *what, double *to)
{
    const Tensor *t = known_value(c->m, v);
    if (t == NULL && !c->m->failed && v != NULL)
        demand(c, v, what);
    if (t == NULL)
        return false;
    if (tensor_count(t) != 1) {
        refuse_node(c, "%s should be one number", what);
        return false;
    }
    *to = tensor_get(t, 0);
    return true;
}
