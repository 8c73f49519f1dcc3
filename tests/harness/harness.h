/* The op harness: one description of a call serves three purposes.
 *
 *   values     the call on a device against the same call on the reference device   test_op_values.c
 *   gradients  the op's gradient rule against finite differences in f64             test_op_gradients.c
 *   speed      GFLOP/s and GB/s                                                     bench/bench_ops.c
 *
 * A new op gets its cases in one of the cases_*.c files; a test fails while an op has none.
 * Threads: one at a time.
 */
#ifndef STK_TESTS_HARNESS_H
#define STK_TESTS_HARNESS_H

#include "device/device.h"
#include "graph/fused.h"

enum { CASE_MOST_IN = 12, CASE_MOST_OUT = 16 };

/* An input's dtype: the one that the case runs in, the one of its statistics, or a fixed one. */
enum { CASE_MAIN, CASE_STAT, CASE_FIXED };
#define FIXED(dtype) (CASE_FIXED + (int)(dtype))

typedef enum case_fill {
    FILL_UNIFORM,  /* in [a, b) */
    FILL_DISTINCT, /* in [a, b), no two alike and none near 0 or near each other: for maxima and kinks */
    FILL_SPECIAL,  /* uniform, with NaN, infinities and zeros between */
    /* Uniform, with a NaN or an infinity here and there: for sums, where an infinity may become a NaN, and where in
     * bf16 both may reach neighbours, since oneDNN multiplies pairs. */
    FILL_RARE,
    FILL_STEPS,  /* a few values between a and b, so that there are many ties */
    FILL_LABELS, /* integers in [0, b) */
    FILL_SHARES, /* not negative; each row adds up to 1 */
    FILL_BOOL,
    FILL_CONSTANT, /* a */
    FILL_FORWARD   /* output 0 of op `forward` of the inputs before it */
} case_fill;

typedef struct case_input {
    int dtype;
    stk_shape shape;
    case_fill fill;
    double a, b;
    bool smooth; /* its gradient is checked */
    stk_op forward;
} case_input;

typedef struct op_case {
    const char *name;
    stk_op op;
    int n_in;
    stk_attrs attrs;
    case_input in[CASE_MOST_IN];
    unsigned mains; /* bits of the dtypes to run in; 0: all floats */
    double loosen;  /* factor on the tolerance; 0: 1 */
    bool rounds;    /* 16-bit inputs: also in between, so that results in f32 may be off by that */
    bool large;     /* for speed only */
} op_case;

typedef struct case_list {
    const op_case *cases;
    int n;
} case_list;

/* All lists, and their number. */
const case_list *harness_case_lists(int *n_lists);
extern const case_list harness_cases_element, harness_cases_move, harness_cases_network, harness_cases_fused,
    harness_cases_speed, harness_cases_attention, harness_cases_rows, harness_cases_conv, harness_cases_recurrent;

/* --- words for the descriptions --- */
#define HUGE (INT64_C(1) << 40) /* a dimension beyond 32 bits */
#define ATTRS(...)                                                                                                     \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define INPUTS(...)                                                                                                    \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
/* CASE("name", op, ATTRS(...), INPUTS(...), .loosen = 2): what follows the inputs is optional. */
#define CASE(name_, op_, attrs_, inputs_, ...)                                                                         \
    {                                                                                                                  \
        .name = name_, .op = STK_OP_##op_, .n_in = (int)(sizeof((case_input[])inputs_) / sizeof(case_input)),          \
        .attrs = attrs_, .in = inputs_, __VA_ARGS__                                                                    \
    }
#define LIST_OF(array)                                                                                                 \
    {                                                                                                                  \
        array, (int)(sizeof(array) / sizeof(array[0]))                                                                 \
    }

#define DIMS(...)                                                                                                      \
    {                                                                                                                  \
        .rank = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = { __VA_ARGS__ }                  \
    }
#define INPUT(dtype_, fill_, a_, b_, smooth_, ...)                                                                     \
    {                                                                                                                  \
        .dtype = dtype_, .shape = DIMS(__VA_ARGS__), .fill = fill_, .a = a_, .b = b_, .smooth = smooth_                \
    }
#define SCALAR(dtype_, value)                                                                                          \
    {                                                                                                                  \
        .dtype = dtype_, .fill = FILL_CONSTANT, .a = value                                                             \
    }

/* What a gradient is taken of; then what none is taken of. Ranges, then dimensions. */
#define REAL(a, b, ...) INPUT(CASE_MAIN, FILL_UNIFORM, a, b, true, __VA_ARGS__)
#define REAL_SCALAR(value)                                                                                             \
    {                                                                                                                  \
        .fill = FILL_CONSTANT, .a = value, .smooth = true                                                              \
    }
#define DISTINCT(a, b, ...)          INPUT(CASE_MAIN, FILL_DISTINCT, a, b, true, __VA_ARGS__)
#define STATS(a, b, ...)             INPUT(CASE_STAT, FILL_UNIFORM, a, b, true, __VA_ARGS__)
#define ROUGH(fill, a, b, ...)       INPUT(CASE_MAIN, fill, a, b, false, __VA_ARGS__)
#define ROUGH_STATS(fill, a, b, ...) INPUT(CASE_STAT, fill, a, b, false, __VA_ARGS__)
#define TYPED(type, fill, a, b, ...) INPUT(FIXED(type), fill, a, b, false, __VA_ARGS__)
#define LABELS(n, n_classes)         TYPED(STK_I32, FILL_LABELS, 0, n_classes, n)
#define SCALAR_I64(value)            SCALAR(FIXED(STK_I64), value)
#define SCALAR_STAT(value)           SCALAR(CASE_STAT, value)
#define FORWARD_OF(name, ...)                                                                                          \
    {                                                                                                                  \
        .shape = DIMS(__VA_ARGS__), .fill = FILL_FORWARD, .forward = STK_OP_##name                                     \
    }

/* --- running a case --- */

/* A case in one dtype, with its inputs. Buffers have exactly the bytes of their descs, so that a sanitizer sees every
 * access past the end. */
typedef struct case_run {
    const op_case *source;
    stk_dtype main;
    stk_attrs attrs;
    stk_tensor_desc in_desc[CASE_MOST_IN], out_desc[CASE_MOST_OUT];
    stk_op_call call; /* points into this struct */
    void *in[CASE_MOST_IN];
} case_run;

/* Shapes and dtypes alone: the inputs stay NULL, and there is nothing to close. *out must stay where it is. */
stk_status case_run_describe(const op_case *source, stk_dtype main, case_run *out);
/* Fills *out, which must stay where it is until case_run_close. `reference` runs FILL_FORWARD's ops. */
stk_status case_run_open(const op_case *source, stk_dtype main, stk_device *reference, case_run *out);
void case_run_close(case_run *run);

/* Dtypes that the case runs in, as bits; a case without such inputs runs once, as f32. */
unsigned case_mains(const op_case *source);
/* "conv2d 'strided' bf16". Returns a static buffer. */
const char *case_text(const case_run *run);

/* 64-byte aligned memory of exactly that many bytes, filled with 0xff, which is NaN in every float dtype. */
void *harness_alloc(size_t bytes);

/* How a call finds its memory; 0 and more: output number in_place / 32 uses the memory of input in_place % 32. */
enum { CASE_APART = -1, CASE_KEPT = -2 /* the kernel's packed_input is packed, of an f32 whose cast it is */ };
/* Runs the call on a device into out[], allocated here: free each with free(). *impl (may be NULL) names the kernel.
 */
stk_status case_call(const case_run *run, stk_device *device, int in_place, void *out[CASE_MOST_OUT],
                     const char **impl);

/* Every case but large ones, in each of its dtypes, by shapes and dtypes alone. Stops at the first failure of visit. */
stk_status harness_each_call(stk_status (*visit)(void *user, const case_run *run), void *user);

/* NULL where got is near want, else a text that names the first element that is not (a static buffer). */
const char *case_compare(const case_run *run, int i_out, const void *got, const void *want);

/* Numbers for tests: repeats for equal seeds. Uniform in [0, 1). */
double harness_random(uint64_t seed, uint64_t i);
double harness_load(stk_dtype dtype, const void *data, int64_t i);
void harness_store(stk_dtype dtype, void *data, int64_t i, double x);

#endif
