/* Convolution and its gradients at sizes where something is not whole: tiles, panels, chunks of weights, groups of
 * pixels, shares of threads. Padding is absent, not zero.
 */
#include "device/cpu/compare.h"
#include "device/cpu/cpu.h"
#include "device/cpu/impl.h"

typedef struct shape {
    int n, h, w, c, o;
    int kernel[2], stride[2], low[2], high[2], dilation[2];
    int groups;
} shape;

#define BOTH(i)                                                                                                        \
    {                                                                                                                  \
        i, i                                                                                                           \
    }
#define SQUARE(k, s, p) BOTH(k), BOTH(s), BOTH(p), BOTH(p), BOTH(1), 1

static const shape shapes[] = {
    {3, 9, 7, 5, 17, SQUARE(3, 1, 1)},
    {1, 13, 11, 17, 33, SQUARE(3, 1, 1)},
    {2, 10, 9, 33, 5, SQUARE(5, 1, 2)},
    {5, 7, 6, 1, 1, SQUARE(3, 1, 1)},
    {4, 6, 5, 16, 3, SQUARE(2, 1, 0)},
    {2, 8, 8, 8, 48, SQUARE(1, 1, 0)},
    /* Products: threads share pixels, which do not divide; strided ones gather and spread, with pixels left over. */
    {5, 15, 13, 128, 256, SQUARE(1, 1, 0)},
    {5, 30, 25, 128, 256, SQUARE(1, 2, 0)},
    {3, 41, 37, 64, 128, SQUARE(1, 1, 0)},
    /* Weights that threads share as a grid, and fewer pixels than a group; a group and a bit. */
    {1, 5, 7, 289, 200, SQUARE(1, 1, 0)},
    {2, 26, 27, 260, 200, SQUARE(1, 2, 0)},
    {4, 15, 46, 260, 130, {1, 1}, {1, 3}, {0, 0}, {0, 0}, {1, 1}, 1},
    /* More than one chunk of weights, two blocks of channels, few pixels. */
    {2, 4, 4, 130, 70, SQUARE(3, 1, 1)},
    {1, 2, 2, 200, 300, SQUARE(3, 1, 1)},
    /* Weights so many that threads share panels. */
    {9, 6, 6, 72, 130, SQUARE(3, 1, 1)},
    /* Rows longer than a group of pixels, and images that end within one. */
    {2, 3, 300, 9, 4, SQUARE(3, 1, 1)},
    {11, 5, 9, 12, 20, SQUARE(3, 1, 1)},
    /* Strides: phases without taps, phases of different size, images with rows left over. */
    {3, 8, 8, 24, 40, SQUARE(3, 2, 1)},
    {3, 9, 7, 24, 40, SQUARE(1, 2, 0)},
    /* What oneDNN writes behind its scratch memory for. */
    {3, 16, 16, 3, 8, SQUARE(1, 2, 0)},
    {3, 82, 82, 12, 22, SQUARE(1, 2, 0)},
    {2, 11, 10, 9, 18, SQUARE(2, 3, 0)},
    {2, 12, 13, 8, 16, SQUARE(3, 3, 1)},
    {2, 15, 14, 3, 32, SQUARE(7, 2, 3)},
    {2, 9, 12, 10, 6, {3, 2}, {2, 3}, {1, 0}, {2, 1}, {1, 1}, 1},
    {2, 7, 9, 11, 6, {1, 3}, {1, 2}, {0, 2}, {0, 0}, {1, 1}, 1},
    {2, 6, 6, 9, 7, {1, 1}, {2, 1}, {1, 2}, {1, 0}, {1, 1}, 1},
    /* Padding wider than the kernel: outputs without any tap, and weights that meet no pixel. */
    {2, 4, 5, 8, 9, {2, 2}, {1, 1}, {3, 2}, {2, 3}, {1, 1}, 1},
    {2, 1, 1, 9, 10, SQUARE(3, 1, 1)},
    {1, 2, 2, 8, 8, SQUARE(5, 1, 2)},
    /* Dilation; with a stride its gradient of data is oneDNN's, as are groups. */
    {2, 9, 8, 10, 17, {3, 2}, {1, 1}, {2, 1}, {2, 0}, {2, 3}, 1},
    {2, 12, 11, 9, 12, {2, 3}, {2, 1}, {1, 2}, {0, 2}, {3, 2}, 1},
    {2, 6, 6, 8, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
    /* Winograd: halves of tiles, uneven padding and none, channels that do not fill a panel of AVX-512, sums in two
     * parts on either side, and more tiles than a block of the gradient of weights has. */
    {3, 11, 9, 48, 32, SQUARE(3, 1, 1)},
    {2, 12, 13, 32, 48, {3, 3}, {1, 1}, {0, 1}, {1, 0}, {1, 1}, 1},
    {3, 12, 12, 32, 80, SQUARE(3, 1, 0)},
    {4, 8, 8, 272, 32, SQUARE(3, 1, 1)},
    {4, 8, 8, 32, 272, SQUARE(3, 1, 1)},
    {3, 19, 20, 112, 160, SQUARE(3, 1, 1)},
    /* Few enough channels for sums of each thread's own. */
    {5, 19, 20, 32, 32, SQUARE(3, 1, 1)},
    /* A kernel for each channel. */
    {3, 9, 7, 20, 20, BOTH(3), BOTH(1), BOTH(1), BOTH(1), BOTH(1), 20},
    {2, 11, 12, 32, 32, BOTH(5), BOTH(2), BOTH(2), BOTH(2), BOTH(1), 32},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static int64_t out_size(const shape *s, int i)
{
    return ((i ? s->w : s->h) + s->low[i] + s->high[i] - s->dilation[i] * (s->kernel[i] - 1) - 1) / s->stride[i] + 1;
}

static call make_call_of(stk_dtype dtype, const shape *s, stk_op op)
{
    call c = compare_make(op);
    stk_shape x = STK_SHAPE(s->n, s->h, s->w, s->c), y = STK_SHAPE(s->n, out_size(s, 0), out_size(s, 1), s->o),
              weight = STK_SHAPE(s->o, s->kernel[0], s->kernel[1], s->c / s->groups);
    c.attrs.window.groups = s->groups;
    for (int i = 0; i < 2; i++) {
        c.attrs.window.kernel[i] = s->kernel[i];
        c.attrs.window.stride[i] = s->stride[i];
        c.attrs.window.pad_low[i] = s->low[i];
        c.attrs.window.pad_high[i] = s->high[i];
        c.attrs.window.dilation[i] = s->dilation[i];
    }
    bool to_x = op == STK_OP_conv2d_grad_data, to_weight = op == STK_OP_conv2d_grad_weight;
    call_add(&c, dtype, to_x ? y : x, -1, 1);
    call_add(&c, dtype, to_weight ? y : weight, -1, 1);
    call_add_out(&c, to_weight ? STK_F32 : dtype, to_x ? x : to_weight ? weight : y);
    c.attrs.shape = to_x || to_weight ? c.out_desc[0].shape : (stk_shape){.rank = 0};
    return c;
}

static call make_call(const shape *s, stk_op op)
{
    return make_call_of(STK_F32, s, op);
}

static void check_pass(stk_op op)
{
    for (int i = 0; i < N_SHAPES; i++) {
        call c = make_call(&shapes[i], op);
        compare_call(&c, 1e-5);
    }
}

static void forward(void **state)
{
    (void)state;
    check_pass(STK_OP_conv2d);
}

static void gradients_of_data(void **state)
{
    (void)state;
    check_pass(STK_OP_conv2d_grad_data);
}

static void gradients_of_weights(void **state)
{
    (void)state;
    check_pass(STK_OP_conv2d_grad_weight);
}

/* bf16, rounded once: products, plain and strided, Winograd's tiles, and the direct way; where the processor multiplies
 * bf16, images that threads do not share evenly, fewer of them than threads, groups, and weights that threads share. */
static void sixteen_bits(void **state)
{
    static const shape tested[] = {{5, 15, 13, 128, 256, SQUARE(1, 1, 0)},
                                   {5, 30, 25, 128, 256, SQUARE(1, 2, 0)},
                                   {3, 11, 9, 48, 32, SQUARE(3, 1, 1)},
                                   {3, 11, 9, 24, 20, SQUARE(3, 2, 1)},
                                   {5, 15, 13, 140, 600, SQUARE(1, 1, 0)},
                                   {2, 19, 18, 3, 16, SQUARE(7, 2, 3)},
                                   {4, 6, 6, 8, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2}};
    enum { N_TESTED = sizeof(tested) / sizeof(tested[0]) };
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    (void)state;
    for (int i = 0; i < N_TESTED * 3; i++) {
        call c = make_call_of(STK_BF16, &tested[i / 3], ops[i % 3]);
        compare_call(&c, i % 3 == 2 ? 1e-5 : 0x1p-8);
    }
}

/* The gradient of data as a convolution of its own, with the weights turned round (conv2d_onednn.c): taps and padding
 * that differ from side to side, taps far apart, as much padding as there can be, channels that are left over on either
 * side, and 1x1 into fewer channels; then what stays as it is: more padding than that, and strides.
 */
static void gradients_of_data_turned_round(void **state)
{
    static const shape tested[] = {{3, 9, 11, 132, 33, {3, 2}, {1, 1}, {0, 1}, {2, 0}, {1, 1}, 1},
                                   {3, 12, 13, 128, 48, {2, 3}, {1, 1}, {1, 2}, {0, 3}, {1, 2}, 1},
                                   {5, 7, 7, 144, 64, SQUARE(3, 1, 2)},
                                   {5, 8, 6, 48, 80, SQUARE(1, 1, 0)},
                                   {3, 8, 6, 12, 37, SQUARE(1, 1, 0)},
                                   {3, 9, 11, 128, 32, SQUARE(3, 1, 3)},
                                   {3, 9, 11, 128, 32, SQUARE(3, 2, 1)}};
    (void)state;
    for (size_t i = 0; i < sizeof(tested) / sizeof(tested[0]); i++) {
        call c = make_call_of(STK_BF16, &tested[i], STK_OP_conv2d_grad_data);
        compare_call(&c, 0x1p-8);
    }
}

/* On one to three threads with the best instruction set. impl: the kernel's; NULL: any. */
static void compare_bf16(const shape *s, stk_op op, const char *impl)
{
    double tolerance = op == STK_OP_conv2d_grad_weight ? 1e-5 : 0x1p-8;
    call c = make_call_of(STK_BF16, s, op);
    stk_op_call op_call = {c.op, &c.attrs, c.n_in, c.n_out, c.in_desc, c.out_desc};
    stk_device *reference = NULL;
    void *want[CALL_MOST];
    assert_int_equal(stk_device_open("reference", NULL, &reference), STK_OK);
    assert_int_equal(call_run(&c, reference, -1, want, NULL), STK_OK);
    /* The model takes its time. */
    for (int n_threads = 1; n_threads <= 3; n_threads += impl && strstr(impl, "model") ? 2 : 1) {
        stk_device *device = call_open("avx512", n_threads);
        stk_kernel kernel = {0};
        assert_int_equal(device->class->kernel(device, &op_call, &kernel), STK_OK);
        if (impl) assert_string_equal(kernel.impl, impl);
        stk_kernel_free(&kernel);
        compare_device(&c, device, want, tolerance);
        stk_device_close(device);
    }
    call_free_outputs(want);
    call_free(&c);
    stk_device_close(reference);
}

/* By the processor's tiles, where it has them, and by the model of them. */
static void compare_tiles(const shape *s, stk_op op)
{
    stk_device *device = call_open("avx512", 3);
    bool has_tiles = stk_isa_has_amx(((stk_cpu_device *)device)->isa);
    stk_device_close(device);
    if (has_tiles) compare_bf16(s, op, "own amx");
    setenv("STOKER_AMX", "model", 1);
    compare_bf16(s, op, "own amx model");
    unsetenv("STOKER_AMX");
}

/* Weights by pairs of bf16 (conv2d_weight_pairs.c): an odd number of images, several twos of them in a unit and units
 * left over, some rows in a unit and fewer in the last, each width of a tile, uneven padding, strides with and without
 * taps side by side, padding wider than the image, fewer units than threads, large sums of each thread's own, and
 * weights that threads share: two by each side's channels, three with and without all units at once.
 */
static void weights_by_pairs(void **state)
{
    static const shape tested[] = {{3, 9, 7, 32, 12, SQUARE(3, 1, 1)},
                                   {9, 6, 6, 64, 20, SQUARE(3, 1, 1)},
                                   {15, 11, 10, 32, 32, SQUARE(3, 1, 1)},
                                   {3, 37, 29, 32, 40, SQUARE(3, 1, 1)},
                                   {2, 13, 300, 32, 4, SQUARE(3, 1, 1)},
                                   {5, 30, 25, 64, 28, SQUARE(3, 2, 1)},
                                   {4, 16, 18, 32, 16, SQUARE(3, 2, 1)},
                                   {5, 29, 26, 96, 24, SQUARE(1, 2, 0)},
                                   {3, 9, 12, 32, 8, SQUARE(1, 2, 1)},
                                   {3, 9, 12, 32, 16, {3, 2}, {2, 3}, {1, 0}, {2, 1}, {1, 1}, 1},
                                   {2, 2, 3, 32, 12, {2, 2}, {1, 1}, {3, 4}, {2, 3}, {1, 1}, 1},
                                   {3, 1, 1, 32, 12, SQUARE(3, 1, 1)},
                                   {13, 7, 7, 416, 400, SQUARE(1, 1, 0)},
                                   {13, 7, 7, 672, 500, SQUARE(1, 1, 0)},
                                   {7, 14, 14, 1024, 660, SQUARE(1, 1, 0)},
                                   {5, 7, 7, 256, 292, SQUARE(3, 1, 1)},
                                   {21, 7, 7, 192, 196, SQUARE(3, 1, 1)}};
    (void)state;
    setenv("STOKER_AMX", "off", 1);
    for (size_t i = 0; i < sizeof(tested) / sizeof(tested[0]); i++) {
        stk_device *device = call_open("avx512", 3);
        bool has_bf16 = stk_isa_has_bf16(((stk_cpu_device *)device)->isa);
        stk_device_close(device);
        compare_bf16(&tested[i], STK_OP_conv2d_grad_weight, has_bf16 ? "pairs of bf16" : NULL);
    }
    unsetenv("STOKER_AMX");
}

/* By tiles (conv2d_weight_amx.c), modelled and the processor's: each number of pixels of a row that a tile takes, with
 * images and pixels that do not fill it; channels of either side that fill no block, that come by in several, and that
 * threads share; units of rows and of groups of images, several for a thread and fewer than threads; strides with and
 * without taps side by side, columns by their remainder; uneven padding, and wider than the image; taps of a row as
 * channels, of which some are padding.
 */
static void weights_by_tiles(void **state)
{
    static const shape tested[] = {{3, 9, 7, 32, 17, SQUARE(3, 1, 1)},
                                   {35, 7, 7, 48, 40, SQUARE(3, 1, 1)},
                                   {17, 6, 14, 33, 64, SQUARE(3, 1, 1)},
                                   {9, 5, 12, 32, 32, SQUARE(3, 1, 1)},
                                   {5, 11, 24, 16, 96, SQUARE(3, 1, 1)},
                                   {1, 13, 16, 32, 20, SQUARE(5, 1, 2)},
                                   {5, 30, 25, 64, 28, SQUARE(3, 2, 1)},
                                   {33, 10, 10, 32, 16, SQUARE(3, 2, 1)},
                                   {5, 29, 26, 96, 24, SQUARE(1, 2, 0)},
                                   {3, 9, 12, 32, 16, SQUARE(1, 2, 1)},
                                   {3, 10, 23, 32, 16, SQUARE(3, 3, 0)},
                                   {3, 9, 12, 32, 16, {3, 2}, {2, 3}, {1, 0}, {2, 1}, {1, 1}, 1},
                                   {2, 2, 3, 32, 16, {2, 2}, {1, 1}, {3, 4}, {2, 3}, {1, 1}, 1},
                                   {40, 1, 1, 32, 16, SQUARE(3, 1, 1)},
                                   {3, 40, 31, 3, 24, SQUARE(7, 2, 3)},
                                   {4, 9, 16, 3, 32, SQUARE(3, 1, 1)},
                                   {34, 5, 6, 5, 32, {2, 4}, {1, 3}, {1, 2}, {0, 5}, {1, 1}, 1},
                                   {7, 7, 7, 416, 100, SQUARE(1, 1, 0)},
                                   {3, 9, 11, 160, 1312, SQUARE(1, 1, 0)},
                                   {3, 61, 50, 32, 16, SQUARE(3, 1, 1)},
                                   {130, 9, 7, 32, 32, SQUARE(3, 1, 1)},
                                   {32, 2, 2, 32, 16, SQUARE(7, 1, 3)},
                                   {12, 1, 1, 32, 16, SQUARE(7, 1, 3)},
                                   {32, 4, 4, 16, 16, SQUARE(11, 1, 5)}};
    (void)state;
    for (size_t i = 0; i < sizeof(tested) / sizeof(tested[0]); i++)
        compare_tiles(&tested[i], STK_OP_conv2d_grad_weight);
}

/* Forward and data (conv2d_amx.c): images in a line, several in a unit and bands of one; a place of 16 images, with
 * groups left over and bands, of which the last is shorter; strides, whose phases differ in size and have no taps or
 * several; kernels of taps far apart, and larger than the image; channels and outputs that fill no step and no panel;
 * rows whose taps are joined, with edges on either side; 1x1 in place, with pixels that fill no tile; more steps than
 * are near.
 */
static void convolutions_by_tiles(void **state)
{
    static const shape tested[] = {
        {3, 9, 7, 40, 70, SQUARE(3, 1, 1)},    {2, 141, 61, 64, 17, SQUARE(3, 1, 1)},
        {16, 7, 7, 64, 33, SQUARE(3, 1, 1)},   {48, 3, 2, 33, 40, SQUARE(3, 1, 1)},
        {16, 41, 31, 32, 17, SQUARE(3, 1, 1)}, {32, 4, 4, 32, 32, SQUARE(5, 1, 2)},
        {16, 9, 7, 40, 33, SQUARE(3, 2, 1)},   {16, 8, 10, 24, 20, {2, 3}, {2, 1}, {0, 1}, {1, 1}, {1, 1}, 1},
        {16, 70, 40, 32, 17, SQUARE(3, 2, 1)}, {16, 9, 8, 33, 17, {3, 2}, {1, 1}, {2, 1}, {2, 0}, {2, 3}, 1},
        {16, 2, 2, 32, 40, SQUARE(7, 1, 3)},   {5, 12, 11, 20, 40, {2, 3}, {2, 1}, {1, 2}, {0, 2}, {3, 2}, 1},
        {3, 9, 7, 24, 40, SQUARE(1, 2, 0)},    {16, 6, 5, 20, 24, SQUARE(1, 2, 1)},
        {7, 15, 13, 40, 66, SQUARE(1, 1, 0)},  {3, 19, 18, 3, 16, SQUARE(7, 2, 3)},
        {16, 3, 2, 5, 16, SQUARE(5, 1, 2)},    {3, 7, 9, 64, 96, SQUARE(1, 1, 0)},
        {1, 3, 2, 32, 37, SQUARE(1, 1, 0)},    {5, 16, 15, 416, 32, SQUARE(1, 1, 0)},
        {1, 3, 5, 768, 64, SQUARE(3, 1, 1)}};
    (void)state;
    for (size_t i = 0; i < sizeof(tested) / sizeof(tested[0]); i++) {
        compare_tiles(&tested[i], STK_OP_conv2d);
        compare_tiles(&tested[i], STK_OP_conv2d_grad_data);
    }
}

/* With infinities in an input, outputs are finite, infinite and NaN just where the reference's are. Padding by zeros
 * would turn more of them into NaN. */
static void padding_is_absent(void **state)
{
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    static const shape tested[] = {{2, 6, 5, 9, 18, SQUARE(3, 1, 1)}, {2, 7, 6, 9, 18, SQUARE(3, 2, 1)}};
    (void)state;
    for (int i = 0; i < 3 * 2 * 3; i++) {
        call c = make_call(&tested[i / 3 % 2], ops[i / 6]);
        void *want[CALL_MOST], *got[CALL_MOST];
        stk_device *reference = NULL, *device = call_open(compare_isas[i % 3], 2);
        int target = c.op == STK_OP_conv2d_grad_weight ? 0 : 1;
        /* An infinite corner of the kernel, or of the images: some outputs do not meet it. */
        stk_shape t = c.in_desc[target].shape;
        for (int64_t k = 0, n = t.dim[1] * t.dim[2] * t.dim[3]; k < t.dim[0]; k++)
            ((float *)c.in[target])[k * n] = INFINITY;
        assert_int_equal(stk_device_open("reference", NULL, &reference), STK_OK);
        assert_int_equal(call_run(&c, reference, -1, want, NULL), STK_OK);
        assert_int_equal(call_run(&c, device, -1, got, NULL), STK_OK);
        int64_t n_finite = 0, n = stk_shape_count(c.out_desc[0].shape);
        for (int64_t k = 0; k < n; k++) {
            float x = ((float *)got[0])[k], y = ((float *)want[0])[k];
            n_finite += isfinite(y) != 0;
            if (isnan(x) != isnan(y) || isinf(x) != isinf(y))
                fail_msg("case %d: %g instead of %g", i, (double)x, (double)y);
        }
        assert_in_range(n_finite, 1, n - 1);
        call_free_outputs(want);
        call_free_outputs(got);
        call_free(&c);
        stk_device_close(reference);
        stk_device_close(device);
    }
}

static double kernel_flops; /* of the kernel that impl_of asked for last */

static const char *impl_of(stk_device *device, const shape *s, stk_op op)
{
    static char name[64];
    call c = make_call(s, op);
    stk_op_call op_call = {c.op, &c.attrs, c.n_in, c.n_out, c.in_desc, c.out_desc};
    stk_kernel kernel = {0};
    assert_int_equal(device->class->kernel(device, &op_call, &kernel), STK_OK);
    snprintf(name, sizeof(name), "%s", kernel.impl);
    kernel_flops = kernel.flops;
    stk_kernel_free(&kernel);
    call_free(&c);
    return name;
}

static void onednn_has_the_rest(void **state)
{
    static const shape plain = {2, 8, 8, 16, 16, SQUARE(3, 2, 1)}, image = {2, 8, 8, 3, 16, SQUARE(3, 1, 1)},
                       both = {2, 9, 9, 16, 16, {3, 3}, {2, 2}, {2, 2}, {2, 2}, {2, 2}, 1},
                       grouped = {2, 8, 8, 16, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4};
    static const struct {
        const shape *shape;
        stk_op op;
        const char *impl;
    } cases[] = {
        {&plain, STK_OP_conv2d, "own baseline"},         {&plain, STK_OP_conv2d_grad_data, "own baseline"},
        {&plain, STK_OP_conv2d_grad_weight, "own base"}, {&image, STK_OP_conv2d, "own baseline"},
        {&image, STK_OP_conv2d_grad_weight, "onednn"},   {&both, STK_OP_conv2d, "own baseline"},
        {&both, STK_OP_conv2d_grad_data, "onednn"},      {&grouped, STK_OP_conv2d, "onednn"},
        {&grouped, STK_OP_conv2d_grad_weight, "onednn"},
    };
    (void)state;
    stk_device *device = call_open("baseline", 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *impl = impl_of(device, cases[i].shape, cases[i].op);
        if (strncmp(impl, cases[i].impl, strlen(cases[i].impl))) fail_msg("case %zu is %s", i, impl);
    }
    stk_device_close(device);
}

/* With AVX-512, what has few channels is oneDNN's as well, and what is depthwise where oneDNN has a kernel for that. */
static void few_channels_are_onednns(void **state)
{
    static const shape few = {8, 14, 14, 16, 64, SQUARE(3, 2, 1)}, more = {8, 14, 14, 32, 64, SQUARE(3, 2, 1)},
                       point = {8, 14, 14, 32, 64, SQUARE(1, 1, 0)}, tiles = {8, 14, 14, 32, 64, SQUARE(3, 1, 1)},
                       depthwise = {8, 14, 14, 64, 64, BOTH(3), BOTH(1), BOTH(1), BOTH(1), BOTH(1), 64},
                       wide = {4, 2, 2, 960, 960, BOTH(3), BOTH(1), BOTH(1), BOTH(1), BOTH(1), 960};
    static const struct {
        const shape *shape;
        bool is_onednns[3]; /* forward, data, weights */
    } cases[] = {{&few, {true, true, true}},      {&more, {false, false, true}},    {&point, {true, true, true}},
                 {&tiles, {false, false, false}}, {&depthwise, {true, true, true}}, {&wide, {true, true, false}}};
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    (void)state;
    for (int i = 0; i < 3; i++) {
        stk_device *device = call_open(compare_isas[i], 2);
        bool is_avx512 = ((const stk_cpu_device *)device)->isa == STK_ISA_AVX512;
        for (int j = 0; j < 6 * 3; j++) {
            const char *impl = impl_of(device, cases[j / 3].shape, ops[j % 3]);
            bool is_onednns = !strncmp(impl, "onednn ", 7) && strcmp(impl, "onednn sgemm") != 0;
            if (cases[j / 3].shape == &wide && strstr(impl, "dw")) continue; /* Some versions have one. */
            if (is_onednns != (is_avx512 && cases[j / 3].is_onednns[j % 3])) fail_msg("case %d is %s", j, impl);
        }
        stk_device_close(device);
    }
}

/* Large 1x1 convolutions are products; those with padding or few pixels are not, nor is any without AVX2. The gradient
 * of weights is one only where these are few. */
static void large_points_are_products(void **state)
{
    static const shape tested[] = {{5, 30, 25, 128, 256, SQUARE(1, 2, 0)},
                                   {5, 30, 25, 128, 256, SQUARE(1, 2, 1)},
                                   {1, 14, 14, 512, 512, SQUARE(1, 1, 0)},
                                   {3, 41, 37, 64, 128, SQUARE(1, 1, 0)}};
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    (void)state;
    for (int i = 0; i < 3; i++) {
        stk_device *device = call_open(compare_isas[i], 2);
        bool is_baseline = ((const stk_cpu_device *)device)->isa == STK_ISA_BASELINE;
        for (int j = 0; j < 4 * 3; j++) {
            bool is_product = !strcmp(impl_of(device, &tested[j / 3], ops[j % 3]), "onednn sgemm");
            assert_int_equal(is_product, !is_baseline && (j / 3 == 3 || (j / 3 == 0 && j % 3 < 2)));
        }
        stk_device_close(device);
    }
}

/* 3x3 without a stride is Winograd's, where there are enough channels and pixels and tiles that are not mostly edge. */
static void small_kernels_are_winograd(void **state)
{
    static const struct {
        shape shape;
        bool is_winograd;
    } cases[] = {
        {{4, 8, 8, 32, 48, SQUARE(3, 1, 1)}, true},   {{16, 4, 4, 32, 32, SQUARE(3, 1, 1)}, true},
        {{4, 8, 8, 16, 48, SQUARE(3, 1, 1)}, false},  {{4, 8, 8, 32, 40, SQUARE(3, 1, 1)}, false},
        {{2, 8, 8, 32, 48, SQUARE(3, 1, 1)}, false},  {{4, 16, 16, 32, 48, SQUARE(3, 2, 1)}, false},
        {{30, 3, 3, 32, 32, SQUARE(3, 1, 1)}, false}, {{4, 8, 8, 32, 48, SQUARE(1, 1, 0)}, false},
    };
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    (void)state;
    stk_device *device = call_open("baseline", 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int j = 0; j < 3; j++)
            if (!strcmp(impl_of(device, &cases[i].shape, ops[j]), "own winograd baseline") != cases[i].is_winograd)
                fail_msg("case %zu, pass %d is %s", i, j, impl_of(device, &cases[i].shape, ops[j]));
    /* Each of 4 x 16 tiles multiplies 16 times. */
    (void)impl_of(device, &cases[0].shape, STK_OP_conv2d);
    assert_true(kernel_flops == 2.0 * 4 * 16 * 16 * 32 * 48);
    stk_device_close(device);
}

/* The output of c by one way. */
static void run_way(const call *c, stk_device *device, const char *way, void *out[CALL_MOST])
{
    stk_tensor_desc desc = c->out_desc[0];
    stk_op_call op_call = {c->op, &c->attrs, c->n_in, 1, c->in_desc, &desc};
    stk_kernel kernel = {0};
    assert_int_equal(stk_cpu_make_way((stk_cpu_device *)device, &op_call, stk_conv_ways, way, &kernel), STK_OK);
    assert_int_equal(call_run_made(c, device, &kernel, -1, out), STK_OK);
}

static void run_reference(const call *c, void *out[CALL_MOST])
{
    stk_device *reference = NULL;
    assert_int_equal(stk_device_open("reference", NULL, &reference), STK_OK);
    assert_int_equal(call_run(c, reference, -1, out, NULL), STK_OK);
    stk_device_close(reference);
}

/* By one way, on each instruction set and 1, 2 and 3 threads, against the reference device. */
static void check_way(const shape *s, stk_op op, const char *way, double allowed)
{
    call c = make_call(s, op);
    void *want[CALL_MOST], *out[CALL_MOST];
    run_reference(&c, want);
    for (int i = 0; i < 9; i++) {
        stk_device *device = call_open(compare_isas[i / 3], 1 + i % 3);
        run_way(&c, device, way, out);
        assert_true(compare_is_near(c.out_desc[0], out[0], want[0], allowed));
        call_free_outputs(out);
        stk_device_close(device);
    }
    call_free_outputs(want);
    call_free(&c);
}

/* The mean error of a way over the mean size of what it computes, both root mean square. */
static double error_of(const call *c, const char *way, const float *want)
{
    void *out[CALL_MOST];
    double error = 0, size = 0;
    stk_device *device = call_open(NULL, 1);
    run_way(c, device, way, out);
    for (int64_t i = 0; i < stk_shape_count(c->out_desc[0].shape); i++) {
        double x = (double)((const float *)out[0])[i] - (double)want[i];
        error += x * x;
        size += (double)want[i] * (double)want[i];
    }
    call_free_outputs(out);
    stk_device_close(device);
    return sqrt(error / size);
}

/* What each way loses to rounding (docs/kernels.md has these figures). */
static void larger_tiles_lose_a_digit(void **state)
{
    static const shape deep = {2, 14, 14, 512, 64, SQUARE(3, 1, 1)};
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    (void)state;
    for (int i = 0; i < 3; i++) {
        call c = make_call(&deep, ops[i]);
        void *want[CALL_MOST];
        run_reference(&c, want);
        double direct = error_of(&c, "direct", want[0]), of_2 = error_of(&c, "winograd", want[0]),
               of_4 = error_of(&c, "winograd4", want[0]);
        print_message("%s: direct %.1e, tiles of 2 x 2 %.1e, of 4 x 4 %.1e\n", stk_op_name(ops[i]), direct, of_2, of_4);
        assert_true(of_2 < 1e-6 && of_4 < 2e-6);
        call_free_outputs(want);
        call_free(&c);
    }
}

/* Winograd's tiles of 4 x 4 outputs: sides that end with each part of a tile, uneven padding and none, half panels,
 * more tiles than a block has, sums of each thread's own and shared ones. They lose more digits than other ways. */
static void tiles_of_4(void **state)
{
    static const shape tested[] = {
        {3, 16, 12, 48, 32, SQUARE(3, 1, 1)}, {3, 13, 14, 32, 80, {3, 3}, {1, 1}, {0, 1}, {1, 0}, {1, 1}, 1},
        {3, 17, 18, 32, 32, SQUARE(3, 1, 0)}, {9, 7, 11, 272, 96, SQUARE(3, 1, 1)},
        {9, 8, 7, 32, 272, SQUARE(3, 1, 1)},  {5, 28, 28, 144, 160, SQUARE(3, 1, 1)},
    };
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    (void)state;
    for (size_t i = 0; i < sizeof(tested) / sizeof(tested[0]); i++)
        for (int j = 0; j < 3; j++)
            check_way(&tested[i], ops[j], "winograd4", 4e-5);
}

int main(void)
{
    setenv("STOKER_KERNELS", "default", 1); /* the lists' own choice, which is compared by name */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward),
        cmocka_unit_test(gradients_of_data),
        cmocka_unit_test(gradients_of_weights),
        cmocka_unit_test(sixteen_bits),
        cmocka_unit_test(gradients_of_data_turned_round),
        cmocka_unit_test(weights_by_pairs),
        cmocka_unit_test(weights_by_tiles),
        cmocka_unit_test(convolutions_by_tiles),
        cmocka_unit_test(padding_is_absent),
        cmocka_unit_test(onednn_has_the_rest),
        cmocka_unit_test(few_channels_are_onednns),
        cmocka_unit_test(large_points_are_products),
        cmocka_unit_test(small_kernels_are_winograd),
        cmocka_unit_test(tiles_of_4),
        cmocka_unit_test(larger_tiles_lose_a_digit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
