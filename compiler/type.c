// type.c: element types (a table) and how the type of a value is written.
#include <string.h>

#include "mlc.h"

static const TypeDef types[] = {
    {0},
#define TYPE(name, bytes, kind, c, npy, safetensors, onnx) {#name, bytes, kind, c, npy, safetensors, onnx},
#include "types.def"
#undef TYPE
};

const TypeDef *type_def(DType type) { return &types[type]; }

DType type_find(const char *name)
{
    for (int i = 1; i < TYPE_COUNT; i++)
        if (strcmp(types[i].name, name) == 0)
            return (DType)i;
    return TYPE_NONE;
}

bool type_is_float(DType type) { return type != TYPE_NONE && types[type].kind == KIND_FLOAT; }

Type type_of(DType dtype, int rank, const Size *dims)
{
    Type type = {dtype, {.rank = rank}};
    CHECK(rank <= RANK_MAX);
    for (int i = 0; i < rank; i++)
        type.shape.dim[i] = dims[i];
    return type;
}

bool type_equal(const Type *a, const Type *b) { return a->dtype == b->dtype && shape_equal(&a->shape, &b->shape); }

void type_print(Text *text, const Type *type)
{
    text_add(text, "%s", types[type->dtype].name);
    if (type->shape.rank == 0)
        return;
    for (int i = 0; i < type->shape.rank; i++) {
        text_add(text, i > 0 ? ", " : "[");
        size_print(text, type->shape.dim[i]);
    }
    text_add(text, "]");
}

const char *type_text(Context *cx, const Type *type)
{
    Text text = {.arena = cx->arena};
    type_print(&text, type);
    return text.at;
}
