/* Cases of fused groups: small programs as pass_fuse makes them. */
#include "harness/harness.h"

#define UNARY(kind, x)                                                                                                 \
    {                                                                                                                  \
        STK_OP_unary, STK_UNARY_##kind, STK_F32, STK_F32, {x, -1, -1}, 0, 0                                            \
    }
#define BINARY(kind, a, b)                                                                                             \
    {                                                                                                                  \
        STK_OP_binary, STK_BINARY_##kind, STK_F32, STK_F32, {a, b, -1}, 0, 0                                           \
    }
#define COMPARE(kind, a, b)                                                                                            \
    {                                                                                                                  \
        STK_OP_compare, STK_COMPARE_##kind, STK_BOOL, STK_F32, {a, b, -1}, 0, 0                                        \
    }
#define SELECT(type, c, a, b)                                                                                          \
    {                                                                                                                  \
        STK_OP_select, 0, type, STK_BOOL, {c, a, b}, 0, 0                                                              \
    }
#define CONVERT(to, from, x)                                                                                           \
    {                                                                                                                  \
        STK_OP_cast, 0, to, from, {x, -1, -1}, 0, 0                                                                    \
    }
#define CONSTANT(type, number)                                                                                         \
    {                                                                                                                  \
        STK_OP_constant, 0, type, type, {-1, -1, -1}, number, 0                                                        \
    }
#define DROPOUT(x, seed, sample, rate, stream)                                                                         \
    {                                                                                                                  \
        STK_OP_dropout, 0, STK_F32, STK_F32, {x, seed, sample}, rate, stream                                           \
    }

/* PROGRAM(name, STK_SHAPE-like dims, inputs, instructions, outputs) */
#define N_OF(array) (int32_t)(sizeof(array) / sizeof((array)[0]))
#define PROGRAM(name, dims)                                                                                            \
    static const stk_fused name = {.shape = dims,                                                                      \
                                   .n_in = N_OF(name##_in),                                                            \
                                   .n_instr = N_OF(name##_do),                                                         \
                                   .n_out = N_OF(name##_out),                                                          \
                                   .input = name##_in,                                                                 \
                                   .instr = name##_do,                                                                 \
                                   .out = name##_out}

/* relu(x * scale + bias), scale and bias by column. */
static const stk_fused_input affine_in[] = {{STK_F32, {67, 1}}, {STK_F32, {0, 1}}, {STK_F32, {0, 1}}};
static const stk_fused_instr affine_do[] = {BINARY(mul, 0, 1), BINARY(add, 3, 2), UNARY(relu, 4)};
static const int32_t affine_out[] = {5};
PROGRAM(affine, DIMS(5, 67));

/* Two results: exp(x) / (y + 1), and x > y ? x : 0.25. y is by row. */
static const stk_fused_input two_in[] = {{STK_F32, {35, 7, 1}}, {STK_F32, {5, 1, 0}}};
static const stk_fused_instr two_do[] = {UNARY(exp, 0),           CONSTANT(STK_F32, 1.0), BINARY(add, 1, 3),
                                         BINARY(div, 2, 4),       COMPARE(greater, 0, 1), CONSTANT(STK_F32, 0.25),
                                         SELECT(STK_F32, 6, 0, 7)};
static const int32_t two_out[] = {5, 8};
PROGRAM(two, DIMS(3, 5, 7));

/* bf16 in and out, f32 between, and the f32 result as well. */
static const stk_fused_input mixed_in[] = {{STK_BF16, {1}}, {STK_F32, {0}}};
static const stk_fused_instr mixed_do[] = {CONVERT(STK_F32, STK_BF16, 0), BINARY(mul, 2, 1), UNARY(tanh, 3),
                                           CONVERT(STK_BF16, STK_F32, 4)};
static const int32_t mixed_out[] = {5, 4};
PROGRAM(mixed, DIMS(1031));

/* Images: (u8 - mean by channel) * 1/255, as f32. */
static const stk_fused_input image_in[] = {{STK_U8, {105, 21, 3, 1}}, {STK_F32, {0, 0, 0, 1}}};
static const stk_fused_instr image_do[] = {CONVERT(STK_F32, STK_U8, 0), BINARY(sub, 2, 1), CONSTANT(STK_F32, 1.0 / 255),
                                           BINARY(mul, 3, 4)};
static const int32_t image_out[] = {5};
PROGRAM(image, DIMS(2, 5, 7, 3));

/* dropout(relu(x)) * 2. */
static const stk_fused_input dropped_in[] = {{STK_F32, {15, 5, 1}}, {STK_I64, {0}}, {STK_I64, {0}}};
static const stk_fused_instr dropped_do[] = {UNARY(relu, 0), DROPOUT(3, 1, 2, 0.4, 6), BINARY(add, 4, 4)};
static const int32_t dropped_out[] = {5};
PROGRAM(dropped, DIMS(7, 3, 5));

/* The end of a transformer's block in bf16: dropout(x) + residual. */
static const stk_fused_input block_in[] = {
    {STK_BF16, {333, 111, 1}}, {STK_I64, {0}}, {STK_I64, {0}}, {STK_BF16, {333, 111, 1}}};
static const stk_fused_instr block_do[] = {{STK_OP_dropout, 0, STK_BF16, STK_BF16, {0, 1, 2}, 0.3, 6},
                                           {STK_OP_binary, STK_BINARY_add, STK_BF16, STK_BF16, {4, 3, -1}, 0, 0}};
static const int32_t block_out[] = {5};
PROGRAM(block, DIMS(5, 3, 111));

/* Neighbours that fill 16 bytes: a bias by column, a factor by row, bytes, dropout, and results of both widths. */
static const stk_fused_input packed_in[] = {{STK_BF16, {72, 24, 1}}, {STK_BF16, {0, 0, 1}}, {STK_F32, {3, 1, 0}},
                                            {STK_I64, {0}},          {STK_I64, {0}},        {STK_U8, {72, 24, 1}}};
static const stk_fused_instr packed_do[] = {{STK_OP_binary, STK_BINARY_add, STK_BF16, STK_BF16, {0, 1, -1}, 0, 0},
                                            {STK_OP_unary, STK_UNARY_tanh, STK_BF16, STK_BF16, {6, -1, -1}, 0, 0},
                                            CONVERT(STK_F32, STK_BF16, 0),
                                            BINARY(mul, 8, 2),
                                            DROPOUT(9, 3, 4, 0.4, 6),
                                            CONVERT(STK_F32, STK_U8, 5),
                                            BINARY(add, 10, 11),
                                            CONVERT(STK_BF16, STK_F32, 12)};
static const int32_t packed_out[] = {13, 12, 7};
PROGRAM(packed, DIMS(5, 3, 24));

/* A bool as a result, and a comparison's negation by select. */
static const stk_fused_input mask_in[] = {{STK_F32, {1}}, {STK_F32, {1}}};
static const stk_fused_instr mask_do[] = {COMPARE(less_equal, 0, 1), CONVERT(STK_F32, STK_BOOL, 2)};
static const int32_t mask_out[] = {2, 3};
PROGRAM(mask, DIMS(301));

/* Scalars only. */
static const stk_fused_input scalar_in[] = {{STK_F32, {0}}, {STK_F32, {0}}};
static const stk_fused_instr scalar_do[] = {BINARY(sub, 0, 1), UNARY(square, 2)};
static const int32_t scalar_out[] = {3};
PROGRAM(scalar, {0});

/* No points at all. */
static const stk_fused_input nothing_in[] = {{STK_F32, {3, 1}}, {STK_F32, {0, 1}}};
static const stk_fused_instr nothing_do[] = {BINARY(mul, 0, 1)};
static const int32_t nothing_out[] = {2};
PROGRAM(nothing, DIMS(0, 3));

/* Another group that also reduces register src over axes (bits), and gives n_outs of its results. */
#define REDUCING(name, of, dims, n_outs, src_, kind_, axes_, wide_)                                                    \
    static const stk_fused name = {.shape = dims,                                                                      \
                                   .n_in = N_OF(of##_in),                                                              \
                                   .n_instr = N_OF(of##_do),                                                           \
                                   .n_out = n_outs,                                                                    \
                                   .input = of##_in,                                                                   \
                                   .instr = of##_do,                                                                   \
                                   .out = of##_out,                                                                    \
                                   .reduce = {.axes = axes_, .src = src_, .kind = STK_REDUCE_##kind_, .wide = wide_}}
REDUCING(affine_columns, affine, DIMS(5, 67), 1, 5, SUM, 1, false); /* the gradient of a bias */
REDUCING(affine_rows, affine, DIMS(5, 67), 0, 4, MEAN, 2, false);
REDUCING(affine_all, affine, DIMS(5, 67), 1, 4, SUM, 3, false); /* of a value that stays inside */
REDUCING(affine_least, affine, DIMS(5, 67), 0, 4, MIN, 1, false);
REDUCING(affine_most, affine, DIMS(5, 67), 0, 4, MAX, 2, false);
REDUCING(two_rows, two, DIMS(3, 5, 7), 2, 5, SUM, 6, false);
REDUCING(two_columns, two, DIMS(3, 5, 7), 1, 8, MEAN, 3, false);
REDUCING(mixed_all, mixed, DIMS(1031), 2, 5, SUM, 1, false); /* of bf16, in bf16 and in f32 */
REDUCING(mixed_wide, mixed, DIMS(1031), 0, 5, MEAN, 1, true);
REDUCING(dropped_columns, dropped, DIMS(7, 3, 5), 1, 5, SUM, 1, false);
REDUCING(sum_of_nothing, nothing, DIMS(0, 3), 0, 2, SUM, 1, false);
REDUCING(mean_of_nothing, nothing, DIMS(0, 3), 0, 2, MEAN, 3, false);
REDUCING(most_of_nothing, nothing, DIMS(0, 3), 1, 2, MAX, 1, false);
REDUCING(rows_of_nothing, nothing, DIMS(0, 3), 0, 2, SUM, 2, false);
/* x * y with y by column: rows and columns beyond one piece of what a thread takes, and not a multiple of it. */
static const stk_fused_input long_in[] = {{STK_F32, {4507, 1}}, {STK_F32, {0, 1}}};
static const stk_fused_input tall_in[] = {{STK_F32, {37, 1}}, {STK_F32, {0, 1}}};
#define long_do  nothing_do
#define long_out nothing_out
#define tall_do  nothing_do
#define tall_out nothing_out
REDUCING(long_rows, long, DIMS(9, 4507), 1, 2, SUM, 2, false);
REDUCING(long_columns, long, DIMS(9, 4507), 0, 2, SUM, 1, false);
REDUCING(long_all, long, DIMS(9, 4507), 0, 2, SUM, 3, false);
REDUCING(tall_rows, tall, DIMS(2003, 37), 0, 2, MAX, 2, false);
REDUCING(tall_columns, tall, DIMS(2003, 37), 1, 2, SUM, 1, false);

#define AFFINE(fill)               TYPED(STK_F32, fill, -1, 1, 5, 67), F32(-1, 1, 67), F32(-1, 1, 67)
#define FUSED(name, program_, ...) CASE(name, fused, ATTRS(.fused = {&program_}), INPUTS(__VA_ARGS__), .loosen = 4)
#define F32(a, b, ...)             TYPED(STK_F32, FILL_UNIFORM, a, b, __VA_ARGS__)

static const op_case cases[] = {
    FUSED("relu(x * scale + bias)", affine, F32(-1, 1, 5, 67), F32(-1, 1, 67), F32(-1, 1, 67)),
    FUSED("two results", two, F32(-1, 1, 3, 5, 7), F32(0, 1, 3, 5, 1)),
    FUSED("bf16 and f32", mixed, TYPED(STK_BF16, FILL_UNIFORM, -1, 1, 1031), SCALAR(FIXED(STK_F32), 1.7)),
    FUSED("u8 images", image, TYPED(STK_U8, FILL_LABELS, 0, 256, 2, 5, 7, 3), F32(0, 255, 3)),
    FUSED("dropout inside", dropped, F32(-1, 1, 7, 3, 5), SCALAR_I64(99), SCALAR_I64(41)),
    FUSED("dropout of bf16, and a sum", block, TYPED(STK_BF16, FILL_UNIFORM, -1, 1, 5, 3, 111), SCALAR_I64(99),
          SCALAR_I64(41), TYPED(STK_BF16, FILL_UNIFORM, -1, 1, 5, 3, 111)),
    FUSED("16 bytes of neighbours", packed, TYPED(STK_BF16, FILL_UNIFORM, -2, 2, 5, 3, 24),
          TYPED(STK_BF16, FILL_UNIFORM, -1, 1, 24), F32(-1, 1, 5, 3, 1), SCALAR_I64(99), SCALAR_I64(41),
          TYPED(STK_U8, FILL_LABELS, 0, 256, 5, 3, 24)),
    FUSED("bool results", mask, TYPED(STK_F32, FILL_SPECIAL, -1, 1, 301), TYPED(STK_F32, FILL_SPECIAL, -1, 1, 301)),
    FUSED("scalars", scalar, SCALAR(FIXED(STK_F32), 1.5), SCALAR(FIXED(STK_F32), -2.25)),
    FUSED("nothing", nothing, F32(-1, 1, 0, 3), F32(-1, 1, 3)),
    FUSED("and sums of columns", affine_columns, AFFINE(FILL_UNIFORM)),
    FUSED("means of rows", affine_rows, AFFINE(FILL_UNIFORM)),
    FUSED("and the sum of all", affine_all, AFFINE(FILL_UNIFORM)),
    FUSED("sums of columns, special", affine_columns, AFFINE(FILL_RARE)),
    FUSED("means of rows, special", affine_rows, AFFINE(FILL_SPECIAL)),
    FUSED("the sum of all, special", affine_all, AFFINE(FILL_SPECIAL)),
    FUSED("minima of columns, special", affine_least, AFFINE(FILL_RARE)),
    FUSED("maxima of rows, special", affine_most, AFFINE(FILL_RARE)),
    FUSED("two results and sums of rows", two_rows, F32(-1, 1, 3, 5, 7), F32(0, 1, 3, 5, 1)),
    FUSED("a result and means of columns", two_columns, F32(-1, 1, 3, 5, 7), F32(0, 1, 3, 5, 1)),
    FUSED("bf16 and its sum", mixed_all, TYPED(STK_BF16, FILL_UNIFORM, -1, 1, 1031), SCALAR(FIXED(STK_F32), 1.7)),
    FUSED("a mean of bf16 in f32", mixed_wide, TYPED(STK_BF16, FILL_UNIFORM, 0, 1, 1031), SCALAR(FIXED(STK_F32), 1.7)),
    FUSED("dropout and sums of columns", dropped_columns, F32(-1, 1, 7, 3, 5), SCALAR_I64(99), SCALAR_I64(41)),
    FUSED("the sum of nothing", sum_of_nothing, F32(-1, 1, 0, 3), F32(-1, 1, 3)),
    FUSED("the mean of nothing", mean_of_nothing, F32(-1, 1, 0, 3), F32(-1, 1, 3)),
    FUSED("the maximum of nothing", most_of_nothing, F32(-1, 1, 0, 3), F32(-1, 1, 3)),
    FUSED("no rows", rows_of_nothing, F32(-1, 1, 0, 3), F32(-1, 1, 3)),
    FUSED("long rows", long_rows, F32(-1, 1, 9, 4507), F32(-1, 1, 4507)),
    FUSED("many columns", long_columns, F32(-1, 1, 9, 4507), F32(-1, 1, 4507)),
    FUSED("all of long rows", long_all, F32(-1, 1, 9, 4507), F32(-1, 1, 4507)),
    FUSED("many rows", tall_rows, F32(-1, 1, 2003, 37), F32(-1, 1, 37)),
    FUSED("long columns", tall_columns, F32(-1, 1, 2003, 37), F32(-1, 1, 37)),
};

const case_list harness_cases_fused = LIST_OF(cases);
