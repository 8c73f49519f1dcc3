/* The orientation in a JPEG's EXIF block (JEITA CP-3451, tag 0x0112), and turning pixels by it. Nothing else of EXIF.
 * Threads: any. */
#ifndef STK_DATA_CODEC_EXIF_H
#define STK_DATA_CODEC_EXIF_H

#include "base/file.h"

/* 1 to 8; 1, as it is, where there is none, or none that can be read. Any bytes will do. */
int stk_exif_orientation(stk_span encoded);
/* True when height and width change places. */
bool stk_exif_swaps_sides(int orientation);
/* src [height, width, channels] -> dst upright; sides swapped where stk_exif_swaps_sides. */
void stk_exif_turn(int orientation, const uint8_t *src, int64_t height, int64_t width, int channels, uint8_t *dst);

#endif
