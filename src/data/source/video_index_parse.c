/* Side files of videos; see source/video_file.h. The payload is u64s:
 *
 *     format  height  width  frames  whole frames  reordering  times?  keys   times of the whole frames   times of keys
 */
#include <stdlib.h>

#include "base/little.h"
#include "data/source/video_file.h"

enum { N_HEAD = STK_VIDEO_INDEX_HEAD };

void stk_video_index_close(stk_video_index *index)
{
    free(index->path);
    free(index->problem);
    free(index->time);
    free(index->key);
    *index = (stk_video_index){0};
}

static int64_t get(const uint8_t *payload, int64_t i)
{
    return (int64_t)stk_little64(payload + 8 * i);
}

static bool take_times(const uint8_t *payload, int64_t n, int64_t **out)
{
    *out = malloc((size_t)(n ? n : 1) * sizeof(**out));
    for (int64_t i = 0; *out && i < n; i++) {
        (*out)[i] = get(payload, i);
        if (i > 0 && (*out)[i] <= (*out)[i - 1]) return false;
    }
    return *out != NULL;
}

bool stk_video_index_parse(const uint8_t *payload, size_t n_bytes, int64_t format, stk_video_index *v)
{
    int64_t n = (int64_t)(n_bytes / 8);
    if (n_bytes % 8 || n < N_HEAD || get(payload, 0) != format) return false;
    v->height = get(payload, 1);
    v->width = get(payload, 2);
    v->n_frames = get(payload, 3);
    v->n_whole = get(payload, 4);
    v->n_ahead = get(payload, 5);
    v->n_keys = get(payload, 7);
    bool timed = get(payload, 6) == 1;
    int64_t n_times = timed ? v->n_whole : 0;
    if (v->height < 1 || v->width < 1 || v->height > INT32_MAX || v->width > INT32_MAX || v->n_ahead < 0) return false;
    if (v->n_whole < 0 || v->n_whole > v->n_frames || v->n_keys < 0 || n_times > n || v->n_keys > n) return false;
    if (N_HEAD + n_times + v->n_keys != n || (timed ? n_times > 0 && v->n_keys < 1 : v->n_keys != 0)) return false;
    if (!timed) return true;
    return take_times(payload + 8 * N_HEAD, n_times, &v->time) &&
           take_times(payload + 8 * (N_HEAD + n_times), v->n_keys, &v->key);
}
