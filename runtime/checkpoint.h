// checkpoint.h: weights and the state of a run, in safetensors files.
//
// A weights file holds parameters and buffers under their paths and nothing else, so other programs load it. A checkpoint adds
// optimizer.STATE.PATH, and in its metadata the rows of state.def, changed settings, the codes of text columns, and what model
// and data it is of.
#ifndef MLRT_CHECKPOINT_H
#define MLRT_CHECKPOINT_H

#include "engine.h"
#include "safetensors.h"

typedef int64_t MlrtState_WHOLE;
typedef double MlrtState_EXACT;
typedef struct MlrtState {
#define STATE(kind, name) MlrtState_##kind name;
#include "state.def"
#undef STATE
} MlrtState;

typedef struct MlrtSaved {
    const MlrtEngine   *engine;
    const MlrtDataset  *data;           // NULL: nothing is said of the data
    const MlrtSettings *settings;       // what differs from the net is kept, so that resuming needs no options again
    const MlrtState    *state;
} MlrtSaved;

// Both write whole or not at all. Values that are not finite are refused: MLRT_DIVERGED.
MlrtStatus mlrt_weights_save(const char *path, const MlrtSaved *what, MlrtError *error);
MlrtStatus mlrt_checkpoint_save(const char *path, const MlrtSaved *what, MlrtError *error);

// Opens the file; the functions below read from it. Close with mlrt_safetensors_close.
// Parameters and buffers into the engine. Names have to be the model's, all of them, but for one common prefix, which is then
// put into *prefix (up to 63 bytes; "" if there is none). The first difference is named.
MlrtStatus mlrt_weights_load(const MlrtTensors *file, MlrtEngine *engine, char prefix[64], MlrtError *error);

// If the file is a checkpoint with an average of the weights, and the recipe has one: that in the place of the weights.
MlrtStatus mlrt_checkpoint_average(const MlrtTensors *file, MlrtEngine *engine, MlrtError *error);

// Every name that is missing or not the model's, and every shape that differs, a line each, as far as `most` lines go.
void mlrt_weights_differences(FILE *out, const MlrtTensors *file, const MlrtModel *model, int most);

// Optimiser states into the engine and the rows of state.def into *state. The fingerprint has to match.
MlrtStatus mlrt_checkpoint_load(const MlrtTensors *file, MlrtEngine *engine, MlrtState *state, MlrtError *error);

// The rows of the state that the file has; others stay as they are.
MlrtStatus mlrt_checkpoint_state(const MlrtTensors *file, MlrtState *state, MlrtError *error);

// Changes the settings as they were when the file was written. Their texts point into the file's metadata. A key that the recipe
// does not have any more is an error if `strict`, else left out.
MlrtStatus mlrt_checkpoint_settings(const MlrtTensors *file, MlrtSettings *settings, bool strict, MlrtError *error);

// The codes that the file has, one for each field of the model, count 0 where there are none. Free with mlrt_codes_array_free.
MlrtStatus mlrt_checkpoint_codes(const MlrtTensors *file, const MlrtModel *model, MlrtCodes **codes, MlrtError *error);
void mlrt_codes_array_free(MlrtCodes *codes, const MlrtModel *model);

// Digest of all parameters and buffers: the same weights show as the same digits.
void mlrt_weights_digest(const MlrtEngine *engine, char digest[33]);

#endif
