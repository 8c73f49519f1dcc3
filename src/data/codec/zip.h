/* ZIP archives as NumPy's .npz has them (PKWARE APPNOTE 6.3): members stored or deflated, large ones too (zip64). Not
 * here: encryption, several disks. Every place and size is checked against the file before it is used; fuzzed.
 * Threads: any. */
#ifndef STK_DATA_CODEC_ZIP_H
#define STK_DATA_CODEC_ZIP_H

#include "base/input.h"

typedef struct stk_zip_member {
    char *name;
    uint64_t header_at; /* of its local header */
    uint64_t packed, n; /* bytes in the file, and unpacked */
    uint32_t crc;       /* CRC32 of the unpacked bytes */
    bool deflated;
} stk_zip_member;

typedef struct stk_zip {
    stk_zip_member *member;
    size_t n_members;
} stk_zip;

/* Free *out with stk_zip_free, after an error too. Texts do not name the file. */
stk_status stk_zip_open(const stk_input *input, stk_zip *out);
void stk_zip_free(stk_zip *zip);
/* Where the member's bytes begin in the file. */
stk_status stk_zip_locate(const stk_input *input, const stk_zip_member *member, uint64_t *at);
/* All of the member, its CRC checked. dst: member->n bytes. */
stk_status stk_zip_read(const stk_input *input, const stk_zip_member *member, uint8_t *dst);

#endif
