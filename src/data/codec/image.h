/* JPEG, PNG and WebP: encoded bytes to u8 pixels [H,W,C], C 1 (grey) or 3 (RGB). JPEG pixels are those of libjpeg-turbo
 * (ISLOW, fancy upsampling: also those of PIL and OpenCV), by a decoder of our own where it can; PNG through libpng,
 * WebP through libwebp. A warning of libjpeg counts as corrupt. No files here: bytes in, arrays out. A part of a JPEG:
 * jpeg_crop.h. Threads: any; nothing is shared.
 */
#ifndef STK_DATA_CODEC_IMAGE_H
#define STK_DATA_CODEC_IMAGE_H

#include "base/file.h"

/* In pixels. */
typedef struct stk_rect {
    int64_t top, left, height, width;
} stk_rect;

typedef enum stk_image_format { STK_IMAGE_UNKNOWN, STK_IMAGE_JPEG, STK_IMAGE_PNG, STK_IMAGE_WEBP } stk_image_format;

/* By the first bytes, not by a name. */
stk_image_format stk_image_format_of(stk_span encoded);
/* Whether an image may be that large: sides of 1 to 65,535 and at most 2^28 pixels. */
bool stk_image_can_be(int64_t height, int64_t width);
/* Reads the header only. A size that no image can have is refused as corrupt. */
stk_status stk_image_size(stk_span encoded, int64_t *height, int64_t *width);
/* dst [height,width,channels] for the sizes that stk_image_size gives. */
stk_status stk_image_decode(stk_span encoded, int channels, uint8_t *dst);
/* u8 [n_pixels,3] -> u8 [n_pixels], as PIL does. */
void stk_image_make_grey(const uint8_t *rgb, uint8_t *dst, size_t n_pixels);
/* Quality 1-100; src [H,W,C]. Appends to a malloc'ed buffer that the caller frees. */
stk_status stk_jpeg_encode(const uint8_t *src, int64_t height, int64_t width, int channels, int quality, uint8_t **out,
                           size_t *n_bytes);
/* src [H,W,C], C 1 or 3. *out is malloc'ed. */
stk_status stk_png_encode(const uint8_t *src, int64_t height, int64_t width, int channels, uint8_t **out,
                          size_t *n_bytes);

#endif
