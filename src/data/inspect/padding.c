/* See data/inspect/padding.h. */
#include "data/inspect/padding.h"

#include "data/loader/share.h"

enum { MOST_SAMPLES = 1000000 };

typedef struct sums {
    double used, all;
} sums;

/* What one batch has, of one field. */
static void add_field(const stk_dataset *dataset, int f, const stk_order_place *place, int64_t n_rows, sums *s)
{
    const stk_pad_plan *pad = &dataset->pad[f];
    const stk_buckets_plan *buckets = &dataset->buckets;
    int64_t longest = 0;
    for (int64_t row = 0; row < n_rows; row++) {
        int64_t n = stk_pad_plan_length(pad, place[row].i_record);
        s->used += (double)n;
        if (n > longest) longest = n;
    }
    if (buckets->n && buckets->to_boundary && f == buckets->i_field)
        longest = buckets->bucket[stk_buckets_find(buckets, longest)].below - 1;
    s->all += (double)longest * (double)n_rows;
}

static void add_batches(const stk_dataset *dataset, const stk_share *share, stk_scratch *places, sums *s)
{
    stk_order_cursor cursor = {0};
    int64_t n_samples = 0;
    for (int64_t b = 0; b < share->whole.n_batches && n_samples < MOST_SAMPLES; b++) {
        const stk_share_rows rows = stk_share_find_rows(share, b);
        int64_t n_rows = stk_share_count(share, b);
        stk_order_place *place = stk_scratch_get(places, (size_t)n_rows * sizeof(*place));
        if (!place) break;
        for (int64_t row = 0; row < n_rows; row++)
            place[row] = stk_order_map(&dataset->order, &cursor, 0, stk_share_position(&rows, row));
        for (int f = 0; f < dataset->source->n_fields; f++)
            if (dataset->pad[f].lengths) add_field(dataset, f, place, n_rows, s);
        n_samples += n_rows;
    }
    stk_order_cursor_free(&cursor);
}

double stk_padding_share(const stk_dataset *dataset)
{
    const stk_loader_config config = stk_loader_config_default();
    stk_epoch_plans *plans = NULL;
    stk_scratch places = {0};
    stk_share share;
    sums s = {0};
    size_t bytes;
    if (dataset->n_padded == 0) return -1;
    if (dataset->buckets.n && stk_epoch_plans_new(dataset, 1, &plans, &bytes) != STK_OK) return -1;
    if (stk_share_make(dataset, &config, plans, &share) == STK_OK) add_batches(dataset, &share, &places, &s);
    stk_epoch_plans_free(plans);
    stk_scratch_free(&places);
    return s.all > 0 ? 1 - s.used / s.all : -1;
}
