/* JPEG to baseline JPEG (stoker pack --baseline): what comes out is read, and has the same pixels.
 *
 * covers: data/codec/jpeg_transcode.c
 */
#include <stdlib.h>
#include <string.h>

#include "data/codec/image.h"
#include "data/codec/jpeg.h"
#include "data/codec/jpeg_transcode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PIXELS = 1 << 20 }; /* A few bytes may ask for a large image, which is slow and finds nothing more. */

/* Both through the library, so that it is not our own decoder that is tested. */
static void compare(stk_span before, stk_span after, int64_t height, int64_t width)
{
    int64_t height_after, width_after;
    size_t n = (size_t)(height * width * 3);
    uint8_t *a = malloc(n), *b = malloc(n);
    stk_rect whole = {0, 0, height, width};
    if (!a || !b) goto done;
    if (stk_jpeg_decode_by_library(before, height, width, &whole, 3, a) != STK_OK) goto done;
    if (stk_jpeg_size(after, &height_after, &width_after) != STK_OK) abort();
    if (height_after != height || width_after != width) abort();
    if (stk_jpeg_decode_by_library(after, height, width, &whole, 3, b) != STK_OK) abort();
    if (memcmp(a, b, n)) abort();
done:
    free(a);
    free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_span encoded = {data, size};
    int64_t height, width;
    uint8_t *made;
    size_t n;
    if (stk_image_format_of(encoded) != STK_IMAGE_JPEG || stk_image_size(encoded, &height, &width) != STK_OK) return 0;
    if (height * width > MOST_PIXELS || height * width == 0) return 0;
    if (stk_jpeg_transcode(encoded, &made, &n) != STK_OK) return 0;
    compare(encoded, (stk_span){made, n}, height, width);
    free(made);
    return 0;
}
