/* What each augmentation takes for one u8 image of 224 x 224, on one thread: the median of several rounds, in
 * microseconds. bench/stages_torchvision.py measures the same with torchvision.
 *
 *     bench_stages [side]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "data/stage/randaugment.h"
#include "data/stage/stage_list.h"

enum { N_ROUNDS = 15, N_SAMPLES = 20 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, double us[N_ROUNDS])
{
    qsort(us, N_ROUNDS, sizeof(us[0]), compare);
    printf("%-28s %8.1f us\n", name, us[N_ROUNDS / 2]);
}

/* Takes stage. */
static void time_stage(const char *name, stk_stage *stage, const stk_item *in, void *dst)
{
    double us[N_ROUNDS];
    stk_scratch scratch = {0};
    stk_item out = {.data = dst};
    if (stage->status != STK_OK || stage->class->plan(stage->params, &in->type, &out.type) != STK_OK) abort();
    out.n_bytes = stk_desc_bytes(out.type.desc);
    for (int i = 0; i < N_ROUNDS; i++) {
        int64_t start_ns = stk_clock_ns();
        for (uint64_t k = 0; k < N_SAMPLES; k++) {
            stk_stage_key key = {.seed = 1, .i_sample = k};
            if (stage->class->run(stage->params, &key, in, &out, &scratch) != STK_OK) abort();
        }
        us[i] = (double)(stk_clock_ns() - start_ns) / 1e3 / N_SAMPLES;
    }
    report(name, us);
    stk_scratch_free(&scratch);
    stk_stage_free(stage);
}

static void time_augment(const char *name, stk_augment_kind kind, const stk_item *in, uint8_t *dst)
{
    double us[N_ROUNDS];
    const int64_t *dim = in->type.desc.shape.dim;
    for (int i = 0; i < N_ROUNDS; i++) {
        int64_t start_ns = stk_clock_ns();
        for (int k = 0; k < N_SAMPLES; k++)
            stk_augment_apply(kind, stk_augment_amount(kind, 9, dim[0], dim[1]), in->data, dst, dim[0], dim[1], 3);
        us[i] = (double)(stk_clock_ns() - start_ns) / 1e3 / N_SAMPLES;
    }
    report(name, us);
}

static void time_stages(const stk_item *in, int64_t side, void *dst)
{
    stk_random_erasing_config erasing = stk_random_erasing_config_default();
    stk_random_affine_config affine = stk_random_affine_config_default();
    stk_resize_config resize = stk_resize_config_default();
    erasing.chance = 1;
    affine.degrees[0] = affine.degrees[1] = 20;
    affine.filter = STK_FILTER_BILINEAR;
    resize.height = resize.width = side * 4 / 7;
    time_stage("resize bilinear", stk_resize_with(&resize), in, dst);
    resize.filter = STK_FILTER_BICUBIC;
    time_stage("resize bicubic", stk_resize_with(&resize), in, dst);
    resize.filter = STK_FILTER_NEAREST;
    time_stage("resize nearest", stk_resize_with(&resize), in, dst);
    time_stage("brightness", stk_color_jitter(0.4, 0, 0, 0), in, dst);
    time_stage("contrast", stk_color_jitter(0, 0.4, 0, 0), in, dst);
    time_stage("saturation", stk_color_jitter(0, 0, 0.4, 0), in, dst);
    time_stage("hue", stk_color_jitter(0, 0, 0, 0.1), in, dst);
    time_stage("color_jitter, all four", stk_color_jitter(0.4, 0.4, 0.4, 0.1), in, dst);
    time_stage("grayscale", stk_random_grayscale(1), in, dst);
    time_stage("gaussian_blur 9", stk_gaussian_blur(9, 0.1, 2), in, dst);
    time_stage("gaussian_blur 23", stk_gaussian_blur(23, 0.1, 2), in, dst);
    time_stage("random_erasing", stk_random_erasing(&erasing), in, dst);
    time_stage("rotation nearest", stk_random_rotation(20, 20, STK_FILTER_NEAREST, 0), in, dst);
    time_stage("affine bilinear", stk_random_affine(&affine), in, dst);
    time_stage("flip, vertical", stk_random_flip_vertical(), in, dst);
    time_stage("randaugment 2, 9", stk_randaugment(2, 9), in, dst);
    time_stage("pad 4", stk_pad_image(4, 4, 4, 4, 0), in, dst);
    time_stage("layout", stk_layout_channels_first(), in, dst);
}

int main(int argc, char **argv)
{
    int64_t side = argc > 1 ? atoi(argv[1]) : 224;
    size_t n = (size_t)(side * side * 3);
    uint8_t *src = malloc(n), *dst = malloc(4 * n + 65536);
    if (side < 32 || !src || !dst) return 1;
    for (size_t i = 0; i < n; i++)
        src[i] = (uint8_t)(i / 3 % (size_t)side + stk_mix64(i) % 60);
    const stk_item in = {
        .type = {STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(side, side, 3))}, .data = src, .n_bytes = n};
    time_stages(&in, side, dst);
    time_augment("sharpness", STK_AUGMENT_SHARPNESS, &in, dst);
    time_augment("posterize", STK_AUGMENT_POSTERIZE, &in, dst);
    time_augment("solarize", STK_AUGMENT_SOLARIZE, &in, dst);
    time_augment("autocontrast", STK_AUGMENT_AUTOCONTRAST, &in, dst);
    time_augment("equalize", STK_AUGMENT_EQUALIZE, &in, dst);
    free(src);
    free(dst);
    return 0;
}
