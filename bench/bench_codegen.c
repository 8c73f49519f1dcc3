/* What `--codegen` is worth: the fused groups that the bench recipes make (`stoker plan RECIPE --dump-graph=fuse`), on
 * their sizes, interpreted in blocks and as generated code (src/device/cpu/codegen), in turn, with the device's
 * threads; the fastest of the rounds counts. Results must be the same to the bit.
 *
 *     bench_codegen [SECONDS_A_GROUP]      (default 4)
 *
 * The last lines are sums, each group as often as a step has it: of those that get code, and of all. docs/engine.md has
 * the table.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/cpu/parallel.h"
#include "harness/harness.h"

#define UNARY(kind, type, x)                                                                                           \
    {                                                                                                                  \
        STK_OP_unary, STK_UNARY_##kind, type, type, {x, -1, -1}, 0, 0                                                  \
    }
#define BINARY(kind, type, a, b)                                                                                       \
    {                                                                                                                  \
        STK_OP_binary, STK_BINARY_##kind, type, type, {a, b, -1}, 0, 0                                                 \
    }
#define CONSTANT(type, number)                                                                                         \
    {                                                                                                                  \
        STK_OP_constant, 0, type, type, {-1, -1, -1}, number, 0                                                        \
    }
#define DROPOUT(x, seed, sample)                                                                                       \
    {                                                                                                                  \
        STK_OP_dropout, 0, STK_F32, STK_F32, {x, seed, sample}, 0.1, 7                                                 \
    }
#define ROW_OF(type) /* read by column, the same in each row */                                                        \
    {                                                                                                                  \
        type,                                                                                                          \
        {                                                                                                              \
            0, 0, 1                                                                                                    \
        }                                                                                                              \
    }
#define ONE_OF(type)                                                                                                   \
    {                                                                                                                  \
        type,                                                                                                          \
        {                                                                                                              \
            0, 0, 0                                                                                                    \
        }                                                                                                              \
    }
#define ALL_OF(type, samples, rows, columns)                                                                           \
    {                                                                                                                  \
        type,                                                                                                          \
        {                                                                                                              \
            (rows) * (columns), columns, 1                                                                             \
        }                                                                                                              \
    }
#define N_OF(array) (int32_t)(sizeof(array) / sizeof((array)[0]))
#define PROGRAM(name, samples, rows, columns)                                                                          \
    static const stk_fused name = {.shape = DIMS(samples, rows, columns),                                              \
                                   .n_in = N_OF(name##_in),                                                            \
                                   .n_instr = N_OF(name##_do),                                                         \
                                   .n_out = N_OF(name##_out),                                                          \
                                   .input = name##_in,                                                                 \
                                   .instr = name##_do,                                                                 \
                                   .out = name##_out}

/* Groups with a reduction of register src over axes (bits). */
#define REDUCING(name, samples, rows, columns, n_outs, src_, axes_)                                                    \
    static const stk_fused name = {.shape = DIMS(samples, rows, columns),                                              \
                                   .n_in = N_OF(name##_in),                                                            \
                                   .n_instr = N_OF(name##_do),                                                         \
                                   .n_out = n_outs,                                                                    \
                                   .input = name##_in,                                                                 \
                                   .instr = name##_do,                                                                 \
                                   .out = name##_out,                                                                  \
                                   .reduce = {.axes = axes_, .src = src_, .kind = STK_REDUCE_SUM}}

#define GELU(T)                                                                                                        \
    {                                                                                                                  \
        CONSTANT(T, 0.70710678118654752), BINARY(mul, T, 0, 1), UNARY(erf, T, 2), CONSTANT(T, 1),                      \
            BINARY(add, T, 3, 4), CONSTANT(T, 0.5), BINARY(mul, T, 5, 6), BINARY(mul, T, 0, 7)                         \
    }
static const stk_fused_input gelu_in[] = {ALL_OF(STK_F32, 16, 128, 3072)};
static const stk_fused_instr gelu_do[] = GELU(STK_F32);
static const int32_t gelu_out[] = {8};
PROGRAM(gelu, 16, 128, 3072);

static const stk_fused_input narrow_in[] = {ALL_OF(STK_BF16, 16, 128, 3072)};
static const stk_fused_instr narrow_do[] = GELU(STK_BF16);
static const int32_t narrow_out[] = {8};
PROGRAM(narrow, 16, 128, 3072);

/* y = x share again, and dx = dy share + x dy density, with share = (erf(x / sqrt 2) + 1) / 2. */
#define GELU_GRAD(T)                                                                                                   \
    {                                                                                                                  \
        CONSTANT(T, 0.70710678118654752), BINARY(mul, T, 0, 2), UNARY(erf, T, 3), CONSTANT(T, 1),                      \
            BINARY(add, T, 4, 5), CONSTANT(T, 0.5), BINARY(mul, T, 6, 7), BINARY(mul, T, 0, 8), BINARY(mul, T, 1, 8),  \
            BINARY(mul, T, 1, 0), BINARY(mul, T, 11, 7), UNARY(square, T, 3), UNARY(neg, T, 13), UNARY(exp, T, 14),    \
            CONSTANT(T, 1.12837916709551257), BINARY(mul, T, 12, 16), BINARY(mul, T, 17, 15), BINARY(mul, T, 18, 2),   \
            BINARY(add, T, 10, 19)                                                                                     \
    }
static const stk_fused_input grad_in[] = {ALL_OF(STK_F32, 16, 128, 3072), ALL_OF(STK_F32, 16, 128, 3072)};
static const stk_fused_instr grad_do[] = GELU_GRAD(STK_F32);
static const int32_t grad_out[] = {9, 20};
REDUCING(grad, 16, 128, 3072, 2, 20, 3);

static const stk_fused_input narrow_grad_in[] = {ALL_OF(STK_BF16, 16, 128, 3072), ALL_OF(STK_BF16, 16, 128, 3072)};
static const stk_fused_instr narrow_grad_do[] = GELU_GRAD(STK_BF16);
static const int32_t narrow_grad_out[] = {9, 20};
PROGRAM(narrow_grad, 16, 128, 3072);

static const stk_fused_input dropped_in[] = {ALL_OF(STK_F32, 16, 128, 768), ONE_OF(STK_I64), ONE_OF(STK_I64),
                                             ALL_OF(STK_F32, 16, 128, 768)};
static const stk_fused_instr dropped_do[] = {DROPOUT(0, 1, 2), BINARY(add, STK_F32, 4, 3)};
static const int32_t dropped_out[] = {5};
PROGRAM(dropped, 16, 128, 768);

/* Gradients of what a layer's queries, keys and values are made of, and the residual's. */
static const stk_fused_input four_in[] = {ALL_OF(STK_F32, 16, 128, 768), ALL_OF(STK_F32, 16, 128, 768),
                                          ALL_OF(STK_F32, 16, 128, 768), ALL_OF(STK_F32, 16, 128, 768)};
static const stk_fused_instr four_do[] = {BINARY(add, STK_F32, 0, 1), BINARY(add, STK_F32, 4, 2),
                                          BINARY(add, STK_F32, 5, 3)};
static const int32_t four_out[] = {6};
PROGRAM(four, 16, 128, 768);

/* x (tanh(x (a x^2 + b)) + 1) / 2, and its gradient. */
static const stk_fused_input curve_in[] = {ALL_OF(STK_F32, 4, 256, 3072)};
static const stk_fused_instr curve_do[] = {
    UNARY(square, STK_F32, 0),   CONSTANT(STK_F32, 0.035677408136300125),
    BINARY(mul, STK_F32, 1, 2),  CONSTANT(STK_F32, 0.79788456080286536),
    BINARY(add, STK_F32, 3, 4),  BINARY(mul, STK_F32, 0, 5),
    UNARY(tanh, STK_F32, 6),     CONSTANT(STK_F32, 1),
    BINARY(add, STK_F32, 7, 8),  CONSTANT(STK_F32, 0.5),
    BINARY(mul, STK_F32, 9, 10), BINARY(mul, STK_F32, 0, 11),
};
static const int32_t curve_out[] = {12};
PROGRAM(curve, 4, 256, 3072);

static const stk_fused_input curve_grad_in[] = {ALL_OF(STK_F32, 4, 256, 3072), ALL_OF(STK_F32, 4, 256, 3072)};
static const stk_fused_instr curve_grad_do[] = {
    UNARY(square, STK_F32, 0),    CONSTANT(STK_F32, 0.035677408136300125),
    BINARY(mul, STK_F32, 2, 3),   CONSTANT(STK_F32, 0.79788456080286536),
    BINARY(add, STK_F32, 4, 5),   BINARY(mul, STK_F32, 0, 6),
    UNARY(tanh, STK_F32, 7),      CONSTANT(STK_F32, 1),
    BINARY(add, STK_F32, 8, 9),   CONSTANT(STK_F32, 0.5),
    BINARY(mul, STK_F32, 10, 11), BINARY(mul, STK_F32, 0, 12),
    BINARY(mul, STK_F32, 1, 12), /* 14 */
    BINARY(mul, STK_F32, 1, 0),   BINARY(mul, STK_F32, 15, 11),
    UNARY(square, STK_F32, 8), /* 17 */
    UNARY(neg, STK_F32, 17),      BINARY(add, STK_F32, 18, 9),
    BINARY(mul, STK_F32, 16, 19), /* 20 */
    BINARY(mul, STK_F32, 20, 6),  BINARY(mul, STK_F32, 20, 0),
    BINARY(add, STK_F32, 14, 21), /* 23 */
    BINARY(mul, STK_F32, 22, 3),  CONSTANT(STK_F32, 2),
    BINARY(mul, STK_F32, 0, 25), /* 26 */
    BINARY(mul, STK_F32, 24, 26), BINARY(add, STK_F32, 23, 27),
};
static const int32_t curve_grad_out[] = {13, 28};
REDUCING(curve_grad, 4, 256, 3072, 2, 28, 3);

/* The gradient of a ReLU from its result. */
static const stk_fused_input relu_in[] = {ALL_OF(STK_F32, 32, 49, 2048), ALL_OF(STK_F32, 32, 49, 2048)};
static const stk_fused_instr relu_do[] = {
    CONSTANT(STK_F32, 0),
    {STK_OP_compare, STK_COMPARE_greater, STK_BOOL, STK_F32, {0, 2, -1}, 0, 0},
    {STK_OP_select, 0, STK_F32, STK_BOOL, {3, 1, 2}, 0, 0},
};
static const int32_t relu_out[] = {4};
PROGRAM(relu, 32, 49, 2048);

/* For clipping by the common norm: of the tied head's gradient. */
static const stk_fused_input squares_in[] = {ALL_OF(STK_F32, 1, 50257, 768)};
static const stk_fused_instr squares_do[] = {UNARY(square, STK_F32, 0)};
static const int32_t squares_out[] = {1};
REDUCING(squares, 1, 50257, 768, 0, 1, 7);

#define F32(...)  TYPED(STK_F32, FILL_UNIFORM, -3, 3, __VA_ARGS__)
#define BF16(...) TYPED(STK_BF16, FILL_UNIFORM, -3, 3, __VA_ARGS__)
typedef struct group {
    op_case called;
    const char *where;
    int n; /* in a step */
} group;
#define GROUP(name, program_, where_, n_, ...)                                                                         \
    {                                                                                                                  \
        CASE(name, fused, ATTRS(.fused = {&program_}), INPUTS(__VA_ARGS__)), where_, n_                                \
    }
static const group groups[] = {
    GROUP("GELU", gelu, "bert", 12, F32(16, 128, 3072)),
    GROUP("its gradient, GELU again, sums of columns", grad, "bert", 12, F32(16, 128, 3072), F32(16, 128, 3072)),
    GROUP("dropout, residual", dropped, "bert", 24, F32(16, 128, 768), SCALAR_I64(3), SCALAR_I64(64),
          F32(16, 128, 768)),
    GROUP("sum of four gradients", four, "bert", 11, F32(16, 128, 768), F32(16, 128, 768), F32(16, 128, 768),
          F32(16, 128, 768)),
    GROUP("GELU by tanh", curve, "gpt2", 12, F32(4, 256, 3072)),
    GROUP("its gradient, GELU again, sums of columns", curve_grad, "gpt2", 12, F32(4, 256, 3072), F32(4, 256, 3072)),
    GROUP("gradient of ReLU", relu, "resnet50", 1, F32(32, 49, 2048), F32(32, 49, 2048)),
    GROUP("sum of squares", squares, "shakespeare-gpt2-124m", 1, F32(1, 50257, 768)),
    GROUP("GELU in bf16", narrow, "bert", 12, BF16(16, 128, 3072)),
    GROUP("its gradient and GELU in bf16", narrow_grad, "bert", 12, BF16(16, 128, 3072), BF16(16, 128, 3072)),
};

/* --- running --- */

enum { INTERPRETED, GENERATED, N_WAYS };

static int64_t run_once(const case_run *run, const stk_kernel *kernel, void *const *out, void *scratch)
{
    stk_kernel_args args = {.in = run->in, .out = out, .scratch = scratch};
    int64_t start_ns = stk_clock_ns();
    stk_status status = kernel->run(kernel->state, &args);
    return status == STK_OK ? stk_clock_ns() - start_ns : INT64_MAX;
}

typedef struct buffers {
    void *out[N_WAYS][CASE_MOST_OUT], *scratch;
    stk_kernel kernel[N_WAYS];
    bool is_interpreted; /* code would be slower here, so that none was made */
} buffers;

static stk_status open_buffers(const case_run *run, stk_device *device, buffers *b)
{
    stk_codegen_report report;
    for (int way = 0; way < N_WAYS; way++)
        STK_RETURN_IF_ERROR(device->class->kernel(device, &run->call, &b->kernel[way]));
    b->scratch = harness_alloc(b->kernel[INTERPRETED].scratch_bytes);
    if (!b->scratch) return stk_fail_memory(b->kernel[INTERPRETED].scratch_bytes);
    STK_RETURN_IF_ERROR(device->class->codegen(device, &b->kernel[GENERATED], 1, &report));
    b->is_interpreted = report.n_interpreted > 0;
    for (int way = 0; way < N_WAYS; way++)
        for (int i = 0; i < run->call.n_out; i++) {
            size_t bytes = stk_desc_bytes(run->out_desc[i]);
            if (!(b->out[way][i] = harness_alloc(bytes))) return stk_fail_memory(bytes);
        }
    return STK_OK;
}

static void close_buffers(buffers *b)
{
    for (int way = 0; way < N_WAYS; way++) {
        for (int i = 0; i < CASE_MOST_OUT; i++)
            free(b->out[way][i]);
        stk_kernel_free(&b->kernel[way]);
    }
    free(b->scratch);
}

/* By way, in ns: what a step spends in groups that get code, and in all. */
typedef struct total {
    double generated[N_WAYS], all[N_WAYS];
} total;

static void add_group(const group *g, const int64_t *best, bool is_interpreted, total *sum)
{
    for (int way = 0; way < N_WAYS; way++) {
        double ns = (double)g->n * (double)best[is_interpreted ? INTERPRETED : way];
        sum->all[way] += ns;
        if (!is_interpreted) sum->generated[way] += ns;
    }
}

static void print_total(const char *name, const double *ns)
{
    printf("| %s | | | %.2f | %.2f | %.2fx | |\n", name, ns[INTERPRETED] * 1e-6, ns[GENERATED] * 1e-6,
           ns[INTERPRETED] / ns[GENERATED]);
}

static stk_status bench_group(const group *g, stk_device *device, stk_device *reference, double seconds, total *sum)
{
    case_run run;
    buffers b = {0};
    int64_t best[N_WAYS] = {INT64_MAX, INT64_MAX};
    STK_RETURN_IF_ERROR(case_run_open(&g->called, STK_F32, reference, &run));
    stk_status status = STK_OK;
    STK_TRY(open_buffers(&run, device, &b));
    int64_t end_ns = stk_clock_ns() + (int64_t)(seconds * 1e9);
    for (int i = 0; i < 3 || stk_clock_ns() < end_ns; i++)
        for (int way = 0; way < (b.is_interpreted ? 1 : N_WAYS); way++) {
            int64_t spent_ns = run_once(&run, &b.kernel[way], b.out[way], b.scratch);
            if (spent_ns < best[way]) best[way] = spent_ns;
        }
    add_group(g, best, b.is_interpreted, sum);
    if (b.is_interpreted) {
        printf("| %s | %s | %d | %.2f | stays interpreted | | |\n", g->called.name, g->where, g->n,
               (double)best[INTERPRETED] * 1e-6);
        goto done;
    }
    for (int i = 0; i < run.call.n_out; i++)
        if (memcmp(b.out[INTERPRETED][i], b.out[GENERATED][i], stk_desc_bytes(run.out_desc[i])))
            STK_TRY(stk_fail(STK_MISMATCH, "'%s': output %d has other bits", g->called.name, i));
    printf("| %s | %s | %d | %.2f | %.2f | %.2fx | %.1f |\n", g->called.name, g->where, g->n,
           (double)best[INTERPRETED] * 1e-6, (double)best[GENERATED] * 1e-6,
           (double)best[INTERPRETED] / (double)best[GENERATED], stk_op_cost(&run.call).bytes / (double)best[GENERATED]);
    fflush(stdout);
done:
    close_buffers(&b);
    case_run_close(&run);
    return status;
}

static stk_status bench_all(double seconds)
{
    stk_device *device = NULL, *reference = NULL;
    stk_cpu_pool *pool = NULL;
    stk_status status = STK_OK;
    total sum = {0};
    STK_TRY(stk_device_open("cpu", &(stk_device_config){.n_threads = 0}, &device));
    STK_TRY(stk_device_open("reference", NULL, &reference));
    STK_TRY(stk_cpu_pool_new(device->n_threads, NULL, &pool));
    /* Both sides run on this pool. */
    stk_cpu_pool_enter(pool);
    printf(
        "| group | in | times | interpreted, ms | generated, ms | gain | GB/s |\n|---|---|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        STK_TRY(bench_group(&groups[i], device, reference, seconds, &sum));
    print_total("those that get code, as often as a step has them", sum.generated);
    print_total("all", sum.all);
done:
    stk_cpu_pool_enter(NULL);
    stk_cpu_pool_free(pool);
    stk_device_close(device);
    stk_device_close(reference);
    return status;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 4;
    if (argc > 2 || !(seconds > 0)) {
        fprintf(stderr, "usage: bench_codegen [SECONDS_A_GROUP]\n");
        return 2;
    }
    if (bench_all(seconds) == STK_OK) return 0;
    fprintf(stderr, "bench_codegen: %s\n", stk_error_text());
    return 1;
}
