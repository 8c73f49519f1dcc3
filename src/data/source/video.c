/* What a recipe says of the source video, which is in videos.c. See stoker/data/video.h. */
#include "stoker/data/video.h"

#include <stdlib.h>

#include "base/error.h"
#include "data/source/keys.h"
#include "data/source/records.h"
#include "data/source/source_list.h"

static const char *const clip_words[] = {
    [STK_CLIPS_RANDOM] = "random", [STK_CLIPS_MIDDLE] = "middle", [STK_CLIPS_GRID] = "grid", NULL};
static const char *const short_words[] = {
    [STK_SHORT_FAIL] = "fail", [STK_SHORT_LEAVE_OUT] = "leave_out", [STK_SHORT_REPEAT] = "repeat", NULL};
static const stk_key keys[] = {
    STK_SOURCE_PATHS("files", "Video files; patterns stand for their matches by name."),
    {.name = "frames", .type = STK_KEY_INT, .least = 1, .most = 65536, .required = true, .doc = "Of a clip."},
    {.name = "stride",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 1,
     .most = 65536,
     .doc = "From frame to frame of a clip: 2 takes every other one."},
    {.name = "clips",
     .type = STK_KEY_WORD,
     .words = clip_words,
     .default_value = "random",
     .doc = "Where they start: drawn again in each epoch, in the middle, or one after the other over the whole video."},
    {.name = "per_video",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "Clips of each video in an epoch. Default: 1 random one; of a grid, as many as cover the video, and with "
            "per_video that many at equal distances."},
    {.name = "size",
     .type = STK_KEY_LIST,
     .element = &stk_source_side_key,
     .doc = "[height, width] that frames are scaled to. Default: as they are; then all videos have one size."},
    {.name = "short",
     .type = STK_KEY_WORD,
     .words = short_words,
     .default_value = "fail",
     .doc = "What becomes of videos shorter than a clip; repeat: their last frame is repeated."},
    STK_SOURCE_BY_FOLDER,
    STK_SOURCE_LABELS,
    STK_KEY_END};

static stk_status read_size(const stk_yaml_node *settings, stk_video_config *config)
{
    const stk_yaml_node *size = stk_yaml_get(settings, "size");
    if (!size) return STK_OK;
    if (size->n_children != 2) return stk_yaml_fail(size, "a size has two sides: [height, width]");
    config->height = size->child->integer;
    config->width = size->child->next->integer;
    return STK_OK;
}

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    const char **paths;
    stk_video_config config = {.n_frames = stk_yaml_int(settings, "frames", 0),
                               .stride = stk_yaml_int(settings, "stride", 0),
                               .clips = (stk_clips)stk_yaml_word(settings, "clips", clip_words),
                               .n_clips = stk_yaml_int(settings, "per_video", 0),
                               .short_videos = (stk_short_videos)stk_yaml_word(settings, "short", short_words)};
    STK_RETURN_IF_ERROR(read_size(settings, &config));
    STK_RETURN_IF_ERROR(stk_source_read_labels(settings, &config.labels, &config.labels_path));
    STK_RETURN_IF_ERROR(stk_yaml_texts(stk_yaml_get(settings, "files"), &paths, &config.n_paths));
    config.paths = paths;
    stk_status status = stk_yaml_locate(settings, stk_source_open_videos(&config, out));
    free(paths);
    return status;
}

const stk_source_kind stk_source_kind_video = {
    .key = {.name = "video",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "Clips of video files, the field clip [T,H,W,3]; decoded from the key frame before them."},
    .open = open_settings};
