/* See data/dataset/scan.h. Threads claim blocks in order, so that the first failing record is found whoever is
 * faster: all blocks before a claimed one are claimed, and are asked to their ends. */
#include "data/dataset/scan.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/dataset/scan_file.h"
#include "data/source/reader.h"

enum { BLOCK = 64, MOST_THREADS = 64 };

typedef struct scan_task {
    const stk_dataset *dataset;
    const stk_scan *scan;
    const uint32_t *list;
    int64_t n;
    int32_t *answers;
    stk_memory *memory; /* that all threads' records are charged to */
    atomic_llong next;
    atomic_bool failed;
    stk_mutex lock;
    int64_t i_failed;  /* guarded by lock; place of the first failing record, n: none */
    stk_status status; /* guarded by lock; of that */
    char error[1024];  /* guarded by lock */
} scan_task;

static void note_failure(scan_task *s, int64_t i, stk_status status)
{
    stk_mutex_lock(&s->lock);
    if (i < s->i_failed) {
        s->i_failed = i;
        s->status = status;
        snprintf(s->error, sizeof(s->error), "%s", stk_error_text());
    }
    stk_mutex_unlock(&s->lock);
    atomic_store(&s->failed, true);
}

static stk_status ask_record(scan_task *s, int64_t i, stk_reader *reader)
{
    const stk_dataset *dataset = s->dataset;
    stk_item item[STK_MAX_FIELDS] = {0};
    stk_order_place place = {.i_record = s->list ? (int64_t)s->list[i] : i};
    stk_stage_key key = {.i_sample = (uint64_t)place.i_record};
    stk_joint_sides joint = {0};
    if (dataset->n_joints) key.joint = &joint;
    stk_status status = stk_reader_read_some(reader, dataset->source, place.i_record, &key, s->scan->fields, item);
    if (status == STK_OK) status = s->scan->ask(s->scan->user, dataset, &key, item, &s->answers[i]);
    if (status == STK_OK) return STK_OK;
    if (dataset->on_error != STK_ON_ERROR_STOP && stk_record_can_skip(status)) {
        s->answers[i] = STK_UNREADABLE;
        return STK_OK;
    }
    return stk_dataset_fail_record(dataset, status, place);
}

static void ask_blocks(void *arg)
{
    scan_task *s = arg;
    stk_reader reader = {0};
    stk_memory *before = stk_memory_use(s->memory);
    while (!atomic_load(&s->failed)) {
        int64_t from = atomic_fetch_add(&s->next, BLOCK), to = from + BLOCK < s->n ? from + BLOCK : s->n;
        if (from >= s->n) break;
        stk_status status = STK_OK;
        for (int64_t i = from; i < to && status == STK_OK; i++) {
            status = ask_record(s, i, &reader);
            if (status != STK_OK) note_failure(s, i, status);
        }
    }
    stk_reader_free(&reader, s->dataset->source);
    (void)stk_memory_use(before);
}

/* The calling thread asks too, so that threads that cannot be started cost speed only. */
static void run_threads(scan_task *s)
{
    stk_thread thread[MOST_THREADS] = {0};
    int64_t n_blocks = (s->n + BLOCK - 1) / BLOCK;
    int n = stk_n_cores() < MOST_THREADS ? stk_n_cores() : MOST_THREADS;
    if (n > n_blocks) n = (int)n_blocks;
    for (int i = 1; i < n; i++)
        if (stk_thread_start(&thread[i], "stk-scan", false, ask_blocks, s) != STK_OK) break;
    ask_blocks(s);
    for (int i = 1; i < n; i++)
        stk_thread_join(&thread[i]);
}

/* Asks the records themselves. */
static stk_status run_scan(const stk_dataset *dataset, const stk_scan *scan, const uint32_t *list, int64_t n,
                           int32_t *answers)
{
    scan_task s = {.dataset = dataset, .scan = scan, .list = list, .n = n, .answers = answers, .i_failed = n};
    stk_memory *own;
    STK_RETURN_IF_ERROR(stk_dataset_enter_memory(dataset, &own));
    s.memory = stk_memory_in_use();
    stk_status status = stk_mutex_init(&s.lock);
    if (status == STK_OK) {
        run_threads(&s);
        stk_mutex_destroy(&s.lock);
    }
    stk_dataset_leave_memory(own);
    STK_RETURN_IF_ERROR(status);
    return s.i_failed == n ? STK_OK : stk_fail(s.status, "%s", s.error);
}

stk_status stk_scan_run(const stk_dataset *dataset, const stk_scan *scan, const uint32_t *list, int64_t n,
                        int32_t *answers, stk_scan_result *result)
{
    int64_t start_ns = stk_clock_ns();
    stk_scan_file file;
    *result = (stk_scan_result){.n_asked = n};
    stk_scan_file_find(dataset, scan, list, n, &file);
    result->was_known = stk_scan_file_read(&file, answers, n, &result->was_stale);
    if (!result->was_known) STK_RETURN_IF_ERROR(run_scan(dataset, scan, list, n, answers));
    if (!result->was_known) stk_scan_file_write(&file, answers, n);
    for (int64_t i = 0; i < n; i++)
        result->n_unreadable += answers[i] == STK_UNREADABLE;
    result->seconds = (double)(stk_clock_ns() - start_ns) * 1e-9;
    return STK_OK;
}

const char *stk_scan_cost(const stk_scan_result *result, char out[STK_SCAN_COST])
{
    snprintf(out, STK_SCAN_COST, "%s%.3g s",
             result->was_known   ? "kept from before, "
             : result->was_stale ? "asked again as what was kept is out of date, "
                                 : "",
             result->seconds);
    return out;
}

void stk_scan_report(stk_dataset *dataset, const char *format, ...)
{
    if (dataset->n_scans == STK_MOST_SCANS) return;
    va_list args;
    va_start(args, format);
    vsnprintf(dataset->scan[dataset->n_scans++], STK_SCAN_TEXT, format, args);
    va_end(args);
}
