/* Side files of videos: whatever they hold, reading one stays inside its bytes, and what is taken is in order.
 *
 * covers: data/source/video_index_parse.c
 */
#include <stdlib.h>
#include <string.h>

#include "base/little.h"
#include "data/source/video_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const stk_video_index *v)
{
    if (v->height < 1 || v->width < 1 || v->n_whole < 0 || v->n_whole > v->n_frames || v->n_ahead < 0) abort();
    for (int64_t i = 1; v->time && i < v->n_whole; i++)
        if (v->time[i] <= v->time[i - 1]) abort();
    for (int64_t i = 1; i < v->n_keys; i++)
        if (v->key[i] <= v->key[i - 1]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    stk_video_index index = {0};
    uint8_t *copy = malloc(n + 1); /* of this very size, so that reads beyond it are seen */
    if (!copy) return 0;
    if (n) memcpy(copy, data, n);
    int64_t format = n >= 8 ? (int64_t)stk_little64(copy) : 0;
    if (stk_video_index_parse(copy, n, format, &index)) check(&index);
    stk_video_index_close(&index);
    (void)stk_video_index_parse(copy, n, format ^ 1, &index);
    stk_video_index_close(&index);
    free(copy);
    return 0;
}
