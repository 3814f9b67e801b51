// eval.c: the interpreter of Graphs: every node by its row's pull or push form, in order; composites are written out first.
// It is the specification of what a program computes, folds constants, and is the judge in the tests.
#include <string.h>

#include "mlc.h"
#include "ops/op.h"

static DType stored_as(const Eval *eval, DType type) { return eval->in_double && type_is_float(type) ? TYPE_f64 : type; }

static void dims_of(const Eval *eval, const Value *value, int64_t *dim)
{
    for (int i = 0; i < value->type.shape.rank; i++)
        dim[i] = size_at(value->type.shape.dim[i], eval->symbols);
}

static void set_constant(Eval *eval, const Value *value)
{
    Tensor data = {.dtype = value->type.dtype, .rank = value->type.shape.rank, .data = (void *)(uintptr_t)value->data};
    DType stored = stored_as(eval, value->type.dtype);
    dims_of(eval, value, data.dim);
    Tensor *tensor = eval->at[value->id] = arena_copy(eval->arena, &data, sizeof data);
    if (stored == value->type.dtype)
        return;
    tensor->dtype = stored;
    tensor->data = arena_alloc_array(eval->arena, sizeof(double), tensor_count(&data));
    for (int64_t i = 0; i < tensor_count(&data); i++)
        tensor_set(tensor, i, tensor_get(&data, i));
}

// A tensor that the caller gave must be what the graph says.
static bool given_fits(Eval *eval, const Value *value)
{
    const Tensor *t = eval->at[value->id];
    int64_t dim[RANK_MAX];
    const char *name = value->name != NULL ? value->name : "a value";
    dims_of(eval, value, dim);
    if (t == NULL) {
        eval->error = arena_printf(eval->arena, "%s is not given", name);
        return false;
    }
    bool fits = t->rank == value->type.shape.rank && t->dtype == stored_as(eval, value->type.dtype);
    for (int i = 0; fits && i < t->rank; i++)
        fits = t->dim[i] == dim[i];
    if (!fits)
        eval->error = arena_printf(eval->arena, "%s has another type or shape than the model says", name);
    return fits;
}

static bool bind_inputs(Eval *eval, const Node *node)
{
    for (int i = 0; i < node->n_in; i++) {
        const Value *in = node->in[i];
        if (in == NULL)
            continue;
        if (in->kind == VALUE_CONST && eval->at[in->id] == NULL)
            set_constant(eval, in);
        if (in->kind != VALUE_RESULT && !given_fits(eval, in))
            return false;
    }
    return true;
}

static bool run_node(Context *cx, Eval *eval, const Node *node)
{
    int64_t dim[RANK_MAX];
    if (!bind_inputs(eval, node))
        return false;
    for (int i = 0; i < node->n_out; i++) {
        dims_of(eval, node->out[i], dim);
        eval->at[node->out[i]->id] = tensor_new(eval->arena, stored_as(eval, node->out[i]->type.dtype), node->out[i]->type.shape.rank, dim);
    }
    if (node->op->lower != NULL)
        return loop_run(node->op->lower(cx, node), eval);
    for (int i = 0; i < node->n_out; i++) {
        Compute compute;
        if (!node_compute(cx, node, i, &compute))
            BUG("%s of %s cannot be run", node->op->name, node->scope != NULL ? node->scope : "");
        if (!loop_run(loop_of_compute(cx, &compute, node->out[i]), eval))
            return false;
    }
    return true;
}

static bool has_composites(const Graph *g)
{
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i]->op->expand != NULL)
            return true;
    return false;
}

static Value *set_if_constant(void *context, Value *value)
{
    Eval *eval = context;
    if (value->kind == VALUE_CONST && eval->at[value->id] == NULL)
        set_constant(eval, value);
    return value;
}

static bool run_nodes(const Graph *g, Eval *eval)
{
    for (int i = 0; i < g->nodes.count; i++)
        if (!run_node(g->cx, eval, g->nodes.at[i]))
            return false;
    graph_map_wanted((Graph *)(uintptr_t)g, set_if_constant, eval);     // which changes nothing
    return true;
}

bool eval_graph(const Graph *g, Eval *eval)
{
    if (!has_composites(g))
        return run_nodes(g, eval);
    Graph *plain = graph_copy(g);
    Value **now;
    graph_expand(plain, true, &now);
    Eval run = *eval;
    run.at = NEW_ARRAY(eval->arena, Tensor *, plain->values.count);
    memcpy(run.at, eval->at, sizeof(Tensor *) * (size_t)g->values.count);
    bool done = run_nodes(plain, &run);
    for (int i = 0; i < g->values.count; i++)
        eval->at[i] = run.at[set_if_constant(&run, now[i])->id];
    eval->error = run.error;
    return done;
}
