/* One video file: its index, and frames by number. See stoker/data/video.h.
 *
 * Threads: an index is read by any number at once; a reader belongs to one thread.
 */
#ifndef STK_DATA_SOURCE_VIDEO_FILE_H
#define STK_DATA_SOURCE_VIDEO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

/* Frame i is shown at time[i]; key[] are the times of the packets that decoding may start at. Times are in the stream's
 * own unit. */
typedef struct stk_video_index {
    char *path;          /* owned */
    char *problem;       /* owned: why nothing of the file can be read; NULL: it can */
    uint64_t file_bytes; /* of the state that it is of */
    int64_t file_mtime_ns;
    int64_t height, width;
    int64_t n_frames;
    int64_t n_whole; /* frames behind them are missing: the file is cut short */
    int64_t n_ahead; /* packets that may come before an earlier one in time: how far the decoder reorders */
    int64_t *time;   /* [n_whole], owned, ascending; NULL: the file gives no times */
    int64_t *key;    /* [n_keys], owned, ascending, the first at most time[0]; NULL: only the start */
    int64_t n_keys;
} stk_video_index;

/* From the side file, or from the packets. A damaged file is no error here: see problem. *was_stale is only ever set.
 */
stk_status stk_video_index_open(const char *path, stk_video_index *out, bool *was_stale);
void stk_video_index_close(stk_video_index *index); /* accepts one that is all zero */
/* A side file's payload, of this format. False for one that no run of ours has written; *v, all zero before, is to be
 * closed in any case. Fuzzed. */
enum { STK_VIDEO_INDEX_HEAD = 8 /* numbers before the times */ };
bool stk_video_index_parse(const uint8_t *payload, size_t n_bytes, int64_t format, stk_video_index *v);

/* One open file with its decoder, kept between reads; NULL at first. */
typedef struct stk_video_reader stk_video_reader;

/* Frames from, from + stride, ..., as RGB [n,height,width,3]; those past the last are the last again. dst has
 * STK_VIDEO_SLACK bytes more, which may be written to. STK_CORRUPT names the frame, not the file. */
enum { STK_VIDEO_SLACK = 256 };
typedef struct stk_video_clip {
    int64_t from, n, stride, height, width;
} stk_video_clip;
stk_status stk_video_read(stk_video_reader **reader, const stk_video_index *index, const stk_video_clip *clip,
                          uint8_t *dst);
void stk_video_reader_free(stk_video_reader *reader);

#endif
