// gradient.c: the op `gradient`: against differences in double, once and twice, of a small net; parameters behind it get right
// gradients; what cannot be is refused by name.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../passes/passes.h"
#include "expect.h"

enum { ROWS = 3, WIDTH = 5 };

static Context context_new(void)
{
    Arena *arena = arena_new();
    return (Context){.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
}

typedef struct Net { Context cx; Graph *g; Value *x, *y, *first, *second; Param w1, w2; } Net;

// y = sum over columns of tanh(x w1)² w2, first = dy/dx, second = d(sum first)/dx; the loss has all three.
static void make(Net *net)
{
    net->cx = context_new();
    Context *cx = &net->cx;
    Graph *g = net->g = graph_new(cx, "pinn");
    g->training = true;
    Builder b = {.cx = cx, .graph = g, .scope = "", .training = true};
    Size n = size_symbol(cx, "N", ROWS), width = size_const(cx, WIDTH), one = size_const(cx, 1);
    net->w1 = (Param){.path = "w1", .type = type_of(TYPE_f64, 2, (Size[]){one, width}), .trainable = true};
    net->w2 = (Param){.path = "w2", .type = type_of(TYPE_f64, 2, (Size[]){width, one}), .trainable = true};
    net->x = graph_input(g, "x", type_of(TYPE_f64, 2, (Size[]){n, one}), (DiagPlace){0});
    Value *h = build1(&b, "tanh", build2(&b, "matmul", net->x, graph_param(g, &net->w1), ""), "");
    net->y = build2(&b, "matmul", build1(&b, "square", h, ""), graph_param(g, &net->w2), "");
    net->first = build2(&b, "gradient", net->y, net->x, "");
    net->second = build2(&b, "gradient", net->first, net->x, "");
    Value *sum = build2(&b, "add", build2(&b, "mul", net->y, net->first, ""), build1(&b, "square", net->second, ""), "");
    g->loss = build1(&b, "mean", sum, "");
    LIST_ADD(cx->arena, g->outputs, ((NamedValue){.name = "y", .value = net->y}));
    LIST_ADD(cx->arena, g->outputs, ((NamedValue){.name = "first", .value = net->first}));
    LIST_ADD(cx->arena, g->outputs, ((NamedValue){.name = "second", .value = net->second}));
}

static Eval run(const Net *net, const Graph *g, double shift, int moved_param, int moved, double by)
{
    Arena *arena = net->cx.arena;
    Eval eval = {.arena = arena, .at = NEW_ARRAY(arena, Tensor *, g->values.count), .symbols = NEW_ARRAY(arena, int64_t, 4)};
    eval.symbols[0] = ROWS;
    for (int i = 0; i < g->values.count; i++) {
        const Value *v = g->values.at[i];
        if (v->kind != VALUE_INPUT && v->kind != VALUE_PARAM)
            continue;
        int64_t dim[2] = {size_at(v->type.shape.dim[0], eval.symbols), size_at(v->type.shape.dim[1], eval.symbols)};
        Tensor *t = eval.at[i] = tensor_new(arena, TYPE_f64, 2, dim);
        for (int64_t k = 0; k < tensor_count(t); k++)
            tensor_set(t, k, sin(1 + 3 * k + 7 * i) + (v->kind == VALUE_INPUT ? shift : 0));
        if (v->param != NULL && moved_param >= 0 && v->param == (moved_param == 0 ? &net->w1 : &net->w2))
            tensor_set(t, moved, tensor_get(t, moved) + by);
    }
    bool ran = eval_graph(g, &eval);
    CHECK_TRUE(ran);
    return eval;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * (1 + fabs(a)); }

// Each row depends on its own x alone, so all rows can be moved at once.
static void test_differences(void)
{
    Net net;
    make(&net);
    const double step = 1e-4;
    Graph *g = net.g;
    Eval at = run(&net, g, 0, -1, 0, 0), up = run(&net, g, step, -1, 0, 0), down = run(&net, g, -step, -1, 0, 0);
    for (int i = 0; i < ROWS; i++) {
        CHECK_TRUE(near((tensor_get(up.at[net.y->id], i) - tensor_get(down.at[net.y->id], i)) / (2 * step), tensor_get(at.at[net.first->id], i)));
        CHECK_TRUE(near((tensor_get(up.at[net.first->id], i) - tensor_get(down.at[net.first->id], i)) / (2 * step), tensor_get(at.at[net.second->id], i)));
    }
    CHECK_TRUE(fabs(tensor_get(at.at[net.second->id], 0)) > 1e-3);
    // The gradients of the loss by the parameters go through both.
    Graph *plain = graph_copy(g);
    graph_expand(plain, false, NULL);
    CHECK_TRUE(graph_grad(plain));
    CHECK_EQUAL(plain->gradients.count, 2);
    Eval whole = run(&net, plain, 0, -1, 0, 0);
    for (int p = 0; p < 2 && p < plain->gradients.count; p++)
        for (int k = 0; k < WIDTH; k++) {
            const Value *gradient = plain->gradients.at[p].value;
            int moved = plain->gradients.at[p].param == &net.w1 ? 0 : 1;
            Eval more = run(&net, g, 0, moved, k, step), less = run(&net, g, 0, moved, k, -step);
            CHECK_TRUE(near((tensor_get(more.at[g->loss->id], 0) - tensor_get(less.at[g->loss->id], 0)) / (2 * step), tensor_get(whole.at[gradient->id], k)));
        }
    arena_free(net.cx.arena);
}

static void test_refusals(void)
{
    Net net;
    make(&net);
    Value *other = graph_input(net.g, "other", net.x->type, (DiagPlace){0}), *out[OUTPUTS_MAX];
    OpCall call = {.cx = &net.cx, .op = op_find("gradient"), .n_in = 2, .in = {net.y, other}};
    CHECK_TRUE(!graph_call(net.g, &call, "", out));
    CHECK_EQUAL(net.cx.diag->errors, 1);
    // maxpool's gradient puts values to places; that has no derivative of its own here.
    Context cx = context_new();
    Graph *g = graph_new(&cx, "pool");
    Builder b = {.cx = &cx, .graph = g, .scope = ""};
    Size dims[4] = {size_const(&cx, 1), size_const(&cx, 1), size_const(&cx, 4), size_const(&cx, 4)};
    Value *x = graph_input(g, "x", type_of(TYPE_f32, 4, dims), (DiagPlace){0}), *y = build1(&b, "square", build1(&b, "maxpool", x, "kernel = 2"), "");
    Value *first = build2(&b, "gradient", y, x, "");
    Value *second = build2(&b, "gradient", build1(&b, "square", first, ""), x, "");
    LIST_ADD(cx.arena, g->outputs, ((NamedValue){.name = "second", .value = second}));
    graph_expand(g, false, NULL);
    CHECK_EQUAL(cx.diag->errors, 1);
    arena_free(cx.arena);
    arena_free(net.cx.arena);
}

int main(void)
{
    test_differences();
    test_refusals();
    return check_end();
}
