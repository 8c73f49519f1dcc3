/* FFmpeg's libraries, loaded when they are first needed: linked, their hundred libraries would make every start of the
 * program slower by a tenth of a second. Only where STK_HAS_VIDEO is set. Threads: any. */
#ifndef STK_DATA_SOURCE_VIDEO_LIBS_H
#define STK_DATA_SOURCE_VIDEO_LIBS_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>

#include "stoker/status.h"

/* X(library, function) */
#define STK_VIDEO_CALLS(X)                                                                                             \
    X(avutil, av_dict_free)                                                                                            \
    X(avutil, av_dict_set)                                                                                             \
    X(avutil, av_frame_alloc)                                                                                          \
    X(avutil, av_frame_free)                                                                                           \
    X(avutil, av_frame_unref)                                                                                          \
    X(avutil, av_freep)                                                                                                \
    X(avutil, av_log_get_level)                                                                                        \
    X(avutil, av_log_set_level)                                                                                        \
    X(avutil, av_malloc)                                                                                               \
    X(avutil, av_strerror)                                                                                             \
    X(avcodec, av_packet_alloc)                                                                                        \
    X(avcodec, av_packet_free)                                                                                         \
    X(avcodec, av_packet_unref)                                                                                        \
    X(avcodec, avcodec_alloc_context3)                                                                                 \
    X(avcodec, avcodec_find_decoder)                                                                                   \
    X(avcodec, avcodec_flush_buffers)                                                                                  \
    X(avcodec, avcodec_free_context)                                                                                   \
    X(avcodec, avcodec_get_name)                                                                                       \
    X(avcodec, avcodec_open2)                                                                                          \
    X(avcodec, avcodec_parameters_to_context)                                                                          \
    X(avcodec, avcodec_receive_frame)                                                                                  \
    X(avcodec, avcodec_send_packet)                                                                                    \
    X(avformat, av_find_best_stream)                                                                                   \
    X(avformat, av_read_frame)                                                                                         \
    X(avformat, av_seek_frame)                                                                                         \
    X(avformat, avformat_alloc_context)                                                                                \
    X(avformat, avformat_close_input)                                                                                  \
    X(avformat, avformat_find_stream_info)                                                                             \
    X(avformat, avformat_index_get_entries_count)                                                                      \
    X(avformat, avformat_open_input)                                                                                   \
    X(avformat, avio_alloc_context)                                                                                    \
    X(avformat, avio_context_free)                                                                                     \
    X(swscale, sws_freeContext)                                                                                        \
    X(swscale, sws_getCoefficients)                                                                                    \
    X(swscale, sws_getContext)                                                                                         \
    X(swscale, sws_scale)                                                                                              \
    X(swscale, sws_setColorspaceDetails)

/* __typeof__ keeps the types those of the headers that are compiled with. */
#define STK_VIDEO_POINTER(library, function) __typeof__(&function) function;
typedef struct stk_video_calls {
    STK_VIDEO_CALLS(STK_VIDEO_POINTER)
} stk_video_calls;

/* *out stays for good. STK_UNSUPPORTED, with a remedy, where a library is missing. */
stk_status stk_video_load(const stk_video_calls **out);

#endif
