/* See source/video_scale.h. */
#ifdef STK_HAS_VIDEO
#include "data/source/video_scale.h"

#include <inttypes.h>

#include "base/error.h"

void stk_video_scaler_free(stk_video_scaler *scaler)
{
    if (scaler->context) scaler->av->sws_freeContext(scaler->context);
    *scaler = (stk_video_scaler){0};
}

/* swscale's own number of a colour space; BT.601 where nothing is said. */
static int space_of(const AVFrame *frame)
{
    bool known = frame->colorspace != AVCOL_SPC_UNSPECIFIED && frame->colorspace != AVCOL_SPC_RGB &&
                 frame->colorspace >= 0 && frame->colorspace <= AVCOL_SPC_BT2020_NCL;
    return known ? (int)frame->colorspace : SWS_CS_DEFAULT;
}

static stk_status make_scaler(const stk_video_stream *stream, stk_video_scaler *wanted)
{
    const stk_video_calls *av = stream->av;
    int flags = SWS_BILINEAR | SWS_FULL_CHR_H_INT | SWS_ACCURATE_RND | SWS_BITEXACT;
    wanted->context =
        av->sws_getContext(wanted->width, wanted->height, (enum AVPixelFormat)wanted->format, (int)wanted->to_width,
                           (int)wanted->to_height, AV_PIX_FMT_RGB24, flags, NULL, NULL, NULL);
    if (!wanted->context)
        return stk_fail(STK_CORRUPT, "its pixels cannot be made RGB of %" PRId64 " x %" PRId64, wanted->to_height,
                        wanted->to_width);
    /* -1: formats like RGB have no such details. */
    (void)av->sws_setColorspaceDetails(wanted->context, av->sws_getCoefficients(wanted->space), wanted->range,
                                       av->sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    return STK_OK;
}

stk_status stk_video_scale(stk_video_scaler *scaler, const stk_video_stream *stream, int64_t height, int64_t width,
                           bool same, uint8_t *dst)
{
    const AVFrame *frame = stream->frame;
    stk_video_scaler wanted = {.av = stream->av,
                               .format = frame->format,
                               .height = frame->height,
                               .width = frame->width,
                               .space = space_of(frame),
                               .range = frame->color_range == AVCOL_RANGE_JPEG,
                               .to_height = height,
                               .to_width = width};
    if (same && (frame->height != height || frame->width != width))
        return stk_fail(STK_CORRUPT, "it is %d x %d, the file says %" PRId64 " x %" PRId64, frame->height, frame->width,
                        height, width);
    bool fits = scaler->context && scaler->format == wanted.format && scaler->height == wanted.height &&
                scaler->width == wanted.width && scaler->space == wanted.space && scaler->range == wanted.range &&
                scaler->to_height == height && scaler->to_width == width;
    if (!fits) {
        stk_video_scaler_free(scaler);
        STK_RETURN_IF_ERROR(make_scaler(stream, &wanted));
        *scaler = wanted;
    }
    uint8_t *planes[4] = {dst, NULL, NULL, NULL};
    int strides[4] = {(int)width * 3, 0, 0, 0};
    int n = scaler->av->sws_scale(scaler->context, (const uint8_t *const *)frame->data, frame->linesize, 0,
                                  frame->height, planes, strides);
    return n == height ? STK_OK : stk_fail(STK_CORRUPT, "its pixels cannot be made RGB");
}

#endif
