// slots.h: a model that was compiled for inference, with files as its inputs and outputs: what `mlc run` and the programs of
// --emit exe share. The model is a table that the compiler writes (MlrtObject); the files are .npy or CSV.
//
// A CSV file has a row for each element of the first axis, and the other axes, row-major, as its columns. Named sizes are taken
// from the files; two files that disagree are an error which names both.
#ifndef MLRT_SLOTS_H
#define MLRT_SLOTS_H

#include "error.h"

typedef struct MlrtSlot {
    const char *name;
    MlrtType type;
    int rank;
    int bind[MLRT_LIMIT_RANK];          // the named size that a dimension is; -1: a number, or made of several
    const char *shape;                  // "(N, 1, 8, 8)"
} MlrtSlot;

enum { MLRT_SLOTS = 64, MLRT_SLOT_SIZES = 16 };         // inputs and outputs; named sizes

typedef struct MlrtObject {
    const char *name;
    int n_in, n_out, n_sizes;
    const MlrtSlot *port;               // inputs, then outputs
    const char *const *size;            // names; size 0 is the batch, "" if there is none
    const int64_t *bound;               // the largest value; 0: any
    size_t arena_bytes;
    void (*shape)(void *user, const int64_t *size, int port, int64_t *dim);
    // Returns NULL, or what was wrong. `weights` may be NULL where the object has its own.
    const char *(*run)(void *user, const void *const *in, void *const *out, const int64_t *size, const void *weights, void *arena,
                       size_t arena_bytes);
    void *user;
} MlrtObject;

typedef struct MlrtSlots {              // of one run
    const char *path[MLRT_SLOTS];       // of inputs
    void *data[MLRT_SLOTS];             // of inputs, then outputs, each allocated; NULL: not there yet
    int64_t size[MLRT_SLOT_SIZES];
} MlrtSlots;

// Gives each input its file: words are FILE, in order, or NAME=FILE.
MlrtStatus mlrt_slots_match(const MlrtObject *object, MlrtSlots *ports, int count, const char *const *words, MlrtError *error);
// Reads them, binds the sizes, checks types and shapes.
MlrtStatus mlrt_slots_read(const MlrtObject *object, MlrtSlots *ports, MlrtError *error);
MlrtStatus mlrt_slots_run(const MlrtObject *object, MlrtSlots *ports, const void *weights, MlrtError *error);
// Writes output_0.npy, output_1.npy, … into a folder, which is made if it is missing.
MlrtStatus mlrt_slots_write(const MlrtObject *object, const MlrtSlots *ports, const char *folder, MlrtError *error);
void mlrt_slots_close(MlrtSlots *ports);                // ports are all zero, or were given to the functions above

// The main of a program that is one object.
int mlrt_object_main(const MlrtObject *object, int argc, char **argv);

#endif
