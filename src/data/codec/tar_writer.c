#include "data/codec/tar_writer.h"

#include <stdio.h>
#include <string.h>

/* Where the fields lie. */
enum {
    MODE = 100,
    UID = 108,
    GID = 116,
    SIZE = 124,
    MTIME = 136,
    CHECKSUM = 148,
    TYPE = 156,
    MAGIC = 257,
    OWNER = 265
};

void stk_tar_header(const char *name, uint64_t n, uint8_t out[STK_TAR_BLOCK])
{
    char *p = (char *)out;
    unsigned sum = 0;
    memset(out, 0, STK_TAR_BLOCK);
    snprintf(p, STK_TAR_NAME, "%s", name);
    snprintf(p + MODE, 8, "%07o", 0644);
    snprintf(p + UID, 8, "%07o", 0);
    snprintf(p + GID, 8, "%07o", 0);
    snprintf(p + SIZE, 12, "%011llo", (unsigned long long)n & 077777777777ULL);
    snprintf(p + MTIME, 12, "%011o", 0); /* the same data make the same bytes */
    memset(p + CHECKSUM, ' ', 8);
    p[TYPE] = '0';
    memcpy(p + MAGIC, "ustar\00000", 8);
    memcpy(p + OWNER, "root", 4);
    memcpy(p + OWNER + 32, "root", 4);
    for (int i = 0; i < STK_TAR_BLOCK; i++)
        sum += out[i];
    snprintf(p + CHECKSUM, 8, "%06o", sum & 0777777);
}
