/* Random samples: ranges and moments, the same whatever the threads; one batch for all where nothing is done to them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "stoker/data/loader.h"
#include "stoker/data/random.h"

enum { N_SAMPLES = 40, N_ROWS = 8 };

static const stk_synthetic_field fields[] = {{.name = "image", .dtype = STK_F32, .sample = {3, {16, 16, 3}}},
                                             {.name = "label", .dtype = STK_I32, .below = 10},
                                             {.name = "pixels", .dtype = STK_U8, .sample = {1, {64}}},
                                             {.name = "small", .dtype = STK_BF16, .sample = {1, {8}}}};

static stk_dataset *make(int64_t n_samples, bool with_stage, bool drop)
{
    stk_dataset *dataset = stk_dataset_synthetic(n_samples, fields, 4, 7);
    if (with_stage) stk_dataset_apply_to(dataset, "image", stk_scale(2));
    stk_dataset_batch(dataset, N_ROWS, drop);
    if (stk_dataset_status(dataset) != STK_OK) fail_msg("%s", stk_error_text());
    return dataset;
}

static stk_loader *open_at(const stk_dataset *dataset, int n_threads, int64_t i_batch)
{
    stk_loader *loader;
    stk_loader_config config = {.n_threads = n_threads, .i_batch = i_batch, .n_epochs = 2};
    if (stk_loader_open(dataset, &config, &loader) != STK_OK) fail_msg("%s", stk_error_text());
    return loader;
}

static void ranges_and_moments(void **state)
{
    (void)state;
    stk_dataset *dataset = make(N_SAMPLES, false, true);
    stk_loader *loader = open_at(dataset, 2, 0);
    const stk_batch *batch = stk_loader_next(loader);
    assert_non_null(batch);
    const float *image = stk_batch_data(batch, "image");
    const int32_t *label = stk_batch_data(batch, "label");
    const uint8_t *pixels = stk_batch_data(batch, "pixels");
    const size_t n = (size_t)N_ROWS * 16 * 16 * 3;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)image[i];
        squares += (double)image[i] * (double)image[i];
    }
    assert_true(fabs(sum / (double)n) < 0.05 && fabs(squares / (double)n - 1) < 0.05);
    int n_different = 0;
    for (int i = 0; i < N_ROWS; i++) {
        assert_in_range(label[i], 0, 9);
        n_different += label[i] != label[0];
    }
    assert_true(n_different > 0);
    assert_memory_not_equal(pixels, pixels + 64, 64);
    stk_batch_release(batch);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* Every batch lies in the same memory and has the same bits, also for a loader that starts later or has one thread. */
static void one_batch_for_all(void **state)
{
    (void)state;
    stk_dataset *dataset = make(N_SAMPLES + 3, false, true);
    const void *memory = NULL;
    uint64_t hash = 0;
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        stk_loader *loader = open_at(dataset, n_threads, n_threads - 1);
        const stk_batch *batch;
        int n = 0;
        for (memory = NULL; (batch = stk_loader_next(loader)); n++) {
            if (!memory) memory = stk_batch_data(batch, "image");
            assert_ptr_equal(stk_batch_data(batch, "image"), memory);
            if (!hash) hash = stk_batch_hash(batch);
            assert_true(stk_batch_hash(batch) == hash);
            assert_int_equal(stk_batch_count(batch), N_ROWS);
            stk_batch_release(batch);
        }
        assert_int_equal(n, 2 * (N_SAMPLES / N_ROWS) - (n_threads - 1));
        assert_int_equal(stk_loader_status(loader), STK_OK);
        stk_loader_stats stats;
        stk_loader_get_stats(loader, &stats);
        assert_true(stats.slot_bytes < 2 * N_ROWS * (16 * 16 * 3 * 4 + 4 + 64 + 16));
        stk_loader_close(loader);
    }
    stk_dataset_free(dataset);
}

/* With a stage, or a short batch at the end, every sample is its own. */
static void made_each_time(void **state)
{
    (void)state;
    for (int with_stage = 0; with_stage < 2; with_stage++) {
        stk_dataset *dataset = make(N_SAMPLES + (with_stage ? 0 : 3), with_stage, with_stage);
        uint64_t first = 0, second = 0;
        stk_loader *loader = open_at(dataset, 2, 0);
        const stk_batch *batch;
        int n = 0, n_last = 0;
        for (; (batch = stk_loader_next(loader)); n++) {
            if (n == 0) first = stk_batch_hash(batch);
            if (n == 1) second = stk_batch_hash(batch);
            n_last = (int)stk_batch_count(batch);
            stk_batch_release(batch);
        }
        assert_int_equal(n, with_stage ? 10 : 12);
        assert_int_equal(n_last, with_stage ? N_ROWS : 3);
        assert_true(first != second);
        stk_loader_close(loader);
        stk_dataset_free(dataset);
    }
}

static void refuse(stk_synthetic_field field, const char *text)
{
    stk_dataset *dataset = stk_dataset_synthetic(4, &field, 1, 0);
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    if (!strstr(stk_error_text(), text)) fail_msg("'%s' does not say '%s'", stk_error_text(), text);
    stk_dataset_free(dataset);
}

static void errors(void **state)
{
    (void)state;
    refuse((stk_synthetic_field){.name = "x", .dtype = STK_F32, .below = 3}, "whole numbers");
    refuse((stk_synthetic_field){.name = "x", .dtype = STK_U8, .below = 257}, "1 to 256");
    refuse((stk_synthetic_field){.name = "x", .dtype = STK_I32, .below = -1}, "1 to 2147483648");
    refuse((stk_synthetic_field){.name = "x", .dtype = STK_F32, .sample = {1, {STK_ANY}}}, "known shape");
    refuse((stk_synthetic_field){.dtype = STK_F32}, "name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges_and_moments), cmocka_unit_test(one_batch_for_all),
                                       cmocka_unit_test(made_each_time), cmocka_unit_test(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
