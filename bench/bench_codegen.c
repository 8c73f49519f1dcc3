/* What `--codegen` is worth: fused groups of the bench recipes, interpreted in blocks and as generated code
 * (src/device/cpu/codegen), on the sizes of the recipes, in turn, with the device's threads; the fastest of the rounds
 * counts. Results must be the same to the bit.
 *
 *     bench_codegen [SECONDS_A_GROUP]      (default 4)
 *
 * docs/engine.md has the table.
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

#define GELU(T)                                                                                                        \
    {                                                                                                                  \
        BINARY(add, T, 0, 1), CONSTANT(T, 0.70710678118654752), BINARY(mul, T, 2, 3), UNARY(erf, T, 4),                \
            CONSTANT(T, 1), BINARY(add, T, 5, 6), CONSTANT(T, 0.5), BINARY(mul, T, 2, 8), BINARY(mul, T, 9, 7)         \
    }
static const stk_fused_input gelu_in[] = {ALL_OF(STK_F32, 16, 128, 3072), ROW_OF(STK_F32)};
static const stk_fused_instr gelu_do[] = GELU(STK_F32);
static const int32_t gelu_out[] = {2, 10};
PROGRAM(gelu, 16, 128, 3072);

static const stk_fused_input narrow_in[] = {ALL_OF(STK_BF16, 16, 128, 3072), ROW_OF(STK_BF16)};
static const stk_fused_instr narrow_do[] = GELU(STK_BF16);
static const int32_t narrow_out[] = {2, 10};
PROGRAM(narrow, 16, 128, 3072);

/* share = (erf(x / sqrt 2) + 1) / 2, density = exp(-x^2 / 2) / sqrt(2 pi); y = x share, dx = dy (share + x density). */
#define GELU_GRAD(T)                                                                                                   \
    {                                                                                                                  \
        CONSTANT(T, 0.70710678118654752), BINARY(mul, T, 0, 2), UNARY(erf, T, 3), CONSTANT(T, 1),                      \
            BINARY(add, T, 4, 5), CONSTANT(T, 0.5), BINARY(mul, T, 6, 7), BINARY(mul, T, 0, 8), UNARY(square, T, 0),   \
            BINARY(mul, T, 10, 7), UNARY(neg, T, 11), UNARY(exp, T, 12), CONSTANT(T, 0.39894228040143268),             \
            BINARY(mul, T, 13, 14), BINARY(mul, T, 0, 15), BINARY(add, T, 8, 16), BINARY(mul, T, 1, 17)                \
    }
static const stk_fused_input grad_in[] = {ALL_OF(STK_F32, 16, 128, 3072), ALL_OF(STK_F32, 16, 128, 3072)};
static const stk_fused_instr grad_do[] = GELU_GRAD(STK_F32);
static const int32_t grad_out[] = {9, 18};
PROGRAM(grad, 16, 128, 3072);

static const stk_fused_input narrow_grad_in[] = {ALL_OF(STK_BF16, 16, 128, 3072), ALL_OF(STK_BF16, 16, 128, 3072)};
static const stk_fused_instr narrow_grad_do[] = GELU_GRAD(STK_BF16);
static const int32_t narrow_grad_out[] = {9, 18};
PROGRAM(narrow_grad, 16, 128, 3072);

static const stk_fused_input dropped_in[] = {ALL_OF(STK_F32, 16, 128, 768), ROW_OF(STK_F32),
                                             ALL_OF(STK_F32, 16, 128, 768), ONE_OF(STK_I64), ONE_OF(STK_I64)};
static const stk_fused_instr dropped_do[] = {BINARY(add, STK_F32, 0, 1), DROPOUT(5, 3, 4), BINARY(add, STK_F32, 6, 2)};
static const int32_t dropped_out[] = {7};
PROGRAM(dropped, 16, 128, 768);

static const stk_fused_input sum_in[] = {ALL_OF(STK_F32, 32, 784, 512), ALL_OF(STK_F32, 32, 784, 512)};
static const stk_fused_instr sum_do[] = {BINARY(add, STK_F32, 0, 1), UNARY(relu, STK_F32, 2)};
static const int32_t sum_out[] = {3};
PROGRAM(sum, 32, 784, 512);

static const stk_fused_input norm_in[] = {ALL_OF(STK_F32, 32, 784, 512), ROW_OF(STK_F32), ROW_OF(STK_F32),
                                          ALL_OF(STK_F32, 32, 784, 512)};
static const stk_fused_instr norm_do[] = {BINARY(mul, STK_F32, 0, 1), BINARY(add, STK_F32, 4, 2),
                                          BINARY(add, STK_F32, 5, 3), UNARY(relu, STK_F32, 6)};
static const int32_t norm_out[] = {7};
PROGRAM(norm, 32, 784, 512);

#define F32(...)  TYPED(STK_F32, FILL_UNIFORM, -3, 3, __VA_ARGS__)
#define BF16(...) TYPED(STK_BF16, FILL_UNIFORM, -3, 3, __VA_ARGS__)
typedef struct group {
    op_case called;
    const char *where;
} group;
#define GROUP(name, program_, where_, ...)                                                                             \
    {                                                                                                                  \
        CASE(name, fused, ATTRS(.fused = {&program_}), INPUTS(__VA_ARGS__)), where_                                    \
    }
static const group groups[] = {
    GROUP("bias, GELU", gelu, "bert 12x", F32(16, 128, 3072), F32(3072)),
    GROUP("bias, GELU in bf16", narrow, "bert 12x", BF16(16, 128, 3072), BF16(3072)),
    GROUP("gradient of GELU", grad, "bert 12x", F32(16, 128, 3072), F32(16, 128, 3072)),
    GROUP("gradient of GELU in bf16", narrow_grad, "bert 12x", BF16(16, 128, 3072), BF16(16, 128, 3072)),
    GROUP("bias, dropout, residual", dropped, "bert 24x", F32(16, 128, 768), F32(768), F32(16, 128, 768), SCALAR_I64(3),
          SCALAR_I64(64)),
    GROUP("residual, ReLU", sum, "resnet50 4x", F32(32, 784, 512), F32(32, 784, 512)),
    GROUP("batch norm, residual, ReLU", norm, "evaluation", F32(32, 784, 512), F32(512), F32(512), F32(32, 784, 512)),
};

/* --- running --- */

enum { INTERPRETED, GENERATED, N_WAYS };

static int64_t run_once(const case_run *run, const stk_kernel *kernel, void *const *out, void *scratch)
{
    stk_kernel_args args = {run->in, out, scratch};
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

static stk_status bench_group(const group *g, stk_device *device, stk_device *reference, double seconds)
{
    case_run run;
    buffers b = {0};
    int64_t best[N_WAYS] = {INT64_MAX, INT64_MAX};
    STK_RETURN_IF_ERROR(case_run_open(&g->called, STK_F32, reference, &run));
    stk_status status = STK_OK;
    STK_TRY(open_buffers(&run, device, &b));
    if (b.is_interpreted) {
        printf("| %s | %s | | stays interpreted | | |\n", g->called.name, g->where);
        goto done;
    }
    int64_t end_ns = stk_clock_ns() + (int64_t)(seconds * 1e9);
    for (int i = 0; i < 3 || stk_clock_ns() < end_ns; i++)
        for (int way = 0; way < N_WAYS; way++) {
            int64_t spent_ns = run_once(&run, &b.kernel[way], b.out[way], b.scratch);
            if (spent_ns < best[way]) best[way] = spent_ns;
        }
    for (int i = 0; i < run.call.n_out; i++)
        if (memcmp(b.out[INTERPRETED][i], b.out[GENERATED][i], stk_desc_bytes(run.out_desc[i])))
            STK_TRY(stk_fail(STK_MISMATCH, "'%s': output %d has other bits", g->called.name, i));
    printf("| %s | %s | %.2f | %.2f | %.2fx | %.1f |\n", g->called.name, g->where, (double)best[INTERPRETED] * 1e-6,
           (double)best[GENERATED] * 1e-6, (double)best[INTERPRETED] / (double)best[GENERATED],
           stk_op_cost(&run.call).bytes / (double)best[GENERATED]);
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
    STK_TRY(stk_device_open("cpu", &(stk_device_config){.n_threads = 0}, &device));
    STK_TRY(stk_device_open("reference", NULL, &reference));
    STK_TRY(stk_cpu_pool_new(device->n_threads, NULL, &pool));
    /* Both sides run on this pool. */
    stk_cpu_pool_enter(pool);
    printf("| group | in | interpreted, ms | generated, ms | gain | GB/s |\n|---|---|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        STK_TRY(bench_group(&groups[i], device, reference, seconds));
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
