/* Explaining: order in words, what is read and left out, types, and the loader's own figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "stoker/data/combine.h"
#include "stoker/data/explain.h"

enum { N = 100 };

static float values[N][6];
static int32_t labels[N];

static stk_dataset *make(void)
{
    const stk_array_field fields[] = {
        {.name = "image", .dtype = STK_F32, .sample = {1, {6}}, .data = values},
        {.name = "label", .dtype = STK_I32, .data = labels},
    };
    return stk_dataset_arrays(N, fields, 2);
}

static void tells_order_and_epoch(void **state)
{
    static stk_explanation e;
    stk_dataset *dataset = make();
    (void)state;
    stk_dataset_skip(dataset, 10);
    stk_dataset_shard(dataset, 2, 1);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_repeat(dataset, 2);
    stk_dataset_apply_to(dataset, "label", stk_one_hot(4));
    stk_dataset_batch(dataset, 16, true);
    assert_int_equal(stk_dataset_explain(dataset, &(stk_loader_config){.n_threads = 3, .n_slots = 5}, &e), STK_OK);
    assert_string_equal(e.source, "arrays");
    assert_int_equal(e.n_records, N);
    assert_int_equal(e.n_orders, 4);
    assert_string_equal(e.order[0], "without the first 10 samples");
    assert_string_equal(e.order[1], "shard 1 of 2");
    assert_string_equal(e.order[2], "shuffle of all 45 samples, another for each epoch");
    assert_string_equal(e.order[3], "2 passes as one epoch");
    assert_true(e.indexable && e.same_batches && e.exact_resume && e.on_error == STK_ON_ERROR_STOP);
    assert_int_equal(e.n_samples, 90);
    assert_int_equal(e.n_batches, 5);
    assert_int_equal(e.n_dropped, 10);
    assert_int_equal(e.n_last, 16);
    assert_int_equal(e.n_threads, 3);
    assert_int_equal(e.n_slots, 5);
    assert_true(e.slot_bytes >= 16 * (6 + 4) * sizeof(float));
    assert_int_equal((int64_t)e.record_bytes, 28);
    assert_int_equal(e.n_stages, 1);
    assert_string_equal(e.stage[0].output, "f32[4]");
    assert_string_equal(e.field[1].input, "i32[]");
    assert_string_equal(e.field[1].output, "f32[4]");
    assert_int_equal(e.stage[0].i_pass, 0);
    stk_dataset_free(dataset);
}

static void tells_windows_and_short_batches(void **state)
{
    static stk_explanation e;
    stk_dataset *dataset = make();
    (void)state;
    stk_dataset_shuffle_with(dataset, (stk_shuffle){.seed = 1, .window = 20, .once = true});
    stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE);
    assert_int_equal(stk_dataset_explain(dataset, NULL, &e), STK_INVALID);
    stk_dataset_batch(dataset, 30, false);
    assert_int_equal(stk_dataset_explain(dataset, NULL, &e), STK_OK);
    assert_string_equal(e.order[0], "shuffle with a window of 20 of 100 samples, the same in every epoch");
    assert_true(!e.indexable && e.exact_resume && e.on_error == STK_ON_ERROR_REPLACE);
    assert_int_equal(e.n_batches, 4);
    assert_int_equal(e.n_last, 10);
    assert_int_equal(e.n_dropped, 0);
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tells_order_and_epoch),
                                       cmocka_unit_test(tells_windows_and_short_batches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
