/* One volume in one file, NIfTI or NumPy, and windows of it. Threads: once open, any number read at once. */
#ifndef STK_DATA_SOURCE_VOLUME_FILE_H
#define STK_DATA_SOURCE_VOLUME_FILE_H

#include "data/codec/nifti.h"
#include "data/common/item.h"

typedef struct stk_volume_file {
    char *path;  /* as it was given, for messages; owned */
    char *place; /* where its bytes are: path, or the unpacked file; owned */
    stk_number number;
    bool swapped;
    int64_t side[3]; /* D, H, W as they are given out */
    int64_t n_channels;
    int axis[3];    /* which of the file's z, y, x is side i */
    bool turned[3]; /* by side i: it runs against the file's */
    int64_t file_side[3];
    bool channels_last; /* in the file */
    uint64_t data_at;
    double slope, inter, affine[3][4];
} stk_volume_file;

/* Reads the header. */
stk_status stk_volume_open(const char *path, bool canonical, stk_volume_file *out);
void stk_volume_close(stk_volume_file *volume); /* accepts a zeroed one */

/* The window [size] from `from` on, in given-out order, as f32, u8 or i32 to dst [d,h,w,C]. */
stk_status stk_volume_read(const stk_volume_file *volume, const int64_t from[3], const int64_t size[3], stk_dtype dtype,
                           stk_scratch *scratch, void *dst);

#endif
