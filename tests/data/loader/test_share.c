/* Loaders that share an epoch: every sample once for any number of them, also when their number changes on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "data/fake.h"
#include "stoker/data/combine.h"
#include "stoker/data/loader.h"

enum { N_RECORDS = 1000, MOST_SHARDS = 8 };

/* Shuffled with a window, so that a share starts in the middle of one. */
static stk_dataset *make_shuffled(int64_t n_rows, bool drop_remainder)
{
    stk_dataset *dataset = make_fake(N_RECORDS, NULL);
    stk_dataset_shuffle_with(dataset, (stk_shuffle){.seed = 3, .window = 90});
    stk_dataset_apply(dataset, fake_decode(), fake_noise(), fake_fit(), NULL);
    stk_dataset_batch(dataset, n_rows, drop_remainder);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

/* All shards take n_steps batches each, or as many as the epoch has (-1); counts the samples seen. Returns where the
 * epoch stands then. */
static int64_t take(const stk_dataset *dataset, int64_t n_shards, int64_t epoch, int64_t i_sample, int64_t n_steps,
                    int *seen)
{
    int64_t done[MOST_SHARDS] = {i_sample};
    for (int64_t i = 0; i < n_shards; i++) {
        stk_loader_config config = {.n_threads = 1 + (int)i % 3,
                                    .n_shards = n_shards,
                                    .i_shard = i,
                                    .i_epoch = epoch,
                                    .i_sample = i_sample,
                                    .n_epochs = 1};
        stk_loader *loader;
        done[i] = i_sample;
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        for (int64_t k = 0; k != n_steps; k++) {
            const stk_batch *batch = stk_loader_next(loader);
            if (!batch && n_steps < 0) break;
            assert_non_null(batch);
            assert_int_equal(stk_batch_epoch(batch), epoch);
            assert_int_equal(stk_batch_index(batch), k);
            const int32_t *label = stk_batch_data(batch, "label");
            for (int64_t row = 0; row < stk_batch_count(batch); row++)
                seen[label[row]]++;
            done[i] = stk_batch_done(batch);
            stk_batch_release(batch);
        }
        assert_int_equal(stk_loader_status(loader), STK_OK);
        stk_loader_close(loader);
        if (n_steps >= 0) assert_int_equal(done[i], done[0]);
    }
    return done[0];
}

/* Four shards, then three, then eight, in the middle of an epoch. */
static void shards_may_change_in_an_epoch(void **state)
{
    (void)state;
    stk_dataset *dataset = make_shuffled(7, false);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[N_RECORDS] = {0};
        int64_t at = take(dataset, 4, epoch, 0, 9, seen);
        assert_int_equal(at, 4 * 9 * 7);
        at = take(dataset, 3, epoch, at, 13, seen);
        assert_int_equal(at, 4 * 9 * 7 + 3 * 13 * 7);
        take(dataset, 8, epoch, at, -1, seen);
        for (int i = 0; i < N_RECORDS; i++)
            assert_int_equal(seen[i], 1);
    }
    stk_dataset_free(dataset);
}

static void any_change_at_any_batch_meets_every_sample_once(void **state)
{
    (void)state;
    stk_dataset *dataset = make_shuffled(16, false);
    stk_rng rng = stk_rng_make(4, 3, 2, 1);
    for (int round = 0; round < 15; round++) {
        int seen[N_RECORDS] = {0};
        int64_t at = 0;
        for (int part = 0; part < 3; part++) {
            int64_t n_shards = 1 + stk_rng_below(&rng, MOST_SHARDS);
            int64_t n_whole = (N_RECORDS - at) / (16 * n_shards);
            if (n_whole) at = take(dataset, n_shards, round, at, stk_rng_below(&rng, (uint32_t)n_whole + 1), seen);
        }
        take(dataset, 1 + stk_rng_below(&rng, MOST_SHARDS), round, at, -1, seen);
        for (int i = 0; i < N_RECORDS; i++)
            assert_int_equal(seen[i], 1);
    }
    stk_dataset_free(dataset);
}

/* Going on in later epochs, and the batches of one loader from any sample on. */
static void later_epochs_are_whole(void **state)
{
    (void)state;
    stk_dataset *dataset = make_shuffled(10, true);
    int seen[3][N_RECORDS] = {{0}}, n_batches[3] = {0};
    for (int64_t i = 0; i < 3; i++) {
        stk_loader_config config = {
            .n_threads = 2, .n_shards = 3, .i_shard = i, .i_sample = 402, .i_epoch = 5, .n_epochs = 3};
        stk_loader *loader;
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
            int64_t e = stk_batch_epoch(batch) - 5;
            const int32_t *label = stk_batch_data(batch, "label");
            assert_int_equal(stk_batch_count(batch), 10);
            assert_int_equal(stk_batch_index(batch), n_batches[e] % (e ? 33 : 19));
            for (int row = 0; row < 10; row++)
                assert_int_equal(seen[e][label[row]]++, 0);
            n_batches[e]++;
            bool is_last = stk_batch_index(batch) == (e ? 32 : 18);
            assert_int_equal(stk_batch_done(batch), is_last ? 1000 : (e ? 0 : 402) + 30 * (stk_batch_index(batch) + 1));
            stk_batch_release(batch);
        }
        assert_int_equal(stk_loader_status(loader), STK_OK);
        stk_loader_close(loader);
    }
    /* The remainder of each part is dropped by all alike, though shard 0 has 200 samples of the first: 598 / 3 / 10,
     * and 1000 / 3 / 10. */
    assert_int_equal(n_batches[0], 3 * 19);
    assert_int_equal(n_batches[1], 3 * 33);
    assert_int_equal(n_batches[2], 3 * 33);
    stk_dataset_free(dataset);
}

/* One loader that starts at a sample gives what the batches before have left. */
static void starting_at_a_batch_or_its_sample_is_the_same(void **state)
{
    (void)state;
    stk_dataset *dataset = make_shuffled(32, false);
    for (int64_t start = 1; start < 32; start += 10) {
        stk_loader_config by_batch = {.n_threads = 2, .i_batch = start, .n_epochs = 2, .seed = 1};
        stk_loader_config by_sample = {.n_threads = 3, .i_sample = 32 * start, .n_epochs = 2, .seed = 1};
        stk_loader *a, *b;
        assert_int_equal(stk_loader_open(dataset, &by_batch, &a), STK_OK);
        assert_int_equal(stk_loader_open(dataset, &by_sample, &b), STK_OK);
        int64_t n = 0;
        for (const stk_batch *x; (x = stk_loader_next(a)); n++) {
            const stk_batch *y = stk_loader_next(b);
            assert_non_null(y);
            assert_int_equal(stk_batch_hash(x), stk_batch_hash(y));
            assert_int_equal(stk_batch_done(x), stk_batch_done(y));
            stk_batch_release(x);
            stk_batch_release(y);
        }
        assert_int_equal(n, 64 - start);
        assert_null(stk_loader_next(b));
        stk_loader_close(a);
        stk_loader_close(b);
    }
    /* At the very end of an epoch the next one comes. */
    stk_loader_config config = {.i_sample = N_RECORDS, .n_epochs = 1};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    config.n_epochs = 2;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    const stk_batch *batch = stk_loader_next(loader);
    assert_int_equal(stk_batch_epoch(batch), 1);
    assert_int_equal(stk_batch_index(batch), 0);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void wrong_shares_are_refused(void **state)
{
    (void)state;
    stk_dataset *dataset = make_shuffled(32, false);
    const stk_loader_config wrong[] = {{.n_shards = -1},
                                       {.n_shards = 2, .i_shard = 2},
                                       {.n_shards = 2, .i_shard = -1},
                                       {.i_shard = 1},
                                       {.i_sample = -1},
                                       {.i_sample = N_RECORDS + 1},
                                       {.n_shards = 1 << 30},
                                       {.i_sample = 32, .i_batch = 1},
                                       {.n_shards = 2000, .i_shard = 1500}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        stk_loader *loader;
        assert_int_equal(stk_loader_open(dataset, &wrong[i], &loader), STK_INVALID);
        assert_null(loader);
    }
    assert_string_equal(stk_error_text(), "1000 samples make no batch of 32 for each of 2000 shards");
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_may_change_in_an_epoch),
        cmocka_unit_test(any_change_at_any_batch_meets_every_sample_once),
        cmocka_unit_test(later_epochs_are_whole),
        cmocka_unit_test(starting_at_a_batch_or_its_sample_is_the_same),
        cmocka_unit_test(wrong_shares_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
