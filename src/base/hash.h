/* Hashes for checksums and keys; not for secrets. */
#ifndef STK_BASE_HASH_H
#define STK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH64 by its published specification (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). */
uint64_t stk_hash64(const void *data, size_t n, uint64_t seed);
uint64_t stk_hash_text(const char *text);

#endif
