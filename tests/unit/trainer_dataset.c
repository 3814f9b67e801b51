// trainer_dataset.c: sources, codes and mapping: npy and IDX arrays, a part with a file of its own, categories, labels.
// Works in the current folder.
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#include "../../runtime/dataset.h"

static MlrtError error;

static bool says(const char *text) { return strstr(error.text, text) != NULL; }

static void write_text(const char *path, const char *text) { CHECK(mlrt_file_write(path, text, strlen(text), &error) == MLRT_OK); }

// --- CSV with a category and classes: color, size, kind -> x (size, code of color), kind ---------------------------------

static void map_words(const void *const *field, void *const *port, bool target_too)
{
    float *x = port[0];
    int32_t code;
    memcpy(&code, field[0], sizeof code);
    memcpy(&x[0], field[1], sizeof x[0]);
    x[1] = (float)code;
    if (target_too)
        memcpy(port[1], field[2], sizeof code);
}

static const MlrtPort word_ports[] = {
    {.name = "x", .type = "f32", .rank = 1, .dim = {2}, .bytes = 8, .batched = true},
    {.name = "kind", .type = "i32", .bytes = 4, .batched = true, .below = 2},
};
static const MlrtField word_fields[] = {
    {"strings", "color", 0, 0, "i32", 0, {0}, 4, "category", 3, -1, false},
    {"columns", "size", 0, 0, "f32", 0, {0}, 4, NULL, 0, -1, false},
    {"strings", "kind", 0, 0, "i32", 0, {0}, 4, "classes", 2, 1, true},
};
static const char *const word_args[] = {"path", "header", "separator"};
static const char *const train_texts[] = {"words.csv", "true", ";"}, *const valid_texts[] = {"valid.csv", "true", ";"};
static const MlrtSource train_source = {"csv", 3, word_args, train_texts, 0, 0}, valid_source = {"csv", 3, word_args, valid_texts, 0, 0};
static const MlrtSplit word_splits[] = {{"valid", 0, &valid_source}};
static const double group[MLRT_HYPERS];
static const MlrtRecipe word_recipe = {.batch = 2, .epochs = 1, .n_groups = 1, .group = group, .source = &train_source, .n_splits = 1,
                                       .split = word_splits};
static const MlrtModel word_model = {.path = "w.net", .n_inputs = 1, .n_targets = 1, .input = word_ports, .n_fields = 3,
                                     .field = word_fields, .map_sample = map_words, .recipe = &word_recipe};

static MlrtStatus open_words(MlrtDataset *data, MlrtPool *pool)
{
    MlrtSettings settings;
    CHECK(mlrt_settings_open(&settings, &word_model, &error) == MLRT_OK);
    MlrtStatus status = mlrt_dataset_open(data, &settings, NULL, "program", pool, &error);
    mlrt_settings_close(&settings);
    return status;
}

static void test_words(MlrtPool *pool)
{
    MlrtDataset data;
    write_text("words.csv", "color;size;kind\nred;1;no\nred;2;yes\nblue;3;no\ngreen;4;yes\nblue;5;yes\n");
    write_text("valid.csv", "color;size;kind\nblue;6;no\npink;7;yes\n");
    CHECK(open_words(&data, pool) == MLRT_OK);
    CHECK(data.rows == 7 && data.part[MLRT_TRAIN].rows == 5 && data.part[MLRT_VALID].rows == 2 && data.part[MLRT_TEST].rows == 0);
    const float *x = (const float *)(const void *)data.port[0];
    static const float want[] = {1, 2, 2, 2, 3, 1, 4, 0, 5, 1, 6, 1, 7, 0};     // blue and red are frequent: 1 and 2; the others 0
    CHECK(memcmp(x, want, sizeof want) == 0);
    static const int32_t kinds[] = {0, 1, 0, 1, 1, 0, 1};
    CHECK(memcmp(data.port[1], kinds, sizeof kinds) == 0);
    CHECK(strcmp(mlrt_dataset_label(&data, 1, 0), "no") == 0 && !mlrt_dataset_label(&data, 1, 2));
    mlrt_dataset_close(&data);

    write_text("valid.csv", "color;size;kind\nblue;6;maybe\n");
    CHECK(open_words(&data, pool) == MLRT_BAD_INPUT && says("valid.csv:2: kind: 'maybe' does not occur in the training part"));
    mlrt_dataset_close(&data);
    write_text("valid.csv", "color;length;kind\nblue;6;no\n");
    CHECK(open_words(&data, pool) == MLRT_BAD_INPUT && says("size"));
    mlrt_dataset_close(&data);
}

// --- arrays --------------------------------------------------------------------------------------------------------------

static void map_image(const void *const *field, void *const *port, bool target_too)
{
    for (int i = 0; i < 4; i++)
        ((float *)port[0])[i] = 1.0f / ((const uint8_t *)field[0])[i];
    if (target_too)
        memcpy(port[1], field[1], 1);
}

static const MlrtPort image_ports[] = {
    {.name = "image", .type = "f32", .rank = 2, .dim = {2, 2}, .bytes = 16, .batched = true},
    {.name = "label", .type = "u8", .bytes = 1, .batched = true, .below = 3},
};
static const MlrtField image_fields[] = {
    {"array", "pixels", 0, 0, "u8", 2, {2, 2}, 4, NULL, 0, -1, false},
    {"array", "label", 0, 0, "u8", 0, {0}, 1, NULL, 0, -1, true},
};
static const char *const image_args[] = {"pixels", "label"}, *const image_texts[] = {"pixels.npy", "label.npy"};
static const MlrtSource image_source = {"npy", 2, image_args, image_texts, 0, 0};
static const MlrtRecipe image_recipe = {.batch = 2, .epochs = 1, .n_groups = 1, .group = group, .source = &image_source};
static const MlrtModel image_model = {.path = "i.net", .n_inputs = 1, .n_targets = 1, .input = image_ports, .n_fields = 2,
                                      .field = image_fields, .map_sample = map_image, .recipe = &image_recipe};

static MlrtStatus open_images(MlrtPool *pool, int64_t rows, int64_t labels, uint8_t last)
{
    uint8_t pixels[3 * 4] = {1, 2, 4, 8, 1, 1, 1, 1, 2, 2, 2, 2}, label[3] = {0, 1, last};
    pixels[5] = rows == 2 ? 0 : 1;
    MlrtSettings settings;
    MlrtDataset data;
    CHECK(mlrt_npy_write("pixels.npy", MLRT_u8, (int64_t[]){rows, 2, 2}, 3, pixels, &error) == MLRT_OK);
    CHECK(mlrt_npy_write("label.npy", MLRT_u8, (int64_t[]){labels}, 1, label, &error) == MLRT_OK);
    CHECK(mlrt_settings_open(&settings, &image_model, &error) == MLRT_OK);
    MlrtStatus status = mlrt_dataset_open(&data, &settings, NULL, "program", pool, &error);
    if (status == MLRT_OK) {
        CHECK(data.part[MLRT_TRAIN].rows == rows && ((const float *)(const void *)data.port[0])[3] == 0.125f);
        CHECK(strlen(data.digest) == 32);
    }
    mlrt_dataset_close(&data);
    mlrt_settings_close(&settings);
    return status;
}

static void test_arrays(MlrtPool *pool)
{
    CHECK(open_images(pool, 3, 3, 2) == MLRT_OK);
    CHECK(open_images(pool, 3, 3, 3) == MLRT_BAD_INPUT && says("row 2 of pixels.npy, label.npy: 'label' is 3; it has to be 0 to 2"));
    CHECK(open_images(pool, 2, 2, 0) == MLRT_BAD_INPUT && says("row 1 of pixels.npy, label.npy: 'image' becomes infinite there"));
    CHECK(open_images(pool, 3, 2, 2) == MLRT_BAD_INPUT && says("label.npy has 2 rows, pixels.npy has 3"));
}

// --- settings ------------------------------------------------------------------------------------------------------------

static void test_settings(void)
{
    MlrtSettings s;
    char text[64];
    CHECK(mlrt_settings_open(&s, &word_model, &error) == MLRT_OK);
    CHECK(mlrt_settings_set(&s, "stop=3 epochs", "--set", &error) == MLRT_OK && s.recipe.stop_after.amount == 3);
    CHECK(mlrt_settings_set(&s, "clip=value(0.5)", "--set", &error) == MLRT_OK && s.recipe.clip == 2 && s.recipe.clip_at == 0.5);
    CHECK(mlrt_settings_set(&s, "evaluate=10 min", "--set", &error) == MLRT_OK && s.recipe.evaluate.amount == 600);
    CHECK(mlrt_settings_set(&s, "split.valid.path=a.csv", "--set", &error) == MLRT_OK && !strcmp(s.recipe.split[0].source->text[0], "a.csv"));
    CHECK(!strcmp(valid_texts[0], "valid.csv"));
    CHECK(mlrt_settings_set(&s, "steps=7", "--set", &error) == MLRT_OK && s.recipe.epochs == 0 && s.recipe.steps == 7);
    CHECK(mlrt_settings_set(&s, "clip=0", "--set", &error) == MLRT_BAD_USAGE && says("norm(1)"));
    CHECK(mlrt_settings_set(&s, "epoch=7", "--set", &error) == MLRT_BAD_USAGE && says("did you mean 'epochs'"));
    for (int i = 0; i < s.count; i++) {     // every value reads back as it prints
        char again[64];
        mlrt_settings_text(&s, &s.setting[i], text, sizeof text);
        bool skip = strcmp(s.setting[i].key, "epochs") == 0 || strcmp(s.setting[i].key, "steps") == 0;
        CHECK(skip || mlrt_settings_set_value(&s, s.setting[i].key, text, "test", &error) == MLRT_OK);
        mlrt_settings_text(&s, &s.setting[i], again, sizeof again);
        CHECK(strcmp(text, again) == 0);
    }
    mlrt_settings_close(&s);
}

int main(void)
{
    MlrtPool *pool = mlrt_pool_new(2);
    test_words(pool);
    test_arrays(pool);
    test_settings();
    mlrt_pool_free(pool);
    unlink("words.csv");
    unlink("valid.csv");
    unlink("pixels.npy");
    unlink("label.npy");
    printf(failures ? "%d failures\n" : "trainer data: ok\n", failures);
    return failures != 0;
}
