// weights.c: writes a safetensors file again with one thing changed, for bn.net. Usage: weights FILE KIND >NEW
//
// Kinds: same, prefix (all names get one), f64, missing, extra, shape, rank, type, nan, infinite, cut.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS_MAX = 64 };

typedef struct Tensor { char name[128], shape[64]; size_t from, end; } Tensor;

static char bytes[1 << 22], out[1 << 22];
static Tensor tensors[TENSORS_MAX];
static int count;

// Names, shapes and places of a header such as the trainer writes: {"name":{"dtype":"F32","shape":[…],"data_offsets":[a,b]},…}
static void read_header(const char *header, const char *end)
{
    for (const char *at = header; (at = strstr(at, "\"dtype\":\"F32\"")) != NULL && at < end; at++) {
        const char *close = at - 3, *open = close;
        while (open[-1] != '"')
            open--;
        Tensor *t = &tensors[count++];
        snprintf(t->name, sizeof t->name, "%.*s", (int)(close + 1 - open - (close[0] == '"')), open);
        const char *shape = strchr(at, '[') + 1;
        snprintf(t->shape, sizeof t->shape, "%.*s", (int)(strchr(shape, ']') - shape), shape);
        sscanf(strstr(at, "data_offsets\":[") + 15, "%zu,%zu", &t->from, &t->end);
    }
}

int main(int argc, char **argv)
{
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    const size_t length = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (length < 8)
        return 2;
    const char *kind = argv[2];
    uint64_t header;
    memcpy(&header, bytes, 8);
    read_header(bytes + 8, bytes + 8 + header);
    const char *data = bytes + 8 + header;
    static char text[1 << 16];
    size_t used = 0, at = 0;
    for (int i = 0; i < count; i++) {
        const Tensor *t = &tensors[i];
        const int head = strcmp(t->name, "head.weight") == 0, wide = strcmp(kind, "f64") == 0;
        if (strcmp(kind, "missing") == 0 && strcmp(t->name, "head.bias") == 0)
            continue;
        const char *shape = head && strcmp(kind, "shape") == 0 ? "10,319" : head && strcmp(kind, "rank") == 0 ? "3200" : t->shape;
        const size_t floats = (t->end - t->from) / 4 - (strcmp(shape, "10,319") == 0 ? 10 : 0), from = at;
        const int whole = head && strcmp(kind, "type") == 0;
        for (size_t k = 0; k < floats; k++) {
            float x;
            memcpy(&x, data + t->from + 4 * k, 4);
            if (head && k == 7)
                x = strcmp(kind, "nan") == 0 ? NAN : strcmp(kind, "infinite") == 0 ? INFINITY : x;
            const double twice = (double)x;
            memcpy(out + at, wide ? (const void *)&twice : (const void *)&x, wide ? 8 : 4);
            at += wide ? 8 : 4;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%s%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                                 used > 0 ? "," : "{", strcmp(kind, "prefix") == 0 ? "module." : "", t->name,
                                 wide ? "F64" : whole ? "I32" : "F32", shape, from, at);
    }
    if (strcmp(kind, "extra") == 0) {
        used += (size_t)snprintf(text + used, sizeof text - used, ",\"head.extra\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}", at, at + 4);
        at += 4;
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "}");
    while (used % 8 != 0)
        text[used++] = ' ';
    header = used;
    fwrite(&header, 1, 8, stdout);
    fwrite(text, 1, used, stdout);
    fwrite(out, 1, strcmp(kind, "cut") == 0 ? at / 2 : at, stdout);
    return fflush(stdout) != 0;
}
