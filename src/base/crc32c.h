/* CRC32C (Castagnoli; RFC 3720, appendix B.4), as TFRecord files carry it. Threads: any. */
#ifndef STK_BASE_CRC32C_H
#define STK_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t stk_crc32c(const void *data, size_t n);

/* TFRecord's mask: a CRC of bytes that hold CRCs of themselves is a bad one. */
static inline uint32_t stk_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
