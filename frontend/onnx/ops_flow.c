// ops_flow.c: If, Loop and Scan: written out, where it is known when compiling what they do.
#include "import.h"

enum { TRIPS_MAX = 4096 };

static const Onnx__Graph *subgraph(OnnxCall *c, const char *name)
{
    const Onnx__Attribute *a = attribute(c, name);
    if (a == NULL || a->g == NULL || a->g->n_output > OUTPUTS_MAX + INPUTS_MAX) {
        refuse_node(c, "it has no graph %s, or one with too many outputs", name);
        return NULL;
    }
    return a->g;
}

// What a graph gives may be a name of outside; a node's output is a value of its own.
void onnx_if(OnnxCall *c)
{
    Import *m = c->m;
    Value *yes[OUTPUTS_MAX + INPUTS_MAX] = {NULL}, *no[OUTPUTS_MAX + INPUTS_MAX] = {NULL};
    const Onnx__Graph *then = subgraph(c, "then_branch"), *other = subgraph(c, "else_branch");
    if (then == NULL || other == NULL)
        return;
    const Tensor *known = known_value(m, c->in[0]);
    if (known != NULL && tensor_count(known) == 1) {
        import_graph(m, tensor_get(known, 0) != 0 ? then : other, 0, NULL, yes);
        for (int i = 0; i < c->n_out; i++)
            c->out[i] = yes[i];
        return;
    }
    import_graph(m, then, 0, NULL, yes);
    if (!m->failed)
        import_graph(m, other, 0, NULL, no);
    Value *condition = m->failed ? NULL : reshape_to(m, c->in[0], 0, NULL);
    for (int i = 0; i < c->n_out && !m->failed; i++) {
        if (yes[i] == NULL || no[i] == NULL || !type_equal(&yes[i]->type, &no[i]->type)) {
            const char *a = yes[i] != NULL ? type_text(m->cx, &yes[i]->type) : "nothing", *b = no[i] != NULL ? type_text(m->cx, &no[i]->type) : "nothing";
            int64_t unused;                             // the condition may be an input that can be fixed
            known_ints(c, c->in[0], "the condition, whose branches give values of different types,", &unused, 1);
            if (!m->failed)
                refuse_node(c, "its branches give %s and %s", a, b);
            return;
        }
        c->out[i] = op3(m, "where", condition, yes[i], no[i]);
    }
}

static Value *with_front(Import *m, Value *x)
{
    Size dims[RANK_MAX] = {whole(m, 1)};
    if (x == NULL || rank_of(x) >= RANK_MAX)
        return NULL;
    for (int i = 0; i < rank_of(x); i++)
        dims[i + 1] = dim_of(x, i);
    return reshape_to(m, x, rank_of(x) + 1, dims);
}

static Value *without_axis(Import *m, Value *x, int axis)
{
    Size dims[RANK_MAX];
    int n = 0;
    for (int i = 0; x != NULL && i < rank_of(x); i++)
        if (i != axis)
            dims[n++] = dim_of(x, i);
    return x != NULL ? reshape_to(m, x, n, dims) : NULL;
}

// What the trips have given, joined along a new axis.
typedef struct Kept { Value *all; } Kept;

static void keep(Import *m, Kept *kept, Value *x, bool in_front)
{
    x = with_front(m, x);
    if (x == NULL) {
        m->failed = true;
        return;
    }
    kept->all = kept->all == NULL ? x : joined(m, 2, in_front ? (Value *[]){x, kept->all} : (Value *[]){kept->all, x}, 0);
}

void onnx_loop(OnnxCall *c)
{
    Import *m = c->m;
    const Onnx__Graph *body = subgraph(c, "body");
    Value *in[INPUTS_MAX + 2], *out[OUTPUTS_MAX + INPUTS_MAX] = {NULL};
    int carried = c->n_in - 2;
    int64_t trips = INT64_MAX, goes = 1;
    Kept kept[OUTPUTS_MAX] = {{NULL}};
    if (body == NULL)
        return;
    if (carried < 0 || (int)body->n_output != c->n_out + 1 || c->n_out < carried) {
        refuse_node(c, "its body gives %zu values", body->n_output);
        return;
    }
    if (input_of(c, 0) != NULL && known_ints(c, c->in[0], "the number of trips", &trips, 1) != 1)
        return;
    if (input_of(c, 1) != NULL && known_ints(c, c->in[1], "the condition", &goes, 1) != 1)
        return;
    Value *state[INPUTS_MAX];
    for (int i = 0; i < carried; i++)
        state[i] = c->in[i + 2];
    int64_t trip = 0;
    for (; trip < trips && goes && !m->failed; trip++) {
        if (trip == TRIPS_MAX) {
            refuse_node(c, "more than %d trips are not available in this version", TRIPS_MAX);
            return;
        }
        in[0] = number(m, TYPE_i64, (double)trip);
        in[1] = number(m, TYPE_bool, 1);
        for (int i = 0; i < carried; i++)
            in[i + 2] = state[i];
        import_graph(m, body, carried + 2, in, out);
        if (m->failed || known_ints(c, out[0], "whether the loop goes on", &goes, 1) != 1)
            return;
        for (int i = 0; i < carried; i++)
            state[i] = out[i + 1];
        for (int i = carried; i < c->n_out; i++)
            keep(m, &kept[i], out[i + 1], false);
    }
    for (int i = 0; i < c->n_out && !m->failed; i++) {
        c->out[i] = i < carried ? state[i] : kept[i].all;
        if (c->out[i] == NULL)
            refuse_node(c, "a loop without a trip that gives a list is not available in this version");
    }
}

void onnx_scan(OnnxCall *c)
{
    Import *m = c->m;
    const Onnx__Graph *body = subgraph(c, "body");
    int64_t n = int_of(c, "num_scan_inputs", 0), axes[INPUTS_MAX] = {0}, ways[INPUTS_MAX] = {0}, out_axes[OUTPUTS_MAX] = {0}, out_ways[OUTPUTS_MAX] = {0}, length = -1;
    Value *in[INPUTS_MAX], *out[OUTPUTS_MAX + INPUTS_MAX] = {NULL}, *state[INPUTS_MAX];
    Kept kept[OUTPUTS_MAX] = {{NULL}};
    int states = c->n_in - (int)n, lists = c->n_out - states;
    if (body == NULL)
        return;
    if (n < 1 || states < 0 || lists < 0 || (int)body->n_output != c->n_out || (int)body->n_input != c->n_in) {
        refuse_node(c, "its body takes %zu values and gives %zu", body->n_input, body->n_output);
        return;
    }
    if (ints_of(c, "scan_input_axes", axes, INPUTS_MAX) > n || ints_of(c, "scan_input_directions", ways, INPUTS_MAX) > n || ints_of(c, "scan_output_axes", out_axes, OUTPUTS_MAX) > lists ||
        ints_of(c, "scan_output_directions", out_ways, OUTPUTS_MAX) > lists) {
        refuse_node(c, "it has more axes than inputs or outputs");
        return;
    }
    for (int i = 0; i < n; i++) {
        Value *x = c->in[states + i];
        int64_t size;
        axes[i] = axis_of(c, axes[i], rank_of(x));
        if (m->failed)
            return;
        if (!size_known(dim_of(x, (int)axes[i]), &size) || size > TRIPS_MAX || (length >= 0 && size != length) || size == 0) {
            refuse_node(c, "the lengths of its inputs differ, are above %d, or are known only when running", TRIPS_MAX);
            return;
        }
        length = size;
    }
    for (int i = 0; i < states; i++)
        state[i] = c->in[i];
    for (int64_t trip = 0; trip < length && !m->failed; trip++) {
        for (int i = 0; i < states; i++)
            in[i] = state[i];
        for (int i = 0; i < n; i++) {
            int64_t at = ways[i] != 0 ? length - 1 - trip : trip;
            in[states + i] = without_axis(m, sliced(m, c->in[states + i], (int)axes[i], whole(m, at), whole(m, 1), 1), (int)axes[i]);
        }
        import_graph(m, body, c->n_in, in, out);
        for (int i = 0; i < states && !m->failed; i++)
            state[i] = out[i];
        for (int i = 0; i < lists && !m->failed; i++)
            keep(m, &kept[i], out[states + i], out_ways[i] != 0);
    }
    for (int i = 0; i < c->n_out && !m->failed; i++) {
        if (i < states) {
            c->out[i] = state[i];
            continue;
        }
        Value *x = kept[i - states].all;
        int64_t axis = axis_of(c, out_axes[i - states], rank_of(x)), perm[RANK_MAX];
        for (int k = 0; k < rank_of(x); k++)            // the new axis goes from the front to its place
            perm[k] = k < axis ? k + 1 : k == axis ? 0 : k;
        c->out[i] = transposed(m, x, perm);
    }
}
