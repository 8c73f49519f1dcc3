/* The source `video` of a recipe. See recipe/build.h and stoker/data/video.h. */
#include "stoker/data/video.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "recipe/build.h"

static stk_status read_size(const stk_yaml_node *source, stk_video_config *config)
{
    const stk_yaml_node *size = stk_yaml_get(source, "size");
    if (!size) return STK_OK;
    if (size->n_children != 2) return stk_yaml_fail(size, "a size has two sides: [height, width]");
    config->height = size->child->integer;
    config->width = size->child->next->integer;
    return STK_OK;
}

static stk_status read_labels(const stk_yaml_node *source, stk_video_config *config)
{
    const stk_yaml_node *by = stk_yaml_get(source, "by"), *labels = stk_yaml_get(source, "labels");
    if (by && labels) return stk_yaml_fail(source, "'by' and 'labels' exclude each other");
    config->labels = by ? STK_LABELS_BY_FOLDER : labels ? STK_LABELS_FROM_FILE : STK_LABELS_NONE;
    config->labels_path = labels ? labels->text : NULL;
    return STK_OK;
}

stk_status stk_build_video(const stk_yaml_node *source, stk_dataset **out)
{
    const stk_yaml_node *n_clips = stk_yaml_get(source, "per_video");
    const char **paths;
    stk_video_config config = {.n_frames = stk_yaml_get(source, "frames")->integer,
                               .stride = stk_yaml_get(source, "stride")->integer,
                               .clips = stk_yaml_is(source, "clips", "random")   ? STK_CLIPS_RANDOM
                                        : stk_yaml_is(source, "clips", "middle") ? STK_CLIPS_MIDDLE
                                                                                 : STK_CLIPS_GRID,
                               .n_clips = n_clips ? n_clips->integer : 0,
                               .short_videos = stk_yaml_is(source, "short", "fail")     ? STK_SHORT_FAIL
                                               : stk_yaml_is(source, "short", "repeat") ? STK_SHORT_REPEAT
                                                                                        : STK_SHORT_LEAVE_OUT};
    STK_RETURN_IF_ERROR(read_size(source, &config));
    STK_RETURN_IF_ERROR(read_labels(source, &config));
    STK_RETURN_IF_ERROR(stk_build_list(stk_yaml_get(source, "files"), &paths, &config.n_paths));
    config.paths = paths;
    *out = stk_dataset_video(&config);
    free(paths);
    return STK_OK;
}
