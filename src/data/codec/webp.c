/* WebP through libwebp, lossy and lossless: the pixels of PIL, which calls the same library. Transparency is dropped
 * and grey made as for PNG. Of an animation there is no one picture, and so it is refused.
 *
 * The library has no hook for its memory: what it takes is charged before it is called, by the forms of file.
 */
#include "data/codec/webp.h"

#include "base/error.h"

#ifdef STK_HAS_WEBP

#include <stdlib.h>

#include <webp/decode.h>

#include "base/memory.h"

static stk_status fail_code(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY: return stk_fail(STK_NO_MEMORY, "cannot allocate memory for a WebP");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA: return stk_fail(STK_CORRUPT, "truncated WebP");
    case VP8_STATUS_UNSUPPORTED_FEATURE: return stk_fail(STK_UNSUPPORTED, "a WebP of an unknown form");
    default: return stk_fail(STK_CORRUPT, "damaged WebP");
    }
}

static stk_status read_features(stk_span encoded, WebPBitstreamFeatures *out)
{
    VP8StatusCode code = WebPGetFeatures(encoded.data, encoded.n, out);
    if (code != VP8_STATUS_OK) return fail_code(code);
    if (out->has_animation) return stk_fail(STK_UNSUPPORTED, "an animated WebP: only still pictures are read");
    return STK_OK;
}

stk_status stk_webp_size(stk_span encoded, int64_t *height, int64_t *width)
{
    WebPBitstreamFeatures features;
    STK_RETURN_IF_ERROR(read_features(encoded, &features));
    *height = features.height;
    *width = features.width;
    return STK_OK;
}

/* What the library takes, at most, for files as encoders write them: a lossless picture is 32 bits a pixel with some
 * rows next to it; a lossy one some rows, of macroblocks and of what is around them. Transparency, which is decoded
 * though it is dropped, is a plane, made of a lossless picture. */
static size_t library_bytes(const WebPBitstreamFeatures *f)
{
    size_t n_pixels = (size_t)f->width * (size_t)f->height, row = (size_t)f->width * 4,
           n = ((size_t)1 << 20) + 64 * row;
    if (f->format == 2) return n + 4 * n_pixels;
    return f->has_alpha ? n + 2 * n_pixels + 4 * n_pixels : n;
}

static stk_status decode_rgb(stk_span encoded, int64_t height, int64_t width, uint8_t *rgb)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return stk_fail(STK_INTERNAL, "libwebp is of another version than its header");
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = rgb;
    config.output.u.RGBA.stride = (int)width * 3;
    config.output.u.RGBA.size = (size_t)height * (size_t)width * 3;
    VP8StatusCode code = WebPDecode(encoded.data, encoded.n, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? STK_OK : fail_code(code);
}

stk_status stk_webp_decode(stk_span encoded, int64_t height, int64_t width, int channels, uint8_t *dst)
{
    WebPBitstreamFeatures features;
    stk_block rgb = {0};
    stk_status status;
    size_t n_pixels = (size_t)height * (size_t)width;
    STK_RETURN_IF_ERROR(read_features(encoded, &features));
    if (features.height != height || features.width != width)
        return stk_fail(STK_INVALID, "a WebP of %d x %d pixels", features.height, features.width);
    size_t charged = library_bytes(&features);
    STK_RETURN_IF_ERROR(stk_memory_charge(stk_memory_in_use(), charged));
    if (channels == 1 && !stk_block_get(&rgb, 3 * n_pixels)) STK_TRY(STK_NO_MEMORY); /* with its limit in the text */
    STK_TRY(decode_rgb(encoded, height, width, channels == 1 ? rgb.data : dst));
    if (channels == 1) stk_image_make_grey(rgb.data, dst, n_pixels);
done:
    stk_block_free(&rgb);
    stk_memory_release(stk_memory_in_use(), charged);
    return status;
}

#else

static stk_status fail_missing(void)
{
    return stk_fail(STK_UNSUPPORTED, "a WebP file, and this build of Stoker has no libwebp (Debian: libwebp-dev)");
}

stk_status stk_webp_size(stk_span encoded, int64_t *height, int64_t *width)
{
    (void)encoded, (void)height, (void)width;
    return fail_missing();
}

stk_status stk_webp_decode(stk_span encoded, int64_t height, int64_t width, int channels, uint8_t *dst)
{
    (void)encoded, (void)height, (void)width, (void)channels, (void)dst;
    return fail_missing();
}

#endif
