// plan.c: `mlc plan`: where memory goes. A row for each buffer of the arena with its life as a lane of the picture, then sums.
#include "passes.h"

#include <string.h>

enum { LANE = 32, NAME_WIDTH = 24 };

static void put_bytes(Text *text, int64_t bytes)
{
    if (bytes < 10000)
        text_add(text, "%lld B", (long long)bytes);
    else if (bytes < 10000000)
        text_add(text, "%.1f kB", 1e-3 * (double)bytes);
    else
        text_add(text, "%.1f MB", 1e-6 * (double)bytes);
}

static const char *bytes_text(Context *cx, int64_t bytes)
{
    Text text = {.arena = cx->arena};
    put_bytes(&text, bytes);
    return text.at;
}

// ....####......: the steps in which the buffer lives, out of all.
static void put_lane(Text *text, const Buffer *buffer, int steps)
{
    int width = steps < LANE ? steps : LANE;
    for (int i = 0; i < width; i++) {
        int from = i * steps / width, to = (i + 1) * steps / width - 1;
        bool lives = buffer->first <= to && (buffer->last >= from || (buffer->last >= steps && i == width - 1));
        text_add(text, "%s", lives ? "#" : ".");
    }
}

static void put_buffer(Text *text, const Program *p, const Buffer *buffer)
{
    Text row = {.arena = p->cx->arena};
    text_add(&row, "%.*s", NAME_WIDTH, buffer->value->name != NULL ? buffer->value->name : "");
    text_pad(&row, NAME_WIDTH + 1);
    type_print(&row, &buffer->value->type);
    text_pad(&row, NAME_WIDTH + 27);
    text_add(&row, "%10s", bytes_text(p->cx, buffer->bytes));
    text_add(&row, "  %4d..%-4d %10lld  ", buffer->first, buffer->last, (long long)buffer->offset);
    put_lane(&row, buffer, p->steps.count);
    if (buffer->alias != NULL && buffer->alias->value->name != NULL)
        text_add(&row, " in place of %s", buffer->alias->value->name);
    text_add(text, "%s\n", row.at);
}

static int64_t params_bytes(const Model *model, bool trainable_only)
{
    int64_t bytes = 0;
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        if (param->trainable || !trainable_only)
            bytes += param_count(param) * type_def(param->type.dtype)->bytes;
    }
    return bytes;
}

static void put_sum(Text *text, const char *what, int64_t bytes)
{
    text_add(text, "%s", what);
    text_pad(text, 16);
    put_bytes(text, bytes);
    text_add(text, "\n");
}

void plan_print(Text *text, const Program *program)
{
    const Model *model = program->model;
    bool train = program->graph->gradients.count > 0;
    text_add(text, "%s: %d steps\n\n", program->graph->name != NULL ? program->graph->name : model->name, program->steps.count);
    text_add(text, "buffer                   type                           bytes  life           offset\n");
    for (int i = 0; i < program->graph->values.count; i++) {
        const Buffer *buffer = program->buffer[i];
        if (buffer != NULL && buffer->space == SPACE_ARENA && buffer->first <= buffer->last)
            put_buffer(text, program, buffer);
    }
    int64_t params = params_bytes(model, false), trainable = params_bytes(model, true);
    int states = train && model->recipe != NULL && model->recipe->optimizer != NULL ? model->recipe->optimizer->n_states : 0;
    text_add(text, "\n");
    put_sum(text, "activations", program->arena_bytes);
    put_sum(text, "lower bound", program->lower_bound);
    if (program->lower_bound > 0)
        text_add(text, "ratio           %.3f\n", (double)program->arena_bytes / (double)program->lower_bound);
    put_sum(text, "parameters", params);
    if (train) {
        put_sum(text, "gradients", trainable);
        put_sum(text, "states", states * trainable);
    }
    put_sum(text, "scratch", program->scratch_bytes);
    put_sum(text, "total", program->arena_bytes + params + (train ? (1 + states) * trainable : 0) + program->scratch_bytes);
}
