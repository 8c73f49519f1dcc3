/* Cases of what works on rows or along an axis: layer and group norm, gather, iota, argmax, cumsum. */
#include <math.h>

#include "harness/harness.h"

#define LAYER_NORM(name, eps, x, c)                                                                                    \
    CASE(name, layer_norm, ATTRS(.layer_norm = {eps}), INPUTS(x, STATS(0.5, 2, c), STATS(-0.5, 0.5, c)), .loosen = 10)
#define LAYER_NORM_GRAD(name, dy, x, c, ...)                                                                           \
    CASE(name, layer_norm_grad, ATTRS(0),                                                                              \
         INPUTS(dy, x, STATS(0.5, 2, c), STATS(-0.5, 0.5, __VA_ARGS__), STATS(0.5, 2, __VA_ARGS__)), .loosen = 10)

#define GROUP_NORM(name, groups, x, c)                                                                                 \
    CASE(name, group_norm, ATTRS(.group_norm = {1e-5, groups}), INPUTS(x, STATS(0.5, 2, c), STATS(-0.5, 0.5, c)),      \
         .loosen = 10)
#define GROUP_NORM_GRAD(name, groups, n, c, ...)                                                                       \
    CASE(name, group_norm_grad, ATTRS(.group_norm = {1e-5, groups}),                                                   \
         INPUTS(REAL(-1, 1, n, __VA_ARGS__, c), REAL(-1, 1, n, __VA_ARGS__, c), STATS(0.5, 2, c),                      \
                STATS(-0.5, 0.5, n, groups), STATS(0.5, 2, n, groups)),                                                \
         .loosen = 10)

#define ALL_DTYPES                  ((1u << STK_N_DTYPES) - 1u)
#define IDS(n, ...)                 TYPED(STK_I32, FILL_LABELS, 0, n, __VA_ARGS__)
#define GATHER(name, axis_, x, ids) CASE(name, gather, ATTRS(.axis = axis_), INPUTS(x, ids))
#define SHAPE(...)                  .shape = DIMS(__VA_ARGS__)
#define SCATTER_ADD(name, axis_, shape_, ...)                                                                          \
    CASE(name, scatter_add, ATTRS(shape_, .axis = axis_), INPUTS(__VA_ARGS__), .loosen = 2)

#define IOTA(name_, dtype_, axis_, ...)                                                                                \
    {                                                                                                                  \
        .name = name_, .op = STK_OP_iota, .attrs = {.dtype = dtype_, .shape = DIMS(__VA_ARGS__), .axis = axis_ }       \
    }
#define ARGMAX(name, axis_, last_, x, ...) CASE(name, argmax, ATTRS(.argmax = {axis_, last_}), INPUTS(x), __VA_ARGS__)
#define CUMSUM(name, axis_, exclusive_, reverse_, x, ...)                                                              \
    CASE(name, cumsum, ATTRS(.cumsum = {axis_, exclusive_, reverse_}), INPUTS(x), .loosen = 4, __VA_ARGS__)

static const op_case cases[] = {
    LAYER_NORM("rows", 1e-5, REAL(-1, 1, 5, 7), 7),
    LAYER_NORM("of a batch of rows", 1e-3, REAL(-2, 5, 2, 3, 33), 33),
    LAYER_NORM("one row", 1e-5, REAL(-1, 1, 9), 9),
    LAYER_NORM("of one element", 1e-5, REAL(-1, 1, 4, 1), 1),
    LAYER_NORM("far from zero", 1e-5, ROUGH(FILL_UNIFORM, 50, 51, 9, 64), 64),
    LAYER_NORM("all alike", 1e-5, ROUGH(FILL_CONSTANT, 3, 3, 4, 12), 12),
    CASE("special", layer_norm, ATTRS(.layer_norm = {1e-5}),
         INPUTS(ROUGH(FILL_SPECIAL, -1, 1, 9, 33), ROUGH_STATS(FILL_UNIFORM, 0.5, 2, 33),
                ROUGH_STATS(FILL_UNIFORM, -1, 1, 33)),
         .loosen = 10),
    LAYER_NORM("no rows", 1e-5, REAL(-1, 1, 0, 7), 7),
    LAYER_NORM("of nothing", 1e-5, REAL(-1, 1, 3, 0), 0),
    /* A mean that is not close to 0, since what is off is compared with it. */
    LAYER_NORM("long rows", 1e-5, ROUGH(FILL_UNIFORM, -1, 2, 3, 5000), 5000),
    LAYER_NORM("many rows", 1e-5, ROUGH(FILL_UNIFORM, -1, 1, 301, 65), 65),
    LAYER_NORM("768 columns", 1e-5, ROUGH(FILL_UNIFORM, -1, 2, 11, 768), 768),
    LAYER_NORM("a row for many work-items", 1e-5, ROUGH(FILL_UNIFORM, -1, 2, 2, 9000), 9000),

    LAYER_NORM_GRAD("rows", REAL(-1, 1, 5, 7), REAL(-1, 1, 5, 7), 7, 5),
    LAYER_NORM_GRAD("of a batch of rows", REAL(-1, 1, 2, 3, 33), REAL(-2, 5, 2, 3, 33), 33, 2, 3),
    LAYER_NORM_GRAD("of one element", REAL(-1, 1, 4, 1), REAL(-1, 1, 4, 1), 1, 4),
    LAYER_NORM_GRAD("no rows", REAL(-1, 1, 0, 7), REAL(-1, 1, 0, 7), 7, 0),
    LAYER_NORM_GRAD("of nothing", REAL(-1, 1, 3, 0), REAL(-1, 1, 3, 0), 0, 3),
    LAYER_NORM_GRAD("long rows", REAL(-1, 1, 3, 2500), REAL(-1, 1, 3, 2500), 2500, 3),
    LAYER_NORM_GRAD("many rows", REAL(-1, 1, 301, 65), REAL(-1, 1, 301, 65), 65, 301),
    LAYER_NORM_GRAD("768 columns", ROUGH(FILL_UNIFORM, -1, 1, 201, 768), ROUGH(FILL_UNIFORM, -1, 1, 201, 768), 768,
                    201),
    LAYER_NORM_GRAD("a row for many work-items", ROUGH(FILL_UNIFORM, -1, 1, 2, 9000),
                    ROUGH(FILL_UNIFORM, -1, 1, 2, 9000), 9000, 2),

    GROUP_NORM("images", 2, REAL(-1, 1, 3, 4, 5, 6), 6),
    GROUP_NORM("one group", 1, REAL(-2, 5, 2, 7, 9), 9),
    GROUP_NORM("a group for each channel", 5, REAL(-1, 1, 2, 3, 3, 5), 5),
    GROUP_NORM("no pixels between", 3, REAL(-1, 1, 4, 12), 12),
    GROUP_NORM("no samples", 2, REAL(-1, 1, 0, 3, 4), 4),
    GROUP_NORM("of nothing", 2, REAL(-1, 1, 3, 0, 4), 4),
    GROUP_NORM("far from zero", 4, ROUGH(FILL_UNIFORM, 5, 6, 2, 9, 9, 16), 16),
    GROUP_NORM("many pixels and channels", 3, ROUGH(FILL_UNIFORM, -1, 1, 3, 9, 17, 129), 129),
    GROUP_NORM("264 channels in parts", 3, ROUGH(FILL_UNIFORM, -1, 1, 2, 9, 17, 264), 264),
    CASE("special", group_norm, ATTRS(.group_norm = {1e-5, 3}),
         INPUTS(ROUGH(FILL_SPECIAL, -1, 1, 2, 5, 9), ROUGH_STATS(FILL_UNIFORM, 0.5, 2, 9),
                ROUGH_STATS(FILL_UNIFORM, -1, 1, 9)),
         .loosen = 10),
    GROUP_NORM_GRAD("images", 2, 3, 6, 4, 5),
    GROUP_NORM_GRAD("one group", 1, 2, 9, 7),
    GROUP_NORM_GRAD("a group for each channel", 5, 2, 5, 3, 3),
    GROUP_NORM_GRAD("no samples", 2, 0, 4, 3),
    GROUP_NORM_GRAD("of nothing", 2, 3, 4, 0),
    GROUP_NORM_GRAD("many pixels and channels", 3, 3, 129, 9, 17),
    GROUP_NORM_GRAD("264 channels in parts", 3, 2, 264, 9, 17),

    GATHER("tokens", 0, REAL(-1, 1, 11, 5), IDS(11, 3, 7)),
    GATHER("one token", 0, REAL(-1, 1, 4, 3), SCALAR(FIXED(STK_I32), 2)),
    GATHER("no tokens", 0, REAL(-1, 1, 4, 3), IDS(4, 0)),
    GATHER("of no rows", 0, REAL(-1, 1, 0, 3), IDS(1, 2, 0)),
    GATHER("no columns", 0, REAL(-1, 1, 4, 0), IDS(4, 5)),
    GATHER("many tokens", 0, ROUGH(FILL_SPECIAL, -1, 1, 301, 65), IDS(301, 9, 101)),
    GATHER("in the middle", 1, REAL(-1, 1, 3, 4, 5), IDS(4, 2, 3)),
    GATHER("along the last axis", 2, REAL(-1, 1, 3, 4, 5), IDS(5, 7)),
    GATHER("one of the last axis", 1, REAL(-1, 1, 3, 5), SCALAR(FIXED(STK_I32), 4)),
    CASE("any dtype", gather, ATTRS(.axis = 1), INPUTS(ROUGH(FILL_STEPS, 0, 2, 9, 5), IDS(5, 4)), .mains = ALL_DTYPES),

    SCATTER_ADD("tokens", 0, SHAPE(11, 5), REAL(-1, 1, 3, 7, 5), IDS(11, 3, 7)),
    SCATTER_ADD("onto a base", 0, SHAPE(11, 5), REAL(-1, 1, 3, 7, 5), IDS(11, 3, 7), REAL(-1, 1, 11, 5)),
    SCATTER_ADD("one token", 0, SHAPE(4, 3), REAL(-1, 1, 3), SCALAR(FIXED(STK_I32), 2)),
    SCATTER_ADD("no tokens", 0, SHAPE(4, 3), REAL(-1, 1, 0, 3), IDS(4, 0)),
    SCATTER_ADD("no columns", 0, SHAPE(4, 0), REAL(-1, 1, 5, 0), IDS(4, 5)),
    SCATTER_ADD("in the middle", 1, SHAPE(3, 4, 5), REAL(-1, 1, 3, 2, 3, 5), IDS(4, 2, 3)),
    SCATTER_ADD("along the last axis, onto a base", 1, SHAPE(3, 5), REAL(-1, 1, 3, 7), IDS(5, 7), REAL(-1, 1, 3, 5)),
    SCATTER_ADD("many tokens", 0, SHAPE(7, 65), REAL(-1, 1, 9, 101, 65), IDS(7, 9, 101)),
    SCATTER_ADD("many tokens onto a base", 0, SHAPE(301, 65), ROUGH(FILL_UNIFORM, -1, 1, 900, 65), IDS(301, 900),
                ROUGH(FILL_UNIFORM, -1, 1, 301, 65)),

    SCATTER_ADD("very many to few rows", 0, SHAPE(300, 65), ROUGH(FILL_UNIFORM, -1, 1, 900, 65), IDS(3, 900),
                ROUGH(FILL_UNIFORM, -1, 1, 300, 65)),
    SCATTER_ADD("to numbers beyond 16 bits", 0, SHAPE(70000), ROUGH(FILL_UNIFORM, -1, 1, 301), IDS(70000, 301)),
    SCATTER_ADD("to numbers beyond 16 bits onto a base", 0, SHAPE(70000, 2), ROUGH(FILL_UNIFORM, -1, 1, 301, 2),
                IDS(70000, 301), ROUGH(FILL_UNIFORM, -1, 1, 70000, 2)),
    SCATTER_ADD("very many", 0, SHAPE(301, 13), ROUGH(FILL_UNIFORM, -1, 1, 5003, 13), IDS(300, 5003)),
    SCATTER_ADD("many in the middle", 1, SHAPE(3, 301, 17), ROUGH(FILL_UNIFORM, -1, 1, 3, 1201, 17), IDS(301, 1201)),

    IOTA("rows", STK_I32, 0, 5, 3),
    IOTA("columns of many", STK_F32, 1, 301, 129),
    IOTA("in the middle", STK_I64, 1, 2, 3, 4),
    IOTA("half", STK_F16, 0, 9),
    IOTA("bytes", STK_U8, 0, 300),
    IOTA("nothing", STK_F64, 0, 0, 3),

    ARGMAX("rows", 1, 0, DISTINCT(-1, 1, 5, 7)),
    ARGMAX("columns", 0, 0, DISTINCT(-1, 1, 5, 7)),
    ARGMAX("ties", 1, 0, ROUGH(FILL_STEPS, 0, 2, 9, 5, 70)),
    ARGMAX("last of ties", 1, 1, ROUGH(FILL_STEPS, 0, 2, 9, 5, 70)),
    ARGMAX("special", 1, 0, ROUGH(FILL_SPECIAL, -1, 1, 9, 33)),
    ARGMAX("last special", 1, 1, ROUGH(FILL_SPECIAL, -1, 1, 9, 33)),
    ARGMAX("no rows", 1, 0, DISTINCT(-1, 1, 0, 7)),
    ARGMAX("many", 1, 0, ROUGH(FILL_UNIFORM, -1, 1, 65, 1001)),
    ARGMAX("last of many ties", 1, 1, ROUGH(FILL_STEPS, 0, 3, 3, 300, 5)),
    ARGMAX("many lines", 1, 0, ROUGH(FILL_SPECIAL, -1, 1, 7, 70, 41)),
    ARGMAX("many integers", 1, 1, TYPED(STK_I64, FILL_STEPS, -500, 500, 3, 400)),
    ARGMAX("integers", 0, 0, TYPED(STK_I64, FILL_STEPS, -5, 5, 9, 3)),

    CUMSUM("rows", 1, 0, 0, REAL(-1, 1, 5, 7)),
    CUMSUM("columns, exclusive", 0, 1, 0, REAL(-1, 1, 5, 7)),
    CUMSUM("in the middle, from the end", 1, 0, 1, REAL(-1, 1, 2, 5, 70)),
    CUMSUM("exclusive from the end", 1, 1, 1, REAL(-1, 1, 2, 5, 3)),
    CUMSUM("nothing", 1, 0, 0, REAL(-1, 1, 3, 0)),
    CUMSUM("special", 1, 0, 0, ROUGH(FILL_SPECIAL, -1, 1, 3, 9)),
    CUMSUM("long rows", 1, 0, 0, ROUGH(FILL_UNIFORM, 0, 1, 3, 700)),
    CUMSUM("long, exclusive from the end", 1, 1, 1, ROUGH(FILL_UNIFORM, 0, 1, 2, 300, 3)),
    CUMSUM("long, exclusive, special", 0, 1, 0, ROUGH(FILL_SPECIAL, -1, 1, 80, 3)),
    CUMSUM("many integers", 1, 0, 0, TYPED(STK_I64, FILL_STEPS, -500, 500, 2, 513)),
    CUMSUM("bytes that wrap", 1, 0, 1, TYPED(STK_U8, FILL_STEPS, 0, 200, 2, 257)),
    CUMSUM("integers", 0, 0, 0, TYPED(STK_I32, FILL_STEPS, -5, 5, 9, 3)),

    CASE("any dtype", copy_to, ATTRS(0), INPUTS(ROUGH(FILL_STEPS, 0, 2, 4, 9)), .mains = ALL_DTYPES),
    CASE("a row", copy_to, ATTRS(.copy_to = {3}), INPUTS(REAL(-1, 1, 9))),
    CASE("much", copy_to, ATTRS(.copy_to = {1}), INPUTS(REAL(-1, 1, 301, 257))),
    CASE("nothing", copy_to, ATTRS(.copy_to = {1}), INPUTS(REAL(-1, 1, 0, 3))),
    CASE("one", all_reduce, ATTRS(0), INPUTS(REAL(-1, 1, 5, 7))),
    CASE("two", all_reduce, ATTRS(0), INPUTS(REAL(1, 2, 301, 257), REAL(1, 2, 301, 257))),
    CASE("a mean of three", all_reduce, ATTRS(.all_reduce = {1}), INPUTS(REAL(1, 2, 9), REAL(1, 2, 9), REAL(1, 2, 9)),
         .loosen = 2),
    CASE("special", all_reduce, ATTRS(0),
         INPUTS(ROUGH(FILL_SPECIAL, -1, 1, 333), ROUGH(FILL_UNIFORM, -1, 1, 333), ROUGH(FILL_UNIFORM, -1, 1, 333)),
         .loosen = 4),
    CASE("nothing", all_reduce, ATTRS(.all_reduce = {1}), INPUTS(REAL(-1, 1, 0), REAL(-1, 1, 0))),
};

const case_list harness_cases_rows = LIST_OF(cases);
