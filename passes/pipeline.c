// pipeline.c: the passes as a table, and the runner: it finds out what is needed, runs, verifies, shows and times, so that
// no pass does. A pass that changed nothing shows as "(unchanged)".
#include "passes.h"

#include <string.h>
#include <time.h>

static const PassDef passes[] = {
#define PASS(name, run, needs, leaves, training, brief) {#name, run, needs, leaves, training, brief},
#define ORDER(first, then, reason)
#include "passes.def"
#undef PASS
#undef ORDER
};

static const PassOrder orders[] = {
#define PASS(name, run, needs, leaves, training, brief)
#define ORDER(first, then, reason) {#first, #then, reason},
#include "passes.def"
#undef PASS
#undef ORDER
};

bool pass_differentiate(Work *work) { return graph_grad(work->graph); }

const PassDef *pass_at(int i) { return i >= 0 && i < COUNT(passes) ? &passes[i] : NULL; }

static int pass_index(const char *name)
{
    for (int i = 0; i < COUNT(passes); i++)
        if (strcmp(passes[i].name, name) == 0)
            return i;
    BUG("no pass is called %s", name);
}

const char *passes_check(void)
{
    for (int i = 0; i < COUNT(orders); i++)
        if (pass_index(orders[i].first) >= pass_index(orders[i].then))
            return orders[i].reason;
    return NULL;
}

static bool shown(const Work *work, const PassDef *pass)
{
    return work->log != NULL && work->show != NULL && (strcmp(work->show, "all") == 0 || strcmp(work->show, pass->name) == 0);
}

static void show_program(Text *log, const Program *program)
{
    for (int i = 0; i < program->steps.count; i++) {
        const Kernel *kernel = program->steps.at[i];
        text_add(log, "%3d %s: %s\n", kernel->id, kernel->name, kernel->file != NULL ? kernel->file : kernel->equation);
        if (kernel->loops != NULL)
            loop_print(log, kernel->loops, 1);
    }
}

static void show(const Work *work, const PassDef *pass, bool changed)
{
    text_add(work->log, "# after %s%s\n", pass->name, changed ? "" : " (unchanged)");
    if (changed && work->program != NULL)
        show_program(work->log, work->program);
    else if (changed)
        graph_print(work->log, work->graph);
}

static double milliseconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void run_pass(Work *work, const PassDef *pass)
{
    double start = milliseconds();
    CHECK(work->graph->stage >= pass->needs);
    bool changed = pass->run(work);
    if (pass->leaves > work->graph->stage)
        work->graph->stage = pass->leaves;
    graph_verify(work->graph);
    if (work->timed && work->log != NULL)
        text_add(work->log, "%-10s %8.2f ms  %d nodes\n", pass->name, milliseconds() - start, work->graph->nodes.count);
    if (shown(work, pass))
        show(work, pass, changed);
}

bool passes_run(Work *work, Stage until)
{
    const char *broken = passes_check();
    if (broken != NULL)
        BUG("the order of passes is wrong: %s", broken);
    int errors = work->cx->diag->errors;
    for (int i = 0; i < COUNT(passes) && work->cx->diag->errors == errors; i++) {
        const PassDef *pass = &passes[i];
        bool wanted = !pass->training || (work->graph->training && work->graph->loss != NULL && work->graph->gradients.count == 0);
        if (pass->leaves <= until && wanted)
            run_pass(work, pass);
    }
    return work->cx->diag->errors == errors;
}

void passes_list(Text *text)
{
    for (int i = 0; i < COUNT(passes); i++) {
        text_add(text, "%s", passes[i].name);
        text_pad(text, 12);
        text_add(text, "%s%s\n", passes[i].brief, passes[i].training ? " (training only)" : "");
    }
    text_add(text, "\nOrders that must be kept:\n");
    for (int i = 0; i < COUNT(orders); i++)
        text_add(text, "%s before %s: %s\n", orders[i].first, orders[i].then, orders[i].reason);
}
