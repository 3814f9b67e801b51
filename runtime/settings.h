// settings.h: the recipe of this run: what was compiled in, changed by --set and the options, each value with its origin.
#ifndef MLRT_SETTINGS_H
#define MLRT_SETTINGS_H

#include "options.h"

typedef enum MlrtSettingKind {
    MLRT_SET_REAL, MLRT_SET_COUNT, MLRT_SET_SEED, MLRT_SET_BOOL, MLRT_SET_CLIP, MLRT_SET_KEEP, MLRT_SET_STOP, MLRT_SET_DURATION,
    MLRT_SET_TARGET, MLRT_SET_TEXT,
} MlrtSettingKind;

typedef struct MlrtSetting {
    char            key[96];
    MlrtSettingKind kind;
    void           *place;              // in the settings; for MLRT_SET_TARGET the number
    bool           *share;              // MLRT_SET_TARGET: it is a share of the learning rate
    double          least;
    const char     *origin;             // "digits.net", "--set", "--epochs"
} MlrtSetting;

typedef struct MlrtSettings {
    const MlrtModel *model;
    MlrtRecipe    recipe;               // what holds; its arrays are the copies below
    double       *group;
    MlrtSchedule *schedule;
    MlrtSource   *source;               // 0: of the data, then one for each split that has one
    const char  **source_text;
    MlrtSplit    *split;
    MlrtSetting  *setting;  int count;
} MlrtSettings;

// Copies the recipe. Close after failure as well.
MlrtStatus mlrt_settings_open(MlrtSettings *settings, const MlrtModel *model, MlrtError *error);
void mlrt_settings_close(MlrtSettings *settings);

// Applies the options and checks the whole. Texts of the options must live as long as the settings.
MlrtStatus mlrt_settings_apply(MlrtSettings *settings, const MlrtOptions *options, MlrtError *error);

// One `key=value`, as --set takes it.
MlrtStatus mlrt_settings_set(MlrtSettings *settings, const char *text, const char *origin, MlrtError *error);
MlrtStatus mlrt_settings_set_value(MlrtSettings *settings, const char *key, const char *value, const char *origin, MlrtError *error);

// The value as --set would take it, into `text`.
void mlrt_settings_text(const MlrtSettings *settings, const MlrtSetting *setting, char *text, size_t size);

#endif
