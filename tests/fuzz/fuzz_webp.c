/* WebP from memory: sizes, then the pixels, in colour and in grey.
 *
 * covers: data/codec/webp.c
 */
#include <stdlib.h>

#include "data/codec/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PIXELS = 4 << 20 }; /* A few bytes may ask for a large image, which is slow and finds nothing more. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_span encoded = {data, size};
    int64_t height, width;
    if (stk_image_format_of(encoded) != STK_IMAGE_WEBP || stk_image_size(encoded, &height, &width) != STK_OK) return 0;
    if (height * width > MOST_PIXELS) return 0;
    for (int channels = 1; channels <= 3; channels += 2) {
        uint8_t *pixels = malloc((size_t)(height * width * channels));
        if (pixels) (void)stk_image_decode(encoded, channels, pixels);
        free(pixels);
    }
    return 0;
}
