// random.h: numbers drawn by counting.
//
// Philox 4x32-10 (Salmon et al. 2011) turns a key and a counter into 128 bits, with no state in between. So a draw is a
// function of (seed, stream, index): initial weights depend on a parameter's name and not on the order of the parameters,
// and the order of an epoch on its number, and a resumed run needs nothing but integers.
#ifndef MLRT_RANDOM_H
#define MLRT_RANDOM_H

#include <stdint.h>

typedef struct MlrtRandom {
    uint64_t seed, stream, block;       // of the next four words
    uint32_t word[4];
    int      used;                      // of these words; 4: none left
} MlrtRandom;

void mlrt_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4]);
MlrtRandom mlrt_random(uint64_t seed, uint64_t stream);         // at its beginning
uint32_t mlrt_random_u32(MlrtRandom *random);
uint64_t mlrt_random_below(MlrtRandom *random, uint64_t n);     // 0 … n-1, each as likely; n > 0
double mlrt_random_unit(MlrtRandom *random);                    // inside (0, 1)
double mlrt_random_normal(MlrtRandom *random);                  // mean 0, variance 1

uint64_t mlrt_hash_text(const char *text);                      // FNV-1a: the stream of a name
void mlrt_random_order(int64_t *items, int64_t count, uint64_t seed, uint64_t stream);      // shuffles in place

#endif
