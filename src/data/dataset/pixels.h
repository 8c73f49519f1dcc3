/* Images whose last stage turns u8 pixels into f32, each by a factor and a term of its channel: whoever computes with
 * them can do that stage itself, and take a quarter of the bytes. Threads: any.
 */
#ifndef STK_DATA_DATASET_PIXELS_H
#define STK_DATA_DATASET_PIXELS_H

#include "data/dataset/dataset.h"

typedef struct stk_pixels {
    int i_field;
    int n;                                            /* channels, the image's last side */
    float a[STK_VIEW_CHANNELS], b[STK_VIEW_CHANNELS]; /* pixel x of channel c becomes x * a[c] + b[c] */
} stk_pixels;

/* False, and *out empty, where the field's stages do not end so. */
bool stk_pixels_find(const stk_dataset *dataset, const char *field, stk_pixels *out);
/* The data set without that stage. It borrows everything from dataset, which stays as it is: free() it. NULL when out
 * of memory. */
stk_dataset *stk_pixels_cut(const stk_dataset *dataset, const stk_pixels *pixels);

#endif
