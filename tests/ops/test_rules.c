/* Shape rules: unknown batches, and what is said of shapes that do not fit. Gradients at kinks and ties, where
 * differences tell nothing. Values and gradients elsewhere: tests/harness.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run_graph.h"
#include "passes/passes.h"

static stk_value input(stk_graph *graph, const char *name, stk_shape shape)
{
    return stk_graph_input(graph, name, STK_F32, shape);
}

static void expect_shape(stk_value x, stk_shape shape)
{
    char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
    assert_int_equal(stk_graph_status(x.graph), STK_OK);
    assert_string_equal(stk_shape_text(stk_value_shape(x), a), stk_shape_text(shape, b));
}

static void an_unknown_batch_passes_through(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = input(graph, "x", STK_SHAPE(STK_ANY, 8, 8, 3)), w = input(graph, "w", STK_SHAPE(4, 3, 3, 3));
    stk_value bias = input(graph, "bias", STK_SHAPE(4)), dense = input(graph, "dense", STK_SHAPE(10, 144));
    stk_value y = stk_relu(stk_add(stk_conv2d_raw(x, w, stk_window_make(3, 3)), bias));
    expect_shape(y, STK_SHAPE(STK_ANY, 6, 6, 4));
    expect_shape(stk_reduce_mean(y, 6), STK_SHAPE(STK_ANY, 4));
    expect_shape(stk_reduce_sum(y, 1), STK_SHAPE(6, 6, 4));
    expect_shape(stk_max_pool2d_raw(y, stk_window_make(2, 2)), STK_SHAPE(STK_ANY, 5, 5, 4));
    stk_value flat = stk_reshape(y, STK_SHAPE(STK_ANY, 144));
    expect_shape(flat, STK_SHAPE(STK_ANY, 144));
    expect_shape(stk_matmul(flat, dense, false, true), STK_SHAPE(STK_ANY, 10));
    expect_shape(stk_matmul(flat, flat, true, false), STK_SHAPE(144, 144));
    const int64_t start[2] = {0, 3}, stop[2] = {STK_ANY, 9}, step[2] = {1, 2};
    expect_shape(stk_slice(flat, start, stop, step), STK_SHAPE(STK_ANY, 3));
    expect_shape(stk_concat((stk_value[]){flat, flat}, 2, 1), STK_SHAPE(STK_ANY, 288));
    stk_graph *bound = stk_graph_clone(graph, 32);
    expect_shape(stk_value_of(bound, flat.id), STK_SHAPE(32, 144));
    assert_int_equal(stk_graph_verify(bound), STK_OK);
    stk_graph_free(bound);
    stk_graph_free(graph);
}

/* Steps up to the largest number take the first element of what is left; kernels multiply them by distances. */
static void long_steps_of_slices_do_not_wrap_around(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = input(graph, "x", STK_SHAPE(4, 5));
    const int64_t start[2] = {1, 0}, stop[2] = {STK_ANY, STK_ANY}, step[2] = {INT64_MAX, INT64_MAX - 2};
    stk_value y = stk_slice(x, start, stop, step);
    expect_shape(y, STK_SHAPE(1, 1));
    char *text = stk_graph_print(graph);
    assert_non_null(strstr(text, "range=1::4,0::5"));
    free(text);
    stk_graph_free(graph);
}

static void known_shapes_fill_the_unknown_dimension(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = input(graph, "x", STK_SHAPE(4, 3, 5));
    expect_shape(stk_reshape(x, STK_SHAPE(STK_ANY, 6)), STK_SHAPE(10, 6));
    expect_shape(stk_reduce_max(x, 0), (stk_shape){.rank = 0});
    expect_shape(stk_sub(x, stk_reduce_max(x, 0)), STK_SHAPE(4, 3, 5));
    expect_shape(stk_add(x, input(graph, "row", STK_SHAPE(2, 1, 1, 5))), STK_SHAPE(2, 4, 3, 5));
    stk_graph_free(graph);
}

/* What a builder says when it is wrong; the graph is used up. */
static void expect_error(stk_value x, const char *words)
{
    assert_int_equal(x.id, -1);
    assert_int_equal(stk_graph_status(x.graph), STK_INVALID);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    /* Later calls do nothing. */
    assert_int_equal(stk_exp(stk_add(x, x)).id, -1);
    stk_graph_free(x.graph);
}

#define NEW(...)     input(stk_graph_new(), "x", STK_SHAPE(__VA_ARGS__))
#define MORE(x, ...) input((x).graph, "more", STK_SHAPE(__VA_ARGS__))

static void errors_name_the_shapes(void **state)
{
    (void)state;
    stk_value x = NEW(2, 3);
    expect_error(stk_add(x, MORE(x, 2, 4)), "shapes [2,3] and [2,4] do not fit together");
    x = NEW(2, 3);
    expect_error(stk_add(x, stk_cast_to(x, STK_BF16)), "'add' of a f32[2,3] and b bf16[2,3] needs equal dtypes");
    x = NEW(2, 3);
    expect_error(stk_matmul(x, x, false, false), "a [2,3] and b [2,3] do not fit: the inner sizes differ");
    x = NEW(2, 2, 3);
    expect_error(stk_matmul(x, MORE(x, 4, 3, 1), false, false), "the batches differ");
    x = NEW(1, 8, 8, 3);
    expect_error(stk_conv2d_raw(x, MORE(x, 8, 3, 3, 4), stk_window_make(3, 3)),
                 "weight [8,3,3,4] does not fit x [1,8,8,3] in 1 groups: it must be [O,3,3,C/groups]");
    x = NEW(1, 8, 8, 3);
    expect_error(stk_conv2d_raw(x, MORE(x, 8, 5, 5, 3), stk_window_make(3, 3)), "the window's kernel 3x3");
    x = NEW(1, 2, 8, 3);
    expect_error(stk_max_pool2d_raw(x, stk_window_make(3, 3)),
                 "the window spans 3 pixels of the height, but the image");
    for (int i = 0; i < 5; i++) {
        stk_window deep = stk_window_make(3, 3);
        if (i == 0) deep.kernel[2] = 1;
        if (i == 1) deep.stride[2] = 1;
        if (i == 2) deep.dilation[2] = 1;
        if (i == 3) deep.pad_low[2] = 1;
        if (i == 4) deep.pad_high[2] = 1;
        x = NEW(1, 8, 8, 3);
        expect_error(stk_max_pool2d_raw(x, deep), "window");
    }
    x = NEW(1, STK_ANY, 8, 3);
    expect_error(stk_max_pool2d_raw(x, stk_window_make(3, 3)), "the image [1,?,8,3] must have a known height");
    x = NEW(2, 3);
    expect_error(stk_reshape(x, STK_SHAPE(4, STK_ANY)), "x [2,3] cannot become [4,?]");
    x = NEW(2, 3);
    expect_error(stk_reshape(x, STK_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)), "is too large");
    x = NEW(STK_ANY, 3);
    expect_error(stk_reshape(x, STK_SHAPE(6)), "x [?,3] cannot become [6]");
    x = NEW(2, 3);
    expect_error(stk_broadcast(x, STK_SHAPE(3)), "x [2,3] cannot become [3]: only axes of size 1 can grow");
    x = NEW(2, 3);
    expect_error(stk_transpose(x, (int32_t[]){1, 1}), "axis 1 is out of range or named twice");
    x = NEW(2, 3);
    expect_error(stk_concat((stk_value[]){x, MORE(x, 2, 4)}, 2, 0), "x0 f32[2,3] and x1 f32[2,4] differ in more than");
    x = NEW(2, 3);
    expect_error(stk_reduce_sum(x, 4), "axes 0x4 are not those of x [2,3]");
    x = NEW(2, 3);
    expect_error(stk_cross_entropy_raw(x, MORE(x, 3), 0), "labels f32[3] do not fit logits f32[2,3]");
    x = NEW(2, 3);
    expect_error(stk_layer_norm_raw(x, MORE(x, 2), x, 1e-5), "scale f32[2] must be f32[3]");
    x = NEW(2, 3);
    expect_error(stk_embedding_raw(x, x), "ids f32[2,3] must be i32 with at most 7 dimensions");
    x = NEW(2, 3);
    expect_error(stk_select(x, x, x), "the condition f32[2,3] must be of dtype bool");
    x = NEW(2, 3);
    expect_error(stk_exp(stk_cast_to(x, STK_I32)), "'exp' of x i32[2,3] needs a float dtype");
}

static void missing_values_are_quiet(void **state)
{
    (void)state;
    stk_value none = {NULL, -1};
    assert_null(stk_relu(none).graph);
    assert_int_equal(stk_add(none, none).id, -1);
    assert_int_equal(stk_reduce_sum(none, 0).id, -1);
    assert_int_equal(stk_conv2d_raw(none, none, stk_window_make(1, 1)).id, -1);
    assert_int_equal(stk_grad(none, none).id, -1);
    assert_int_equal(stk_scale_by(none, 2).id, -1);
    assert_int_equal(stk_cast_to(none, STK_F16).id, -1);
}

/* d(sum y)/dx of y = build(x) at x[4], on the reference device. */
static void gradient_at(stk_value (*build)(stk_value x), const float x[4], float dx[4])
{
    stk_device *device;
    graph_run run;
    stk_graph *graph = stk_graph_new();
    stk_value in = input(graph, "x", STK_SHAPE(4));
    stk_graph_output(graph, "dx", stk_grad(build(in), in));
    assert_int_equal(pass_autodiff(graph, &(stk_pass_options){0}), STK_OK);
    assert_int_equal(stk_device_open("reference", NULL, &device), STK_OK);
    assert_int_equal(graph_run_open(graph, device, &run), STK_OK);
    void *leaf = graph_run_leaf(&run, "x");
    if (leaf) memcpy(leaf, x, 4 * sizeof(float)); /* A gradient that is a constant reads no x. */
    assert_int_equal(graph_run_all(&run), STK_OK);
    memcpy(dx, graph_run_output(&run, "dx"), 4 * sizeof(float));
    graph_run_close(&run);
    stk_device_close(device);
    stk_graph_free(graph);
}

static void expect_gradient(stk_value (*build)(stk_value x), const float x[4], const float want[4])
{
    float dx[4];
    gradient_at(build, x, dx);
    for (int i = 0; i < 4; i++)
        if (!(fabsf(dx[i] - want[i]) < 1e-6f))
            fail_msg("element %d: %g, expected %g", i, (double)dx[i], (double)want[i]);
}

static stk_value against_one(stk_value x)
{
    return stk_max(x, stk_graph_constant(x.graph, STK_F32, STK_SHAPE(4), 1));
}

static stk_value below_one(stk_value x)
{
    return stk_min(x, stk_graph_constant(x.graph, STK_F32, STK_SHAPE(4), 1));
}

static stk_value largest(stk_value x)
{
    return stk_reduce_max(x, 0);
}

static stk_value smallest(stk_value x)
{
    return stk_reduce_min(x, 0);
}

static stk_value product(stk_value x)
{
    return stk_reduce_prod(x, 0);
}

static stk_value cubed(stk_value x)
{
    return stk_pow(x, stk_graph_constant(x.graph, STK_F32, STK_SHAPE(4), 3));
}

static stk_value to_the_zero(stk_value x)
{
    return stk_pow(x, stk_graph_constant(x.graph, STK_F32, STK_SHAPE(4), 0));
}

static stk_value zero_to_the(stk_value x)
{
    return stk_pow(stk_graph_constant(x.graph, STK_F32, STK_SHAPE(4), 0), x);
}

static stk_value twice(stk_value x)
{
    return stk_add(x, x);
}

static void kinks_and_ties(void **state)
{
    (void)state;
    expect_gradient(stk_relu, (float[]){-1, 0, 1, 2}, (float[]){0, 0, 1, 1});
    expect_gradient(stk_abs, (float[]){-1, 0, 1, 2}, (float[]){-1, 0, 1, 1});
    expect_gradient(stk_sign, (float[]){-1, 0, 1, 2}, (float[]){0, 0, 0, 0});
    expect_gradient(stk_floor, (float[]){-1, 0.5f, 1, 2}, (float[]){0, 0, 0, 0});
    expect_gradient(against_one, (float[]){0, 1, 2, 1}, (float[]){0, 0.5f, 1, 0.5f});
    expect_gradient(below_one, (float[]){0, 1, 2, 1}, (float[]){1, 0.5f, 0, 0.5f});
    expect_gradient(largest, (float[]){3, 1, 3, 2}, (float[]){0.5f, 0, 0.5f, 0});
    expect_gradient(product, (float[]){3, 1, 3, 2}, (float[]){6, 18, 6, 9});
    expect_gradient(product, (float[]){3, 0, 3, 2}, (float[]){0, 18, 0, 0});
    expect_gradient(product, (float[]){3, 0, 0, 2}, (float[]){0, 0, 0, 0});
    expect_gradient(smallest, (float[]){1, 1, 3, 2}, (float[]){0.5f, 0.5f, 0, 0});
    expect_gradient(stk_ceil, (float[]){-1, 0.5f, 1, 2}, (float[]){0, 0, 0, 0});
    expect_gradient(stk_round, (float[]){-1, 0.5f, 1, 2}, (float[]){0, 0, 0, 0});
    expect_gradient(cubed, (float[]){-2, 0, 1, 2}, (float[]){12, 0, 3, 12});
    expect_gradient(to_the_zero, (float[]){-2, 0, 1, 2}, (float[]){0, 0, 0, 0});
    expect_gradient(zero_to_the, (float[]){0, 1, 2, 3}, (float[]){0, 0, 0, 0});
    expect_gradient(twice, (float[]){0, 1, 2, 3}, (float[]){2, 2, 2, 2});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_batch_passes_through),
        cmocka_unit_test(long_steps_of_slices_do_not_wrap_around),
        cmocka_unit_test(known_shapes_fill_the_unknown_dimension),
        cmocka_unit_test(errors_name_the_shapes),
        cmocka_unit_test(missing_values_are_quiet),
        cmocka_unit_test(kinks_and_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
