// idx_fuzz.c: any bytes as an idx file; what is accepted is read to its last byte.
#include "../../runtime/array.h"

volatile uint8_t sink;                                 // so that the reads are not removed

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    MlrtArray array;
    MlrtError error;
    if (mlrt_idx_parse(mlrt_file_of_memory("fuzz", bytes, count), &array, &error) != MLRT_OK)
        return 0;
    for (size_t i = 0; i < array.bytes; i++)
        sink ^= ((const uint8_t *)array.data)[i];
    mlrt_array_close(&array);
    return 0;
}
