// digest.c: the only file that includes xxHash, so that its inlined code is compiled once.
#include "digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(MlrtDigestState), "digest.h: room for the state");
_Static_assert(_Alignof(XXH3_state_t) <= 64, "digest.h: alignment of the state");

static MlrtDigest digest_text(XXH128_hash_t hash)
{
    static const char digits[] = "0123456789abcdef";
    XXH128_canonical_t bytes;
    MlrtDigest digest;
    XXH128_canonicalFromHash(&bytes, hash);
    for (int i = 0; i < 16; i++) {
        digest.text[2 * i] = digits[bytes.digest[i] >> 4];
        digest.text[2 * i + 1] = digits[bytes.digest[i] & 15];
    }
    digest.text[32] = 0;
    return digest;
}

MlrtDigest mlrt_digest(const void *bytes, size_t count) { return digest_text(XXH3_128bits(bytes, count)); }

void mlrt_digest_begin(MlrtDigestState *state)
{
    XXH3_INITSTATE((XXH3_state_t *)(void *)state);
    XXH3_128bits_reset((XXH3_state_t *)(void *)state);
}

void mlrt_digest_add(MlrtDigestState *state, const void *bytes, size_t count)
{
    XXH3_128bits_update((XXH3_state_t *)(void *)state, bytes, count);
}

MlrtDigest mlrt_digest_end(const MlrtDigestState *state)
{
    return digest_text(XXH3_128bits_digest((const XXH3_state_t *)(const void *)state));
}
