/* Sequences of take, skip, repeat, shard and batch, and zips, give what they give in tf.data
 * (golden/make_pipelines.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden/pipelines_golden.h"
#include "stoker/data/combine.h"
#include "stoker/data/loader.h"

enum { MOST = 600 };

/* The numbers from `first` on. */
static stk_dataset *range(const char *name, int32_t first, int n)
{
    static int32_t values[MOST];
    for (int i = 0; i < MOST; i++)
        values[i] = i;
    const stk_array_field field = {.name = name, .dtype = STK_I32, .data = values + first};
    return stk_dataset_arrays(n, &field, 1);
}

static void apply(stk_dataset *dataset, char kind, int a, int b)
{
    switch (kind) {
    case 't': stk_dataset_take(dataset, a); break;
    case 's': stk_dataset_skip(dataset, a); break;
    case 'r': stk_dataset_repeat(dataset, a); break;
    default: stk_dataset_shard(dataset, a, b);
    }
}

static void sequences_of_operations(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(golden_pipeline) / sizeof(golden_pipeline[0]); i++) {
        stk_dataset *dataset = range("x", 0, golden_pipeline[i].n);
        stk_loader_config config = {.n_threads = 2, .n_epochs = 1};
        stk_loader *loader;
        int n_samples = 0, n_batches = 0;
        int64_t n_last = 0;
        for (int k = 0; k < golden_pipeline[i].n_ops; k++)
            apply(dataset, golden_pipeline[i].op[k].kind, golden_pipeline[i].op[k].a, golden_pipeline[i].op[k].b);
        stk_dataset_batch(dataset, golden_pipeline[i].batch, golden_pipeline[i].drop);
        if (stk_dataset_status(dataset) != STK_OK) fail_msg("case %zu: %s", i, stk_error_text());
        assert_int_equal(stk_dataset_n_batches(dataset), golden_pipeline[i].n_batches);
        if (stk_loader_open(dataset, &config, &loader) != STK_OK) fail_msg("case %zu: %s", i, stk_error_text());
        for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch), n_batches++) {
            const int32_t *x = stk_batch_data(batch, "x");
            n_last = stk_batch_count(batch);
            for (int64_t row = 0; row < n_last; row++) {
                assert_in_range(n_samples, 0, golden_pipeline[i].n_samples - 1);
                assert_int_equal(x[row], golden_pipeline[i].sample[n_samples++]);
            }
        }
        assert_int_equal(n_samples, golden_pipeline[i].n_samples);
        assert_int_equal(n_batches, golden_pipeline[i].n_batches);
        assert_int_equal(n_last, golden_pipeline[i].n_last);
        stk_loader_close(loader);
        stk_dataset_free(dataset);
    }
}

static void zips(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    (void)state;
    for (size_t i = 0; i < sizeof(golden_zip) / sizeof(golden_zip[0]); i++) {
        stk_dataset *child[3];
        stk_loader_config config = {.n_threads = 2, .n_epochs = 1};
        stk_loader *loader;
        int n = 0;
        for (int k = 0; k < golden_zip[i].n_children; k++)
            child[k] = range(names[k], 100 * k, (int)golden_zip[i].n[k]);
        stk_dataset *dataset = stk_dataset_zip(child, golden_zip[i].n_children);
        stk_dataset_batch(dataset, 1, false);
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch), n++)
            for (int k = 0; k < golden_zip[i].n_children; k++) {
                assert_in_range(n, 0, golden_zip[i].n_samples - 1);
                assert_int_equal(*(const int32_t *)stk_batch_data(batch, names[k]), golden_zip[i].sample[n][k]);
            }
        assert_int_equal(n, golden_zip[i].n_samples);
        stk_loader_close(loader);
        stk_dataset_free(dataset);
    }
}

/* tf.data takes as many as there are, and gives nothing where all is skipped: here both are errors that say so. */
static void what_is_not_there_is_an_error(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        stk_dataset *dataset = range("x", 0, 5);
        apply(dataset, "tsh"[i], i == 2 ? 3 : 6 - i, 3);
        assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
        stk_dataset_free(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sequences_of_operations), cmocka_unit_test(zips),
                                       cmocka_unit_test(what_is_not_there_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
