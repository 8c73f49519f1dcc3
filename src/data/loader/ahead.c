/* See data/loader/ahead.h. */
#include "data/loader/ahead.h"

#include <sys/resource.h>

#include "data/remote/cache.h"

enum { FIRST_DEPTH = 4, MOST_DEPTH = 32, FAR_DEPTH = 1024, WARM_CLAIMS = 16 };

/* How many records ahead it is worth to look now. */
static int64_t find_depth(stk_ahead_work *work, const stk_source *source)
{
    struct rusage use;
    if (source->is_far) {
        int64_t n = stk_cache_blocks_ahead();
        return n < FAR_DEPTH ? n : FAR_DEPTH;
    }
    if (getrusage(RUSAGE_THREAD, &use) != 0) return 0;
    bool is_cold = use.ru_inblock != work->n_inblock;
    work->n_inblock = use.ru_inblock;
    if (is_cold) {
        work->n_warm = 0;
        work->depth = work->depth ? 2 * work->depth : FIRST_DEPTH;
        if (work->depth > MOST_DEPTH) work->depth = MOST_DEPTH;
    } else if (work->n_warm++ == WARM_CLAIMS) {
        work->depth = 0;
    }
    return work->depth;
}

/* The record of a row, counted over all batches; false: its batch is shorter. */
static bool find_record(stk_ahead_work *work, const stk_dataset *dataset, const stk_share *share, int64_t n,
                        int64_t *i_record)
{
    int64_t i_batch = n / dataset->n_rows, row = n % dataset->n_rows, i_epoch, i_in_part;
    if (row >= stk_share_count(share, i_batch)) return false;
    stk_share_locate(share, i_batch, &i_epoch, &i_in_part);
    const stk_share_rows rows = stk_share_find_rows(share, i_batch);
    *i_record =
        stk_order_map(&dataset->order, &work->cursor, (uint64_t)i_epoch, stk_share_position(&rows, row)).i_record;
    return true;
}

void stk_ahead_look(stk_ahead *ahead, stk_ahead_work *work, const stk_dataset *dataset, const stk_share *share,
                    int64_t n_total, const stk_claim *claim)
{
    const stk_source *source = dataset->source;
    /* Planned batches are known for few epochs, which the workers need. */
    if (!source->class->fetch || share->plans) return;
    int64_t depth = find_depth(work, source), here = claim->i_batch * dataset->n_rows + claim->to;
    int64_t n = atomic_load_explicit(&ahead->next, memory_order_relaxed), i_record;
    while (depth > 0) {
        int64_t from = n > here ? n : here;
        if (from >= here + depth || from / dataset->n_rows >= n_total) return;
        if (!atomic_compare_exchange_weak_explicit(&ahead->next, &n, from + 1, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        n = from + 1;
        if (!find_record(work, dataset, share, from, &i_record) || source->class->fetch(source, i_record)) continue;
        /* The source has enough on its way: this record comes next, unless somebody is further. */
        (void)atomic_compare_exchange_strong_explicit(&ahead->next, &n, from, memory_order_relaxed,
                                                      memory_order_relaxed);
        return;
    }
}

void stk_ahead_trim(stk_ahead_work *work)
{
    stk_order_cursor_free(&work->cursor);
}
