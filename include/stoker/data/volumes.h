/* Volumes: windows of 3-D arrays, one array a file, read without the rest of it. NIfTI (.nii, .nii.gz) and NumPy
 * (.npy).
 *
 * A file is [D,H,W] or [D,H,W,C] of NumPy; or NIfTI, whose x is the last side: [z,y,x], and each further volume in it a
 * channel. A field is [d,h,w,C], C being 1 where there are no channels.
 */
#ifndef STOKER_DATA_VOLUMES_H
#define STOKER_DATA_VOLUMES_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_volume_field {
    const char *name;         /* "image" */
    const char *const *paths; /* files and patterns; all of them together sorted by name */
    int n_paths;
    stk_dtype dtype; /* STK_F32: scaled as the file says. STK_U8, STK_I32: of labels; numbers that are not whole or do
                        not fit are an error of the record */
} stk_volume_field;

typedef enum stk_volume_windows {
    STK_WINDOWS_RANDOM, /* drawn by key, again in each epoch */
    STK_WINDOWS_MIDDLE,
    STK_WINDOWS_GRID /* side by side, so that every voxel is in one; the last of a side is moved inside */
} stk_volume_windows;

typedef struct stk_volumes_config {
    const stk_volume_field *fields; /* number i of one field belongs to number i of the others, of equal sides */
    int n_fields;
    int64_t window[3]; /* d, h, w; all 0: whole volumes */
    stk_volume_windows windows;
    int64_t n_windows; /* random ones of each volume in an epoch; 0: 1 */
    bool canonical;    /* NIfTI: turned so that z, y, x go up, to the front and to the right (the nearest to RAS+) */
} stk_volumes_config;

/* Opening reads every header. .nii.gz is unpacked once, as a whole, into the cache folder. A volume smaller than the
 * window is an error. config is borrowed for the call. */
STK_API stk_dataset *stk_dataset_volumes(const stk_volumes_config *config);

/* What the header of a volume says. */
typedef struct stk_volume_info {
    stk_shape shape;     /* [D,H,W,C] */
    double slope, inter; /* 1 and 0 where nothing is scaled */
    double affine[3][4]; /* NIfTI: of voxel (x, y, z, 1), in millimetres, to the right, to the front, up; else 1 */
} stk_volume_info;
STK_API stk_status stk_volume_get_info(const char *path, stk_volume_info *out);

#ifdef __cplusplus
}
#endif
#endif
