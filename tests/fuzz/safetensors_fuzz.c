// safetensors_fuzz.c: any bytes as a safetensors file; of what is accepted, every tensor is found by its name and read.
#include <stdlib.h>

#include "../../runtime/safetensors.h"

volatile size_t sink;                                  // so that the reads are not removed

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    MlrtTensors tensors;
    MlrtError error;
    if (mlrt_safetensors_parse(mlrt_file_of_memory("fuzz", bytes, count), &tensors, &error) != MLRT_OK)
        return 0;
    for (size_t i = 0; i < tensors.count; i++) {
        const MlrtTensor *tensor = &tensors.tensor[i];
        if (mlrt_safetensors_find(&tensors, tensor->name) != tensor)
            abort();
        sink += mlrt_tensor_nonfinite(tensor);
        for (size_t j = 0; j < tensor->bytes; j++)
            sink += ((const uint8_t *)tensor->data)[j];
    }
    for (size_t i = 0; i < tensors.metadata_count; i++)
        if (!mlrt_safetensors_metadata(&tensors, tensors.metadata[i].key))
            abort();
    mlrt_safetensors_close(&tensors);
    return 0;
}
