/* Cases of convolution and pooling beyond plain images: volumes, depthwise, transposed. */
#include "harness/harness.h"

#define TRIPLE(d, h, w)                                                                                                \
    {                                                                                                                  \
        d, h, w                                                                                                        \
    }
/* WINDOW3(kernel, stride, pad_low, pad_high, dilation, groups), each for depth, height and width; WINDOW2 for images.
 */
#define WINDOW3(kernel_, stride_, low_, high_, dilation_, groups_)                                                     \
    .window = {.kernel = TRIPLE kernel_,                                                                               \
               .stride = TRIPLE stride_,                                                                               \
               .pad_low = TRIPLE low_,                                                                                 \
               .pad_high = TRIPLE high_,                                                                               \
               .dilation = TRIPLE dilation_,                                                                           \
               .groups = groups_}
#define WINDOW2(k, s, p, d, groups_)                                                                                   \
    .window = {.kernel = {k, k},                                                                                       \
               .stride = {s, s},                                                                                       \
               .pad_low = {p, p},                                                                                      \
               .pad_high = {p, p},                                                                                     \
               .dilation = {d, d},                                                                                     \
               .groups = groups_}

/* One description serves the convolution and, with the shape of y, its two gradients. */
#define CONV3(name, window, x, weight) CASE(name, conv3d, ATTRS(window), INPUTS(x, weight), .loosen = 4)
#define CONV3_DATA(name, window, dy, weight, ...)                                                                      \
    CASE(name, conv3d_grad_data, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(dy, weight), .loosen = 4)
#define CONV3_WEIGHT(name, window, x, dy, ...)                                                                         \
    CASE(name, conv3d_grad_weight, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(x, dy), .loosen = 4)
#define CONV2(name, window, x, weight) CASE(name, conv2d, ATTRS(window), INPUTS(x, weight), .loosen = 4)
#define CONV2_DATA(name, window, dy, weight, ...)                                                                      \
    CASE(name, conv2d_grad_data, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(dy, weight), .loosen = 4)
#define CONV2_WEIGHT(name, window, x, dy, ...)                                                                         \
    CASE(name, conv2d_grad_weight, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(x, dy), .loosen = 4)

/* With a bias of o channels or without, and ReLU. */
#define CONV2_TO(name, relu, window, x, weight, o)                                                                     \
    CASE(name, conv2d, ATTRS(.activation = relu, window), INPUTS(x, weight, ROUGH_STATS(FILL_UNIFORM, -1, 1, o)),      \
         .loosen = 4)
#define CONV3_TO(name, relu, window, x, weight, o)                                                                     \
    CASE(name, conv3d, ATTRS(.activation = relu, window), INPUTS(x, weight, ROUGH_STATS(FILL_UNIFORM, -1, 1, o)),      \
         .loosen = 4)
#define CONV2_DATA_TO(name, relu, window, dy, weight, c, ...)                                                          \
    CASE(name, conv2d_grad_data, ATTRS(.shape = DIMS(__VA_ARGS__), .activation = relu, window),                        \
         INPUTS(dy, weight, ROUGH_STATS(FILL_UNIFORM, -1, 1, c)), .loosen = 4)
#define CONV3_DATA_TO(name, relu, window, dy, weight, c, ...)                                                          \
    CASE(name, conv3d_grad_data, ATTRS(.shape = DIMS(__VA_ARGS__), .activation = relu, window),                        \
         INPUTS(dy, weight, ROUGH_STATS(FILL_UNIFORM, -1, 1, c)), .loosen = 4)
#define CONV2_RELU(name, window, x, weight)                                                                            \
    CASE(name, conv2d, ATTRS(.activation = STK_ACTIVATION_RELU, window), INPUTS(x, weight), .loosen = 4)

#define MAX3(name, window, x) CASE(name, max_pool3d, ATTRS(window), INPUTS(x))
#define MAX3_GRAD(name, window, x, ...)                                                                                \
    CASE(name, max_pool3d_grad, ATTRS(window),                                                                         \
         INPUTS(x, FORWARD_OF(max_pool3d, __VA_ARGS__), REAL(-1, 1, __VA_ARGS__)), .loosen = 2)
#define AVG3(name, window, x) CASE(name, avg_pool3d, ATTRS(window), INPUTS(x), .loosen = 2)
#define AVG3_GRAD(name, window, dy, ...)                                                                               \
    CASE(name, avg_pool3d_grad, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(dy), .loosen = 2)

#define CUBE      WINDOW3((3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1)
#define LONG      WINDOW3((2, 3, 1), (2, 1, 3), (0, 1, 0), (1, 2, 0), (1, 2, 1), 1)
#define IN_GROUPS WINDOW3((3, 1, 2), (1, 2, 1), (1, 0, 1), (1, 0, 0), (1, 1, 1), 2)
#define TWOS      WINDOW3((2, 2, 2), (2, 2, 2), (0, 0, 0), (0, 0, 0), (1, 1, 1), 1)
#define OVERLAP   WINDOW3((3, 2, 3), (2, 1, 2), (1, 0, 1), (0, 1, 1), (1, 1, 1), 1)
#define APART     WINDOW3((1, 2, 1), (2, 3, 1), (0, 1, 0), (0, 0, 0), (1, 1, 1), 1)

static const op_case cases[] = {
    CONV3("cube", CUBE, REAL(-1, 1, 2, 3, 4, 5, 3), REAL(-1, 1, 4, 3, 3, 3, 3)),
    CONV3_DATA("cube", CUBE, REAL(-1, 1, 2, 3, 4, 5, 4), REAL(-1, 1, 4, 3, 3, 3, 3), 2, 3, 4, 5, 3),
    CONV3_WEIGHT("cube", CUBE, REAL(-1, 1, 2, 3, 4, 5, 3), REAL(-1, 1, 2, 3, 4, 5, 4), 4, 3, 3, 3, 3),
    CONV3("strided, dilated, padded unevenly", LONG, REAL(-1, 1, 2, 4, 5, 7, 2), REAL(-1, 1, 3, 2, 3, 1, 2)),
    CONV3_DATA("strided, dilated, padded unevenly", LONG, REAL(-1, 1, 2, 2, 4, 3, 3), REAL(-1, 1, 3, 2, 3, 1, 2), 2, 4,
               5, 7, 2),
    CONV3_WEIGHT("strided, dilated, padded unevenly", LONG, REAL(-1, 1, 2, 4, 5, 7, 2), REAL(-1, 1, 2, 2, 4, 3, 3), 3,
                 2, 3, 1, 2),
    CONV3("grouped", IN_GROUPS, REAL(-1, 1, 1, 3, 5, 4, 4), REAL(-1, 1, 6, 3, 1, 2, 2)),
    CONV3_DATA("grouped", IN_GROUPS, REAL(-1, 1, 1, 3, 3, 4, 6), REAL(-1, 1, 6, 3, 1, 2, 2), 1, 3, 5, 4, 4),
    CONV3_WEIGHT("grouped", IN_GROUPS, REAL(-1, 1, 1, 3, 5, 4, 4), REAL(-1, 1, 1, 3, 3, 4, 6), 6, 3, 1, 2, 2),
    CONV3("no volumes", CUBE, REAL(-1, 1, 0, 3, 4, 5, 3), REAL(-1, 1, 4, 3, 3, 3, 3)),
    CONV3_DATA("no volumes", CUBE, REAL(-1, 1, 0, 3, 4, 5, 4), REAL(-1, 1, 4, 3, 3, 3, 3), 0, 3, 4, 5, 3),
    CONV3("special", TWOS, ROUGH(FILL_RARE, -1, 1, 2, 4, 6, 4, 3), ROUGH(FILL_UNIFORM, 0.5, 1, 5, 2, 2, 2, 3)),
    CONV3_DATA("special", TWOS, ROUGH(FILL_RARE, -1, 1, 2, 2, 3, 2, 5), ROUGH(FILL_UNIFORM, 0.5, 1, 5, 2, 2, 2, 3), 2,
               4, 6, 4, 3),
    CONV3_WEIGHT("special", TWOS, ROUGH(FILL_UNIFORM, 0.5, 1, 1, 2, 4, 4, 3), ROUGH(FILL_RARE, -1, 1, 1, 1, 2, 2, 65),
                 65, 2, 2, 2, 3),
    CONV3_WEIGHT("no volumes", CUBE, REAL(-1, 1, 0, 3, 4, 5, 3), REAL(-1, 1, 0, 3, 4, 5, 4), 4, 3, 3, 3, 3),

    /* Large enough for Winograd's way, with halves of tiles. */
    CONV2("tiles of 2x2", WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 3, 11, 9, 48), REAL(-1, 1, 32, 3, 3, 48)),
    CONV2_DATA("tiles of 2x2", WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 3, 11, 9, 32), REAL(-1, 1, 32, 3, 3, 48), 3, 11, 9,
               48),
    CONV2_WEIGHT("tiles of 2x2", WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 3, 11, 9, 48), REAL(-1, 1, 3, 11, 9, 32), 32, 3, 3,
                 48),

    CONV2_TO("bias", 0, WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 2, 5, 4, 3), REAL(-1, 1, 2, 3, 3, 3), 2),
    CONV2_TO("bias, ReLU", 1, WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 2, 5, 4, 3), REAL(-1, 1, 2, 3, 3, 3), 2),
    CONV2_RELU("ReLU", WINDOW2(3, 2, 1, 1, 1), REAL(-1, 1, 2, 5, 4, 3), REAL(-1, 1, 2, 3, 3, 3)),
    CONV2_TO("bias, ReLU, 17 channels to 37, strided", 1, WINDOW2(2, 2, 1, 1, 1),
             ROUGH(FILL_UNIFORM, -1, 1, 3, 5, 7, 17), ROUGH(FILL_UNIFORM, -1, 1, 37, 2, 2, 17), 37),
    CONV2_TO("bias, ReLU, pixels without a tap", 1, WINDOW2(1, 3, 2, 1, 1), REAL(-1, 1, 2, 5, 4, 3),
             REAL(-1, 1, 19, 1, 1, 3), 19),
    CONV2_TO("bias, many channels of few pixels", 0, WINDOW2(3, 1, 1, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 1, 3, 3, 40),
             ROUGH(FILL_UNIFORM, -1, 1, 300, 3, 3, 40), 300),
    CONV2_TO("bias, tiles of 2x2", 0, WINDOW2(3, 1, 1, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 3, 11, 9, 48),
             ROUGH(FILL_UNIFORM, -1, 1, 32, 3, 3, 48), 32),
    CONV2_TO("bias, ReLU, tiles of 2x2", 1, WINDOW2(3, 1, 1, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 3, 11, 9, 48),
             ROUGH(FILL_UNIFORM, -1, 1, 32, 3, 3, 48), 32),
    CONV2_RELU("ReLU, tiles of 2x2", WINDOW2(3, 1, 1, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 3, 11, 9, 48),
               ROUGH(FILL_UNIFORM, -1, 1, 32, 3, 3, 48)),
    /* Weights that are packed in 16 bits some hundred channels at a time. */
    CONV2_TO("bias, ReLU, 531 channels to 50", 1, WINDOW2(2, 1, 1, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 2, 3, 4, 531),
             ROUGH(FILL_UNIFORM, -1, 1, 50, 2, 2, 531), 50),
    CONV2_DATA("531 channels to 50", WINDOW2(2, 1, 1, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 2, 4, 5, 50),
               ROUGH(FILL_UNIFORM, -1, 1, 50, 2, 2, 531), 2, 3, 4, 531),
    /* Large enough for a product. */
    CONV2_TO("bias, ReLU, 1x1", 1, WINDOW2(1, 1, 0, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 4, 31, 31, 96),
             ROUGH(FILL_UNIFORM, -1, 1, 90, 1, 1, 96), 90),
    CONV2_TO("bias, 1x1, strided", 0, WINDOW2(1, 2, 0, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 4, 61, 61, 96),
             ROUGH(FILL_UNIFORM, -1, 1, 90, 1, 1, 96), 90),
    /* Sums that GPUs cut into parts. */
    CONV2_TO("bias, ReLU, a long sum", 1, WINDOW2(3, 1, 1, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 1, 4, 5, 72),
             ROUGH(FILL_UNIFORM, -1, 1, 40, 3, 3, 72), 40),
    CONV2_WEIGHT("a long sum", WINDOW2(3, 1, 1, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 2, 17, 19, 5),
                 ROUGH(FILL_UNIFORM, -1, 1, 2, 17, 19, 24), 24, 3, 3, 5),
    CONV2_WEIGHT("depthwise, a long sum", WINDOW2(3, 1, 1, 1, 35), ROUGH(FILL_UNIFORM, -1, 1, 2, 17, 19, 35),
                 ROUGH(FILL_UNIFORM, -1, 1, 2, 17, 19, 35), 35, 3, 3, 1),
    CONV2_TO("bias, grouped", 0, WINDOW2(3, 1, 1, 1, 2), REAL(-1, 1, 3, 4, 5, 4), REAL(-1, 1, 6, 3, 3, 2), 6),
    CONV2_TO("bias, ReLU, grouped", 1, WINDOW2(3, 1, 1, 1, 2), REAL(-1, 1, 3, 4, 5, 4), REAL(-1, 1, 6, 3, 3, 2), 6),
    CONV2_TO("bias, ReLU, depthwise", 1, WINDOW2(3, 1, 1, 1, 45), REAL(-1, 1, 2, 5, 4, 45), REAL(-1, 1, 45, 3, 3, 1),
             45),
    CONV2_TO("bias, depthwise, strided", 0, WINDOW2(3, 2, 1, 1, 9), REAL(-1, 1, 2, 5, 6, 9), REAL(-1, 1, 9, 3, 3, 1),
             9),
    CONV2_TO("bias, no images", 1, WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 0, 4, 4, 2), REAL(-1, 1, 3, 3, 3, 2), 3),
    CONV2_TO("bias, nothing to sum", 0, WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 2, 4, 4, 0), REAL(-1, 1, 3, 3, 3, 0), 3),
    CONV2_TO("bias, ReLU, nothing to sum", 1, WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 2, 4, 4, 0), REAL(-1, 1, 3, 3, 3, 0),
             3),
    CONV2_TO("special, ReLU", 1, WINDOW2(2, 1, 0, 1, 1), ROUGH(FILL_RARE, -1, 1, 2, 9, 9, 3),
             ROUGH(FILL_UNIFORM, -1, 1, 35, 2, 2, 3), 35),
    CONV2_TO("special, ReLU, depthwise", 1, WINDOW2(3, 1, 0, 1, 17), ROUGH(FILL_RARE, -1, 1, 2, 9, 9, 17),
             ROUGH(FILL_UNIFORM, -1, 1, 17, 3, 3, 1), 17),
    CONV2_TO("special, ReLU, grouped", 1, WINDOW2(2, 1, 0, 1, 2), ROUGH(FILL_RARE, -1, 1, 2, 9, 9, 6),
             ROUGH(FILL_UNIFORM, -1, 1, 34, 2, 2, 3), 34),
    CONV2_TO("special, ReLU, 1x1", 1, WINDOW2(1, 1, 0, 1, 1), ROUGH(FILL_RARE, -1, 1, 4, 17, 17, 16),
             ROUGH(FILL_UNIFORM, -1, 1, 32, 1, 1, 16), 32),
    CONV2_DATA_TO("bias", 0, WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 2, 5, 4, 3), REAL(-1, 1, 3, 3, 3, 2), 2, 2, 5, 4, 2),
    CONV2_DATA_TO("bias, ReLU, strided", 1, WINDOW2(2, 2, 0, 1, 1), REAL(-1, 1, 2, 3, 4, 3), REAL(-1, 1, 3, 2, 2, 2), 2,
                  2, 6, 8, 2),
    CONV2_DATA_TO("bias, one channel", 0, WINDOW2(2, 2, 0, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 3, 5, 7, 16),
                  ROUGH(FILL_UNIFORM, -1, 1, 16, 2, 2, 1), 1, 3, 10, 14, 1),
    CONV2_DATA_TO("bias, ReLU, 37 channels, some pixels without a tap", 1, WINDOW2(2, 3, 0, 1, 1),
                  ROUGH(FILL_UNIFORM, -1, 1, 3, 4, 5, 17), ROUGH(FILL_UNIFORM, -1, 1, 17, 2, 2, 37), 37, 3, 11, 14, 37),
    CONV2_DATA_TO("bias, ReLU, tiles of 2x2", 1, WINDOW2(3, 1, 1, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 3, 11, 9, 48),
                  ROUGH(FILL_UNIFORM, -1, 1, 48, 3, 3, 32), 32, 3, 11, 9, 32),
    CONV2_DATA_TO("bias, ReLU, 1x1", 1, WINDOW2(1, 1, 0, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 4, 31, 31, 90),
                  ROUGH(FILL_UNIFORM, -1, 1, 90, 1, 1, 96), 96, 4, 31, 31, 96),
    CONV2_DATA_TO("bias, 1x1, strided", 0, WINDOW2(1, 2, 0, 1, 1), ROUGH(FILL_UNIFORM, -1, 1, 4, 31, 31, 90),
                  ROUGH(FILL_UNIFORM, -1, 1, 90, 1, 1, 96), 96, 4, 62, 61, 96),
    CONV2_DATA_TO("bias, ReLU, grouped", 1, WINDOW2(3, 1, 1, 1, 2), REAL(-1, 1, 3, 4, 5, 6), REAL(-1, 1, 6, 3, 3, 2), 4,
                  3, 4, 5, 4),
    CONV2_DATA_TO("bias, ReLU, depthwise", 1, WINDOW2(3, 1, 1, 1, 45), REAL(-1, 1, 2, 5, 4, 45),
                  REAL(-1, 1, 45, 3, 3, 1), 45, 2, 5, 4, 45),
    CONV2_DATA_TO("bias, ReLU, nothing to sum", 1, WINDOW2(3, 1, 1, 1, 1), REAL(-1, 1, 2, 4, 4, 0),
                  REAL(-1, 1, 0, 3, 3, 3), 3, 2, 4, 4, 3),
    CONV2_DATA_TO("special, ReLU", 1, WINDOW2(2, 2, 0, 1, 1), ROUGH(FILL_RARE, -1, 1, 2, 9, 9, 3),
                  ROUGH(FILL_UNIFORM, -1, 1, 3, 2, 2, 35), 35, 2, 18, 18, 35),
    CONV3_DATA_TO("bias, ReLU, cube", 1, CUBE, REAL(-1, 1, 2, 3, 4, 5, 4), REAL(-1, 1, 4, 3, 3, 3, 3), 3, 2, 3, 4, 5,
                  3),
    CONV3_TO("bias, ReLU, cube", 1, CUBE, REAL(-1, 1, 2, 3, 4, 5, 3), REAL(-1, 1, 4, 3, 3, 3, 3), 4),
    CONV3_TO("bias, grouped", 0, IN_GROUPS, REAL(-1, 1, 1, 3, 5, 4, 4), REAL(-1, 1, 6, 3, 1, 2, 2), 6),
    CONV3_TO("special, ReLU", 1, TWOS, ROUGH(FILL_RARE, -1, 1, 2, 4, 6, 4, 3),
             ROUGH(FILL_UNIFORM, -1, 1, 5, 2, 2, 2, 3), 5),

    MAX3("twos", TWOS, DISTINCT(-1, 1, 2, 4, 6, 4, 5)),
    MAX3_GRAD("twos", TWOS, DISTINCT(-1, 1, 2, 4, 6, 4, 5), 2, 2, 3, 2, 5),
    MAX3("twos, a rest", TWOS, DISTINCT(-1, 1, 2, 5, 3, 4, 17)),
    MAX3_GRAD("twos, a rest", TWOS, DISTINCT(-1, 1, 2, 5, 3, 4, 17), 2, 2, 1, 2, 17),
    MAX3("overlapping", OVERLAP, DISTINCT(-1, 1, 2, 4, 3, 5, 3)),
    MAX3_GRAD("overlapping", OVERLAP, DISTINCT(-1, 1, 2, 4, 3, 5, 3), 2, 2, 3, 3, 3),
    MAX3_GRAD("pixels in no window", APART, DISTINCT(-1, 1, 2, 3, 4, 2, 3), 2, 2, 2, 2, 3),
    MAX3("no volumes", TWOS, DISTINCT(-1, 1, 0, 4, 6, 4, 5)),
    MAX3("special", TWOS, ROUGH(FILL_SPECIAL, -1, 1, 2, 4, 6, 4, 5)),
    MAX3_GRAD("no volumes", TWOS, DISTINCT(-1, 1, 0, 4, 6, 4, 5), 0, 2, 3, 2, 5),
    AVG3("no volumes", TWOS, REAL(-1, 1, 0, 4, 6, 4, 5)),
    AVG3("special", TWOS, ROUGH(FILL_SPECIAL, -1, 1, 2, 4, 6, 4, 5)),
    AVG3_GRAD("no volumes", TWOS, REAL(-1, 1, 0, 2, 3, 2, 5), 0, 4, 6, 4, 5),
    AVG3("twos", TWOS, REAL(-1, 1, 2, 4, 6, 4, 5)),
    AVG3_GRAD("twos", TWOS, REAL(-1, 1, 2, 2, 3, 2, 5), 2, 4, 6, 4, 5),
    AVG3_GRAD("twos, a rest", TWOS, REAL(-1, 1, 2, 2, 1, 2, 17), 2, 5, 3, 4, 17),
    AVG3("overlapping", OVERLAP, REAL(-1, 1, 2, 4, 3, 5, 3)),
    AVG3_GRAD("overlapping", OVERLAP, REAL(-1, 1, 2, 2, 3, 3, 3), 2, 4, 3, 5, 3),

    /* As many vectors of channels as there are loops for, and a rest. */
    CONV2("depthwise", WINDOW2(3, 1, 1, 1, 45), REAL(-1, 1, 2, 5, 4, 45), REAL(-1, 1, 45, 3, 3, 1)),
    CONV2_DATA("depthwise", WINDOW2(3, 1, 1, 1, 45), REAL(-1, 1, 2, 5, 4, 45), REAL(-1, 1, 45, 3, 3, 1), 2, 5, 4, 45),
    CONV2_WEIGHT("depthwise", WINDOW2(3, 1, 1, 1, 45), REAL(-1, 1, 2, 5, 4, 45), REAL(-1, 1, 2, 5, 4, 45), 45, 3, 3, 1),
    CONV2("depthwise, strided", WINDOW2(3, 2, 1, 1, 9), REAL(-1, 1, 2, 5, 6, 9), REAL(-1, 1, 9, 3, 3, 1)),
    CONV2_DATA("depthwise, strided", WINDOW2(3, 2, 1, 1, 9), REAL(-1, 1, 2, 3, 3, 9), REAL(-1, 1, 9, 3, 3, 1), 2, 5, 6,
               9),
    CONV2_WEIGHT("depthwise, strided", WINDOW2(3, 2, 1, 1, 9), REAL(-1, 1, 2, 5, 6, 9), REAL(-1, 1, 2, 3, 3, 9), 9, 3,
                 3, 1),
    CONV2("depthwise, dilated", WINDOW2(3, 2, 2, 2, 10), REAL(-1, 1, 1, 6, 7, 10), REAL(-1, 1, 10, 3, 3, 1)),
    CONV2_DATA("depthwise, dilated", WINDOW2(3, 2, 2, 2, 10), REAL(-1, 1, 1, 3, 4, 10), REAL(-1, 1, 10, 3, 3, 1), 1, 6,
               7, 10),
    CONV2_WEIGHT("depthwise, dilated", WINDOW2(3, 2, 2, 2, 10), REAL(-1, 1, 1, 6, 7, 10), REAL(-1, 1, 1, 3, 4, 10), 10,
                 3, 3, 1),
    CONV2("depthwise, wide padding", WINDOW2(2, 1, 3, 1, 8), REAL(-1, 1, 1, 2, 3, 8), REAL(-1, 1, 8, 2, 2, 1)),
    CONV2_WEIGHT("depthwise, wide padding", WINDOW2(2, 1, 3, 1, 8), REAL(-1, 1, 1, 2, 3, 8), REAL(-1, 1, 1, 7, 8, 8), 8,
                 2, 2, 1),
    CONV2("two filters a channel", WINDOW2(3, 1, 1, 1, 3), REAL(-1, 1, 2, 4, 4, 3), REAL(-1, 1, 6, 3, 3, 1)),
    CONV2_WEIGHT("two filters a channel", WINDOW2(3, 1, 1, 1, 3), REAL(-1, 1, 2, 4, 4, 3), REAL(-1, 1, 2, 4, 4, 6), 6,
                 3, 3, 1),
};

const case_list harness_cases_conv = LIST_OF(cases);
