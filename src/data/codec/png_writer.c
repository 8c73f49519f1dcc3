/* Writing PNG through libpng. See codec/image.h. */
#include <stdlib.h>

#include <png.h>

#include "base/error.h"
#include "data/codec/image.h"

stk_status stk_png_encode(const uint8_t *src, int64_t height, int64_t width, int channels, uint8_t **out,
                          size_t *n_bytes)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    *out = NULL;
    *n_bytes = 0;
    if (height < 1 || width < 1 || height > 65535 || width > 65535 || (channels != 1 && channels != 3))
        return stk_fail(STK_INVALID, "a PNG of %lld x %lld pixels and %d channels cannot be made", (long long)height,
                        (long long)width, channels);
    png_alloc_size_t n = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *bytes = malloc(n);
    if (!bytes) return stk_fail_memory(n);
    if (!png_image_write_to_memory(&image, bytes, &n, 0, src, 0, NULL)) {
        free(bytes);
        return stk_fail(STK_INTERNAL, "cannot make a PNG: %s", image.message);
    }
    *out = bytes;
    *n_bytes = n;
    return STK_OK;
}
