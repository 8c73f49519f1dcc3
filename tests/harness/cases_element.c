/* Cases of the element-wise ops, of dropout and of the constants' kernels. */
#include "harness/harness.h"

#define INTEGERS   (1u << STK_I64 | 1u << STK_I32 | 1u << STK_I8)
#define ALL_DTYPES ((1u << STK_N_DTYPES) - 1u)

#define KIND(value) ATTRS(.element = {.kind = value})
/* Over a range where the function is smooth. */
#define UNARY(kind, input) CASE(#kind, unary, KIND(STK_UNARY_##kind), INPUTS(input), .loosen = 2)
#define UNARY_SPECIAL(kind)                                                                                            \
    CASE(#kind " special", unary, KIND(STK_UNARY_##kind), INPUTS(ROUGH(FILL_SPECIAL, -9, 9, 5, 67)), .loosen = 2)
#define UNARY_INTEGER(kind)                                                                                            \
    CASE(#kind " integers", unary, KIND(STK_UNARY_##kind), INPUTS(ROUGH(FILL_STEPS, -11, 11, 41)), .mains = INTEGERS)
#define BINARY(kind, name, a, b) CASE(#kind name, binary, KIND(STK_BINARY_##kind), INPUTS(a, b), .loosen = 2)
#define BINARY_SPECIAL(kind)     BINARY(kind, " special", ROUGH(FILL_SPECIAL, -1, 1, 300), ROUGH(FILL_SPECIAL, -1, 1, 300))
#define BINARY_INTEGER(kind)                                                                                           \
    CASE(#kind " integers", binary, KIND(STK_BINARY_##kind),                                                           \
         INPUTS(ROUGH(FILL_STEPS, 0, 9, 3, 21), ROUGH(FILL_STEPS, 0, 9, 3, 21)), .mains = INTEGERS | 1u << STK_U8)
#define COMPARE(kind)                                                                                                  \
    CASE(#kind, compare, KIND(STK_COMPARE_##kind),                                                                     \
         INPUTS(ROUGH(FILL_STEPS, 0, 3, 7, 19), ROUGH(FILL_STEPS, 0, 3, 7, 19)), .mains = ALL_DTYPES)
#define COMPARE_SPECIAL(kind)                                                                                          \
    CASE(#kind " special", compare, KIND(STK_COMPARE_##kind),                                                          \
         INPUTS(ROUGH(FILL_SPECIAL, -1, 1, 133), ROUGH(FILL_SPECIAL, -1, 1, 133)))
#define CAST(name, to, input) CASE(name, cast, ATTRS(.dtype = to), INPUTS(input))
#define DROPOUT(name, rate_, stream_, seed, sample, input)                                                             \
    CASE(name, dropout, ATTRS(.dropout = {.rate = rate_, .stream = stream_}),                                          \
         INPUTS(input, SCALAR_I64(seed), SCALAR_I64(sample)))

static const op_case cases[] = {
    CASE("", constant, ATTRS(.shape = DIMS(3, 7), .constant = {2.5}), INPUTS()),
    CASE("bf16", constant, ATTRS(.dtype = STK_BF16, .shape = DIMS(129), .constant = {1.01}), INPUTS()),
    CASE("i64 scalar", constant, ATTRS(.dtype = STK_I64, .constant = {-3}), INPUTS()),

    UNARY(neg, REAL(-2, 2, 3, 17)),
    UNARY(abs, DISTINCT(-2, 2, 3, 17)),
    UNARY(exp, REAL(-5, 5, 2, 3, 17)),
    UNARY(log, REAL(0.1, 9, 129)),
    UNARY(sqrt, REAL(0.1, 9, 5, 5)),
    UNARY(rsqrt, REAL(0.1, 9, 5, 5)),
    UNARY(reciprocal, REAL(0.3, 4, 33)),
    UNARY(square, REAL(-3, 3, 1)),
    UNARY(tanh, REAL(-4, 4, 65)),
    UNARY(sigmoid, REAL(-8, 8, 65)),
    UNARY(relu, DISTINCT(-2, 2, 7, 9)),
    UNARY(sign, DISTINCT(-2, 2, 31)),
    UNARY(erf, REAL(-3, 3, 61)),
    UNARY(log1p, REAL(-0.9, 9, 129)),
    UNARY(expm1, REAL(-5, 5, 129)),
    UNARY(sin, REAL(-7, 7, 63)),
    UNARY(cos, REAL(-7, 7, 63)),
    UNARY(floor, DISTINCT(-3.01, 3.02, 63)),
    UNARY(ceil, DISTINCT(-3.01, 3.02, 63)),
    UNARY(round, DISTINCT(-3.01, 3.02, 63)),
    CASE("exp of nothing", unary, KIND(STK_UNARY_exp), INPUTS(REAL(-1, 1, 0, 5))),
    CASE("tanh of a scalar", unary, KIND(STK_UNARY_tanh), INPUTS(REAL_SCALAR(0.3))),
    CASE("exp overflows", unary, KIND(STK_UNARY_exp), INPUTS(ROUGH(FILL_UNIFORM, -120, 120, 300)), .loosen = 30),
    UNARY_SPECIAL(neg),
    UNARY_SPECIAL(abs),
    UNARY_SPECIAL(exp),
    UNARY_SPECIAL(log),
    UNARY_SPECIAL(sqrt),
    UNARY_SPECIAL(rsqrt),
    UNARY_SPECIAL(reciprocal),
    UNARY_SPECIAL(square),
    UNARY_SPECIAL(tanh),
    UNARY_SPECIAL(sigmoid),
    UNARY_SPECIAL(relu),
    UNARY_SPECIAL(sign),
    UNARY_SPECIAL(erf),
    UNARY_SPECIAL(log1p),
    UNARY_SPECIAL(expm1),
    UNARY_SPECIAL(sin),
    UNARY_SPECIAL(cos),
    UNARY_SPECIAL(floor),
    UNARY_SPECIAL(ceil),
    UNARY_SPECIAL(round),
    UNARY_INTEGER(neg),
    UNARY_INTEGER(abs),
    UNARY_INTEGER(square),
    UNARY_INTEGER(sign),
    UNARY_INTEGER(relu),

    BINARY(add, "", REAL(-1, 1, 3, 17), REAL(-1, 1, 3, 17)),
    BINARY(sub, "", REAL(-1, 1, 129), REAL(-1, 1, 129)),
    BINARY(mul, "", REAL(-1, 1, 2, 2, 2, 9), REAL(-1, 1, 2, 2, 2, 9)),
    BINARY(div, "", REAL(-1, 1, 67), REAL(0.5, 2, 67)),
    BINARY(max, "", DISTINCT(-1, 1, 67), DISTINCT(-1.003, 1.004, 67)),
    BINARY(min, "", DISTINCT(-1, 1, 67), DISTINCT(-1.003, 1.004, 67)),
    BINARY(pow, "", REAL(0.2, 3, 67), REAL(-2, 2, 67)),
    BINARY(pow, " of negatives", ROUGH(FILL_UNIFORM, -3, 3, 67), ROUGH(FILL_STEPS, -3, 4, 67)),
    BINARY(add, " of nothing", REAL(-1, 1, 0), REAL(-1, 1, 0)),
    BINARY(max, " ties", ROUGH(FILL_STEPS, 0, 3, 67), ROUGH(FILL_STEPS, 0, 3, 67)),
    BINARY_SPECIAL(add),
    BINARY_SPECIAL(mul),
    BINARY_SPECIAL(div),
    BINARY_SPECIAL(max),
    BINARY_SPECIAL(min),
    BINARY_INTEGER(add),
    BINARY_INTEGER(sub),
    BINARY_INTEGER(mul),
    BINARY_INTEGER(max),
    BINARY_INTEGER(min),

    COMPARE(equal),
    COMPARE_SPECIAL(equal),
    COMPARE(not_equal),
    COMPARE_SPECIAL(not_equal),
    COMPARE(less),
    COMPARE_SPECIAL(less),
    COMPARE(less_equal),
    COMPARE_SPECIAL(less_equal),
    COMPARE(greater),
    COMPARE_SPECIAL(greater),
    COMPARE(greater_equal),
    COMPARE_SPECIAL(greater_equal),

    CASE("of nothing", compare, KIND(STK_COMPARE_less), INPUTS(REAL(-1, 1, 0, 5), REAL(-1, 1, 0, 5))),
    CASE("of nothing", select, ATTRS(0),
         INPUTS(TYPED(STK_BOOL, FILL_BOOL, 0, 1, 4, 0), REAL(-1, 1, 4, 0), REAL(-1, 1, 4, 0))),
    /* A dimension beyond 32 bits next to an empty one. */
    CASE("exp of huge nothing", unary, KIND(STK_UNARY_exp), INPUTS(REAL(-1, 1, HUGE, 0))),
    BINARY(mul, " of huge nothing", REAL(-1, 1, 0, HUGE), REAL(-1, 1, 0, HUGE)),
    CASE("", select, ATTRS(0), INPUTS(TYPED(STK_BOOL, FILL_BOOL, 0, 1, 5, 13), REAL(-1, 1, 5, 13), REAL(-1, 1, 5, 13))),
    CASE("keeps NaN out", select, ATTRS(0),
         INPUTS(TYPED(STK_BOOL, FILL_BOOL, 0, 1, 65), ROUGH(FILL_SPECIAL, -1, 1, 65), ROUGH(FILL_UNIFORM, -1, 1, 65))),
    CASE("any dtype", select, ATTRS(0),
         INPUTS(TYPED(STK_BOOL, FILL_BOOL, 0, 1, 33), ROUGH(FILL_STEPS, 0, 9, 33), ROUGH(FILL_STEPS, 0, 9, 33)),
         .mains = ALL_DTYPES),

    CAST("to f32", STK_F32, ROUGH(FILL_UNIFORM, -3, 3, 5, 13)),
    CAST("to f64", STK_F64, REAL(-3, 3, 5, 13)),
    CAST("to bf16", STK_BF16, ROUGH(FILL_UNIFORM, -3, 3, 129)),
    CAST("to f16", STK_F16, ROUGH(FILL_UNIFORM, -3, 3, 129)),
    CAST("to f16, out of range", STK_F16, ROUGH(FILL_UNIFORM, -1e5, 1e5, 129)),
    CAST("to f16, subnormal", STK_F16, ROUGH(FILL_UNIFORM, -1e-4, 1e-4, 129)),
    CAST("special to f32", STK_F32, ROUGH(FILL_SPECIAL, -3, 3, 129)),
    CAST("special to bf16", STK_BF16, ROUGH(FILL_SPECIAL, -3, 3, 129)),
    CAST("special to f16", STK_F16, ROUGH(FILL_SPECIAL, -3, 3, 129)),
    CAST("towards zero", STK_I32, ROUGH(FILL_UNIFORM, -9, 9, 67)),
    CAST("to i64", STK_I64, ROUGH(FILL_UNIFORM, -9, 9, 67)),
    CAST("to i8", STK_I8, ROUGH(FILL_UNIFORM, -99, 99, 67)),
    CAST("to u8", STK_U8, ROUGH(FILL_UNIFORM, 0, 255, 67)),
    CAST("to u8, held at the ends", STK_U8, ROUGH(FILL_SPECIAL, -400, 400, 67)),
    CAST("to i32, held at the ends", STK_I32, ROUGH(FILL_SPECIAL, -9, 9, 267)),
    CAST("to bool", STK_BOOL, ROUGH(FILL_SPECIAL, -1, 1, 67)),
    CAST("u8 to f32", STK_F32, TYPED(STK_U8, FILL_LABELS, 0, 256, 2, 5, 7, 3)),
    CAST("u8 to bf16", STK_BF16, TYPED(STK_U8, FILL_LABELS, 0, 256, 67)),
    CAST("bool to f32", STK_F32, TYPED(STK_BOOL, FILL_BOOL, 0, 1, 67)),
    CAST("i32 to f32", STK_F32, TYPED(STK_I32, FILL_STEPS, -5000, 5000, 67)),
    CAST("i64 to f32", STK_F32, TYPED(STK_I64, FILL_STEPS, -5000, 5000, 67)),
    CAST("i64 to f64", STK_F64, TYPED(STK_I64, FILL_STEPS, -5000, 5000, 67)),
    CAST("i64 to i32", STK_I32, TYPED(STK_I64, FILL_STEPS, -5000, 5000, 67)),
    CAST("i32 to i64", STK_I64, TYPED(STK_I32, FILL_STEPS, -5000, 5000, 67)),
    CAST("i32 to u8 wraps", STK_U8, TYPED(STK_I32, FILL_STEPS, -500, 500, 67)),
    CAST("nothing", STK_BF16, ROUGH(FILL_UNIFORM, 0, 1, 0, 3)),

    DROPOUT("half", 0.5, 3, 77, 0, REAL(-1, 1, 7, 13)),
    DROPOUT("a tenth, further on", 0.1, 1, -5, 1000000007, REAL(-1, 1, 3, 5, 2)),
    DROPOUT("rate 0", 0.0, 1, 5, 2, REAL(-1, 1, 3, 5)),
    DROPOUT("rate 1", 1.0, 1, 5, 2, REAL(-1, 1, 3, 5)),
    DROPOUT("one dimension", 0.3, 1, 5, 2, REAL(-1, 1, 37)),
    DROPOUT("no rows", 0.3, 1, 5, 2, REAL(-1, 1, 0, 4)),
    DROPOUT("special", 0.3, 1, 5, 2, ROUGH(FILL_SPECIAL, -1, 1, 7, 13)),
    DROPOUT("long rows", 0.3, 9, 1234567, 12, ROUGH(FILL_UNIFORM, -1, 1, 3, 4099)),
    DROPOUT("whole blocks of numbers", 0.3, 9, 77, 3, ROUGH(FILL_UNIFORM, -1, 1, 5, 3, 40)),
};

const case_list harness_cases_element = LIST_OF(cases);
