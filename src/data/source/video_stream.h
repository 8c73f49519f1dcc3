/* The video stream of a file: its packets, and the frames that come of them. Only where STK_HAS_VIDEO is set.
 * Threads: one at a time. */
#ifndef STK_DATA_SOURCE_VIDEO_STREAM_H
#define STK_DATA_SOURCE_VIDEO_STREAM_H

#include "base/input.h"
#include "data/source/video_libs.h"

typedef struct stk_video_stream {
    const stk_video_calls *av;
    stk_input input;
    uint64_t at; /* of the input */
    stk_status io_status;
    AVIOContext *io;
    AVFormatContext *format;
    AVStream *stream;
    AVCodecContext *codec; /* NULL until stk_video_decoder_open */
    AVPacket *packet;
    AVFrame *frame;
} stk_video_stream;

/* Opens the file; on errors too stk_video_stream_close. STK_CORRUPT: no video that can be read. */
stk_status stk_video_stream_open(const char *path, stk_video_stream *s);
void stk_video_stream_close(stk_video_stream *s); /* accepts one that is all zero */
stk_status stk_video_decoder_open(stk_video_stream *s, int64_t n_ahead);

/* The next packet of the stream into s->packet. *end: there is none. STK_CORRUPT: the file is cut short or damaged. */
stk_status stk_video_next_packet(stk_video_stream *s, bool *end);
/* Gives the decoder s->packet, or with `end` says that there are no more. STK_CORRUPT: it cannot be decoded. */
stk_status stk_video_send(stk_video_stream *s, bool end);
/* *got: a frame is in s->frame. Neither: the decoder needs a packet. */
stk_status stk_video_receive(stk_video_stream *s, bool *got, bool *end);
/* The status of a call of FFmpeg's that gave a negative answer: "it cannot be decoded: invalid data". */
stk_status stk_video_fail(const stk_video_stream *s, int answer, const char *what);

#endif
