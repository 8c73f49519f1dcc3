/* See base/crc32c.h. The plain code takes eight bytes a step ("slicing by 8": Kounavis & Berry, ISCC 2005). The CPU's
 * instruction answers after three cycles, so that three parts of a long block are summed side by side; their sums are
 * joined with tables that shift a CRC over the length of a part.
 */
#include "base/crc32c.h"

#include <string.h>

#include "base/thread.h"

enum { POLYNOMIAL = (int)0x82f63b78, PART_BYTES = 256 };

static uint32_t slices[8][256];
static uint32_t shifts[4][256]; /* a CRC after PART_BYTES more bytes of zeros, by the CRC's bytes */
static stk_once once = STK_ONCE_INIT;

static uint32_t add_byte(uint32_t crc, uint8_t byte)
{
    return slices[0][(crc ^ byte) & 0xff] ^ crc >> 8;
}

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ ((uint32_t)POLYNOMIAL & (0 - (crc & 1)));
        slices[0][i] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            slices[k][i] = slices[0][slices[k - 1][i] & 0xff] ^ slices[k - 1][i] >> 8;
    for (int k = 0; k < 4; k++) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t crc = i << 8 * k;
            for (int n = 0; n < PART_BYTES; n++)
                crc = add_byte(crc, 0);
            shifts[k][i] = crc;
        }
    }
}

static uint32_t add_plain(uint32_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = slices[7][crc & 0xff] ^ slices[6][crc >> 8 & 0xff] ^ slices[5][crc >> 16 & 0xff] ^ slices[4][crc >> 24] ^
              slices[3][p[4]] ^ slices[2][p[5]] ^ slices[1][p[6]] ^ slices[0][p[7]];
    }
    for (; n > 0; n--)
        crc = add_byte(crc, *p++);
    return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_INSTRUCTION 1

static uint32_t shift_part(uint32_t crc)
{
    return shifts[0][crc & 0xff] ^ shifts[1][crc >> 8 & 0xff] ^ shifts[2][crc >> 16 & 0xff] ^ shifts[3][crc >> 24];
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    return x;
}

__attribute__((target("sse4.2"))) static uint32_t add_fast(uint32_t crc, const uint8_t *p, size_t n)
{
    uint64_t a = crc;
    for (; n >= 3 * PART_BYTES; n -= 3 * PART_BYTES, p += 3 * PART_BYTES) {
        uint64_t b = 0, c = 0;
        for (int i = 0; i < PART_BYTES; i += 8) {
            a = __builtin_ia32_crc32di(a, load64(p + i));
            b = __builtin_ia32_crc32di(b, load64(p + PART_BYTES + i));
            c = __builtin_ia32_crc32di(c, load64(p + 2 * PART_BYTES + i));
        }
        a = shift_part(shift_part((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
    }
    for (; n >= 8; n -= 8, p += 8)
        a = __builtin_ia32_crc32di(a, load64(p));
    uint32_t last = (uint32_t)a;
    for (; n > 0; n--)
        last = __builtin_ia32_crc32qi(last, *p++);
    return last;
}
#endif

uint32_t stk_crc32c_plain(const void *data, size_t n)
{
    stk_once_run(&once, make_tables);
    return ~add_plain(~0u, data, n);
}

uint32_t stk_crc32c(const void *data, size_t n)
{
    stk_once_run(&once, make_tables);
#ifdef HAS_INSTRUCTION
    if (__builtin_cpu_supports("sse4.2")) return ~add_fast(~0u, data, n);
#endif
    return ~add_plain(~0u, data, n);
}
