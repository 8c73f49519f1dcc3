/* Hashes for checksums and keys; not for secrets. */
#ifndef STK_BASE_HASH_H
#define STK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH64 by its published specification (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). */
uint64_t stk_hash64(const void *data, size_t n, uint64_t seed);

/* The same of bytes that come in parts. */
typedef struct stk_hash64_parts {
    uint64_t seed, n, lane[4];
    uint8_t rest[32]; /* n % 32 bytes that have not filled a stripe */
} stk_hash64_parts;
stk_hash64_parts stk_hash64_begin(uint64_t seed);
void stk_hash64_add(stk_hash64_parts *hash, const void *data, size_t n);
uint64_t stk_hash64_end(const stk_hash64_parts *hash);

uint64_t stk_hash_text(const char *text);

#endif
