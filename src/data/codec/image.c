#include "data/codec/image.h"

#include <string.h>

#include "base/error.h"
#include "data/codec/jpeg.h"
#include "data/codec/png.h"
#include "data/codec/webp.h"

enum { MOST_SIDE = 65535, MOST_PIXELS = 1 << 28 };

stk_image_format stk_image_format_of(stk_span encoded)
{
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (encoded.n >= 8 && !memcmp(encoded.data, png, 8)) return STK_IMAGE_PNG;
    if (encoded.n >= 3 && encoded.data[0] == 0xFF && encoded.data[1] == 0xD8 && encoded.data[2] == 0xFF)
        return STK_IMAGE_JPEG;
    if (encoded.n >= 12 && !memcmp(encoded.data, "RIFF", 4) && !memcmp(encoded.data + 8, "WEBP", 4))
        return STK_IMAGE_WEBP;
    return STK_IMAGE_UNKNOWN;
}

static stk_status fail_unknown(stk_span encoded)
{
    return stk_fail(STK_CORRUPT, encoded.n ? "not a JPEG, PNG or WebP file" : "an empty file");
}

bool stk_image_can_be(int64_t height, int64_t width)
{
    return height >= 1 && width >= 1 && height <= MOST_SIDE && width <= MOST_SIDE && height * width <= MOST_PIXELS;
}

stk_status stk_image_size(stk_span encoded, int64_t *height, int64_t *width)
{
    *height = *width = 0;
    switch (stk_image_format_of(encoded)) {
    case STK_IMAGE_JPEG: STK_RETURN_IF_ERROR(stk_jpeg_size(encoded, height, width)); break;
    case STK_IMAGE_PNG: STK_RETURN_IF_ERROR(stk_png_size(encoded, height, width)); break;
    case STK_IMAGE_WEBP: STK_RETURN_IF_ERROR(stk_webp_size(encoded, height, width)); break;
    default: return fail_unknown(encoded);
    }
    if (!stk_image_can_be(*height, *width))
        return stk_fail(STK_CORRUPT, "an image of %lld x %lld pixels cannot be right", (long long)*height,
                        (long long)*width);
    return STK_OK;
}

stk_status stk_image_decode(stk_span encoded, int channels, uint8_t *dst)
{
    int64_t height, width;
    STK_RETURN_IF_ERROR(stk_image_size(encoded, &height, &width));
    stk_image_format format = stk_image_format_of(encoded);
    if (format == STK_IMAGE_JPEG) return stk_jpeg_decode(encoded, height, width, channels, dst);
    if (format == STK_IMAGE_WEBP) return stk_webp_decode(encoded, height, width, channels, dst);
    return stk_png_decode(encoded, height, width, channels, dst);
}

/* The weights of ITU-R 601 in 1/65536, rounded; libpng's own conversion cuts fractions off. */
void stk_image_make_grey(const uint8_t *rgb, uint8_t *dst, size_t n_pixels)
{
    for (size_t i = 0; i < n_pixels; i++, rgb += 3)
        dst[i] = (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}
