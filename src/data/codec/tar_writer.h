/* Members of a tar archive, as ustar (POSIX.1-2017, pax, "ustar Interchange Format"). Threads: any. */
#ifndef STK_DATA_CODEC_TAR_WRITER_H
#define STK_DATA_CODEC_TAR_WRITER_H

#include <stddef.h>
#include <stdint.h>

enum { STK_TAR_BLOCK = 512, STK_TAR_NAME = 100 };

/* The header of a regular file: name has less than STK_TAR_NAME bytes, n less than 8 GiB. The file's bytes follow, then
 * zeros up to a whole block; two blocks of zeros end an archive. */
void stk_tar_header(const char *name, uint64_t n, uint8_t out[STK_TAR_BLOCK]);
/* Zeros after n bytes. */
static inline size_t stk_tar_padding(uint64_t n)
{
    return (size_t)((STK_TAR_BLOCK - n % STK_TAR_BLOCK) % STK_TAR_BLOCK);
}

#endif
