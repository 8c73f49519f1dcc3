/* See base/crc32c.h. ISA-L takes the processor's widest carry-less multiplication, or a table where it has none. */
#include "base/crc32c.h"

#include <isa-l/crc.h>

uint32_t stk_crc32c(const void *data, size_t n)
{
    enum { MOST_BYTES = 1 << 30 }; /* at a time, as the library counts in int */
    /* It only reads, though its argument is not const. */
    unsigned char *p = (unsigned char *)data;
    uint32_t crc = ~0u;
    for (; n > MOST_BYTES; n -= MOST_BYTES, p += MOST_BYTES)
        crc = crc32_iscsi(p, MOST_BYTES, crc);
    return ~crc32_iscsi(p, (int)n, crc);
}
