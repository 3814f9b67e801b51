// Random numbers as a function of where they are drawn: Philox 4x32-10 (Salmon et al. 2011), keyed by the seed, counted by
// step, place and element. The same numbers for any number of threads, and after a resume.
#ifndef MLK_RANDOM_H
#define MLK_RANDOM_H

#include "vector.h"

// Uniform in [0, 1), a multiple of 2^-24.
MLK_LEAF float mlk_random(uint64_t seed, uint64_t step, int64_t place, int64_t element)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)element, c1 = (uint32_t)((uint64_t)element >> 32), c2 = (uint32_t)step, c3 = (uint32_t)place;
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (float)(c0 >> 8) * 0x1p-24f;
}

#endif
