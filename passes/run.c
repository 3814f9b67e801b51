// run.c: runs a Program as it stands: loop trees by the interpreter, kernel files by the rows of their ops, values in the
// very places that the plan gives them. Slow and exact: the judge of fusion, lowering and the memory plan in the tests.
#include "passes.h"

#include <string.h>

typedef struct Run { const Program *program; Eval *eval; char *arena, *grad; } Run;

static const Buffer *home_of(const Program *p, const Value *value)
{
    const Buffer *buffer = p->buffer[value->id];
    while (buffer != NULL && buffer->alias != NULL)
        buffer = buffer->alias;
    return buffer;
}

static Tensor *tensor_at(const Run *run, const Value *value, void *data)
{
    Tensor *tensor = NEW(run->eval->arena, Tensor);
    *tensor = (Tensor){.dtype = value->type.dtype, .rank = value->type.shape.rank, .data = data};
    for (int i = 0; i < tensor->rank; i++)
        tensor->dim[i] = size_at(value->type.shape.dim[i], run->eval->symbols);
    return tensor;
}

// Results lie in the arena, in blocks of gradients, or where the home of an alias is.
static void place_result(const Run *run, const Value *value)
{
    const Buffer *home = home_of(run->program, value);
    void *data = NULL;
    if (home == NULL)
        return;
    if (home->space == SPACE_ARENA)
        data = run->arena + home->offset;
    else if (home->space == SPACE_GRAD)
        data = run->grad + home->offset;
    else if (home->value != value)
        data = run->eval->at[home->value->id]->data;
    else
        data = arena_alloc(run->eval->arena, (size_t)home->bytes + 1);
    run->eval->at[value->id] = tensor_at(run, value, data);
}

static void place_all(const Run *run)
{
    const Graph *g = run->program->graph;
    for (int i = 0; i < g->values.count; i++) {         // constants are of the graph
        const Value *value = g->values.at[i];
        if (value->kind == VALUE_CONST)
            run->eval->at[i] = tensor_at(run, value, (void *)(uintptr_t)value->data);
    }
    for (int aliases = 0; aliases < 2; aliases++)       // homes first
        for (int i = 0; i < g->values.count; i++) {
            const Buffer *buffer = run->program->buffer[i];
            bool result = g->values.at[i]->kind == VALUE_RESULT && buffer != NULL;
            if (result && (buffer->alias != NULL) == (aliases == 1))
                place_result(run, g->values.at[i]);
        }
}

// A kernel file does what its last node says.
static bool run_node(const Run *run, Node *node)
{
    Graph one = *run->program->graph;
    Tensor *out[OUTPUTS_MAX];
    one.nodes.at = &node;
    one.nodes.count = one.nodes.room = 1;
    for (int i = 0; i < node->n_out; i++)
        out[i] = run->eval->at[node->out[i]->id];
    if (!eval_graph(&one, run->eval))
        return false;
    for (int i = 0; i < node->n_out; i++) {
        const Tensor *made = run->eval->at[node->out[i]->id];
        if (out[i] != NULL && made != out[i]) {
            memcpy(out[i]->data, made->data, (size_t)tensor_count(made) * (size_t)type_def(made->dtype)->bytes);
            run->eval->at[node->out[i]->id] = out[i];
        }
    }
    return true;
}

static bool run_kernel(const Run *run, const Kernel *kernel)
{
    if (kernel->loops != NULL)
        return loop_run(kernel->loops, run->eval);
    if (kernel->nodes.count == 0)       // it prepares for a kernel file: the row of the op does without
        return true;
    return run_node(run, kernel->nodes.at[kernel->nodes.count - 1]);
}

static int64_t grad_bytes(const Model *model)
{
    int64_t end = 0;
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        int64_t bytes = type_def(param->type.dtype)->bytes, after = param->offset * bytes;
        for (int k = 0; k < param->type.shape.rank; k++)
            bytes *= size_value(param->type.shape.dim[k]);
        end = after + bytes > end ? after + bytes : end;
    }
    return end;
}

bool program_run(const Program *program, Eval *eval)
{
    Run run = {program, eval, NULL, NULL};
    run.arena = arena_alloc(eval->arena, (size_t)program->arena_bytes + 1);
    memset(run.arena, 0xff, (size_t)program->arena_bytes);      // NaN: what is read before it is written shows
    run.grad = arena_alloc(eval->arena, (size_t)grad_bytes(program->model) + 1);
    place_all(&run);
    for (int i = 0; i < program->steps.count; i++)
        if (!run_kernel(&run, program->steps.at[i]))
            return false;
    for (int i = 0; i < program->updates.count; i++)
        if (!run_kernel(&run, program->updates.at[i]))
            return false;
    return true;
}
