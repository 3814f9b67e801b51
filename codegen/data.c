// data.c: the mapping from the fields of a source to the inputs and targets of one sample, for training programs and for
// objects: the same steps, so that a sample gives the same inputs everywhere.
//
// A step belongs to the inputs if one of them needs it; the others only make targets and are left out where there are none.
#include "codegen.h"

#include <string.h>

int data_port(const Graph *graph, const char *name)
{
    for (int i = 0; i < graph->inputs.count; i++)
        if (strcmp(graph->inputs.at[i]->name, name) == 0)
            return i;
    return -1;
}

bool data_fills_input(const Graph *graph, const char *name)
{
    int port = data_port(graph, name);
    return port >= 0 && port < graph->inputs.count - graph->n_targets;
}

static bool same_place(const Program *data, const Value *a, const Value *b)
{
    return a == b || (buffer_home(data, a) != NULL && buffer_home(data, a) == buffer_home(data, b));
}

// Marks the steps, and the fields (inputs of the data program), that the inputs of `graph` need.
DataNeeds data_needs(const Program *data, const Graph *graph)
{
    Arena *arena = data->cx->arena;
    LIST(Value *) wanted = {0};
    DataNeeds needs = {NEW_ARRAY(arena, bool, data->steps.count + 1),
                       NEW_ARRAY(arena, bool, data->graph->inputs.count + 1)};
    for (int i = 0; i < data->graph->outputs.count; i++)
        if (data_fills_input(graph, data->graph->outputs.at[i].name))
            LIST_ADD(arena, wanted, data->graph->outputs.at[i].value);
    for (int s = data->steps.count - 1; s >= 0; s--) {
        const Kernel *step = data->steps.at[s];
        for (int i = 0; i < step->writes.count; i++)
            for (int w = 0; w < wanted.count; w++)
                needs.step[s] |= same_place(data, step->writes.at[i], wanted.at[w]);
        for (int i = 0; needs.step[s] && i < step->reads.count; i++)
            LIST_ADD(arena, wanted, step->reads.at[i]);
    }
    for (int i = 0; i < data->graph->inputs.count; i++)
        for (int w = 0; w < wanted.count; w++)
            needs.field[i] |= same_place(data, data->graph->inputs.at[i], wanted.at[w]);
    return needs;
}

static void print_copies(Printer *p, const Graph *graph, bool for_inputs)
{
    const Graph *data = p->program->graph;
    for (int i = 0; i < data->outputs.count; i++) {
        const char *name = data->outputs.at[i].name;
        if (data_port(graph, name) >= 0 && data_fills_input(graph, name) == for_inputs)
            print_output_copy(p, data->outputs.at[i].value, i);
    }
}

void print_mapping(Printer *p, const Graph *graph, const DataNeeds *needs, bool for_inputs)
{
    print_call_steps(p, needs->step, for_inputs);
    print_copies(p, graph, for_inputs);
}
