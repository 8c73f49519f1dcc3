/* Cases of the ops that move elements, and of the reductions. */
#include "harness/harness.h"

#define ALL_DTYPES ((1u << STK_N_DTYPES) - 1u)
#define NUMBERS    (ALL_DTYPES & ~(1u << STK_BOOL))

#define BROADCAST(name, input, ...) CASE(name, broadcast, ATTRS(.shape = DIMS(__VA_ARGS__)), INPUTS(input))
#define RESHAPE(name, input, ...)   CASE(name, reshape, ATTRS(.shape = DIMS(__VA_ARGS__)), INPUTS(input))
#define TRANSPOSE(name, input, ...) CASE(name, transpose, ATTRS(.permutation = {__VA_ARGS__}), INPUTS(input))
#define EACH(...)                                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define SLICE(name, start_, stop_, step_, input)                                                                       \
    CASE(name, slice, ATTRS(.slice = {.start = start_, .stop = stop_, .step = step_}), INPUTS(input))
#define SLICE_GRAD(name, start_, stop_, step_, input, ...)                                                             \
    CASE(name, slice_grad,                                                                                             \
         ATTRS(.shape = DIMS(__VA_ARGS__), .slice = {.start = start_, .stop = stop_, .step = step_}), INPUTS(input))
#define PAD(name, low_, high_, value_, input)                                                                          \
    CASE(name, pad, ATTRS(.pad = {.low = low_, .high = high_, .value = value_}), INPUTS(input))
#define CONCAT(name, axis_, ...) CASE(name, concat, ATTRS(.concat = {.axis = axis_}), INPUTS(__VA_ARGS__))
#define REDUCE(name, what, axes_, input)                                                                               \
    CASE(name, reduce, ATTRS(.reduce = {.kind = STK_REDUCE_##what, .axes = axes_}), INPUTS(input), .loosen = 2)

static const op_case cases[] = {
    BROADCAST("a row", REAL(-1, 1, 7), 3, 7),
    BROADCAST("a column", REAL(-1, 1, 3, 1), 3, 7),
    BROADCAST("a scalar", REAL_SCALAR(0.3), 2, 3, 5),
    BROADCAST("the middle", REAL(-1, 1, 2, 1, 5), 2, 3, 5),
    BROADCAST("both ends", REAL(-1, 1, 1, 3, 1), 2, 3, 5),
    BROADCAST("more in front", REAL(-1, 1, 1, 1), 2, 2, 1, 9),
    BROADCAST("to nothing", REAL(-1, 1, 1, 3), 0, 3),
    BROADCAST("to huge nothing", REAL(-1, 1, 1, 3), 0, HUGE, 3),
    BROADCAST("eight axes", REAL(-1, 1, 1, 2, 1, 1, 3), 2, 1, 2, 1, 2, 1, 2, 3),
    BROADCAST("unchanged", REAL(-1, 1, 2, 3), 2, 3),
    CASE("any dtype", broadcast, ATTRS(.shape = DIMS(4, 5)), INPUTS(ROUGH(FILL_STEPS, 0, 2, 5)), .mains = ALL_DTYPES),

    RESHAPE("to one axis", REAL(-1, 1, 3, 5, 7), 105),
    CASE("to a scalar", reshape, ATTRS(0), INPUTS(REAL(-1, 1, 1, 1))),
    RESHAPE("of huge nothing", REAL(-1, 1, 0, HUGE), HUGE, 0),
    RESHAPE("of nothing", REAL(-1, 1, 0, 5), 5, 0, 3),
    CASE("any dtype", reshape, ATTRS(.shape = DIMS(4, 5)), INPUTS(ROUGH(FILL_STEPS, 0, 2, 20)), .mains = ALL_DTYPES),

    TRANSPOSE("a matrix", REAL(-1, 1, 7, 5), 1, 0),
    TRANSPOSE("NHWC to NCHW", REAL(-1, 1, 2, 3, 5, 3), 0, 3, 1, 2),
    TRANSPOSE("backwards", REAL(-1, 1, 2, 3, 4), 2, 1, 0),
    TRANSPOSE("unchanged", REAL(-1, 1, 2, 3), 0, 1),
    TRANSPOSE("of huge nothing", REAL(-1, 1, 0, HUGE), 1, 0),
    TRANSPOSE("eight axes", REAL(-1, 1, 2, 1, 3, 1, 2, 1, 2, 2), 7, 0, 6, 1, 5, 2, 4, 3),
    TRANSPOSE("of nothing", REAL(-1, 1, 0, 3), 1, 0),
    TRANSPOSE("large", ROUGH(FILL_UNIFORM, -1, 1, 67, 131), 1, 0),
    TRANSPOSE("swapped in a batch", ROUGH(FILL_UNIFORM, -1, 1, 3, 33, 65), 0, 2, 1),
    TRANSPOSE("heads", ROUGH(FILL_UNIFORM, -1, 1, 2, 9, 3, 8), 0, 2, 1, 3),
    TRANSPOSE("heads, swapped", ROUGH(FILL_UNIFORM, -1, 1, 2, 33, 3, 40), 0, 2, 3, 1),
    TRANSPOSE("long backwards", ROUGH(FILL_UNIFORM, -1, 1, 34, 3, 33), 2, 1, 0),
    CASE("any dtype, large", transpose, ATTRS(.permutation = {0, 2, 1}), INPUTS(ROUGH(FILL_STEPS, 0, 2, 2, 32, 45)),
         .mains = ALL_DTYPES),
    CASE("any dtype", transpose, ATTRS(.permutation = {1, 0}), INPUTS(ROUGH(FILL_STEPS, 0, 2, 4, 9)),
         .mains = ALL_DTYPES),

    SLICE("a part", EACH(1, 2), EACH(3, 7), EACH(1, 1), REAL(-1, 1, 4, 9)),
    SLICE("with steps", EACH(0, 1), EACH(5, 100), EACH(2, 3), REAL(-1, 1, 5, 11)),
    SLICE("the channels", EACH(0, 0, 0, 1), EACH(9, 9, 9, 3), EACH(1, 1, 1, 1), REAL(-1, 1, 2, 3, 3, 5)),
    SLICE("of nothing", EACH(0, 1), EACH(0, 3), EACH(1, 1), REAL(-1, 1, 0, 3)),
    SLICE("nothing", EACH(2, 0), EACH(2, 9), EACH(1, 1), REAL(-1, 1, 4, 3)),
    CASE("any dtype", slice, ATTRS(.slice = {{1, 0}, {4, 5}, {2, 2}}), INPUTS(ROUGH(FILL_STEPS, 0, 2, 4, 5)),
         .mains = ALL_DTYPES),

    CASE("any dtype, wide", slice, ATTRS(.slice = {{1, 16}, {4, 48}, {1, 1}}), INPUTS(ROUGH(FILL_STEPS, 0, 2, 4, 64)),
         .mains = ALL_DTYPES),

    SLICE_GRAD("a part", EACH(1, 2), EACH(3, 7), EACH(1, 1), REAL(-1, 1, 2, 5), 4, 9),
    SLICE_GRAD("with steps", EACH(0, 1), EACH(5, 100), EACH(2, 3), REAL(-1, 1, 3, 4), 5, 11),
    SLICE_GRAD("of nothing", EACH(2, 0), EACH(2, 9), EACH(1, 1), REAL(-1, 1, 0, 3), 4, 3),
    SLICE_GRAD("of wide rows", EACH(1, 0, 16), EACH(4, 6, 48), EACH(1, 2, 1), REAL(-1, 1, 3, 3, 32), 5, 6, 64),
    SLICE_GRAD("of wide rows, whole", EACH(2, 0), EACH(9, 16), EACH(3, 1), REAL(-1, 1, 3, 16), 9, 16),

    PAD("a matrix", EACH(1, 0), EACH(2, 3), 0.0, REAL(-1, 1, 3, 4)),
    PAD("an image", EACH(0, 1, 2, 0), EACH(0, 2, 1, 0), 0.5, REAL(-1, 1, 2, 3, 3, 2)),
    PAD("by nothing", EACH(0, 0), EACH(0, 0), 7.0, REAL(-1, 1, 3, 4)),
    PAD("wide rows", EACH(1, 16), EACH(2, 8), 0.3, REAL(-1, 1, 3, 32)),
    CASE("any dtype", pad, ATTRS(.pad = {.low = {1, 8}, .high = {0, 16}, .value = 1.7}),
         INPUTS(ROUGH(FILL_STEPS, 0, 2, 4, 24)), .mains = ALL_DTYPES),
    CASE("beyond the dtype", pad, ATTRS(.pad = {.low = {1}, .high = {2}, .value = 3e30}),
         INPUTS(ROUGH(FILL_STEPS, 0, 2, 5)), .mains = ALL_DTYPES),
    CASE("below zero", pad, ATTRS(.pad = {.low = {1}, .high = {2}, .value = -300.5}),
         INPUTS(ROUGH(FILL_STEPS, 0, 2, 5)), .mains = ALL_DTYPES),
    PAD("of nothing", EACH(1, 1), EACH(1, 1), -1.0, REAL(-1, 1, 0, 2)),

    CONCAT("rows", 0, REAL(-1, 1, 2, 5), REAL(-1, 1, 3, 5)),
    CONCAT("columns", 1, REAL(-1, 1, 3, 2, 2), REAL(-1, 1, 3, 1, 2), REAL(-1, 1, 3, 4, 2)),
    CONCAT("channels", 3, REAL(-1, 1, 2, 3, 3, 3), REAL(-1, 1, 2, 3, 3, 5)),
    CONCAT("wide rows", 1, REAL(-1, 1, 3, 16), REAL(-1, 1, 3, 32), REAL(-1, 1, 3, 8)),
    CASE("any dtype", concat, ATTRS(.concat = {1}),
         INPUTS(ROUGH(FILL_STEPS, 0, 2, 3, 4), ROUGH(FILL_STEPS, 0, 2, 3, 5)), .mains = ALL_DTYPES),
    CONCAT("one", 0, REAL(-1, 1, 4)),
    CONCAT("huge nothing", 1, REAL(-1, 1, 0, HUGE), REAL(-1, 1, 0, 3)),
    CONCAT("an empty part", 0, REAL(-1, 1, 0, 5), REAL(-1, 1, 3, 5)),

    REDUCE("sum of all", SUM, 7, REAL(-1, 1, 3, 5, 7)),
    REDUCE("sum of rows", SUM, 2, REAL(-1, 1, 9, 13)),
    REDUCE("sum of columns", SUM, 1, REAL(-1, 1, 9, 13)),
    REDUCE("sum of the middle", SUM, 2, REAL(-1, 1, 3, 5, 7)),
    REDUCE("sum of both ends", SUM, 5, REAL(-1, 1, 3, 5, 7)),
    REDUCE("sum of pixels", SUM, 6, REAL(-1, 1, 2, 3, 5, 7)),
    REDUCE("sum of every other axis", SUM, 10, REAL(-1, 1, 2, 3, 2, 3)),
    REDUCE("sum of nothing", SUM, 1, REAL(-1, 1, 0, 3)),
    REDUCE("sum to nothing", SUM, 2, REAL(-1, 1, 0, 3)),
    REDUCE("sum of huge nothing", SUM, 3, REAL(-1, 1, HUGE, 0)),
    REDUCE("sum of every other of eight axes", SUM, 170, REAL(-1, 1, 2, 1, 3, 2, 1, 2, 2, 2)),
    REDUCE("sum of one", SUM, 1, REAL(-1, 1, 1)),
    REDUCE("sum of special values", SUM, 2, ROUGH(FILL_SPECIAL, -1, 1, 40, 5)),
    REDUCE("mean of all", MEAN, 3, REAL(-1, 1, 9, 13)),
    REDUCE("mean of pixels", MEAN, 6, REAL(-1, 1, 2, 3, 5, 7)),
    REDUCE("mean of the last", MEAN, 4, REAL(-1, 1, 2, 3, 5)),
    REDUCE("mean of nothing", MEAN, 1, REAL(-1, 1, 0, 3)),
    REDUCE("max of all", MAX, 3, DISTINCT(-1, 1, 9, 13)),
    REDUCE("max of rows", MAX, 2, DISTINCT(-1, 1, 9, 13)),
    REDUCE("max of columns", MAX, 1, DISTINCT(-1, 1, 9, 13)),
    REDUCE("max of special values", MAX, 2, ROUGH(FILL_SPECIAL, -1, 1, 40, 5)),
    REDUCE("max of nothing", MAX, 1, ROUGH(FILL_UNIFORM, -1, 1, 0, 3)),
    REDUCE("min of rows", MIN, 2, DISTINCT(-1, 1, 9, 13)),
    REDUCE("min of special values", MIN, 2, ROUGH(FILL_SPECIAL, -1, 1, 40, 5)),
    REDUCE("min of nothing", MIN, 1, ROUGH(FILL_UNIFORM, -1, 1, 0, 3)),
    REDUCE("product of columns", PROD, 1, REAL(0.5, 1.5, 9, 13)),
    REDUCE("product with zeros", PROD, 2, ROUGH(FILL_STEPS, -2, 2, 9, 5)),
    REDUCE("product of nothing", PROD, 1, ROUGH(FILL_UNIFORM, -1, 1, 0, 3)),
    CASE("min of numbers", reduce, ATTRS(.reduce = {STK_REDUCE_MIN, 2}), INPUTS(ROUGH(FILL_STEPS, 0, 99, 9, 5)),
         .mains = NUMBERS),
    CASE("product of numbers", reduce, ATTRS(.reduce = {STK_REDUCE_PROD, 2}), INPUTS(ROUGH(FILL_STEPS, 0, 3, 9, 3)),
         .mains = NUMBERS),
    REDUCE("a long sum", SUM, 1, ROUGH(FILL_UNIFORM, 0, 1, 5003, 3)),
    REDUCE("a long row", SUM, 2, ROUGH(FILL_UNIFORM, 0, 1, 3, 5003)),
    REDUCE("many short rows", SUM, 2, ROUGH(FILL_UNIFORM, 0, 1, 301, 9)),
    REDUCE("columns of many images", MEAN, 6, ROUGH(FILL_UNIFORM, 0, 1, 3, 17, 19, 67)),
    REDUCE("long and both ends", SUM, 5, ROUGH(FILL_UNIFORM, 0, 1, 301, 3, 33)),
    REDUCE("max of a long row", MAX, 1, ROUGH(FILL_RARE, 0, 1, 4099)),
    CASE("sum of columns, wide", reduce, ATTRS(.reduce = {STK_REDUCE_SUM, 1, 1}), INPUTS(REAL(-1, 1, 37, 5))),
    CASE("mean of rows, wide", reduce, ATTRS(.reduce = {STK_REDUCE_MEAN, 2, 1}), INPUTS(REAL(-1, 1, 5, 37))),
    CASE("sum of numbers", reduce, ATTRS(.reduce = {STK_REDUCE_SUM, 1}), INPUTS(ROUGH(FILL_STEPS, 0, 3, 9, 5)),
         .mains = NUMBERS),
    CASE("max of numbers", reduce, ATTRS(.reduce = {STK_REDUCE_MAX, 2}), INPUTS(ROUGH(FILL_STEPS, 0, 99, 9, 5)),
         .mains = NUMBERS),
};

const case_list harness_cases_move = LIST_OF(cases);
