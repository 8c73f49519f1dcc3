/* Augmentations whose numbers are given: torchvision's own pixels, within 1 and nearly all equal. Nearest places are
 * equal but for those that lie between two pixels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/stage/blur.h"
#include "data/stage/color.h"
#include "data/stage/randaugment.h"
#include "data/stage/run_stage.h"
#include "data/stage/tone.h"
#include "data/stage/warp.h"
#include "golden/augment_golden.h"

enum {
    N_CASES = sizeof(golden_augments) / sizeof(golden_augments[0]),
    N_PIXELS = AUGMENT_HEIGHT * AUGMENT_WIDTH,
    MOST_BYTES = N_PIXELS * 3
};

static void apply_colors(const golden_augment *g, const uint8_t *src, uint8_t *dst)
{
    stk_color_op op[3];
    int n = g->n_numbers / 2;
    for (int i = 0; i < n; i++)
        op[i] = (stk_color_op){(stk_color_kind)g->number[2 * i], (float)g->number[2 * i + 1]};
    stk_color_apply(op, n, src, dst, N_PIXELS, g->channels);
}

static void apply_warp(const golden_augment *g, const uint8_t *src, uint8_t *dst)
{
    const double *x = g->number;
    stk_warp_config c = {.angle = -x[0], .scale = 1};
    if (g->kind == AFFINE)
        c = (stk_warp_config){
            .angle = x[0], .move_x = x[1], .move_y = x[2], .scale = x[3], .shear_x = x[4], .shear_y = x[5]};
    stk_warp warp = stk_warp_make(&c);
    stk_warp_apply(&warp, (stk_filter)x[g->n_numbers - 1], 0, src, dst, AUGMENT_HEIGHT, AUGMENT_WIDTH, g->channels);
}

static void apply(const golden_augment *g, const uint8_t *src, uint8_t *dst)
{
    const double *x = g->number;
    stk_scratch scratch = {0};
    switch (g->kind) {
    case COLOR: apply_colors(g, src, dst); break;
    case AUGMENT: {
        stk_augment_kind kind = (stk_augment_kind)x[0];
        double amount = x[2] * stk_augment_amount(kind, (int)x[1], AUGMENT_HEIGHT, AUGMENT_WIDTH);
        stk_augment_apply(kind, amount, src, dst, AUGMENT_HEIGHT, AUGMENT_WIDTH, g->channels);
        break;
    }
    case BLUR:
        assert_int_equal(stk_blur((int)x[0], x[1], src, dst, AUGMENT_HEIGHT, AUGMENT_WIDTH, g->channels, &scratch),
                         STK_OK);
        stk_scratch_free(&scratch);
        break;
    default: apply_warp(g, src, dst);
    }
}

static bool is_nearest(const golden_augment *g)
{
    bool warps = g->kind == ROTATE || g->kind == AFFINE;
    if (g->kind == AUGMENT) return g->number[0] >= STK_AUGMENT_SHEAR_X && g->number[0] <= STK_AUGMENT_ROTATE;
    return warps && g->number[g->n_numbers - 1] == STK_FILTER_NEAREST;
}

static void pixels_of_torchvision(void **state)
{
    (void)state;
    int n_values[N_GOLDEN_KINDS] = {0}, n_equal[N_GOLDEN_KINDS] = {0};
    for (int i = 0; i < N_CASES; i++) {
        const golden_augment *g = &golden_augments[i];
        int n = N_PIXELS * g->channels, n_off = 0, n_here = 0;
        /* A value off by 1 is more after other operations: torchvision's sums are rounded once, not twice. */
        int most_off = g->kind == COLOR && g->n_numbers > 2 ? 3 : 1;
        /* As large as they are: a byte too far is an error that the sanitizer sees. */
        uint8_t *src = malloc((size_t)n), *dst = malloc((size_t)n);
        assert_true(src && dst);
        memcpy(src, g->channels == 3 ? augment_rgb : augment_grey, (size_t)n);
        apply(g, src, dst);
        for (int k = 0; k < n; k++) {
            n_here += dst[k] == g->pixels[k];
            if (abs(dst[k] - g->pixels[k]) > most_off && n_off++ >= (is_nearest(g) ? n / 100 : 0))
                fail_msg("%s: value %d is %d, not %d", g->name, k, dst[k], g->pixels[k]);
        }
        if (n_here < n) print_message("%s: %d of %d equal\n", g->name, n_here, n);
        n_equal[g->kind] += n_here;
        n_values[g->kind] += n;
        free(src);
        free(dst);
    }
    for (int kind = 0; kind < N_GOLDEN_KINDS; kind++) {
        print_message("kind %d: %.3f %% of %d values equal\n", kind, 100.0 * n_equal[kind] / n_values[kind],
                      n_values[kind]);
        assert_true((double)n_equal[kind] > 0.995 * n_values[kind]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_of_torchvision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
