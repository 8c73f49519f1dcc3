/* Larger calls, for speed only: layers of ResNet-50 and of a small transformer, and what moves memory. */
#include "harness/harness.h"

#define ANY(...)  ROUGH(FILL_UNIFORM, -1, 1, __VA_ARGS__)
#define LARGE     .large = true, .mains = 1u << STK_F32 | 1u << STK_BF16
#define LARGE_F32 .large = true, .mains = 1u << STK_F32
#define SQUARE(k, s, p)                                                                                                \
    .window = {                                                                                                        \
        .kernel = {k, k}, .stride = {s, s}, .pad_low = {p, p}, .pad_high = {p, p}, .dilation = {1, 1}, .groups = 1}
/* An image of h x h pixels and c channels to y pixels and o channels. */
#define CONV(name, n, h, c, y, o, k, s, p)                                                                             \
    CASE(name, conv2d, ATTRS(SQUARE(k, s, p)), INPUTS(ANY(n, h, h, c), ANY(o, k, k, c)), LARGE),                       \
        CASE(name, conv2d_grad_data, ATTRS(.shape = DIMS(n, h, h, c), SQUARE(k, s, p)),                                \
             INPUTS(ANY(n, y, y, o), ANY(o, k, k, c)), LARGE),                                                         \
        CASE(name, conv2d_grad_weight, ATTRS(.shape = DIMS(o, k, k, c), SQUARE(k, s, p)),                              \
             INPUTS(ANY(n, h, h, c), ANY(n, y, y, o)), LARGE)
#define CHANNELS(c) ROUGH_STATS(FILL_UNIFORM, 0.5, 1, c)

static const op_case cases[] = {
    CASE("1024^3", matmul, ATTRS(0), INPUTS(ANY(1024, 1024), ANY(1024, 1024)), LARGE),
    CASE("256x2048x1000, b transposed", matmul, ATTRS(.matmul = {0, 1}), INPUTS(ANY(256, 2048), ANY(1000, 2048)),
         LARGE),
    CASE("64 of 128^3", matmul, ATTRS(0), INPUTS(ANY(64, 128, 128), ANY(64, 128, 128)), LARGE),

    CONV("stem 7x7", 4, 224, 3, 112, 64, 7, 2, 3),
    CONV("56x56 3x3 64", 4, 56, 64, 56, 64, 3, 1, 1),
    CONV("28x28 1x1 512 to 128", 4, 28, 512, 28, 128, 1, 1, 0),
    CONV("14x14 3x3 256", 4, 14, 256, 14, 256, 3, 1, 1),
    CONV("7x7 1x1 512 to 2048", 4, 7, 512, 7, 2048, 1, 1, 0),

    CASE("relu", unary, ATTRS(.element = {STK_UNARY_relu}), INPUTS(ANY(4, 56, 56, 256)), LARGE),
    CASE("exp", unary, ATTRS(.element = {STK_UNARY_exp}), INPUTS(ANY(4, 56, 56, 64)), LARGE_F32),
    CASE("tanh", unary, ATTRS(.element = {STK_UNARY_tanh}), INPUTS(ANY(4, 56, 56, 64)), LARGE_F32),
    CASE("add", binary, ATTRS(.element = {STK_BINARY_add}), INPUTS(ANY(4, 56, 56, 256), ANY(4, 56, 56, 256)), LARGE),
    CASE("to bf16", cast, ATTRS(.dtype = STK_BF16), INPUTS(ANY(4, 56, 56, 256)), LARGE_F32),
    CASE("0.5", dropout, ATTRS(.dropout = {0.5, 1}), INPUTS(ANY(128, 4096), SCALAR_I64(1), SCALAR_I64(2)), LARGE_F32),
    CASE("NHWC to NCHW", transpose, ATTRS(.permutation = {0, 3, 1, 2}), INPUTS(ANY(4, 56, 56, 64)), LARGE_F32),
    CASE("sum of columns", reduce, ATTRS(.reduce = {STK_REDUCE_SUM, 1}), INPUTS(ANY(12544, 256)), LARGE),
    CASE("sum of rows", reduce, ATTRS(.reduce = {STK_REDUCE_SUM, 2}), INPUTS(ANY(12544, 256)), LARGE),
    CASE("56x56x256", batch_norm, ATTRS(.batch_norm = {1e-5, 0.1, 1, 1}),
         INPUTS(ANY(4, 56, 56, 256), CHANNELS(256), CHANNELS(256), CHANNELS(256), CHANNELS(256)), LARGE),
    CASE("56x56x256", batch_norm_grad, ATTRS(.batch_norm = {1e-5, 0.1, 1, 1}),
         INPUTS(ANY(4, 56, 56, 256), ANY(4, 56, 56, 256), CHANNELS(256), CHANNELS(256), CHANNELS(256), CHANNELS(256)),
         LARGE),
    CASE("3x3 of 112x112x64", max_pool2d, ATTRS(SQUARE(3, 2, 1)), INPUTS(ANY(4, 112, 112, 64)), LARGE),
    CASE("3x3 of 112x112x64", max_pool2d_grad, ATTRS(SQUARE(3, 2, 1)),
         INPUTS(ANY(4, 112, 112, 64), FORWARD_OF(max_pool2d, 4, 56, 56, 64), ANY(4, 56, 56, 64)), LARGE),
    CASE("1024x1000", softmax, ATTRS(0), INPUTS(ANY(1024, 1000)), LARGE_F32),
    CASE("2048x768", layer_norm, ATTRS(.layer_norm = {1e-5}), INPUTS(ANY(2048, 768), CHANNELS(768), CHANNELS(768)),
         LARGE_F32),
    CASE("2048x768", layer_norm_grad, ATTRS(0),
         INPUTS(ANY(2048, 768), ANY(2048, 768), CHANNELS(768), CHANNELS(2048), CHANNELS(2048)), LARGE_F32),
    CASE("8x56x56x256", group_norm, ATTRS(.group_norm = {1e-5, 32}),
         INPUTS(ANY(8, 56, 56, 256), CHANNELS(256), CHANNELS(256)), LARGE_F32),
    CASE("2048 of 30522x768", gather, ATTRS(.axis = 0),
         INPUTS(ANY(30522, 768), TYPED(STK_I32, FILL_LABELS, 0, 30522, 16, 128)), LARGE_F32),
    CASE("2048 of 30522x768", scatter_add, ATTRS(.shape = DIMS(30522, 768), .axis = 0),
         INPUTS(ANY(16, 128, 768), TYPED(STK_I32, FILL_LABELS, 0, 30522, 16, 128)), LARGE_F32),
    CASE("256x1000", cross_entropy, ATTRS(0), INPUTS(ANY(256, 1000), LABELS(256, 1000)), LARGE_F32),
    CASE("256x1000", cross_entropy_grad, ATTRS(0),
         INPUTS(ANY(256, 1000), LABELS(256, 1000), ROUGH_STATS(FILL_UNIFORM, 0, 1, 256)), LARGE_F32),
    CASE("2 million, momentum", sgd_update, ATTRS(.sgd = {.momentum = 0.9}),
         INPUTS(ANY(2097152), ANY(2097152), ANY(2097152), SCALAR_STAT(0.1)), LARGE_F32),
    CASE("2 million", adam_update, ATTRS(.adam = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}),
         INPUTS(ANY(2097152), ANY(2097152), ROUGH(FILL_UNIFORM, 0, 1, 2097152), ANY(2097152), SCALAR_STAT(0.1),
                SCALAR_I64(3)),
         LARGE_F32),
};

const case_list harness_cases_speed = LIST_OF(cases);
