/* PNG; see image.h, which everything but codec/ uses. */
#ifndef STK_DATA_CODEC_PNG_H
#define STK_DATA_CODEC_PNG_H

#include "data/codec/image.h"

/* From the IHDR chunk; nothing is decoded. */
stk_status stk_png_size(stk_span encoded, int64_t *height, int64_t *width);
/* Instead of channels: one byte a pixel as it is stored, of a palette or of grey; colours and 16 bits are refused. */
enum { STK_PNG_STORED = 0 };
stk_status stk_png_decode(stk_span encoded, int64_t height, int64_t width, int channels, uint8_t *dst);

#endif
