// csv_fuzz.c: any bytes as a CSV file. The first byte picks the options; every column is read as numbers and as text.
#include <stdlib.h>

#include "../../runtime/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    MlrtCsv *csv;
    MlrtError error;
    if (count < 1)
        return 0;
    MlrtCsvOptions options = {.header = (MlrtCsvHeader)(bytes[0] % 3), .separator = ",;\t "[bytes[0] / 3 % 4],
                              .allow_empty = bytes[0] & 64, .allow_nonfinite = bytes[0] & 128};
    if (mlrt_csv_parse(mlrt_file_of_memory("fuzz", bytes + 1, count - 1), &options, &csv, &error) != MLRT_OK)
        return 0;
    size_t rows = mlrt_csv_rows(csv);
    void *values = malloc(rows * 8);
    int32_t *codes = malloc(rows * sizeof *codes);
    for (int column = 0; values && codes && column < mlrt_csv_columns(csv) && column < 50; column++) {
        char **strings;
        MlrtCodes fitted;
        mlrt_csv_numbers(csv, &column, 1, MLRT_f32, values, &error);
        mlrt_csv_numbers(csv, &column, 1, MLRT_f64, values, &error);
        mlrt_csv_numbers(csv, &column, 1, MLRT_i16, values, &error);
        mlrt_csv_numbers(csv, &column, 1, MLRT_bool, values, &error);
        if (mlrt_csv_strings(csv, column, &strings, &error) != MLRT_OK)
            continue;
        if (mlrt_codes_fit((const char *const *)strings, rows, &fitted, &error) == MLRT_OK) {
            if (mlrt_codes_apply(&fitted, (const char *const *)strings, rows, false, codes, &error) != MLRT_OK)
                abort();                                // what was fitted is known
            mlrt_codes_free(&fitted);
        }
        free(strings);
    }
    free(values);
    free(codes);
    mlrt_csv_close(csv);
    return 0;
}
