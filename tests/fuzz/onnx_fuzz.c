// onnx_fuzz.c: any bytes as an ONNX model, and as a tensor of a .pb file. Whatever is refused has a message; whatever is read is a
// graph that holds its invariants, or has none.
#include <stdlib.h>

#include "../../compiler/mlc.h"
#include "../../frontend/onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    Arena *arena = arena_new();
    Context cx = {.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
    const char *name, *why = NULL;
    cx.diag->limits[LIMIT_graph_nodes] = 2000;
    if (onnx_tensor_read(arena, (const char *)bytes, count, &name, &why) == NULL && why == NULL)
        abort();
    Model *model = onnx_read(&cx, "fuzz.onnx", (const char *)bytes, count, NULL);
    if (model == NULL && cx.diag->errors == 0)
        abort();
    if (model != NULL)
        graph_verify(model->infer);
    arena_free(arena);
    return 0;
}
