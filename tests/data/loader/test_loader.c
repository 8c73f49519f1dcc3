/* Loaders: equal batches for any number of workers and from any start, errors and skipped records in order, closing at
 * any time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "data/fake.h"
#include "stoker/data/loader.h"

enum { N_RECORDS = 103, N_ROWS = 8, N_EPOCHS = 3, MOST_BATCHES = 64 };

/* 103 noisy images in 13 batches, the last of 7 samples. */
static stk_dataset *make_noisy(fake_source **fake)
{
    stk_dataset *dataset = make_fake(N_RECORDS, fake);
    stk_dataset_shuffle(dataset, 42);
    stk_dataset_apply(dataset, fake_decode(), fake_noise(), fake_fit(), fake_noise(), fake_widen(), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

/* Hashes of all batches until the end; returns how many. */
static int64_t read_hashes(const stk_dataset *dataset, stk_loader_config config, uint64_t *hashes)
{
    stk_loader *loader;
    int64_t n = 0;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); n++) {
        assert_true(n < MOST_BATCHES);
        int64_t i = config.i_batch + n;
        assert_int_equal(stk_batch_epoch(batch), config.i_epoch + i / 13);
        assert_int_equal(stk_batch_index(batch), i % 13);
        assert_int_equal(stk_batch_count(batch), i % 13 == 12 ? 7 : 8);
        hashes[n] = stk_batch_hash(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    assert_null(stk_loader_next(loader));
    stk_loader_close(loader);
    return n;
}

static void any_number_of_workers_gives_equal_batches(void **state)
{
    (void)state;
    stk_dataset *dataset = make_noisy(NULL);
    uint64_t expected[MOST_BATCHES], hashes[MOST_BATCHES];
    stk_loader_config config = stk_loader_config_default();
    config.n_epochs = N_EPOCHS;
    config.seed = 9;
    config.n_threads = 1;
    assert_int_equal(read_hashes(dataset, config, expected), 39);
    static const int n_threads[] = {2, 8, 0}, n_slots[] = {2, 3, 7};
    for (int k = 0; k < 3; k++) {
        config.n_threads = n_threads[k];
        config.n_slots = n_slots[k];
        assert_int_equal(read_hashes(dataset, config, hashes), 39);
        assert_memory_equal(hashes, expected, 39 * sizeof(*hashes));
    }
    /* Other epochs and other seeds differ. */
    for (int i = 0; i < 39; i++)
        for (int j = 0; j < i; j++)
            assert_true(expected[i] != expected[j]);
    config.seed = 10;
    read_hashes(dataset, config, hashes);
    assert_true(hashes[0] != expected[0]);
    stk_dataset_free(dataset);
}

static void resuming_anywhere_gives_equal_batches(void **state)
{
    (void)state;
    stk_dataset *dataset = make_noisy(NULL);
    uint64_t expected[MOST_BATCHES], hashes[MOST_BATCHES];
    stk_loader_config config = stk_loader_config_default();
    config.n_epochs = N_EPOCHS;
    config.n_threads = 2;
    read_hashes(dataset, config, expected);
    for (int start = 0; start < 39; start += 4) {
        config.i_epoch = start / 13;
        config.i_batch = start % 13;
        config.n_epochs = N_EPOCHS - config.i_epoch;
        assert_int_equal(read_hashes(dataset, config, hashes), 39 - start);
        assert_memory_equal(hashes, expected + start, (size_t)(39 - start) * sizeof(*hashes));
    }
    stk_dataset_free(dataset);
}

static void every_sample_comes_once_and_padding_is_zero(void **state)
{
    (void)state;
    stk_dataset *dataset = make_noisy(NULL);
    stk_loader_config config = {.n_threads = 3, .n_epochs = 2};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (int e = 0; e < 2; e++) {
        int seen[N_RECORDS] = {0};
        for (int b = 0; b < 13; b++) {
            const stk_batch *batch = stk_loader_next(loader);
            assert_non_null(batch);
            const int32_t *label = stk_batch_data(batch, "label");
            const float *image = stk_batch_data(batch, "image");
            assert_null(stk_batch_data(batch, "caption"));
            assert_int_equal((uintptr_t)label % 64, 0);
            assert_int_equal((uintptr_t)image % 64, 0);
            for (int64_t row = 0; row < stk_batch_count(batch); row++) {
                assert_false(seen[label[row]]++);
                for (int i = 0; i < 16; i++) {
                    int noise = ((int)image[row * 16 + i] - (label[row] * 31 + i + 2)) & 255;
                    assert_in_range(noise, 0, 6);
                }
            }
            for (int64_t row = stk_batch_count(batch); row < N_ROWS; row++) {
                assert_int_equal(label[row], 0);
                for (int i = 0; i < 16; i++)
                    assert_true(image[row * 16 + i] == 0);
            }
            stk_batch_release(batch);
        }
    }
    assert_null(stk_loader_next(loader));
    stk_loader_stats stats;
    stk_loader_get_stats(loader, &stats);
    assert_int_equal(stats.n_batches, 26);
    assert_int_equal(stats.n_samples, 206);
    assert_int_equal(stats.n_threads, 3);
    assert_int_equal(stats.n_skipped, 0);
    assert_in_range(stats.n_slots, 4, 16);
    assert_int_equal(stats.slot_bytes, stats.n_slots * (8 * 64 + 64));
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void two_batches_may_be_held(void **state)
{
    (void)state;
    stk_dataset *dataset = make_noisy(NULL);
    stk_loader_config config = {.n_threads = 2, .n_slots = 3};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    const stk_batch *a = stk_loader_next(loader), *b = stk_loader_next(loader);
    assert_non_null(a);
    assert_non_null(b);
    uint64_t hash = stk_batch_hash(a);
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_BUSY);
    stk_batch_release(b);
    stk_batch_release(b);
    b = stk_loader_next(loader);
    assert_non_null(b);
    assert_int_equal(stk_batch_index(b), 2);
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_batch_release(b);
    /* Batch 3 needs the slot of batch 0, which is held still: an error, not a wait without end. */
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_BUSY);
    assert_int_equal(stk_batch_hash(a), hash);
    stk_batch_release(a);
    stk_batch_release(NULL);
    for (int i = 3; i < 40; i++) {
        b = stk_loader_next(loader);
        assert_non_null(b);
        assert_int_equal(stk_batch_index(b), i % 13);
        stk_batch_release(b);
    }
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* What a loader still needs stays until it is closed, whoever frees it first. */
static void data_and_memory_may_be_freed_first(void **state)
{
    (void)state;
    uint64_t hash[2][20];
    for (int early = 0; early < 2; early++) {
        stk_memory *memory;
        stk_dataset *dataset = make_noisy(NULL);
        stk_loader *loader, *second;
        assert_int_equal(stk_memory_new(64 << 20, &memory), STK_OK);
        stk_loader_config config = {.n_threads = 3, .memory = memory};
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        assert_int_equal(stk_loader_open(dataset, &config, &second), STK_OK);
        if (early) {
            stk_dataset_free(dataset);
            stk_memory_free(memory);
            stk_loader_close(second);
        }
        for (int i = 0; i < 20; i++) {
            const stk_batch *batch = stk_loader_next(loader);
            assert_non_null(batch);
            hash[early][i] = stk_batch_hash(batch);
            stk_batch_release(batch);
        }
        stk_loader_close(loader);
        if (early) continue;
        stk_loader_close(second);
        stk_memory_stats stats;
        stk_memory_get_stats(memory, &stats);
        assert_int_equal(stats.used_bytes, 0);
        stk_dataset_free(dataset);
        stk_memory_free(memory);
    }
    assert_memory_equal(hash[0], hash[1], sizeof(hash[0]));
}

static void a_data_set_in_use_stays_as_it_is(void **state)
{
    (void)state;
    stk_dataset *dataset = make_noisy(NULL);
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE);
    assert_int_equal(stk_dataset_status(dataset), STK_BUSY);
    assert_string_equal(stk_error_text(), "'on_error' comes while a loader or trainer uses the data set");
    stk_dataset_apply(dataset, fake_noise(), NULL);
    const stk_batch *batch = stk_loader_next(loader);
    assert_non_null(batch);
    stk_batch_release(batch);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void the_first_failing_record_in_order_is_reported(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make_fake(N_RECORDS, &fake);
    stk_dataset_apply(dataset, fake_decode(), fake_fit(), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    fake->bad_every = 40; /* records 39 and 79 */
    fake->bad_at = 39;
    for (int n_threads = 1; n_threads <= 8; n_threads++) {
        for (int round = 0; round < 10; round++) {
            stk_loader_config config = {.n_threads = n_threads, .n_slots = 2 + round};
            stk_loader *loader;
            assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
            for (int i = 0; i < 4; i++) {
                const stk_batch *batch = stk_loader_next(loader);
                assert_non_null(batch);
                assert_int_equal(stk_batch_index(batch), i);
                stk_batch_release(batch);
            }
            assert_null(stk_loader_next(loader));
            assert_null(stk_loader_next(loader));
            stk_fail(STK_IO, "something else");
            assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
            assert_string_equal(stk_error_text(), "'39.fake': truncated fake");
            stk_loader_close(loader);
        }
    }
    stk_dataset_free(dataset);
}

static void sizes_that_differ_are_an_error(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make_fake(N_RECORDS, &fake);
    stk_dataset_apply(dataset, fake_decode(), fake_noise(), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE);
    fake->varied = true;
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_MISMATCH);
    assert_string_equal(stk_error_text(),
                        "'2.fake' is [5,4,1] after stage 'noise', the batch needs [4,4,1] as '0.fake' "
                        "has; add a resize or crop stage");
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* Reads n batches; the list of skipped records goes to *list. */
static int64_t read_skipping(const stk_dataset *dataset, int n_threads, int64_t n, uint64_t *hashes, char *list,
                             size_t list_bytes)
{
    stk_loader_config config = {.n_threads = n_threads, .seed = 4};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (int64_t i = 0; i < n; i++) {
        const stk_batch *batch = stk_loader_next(loader);
        assert_non_null(batch);
        const int32_t *label = stk_batch_data(batch, "label");
        for (int64_t row = 0; row < stk_batch_count(batch); row++)
            assert_true(label[row] % 10 != 3);
        hashes[i] = stk_batch_hash(batch);
        stk_batch_release(batch);
    }
    size_t used = 0;
    const char *text;
    for (int64_t i = 0; (text = stk_loader_skipped(loader, i)); i++)
        used += (size_t)snprintf(list + used, list_bytes - used, "%s\n", text);
    assert_null(stk_loader_skipped(loader, -1));
    stk_loader_stats stats;
    stk_loader_get_stats(loader, &stats);
    stk_loader_close(loader);
    return stats.n_skipped;
}

static void skipping_is_the_same_for_any_number_of_workers(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make_noisy(&fake);
    stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE);
    fake->bad_every = 10; /* 10 records an epoch */
    fake->bad_at = 3;
    uint64_t expected[30], hashes[30];
    char expected_list[2048], list[2048];
    assert_int_equal(read_skipping(dataset, 1, 26, expected, expected_list, sizeof(expected_list)), 10);
    for (int n_threads = 2; n_threads <= 8; n_threads += 3) {
        assert_int_equal(read_skipping(dataset, n_threads, 26, hashes, list, sizeof(list)), 10);
        assert_memory_equal(hashes, expected, 26 * sizeof(*hashes));
        assert_string_equal(list, expected_list);
    }
    /* Each record is listed once, though it was met in both epochs. */
    for (int i = 3; i < 100; i += 10) {
        char line[64];
        snprintf(line, sizeof(line), "'%d.fake': truncated fake\n", i);
        const char *at = strstr(list, line);
        assert_non_null(at);
        assert_null(strstr(at + 1, line));
    }
    stk_dataset_free(dataset);
}

static void skipping_ends_where_nothing_is_readable(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make_noisy(&fake);
    stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE);
    fake->bad_every = 1;
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "no readable record after 100 tries"));
    stk_loader_close(loader);
    /* Running out of memory is no fault of a record. */
    fake->bad_every = 0;
    fake->out_of_memory_at = 50;
    stk_loader_config config = {.n_epochs = 1};
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader));)
        stk_batch_release(batch);
    assert_int_equal(stk_loader_status(loader), STK_NO_MEMORY);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void wait_a_little(int64_t i_record)
{
    (void)i_record;
    int64_t end_ns = stk_clock_ns() + 200000;
    while (stk_clock_ns() < end_ns) {
    }
}

static void closing_is_possible_at_any_time(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make_noisy(&fake);
    for (int round = 0; round < 200; round++) {
        stk_loader_config config = {.n_threads = 1 + round % 5, .low_priority = round % 2};
        stk_loader *loader;
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        for (int i = 0; i < round % 17; i++)
            if (i % 3 != 2) stk_batch_release(stk_loader_next(loader));
        stk_loader_close(loader);
    }
    stk_loader_close(NULL);
    fake->before_read = wait_a_little;
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    assert_non_null(stk_loader_next(loader));
    int64_t start_ns = stk_clock_ns();
    stk_loader_close(loader);
    /* The ring still lacked about a hundred records of 0.2 ms. */
    assert_true(stk_clock_ns() - start_ns < 500000000);
    stk_dataset_free(dataset);
}

typedef struct pool {
    int n_allocs, n_frees, fail_at;
    size_t bytes;
} pool;

static void *pool_alloc(void *user, size_t bytes)
{
    pool *p = user;
    if (++p->n_allocs == p->fail_at) return NULL;
    p->bytes += bytes;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void pool_free(void *user, void *memory, size_t bytes)
{
    pool *p = user;
    p->n_frees++;
    p->bytes -= bytes;
    free(memory);
}

static void slots_may_come_from_the_caller(void **state)
{
    (void)state;
    stk_dataset *dataset = make_noisy(NULL);
    pool p = {0};
    stk_loader_config config = {.n_slots = 5, .alloc = pool_alloc, .free = pool_free, .alloc_user = &p};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    assert_int_equal(p.n_allocs, 5);
    stk_batch_release(stk_loader_next(loader));
    stk_loader_stats stats;
    stk_loader_get_stats(loader, &stats);
    assert_int_equal(stats.slot_bytes, p.bytes);
    stk_loader_close(loader);
    assert_int_equal(p.n_frees, 5);
    assert_int_equal(p.bytes, 0);
    p = (pool){.fail_at = 3};
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_NO_MEMORY);
    assert_null(loader);
    assert_int_equal(p.n_frees, 2);
    stk_dataset_free(dataset);
}

/* One worker's time counts as well as another's. */
static void stages_have_times(void **state)
{
    (void)state;
    stk_dataset *dataset = make_noisy(NULL);
    stk_loader_config config = {.n_threads = 1, .n_epochs = 1};
    stk_loader *loader;
    stk_stage_stats stage[8];
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader));)
        stk_batch_release(batch);
    int n = stk_loader_get_stages(loader, stage, 8);
    double sum = 0;
    assert_true(n >= 2 && n <= 8);
    for (int i = 1; i < n; i++)
        sum += stage[i].ns_per_sample;
    assert_true(sum > 0);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void ill_settings_are_refused(void **state)
{
    (void)state;
    stk_dataset *dataset = make_noisy(NULL);
    stk_loader *loader;
    const stk_loader_config wrong[] = {{.i_batch = 13},   {.i_batch = -1}, {.i_epoch = -1}, {.n_epochs = -1},
                                       {.n_threads = -1}, {.n_slots = 1},  {.n_slots = -2}, {.n_threads = 1 << 20}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(stk_loader_open(dataset, &wrong[i], &loader), STK_INVALID);
        assert_null(loader);
    }
    stk_loader_config config = {.memory_limit_bytes = 1000};
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_NO_MEMORY);
    config.memory_limit_bytes = 3 << 20;
    config.n_threads = 8;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    stk_loader_stats stats;
    stk_loader_get_stats(loader, &stats);
    assert_int_equal(stats.n_threads, 2);
    assert_int_equal(stats.n_slots, 3);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    dataset = make_fake(10, NULL);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_INVALID);
    stk_dataset_batch(dataset, 2, true);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "still encoded"));
    stk_dataset_free(dataset);
}

static void batches_of_one_and_of_all(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= N_RECORDS; n += N_RECORDS - 1) {
        stk_dataset *dataset = make_fake(N_RECORDS, NULL);
        stk_dataset_apply(dataset, fake_decode(), NULL);
        stk_dataset_batch(dataset, n, true);
        stk_loader_config config = {.n_threads = 2, .n_epochs = 2};
        stk_loader *loader;
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        int64_t i_sample = 0;
        for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
            const int32_t *label = stk_batch_data(batch, "label");
            for (int64_t row = 0; row < stk_batch_count(batch); row++)
                assert_int_equal(label[row], i_sample++ % N_RECORDS);
            stk_batch_release(batch);
        }
        assert_int_equal(i_sample, 2 * N_RECORDS);
        stk_loader_close(loader);
        stk_dataset_free(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_workers_gives_equal_batches),
        cmocka_unit_test(resuming_anywhere_gives_equal_batches),
        cmocka_unit_test(every_sample_comes_once_and_padding_is_zero),
        cmocka_unit_test(two_batches_may_be_held),
        cmocka_unit_test(the_first_failing_record_in_order_is_reported),
        cmocka_unit_test(sizes_that_differ_are_an_error),
        cmocka_unit_test(data_and_memory_may_be_freed_first),
        cmocka_unit_test(a_data_set_in_use_stays_as_it_is),
        cmocka_unit_test(skipping_is_the_same_for_any_number_of_workers),
        cmocka_unit_test(skipping_ends_where_nothing_is_readable),
        cmocka_unit_test(closing_is_possible_at_any_time),
        cmocka_unit_test(slots_may_come_from_the_caller),
        cmocka_unit_test(stages_have_times),
        cmocka_unit_test(ill_settings_are_refused),
        cmocka_unit_test(batches_of_one_and_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
