/* Clips of videos. See stoker/data/video.h; video_file.h reads one. Record i is a clip of a video; where it starts is
 * arithmetic for a grid, and drawn by key for random ones. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "data/source/labels.h"
#include "data/source/open_many.h"
#include "data/source/paths.h"
#include "data/source/records.h"
#include "data/source/video_file.h"
#include "stoker/data/video.h"

enum { RNG_STAGE = (1 << 20) + 1 /* no chain has that many stages */ };

typedef struct videos_source {
    stk_source base;
    stk_names files;
    stk_file_labels labels;
    stk_video_index *video; /* [files.n] */
    int64_t *first;         /* [files.n + 1]: the first record of each video */
    stk_video_clip clip;
    stk_clips clips;
    int64_t n_clips;
} videos_source;

/* --- where clips lie --- */

static int64_t span_of(const videos_source *s)
{
    return (s->clip.n - 1) * s->clip.stride + 1;
}

/* Starts that a clip may have, but one. */
static int64_t room_of(const videos_source *s, int64_t i_video)
{
    int64_t room = s->video[i_video].n_frames - span_of(s);
    return room > 0 ? room : 0;
}

static int64_t count_clips(const videos_source *s, int64_t i_video)
{
    if (s->clips == STK_CLIPS_MIDDLE) return 1;
    if (s->n_clips > 0 || s->clips == STK_CLIPS_RANDOM) return s->n_clips > 0 ? s->n_clips : 1;
    return 1 + (room_of(s, i_video) + span_of(s) - 1) / span_of(s);
}

static int64_t find_video(const videos_source *s, int64_t i_record)
{
    int64_t low = 0, high = (int64_t)s->files.n;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (s->first[middle] <= i_record)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int64_t find_start(const videos_source *s, int64_t i_video, int64_t i_record, const stk_stage_key *key)
{
    int64_t room = room_of(s, i_video), i = i_record - s->first[i_video];
    if (s->clips == STK_CLIPS_RANDOM) {
        stk_rng rng = stk_rng_make(key->seed, key->epoch, (uint64_t)i_record, RNG_STAGE);
        return stk_rng_below(&rng, (uint32_t)(room + 1));
    }
    if (s->clips == STK_CLIPS_MIDDLE || s->n_clips == 1) return room / 2;
    if (s->n_clips > 1) return i * room / (s->n_clips - 1);
    return i * span_of(s) < room ? i * span_of(s) : room;
}

/* --- reading --- */

typedef struct reading {
    stk_video_reader *reader;
    stk_scratch out;
} reading;

static stk_status read_record(const stk_source *source, int64_t i_record, const stk_stage_key *key, void **work,
                              stk_item *item)
{
    const videos_source *s = (const videos_source *)source;
    int64_t i_video = find_video(s, i_record);
    stk_video_clip clip = s->clip;
    stk_field_type type = source->field[0].type;
    size_t n = stk_desc_bytes(type.desc);
    if (!*work) *work = calloc(1, sizeof(reading));
    reading *r = *work;
    if (!r) return stk_fail_memory(sizeof(*r));
    clip.from = find_start(s, i_video, i_record, key);
    uint8_t *dst = stk_scratch_get(&r->out, n + STK_VIDEO_SLACK);
    if (!dst) return STK_NO_MEMORY;
    STK_RETURN_IF_ERROR(stk_video_read(&r->reader, &s->video[i_video], &clip, dst));
    item[0] = (stk_item){type, dst, n};
    if (source->n_fields > 1)
        item[1] = (stk_item){source->field[1].type, &s->labels.label[i_video], sizeof(s->labels.label[0])};
    return STK_OK;
}

/* Every frame is decoded, at a size that costs little. */
static stk_status read_file(const stk_source *source, int64_t i_file, void **work, int64_t *n_bytes)
{
    enum { N = 8, SIDE = 16 };
    const videos_source *s = (const videos_source *)source;
    const stk_video_index *video = &s->video[i_file];
    uint8_t frames[N * SIDE * SIDE * 3 + STK_VIDEO_SLACK];
    if (!*work) *work = calloc(1, sizeof(reading));
    reading *r = *work;
    if (!r) return stk_fail_memory(sizeof(*r));
    *n_bytes = (int64_t)video->file_bytes;
    stk_video_clip clip = {.n = N, .stride = 1, .height = SIDE, .width = SIDE};
    do {
        STK_RETURN_IF_ERROR(stk_video_read(&r->reader, video, &clip, frames));
        clip.from += N;
    } while (clip.from < video->n_frames);
    return STK_OK;
}

static const char *path_of_file(const stk_source *source, int64_t i_file)
{
    return ((const videos_source *)source)->files.name[i_file];
}

static void free_work(const stk_source *source, void *work)
{
    reading *r = work;
    (void)source;
    stk_video_reader_free(r->reader);
    stk_scratch_free(&r->out);
    free(r);
}

static void name_record(const stk_source *source, int64_t i_record, uint64_t epoch, char *out, size_t out_bytes)
{
    const videos_source *s = (const videos_source *)source;
    int64_t i_video = find_video(s, i_record);
    (void)epoch;
    snprintf(out, out_bytes, "'%s', clip %" PRId64, s->files.name[i_video], i_record - s->first[i_video]);
}

static int64_t file_of(const stk_source *source, int64_t i_record)
{
    return find_video((const videos_source *)source, i_record);
}

static size_t held_bytes(const stk_source *source)
{
    const videos_source *s = (const videos_source *)source;
    size_t n = 0;
    for (size_t i = 0; i < s->files.n; i++) {
        const stk_video_index *v = &s->video[i];
        n += sizeof(*v) + 2 * strlen(s->files.name[i]) + (size_t)(v->n_keys + (v->time ? v->n_whole : 0)) * 8;
    }
    return n;
}

static void close_source(stk_source *source)
{
    videos_source *s = (videos_source *)source;
    for (size_t i = 0; s->video && i < s->files.n; i++)
        stk_video_index_close(&s->video[i]);
    free(s->video);
    free(s->first);
    stk_names_free(&s->files);
    stk_labels_free(&s->labels);
    free(s);
}

static const stk_source_class class_videos = {.name = "video",
                                              .read_keyed = read_record,
                                              .free_work = free_work,
                                              .name_keyed = name_record,
                                              .file_of = file_of,
                                              .read_file = read_file,
                                              .path_of_file = path_of_file,
                                              .held_bytes = held_bytes,
                                              .close = close_source};

/* --- opening --- */

static stk_status check_config(const stk_video_config *c)
{
    if (!c || c->n_paths < 1 || !c->paths) return stk_fail(STK_INVALID, "a source of videos needs files");
    if (c->n_frames < 1 || c->n_frames > 65536)
        return stk_fail(STK_INVALID, "a clip cannot have %" PRId64 " frames", c->n_frames);
    if (c->stride < 0 || c->stride > 65536)
        return stk_fail(STK_INVALID, "a stride of %" PRId64 " frames is not possible", c->stride);
    if (c->n_clips < 0 || c->n_clips > INT32_MAX) return stk_fail(STK_INVALID, "too many clips of a video");
    if ((unsigned)c->clips > STK_CLIPS_GRID || (unsigned)c->short_videos > STK_SHORT_REPEAT ||
        (unsigned)c->labels > STK_LABELS_FROM_FILE)
        return stk_fail(STK_INVALID, "there are no clips, short videos or labels of that kind");
    if ((c->height == 0) != (c->width == 0) || c->height < 0 || c->width < 0 || c->height > 16384 || c->width > 16384)
        return stk_fail(STK_INVALID, "frames cannot be %" PRId64 " x %" PRId64, c->height, c->width);
    if (c->labels == STK_LABELS_FROM_FILE && !c->labels_path)
        return stk_fail(STK_INVALID, "the file of labels is missing");
    return STK_OK;
}

typedef struct opening {
    videos_source *s;
    bool *was_stale; /* [files.n]: threads write their own */
} opening;

static stk_status open_video(void *user, size_t i)
{
    opening *o = user;
    return stk_video_index_open(o->s->files.name[i], &o->s->video[i], &o->was_stale[i]);
}

/* An index that is missing takes reading a whole file, so that threads are worth it on a disk, too. */
static stk_status open_videos(videos_source *s)
{
    opening o = {s, calloc(s->files.n, sizeof(bool))};
    size_t n_stale = 0;
    if (!o.was_stale) return stk_fail_memory(s->files.n);
    stk_status status = stk_open_many(s->files.n, true, open_video, &o);
    for (size_t i = 0; i < s->files.n; i++)
        n_stale += o.was_stale[i];
    if (n_stale > 0)
        snprintf(s->base.note, sizeof(s->base.note), "%zu indexes of videos were out of date and are rebuilt", n_stale);
    free(o.was_stale);
    return status;
}

/* All frames have the size of the first video that can be read, unless a size is asked for. */
static stk_status set_size(videos_source *s, int64_t height, int64_t width)
{
    const stk_video_index *first = NULL;
    for (size_t i = 0; i < s->files.n; i++) {
        const stk_video_index *v = &s->video[i];
        if (v->problem) continue;
        if (!first) first = v;
        if (height == 0 && (v->height != first->height || v->width != first->width))
            return stk_fail(STK_INVALID,
                            "'%s' is %" PRId64 " x %" PRId64 ", '%s' %" PRId64 " x %" PRId64 ": say which 'size' clips "
                            "are to have",
                            first->path, first->height, first->width, v->path, v->height, v->width);
    }
    if (!first) return stk_fail(STK_CORRUPT, "'%s': %s", s->files.name[0], s->video[0].problem);
    s->clip.height = height ? height : first->height;
    s->clip.width = width ? width : first->width;
    stk_shape shape = STK_SHAPE(s->clip.n, s->clip.height, s->clip.width, 3);
    s->base.field[0] = (stk_source_field){"clip", {STK_FIELD_ARRAY, stk_desc_make(STK_U8, shape)}};
    return stk_desc_check(s->base.field[0].type.desc);
}

static stk_status count_records(videos_source *s, stk_short_videos short_videos)
{
    int64_t n_left_out = 0;
    s->first = calloc(s->files.n + 1, sizeof(*s->first));
    if (!s->first) return stk_fail_memory(s->files.n * sizeof(*s->first));
    for (size_t i = 0; i < s->files.n; i++) {
        const stk_video_index *v = &s->video[i];
        bool is_short = !v->problem && v->n_frames < span_of(s);
        if (v->n_frames >= INT32_MAX) return stk_fail(STK_INVALID, "'%s' has too many frames", v->path);
        if (is_short && short_videos == STK_SHORT_FAIL)
            return stk_fail(STK_INVALID,
                            "'%s' has %" PRId64 " frames and a clip spans %" PRId64 ": take fewer frames or a smaller "
                            "stride, or say what 'short' videos become",
                            v->path, v->n_frames, span_of(s));
        bool is_out = is_short && short_videos == STK_SHORT_LEAVE_OUT;
        n_left_out += is_out;
        s->first[i + 1] = s->first[i] + (is_out ? 0 : count_clips(s, (int64_t)i));
    }
    s->base.n_records = s->first[s->files.n];
    if (s->base.n_records == 0) return stk_fail(STK_INVALID, "all videos are shorter than a clip");
    if (n_left_out > 0)
        snprintf(s->base.note, sizeof(s->base.note), "%" PRId64 " videos are shorter than a clip and left out",
                 n_left_out);
    return STK_OK;
}

static stk_status set_labels(videos_source *s, const stk_video_config *c)
{
    if (c->labels == STK_LABELS_NONE) return STK_OK;
    if (c->labels == STK_LABELS_BY_FOLDER) STK_RETURN_IF_ERROR(stk_labels_by_folder(&s->files, &s->labels));
    if (c->labels == STK_LABELS_FROM_FILE)
        STK_RETURN_IF_ERROR(stk_labels_from_file(&s->files, c->labels_path, &s->labels));
    s->base.n_fields = 2;
    s->base.field[1] = (stk_source_field){"label", {STK_FIELD_ARRAY, stk_desc_make(STK_I32, (stk_shape){0})}};
    s->base.class_names = (const char *const *)s->labels.class_name;
    s->base.n_classes = s->labels.n_classes;
    return STK_OK;
}

stk_status stk_source_open_videos(const stk_video_config *c, stk_source **out)
{
    stk_status status;
    STK_RETURN_IF_ERROR(check_config(c));
    videos_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    s->base = (stk_source){.class = &class_videos, .n_fields = 1, .varies = c->clips == STK_CLIPS_RANDOM};
    s->base.file_bytes = s->base.window_bytes = -1; /* clips are decoded */
    s->clip = (stk_video_clip){.n = c->n_frames, .stride = c->stride ? c->stride : 1};
    s->clips = c->clips;
    s->n_clips = c->n_clips;
    STK_TRY(stk_paths_expand(c->paths, c->n_paths, true, &s->files));
    s->base.n_files = (int64_t)s->files.n;
    if (!(s->video = calloc(s->files.n + 1, sizeof(*s->video))))
        STK_TRY(stk_fail_memory(s->files.n * sizeof(*s->video)));
    STK_TRY(open_videos(s));
    STK_TRY(set_labels(s, c));
    STK_TRY(set_size(s, c->height, c->width));
    STK_TRY(count_records(s, c->short_videos));
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}

stk_status stk_video_get_info(const char *path, stk_video_info *out)
{
    stk_video_index index;
    bool was_stale = false;
    if (!path) return stk_fail(STK_INVALID, "'path' is NULL");
    STK_NEED(out);
    STK_RETURN_IF_ERROR(stk_video_index_open(path, &index, &was_stale));
    stk_status status = STK_OK;
    if (index.problem) status = stk_fail(STK_CORRUPT, "'%s': %s", path, index.problem);
    *out = (stk_video_info){.n_frames = index.n_frames,
                            .n_whole = index.n_whole,
                            .n_keys = index.n_keys,
                            .height = index.height,
                            .width = index.width,
                            .has_times = index.time != NULL};
    stk_video_index_close(&index);
    return status;
}
