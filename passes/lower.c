// lower.c: a kernel for every value that has memory: loops of its formula with all that is inlined, a loop tree of the op's
// own, or the call of a kernel file. Then buffers: where each value lives, but for the offset in the arena.
#include "passes.h"

#include <string.h>

enum { NAME_MAX = 40, EQUATION_MAX = 96 };

// --- Names and equations ------------------------------------------------------------------------------------------------------

// What a value without a name of its own is a reshape or the like of: it is called as that.
const Value *value_origin(const Value *value)
{
    while (value->kind == VALUE_RESULT && value->node != NULL && (value->node->op->traits & OP_MOVES) && value->node->in[0] != NULL &&
           value->name != NULL && strcmp(value->name, value->node->op->name) == 0)
        value = value->node->in[0];
    return value;
}

static const char *short_name(const Value *value)
{
    const Value *origin = value_origin(value);
    const char *name = origin->kind == VALUE_PARAM ? origin->param->path : origin->name;
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    return dot != NULL ? dot + 1 : name != NULL ? name : "c";
}

static const char *kernel_identifier(Context *cx, const char *scope, const char *op)
{
    bool both = scope != NULL && scope[0] != 0 && strcmp(scope, op) != 0;
    char *name = both ? arena_printf(cx->arena, "%s_%s", scope, op) : arena_printf(cx->arena, "%s", op);
    for (char *at = name; *at != 0; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9')))
            *at = '_';
    size_t length = strlen(name), skip = length > NAME_MAX ? length - NAME_MAX : 0;
    return name + skip;
}

typedef struct Infix { const char *sign; int level; } Infix;   // level: how tightly it binds

static void put_formula(Text *out, const Expr *e, int level);

static void put_operands(Text *out, const Expr *e, const char *name)
{
    text_add(out, "%s(", name);
    for (int i = 0; i < e->count; i++) {
        text_add(out, i > 0 ? ", " : "");
        put_formula(out, e->operand[i], 0);
    }
    text_add(out, ")");
}

// As one would write it, with the brackets that it needs.
static void put_formula(Text *out, const Expr *e, int level)
{
    static const Infix infix[PRIM_COUNT] = {[PRIM_or] = {"|", 1}, [PRIM_and] = {"&", 2}, [PRIM_lt] = {"<", 3}, [PRIM_le] = {"<=", 3},
                                            [PRIM_gt] = {">", 3}, [PRIM_ge] = {">=", 3}, [PRIM_eq] = {"==", 3}, [PRIM_ne] = {"!=", 3},
                                            [PRIM_add] = {"+", 5}, [PRIM_sub] = {"-", 5}, [PRIM_mul] = {"*", 6}, [PRIM_div] = {"/", 6}};
    if (out->length > EQUATION_MAX)
        return;
    switch (e->kind) {
    case EXPR_NUMBER: type_is_float(e->type) ? text_add(out, "%g", e->number) : text_add(out, "%lld", (long long)e->whole); return;
    case EXPR_LOAD:   text_add(out, "%s", short_name(e->value)); return;
    case EXPR_INDEX:  text_add(out, "i%d", e->var); return;
    case EXPR_SIZE:   size_print(out, e->size); return;
    case EXPR_CAST:   put_operands(out, e, type_def(e->type)->name); return;
    case EXPR_PRIM:   break;
    default:          text_add(out, "%s", e->name != NULL ? e->name : "t"); return;
    }
    const Infix own = infix[e->prim];
    if (own.sign == NULL) {
        put_operands(out, e, prim_def(e->prim)->name);
        return;
    }
    text_add(out, own.level < level ? "(" : "");
    put_formula(out, e->operand[0], own.level == 3 ? 4 : own.level);
    text_add(out, " %s ", own.sign);
    put_formula(out, e->operand[1], own.level + 1);
    text_add(out, own.level < level ? ")" : "");
}

static const char *equation_of(Context *cx, const Compute *compute, const Value *out)
{
    static const char *const word[] = {[REDUCE_NONE] = "", [REDUCE_SUM] = "sum of ", [REDUCE_PROD] = "product of ",
                                       [REDUCE_MAX] = "largest ", [REDUCE_MIN] = "least "};
    Text text = {.arena = cx->arena};
    text_add(&text, "%s = %s", short_name(out), word[compute->reduce]);
    put_formula(&text, compute->body, compute->reduce != REDUCE_NONE ? 6 : 0);
    if (text.length > EQUATION_MAX) {
        text.at[EQUATION_MAX] = 0;
        return arena_printf(cx->arena, "%s ...", text.at);
    }
    return text.at;
}

// --- What a kernel reads and writes -----------------------------------------------------------------------------------------------

static bool listed(Value *const *at, int count, const Value *value)
{
    for (int i = 0; i < count; i++)
        if (at[i] == value)
            return true;
    return false;
}

static void note_read(Context *cx, Kernel *kernel, Value *value)
{
    if (!listed(kernel->reads.at, kernel->reads.count, value))
        LIST_ADD(cx->arena, kernel->reads, value);
}

static void note_write(Context *cx, Kernel *kernel, Value *value)
{
    if (!listed(kernel->writes.at, kernel->writes.count, value))
        LIST_ADD(cx->arena, kernel->writes, value);
}

static void note_expr(Context *cx, Kernel *kernel, const Expr *e)
{
    if (e == NULL)
        return;
    if (e->kind == EXPR_LOAD)
        note_read(cx, kernel, e->value);
    for (int i = 0; i < e->count; i++)
        note_expr(cx, kernel, e->operand[i]);
}

static void note_loops(Context *cx, Kernel *kernel, const Loop *loop)
{
    note_expr(cx, kernel, loop->from);
    note_expr(cx, kernel, loop->to);
    note_expr(cx, kernel, loop->value);
    if (loop->target != NULL)
        note_write(cx, kernel, loop->target);
    for (int i = 0; i < loop->count; i++)
        note_expr(cx, kernel, loop->index[i]);
    for (int i = 0; i < loop->body.count; i++)
        note_loops(cx, kernel, loop->body.at[i]);
    if (loop->other != NULL)
        note_loops(cx, kernel, loop->other);
}

static void note_args(Context *cx, Kernel *kernel, const Node *node)
{
    for (int i = 0; i < kernel->n_args; i++) {
        Value *value = kernel->arg[i].kind == ARG_VALUE ? kernel->arg[i].value : NULL;
        bool result = value != NULL && (listed(node->out, node->n_out, value) || listed(kernel->writes.at, kernel->writes.count, value));
        if (result)
            note_write(cx, kernel, value);
        else if (value != NULL)
            note_read(cx, kernel, value);
    }
}

// The node and what is inlined into it, in order.
static void note_nodes(Work *work, Kernel *kernel, Node *node)
{
    for (int i = 0; i < kernel->nodes.count; i++)
        if (kernel->nodes.at[i] == node)
            return;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] != NULL && node->in[i]->node != NULL && work->fusion->form[node->in[i]->id].inlined)
            note_nodes(work, kernel, node->in[i]->node);
    LIST_ADD(work->cx->arena, kernel->nodes, node);
}

// --- Kernels ------------------------------------------------------------------------------------------------------------------------

static Kernel *kernel_new(Work *work, Node *node)
{
    Kernel *kernel = NEW(work->cx->arena, Kernel);
    *kernel = (Kernel){.scope = node->scope, .op = node->op->name, .place = node->place, .phase = node->phase, .parts = 1};
    kernel->name = kernel_identifier(work->cx, node->scope, node->op->name);
    note_nodes(work, kernel, node);
    return kernel;
}

static void add_step(Work *work, Kernel *kernel)
{
    kernel->id = work->program->steps.count;
    LIST_ADD(work->cx->arena, work->program->steps, kernel);
}

Kernel *step_before(Work *work, const Node *node, const char *op)
{
    Kernel *kernel = NEW(work->cx->arena, Kernel);
    *kernel = (Kernel){.scope = node->scope, .op = op, .place = node->place, .phase = node->phase, .parts = 1};
    kernel->name = kernel_identifier(work->cx, node->scope, op);
    add_step(work, kernel);
    return kernel;
}

static Size flops_of_compute(Context *cx, const Compute *compute)
{
    Cost cost = {0};
    expr_cost(compute->body, &cost);
    int each = cost.cheap + cost.heavy + (compute->reduce != REDUCE_NONE);
    Size flops = size_const(cx, each > 0 ? each : 1);
    for (int i = 0; i < compute->rank; i++)
        flops = size_times(cx, flops, compute->extent[i]);
    for (int i = 0; i < compute->reduced; i++)
        flops = size_times(cx, flops, compute->reduced_extent[i]);
    return flops;
}

static Size flops_of_node(Context *cx, const Node *node)
{
    return node->op->flops != NULL ? node->op->flops(cx, node) : shape_count(cx, &node->out[0]->type.shape);
}

static void lower_pull(Work *work, Node *node, int output)
{
    Value *out = node->out[output];
    const Form *form = &work->fusion->form[out->id];
    Compute compute = form->compute;
    if (form->inlined || !form->used)
        return;
    Kernel *kernel = kernel_new(work, node);
    kernel->loops = loops_of_compute(work, &compute, out, &kernel->parts);
    kernel->equation = equation_of(work->cx, &compute, out);
    kernel->flops = flops_of_compute(work->cx, &compute);
    note_loops(work->cx, kernel, kernel->loops);
    add_step(work, kernel);
}

static const char *call_equation(Context *cx, const Node *node)
{
    Text text = {.arena = cx->arena};
    text_add(&text, "%s = %s(", short_name(node->out[0]), node->op->name);
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] != NULL)
            text_add(&text, "%s%s", i > 0 ? ", " : "", short_name(node->in[i]));
    text_add(&text, ")");
    return text.at;
}

// A loop tree of an op's own may be cut where its one outermost loop says so.
static int push_parts(Context *cx, const Node *node, const Loop *loops)
{
    if (loops->kind != LOOP_FOR || loops->mark != AXIS_PARALLEL || loops->to->kind == EXPR_PRIM)
        return 1;
    int parts = parts_for(4 * size_largest(shape_count(cx, &node->out[0]->type.shape)));
    double extent = loops->to->kind == EXPR_SIZE ? size_largest(loops->to->size) : (double)loops->to->whole;
    return parts < extent ? parts : extent < 1 ? 1 : (int)extent;
}

static void lower_whole(Work *work, Node *node)
{
    const Form *form = &work->fusion->form[node->out[0]->id];
    Kernel *kernel = kernel_new(work, node);
    kernel->equation = call_equation(work->cx, node);
    kernel->flops = flops_of_node(work->cx, node);
    if (form->kind == FORM_FILE) {
        form->choice->bind(work, node, kernel);
        note_args(work->cx, kernel, node);
        kernel->equation = form->choice->equation != NULL ? form->choice->equation : kernel->equation;
    } else {
        kernel->loops = node->op->lower(work->cx, node);
        if (kernel->loops->kind == LOOP_BLOCK && kernel->loops->body.count == 1)
            kernel->loops = kernel->loops->body.at[0];
        kernel->parts = push_parts(work->cx, node, kernel->loops);
        note_loops(work->cx, kernel, kernel->loops);
    }
    add_step(work, kernel);
}

static void lower_node(Work *work, Node *node)
{
    switch (work->fusion->form[node->out[0]->id].kind) {
    case FORM_FILE:
    case FORM_PUSH:
        lower_whole(work, node);
        break;
    case FORM_PULL:
        for (int k = 0; k < node->n_out; k++)
            lower_pull(work, node, k);
        break;
    default:
        break;
    }
}

// --- Copies -----------------------------------------------------------------------------------------------------------------------------

// to = from, or 0 without `from`; both have the same number of elements.
static Kernel *kernel_copy(Work *work, Value *from, Value *to, const char *name, Phase phase)
{
    Context *cx = work->cx;
    const Shape *shape = &to->type.shape;
    Kernel *kernel = NEW(cx->arena, Kernel);
    *kernel = (Kernel){.name = kernel_identifier(cx, name, "copy"), .scope = name, .op = "copy", .phase = phase, .parts = 1};
    Compute compute = {.rank = shape->rank};
    Expr *index[RANK_MAX];
    for (int i = 0; i < shape->rank; i++) {
        compute.extent[i] = shape->dim[i];
        index[i] = expr_index(cx, i);
    }
    compute.body = from != NULL ? expr_load(cx, from, shape->rank, index) : expr_number(cx, to->type.dtype, 0);
    kernel->loops = loops_of_compute(work, &compute, to, &kernel->parts);
    kernel->equation = equation_of(cx, &compute, to);
    kernel->flops = shape_count(cx, shape);
    note_loops(cx, kernel, kernel->loops);
    return kernel;
}

// --- Buffers ----------------------------------------------------------------------------------------------------------------------------

static bool value_bytes(Work *work, const Value *value, int64_t *bytes)
{
    *bytes = type_def(value->type.dtype)->bytes;
    for (int i = 0; i < value->type.shape.rank; i++) {
        int64_t n;
        if (!size_upper(value->type.shape.dim[i], &n) || !size_mul(*bytes, n, bytes)) {
            diag_report(work->cx->diag, value->place, MESSAGE_E0313, type_text(work->cx, &value->type));
            return false;
        }
    }
    return true;
}

static Buffer *buffer_new(Work *work, Value *value, Space space)
{
    Buffer *buffer = NEW(work->cx->arena, Buffer);
    *buffer = (Buffer){.value = value, .space = space};
    if (value_bytes(work, value, &buffer->bytes))
        work->program->buffer[value->id] = buffer;
    return buffer;
}

static void buffer_of_value(Work *work, Value *value)
{
    static const Space spaces[] = {[VALUE_INPUT] = SPACE_INPUT, [VALUE_PARAM] = SPACE_PARAM, [VALUE_CONST] = SPACE_CONST,
                                   [VALUE_RESULT] = SPACE_ARENA};
    Buffer *buffer = buffer_new(work, value, spaces[value->kind]);
    if (value->kind == VALUE_PARAM)
        buffer->offset = value->param->offset * type_def(value->type.dtype)->bytes;
    if (value->kind == VALUE_INPUT)
        buffer->index = value->index;
}

static void buffers_of_steps(Work *work)
{
    Program *p = work->program;
    for (int s = 0; s < p->steps.count; s++)
        for (int i = 0; i < p->steps.at[s]->writes.count; i++)
            buffer_of_value(work, p->steps.at[s]->writes.at[i]);
    for (int i = 0; i < work->graph->values.count; i++)
        if (work->graph->values.at[i]->kind != VALUE_RESULT)
            buffer_of_value(work, work->graph->values.at[i]);
    for (int i = 0; i < work->graph->nodes.count; i++) {
        const Node *node = work->graph->nodes.at[i];
        const Form *form = &work->fusion->form[node->out[0]->id];
        if (form->kind == FORM_ALIAS && form->used)
            buffer_new(work, node->out[0], SPACE_ARENA)->alias = p->buffer[node->in[0]->id];
    }
}

// Gives a value in the arena another place: false if it is elsewhere already.
static bool claim(const Program *p, const Value *value, Space space, int64_t offset, int index)
{
    Buffer *buffer = p->buffer[value->id];
    while (buffer != NULL && buffer->alias != NULL)
        buffer = buffer->alias;
    if (buffer == NULL || buffer->space != SPACE_ARENA)
        return false;
    buffer->space = space;
    buffer->offset = offset;
    buffer->index = index;
    return true;
}

static int claim_outputs(const Program *p, const NamedValue *at, int count, int index)
{
    for (int i = 0; i < count; i++)
        claim(p, at[i].value, SPACE_OUTPUT, 0, index + i);
    return index + count;
}

// The order of the outputs is the runtime's. What cannot be computed in place there is copied at the end by the printer.
static void place_outputs(Work *work)
{
    const Graph *g = work->graph;
    bool train = g->gradients.count > 0 || g == work->model->train;
    int index = 0;
    if (!train)
        index = claim_outputs(work->program, g->outputs.at, g->outputs.count, 0);
    if (g->loss != NULL)
        claim(work->program, g->loss, SPACE_OUTPUT, 0, index++);
    if (train)
        claim_outputs(work->program, g->auxiliary.at, g->auxiliary.count, index);
    else
        claim_outputs(work->program, g->metrics.at, g->metrics.count, index);
}

static void place_gradients(Work *work)
{
    Graph *g = work->graph;
    for (int i = 0; i < g->gradients.count; i++) {
        Gradient *gradient = &g->gradients.at[i];
        int64_t offset = gradient->param->offset * type_def(gradient->param->type.dtype)->bytes;
        if (gradient->value != NULL && claim(work->program, gradient->value, SPACE_GRAD, offset, 0))
            continue;
        Value *to = graph_scratch(g, gradient->param->path, gradient->param->type);
        add_step(work, kernel_copy(work, gradient->value, to, gradient->param->path, PHASE_BACKWARD));
        buffer_new(work, to, SPACE_GRAD)->offset = offset;
        gradient->value = to;
    }
}

static void add_updates(Work *work)
{
    Graph *g = work->graph;
    for (int i = 0; i < g->updates.count; i++) {
        Value *to = graph_param(g, g->updates.at[i].param);
        Kernel *kernel = kernel_copy(work, g->updates.at[i].value, to, to->param->path, PHASE_UPDATE);
        kernel->id = work->program->steps.count + i;
        LIST_ADD(work->cx->arena, work->program->updates, kernel);
    }
}

bool pass_lower(Work *work)
{
    Graph *g = work->graph;
    Program *p = work->program = NEW(work->cx->arena, Program);
    *p = (Program){.cx = work->cx, .model = work->model, .graph = g};
    for (int i = 0; i < g->nodes.count; i++)
        lower_node(work, g->nodes.at[i]);
    p->buffer = NEW_ARRAY(work->cx->arena, Buffer *, g->values.count + g->gradients.count + g->updates.count);
    for (int i = 0; i < g->updates.count; i++)
        graph_param(g, g->updates.at[i].param);
    buffers_of_steps(work);
    place_outputs(work);
    place_gradients(work);
    add_updates(work);
    return true;
}
