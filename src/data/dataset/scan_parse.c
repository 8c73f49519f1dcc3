/* The bytes of a file of answers; see data/dataset/scan_file.h. It is, little-endian,
 *
 *     "stksurv1"   u64 state   u64 n   n x i32   u64 XXH64 of all before
 */
#include <string.h>

#include "base/hash.h"
#include "base/little.h"
#include "data/dataset/scan_file.h"

enum { HEADER_BYTES = 24, SUM_BYTES = 8 };
static const char magic[8] = "stksurv1";

size_t stk_scan_bytes(int64_t n)
{
    return HEADER_BYTES + (size_t)n * 4 + SUM_BYTES;
}

bool stk_scan_parse(stk_span bytes, uint64_t state, int32_t *answers, int64_t n)
{
    const uint8_t *p = bytes.data;
    if (bytes.n != stk_scan_bytes(n) || memcmp(p, magic, sizeof(magic)) != 0) return false;
    if (stk_little64(p + 8) != state || stk_little64(p + 16) != (uint64_t)n) return false;
    if (stk_little64(p + bytes.n - SUM_BYTES) != stk_hash64(p, bytes.n - SUM_BYTES, 0)) return false;
    for (int64_t i = 0; i < n; i++) {
        answers[i] = (int32_t)stk_little32(p + HEADER_BYTES + 4 * i);
        if (answers[i] < STK_UNREADABLE) return false;
    }
    return true;
}

void stk_scan_print(uint64_t state, const int32_t *answers, int64_t n, uint8_t *out)
{
    size_t end = stk_scan_bytes(n) - SUM_BYTES;
    memcpy(out, magic, sizeof(magic));
    stk_put_little64(out + 8, state);
    stk_put_little64(out + 16, (uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        stk_put_little32(out + HEADER_BYTES + 4 * i, (uint32_t)answers[i]);
    stk_put_little64(out + end, stk_hash64(out, end, 0));
}
