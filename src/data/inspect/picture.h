/* One sample's image as a PNG file, its values turned back to what a screen shows. Threads: any. */
#ifndef STK_DATA_INSPECT_PICTURE_H
#define STK_DATA_INSPECT_PICTURE_H

#include "data/dataset/dataset.h"
#include "data/inspect/undo.h"

typedef struct stk_picture {
    stk_undo undo;
    stk_dtype dtype;
    int64_t height, width;
    int channels;
    bool planar;         /* [C,H,W] */
    size_t sample_bytes; /* of one image in a batch */
} stk_picture;

/* STK_UNSUPPORTED where the field is no u8 or f32 image of one or three channels, STK_NOT_FOUND where there is none. */
stk_status stk_picture_plan(const stk_dataset *dataset, const char *field, stk_picture *out);
/* image: as it lies in a batch. *png is malloc'ed. */
stk_status stk_picture_encode(const stk_picture *picture, const void *image, uint8_t **png, size_t *n_bytes);

#endif
