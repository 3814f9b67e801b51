// wire.h: from the bytes of a file to the messages of onnx.proto, with limits before and while memory is taken.
#ifndef MLC_ONNX_WIRE_H
#define MLC_ONNX_WIRE_H

#include "../../compiler/base.h"
#include "onnx.pb-c.h"

typedef struct Wire { int64_t messages, unknown, bytes; char why[200]; } Wire;

// Walks over the bytes as a message of that kind would lie in them, without recursion and without taking memory. False, and
// wire->why, where something is cut off, overlong, nested too deeply, or more than the limits.
bool wire_scan(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes, size_t length, Wire *wire);

// Scans, then unpacks into the arena; memory is in proportion to the file. NULL and wire->why, where it cannot be.
ProtobufCMessage *wire_unpack(Arena *arena, const ProtobufCMessageDescriptor *kind, const uint8_t *bytes, size_t length, Wire *wire);

#endif
