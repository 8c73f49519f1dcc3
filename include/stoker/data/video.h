/* Video files: clips of frames, decoded without the rest of the file.
 *
 * A file is whatever libavformat opens of MP4, MOV, Matroska, WebM, AVI, MPEG and FLV. Frames are numbered from 0 in
 * the order in which they are shown. An index of their times and of the key frames is made once a file, without
 * decoding, and kept next to it (or in the cache folder, as for stk_dataset_tfrecord). To read a clip, the file is
 * entered at the last key frame before it; frames that nothing else needs are not decoded. A file that gives its frames
 * no times (B frames in AVI) has no such index: it is decoded from its start each time, and exact all the same.
 *
 * The libraries of FFmpeg are loaded when the first video is opened, and told to print nothing (av_log_set_level)
 * unless the program has chosen a level. Where they are missing, opening is STK_UNSUPPORTED.
 */
#ifndef STOKER_DATA_VIDEO_H
#define STOKER_DATA_VIDEO_H

#include "stoker/data/dataset.h"
#include "stoker/data/sources.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_clips {
    STK_CLIPS_RANDOM, /* starts drawn by key, again in each epoch */
    STK_CLIPS_MIDDLE,
    STK_CLIPS_GRID /* one after the other, the last moved back to end with the video; or n_clips from start to end */
} stk_clips;

/* What becomes of a video with fewer frames than a clip spans. */
typedef enum stk_short_videos {
    STK_SHORT_FAIL,      /* opening fails and names it */
    STK_SHORT_LEAVE_OUT, /* it has no clips; stk_dataset_note says how many are left out */
    STK_SHORT_REPEAT     /* its last frame is repeated */
} stk_short_videos;

typedef struct stk_video_config {
    const char *const *paths; /* files and patterns; all of them together sorted by name */
    int n_paths;
    int64_t n_frames; /* of a clip */
    int64_t stride;   /* from frame to frame of a clip; 0: 1 */
    stk_clips clips;
    int64_t n_clips; /* of each video in an epoch. RANDOM: 0 is 1. GRID: 0 is as many as cover the video */
    int64_t height,
        width; /* frames are scaled to this (bilinear, of swscale); 0, 0: as they are, equal in all videos */
    stk_short_videos short_videos;
    stk_labels labels;       /* as for stk_dataset_files */
    const char *labels_path; /* for STK_LABELS_FROM_FILE, else NULL */
} stk_video_config;

/* Fields: "clip" u8 [T,H,W,3], RGB, converted as the file says (BT.601 where it says nothing) and not turned; and with
 * labels "label" i32 []. A file that is damaged or cut short is an error of the records that need what is missing.
 * config is borrowed for the call. Each thread that reads has one decoder of one thread; the index is 8 bytes a frame.
 */
STK_API stk_dataset *stk_dataset_video(const stk_video_config *config);

typedef struct stk_video_info {
    int64_t n_frames, n_whole; /* whole < frames: the file is cut short */
    int64_t n_keys;            /* places to enter at */
    int64_t height, width;
    bool has_times; /* false: decoded from the start for each clip */
} stk_video_info;
/* What the index of a file says; makes it where there is none. */
STK_API stk_status stk_video_get_info(const char *path, stk_video_info *out);

#ifdef __cplusplus
}
#endif
#endif
