/* GZIP and zlib files unpacked as a whole: RFC 1950 to 1952, several streams one after the other. Threads: any. */
#ifndef STK_DATA_CODEC_INFLATE_H
#define STK_DATA_CODEC_INFLATE_H

#include "base/input.h"

/* Writes what file holds to fd. path, of what is written, is for messages. STK_CORRUPT: damaged, cut short, or more
 * than most_bytes. */
stk_status stk_inflate_to(const stk_input *file, int fd, const char *path, uint64_t most_bytes);

#endif
