/* SHA-256 (FIPS 180-4): for keys that nobody else's content may be made to share. Not fast; for file checksums there is
 * base/hash.h. Threads: any. */
#ifndef STK_BASE_SHA256_H
#define STK_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

void stk_sha256(const void *data, size_t n, uint8_t sum[32]);

#endif
