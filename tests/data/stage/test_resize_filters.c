/* Resizing with each filter, and as other systems do it: their own pixels, within what is stated below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "data/stage/run_stage.h"
#include "golden/filters_golden.h"
#include "golden/filters_tf_golden.h"
#include "golden/resize_golden.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const filter_names[] = {"bilinear", "bicubic", "nearest"};

static stk_stage *make(stk_filter filter, stk_resize_like like, bool antialias, int64_t height, int64_t width)
{
    stk_resize_config config = stk_resize_config_default();
    config.height = height;
    config.width = width;
    config.filter = filter;
    config.like = like;
    config.antialias = antialias;
    return stk_resize_with(&config);
}

/* Every value within 1; those of PIL equal for 99 of 100, and the nearest are all equal. ./dev pixels draws sizes. */
static void u8_as_pil_and_opencv(void **state)
{
    (void)state;
    int n_values[2][3] = {0}, n_equal[2][3] = {0};
    uint8_t hard[sizeof(resize_rgb)];
    for (size_t i = 0; i < sizeof(hard); i++)
        hard[i] = resize_rgb[i] > 127 ? 255 : 0;
    for (size_t i = 0; i < COUNT(filters_golden); i++) {
        const filters_golden_case *g = &filters_golden[i];
        int64_t n = g->height * g->width * 3;
        int who = g->like == STK_LIKE_OPENCV;
        uint8_t *out = malloc((size_t)n);
        assert_non_null(out);
        run_stage(make(g->filter, g->like, g->antialias, g->height, g->width), array_type(STK_U8, STK_SHAPE(29, 37, 3)),
                  g->hard ? hard : resize_rgb, out);
        for (int64_t k = 0; k < n; k++) {
            if (abs(out[k] - g->pixels[k]) > 1)
                fail_msg("%s as %d to %d x %d: value %d is %d, not %d", filter_names[g->filter], (int)g->like,
                         (int)g->height, (int)g->width, (int)k, out[k], g->pixels[k]);
            n_equal[who][g->filter] += out[k] == g->pixels[k];
            n_values[who][g->filter]++;
        }
        free(out);
    }
    for (int who = 0; who < 2; who++)
        for (int f = 0; f < 3; f++) {
            double share = (double)n_equal[who][f] / n_values[who][f];
            print_message("%s, %s: %.2f %% equal\n", who ? "opencv" : "pil", filter_names[f], 100 * share);
            assert_true(share >= (f == STK_FILTER_NEAREST ? 1 : who ? 0.9 : 0.99));
        }
}

/* f32, unless nearest, which keeps u8. */
static void floats_as_tf(void **state)
{
    (void)state;
    double most[3] = {0};
    for (size_t i = 0; i < COUNT(filters_tf_golden); i++) {
        const filters_tf_golden_case *g = &filters_tf_golden[i];
        int64_t n = g->height * g->width * 3;
        bool is_u8 = g->filter == STK_FILTER_NEAREST;
        stk_field_type type = array_type(STK_U8, STK_SHAPE(29, 37, 3)), planned;
        float *out = malloc((size_t)n * sizeof(float));
        assert_non_null(out);
        stk_stage *stage = make(g->filter, g->like, g->antialias, g->height, g->width);
        assert_int_equal(stage->class->plan(stage->params, &type, &planned), STK_OK);
        assert_int_equal(planned.desc.dtype, is_u8 ? STK_U8 : STK_F32);
        run_stage(stage, type, resize_rgb, out);
        for (int64_t k = 0; k < n; k++) {
            double x = is_u8 ? ((uint8_t *)out)[k] : (double)out[k], off = fabs(x - (double)g->pixels[k]);
            most[g->filter] = off > most[g->filter] ? off : most[g->filter];
        }
        free(out);
    }
    print_message("most off: bilinear %.4f, bicubic %.4f, nearest %g of 255\n", most[0], most[1], most[2]);
    assert_true(most[0] <= 0.001 && most[1] <= 0.001 && most[2] == 0);
}

/* Nothing of a constant image may move, whatever the weights round to. */
static void constant_images_stay(void **state)
{
    (void)state;
    enum { SIDE = 300 };
    uint8_t *src = malloc(SIDE * SIDE * 3), *out = malloc(SIDE * SIDE * 3);
    assert_true(src && out);
    for (int value = 0; value <= 255; value += 51) {
        memset(src, value, SIDE * SIDE * 3);
        for (int filter = 0; filter < 3; filter++)
            for (int antialias = 0; antialias < 2; antialias++)
                for (int64_t side = 1; side < SIDE; side = side * 3 / 2 + 1) {
                    run_stage(make((stk_filter)filter, STK_LIKE_PIL, antialias, side, SIDE - side),
                              array_type(STK_U8, STK_SHAPE(SIDE, SIDE, 3)), src, out);
                    for (int64_t k = 0; k < side * (SIDE - side) * 3; k++)
                        assert_int_equal(out[k], value);
                }
    }
    free(src);
    free(out);
}

/* Black and white side by side overshoots in both passes, the most that a cubic can. From 2 taps to 56. */
static void instruction_sets_agree(void **state)
{
    (void)state;
    enum { SIDE = 67, MOST = 130 };
    uint8_t src[SIDE * SIDE * 3], *out[2] = {malloc(MOST * MOST * 3), malloc(MOST * MOST * 3)};
    assert_true(out[0] && out[1]);
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        src[i] = ((i / 3 % SIDE / 3) ^ (i / 3 / SIDE / 2)) & 1 ? 255 : 0;
    for (int filter = 0; filter < 3; filter++)
        for (int like = 0; like < 2; like++)
            for (int64_t side = 5; side <= MOST; side += 5) {
                for (int isa = 0; isa < 2; isa++) {
                    setenv("STOKER_ISA", isa ? "best" : "baseline", 1);
                    run_stage(
                        make((stk_filter)filter, like ? STK_LIKE_OPENCV : STK_LIKE_PIL, !like, MOST - side / 2, side),
                        array_type(STK_U8, STK_SHAPE(SIDE, SIDE, 3)), src, out[isa]);
                }
                assert_memory_equal(out[0], out[1], (size_t)(side * (MOST - side / 2) * 3));
            }
    unsetenv("STOKER_ISA");
    free(out[0]);
    free(out[1]);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    refuse_stage(make(STK_FILTER_BICUBIC, STK_LIKE_OPENCV, true, 4, 4), STK_INVALID,
                 "resize: opencv has no antialiasing; use like pil, or leave it out");
    refuse_stage(make((stk_filter)7, STK_LIKE_PIL, true, 4, 4), STK_INVALID,
                 "resize: no such filter or likeness: 7, 0");
    refuse_stage(stk_random_resized_crop_with(5, (stk_filter)9, true), STK_INVALID,
                 "random_resized_crop: no such filter: 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u8_as_pil_and_opencv),         cmocka_unit_test(floats_as_tf),
        cmocka_unit_test(constant_images_stay),         cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
