/* Batches that are kept: their memory stays as it is, whatever the loader does next, and is used again once it is back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "stoker/data/keep.h"
#include "stoker/data/synthetic.h"

enum { N_SAMPLES = 96, N_ROWS = 8, N_BATCHES = N_SAMPLES / N_ROWS, SIDE = 1000 };

static int32_t numbers[N_SAMPLES * SIDE];

static stk_dataset *make_numbers(void)
{
    stk_array_field field = {"x", STK_I32, STK_SHAPE(SIDE), numbers};
    for (int i = 0; i < N_SAMPLES * SIDE; i++)
        numbers[i] = i;
    stk_dataset *dataset = stk_dataset_arrays(N_SAMPLES, &field, 1);
    stk_dataset_batch(dataset, N_ROWS, true);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

static stk_loader *open_loader(const stk_dataset *dataset, stk_loader_config config)
{
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    return loader;
}

/* Next batch, kept; its data. */
static const int32_t *keep_next(stk_loader *loader, stk_kept **kept)
{
    const stk_batch *batch = stk_loader_next(loader);
    assert_non_null(batch);
    const int32_t *data = stk_batch_data(batch, "x");
    assert_int_equal(stk_batch_keep(batch, kept), STK_OK);
    return data;
}

static void assert_batch(const int32_t *data, int i)
{
    assert_memory_equal(data, numbers + (size_t)(i % N_BATCHES) * N_ROWS * SIDE, sizeof(int32_t) * N_ROWS * SIDE);
}

static void what_is_kept_stays_also_beyond_the_loader(void **state)
{
    (void)state;
    enum { N = 40 };
    stk_dataset *dataset = make_numbers();
    stk_loader_config config = stk_loader_config_default();
    config.n_kept = 2;
    config.n_slots = 3;
    stk_loader *loader = open_loader(dataset, config);
    stk_kept *kept[N];
    const int32_t *data[N];
    for (int i = 0; i < N; i++)
        data[i] = keep_next(loader, &kept[i]);
    assert_int_equal(stk_loader_n_kept(loader), N);
    stk_kept_release(kept[7]);
    assert_int_equal(stk_loader_n_kept(loader), N - 1);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    for (int i = 0; i < N; i++) {
        if (i == 7) continue;
        assert_batch(data[i], i);
        stk_kept_release(kept[i]);
    }
    stk_kept_release(NULL);
}

static void memory_that_comes_back_is_used_again(void **state)
{
    (void)state;
    stk_dataset *dataset = make_numbers();
    stk_loader_config config = stk_loader_config_default();
    stk_loader_stats before, after;
    config.n_kept = 2;
    config.n_slots = 3;
    stk_loader *loader = open_loader(dataset, config);
    stk_loader_get_stats(loader, &before);
    stk_kept *last = NULL;
    for (int i = 0; i < 200; i++) {
        stk_kept *kept;
        assert_batch(keep_next(loader, &kept), i);
        stk_kept_release(last);
        last = kept;
    }
    stk_loader_get_stats(loader, &after);
    assert_int_equal(after.memory.used_bytes, before.memory.used_bytes);
    assert_int_equal(after.memory.peak_bytes, before.memory.peak_bytes);
    stk_kept_release(last);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* Keeps what it gets of another thread until both are done. */
static void release_all(void *arg)
{
    stk_kept **kept = arg;
    for (int i = 0; kept[i]; i++)
        stk_kept_release(kept[i]);
}

static void any_thread_may_give_back(void **state)
{
    (void)state;
    stk_dataset *dataset = make_numbers();
    stk_loader_config config = stk_loader_config_default();
    config.n_kept = 1;
    stk_loader *loader = open_loader(dataset, config);
    for (int turn = 0; turn < 20; turn++) {
        stk_kept *kept[6] = {NULL};
        stk_thread thread;
        for (int i = 0; i < 5; i++)
            assert_batch(keep_next(loader, &kept[i]), turn * 6 + i);
        assert_int_equal(stk_thread_start(&thread, "releaser", false, release_all, kept), STK_OK);
        stk_kept *own;
        assert_batch(keep_next(loader, &own), turn * 6 + 5);
        stk_kept_release(own);
        stk_thread_join(&thread);
    }
    assert_int_equal(stk_loader_n_kept(loader), 0);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void keeping_stops_at_the_memory_limit(void **state)
{
    (void)state;
    stk_dataset *dataset = make_numbers();
    stk_loader_config config = stk_loader_config_default();
    size_t slot = sizeof(int32_t) * N_ROWS * SIDE;
    config.n_kept = 2;
    config.n_threads = 1;
    config.memory_limit_bytes = 12 * slot + (3 << 20);
    stk_loader *loader = open_loader(dataset, config);
    stk_kept *kept[1000];
    int n = 0;
    const stk_batch *batch;
    for (;; n++) {
        batch = stk_loader_next(loader);
        assert_non_null(batch);
        const int32_t *data = stk_batch_data(batch, "x");
        if (stk_batch_keep(batch, &kept[n]) != STK_OK) break;
        assert_batch(data, n);
        assert_true(n < 200);
    }
    assert_true(n >= 2);
    assert_null(kept[n]);
    assert_non_null(strstr(stk_error_text(), "batches are kept, and there is no room for another"));
    /* The batch is held as before, and may be kept once another has come back. */
    const int32_t *data = stk_batch_data(batch, "x");
    stk_kept_release(kept[--n]);
    assert_int_equal(stk_batch_keep(batch, &kept[n]), STK_OK);
    assert_batch(data, n + 1);
    stk_loader_close(loader);
    for (int i = 0; i <= n; i++)
        stk_kept_release(kept[i]);
    stk_dataset_free(dataset);
}

static void keeping_must_be_asked_for(void **state)
{
    (void)state;
    stk_dataset *dataset = make_numbers();
    stk_loader_config config = stk_loader_config_default();
    stk_loader *loader = open_loader(dataset, config);
    stk_kept *kept;
    const stk_batch *batch = stk_loader_next(loader);
    assert_int_equal(stk_batch_keep(batch, &kept), STK_INVALID);
    assert_int_equal(stk_loader_n_kept(loader), 0);
    stk_batch_release(batch);
    assert_int_equal(stk_batch_keep(batch, &kept), STK_INVALID);
    stk_loader_close(loader);
    config.n_kept = -1;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_INVALID);
    stk_dataset_free(dataset);
}

/* Samples that all have the same memory where nothing is kept. */
static void synthetic_batches_are_apart(void **state)
{
    (void)state;
    stk_dataset *dataset = stk_dataset_parse("{synthetic: {fields: {x: [1000]}, samples: 64, classes: 3}}");
    stk_dataset_batch(dataset, 8, true);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    stk_loader_config config = stk_loader_config_default();
    config.n_kept = 1;
    stk_loader *loader = open_loader(dataset, config);
    stk_kept *kept[2];
    const void *first = keep_next(loader, &kept[0]), *second = keep_next(loader, &kept[1]);
    assert_ptr_not_equal(first, second);
    assert_true(memcmp(first, second, 8 * 1000 * sizeof(float)) != 0);
    stk_kept_release(kept[0]);
    stk_kept_release(kept[1]);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static stk_mutex gate;

static stk_status make_behind_gate(void *user, int64_t i_sample, void *const *out)
{
    (void)user;
    stk_mutex_lock(&gate);
    *(int32_t *)out[0] = (int32_t)i_sample;
    stk_mutex_unlock(&gate);
    return STK_OK;
}

static void a_wait_ends_in_time(void **state)
{
    (void)state;
    stk_array_field field = {"x", STK_I32, {0}, NULL};
    assert_int_equal(stk_mutex_init(&gate), STK_OK);
    stk_mutex_lock(&gate);
    stk_dataset *dataset = stk_dataset_function(100, &field, 1, make_behind_gate, NULL);
    stk_dataset_batch(dataset, 4, true);
    stk_loader_config config = stk_loader_config_default();
    config.n_epochs = 1;
    stk_loader *loader = open_loader(dataset, config);
    assert_false(stk_loader_wait(loader, 0));
    assert_false(stk_loader_wait(loader, 20));
    stk_mutex_unlock(&gate);
    while (!stk_loader_wait(loader, 1000))
        ;
    for (int i = 0; i < 25; i++) {
        const stk_batch *batch = stk_loader_next(loader);
        assert_int_equal(*(const int32_t *)stk_batch_data(batch, "x"), 4 * i);
        stk_batch_release(batch);
    }
    assert_true(stk_loader_wait(loader, 0)); /* the end */
    assert_null(stk_loader_next(loader));
    assert_true(stk_loader_wait(loader, 0));
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    stk_mutex_destroy(&gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_stays_also_beyond_the_loader),
        cmocka_unit_test(memory_that_comes_back_is_used_again),
        cmocka_unit_test(any_thread_may_give_back),
        cmocka_unit_test(keeping_stops_at_the_memory_limit),
        cmocka_unit_test(keeping_must_be_asked_for),
        cmocka_unit_test(synthetic_batches_are_apart),
        cmocka_unit_test(a_wait_ends_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
