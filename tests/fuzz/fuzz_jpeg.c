/* JPEG from memory: sizes, then the pixels, in colour and in grey, upright as EXIF says.
 *
 * covers: data/codec/jpeg.c data/codec/exif.c data/codec/image.c data/codec/jpeg_errors.c
 */
#include <stdlib.h>

#include "data/codec/exif.h"
#include "data/codec/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PIXELS = 4 << 20 }; /* A few bytes may ask for a large image, which is slow and finds nothing more. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_span encoded = {data, size};
    int64_t height, width;
    int orientation = stk_exif_orientation(encoded);
    if (orientation < 1 || orientation > 8) abort();
    if (stk_image_format_of(encoded) != STK_IMAGE_JPEG || stk_image_size(encoded, &height, &width) != STK_OK) return 0;
    if (height * width > MOST_PIXELS) return 0;
    for (int channels = 1; channels <= 3; channels += 2) {
        uint8_t *pixels = malloc((size_t)(height * width * channels));
        uint8_t *upright = malloc((size_t)(height * width * channels));
        if (pixels && upright && stk_image_decode(encoded, channels, pixels) == STK_OK && orientation > 1)
            stk_exif_turn(orientation, pixels, height, width, channels, upright);
        free(pixels);
        free(upright);
    }
    return 0;
}
