/* A hash of 64 bits that tells one content from another at memory's speed, for bytes that are in a cache already. Not
 * against intent, and not for files: its values may differ from machine to machine where the byte order does.
 *
 * After the loop for long inputs of XXH3 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md), with keys of its own.
 * Threads: any.
 */
#ifndef STK_BASE_CONTENT_HASH_H
#define STK_BASE_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t stk_content_hash(const void *data, size_t n);

#endif
