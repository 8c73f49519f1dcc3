/* A loader on its consumer's threads: the same batches, errors and skipped records as on threads of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "stoker/data/custom.h"
#include "stoker/data/loader.h"

enum { N_RECORDS = 103, N_ROWS = 8, N_BATCHES = 26, MOST_PARTS = 8 };

typedef void (*part_body)(const void *task, int i_part, int n_parts);

typedef struct part {
    part_body body;
    const void *task;
    int i_part, n_parts;
} part;

static void run_part(void *arg)
{
    const part *p = arg;
    p->body(p->task, p->i_part, p->n_parts);
}

static int n_calls;

static void on_threads(void *user, int n_parts, part_body body, const void *task)
{
    (void)user;
    stk_thread thread[MOST_PARTS];
    part parts[MOST_PARTS];
    n_calls++;
    for (int i = 0; i < n_parts; i++) {
        parts[i] = (part){body, task, i, n_parts};
        assert_int_equal(stk_thread_start(&thread[i], "part", false, run_part, &parts[i]), STK_OK);
    }
    for (int i = 0; i < n_parts; i++)
        stk_thread_join(&thread[i]);
}

static void one_after_the_other(void *user, int n_parts, part_body body, const void *task)
{
    (void)user;
    n_calls++;
    for (int i = n_parts - 1; i >= 0; i--)
        body(task, i, n_parts);
}

static uint8_t images[N_RECORDS][4][4][1];

/* Fails for the images that begin with a bad byte, as damaged records do. */
static stk_status refuse_bad(void *user, const stk_map_call *call)
{
    const uint8_t *bad = user, *src = call->src.data;
    if (*bad && *src >= *bad) return stk_fail(STK_CORRUPT, "image %d is bad", *src);
    memcpy(call->dst.data, src, call->src.n_bytes);
    return STK_OK;
}

/* Images of which all bytes are their number. */
static stk_dataset *make_dataset(uint8_t *bad, bool shuffled)
{
    for (int i = 0; i < N_RECORDS; i++)
        memset(images[i], i, sizeof(images[i]));
    const stk_array_field field = {"image", STK_U8, {3, {4, 4, 1}}, images};
    const stk_map_config refuse = {.name = "refuse", .run = refuse_bad, .user = bad};
    stk_dataset *dataset = stk_dataset_arrays(N_RECORDS, &field, 1);
    if (shuffled) stk_dataset_shuffle(dataset, 42);
    stk_dataset_apply(dataset, stk_map(&refuse), stk_random_crop(4, 1), stk_scale(0.25), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

static int64_t read_hashes(const stk_dataset *dataset, stk_loader_config config, uint64_t *hashes)
{
    stk_loader *loader;
    stk_loader_stats stats;
    int64_t n = 0;
    config.n_epochs = 2;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); n++) {
        assert_true(n < N_BATCHES);
        hashes[n] = stk_batch_hash(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_get_stats(loader, &stats);
    assert_int_equal(stats.n_samples, 2 * N_RECORDS);
    assert_true(stats.work_ns > 0);
    if (config.parallel) {
        assert_int_equal(stats.n_threads, 0);
        assert_true(stats.wait_ns > 0);
    }
    stk_loader_close(loader);
    return n;
}

static void batches_are_those_of_threads(void **state)
{
    (void)state;
    uint64_t expected[N_BATCHES], hashes[N_BATCHES];
    for (int on_error = 0; on_error < 2; on_error++) {
        uint8_t bad = on_error ? 90 : 0;
        stk_dataset *dataset = make_dataset(&bad, true);
        if (on_error) stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE);
        stk_loader_config config = {.n_threads = 3, .seed = 5};
        assert_int_equal(read_hashes(dataset, config, expected), N_BATCHES);
        for (config.n_threads = 1; config.n_threads <= MOST_PARTS; config.n_threads++)
            for (int i = 0; i < 2; i++) {
                config.parallel = i ? one_after_the_other : on_threads;
                n_calls = 0;
                assert_int_equal(read_hashes(dataset, config, hashes), N_BATCHES);
                assert_int_equal(n_calls, N_BATCHES);
                assert_memory_equal(hashes, expected, sizeof(expected));
            }
        stk_dataset_free(dataset);
    }
}

static void the_first_failing_record_is_reported(void **state)
{
    (void)state;
    uint8_t bad = 33; /* in the fifth batch */
    stk_dataset *dataset = make_dataset(&bad, false);
    for (int n_parts = 1; n_parts <= MOST_PARTS; n_parts++) {
        stk_loader_config config = {.n_threads = n_parts, .parallel = on_threads};
        stk_loader *loader;
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        int n = 0;
        for (const stk_batch *batch; (batch = stk_loader_next(loader)); n++)
            stk_batch_release(batch);
        assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
        assert_non_null(strstr(stk_error_text(), "image 33 is bad"));
        assert_int_equal(n, 4);
        stk_loader_close(loader);
    }
    stk_dataset_free(dataset);
}

static void two_batches_may_be_held(void **state)
{
    (void)state;
    uint8_t bad = 0;
    stk_dataset *dataset = make_dataset(&bad, true);
    stk_loader_config config = {.n_threads = 2, .n_slots = 2, .parallel = on_threads};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    const stk_batch *a = stk_loader_next(loader), *b = stk_loader_next(loader);
    assert_non_null(a);
    assert_non_null(b);
    uint64_t hash = stk_batch_hash(a);
    stk_batch_release(b);
    /* Its slot is that of batch 0. */
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_BUSY);
    assert_int_equal(stk_batch_hash(a), hash);
    stk_batch_release(a);
    assert_non_null(b = stk_loader_next(loader));
    assert_int_equal(stk_batch_index(b), 2);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_those_of_threads),
        cmocka_unit_test(the_first_failing_record_is_reported),
        cmocka_unit_test(two_batches_may_be_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
