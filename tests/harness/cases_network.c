/* Cases of the library ops: matmul, convolution, pooling, normalisation, losses, updates. */
#include "harness/harness.h"

#define BIASED(name, ta, tb, a, b, n)                                                                                  \
    CASE(name, matmul, ATTRS(.matmul = {ta, tb}), INPUTS(a, b, ROUGH_STATS(FILL_UNIFORM, -1, 1, n)), .loosen = 4)
#define MATMUL(name, ta, tb, a, b) CASE(name, matmul, ATTRS(.matmul = {ta, tb}), INPUTS(a, b), .loosen = 4)

/* WINDOW(kernel, stride, pad_low, pad_high, dilation, groups), each pair for height, then width. */
#define PAIR(h, w)                                                                                                     \
    {                                                                                                                  \
        h, w                                                                                                           \
    }
#define WINDOW(kernel_, stride_, low_, high_, dilation_, groups_)                                                      \
    .window = {.kernel = kernel_,                                                                                      \
               .stride = stride_,                                                                                      \
               .pad_low = low_,                                                                                        \
               .pad_high = high_,                                                                                      \
               .dilation = dilation_,                                                                                  \
               .groups = groups_}
#define ONE PAIR(1, 1)
#define NO  PAIR(0, 0)

/* One description serves the convolution and, with the shape of y, its two gradients. */
#define CONV(name, window, x, weight) CASE(name, conv2d, ATTRS(window), INPUTS(x, weight), .loosen = 4)
#define CONV_DATA(name, window, dy, weight, ...)                                                                       \
    CASE(name, conv2d_grad_data, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(dy, weight), .loosen = 4)
#define CONV_WEIGHT(name, window, x, dy, ...)                                                                          \
    CASE(name, conv2d_grad_weight, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(x, dy), .loosen = 4)

#define MAX_POOL(name, window, x) CASE(name, max_pool2d, ATTRS(window), INPUTS(x))
#define MAX_POOL_GRAD(name, window, x, y_n, y_h, y_w, y_c)                                                             \
    CASE(name, max_pool2d_grad, ATTRS(window),                                                                         \
         INPUTS(x, FORWARD_OF(max_pool2d, y_n, y_h, y_w, y_c), REAL(-1, 1, y_n, y_h, y_w, y_c)), .loosen = 2)
#define AVG_POOL(name, window, x) CASE(name, avg_pool2d, ATTRS(window), INPUTS(x), .loosen = 2)
#define AVG_POOL_GRAD(name, window, dy, ...)                                                                           \
    CASE(name, avg_pool2d_grad, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(dy), .loosen = 2)

#define BN(unbiased_, relu_) ATTRS(.batch_norm = {.eps = 1e-5, .momentum = 0.1, .unbiased = unbiased_, .relu = relu_})
#define BATCH_NORM(name, unbiased, relu, x, c)                                                                         \
    CASE(name, batch_norm, BN(unbiased, relu),                                                                         \
         INPUTS(x, STATS(0.5, 2, c), STATS(-0.5, 0.5, c), ROUGH_STATS(FILL_UNIFORM, -1, 1, c),                         \
                ROUGH_STATS(FILL_UNIFORM, 0.5, 2, c)),                                                                 \
         .loosen = 10)
/* With a residual. */
#define BATCH_NORM_ONTO(name, relu, c, ...)                                                                            \
    CASE(name, batch_norm, BN(1, relu),                                                                                \
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, __VA_ARGS__), STATS(0.5, 2, c), STATS(-0.5, 0.5, c),                        \
                ROUGH_STATS(FILL_UNIFORM, -1, 1, c), ROUGH_STATS(FILL_UNIFORM, 0.5, 2, c), REAL(-1, 1, __VA_ARGS__)),  \
         .loosen = 10)
#define BATCH_NORM_APPLY_ONTO(name, relu, c, ...)                                                                      \
    CASE(name, batch_norm_apply, BN(1, relu),                                                                          \
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, __VA_ARGS__), STATS(0.5, 2, c), STATS(-0.5, 0.5, c), STATS(-0.5, 0.5, c),   \
                STATS(0.5, 2, c), ROUGH(FILL_UNIFORM, -1, 1, __VA_ARGS__)),                                            \
         .loosen = 10)
#define BATCH_NORM_SUM_GRAD(name, c, ...)                                                                              \
    CASE(name, batch_norm_sum_grad, BN(1, 0),                                                                          \
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, __VA_ARGS__), ROUGH(FILL_UNIFORM, -1, 1, __VA_ARGS__),                      \
                ROUGH(FILL_UNIFORM, -1, 1, __VA_ARGS__), ROUGH(FILL_UNIFORM, -1, 1, __VA_ARGS__), STATS(0.5, 2, c),    \
                STATS(-0.5, 0.5, c), STATS(0.5, 2, c)),                                                                \
         .loosen = 10)
#define BATCH_NORM_GRAD(name, relu, dy, x, c)                                                                          \
    CASE(name, batch_norm_grad, BN(1, relu),                                                                           \
         INPUTS(dy, x, STATS(0.5, 2, c), STATS(-0.5, 0.5, c), STATS(-0.5, 0.5, c), STATS(0.5, 2, c)), .loosen = 10)
#define BATCH_NORM_APPLY(name, relu, x, c)                                                                             \
    CASE(name, batch_norm_apply, BN(1, relu),                                                                          \
         INPUTS(x, STATS(0.5, 2, c), STATS(-0.5, 0.5, c), STATS(-0.5, 0.5, c), STATS(0.5, 2, c)), .loosen = 10)

#define LOSS(name, smoothing_, logits, labels)                                                                         \
    CASE(name, cross_entropy, ATTRS(.cross_entropy = {smoothing_}), INPUTS(logits, labels), .loosen = 4)
#define LOSS_GRAD(name, smoothing_, logits, labels, n)                                                                 \
    CASE(name, cross_entropy_grad, ATTRS(.cross_entropy = {smoothing_}), INPUTS(logits, labels, STATS(0.1, 1, n)),     \
         .loosen = 4)
#define SHARES(n, c)                    ROUGH_STATS(FILL_SHARES, 0, 1, n, c)
#define TOP_K(name, k_, logits, labels) CASE(name, in_top_k, ATTRS(.in_top_k = {k_}), INPUTS(logits, labels))

#define WIDE (1u << STK_F32 | 1u << STK_F64)
#define SGD(name, attributes, ...)                                                                                     \
    CASE(name, sgd_update, ATTRS(.sgd = attributes), INPUTS(__VA_ARGS__, SCALAR_STAT(0.1)), .loosen = 4, .mains = WIDE)
#define ADAM(name, attributes, step, n)                                                                                \
    CASE(name, adam_update, ATTRS(.adam = attributes),                                                                 \
         INPUTS(REAL(-1, 1, n), REAL(-0.1, 0.1, n), REAL(0, 0.1, n), REAL(-1, 1, n), SCALAR_STAT(0.01),                \
                SCALAR_I64(step)),                                                                                     \
         .loosen = 20, .mains = WIDE)
#define SET(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static const op_case cases[] = {
    /* Depths at which oneDNN's products of bf16 by AMX end in an illegal instruction: tile_product.h. */
    MATMUL("a depth of 31 mod 32", 0, 0, REAL(-1, 1, 64, 4095), REAL(-1, 1, 4095, 60)),
    MATMUL("two of such depth", 0, 0, REAL(-1, 1, 2, 40, 6719), REAL(-1, 1, 2, 6719, 33)),
    CASE("wide", matmul, ATTRS(.matmul = {1, 0, 1}), INPUTS(REAL(-1, 1, 19, 7), REAL(-1, 1, 19, 5)), .loosen = 4),
    MATMUL("plain", 0, 0, REAL(-1, 1, 5, 7), REAL(-1, 1, 7, 3)),
    MATMUL("a transposed", 1, 0, REAL(-1, 1, 7, 5), REAL(-1, 1, 7, 3)),
    MATMUL("b transposed", 0, 1, REAL(-1, 1, 5, 7), REAL(-1, 1, 3, 7)),
    MATMUL("both transposed", 1, 1, REAL(-1, 1, 7, 5), REAL(-1, 1, 3, 7)),
    MATMUL("batched", 0, 0, REAL(-1, 1, 3, 4, 5), REAL(-1, 1, 3, 5, 2)),
    MATMUL("batched, a transposed", 1, 0, REAL(-1, 1, 3, 5, 4), REAL(-1, 1, 3, 5, 2)),
    MATMUL("batched, b transposed", 0, 1, REAL(-1, 1, 3, 4, 5), REAL(-1, 1, 3, 2, 5)),
    MATMUL("batched, both transposed", 1, 1, REAL(-1, 1, 2, 2, 5, 4), REAL(-1, 1, 2, 2, 3, 5)),
    MATMUL("b shared", 0, 0, REAL(-1, 1, 3, 4, 5), REAL(-1, 1, 5, 2)),
    MATMUL("b shared, a transposed", 1, 0, REAL(-1, 1, 3, 5, 4), REAL(-1, 1, 5, 2)),
    MATMUL("b shared and transposed", 0, 1, REAL(-1, 1, 2, 3, 4, 5), REAL(-1, 1, 2, 5)),
    MATMUL("b shared, both transposed", 1, 1, REAL(-1, 1, 3, 5, 4), REAL(-1, 1, 2, 5)),
    MATMUL("one row", 0, 0, REAL(-1, 1, 1, 67), REAL(-1, 1, 67, 1)),
    MATMUL("outer product", 0, 0, REAL(-1, 1, 9, 1), REAL(-1, 1, 1, 11)),
    MATMUL("no rows", 0, 0, REAL(-1, 1, 0, 5), REAL(-1, 1, 5, 3)),
    MATMUL("nothing to sum", 0, 0, REAL(-1, 1, 4, 0), REAL(-1, 1, 0, 3)),
    MATMUL("larger", 0, 1, ROUGH(FILL_UNIFORM, -1, 1, 65, 130), ROUGH(FILL_UNIFORM, -1, 1, 33, 130)),
    MATMUL("large", 0, 1, ROUGH(FILL_UNIFORM, -1, 1, 290, 333), ROUGH(FILL_UNIFORM, -1, 1, 351, 333)),
    MATMUL("medium, a transposed", 1, 0, ROUGH(FILL_UNIFORM, -1, 1, 67, 75), ROUGH(FILL_UNIFORM, -1, 1, 67, 101)),
    BIASED("medium, a transposed, bias", 1, 0, ROUGH(FILL_UNIFORM, -1, 1, 2, 130, 45),
           ROUGH(FILL_UNIFORM, -1, 1, 2, 130, 71), 71),
    MATMUL("large, a transposed", 1, 0, ROUGH(FILL_UNIFORM, -1, 1, 333, 351), ROUGH(FILL_UNIFORM, -1, 1, 333, 290)),

    /* Sums that GPUs cut into parts, and tiles that are not full. */
    BIASED("bias, a long sum", 0, 0, ROUGH(FILL_UNIFORM, -1, 1, 70, 1100), ROUGH(FILL_UNIFORM, -1, 1, 1100, 33), 33),
    CASE("wide, a long sum", matmul, ATTRS(.matmul = {1, 0, 1}),
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, 1096, 72), ROUGH(FILL_UNIFORM, -1, 1, 1096, 136)), .loosen = 4),
    MATMUL("batched, a rest of each tile", 0, 1, ROUGH(FILL_UNIFORM, -1, 1, 2, 136, 40),
           ROUGH(FILL_UNIFORM, -1, 1, 2, 200, 40)),

    BIASED("bias", 0, 1, REAL(-1, 1, 5, 7), REAL(-1, 1, 3, 7), 3),
    BIASED("bias, batched", 1, 0, REAL(-1, 1, 3, 5, 4), REAL(-1, 1, 3, 5, 2), 2),
    BIASED("bias, b shared, a transposed", 1, 0, REAL(-1, 1, 3, 5, 4), REAL(-1, 1, 5, 2), 2),
    BIASED("bias, one row", 0, 0, REAL(-1, 1, 1, 67), REAL(-1, 1, 67, 5), 5),
    BIASED("bias, one long row", 0, 0, ROUGH(FILL_UNIFORM, -1, 1, 1, 301), ROUGH(FILL_UNIFORM, -1, 1, 301, 303), 303),
    BIASED("bias, one long row, b transposed", 0, 1, ROUGH(FILL_UNIFORM, -1, 1, 1, 301),
           ROUGH(FILL_UNIFORM, -1, 1, 303, 301), 303),
    BIASED("bias, no rows", 0, 0, REAL(-1, 1, 0, 5), REAL(-1, 1, 5, 3), 3),
    BIASED("bias, no columns", 0, 0, REAL(-1, 1, 4, 5), REAL(-1, 1, 5, 0), 0),
    BIASED("bias, nothing to sum", 0, 0, REAL(-1, 1, 4, 0), REAL(-1, 1, 0, 3), 3),
    BIASED("bias, medium", 0, 1, ROUGH(FILL_UNIFORM, -1, 1, 65, 330), ROUGH(FILL_UNIFORM, -1, 1, 35, 330), 35),
    BIASED("bias, many of few", 0, 0, ROUGH(FILL_UNIFORM, -1, 1, 37, 19, 40), ROUGH(FILL_UNIFORM, -1, 1, 37, 40, 50),
           50),
    BIASED("bias, large", 0, 1, ROUGH(FILL_UNIFORM, -1, 1, 290, 333), ROUGH(FILL_UNIFORM, -1, 1, 351, 333), 351),
    BIASED("bias, large, b as it is", 0, 0, ROUGH(FILL_UNIFORM, -1, 1, 290, 333), ROUGH(FILL_UNIFORM, -1, 1, 333, 351),
           351),
    BIASED("bias, deep", 0, 1, ROUGH(FILL_UNIFORM, -1, 1, 128, 3333), ROUGH(FILL_UNIFORM, -1, 1, 130, 3333), 130),
    MATMUL("special", 0, 1, ROUGH(FILL_SPECIAL, -1, 1, 33, 3), ROUGH(FILL_UNIFORM, 0.5, 1, 35, 3)),
    MATMUL("special b, in parts", 0, 0, ROUGH(FILL_UNIFORM, 0.5, 1, 290, 301), ROUGH(FILL_RARE, -1, 1, 301, 323)),
    MATMUL("batched, special", 1, 0, ROUGH(FILL_UNIFORM, 0.5, 1, 3, 2, 9), ROUGH(FILL_SPECIAL, -1, 1, 3, 2, 7)),

    CONV("special", WINDOW(PAIR(2, 2), ONE, NO, NO, ONE, 1), ROUGH(FILL_RARE, -1, 1, 2, 9, 9, 3),
         ROUGH(FILL_UNIFORM, 0.5, 1, 5, 2, 2, 3)),
    CONV("special, 1x1", WINDOW(PAIR(1, 1), ONE, NO, NO, ONE, 1), ROUGH(FILL_RARE, -1, 1, 4, 17, 17, 16),
         ROUGH(FILL_UNIFORM, 0.5, 1, 32, 1, 1, 16)),
    CONV("special weights", WINDOW(PAIR(3, 3), ONE, NO, NO, ONE, 1), ROUGH(FILL_UNIFORM, 0.5, 1, 2, 9, 9, 3),
         ROUGH(FILL_RARE, -1, 1, 33, 3, 3, 3)),
    CONV("special, depthwise", WINDOW(PAIR(3, 3), ONE, NO, NO, ONE, 17), ROUGH(FILL_RARE, -1, 1, 2, 9, 9, 17),
         ROUGH(FILL_UNIFORM, 0.5, 1, 17, 3, 3, 1)),
    CONV_DATA("special", WINDOW(PAIR(2, 2), ONE, NO, NO, ONE, 1), ROUGH(FILL_RARE, -1, 1, 2, 8, 8, 5),
              ROUGH(FILL_UNIFORM, 0.5, 1, 5, 2, 2, 3), 2, 9, 9, 3),
    CONV_WEIGHT("special", WINDOW(PAIR(2, 2), ONE, NO, NO, ONE, 1), ROUGH(FILL_UNIFORM, 0.5, 1, 1, 3, 3, 33),
                ROUGH(FILL_RARE, -1, 1, 1, 2, 2, 65), 65, 2, 2, 33),
    CONV("1x1", WINDOW(PAIR(1, 1), ONE, NO, NO, ONE, 1), REAL(-1, 1, 2, 3, 4, 3), REAL(-1, 1, 5, 1, 1, 3)),
    CONV("3x3 same", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 1), REAL(-1, 1, 2, 5, 4, 3), REAL(-1, 1, 2, 3, 3, 3)),
    CONV("3x3 valid", WINDOW(PAIR(3, 3), ONE, NO, NO, ONE, 1), REAL(-1, 1, 1, 5, 6, 2), REAL(-1, 1, 3, 3, 3, 2)),
    CONV("stride 2, asymmetric pads", WINDOW(PAIR(3, 3), PAIR(2, 2), PAIR(0, 0), PAIR(1, 1), ONE, 1),
         REAL(-1, 1, 2, 6, 6, 2), REAL(-1, 1, 3, 3, 3, 2)),
    CONV("stride 2x3, odd sizes", WINDOW(PAIR(3, 2), PAIR(2, 3), PAIR(1, 0), PAIR(2, 1), ONE, 1),
         REAL(-1, 1, 2, 7, 9, 3), REAL(-1, 1, 4, 3, 2, 3)),
    CONV("dilated", WINDOW(PAIR(3, 2), ONE, PAIR(2, 1), PAIR(2, 0), PAIR(2, 3), 1), REAL(-1, 1, 1, 6, 7, 2),
         REAL(-1, 1, 2, 3, 2, 2)),
    CONV("dilated and strided", WINDOW(PAIR(2, 3), PAIR(2, 1), PAIR(1, 2), PAIR(0, 2), PAIR(3, 2), 1),
         REAL(-1, 1, 2, 8, 7, 2), REAL(-1, 1, 3, 2, 3, 2)),
    CONV("grouped", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 2), REAL(-1, 1, 2, 4, 4, 4), REAL(-1, 1, 6, 3, 3, 2)),
    CONV("depthwise", WINDOW(PAIR(3, 3), PAIR(2, 1), ONE, ONE, ONE, 3), REAL(-1, 1, 2, 5, 4, 3),
         REAL(-1, 1, 3, 3, 3, 1)),
    CONV("depthwise, twice the channels", WINDOW(PAIR(2, 2), ONE, NO, NO, ONE, 3), REAL(-1, 1, 1, 4, 4, 3),
         REAL(-1, 1, 6, 2, 2, 1)),
    CONV("the stem of a ResNet", WINDOW(PAIR(7, 7), PAIR(2, 2), PAIR(3, 3), PAIR(3, 3), ONE, 1),
         ROUGH(FILL_UNIFORM, -1, 1, 2, 17, 19, 3), ROUGH(FILL_UNIFORM, -1, 1, 16, 7, 7, 3)),
    CONV("a pixel", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 1), REAL(-1, 1, 1, 1, 1, 1), REAL(-1, 1, 1, 3, 3, 1)),
    CONV("no images", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 1), REAL(-1, 1, 0, 4, 4, 2), REAL(-1, 1, 3, 3, 3, 2)),
    CONV("16 channels", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 1), ROUGH(FILL_UNIFORM, -1, 1, 2, 8, 8, 16),
         ROUGH(FILL_UNIFORM, -1, 1, 32, 3, 3, 16)),

    CONV("17 channels to 33, unequal pads", WINDOW(PAIR(2, 3), PAIR(1, 2), PAIR(1, 0), PAIR(0, 2), ONE, 1),
         ROUGH(FILL_UNIFORM, -1, 1, 3, 5, 7, 17), ROUGH(FILL_UNIFORM, -1, 1, 33, 2, 3, 17)),
    CONV_DATA("17 channels to 33, stride 3", WINDOW(PAIR(2, 2), PAIR(3, 3), PAIR(1, 1), NO, ONE, 1),
              ROUGH(FILL_UNIFORM, -1, 1, 2, 3, 4, 33), ROUGH(FILL_UNIFORM, -1, 1, 33, 2, 2, 17), 2, 8, 11, 17),
    CONV_WEIGHT("17 channels to 33, 5x5", WINDOW(PAIR(5, 5), ONE, PAIR(2, 2), PAIR(2, 2), ONE, 1),
                ROUGH(FILL_UNIFORM, -1, 1, 2, 6, 7, 17), ROUGH(FILL_UNIFORM, -1, 1, 2, 6, 7, 33), 33, 5, 5, 17),
    CONV_DATA("3x3 same", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 1), REAL(-1, 1, 2, 5, 4, 2), REAL(-1, 1, 2, 3, 3, 3),
              2, 5, 4, 3),
    CONV_DATA("stride 2, rows left over", WINDOW(PAIR(2, 2), PAIR(3, 3), NO, NO, ONE, 1), REAL(-1, 1, 1, 2, 2, 2),
              REAL(-1, 1, 2, 2, 2, 3), 1, 6, 7, 3),
    CONV_DATA("dilated and grouped", WINDOW(PAIR(3, 2), ONE, PAIR(2, 1), PAIR(2, 0), PAIR(2, 3), 2),
              REAL(-1, 1, 1, 6, 5, 4), REAL(-1, 1, 4, 3, 2, 1), 1, 6, 7, 2),
    CONV_DATA("16 channels, stride 2", WINDOW(PAIR(3, 3), PAIR(2, 2), ONE, ONE, ONE, 1),
              ROUGH(FILL_UNIFORM, -1, 1, 2, 4, 4, 32), ROUGH(FILL_UNIFORM, -1, 1, 32, 3, 3, 16), 2, 8, 8, 16),
    CONV_DATA("no images", WINDOW(PAIR(1, 1), ONE, NO, NO, ONE, 1), REAL(-1, 1, 0, 4, 4, 2), REAL(-1, 1, 2, 1, 1, 3), 0,
              4, 4, 3),

    CONV_WEIGHT("3x3 same", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 1), REAL(-1, 1, 2, 5, 4, 3), REAL(-1, 1, 2, 5, 4, 2),
                2, 3, 3, 3),
    CONV_WEIGHT("stride 2, asymmetric pads", WINDOW(PAIR(3, 3), PAIR(2, 2), PAIR(0, 0), PAIR(1, 1), ONE, 1),
                REAL(-1, 1, 2, 6, 6, 2), REAL(-1, 1, 2, 3, 3, 3), 3, 3, 3, 2),
    CONV_WEIGHT("depthwise", WINDOW(PAIR(3, 3), PAIR(2, 1), ONE, ONE, ONE, 3), REAL(-1, 1, 2, 5, 4, 3),
                REAL(-1, 1, 2, 3, 4, 3), 3, 3, 3, 1),
    CONV_WEIGHT("16 channels", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 1), ROUGH(FILL_UNIFORM, -1, 1, 2, 8, 8, 16),
                ROUGH(FILL_UNIFORM, -1, 1, 2, 8, 8, 32), 32, 3, 3, 16),
    CONV_WEIGHT("no images", WINDOW(PAIR(1, 1), ONE, NO, NO, ONE, 1), REAL(-1, 1, 0, 4, 4, 3), REAL(-1, 1, 0, 4, 4, 2),
                2, 1, 1, 3),

    MAX_POOL("2x2", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), DISTINCT(-1, 1, 2, 4, 6, 3)),
    MAX_POOL("3x3, overlapping, padded", WINDOW(PAIR(3, 3), PAIR(2, 2), ONE, ONE, ONE, 1), DISTINCT(-1, 1, 2, 5, 7, 3)),
    MAX_POOL("all negative", WINDOW(PAIR(3, 2), ONE, PAIR(2, 1), PAIR(1, 0), ONE, 1), DISTINCT(-2, -1, 1, 3, 4, 2)),
    MAX_POOL("dilated", WINDOW(PAIR(2, 2), ONE, NO, NO, PAIR(2, 1), 1), DISTINCT(-1, 1, 1, 5, 4, 2)),
    MAX_POOL("of everything", WINDOW(PAIR(4, 5), ONE, NO, NO, ONE, 1), DISTINCT(-1, 1, 2, 4, 5, 2)),
    MAX_POOL("special", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), ROUGH(FILL_SPECIAL, -1, 1, 2, 8, 8, 3)),
    MAX_POOL("no images", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), DISTINCT(-1, 1, 0, 4, 4, 3)),
    MAX_POOL("16 channels", WINDOW(PAIR(3, 3), PAIR(2, 2), ONE, ONE, ONE, 1), ROUGH(FILL_UNIFORM, -1, 1, 2, 9, 9, 16)),

    /* By whole rows of windows, with channels that do not fill a vector, pixels that no window reaches, and NaN. */
    MAX_POOL("2x2, 37 channels, pixels left over", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1),
             ROUGH(FILL_STEPS, 0, 3, 2, 5, 7, 37)),
    MAX_POOL("3x2, gaps, 17 channels", WINDOW(PAIR(3, 2), PAIR(4, 3), NO, NO, ONE, 1),
             ROUGH(FILL_UNIFORM, -1, 1, 2, 8, 9, 17)),
    MAX_POOL("special, 24 channels", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1),
             ROUGH(FILL_SPECIAL, -1, 1, 2, 8, 8, 24)),
    MAX_POOL_GRAD("2x2, 37 channels, pixels left over", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1),
                  ROUGH(FILL_STEPS, 0, 3, 2, 5, 7, 37), 2, 2, 3, 37),
    MAX_POOL_GRAD("3x2, gaps, 17 channels", WINDOW(PAIR(3, 2), PAIR(4, 3), NO, NO, ONE, 1),
                  ROUGH(FILL_UNIFORM, -1, 1, 2, 8, 9, 17), 2, 2, 3, 17),
    MAX_POOL_GRAD("special, 24 channels", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1),
                  ROUGH(FILL_SPECIAL, -1, 1, 2, 8, 8, 24), 2, 4, 4, 24),
    MAX_POOL_GRAD("2x2", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), DISTINCT(-1, 1, 2, 4, 6, 3), 2, 2, 3, 3),
    MAX_POOL_GRAD("3x3, overlapping, padded", WINDOW(PAIR(3, 3), PAIR(2, 2), ONE, ONE, ONE, 1),
                  DISTINCT(-1, 1, 2, 5, 7, 3), 2, 3, 4, 3),
    MAX_POOL_GRAD("ties", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 1), ROUGH(FILL_STEPS, 0, 3, 2, 5, 7, 3), 2, 5, 7, 3),
    MAX_POOL_GRAD("ties, 16 channels", WINDOW(PAIR(3, 3), PAIR(2, 2), ONE, ONE, ONE, 1),
                  ROUGH(FILL_STEPS, 0, 3, 2, 9, 9, 16), 2, 5, 5, 16),
    MAX_POOL_GRAD("16 channels", WINDOW(PAIR(3, 3), PAIR(2, 2), ONE, ONE, ONE, 1),
                  ROUGH(FILL_UNIFORM, -1, 1, 2, 9, 9, 16), 2, 5, 5, 16),
    MAX_POOL_GRAD("gaps", WINDOW(PAIR(2, 2), PAIR(5, 3), PAIR(1, 0), NO, ONE, 1),
                  ROUGH(FILL_UNIFORM, -1, 1, 2, 12, 8, 37), 2, 3, 3, 37),
    MAX_POOL_GRAD("dilated", WINDOW(PAIR(2, 2), ONE, NO, NO, PAIR(2, 1), 1), DISTINCT(-1, 1, 1, 5, 4, 2), 1, 3, 3, 2),
    MAX_POOL_GRAD("windows higher than the image", WINDOW(PAIR(3, 3), ONE, ONE, ONE, ONE, 1),
                  DISTINCT(-1, 1, 2, 2, 5, 3), 2, 2, 5, 3),
    MAX_POOL_GRAD("windows on one row", WINDOW(PAIR(5, 2), PAIR(2, 1), PAIR(2, 0), PAIR(2, 0), ONE, 1),
                  DISTINCT(-1, 1, 2, 1, 5, 3), 2, 1, 4, 3),
    MAX_POOL_GRAD("no images", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), DISTINCT(-1, 1, 0, 4, 4, 3), 0, 2, 2, 3),

    AVG_POOL("2x2", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), REAL(-1, 1, 2, 4, 6, 3)),
    AVG_POOL("padding is not counted", WINDOW(PAIR(3, 3), PAIR(2, 1), ONE, ONE, ONE, 1), REAL(-1, 1, 2, 5, 4, 3)),
    AVG_POOL("asymmetric pads", WINDOW(PAIR(3, 2), PAIR(2, 2), PAIR(0, 1), PAIR(2, 0), ONE, 1),
             REAL(-1, 1, 1, 5, 5, 2)),
    AVG_POOL("of everything", WINDOW(PAIR(4, 5), ONE, NO, NO, ONE, 1), REAL(-1, 1, 2, 4, 5, 17)),
    AVG_POOL("no images", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), REAL(-1, 1, 0, 4, 4, 3)),

    AVG_POOL("special", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), ROUGH(FILL_SPECIAL, -1, 1, 2, 8, 8, 3)),

    AVG_POOL_GRAD("special", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), ROUGH(FILL_SPECIAL, -1, 1, 2, 4, 4, 3), 2,
                  8, 8, 3),
    AVG_POOL_GRAD("2x2", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), REAL(-1, 1, 2, 2, 3, 3), 2, 4, 6, 3),
    AVG_POOL_GRAD("padding is not counted", WINDOW(PAIR(3, 3), PAIR(2, 1), ONE, ONE, ONE, 1), REAL(-1, 1, 2, 3, 4, 3),
                  2, 5, 4, 3),
    AVG_POOL_GRAD("of everything", WINDOW(PAIR(4, 5), ONE, NO, NO, ONE, 1), REAL(-1, 1, 2, 1, 1, 17), 2, 4, 5, 17),
    AVG_POOL_GRAD("no images", WINDOW(PAIR(2, 2), PAIR(2, 2), NO, NO, ONE, 1), REAL(-1, 1, 0, 2, 2, 3), 0, 4, 4, 3),

    BATCH_NORM("images", 1, 0, REAL(-1, 1, 3, 4, 5, 3), 3),
    BATCH_NORM("images, ReLU", 1, 1, REAL(-1, 1, 3, 4, 5, 3), 3),
    BATCH_NORM("rows, biased", 0, 0, REAL(-2, 5, 9, 7), 7),
    BATCH_NORM("one channel", 1, 0, REAL(-1, 1, 13, 1), 1),
    BATCH_NORM("two rows", 1, 0, REAL(-1, 1, 2, 5), 5),
    BATCH_NORM("one row", 1, 0, ROUGH(FILL_UNIFORM, -1, 1, 1, 5), 5),
    BATCH_NORM("no rows", 1, 0, ROUGH(FILL_UNIFORM, -1, 1, 0, 5), 5),
    BATCH_NORM("far from zero", 1, 0, ROUGH(FILL_UNIFORM, 50, 51, 64, 16), 16),
    BATCH_NORM_ONTO("residual", 0, 3, 3, 4, 5, 3),
    BATCH_NORM_ONTO("residual, ReLU", 1, 67, 2, 6, 7, 67),
    BATCH_NORM_ONTO("residual, no rows", 1, 5, 0, 5),
    BATCH_NORM("33 channels", 1, 1, ROUGH(FILL_UNIFORM, -1, 1, 2, 6, 7, 33), 33),
    BATCH_NORM("many rows, far from zero", 1, 0, ROUGH(FILL_UNIFORM, 50, 51, 1501, 5), 5),
    BATCH_NORM("264 channels in parts", 0, 0, ROUGH(FILL_UNIFORM, -1, 1, 201, 264), 264),
    BATCH_NORM_ONTO("residual, 264 channels", 1, 264, 201, 264),

    BATCH_NORM("special", 1, 0, ROUGH(FILL_RARE, -1, 1, 9, 65), 65),
    BATCH_NORM("special, ReLU", 1, 1, ROUGH(FILL_RARE, -1, 1, 2, 3, 2, 65), 65),

    CASE("special", accumulate, ATTRS(), INPUTS(ROUGH(FILL_SPECIAL, -1, 1, 5, 33), SCALAR_I64(0)), .mains = WIDE),
    CASE("first micro-batch", accumulate, ATTRS(), INPUTS(ROUGH(FILL_UNIFORM, -1, 1, 5, 33), SCALAR_I64(0)),
         .mains = WIDE),
    CASE("nothing", accumulate, ATTRS(), INPUTS(ROUGH(FILL_UNIFORM, -1, 1, 0, 3), SCALAR_I64(0)), .mains = WIDE),
    CASE("first micro-batch", carry, ATTRS(.dtype = STK_F32, .shape = STK_SHAPE(5, 33)), INPUTS(SCALAR_I64(0)),
         .mains = 1u << STK_F32),
    CASE("nothing", carry, ATTRS(.dtype = STK_F32, .shape = STK_SHAPE(0, 33)), INPUTS(SCALAR_I64(0)),
         .mains = 1u << STK_F32),
    BATCH_NORM_APPLY("special", 1, ROUGH(FILL_SPECIAL, -1, 1, 9, 65), 65),
    BATCH_NORM_GRAD("special", 0, ROUGH(FILL_RARE, -1, 1, 9, 65), ROUGH(FILL_UNIFORM, -1, 1, 9, 65), 65),
    BATCH_NORM_APPLY("images", 0, ROUGH(FILL_UNIFORM, -1, 1, 3, 4, 5, 3), 3),
    BATCH_NORM_APPLY("images, ReLU", 1, ROUGH(FILL_UNIFORM, -1, 1, 3, 4, 5, 3), 3),
    BATCH_NORM_APPLY("one row", 0, ROUGH(FILL_UNIFORM, -1, 1, 1, 7), 7),
    BATCH_NORM_APPLY("no rows", 0, ROUGH(FILL_UNIFORM, -1, 1, 0, 7), 7),
    BATCH_NORM_APPLY("33 channels, ReLU", 1, ROUGH(FILL_UNIFORM, -1, 1, 2, 6, 7, 33), 33),
    BATCH_NORM_APPLY_ONTO("residual", 0, 3, 3, 4, 5, 3),
    BATCH_NORM_APPLY_ONTO("residual, ReLU", 1, 67, 2, 6, 7, 67),
    BATCH_NORM_SUM_GRAD("images", 3, 3, 4, 5, 3),
    BATCH_NORM_SUM_GRAD("67 channels", 67, 3, 6, 7, 67),
    BATCH_NORM_SUM_GRAD("264 channels in parts", 264, 201, 264),
    BATCH_NORM_SUM_GRAD("one row", 7, 1, 7),
    BATCH_NORM_SUM_GRAD("no rows", 7, 0, 7),
    BATCH_NORM_GRAD("images", 0, REAL(-1, 1, 3, 4, 5, 3), REAL(-1, 1, 3, 4, 5, 3), 3),
    BATCH_NORM_GRAD("images, ReLU", 1, REAL(-1, 1, 3, 4, 5, 3), REAL(-1, 1, 3, 4, 5, 3), 3),
    BATCH_NORM_GRAD("rows", 0, REAL(-1, 1, 9, 7), REAL(-1, 1, 9, 7), 7),
    BATCH_NORM_GRAD("one row", 0, REAL(-1, 1, 1, 7), REAL(-1, 1, 1, 7), 7),
    BATCH_NORM_GRAD("no rows", 0, REAL(-1, 1, 0, 7), REAL(-1, 1, 0, 7), 7),
    BATCH_NORM_GRAD("33 channels, ReLU", 1, REAL(-1, 1, 2, 6, 7, 33), REAL(-1, 1, 2, 6, 7, 33), 33),
    BATCH_NORM_GRAD("many rows", 0, ROUGH(FILL_UNIFORM, -1, 1, 1501, 5), ROUGH(FILL_UNIFORM, -1, 1, 1501, 5), 5),
    BATCH_NORM_GRAD("264 channels in parts, ReLU", 1, ROUGH(FILL_UNIFORM, -1, 1, 201, 264),
                    ROUGH(FILL_UNIFORM, -1, 1, 201, 264), 264),

    CASE("rows", softmax, ATTRS(0), INPUTS(REAL(-3, 3, 5, 7)), .loosen = 4),
    CASE("one class", softmax, ATTRS(0), INPUTS(REAL(-3, 3, 5, 1))),
    CASE("a vector", softmax, ATTRS(0), INPUTS(REAL(-3, 3, 33)), .loosen = 4),
    CASE("three axes", softmax, ATTRS(0), INPUTS(REAL(-3, 3, 2, 3, 17)), .loosen = 4),
    CASE("large logits", softmax, ATTRS(0), INPUTS(ROUGH(FILL_UNIFORM, -900, 900, 5, 65)), .loosen = 40),
    CASE("special", softmax, ATTRS(0), INPUTS(ROUGH(FILL_SPECIAL, -3, 3, 40, 5)), .loosen = 4),
    CASE("no rows", softmax, ATTRS(0), INPUTS(REAL(-3, 3, 0, 7))),
    CASE("rows that begin anywhere", softmax, ATTRS(0), INPUTS(ROUGH(FILL_UNIFORM, -3, 3, 33, 301)), .loosen = 4),
    CASE("1024 columns", softmax, ATTRS(0), INPUTS(ROUGH(FILL_UNIFORM, -3, 3, 11, 1024)), .loosen = 4),
    CASE("a long row", softmax, ATTRS(0), INPUTS(ROUGH(FILL_UNIFORM, -30, 3, 2, 20003)), .loosen = 40),
    CASE("long special rows", softmax, ATTRS(0), INPUTS(ROUGH(FILL_RARE, -3, 3, 9, 9001)), .loosen = 4),
    CASE("rows that begin anywhere", softmax_grad, ATTRS(0),
         INPUTS(ROUGH(FILL_SHARES, 0, 1, 33, 301), ROUGH(FILL_UNIFORM, -1, 1, 33, 301)), .loosen = 4),
    CASE("1024 columns", softmax_grad, ATTRS(0),
         INPUTS(ROUGH(FILL_SHARES, 0, 1, 9, 1024), ROUGH(FILL_UNIFORM, -1, 1, 9, 1024)), .loosen = 4),
    CASE("a long row", softmax_grad, ATTRS(0),
         INPUTS(ROUGH(FILL_SHARES, 0, 1, 2, 20003), ROUGH(FILL_UNIFORM, -1, 1, 2, 20003)), .loosen = 4),
    CASE("rows", softmax_grad, ATTRS(0), INPUTS(ROUGH(FILL_SHARES, 0, 1, 5, 7), REAL(-1, 1, 5, 7)), .loosen = 4),
    CASE("three axes", softmax_grad, ATTRS(0), INPUTS(REAL(0, 0.1, 2, 3, 17), REAL(-1, 1, 2, 3, 17)), .loosen = 8),
    CASE("special", softmax_grad, ATTRS(0), INPUTS(ROUGH(FILL_SHARES, 0, 1, 40, 5), ROUGH(FILL_SPECIAL, -1, 1, 40, 5)),
         .loosen = 4),
    CASE("no rows", softmax_grad, ATTRS(0), INPUTS(REAL(0, 1, 0, 3), REAL(-1, 1, 0, 3))),

    LOSS("classes", 0, REAL(-3, 3, 5, 7), LABELS(5, 7)),
    LOSS("classes, smoothed", 0.1, REAL(-3, 3, 5, 7), LABELS(5, 7)),
    LOSS("shares", 0, REAL(-3, 3, 5, 7), SHARES(5, 7)),
    LOSS("shares, smoothed", 0.2, REAL(-3, 3, 5, 7), SHARES(5, 7)),
    LOSS("one class", 0, REAL(-3, 3, 5, 1), LABELS(5, 1)),
    LOSS("large logits", 0, ROUGH(FILL_UNIFORM, -900, 900, 9, 65), LABELS(9, 65)),
    LOSS("1000 classes", 0.1, ROUGH(FILL_UNIFORM, -3, 3, 5, 1000), LABELS(5, 1000)),
    LOSS("no rows", 0, REAL(-3, 3, 0, 7), LABELS(0, 7)),
    LOSS("many classes", 0.1, ROUGH(FILL_UNIFORM, -3, 3, 2, 50257), LABELS(2, 50257)),
    LOSS("many shares", 0.1, ROUGH(FILL_UNIFORM, -3, 3, 3, 1003), SHARES(3, 1003)),
    LOSS("special", 0, ROUGH(FILL_SPECIAL, -3, 3, 40, 5), LABELS(40, 5)),
    LOSS_GRAD("special", 0, ROUGH(FILL_SPECIAL, -3, 3, 40, 5), LABELS(40, 5), 40),
    LOSS_GRAD("classes", 0, REAL(-3, 3, 5, 7), LABELS(5, 7), 5),
    LOSS_GRAD("classes, smoothed", 0.1, REAL(-3, 3, 5, 7), LABELS(5, 7), 5),
    LOSS_GRAD("shares", 0, REAL(-3, 3, 5, 7), SHARES(5, 7), 5),
    LOSS_GRAD("shares, smoothed", 0.2, REAL(-3, 3, 5, 7), SHARES(5, 7), 5),
    LOSS_GRAD("1000 classes", 0.1, REAL(-3, 3, 5, 1000), LABELS(5, 1000), 5),
    LOSS_GRAD("no rows", 0, REAL(-3, 3, 0, 7), LABELS(0, 7), 0),
    LOSS_GRAD("many classes", 0.1, ROUGH(FILL_UNIFORM, -3, 3, 2, 20003), LABELS(2, 20003), 2),
    LOSS_GRAD("many shares", 0.1, ROUGH(FILL_UNIFORM, -3, 3, 3, 1003), SHARES(3, 1003), 3),

    TOP_K("first", 1, DISTINCT(-3, 3, 33, 7), LABELS(33, 7)),
    TOP_K("first five", 5, DISTINCT(-3, 3, 33, 67), LABELS(33, 67)),
    TOP_K("ties", 2, ROUGH(FILL_STEPS, 0, 3, 33, 7), LABELS(33, 7)),
    TOP_K("more than there are", 9, DISTINCT(-3, 3, 5, 7), LABELS(5, 7)),
    TOP_K("special", 2, ROUGH(FILL_SPECIAL, -3, 3, 33, 7), LABELS(33, 7)),
    TOP_K("no rows", 1, DISTINCT(-3, 3, 0, 7), LABELS(0, 7)),
    TOP_K("of many", 300, ROUGH(FILL_UNIFORM, -3, 3, 9, 1003), LABELS(9, 1003)),

    SGD("plain", SET(0), REAL(-1, 1, 67), REAL(-1, 1, 67)),
    SGD("plain, weight decay", SET(.weight_decay = 0.01), REAL(-1, 1, 3, 5), REAL(-1, 1, 3, 5)),
    SGD("momentum", SET(.momentum = 0.9), REAL(-1, 1, 67), REAL(-1, 1, 67), REAL(-1, 1, 67)),
    SGD("momentum, decay", SET(.momentum = 0.9, .weight_decay = 0.01), REAL(-1, 1, 67), REAL(-1, 1, 67),
        REAL(-1, 1, 67)),
    SGD("nesterov", SET(.momentum = 0.9, .nesterov = 1), REAL(-1, 1, 67), REAL(-1, 1, 67), REAL(-1, 1, 67)),
    SGD("like Keras", SET(.momentum = 0.9, .like_keras = 1, .weight_decay = 0.01), REAL(-1, 1, 67), REAL(-1, 1, 67),
        REAL(-1, 1, 67)),
    SGD("nesterov like Keras", SET(.momentum = 0.9, .nesterov = 1, .like_keras = 1), REAL(-1, 1, 67), REAL(-1, 1, 67),
        REAL(-1, 1, 67)),
    SGD("special", SET(.momentum = 0.9), ROUGH(FILL_UNIFORM, -1, 1, 67), ROUGH(FILL_UNIFORM, -1, 1, 67),
        ROUGH(FILL_RARE, -1, 1, 67)),
    SGD("many", SET(.momentum = 0.9, .weight_decay = 0.1), REAL(-1, 1, 1031), REAL(-1, 1, 1031), REAL(-1, 1, 1031)),
    SGD("nothing", SET(.momentum = 0.9), REAL(-1, 1, 0), REAL(-1, 1, 0), REAL(-1, 1, 0)),

    ADAM("first step", SET(.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8), 0, 67),
    ADAM("later", SET(.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8), 1000, 67),
    ADAM("weight decay", SET(.beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.1), 3, 67),
    ADAM("decoupled", SET(.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1, .decoupled = 1), 3, 67),
    ADAM("like Keras", SET(.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7, .like_keras = 1), 3, 67),
    CASE("special", adam_update, ATTRS(.adam = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}),
         INPUTS(ROUGH(FILL_UNIFORM, -1, 1, 67), ROUGH(FILL_UNIFORM, -0.1, 0.1, 67), ROUGH(FILL_UNIFORM, 0, 0.1, 67),
                ROUGH(FILL_SPECIAL, -1, 1, 67), SCALAR_STAT(0.01), SCALAR_I64(3)),
         .loosen = 20, .mains = WIDE),
    ADAM("many", SET(.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1, .like_keras = 1), 3, 1031),
    ADAM("no memory of gradients", SET(.beta1 = 0, .beta2 = 0.9, .eps = 1e-8), 3, 67),
    ADAM("nothing", SET(.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7), 3, 0),
};

const case_list harness_cases_network = LIST_OF(cases);
