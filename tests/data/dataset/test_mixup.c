/* Mixup and cutmix: torchvision's values for given draws, the distribution of the draws, and the same batches for any
 * number of workers, shards and starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "data/dataset/mixup.h"
#include "golden/mixup_golden.h"
#include "stoker/data/loader.h"
#include "stoker/data/mixup.h"

enum { N = 3, H = 5, W = 4, C = 2, CLASSES = 4, PIXELS = H * W * C };

static void fill(float *image, float *label)
{
    static const int classes[N] = {2, 0, 3};
    for (int i = 0; i < N * PIXELS; i++)
        image[i] = (float)((i * 37 % 101) / 7.0 - 5);
    for (int i = 0; i < N * CLASSES; i++)
        label[i] = i % CLASSES == classes[i / CLASSES];
}

/* With the channels in front, too, where the rectangle is not one run of bytes. */
static void check(const stk_mixup_draw *draw, const float *want_image, const float *want_label)
{
    for (int first = 0; first < 2; first++) {
        float image[N * PIXELS], label[N * CLASSES], turned[N * PIXELS];
        fill(image, label);
        for (int i = 0; i < N * PIXELS; i++)
            turned[first ? i / PIXELS * PIXELS + i % C * H * W + i % PIXELS / C : i] = image[i];
        stk_mixup_batch batch = {N,     turned, stk_desc_make(STK_F32, first ? STK_SHAPE(C, H, W) : STK_SHAPE(H, W, C)),
                                 first, label,  CLASSES};
        stk_mixup_apply(draw, &batch);
        for (int i = 0; i < N * PIXELS; i++)
            image[i] = turned[first ? i / PIXELS * PIXELS + i % C * H * W + i % PIXELS / C : i];
        assert_memory_equal(image, want_image, sizeof(image));
        assert_memory_equal(label, want_label, sizeof(label));
    }
}

static void values_are_torchvisions(void **state)
{
    (void)state;
    check(&(stk_mixup_draw){.lambda = 0.3}, mixup_image_0, mixup_label_0);
    check(&(stk_mixup_draw){.lambda = 0.9375}, mixup_image_1, mixup_label_1);
    stk_mixup_draw draw = stk_mixup_cut(0.5, 2, 1, H, W);
    check(&draw, cutmix_image_0, cutmix_label_0);
    draw = stk_mixup_cut(0.1, 0, 3, H, W);
    check(&draw, cutmix_image_1, cutmix_label_1);
    draw = stk_mixup_cut(0.99, 2, 2, H, W);
    check(&draw, cutmix_image_2, cutmix_label_2);
    draw = stk_mixup_cut(0, 2, 2, H, W);
    check(&draw, cutmix_image_3, cutmix_label_3);
}

static void long_rows_are_mixed_in_parts(void **state)
{
    (void)state;
    enum { LONG = 1300 };
    static float image[3 * LONG], label[3] = {0, 1, 0};
    for (int i = 0; i < 3 * LONG; i++)
        image[i] = (float)i;
    stk_mixup_batch batch = {3, image, stk_desc_make(STK_F32, STK_SHAPE(LONG)), false, label, 1};
    stk_mixup_apply(&(stk_mixup_draw){.lambda = 0.25}, &batch);
    for (int i = 0; i < 3 * LONG; i++)
        assert_true(image[i] == 0.75f * (float)(i < LONG ? i + 2 * LONG : i - LONG) + 0.25f * (float)i);
    assert_true(label[0] == 0 && label[1] == 0.25f && label[2] == 0.75f);
}

static void lambda_is_beta(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    for (int k = 0; k < 16; k++) {
        const double alpha = beta_golden[k][0], x = beta_golden[k][1], share = beta_golden[k][2];
        int n = 0;
        for (int i = 0; i < DRAWS; i++) {
            stk_rng rng = stk_rng_make(1, (uint64_t)k, (uint64_t)i, 0);
            double lambda = stk_mixup_beta(&rng, alpha);
            assert_true(lambda >= 0 && lambda <= 1);
            n += lambda < x;
        }
        double error = fabs((double)n / DRAWS - share);
        assert_true(error < 4.5 * sqrt(share * (1 - share) / DRAWS) + 1e-4);
    }
}

/* --- in a data set --- */

enum { SAMPLES = 103, ROWS = 8 };
static float images[SAMPLES][6][5][3];
static int32_t labels[SAMPLES];

static stk_dataset *make(double mixup, double cutmix)
{
    const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(6, 5, 3), images}, {"label", STK_I32, {0}, labels}};
    for (int i = 0; i < SAMPLES * 90; i++)
        ((float *)images)[i] = (float)(i % 1013);
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = i % CLASSES;
    stk_dataset *dataset = stk_dataset_arrays(SAMPLES, fields, 2);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_apply_to(dataset, "label", stk_one_hot(CLASSES));
    if (mixup > 0) stk_dataset_mixup(dataset, mixup);
    if (cutmix > 0) stk_dataset_cutmix(dataset, cutmix);
    stk_dataset_batch(dataset, ROWS, false);
    return dataset;
}

/* Hashes of up to 64 batches; returns how many. */
static int read_hashes(const stk_dataset *dataset, stk_loader_config config, uint64_t *out)
{
    stk_loader *loader;
    int n = 0;
    config.n_epochs = 2;
    config.seed = 5;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch)) {
        const float *label = stk_batch_data(batch, "label");
        for (int64_t row = 0; row < ROWS; row++) { /* Shares of real rows add up to 1; padding stays 0. */
            float sum = 0;
            for (int i = 0; i < CLASSES; i++)
                sum += label[row * CLASSES + i];
            assert_true(fabsf(sum - (float)(row < stk_batch_count(batch))) < 1e-5f);
        }
        out[n++] = stk_batch_hash(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    return n;
}

static void workers_and_starts_change_nothing(void **state)
{
    (void)state;
    static const double alphas[3][2] = {{0.4, 0}, {0, 1}, {0.4, 1}};
    uint64_t plain[64], expected[64], hashes[64];
    stk_dataset *dataset = make(0, 0);
    assert_int_equal(read_hashes(dataset, (stk_loader_config){0}, plain), 26);
    stk_dataset_free(dataset);
    for (int k = 0; k < 3; k++) {
        dataset = make(alphas[k][0], alphas[k][1]);
        assert_int_equal(read_hashes(dataset, (stk_loader_config){.n_threads = 1}, expected), 26);
        read_hashes(dataset, (stk_loader_config){.n_threads = 2, .n_slots = 2}, hashes);
        assert_memory_equal(hashes, expected, 26 * sizeof(*hashes));
        read_hashes(dataset, (stk_loader_config){.n_threads = 8}, hashes);
        assert_memory_equal(hashes, expected, 26 * sizeof(*hashes));
        assert_int_equal(read_hashes(dataset, (stk_loader_config){.n_threads = 2, .i_batch = 9}, hashes), 17);
        assert_memory_equal(hashes, expected + 9, 17 * sizeof(*hashes));
        int n_same = 0;
        for (int i = 0; i < 26; i++)
            n_same += expected[i] == plain[i];
        assert_true(n_same < 13); /* A cut of so small images may be empty. */
        stk_dataset_free(dataset);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    static uint8_t pixels[8][2][2][1];
    static float shares[8][2];
    stk_loader *loader;
    stk_array_field fields[] = {{"image", STK_U8, STK_SHAPE(2, 2, 1), pixels}, {"label", STK_I32, {0}, labels}};
    stk_dataset *dataset = stk_dataset_arrays(8, fields, 2);
    stk_dataset_mixup(dataset, 1);
    stk_dataset_batch(dataset, 4, true);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_INVALID);
    assert_string_equal(stk_error_text(),
                        "'mixup' needs labels f32 [n_classes], not i32[]: apply the stage 'one_hot' to them");
    stk_dataset_free(dataset);
    fields[1] = (stk_array_field){"label", STK_F32, STK_SHAPE(2), shares};
    dataset = stk_dataset_arrays(8, fields, 2);
    stk_dataset_mixup(dataset, 1);
    stk_dataset_batch(dataset, 4, true);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_INVALID);
    assert_string_equal(stk_error_text(), "'mixup' needs f32 images, not u8[2,2,1]: normalize or scale them first");
    stk_dataset_free(dataset);
    dataset = stk_dataset_arrays(8, fields, 1);
    stk_dataset_cutmix(dataset, 1);
    stk_dataset_batch(dataset, 4, true);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_INVALID);
    stk_dataset_free(dataset);
    dataset = stk_dataset_arrays(8, fields, 2);
    stk_dataset_cutmix(dataset, 0);
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    assert_string_equal(stk_error_text(), "'cutmix': alpha 0 is not above 0 and at most 1000");
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_torchvisions),
        cmocka_unit_test(long_rows_are_mixed_in_parts),
        cmocka_unit_test(lambda_is_beta),
        cmocka_unit_test(workers_and_starts_change_nothing),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
