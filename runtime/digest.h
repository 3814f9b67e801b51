// digest.h: XXH3-128, the digest of files and of states, as 32 hexadecimal digits in the order that xxh128sum prints.
#ifndef MLRT_DIGEST_H
#define MLRT_DIGEST_H

#include <stddef.h>

typedef struct MlrtDigest { char text[33]; } MlrtDigest;

MlrtDigest mlrt_digest(const void *bytes, size_t count);

// In pieces: begin, add as often as wanted, end. There is no memory to give back.
typedef struct MlrtDigestState { _Alignas(64) unsigned char room[640]; } MlrtDigestState;
void mlrt_digest_begin(MlrtDigestState *state);
void mlrt_digest_add(MlrtDigestState *state, const void *bytes, size_t count);
MlrtDigest mlrt_digest_end(const MlrtDigestState *state);

#endif
