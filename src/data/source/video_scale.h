/* Frames as RGB, of a size. Only where STK_HAS_VIDEO is set. Threads: one at a time. */
#ifndef STK_DATA_SOURCE_VIDEO_SCALE_H
#define STK_DATA_SOURCE_VIDEO_SCALE_H

#include "data/source/video_stream.h"

/* What frames were like when it was made: another frame, another scaler. Starts zeroed. */
typedef struct stk_video_scaler {
    const stk_video_calls *av;
    struct SwsContext *context;
    int format, height, width, space, range;
    int64_t to_height, to_width;
} stk_video_scaler;

/* stream->frame to dst, RGB [height,width,3]. same: frames must have this size already. The same bits on every
 * processor. */
stk_status stk_video_scale(stk_video_scaler *scaler, const stk_video_stream *stream, int64_t height, int64_t width,
                           bool same, uint8_t *dst);
void stk_video_scaler_free(stk_video_scaler *scaler);

#endif
