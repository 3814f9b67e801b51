// fuse.c: which values get memory, and which are written into the formulas that use them.
//
// A value with a pull form and no reduction can stand inside of the formulas that load it. It does where that costs nothing
// twice: one place loads it and visits no more elements than it has, or its formula is next to nothing (a transpose, a
// product, a comparison). Results of kernel files, of scatters and of reductions are in memory, and so is what those read.
// A reshape is the same memory under another shape; where it only splits axes and formulas alone read it, it is an index.
// No primitive is moved across another one, so fused and unfused results have the same bits.
// Considered: pairs of kernels ranked by the bytes they save (XLA, TVM); the greedy order here finds the same groups in
// training graphs, for what matters there is decided by the contractions between.
#include "passes.h"

enum { PRIMS_MAX = 48, CHEAP_MAX = 3 };

// --- What each value is ---------------------------------------------------------------------------------------------------

static void want(Fusion *f, Value *value)
{
    if (value != NULL)
        f->form[value->id].wanted = f->form[value->id].used = true;
}

static void want_results(Fusion *f, const Graph *g)
{
    want(f, g->loss);
    for (int i = 0; i < g->outputs.count; i++)
        want(f, g->outputs.at[i].value);
    for (int i = 0; i < g->metrics.count; i++)
        want(f, g->metrics.at[i].value);
    for (int i = 0; i < g->auxiliary.count; i++)
        want(f, g->auxiliary.at[i].value);
    for (int i = 0; i < g->updates.count; i++)
        want(f, g->updates.at[i].value);
    for (int i = 0; i < g->gradients.count; i++)
        want(f, g->gradients.at[i].value);
}

// Axes of the source and of the reshape in groups of equal products: true if no group joins axes of the source, so that an
// index of the source is a sum of products of the reshape's.
static bool reshape_splits(Context *cx, const Shape *from, const Shape *to, int group[RANK_MAX])
{
    int a = 0;
    Size product = size_const(cx, 1);
    for (int i = 0; i < to->rank; i++) {
        int64_t n;
        bool one = size_known(to->dim[i], &n) && n == 1;
        while (a < from->rank && size_known(from->dim[a], &n) && n == 1)
            a++;
        group[i] = one ? -1 : a;
        if (one)
            continue;
        if (a == from->rank)
            return false;
        product = size_times(cx, product, to->dim[i]);
        if (size_equal(product, from->dim[a]))
            a++, product = size_const(cx, 1);
    }
    for (int64_t n; a < from->rank && size_known(from->dim[a], &n) && n == 1;)
        a++;
    return a == from->rank;
}

// The pull form of a reshape that only splits.
static void reshape_compute(Context *cx, const Node *node, Compute *out)
{
    Value *from = node->in[0];
    const Shape *to = &node->out[0]->type.shape;
    Expr *index[RANK_MAX];
    int group[RANK_MAX];
    CHECK(reshape_splits(cx, &from->type.shape, to, group));
    for (int i = 0; i < from->type.shape.rank; i++)
        index[i] = expr_whole(cx, 0);
    *out = (Compute){.rank = to->rank};
    for (int i = 0; i < to->rank; i++) {
        out->extent[i] = to->dim[i];
        if (group[i] >= 0)
            index[group[i]] = index_plus(cx, index_times(cx, index[group[i]], to->dim[i]), expr_index(cx, i));
    }
    out->body = expr_load(cx, from, from->type.shape.rank, index);
}

static bool in_memory(const Form *form)
{
    return form->kind != FORM_PULL || form->compute.reduce != REDUCE_NONE;
}

// A reshape is decided when all its readers are known to be formulas or not; a source in memory anyway is renamed at no cost.
static FormKind reshape_kind(Work *work, const Node *node)
{
    int group[RANK_MAX];
    const Value *from = node->in[0], *to = node->out[0];
    if (work->fusion->form[to->id].wanted || in_memory(&work->fusion->form[from->id]))
        return FORM_ALIAS;
    return reshape_splits(work->cx, &from->type.shape, &to->type.shape, group) ? FORM_PULL : FORM_ALIAS;
}

static void form_node(Work *work, const Node *node)
{
    Context *cx = work->cx;
    const Choice *choice = choice_of(work, node);
    for (int k = 0; k < node->n_out; k++) {
        Form *form = &work->fusion->form[node->out[k]->id];
        form->choice = choice;
        if (choice != NULL)
            form->kind = FORM_FILE;
        else if (op_reshapes(node->op))
            form->kind = FORM_ALIAS;
        else if (node->op->lower != NULL)
            form->kind = FORM_PUSH;
        else if (node_compute(cx, node, k, &form->compute))
            form->kind = FORM_PULL;
        else
            BUG("nothing says how to compute %s", node->op->name);
    }
}

// What anything but a formula reads must be in memory.
static void want_inputs(Work *work, const Node *node)
{
    for (int i = 0; i < node->n_in; i++)
        want(work->fusion, node->in[i]);
}

static void settle_reshape(Work *work, const Node *node)
{
    Form *form = &work->fusion->form[node->out[0]->id];
    form->kind = reshape_kind(work, node);
    if (form->kind == FORM_PULL)
        reshape_compute(work->cx, node, &form->compute);
    else if (form->used)
        want(work->fusion, node->in[0]);
}

static void mark_used(Work *work, const Node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] != NULL)
            work->fusion->form[node->in[i]->id].used = true;
}

// From the last node to the first, so that readers come before what they read.
static void settle(Work *work)
{
    const Graph *g = work->graph;
    for (int i = g->nodes.count - 1; i >= 0; i--) {
        const Node *node = g->nodes.at[i];
        FormKind kind = work->fusion->form[node->out[0]->id].kind;
        mark_used(work, node);
        if (kind == FORM_ALIAS)
            settle_reshape(work, node);
        else if (kind != FORM_PULL)
            want_inputs(work, node);
    }
}

// --- Inlining ---------------------------------------------------------------------------------------------------------------

static void count_sites(Fusion *f, const Expr *e, double visits)
{
    if (e->kind == EXPR_LOAD) {
        Form *form = &f->form[e->value->id];
        form->sites++;
        if (visits > form->reader)
            form->reader = visits;
    }
    for (int i = 0; i < e->count; i++)
        count_sites(f, e->operand[i], visits);
}

static bool is_one(const Value *value)
{
    for (int i = 0; i < value->type.shape.rank; i++)
        if (size_largest(value->type.shape.dim[i]) > 1)
            return false;
    return true;
}

static int large_loads(const Expr *e)
{
    int count = e->kind == EXPR_LOAD && !is_one(e->value);
    for (int i = 0; i < e->count; i++)
        count += large_loads(e->operand[i]);
    return count;
}

static bool may_inline(const Value *value, const Form *form)
{
    Cost cost = {0};
    if (form->wanted || form->compute.reduce != REDUCE_NONE || value->type.dtype == TYPE_f16 || value->type.dtype == TYPE_bf16)
        return false;
    if (form->compute.body->type != value->type.dtype)
        return false;
    expr_cost(form->compute.body, &cost);
    bool cheap = cost.heavy == 0 && cost.cheap <= CHEAP_MAX && large_loads(form->compute.body) <= 1;
    bool once = form->sites == 1 && form->reader <= compute_visits(&form->compute);
    return cheap || (once && cost.prims <= PRIMS_MAX);
}

// A constant of one element is a number of the formula.
static Expr *constant_number(Context *cx, Expr *load)
{
    const Value *value = load->value;
    bool plain = type_is_float(value->type.dtype) && value->type.dtype != TYPE_f16 && value->type.dtype != TYPE_bf16;
    if (value->kind != VALUE_CONST || !is_one(value) || !plain)
        return load;
    Tensor tensor = {.dtype = value->type.dtype, .data = (void *)(uintptr_t)value->data};
    return expr_number(cx, value->type.dtype, tensor_get(&tensor, 0));
}

// x^1 and x^2 of formulas (the gradient of a power is written with one); the rules of simplify see only nodes.
static Expr *reduce_power(Context *cx, Expr *e)
{
    const Expr *exponent = e->operand[1];
    if (exponent->kind != EXPR_NUMBER || !type_is_float(e->type))
        return e;
    bool twice = exponent->number == 2 && e->operand[0]->kind == EXPR_LOAD;
    return exponent->number == 1 ? e->operand[0] : twice ? expr_prim(cx, PRIM_mul, e->operand[0], e->operand[0], NULL) : e;
}

static Expr *write_out(void *context, Expr *e)
{
    Work *work = context;
    if (e->kind == EXPR_PRIM && e->prim == PRIM_pow)
        return reduce_power(work->cx, e);
    if (e->kind == EXPR_LOAD && e->value->kind == VALUE_CONST)
        return constant_number(work->cx, e);
    const Form *form = e->kind == EXPR_LOAD ? &work->fusion->form[e->value->id] : NULL;
    return form != NULL && form->inlined ? compute_at(work->cx, &form->compute, e->operand) : e;
}

static void inline_value(Work *work, Value *value)
{
    Form *form = &work->fusion->form[value->id];
    if (form->kind != FORM_PULL)
        return;
    form->compute.body = expr_rewrite(work->cx, form->compute.body, write_out, work);
    form->inlined = may_inline(value, form);
}

bool pass_fuse(Work *work)
{
    Graph *g = work->graph;
    Fusion *f = work->fusion = NEW(work->cx->arena, Fusion);
    f->form = NEW_ARRAY(work->cx->arena, Form, g->values.count);
    for (int i = 0; i < g->nodes.count; i++)
        form_node(work, g->nodes.at[i]);
    want_results(f, g);
    settle(work);
    for (int i = 0; i < g->values.count; i++)
        if (f->form[i].kind == FORM_PULL)
            count_sites(f, f->form[i].compute.body, compute_visits(&f->form[i].compute));
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.at[i]->n_out; k++)
            inline_value(work, g->nodes.at[i]->out[k]);
    return true;
}
