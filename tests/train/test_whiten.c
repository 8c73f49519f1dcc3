/* A first layer that whitens: its filters' results over the data are uncorrelated and of the size that eps leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "train/trainer.h"

enum { SIDE = 6, CHANNELS = 2, K = 2, N_SAMPLES = 64, N_PATCH = K * K * CHANNELS };

/* Neighbours alike, the second channel nearly the first. */
static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    float *x = out[0], level = 0;
    stk_rng rng = stk_rng_make(1, 0, (uint64_t)i_sample, 0);
    (void)user;
    for (int i = 0; i < SIDE * SIDE; i++) {
        level = 0.7f * level + (float)stk_rng_u32(&rng) * 0x1p-31f - 1;
        x[CHANNELS * i] = 3 * level + 0.5f;
        x[CHANNELS * i + 1] = 2 * level + 0.01f * ((float)stk_rng_u32(&rng) * 0x1p-31f - 1);
    }
    *(int32_t *)out[1] = (int32_t)(i_sample % 2);
    return STK_OK;
}

static stk_trainer *make_trainer(int64_t filters, stk_whiten whiten)
{
    static const stk_param_group frozen = {.match = "first.weight", .frozen = true};
    const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(SIDE, SIDE, CHANNELS), NULL},
                                      {"label", STK_I32, {0}, NULL}};
    stk_dataset *dataset = stk_dataset_function(N_SAMPLES, fields, 2, make_sample, NULL);
    stk_dataset_batch(dataset, 16, true);
    stk_model *model = stk_model_new("small");
    stk_conv2d_config conv = {.filters = filters, .kernel = K, .padding = -1, .name = "first"};
    stk_value x = stk_relu(stk_conv2d_with(stk_model_input(model, STK_F32, SIDE, SIDE, CHANNELS), &conv));
    x = stk_dense(stk_global_pool(stk_conv2d(x, 3, 3)), 2);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    stk_trainer *trainer = stk_trainer_new(model, dataset, stk_sgd(.lr = 0.01));
    stk_trainer_config config = stk_trainer_config_default();
    config.whiten = whiten;
    config.groups = &frozen;
    config.n_groups = 1;
    stk_trainer_configure(trainer, &config);
    return trainer;
}

static const float *find_weight(stk_trainer *trainer)
{
    const stk_named_tensor *tensors;
    size_t n;
    assert_int_equal(stk_trainer_tensors(trainer, &tensors, &n), STK_OK);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(tensors[i].name, "first.weight")) return tensors[i].view.data;
    fail_msg("no first.weight");
    return NULL;
}

/* Sums of products of two filters' results over all patches, by the number of patches. */
static double correlate(const float *a, const float *b)
{
    double sum = 0;
    int n = 0;
    for (int s = 0; s < N_SAMPLES; s++) {
        float image[SIDE * SIDE * CHANNELS];
        int32_t label;
        make_sample(NULL, s, (void *[]){image, &label});
        for (int y = 0; y + K <= SIDE; y++)
            for (int x = 0; x + K <= SIDE; x++, n++) {
                double p = 0, q = 0;
                for (int k = 0; k < N_PATCH; k++) {
                    int row = k / (K * CHANNELS), rest = k % (K * CHANNELS);
                    double value = (double)image[((y + row) * SIDE + x) * CHANNELS + rest];
                    p += (double)a[k] * value;
                    q += (double)b[k] * value;
                }
                sum += p * q;
            }
    }
    return sum / n;
}

static void results_are_uncorrelated(void **state)
{
    double eps = 1e-3, before = INFINITY;
    (void)state;
    stk_trainer *trainer = make_trainer(2 * N_PATCH, (stk_whiten){"first", N_SAMPLES, eps});
    if (stk_trainer_run(trainer, 1) != STK_OK) fail_msg("%s", stk_error_text());
    const float *w = find_weight(trainer);
    for (int i = 0; i < N_PATCH; i++) {
        double length = 0;
        for (int k = 0; k < N_PATCH; k++) {
            length += (double)w[i * N_PATCH + k] * (double)w[i * N_PATCH + k];
            assert_true(w[(i + N_PATCH) * N_PATCH + k] == -w[i * N_PATCH + k]);
        }
        /* A filter is v / sqrt(value + eps) with v of length 1, so its results have the size value / (value + eps). */
        double value = 1 / length - eps;
        assert_true(value < before * (1 + 1e-6));
        before = value;
        for (int j = 0; j < N_PATCH; j++) {
            double want = i == j ? value / (value + eps) : 0;
            assert_true(fabs(correlate(w + i * N_PATCH, w + j * N_PATCH) - want) < 1e-3);
        }
    }
    stk_trainer_free(trainer);
}

static void refuse(int64_t filters, stk_whiten whiten, stk_status status, const char *text)
{
    stk_trainer *trainer = make_trainer(filters, whiten);
    assert_int_equal(stk_trainer_run(trainer, 1), status);
    assert_string_equal(stk_error_text(), text);
    stk_trainer_free(trainer);
}

static void what_cannot_be_whitened_is_refused(void **state)
{
    (void)state;
    refuse(N_PATCH, (stk_whiten){"nowhere", 1, 1}, STK_NOT_FOUND,
           "'whiten': there is no convolution 'nowhere' that reads f32 images of the data; 'stoker models NAME' lists "
           "the layers");
    refuse(N_PATCH, (stk_whiten){"conv2d", 1, 1}, STK_NOT_FOUND,
           "'whiten': there is no convolution 'conv2d' that reads f32 images of the data; 'stoker models NAME' lists "
           "the layers");
    refuse(5, (stk_whiten){"first", 1, 1}, STK_INVALID,
           "'whiten': 'first' has 5 filters; its patches of 8 numbers want as many, or twice as many");
    refuse(N_PATCH, (stk_whiten){"first", 0, 1}, STK_INVALID,
           "'whiten': 0 samples and an eps of 1; both must be above 0");
    refuse(N_PATCH, (stk_whiten){"first", 1, 0}, STK_INVALID,
           "'whiten': 1 samples and an eps of 0; both must be above 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_uncorrelated),
        cmocka_unit_test(what_cannot_be_whitened_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
