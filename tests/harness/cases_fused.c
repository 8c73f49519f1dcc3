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
    FUSED("bool results", mask, TYPED(STK_F32, FILL_SPECIAL, -1, 1, 301), TYPED(STK_F32, FILL_SPECIAL, -1, 1, 301)),
    FUSED("scalars", scalar, SCALAR(FIXED(STK_F32), 1.5), SCALAR(FIXED(STK_F32), -2.25)),
    FUSED("nothing", nothing, F32(-1, 1, 0, 3), F32(-1, 1, 3)),
};

const case_list harness_cases_fused = LIST_OF(cases);
