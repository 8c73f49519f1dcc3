/* Looking ahead: every record that comes up is told once, in order, ahead of its reading, until the source has enough.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "data/fake.h"
#include "data/loader/ahead.h"
#include "stoker/data/loader.h"

enum { N = 1000, MOST = 4 * N };

static int64_t told[MOST], n_told, n_room;

static bool fetch(const stk_source *source, int64_t i_record)
{
    (void)source;
    if (n_room == 0) return false;
    n_room--;
    assert_true(n_told < MOST);
    told[n_told++] = i_record;
    return true;
}

static stk_source_class far_class;

static stk_dataset *make(fake_source **fake)
{
    stk_dataset *dataset = make_fake(N, fake);
    far_class = fake_class;
    far_class.fetch = fetch;
    (*fake)->base.class = &far_class;
    (*fake)->base.is_far = true;
    stk_dataset_shuffle(dataset, 7);
    stk_dataset_apply(dataset, fake_decode(), NULL);
    stk_dataset_batch(dataset, 32, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    n_told = 0;
    n_room = INT64_MAX;
    return dataset;
}

static void look(stk_ahead *ahead, stk_ahead_work *work, const stk_dataset *dataset, const stk_share *share,
                 int64_t from, int64_t to)
{
    stk_claim claim = {.i_batch = from / 32, .from = from % 32, .to = from % 32 + to - from};
    stk_ahead_look(ahead, work, dataset, share, stk_share_total(share, 2), &claim);
}

static void in_order_and_once(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make(&fake);
    stk_loader_config config = stk_loader_config_default();
    stk_share share;
    stk_ahead ahead = {0};
    stk_ahead_work work = {0};
    assert_int_equal(stk_share_make(dataset, &config, NULL, &share), STK_OK);
    /* Two epochs of 1000: the last batch of each has 8 rows. What the first claim takes itself is left out. */
    for (int64_t i_batch = 0; i_batch < 64; i_batch++) {
        int64_t n = stk_share_count(&share, i_batch), at = 32 * i_batch;
        n_room = 40;
        look(&ahead, &work, dataset, &share, at, at + n / 2);
        n_room = 40;
        look(&ahead, &work, dataset, &share, at + n / 2, at + n);
    }
    assert_int_equal(n_told, 2 * N - 16);
    for (int64_t i = 0; i < n_told; i++) {
        int64_t n = i + 16;
        assert_int_equal(told[i], stk_order_map(&dataset->order, NULL, (uint64_t)(n / N), n % N).i_record);
    }
    stk_ahead_trim(&work);
    stk_dataset_free(dataset);
}

static void no_further_than_enough(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make(&fake);
    stk_loader_config config = stk_loader_config_default();
    stk_share share;
    stk_ahead ahead = {0};
    stk_ahead_work work = {0};
    assert_int_equal(stk_share_make(dataset, &config, NULL, &share), STK_OK);
    n_room = 5;
    look(&ahead, &work, dataset, &share, 0, 1);
    assert_int_equal(n_told, 5);
    look(&ahead, &work, dataset, &share, 1, 2);
    assert_int_equal(n_told, 5);
    /* The one that was refused comes first when there is room again. */
    n_room = 1;
    look(&ahead, &work, dataset, &share, 2, 3);
    assert_int_equal(n_told, 6);
    assert_int_equal(told[5], stk_order_map(&dataset->order, NULL, 0, 6).i_record);
    /* Records that are being read already are not fetched. */
    n_room = 1;
    look(&ahead, &work, dataset, &share, 96, 97);
    assert_int_equal(told[6], stk_order_map(&dataset->order, NULL, 0, 97).i_record);
    stk_ahead_trim(&work);
    stk_dataset_free(dataset);
}

/* With threads: the batches are those of a source that cannot look ahead. */
static void same_batches(void **state)
{
    (void)state;
    uint64_t hash[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        fake_source *fake;
        stk_dataset *dataset = make(&fake);
        stk_loader *loader;
        stk_loader_config config = stk_loader_config_default();
        if (k == 1) fake->base.class = &fake_class;
        n_room = 0;
        config.n_threads = 3;
        config.n_epochs = 2;
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
            hash[k] = hash[k] * 31 + stk_batch_hash(batch);
            stk_batch_release(batch);
        }
        assert_int_equal(stk_loader_status(loader), STK_OK);
        stk_loader_close(loader);
        stk_dataset_free(dataset);
    }
    assert_true(hash[0] == hash[1]);
}

static int set_cache(void **state)
{
    (void)state;
    return setenv("STOKER_CACHE", "/tmp/stoker-test-ahead", 1);
}

static int remove_cache(void **state)
{
    (void)state;
    return stk_tree_remove("/tmp/stoker-test-ahead") == STK_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_order_and_once), cmocka_unit_test(no_further_than_enough),
                                       cmocka_unit_test(same_batches)};
    return cmocka_run_group_tests(tests, set_cache, remove_cache);
}
