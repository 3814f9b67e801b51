// linked.cpp: a C++ program with an object in it.
#include "bn.h"
#include "mlp.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

int main()
{
    std::vector<float> image(2 * 64, 0.5f), logits(2 * 10), shares(2 * 10), middle(2);
    alignas(64) static char arena[1 << 21];
    bn_io io = {};
    io.image = image.data();
    io.logits = logits.data();
    io.shares = shares.data();
    if (sizeof arena < bn_arena_bytes(2) || bn_run(&io, 2, arena, sizeof arena) != bn_OK)
        return 1;
    float sum = 0;
    for (int i = 0; i < 10; i++)
        sum += shares[i];
    if (std::fabs(sum - 1) > 1e-5f || std::memcmp(&logits[0], &logits[10], 10 * sizeof(float)) != 0)
        return 2;
    mlp_io other = {};
    other.image = image.data();
    other.logits = logits.data();
    other.middle = middle.data();
    if (mlp_run(&other, 2, arena, sizeof arena) != mlp_OK || mlp_run(nullptr, 2, arena, sizeof arena) != mlp_NULL_POINTER)
        return 3;
    return std::strcmp(bn_info.output[1].name, "shares") == 0 && mlp_info.max_batch == bn_MAX_BATCH ? 0 : 4;
}
