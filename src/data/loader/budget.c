/* See data/loader/budget.h. */
#include "data/loader/budget.h"

#include <stdlib.h>

#include "base/error.h"

enum { LEAST_SLOTS = STK_LEAST_SLOTS, MOST_MEASURED = 8 };

/* More than a worker keeps for all but huge images: where so much is left for each, nothing has to be measured. */
#define PLENTY ((size_t)64 << 20)

/* A row of the batch, to which nobody listens. */
stk_status stk_budget_row(const stk_work *work, stk_slot *slot, stk_block *memory)
{
    size_t at[STK_MOST_SLOT_FIELDS], n = 0;
    for (int f = 0; f < work->n_slot_fields; f++) {
        at[f] = n;
        n += (work->row_bytes[f] + 63) / 64 * 64;
    }
    unsigned char *p = stk_block_get(memory, n);
    for (int f = 0; p && f < work->n_slot_fields; f++) {
        slot->field[f] = p + at[f];
        slot->row_bytes[f] = work->row_bytes[f];
    }
    return p ? STK_OK : STK_NO_MEMORY;
}

/* Beyond what is left of the limit, so that a message can say how much would do where it is not much more. */
#define MEASURED_BEYOND ((size_t)6 << 20)

/* What a worker keeps after the first records: the best guess at what others of their kind need. A record far above the
 * limit is not read. */
stk_status stk_budget_measure(const stk_work *work, size_t *out)
{
    const stk_dataset *dataset = work->dataset;
    stk_memory *memory = NULL, *before = stk_memory_in_use();
    stk_memory_stats stats;
    stk_slot slot = {0};
    stk_block row = {0};
    stk_status status;
    size_t left = stk_memory_left(work->memory);
    stk_worker *worker = calloc(1, sizeof(*worker));
    if (!worker) return stk_fail_memory(sizeof(*worker));
    worker->work = work;
    worker->decoder = stk_jpeg_reader_of_thread();
    stk_worker_trim(worker);
    STK_TRY(stk_memory_new(left > SIZE_MAX - MEASURED_BEYOND ? SIZE_MAX : left + MEASURED_BEYOND, &memory));
    (void)stk_memory_use(memory);
    STK_TRY(stk_budget_row(work, &slot, &row));
    /* One that is corrupt is for the run to report. */
    for (int64_t n = 0; n < MOST_MEASURED && n < dataset->order.count && status != STK_NO_MEMORY; n++)
        status = stk_worker_make(worker, stk_order_map(&dataset->order, NULL, 0, n), &slot, 0);
    if (status == STK_NO_MEMORY) goto done;
    status = STK_OK;
    stk_memory_get_stats(memory, &stats);
    *out = stats.peak_bytes - row.n_bytes + STK_WORKER_BYTES + stk_sequence_bytes(dataset->source);
done:
    stk_worker_trim(worker);
    (void)stk_memory_use(before);
    stk_block_free(&row);
    free(worker);
    stk_memory_free(memory);
    return status;
}

size_t stk_budget_slots(const stk_budget *b, int n_slots)
{
    return (size_t)(n_slots + b->n_kept) * b->slot_bytes;
}

static bool fits(const stk_budget *b, size_t worker_bytes, size_t left)
{
    size_t workers = (size_t)b->n_workers * worker_bytes;
    return workers <= left && (size_t)(b->n_slots + b->n_kept) <= (left - workers) / b->slot_bytes;
}

static double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

static stk_status fail_tight(const stk_work *work, const stk_budget *b, size_t worker_bytes)
{
    stk_memory_stats stats;
    stk_memory_get_stats(work->memory, &stats);
    size_t needed = stats.used_bytes + stk_budget_slots(b, LEAST_SLOTS) + worker_bytes;
    return stk_fail(STK_NO_MEMORY,
                    "a memory limit of %.1f MiB is too small: %d batches of %.1f MiB, %.1f MiB for a worker and %.1f "
                    "MiB in use already need %zu MiB",
                    mib(stats.limit_bytes), LEAST_SLOTS + b->n_kept, mib(b->slot_bytes), mib(worker_bytes),
                    mib(stats.used_bytes), (needed + (1 << 20) - 1) >> 20);
}

stk_status stk_budget_fit(const stk_work *work, stk_budget *b)
{
    size_t left = stk_memory_left(work->memory), worker_bytes = PLENTY + stk_sequence_bytes(work->dataset->source);
    b->worker_bytes = worker_bytes;
    if (fits(b, worker_bytes, left)) return STK_OK;
    /* What other loaders' workers keep does not count: they give it back in turn, and wait while records are measured
     * in what is left. */
    stk_memory_begin_turn(work->memory);
    left = stk_memory_left(work->memory);
    stk_status status = stk_budget_measure(work, &worker_bytes);
    stk_memory_end_turn(work->memory);
    STK_RETURN_IF_ERROR(status);
    b->worker_bytes = worker_bytes;
    while (!fits(b, worker_bytes, left)) {
        if (b->n_slots > b->least_slots)
            b->n_slots--;
        else if (b->n_workers > 1)
            b->n_workers--;
        else if (b->n_slots > LEAST_SLOTS)
            b->n_slots--;
        else
            break;
    }
    if (!fits(b, worker_bytes, left)) return fail_tight(work, b, worker_bytes);
    /* The slot that had to go may leave room for more than one worker. */
    for (; b->n_workers < work->n_workers; b->n_workers++) {
        stk_budget more = *b;
        more.n_workers++;
        if (!fits(&more, worker_bytes, left)) break;
    }
    return STK_OK;
}
