// random.c: Philox, and the distributions drawn from it. See random.h.
#include "random.h"

#include <math.h>

void mlrt_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

MlrtRandom mlrt_random(uint64_t seed, uint64_t stream)
{
    return (MlrtRandom){.seed = seed, .stream = stream, .used = 4};
}

uint32_t mlrt_random_u32(MlrtRandom *random)
{
    if (random->used == 4) {
        uint32_t counter[4] = {(uint32_t)random->block, (uint32_t)(random->block >> 32), (uint32_t)random->stream,
                               (uint32_t)(random->stream >> 32)};
        mlrt_philox(random->seed, counter, random->word);
        random->block++;
        random->used = 0;
    }
    return random->word[random->used++];
}

// Numbers from the incomplete last stretch of 2^64 are drawn again, so that none is favoured.
uint64_t mlrt_random_below(MlrtRandom *random, uint64_t n)
{
    uint64_t least = (0 - n) % n, drawn;
    do {
        drawn = mlrt_random_u32(random);
        drawn = drawn << 32 | mlrt_random_u32(random);
    } while (drawn < least);
    return drawn % n;
}

double mlrt_random_unit(MlrtRandom *random) { return (mlrt_random_u32(random) + 0.5) / 4294967296.0; }

// Box and Muller 1958, of which one of the two numbers is used.
double mlrt_random_normal(MlrtRandom *random)
{
    double radius = sqrt(-2 * log(mlrt_random_unit(random)));
    return radius * cos(6.283185307179586477 * mlrt_random_unit(random));
}

uint64_t mlrt_hash_text(const char *text)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return hash;
}

void mlrt_random_order(int64_t *items, int64_t count, uint64_t seed, uint64_t stream)
{
    MlrtRandom random = mlrt_random(seed, stream);
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)mlrt_random_below(&random, (uint64_t)i + 1), item = items[i];
        items[i] = items[j];
        items[j] = item;
    }
}
