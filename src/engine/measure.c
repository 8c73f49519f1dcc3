/* How fast a device multiplies matrices and reads and writes its memory, best of a few runs. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/breakdown.h"

/* The shortest of some runs of a program whose only input is x, in seconds. */
static stk_status time_graph(stk_engine *engine, stk_graph *graph, const void *x, double *out_s)
{
    enum { N_RUNS = 5 };
    stk_program *program;
    *out_s = 1e30;
    STK_RETURN_IF_ERROR(stk_engine_compile(engine, graph, NULL, &program));
    stk_program_bind(program, stk_program_input(program, "x"), x);
    for (int i = 0; i < N_RUNS; i++) {
        int64_t start = stk_clock_ns();
        STK_RETURN_IF_ERROR(stk_program_run(program));
        STK_RETURN_IF_ERROR(stk_engine_finish(engine));
        double s = (double)(stk_clock_ns() - start) * 1e-9;
        if (s < *out_s) *out_s = s;
    }
    return STK_OK;
}

stk_status stk_measure_speed(const char *device, const stk_device_config *config, stk_dtype dtype,
                             stk_device_speed *out)
{
    enum { SIDE = 1024, N = 1 << 23 }; /* 2 GFLOP; 32 MiB read and as much written */
    stk_engine *engine = NULL;
    stk_status status = STK_OK;
    double matmul_s, add_s;
    stk_graph *product = NULL, *sum = NULL;
    float *x = calloc(N, sizeof(*x));
    uint16_t *half = calloc(SIDE * SIDE, sizeof(*half));
    if (!x || !half) STK_TRY(stk_fail_memory(N * sizeof(*x)));
    for (int i = 0; i < N; i++)
        x[i] = 1;
    for (int i = 0; i < SIDE * SIDE; i++)
        half[i] = 0x3f80; /* 1 */
    product = stk_graph_new(), sum = stk_graph_new();
    stk_value a = stk_graph_input(product, "x", dtype, STK_SHAPE(SIDE, SIDE));
    stk_graph_output(product, "y", stk_matmul(a, a, false, false));
    stk_graph_output(sum, "y", stk_shift_by(stk_graph_input(sum, "x", STK_F32, STK_SHAPE(N)), 1));
    STK_TRY(stk_engine_open(device, config, 0, &engine));
    status = time_graph(engine, product, dtype == STK_BF16 ? (const void *)half : x, &matmul_s);
    product = NULL;
    STK_TRY(status);
    status = time_graph(engine, sum, x, &add_s);
    sum = NULL;
    STK_TRY(status);
    *out = (stk_device_speed){.flops_per_s = 2.0 * SIDE * SIDE * SIDE / matmul_s, .bytes_per_s = 2.0 * N * 4 / add_s};
done:
    stk_graph_free(product);
    stk_graph_free(sum);
    stk_engine_close(engine);
    free(half);
    free(x);
    return status;
}
