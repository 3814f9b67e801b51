// wire.c: protobuf-c unpacks by recursion and takes what memory a file asks for, so no file reaches it before it was walked over
// here: lengths inside their parents, no deep nesting, no flood of empty messages; then it allocates from a budget.
#include "wire.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 64, MESSAGES_MAX = 4000000 };

typedef struct Frame { const ProtobufCMessageDescriptor *kind; size_t end; } Frame;

typedef struct Walk {
    const uint8_t *bytes;
    size_t at;
    Frame  frame[DEPTH_MAX];
    int    depth;
    Wire  *wire;
} Walk;

static bool refuse(Walk *w, const char *what)
{
    snprintf(w->wire->why, sizeof w->wire->why, "%s at byte %zu", what, w->at);
    return false;
}

static bool varint(Walk *w, size_t end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (w->at >= end)
            return refuse(w, "the file is cut off: a number is not complete");
        uint8_t byte = w->bytes[w->at++];
        if (shift == 63 && byte > 1)
            return refuse(w, "a number has more than 64 bits");
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return refuse(w, "a number has more than 64 bits");
}

static bool skip(Walk *w, size_t end, uint64_t count)
{
    if (count > end - w->at)
        return refuse(w, "the file is cut off, or a length is wrong: a field ends behind what it is part of,");
    w->at += (size_t)count;
    return true;
}

static bool enter(Walk *w, const ProtobufCMessageDescriptor *kind, size_t end)
{
    if (w->depth == DEPTH_MAX)
        return refuse(w, "messages are nested more than 64 deep");
    if (++w->wire->messages > MESSAGES_MAX)
        return refuse(w, "there are more than 4 million messages");
    w->frame[w->depth++] = (Frame){kind, end};
    return true;
}

// The wire type that a field of this kind has, besides that of packed lists.
static unsigned wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FLOAT: case PROTOBUF_C_TYPE_FIXED32: case PROTOBUF_C_TYPE_SFIXED32: return 5;
    case PROTOBUF_C_TYPE_DOUBLE: case PROTOBUF_C_TYPE_FIXED64: case PROTOBUF_C_TYPE_SFIXED64: return 1;
    case PROTOBUF_C_TYPE_STRING: case PROTOBUF_C_TYPE_BYTES: case PROTOBUF_C_TYPE_MESSAGE: return 2;
    default: return 0;
    }
}

static bool field(Walk *w)
{
    uint64_t tag, value;
    size_t end = w->frame[w->depth - 1].end;
    if (!varint(w, end, &tag))
        return false;
    unsigned wire = tag & 7;
    if (tag >> 3 == 0 || tag >> 3 > 536870911)
        return refuse(w, "this is no ONNX file: a field without a number");
    const ProtobufCFieldDescriptor *def = protobuf_c_message_descriptor_get_field(w->frame[w->depth - 1].kind, (unsigned)(tag >> 3));
    w->wire->unknown += def == NULL;
    bool packed = def != NULL && def->label == PROTOBUF_C_LABEL_REPEATED && wire == 2 && wire_type(def->type) != 2;
    if (def != NULL && !packed && wire != wire_type(def->type))
        return refuse(w, "this is no ONNX file: a field is of another kind than the format says");
    if (wire == 0)
        return varint(w, end, &value);
    if (wire == 1 || wire == 5)
        return skip(w, end, wire == 1 ? 8 : 4);
    if (wire != 2)
        return refuse(w, "this is no ONNX file: a field of an unknown kind");
    if (!varint(w, end, &value))
        return false;
    size_t from = w->at;
    if (def == NULL || def->type != PROTOBUF_C_TYPE_MESSAGE)
        return skip(w, end, value);
    if (!skip(w, end, value))
        return false;
    w->at = from;
    return enter(w, def->descriptor, from + (size_t)value);
}

bool wire_scan(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes, size_t length, Wire *wire)
{
    Walk w = {.bytes = bytes, .wire = wire};
    *wire = (Wire){0};
    if (length > INT32_MAX)
        return refuse(&w, "the file has more than 2 GiB");
    enter(&w, kind, length);
    while (w.depth > 0)
        if (w.at == w.frame[w.depth - 1].end)
            w.depth--;
        else if (!field(&w))
            return false;
    return true;
}

// --- Memory ----------------------------------------------------------------------------------------------------------

typedef struct Budget { Arena *arena; int64_t left; } Budget;

static void *take(void *user, size_t size)
{
    Budget *budget = user;
    if ((int64_t)size > budget->left)
        return NULL;
    budget->left -= (int64_t)size;
    return arena_alloc(budget->arena, size > 0 ? size : 1);
}

static void give_back(void *user, void *at) { (void)user, (void)at; }

ProtobufCMessage *wire_unpack(Arena *arena, const ProtobufCMessageDescriptor *kind, const uint8_t *bytes, size_t length, Wire *wire)
{
    if (!wire_scan(kind, bytes, length, wire))
        return NULL;
    int64_t room = (64 << 20) + 16 * (int64_t)length;
    Budget budget = {.arena = arena, .left = room};
    ProtobufCAllocator allocator = {.alloc = take, .free = give_back, .allocator_data = &budget};
    ProtobufCMessage *message = protobuf_c_message_unpack(kind, &allocator, length, bytes);
    wire->bytes = room - budget.left;
    if (message == NULL)
        snprintf(wire->why, sizeof wire->why, "this is no valid ONNX file, or it takes more than %lld bytes", (long long)room);
    return message;
}
