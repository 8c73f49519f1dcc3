/* A training step of an LSTM or GRU, for comparison with PyTorch's in turns (bench/recurrent_torch.py).
 *
 *     bench_recurrent lstm|gru UNITS STEPS [BATCH [WIDTH [THREADS [both]]]]
 *
 * Prints how long compiling took, without the plan's memory and with it, the plan, and by how much the process grew;
 * then, for each line of standard input, runs a step and prints its time. The loss is the mean square of all outputs,
 * the optimiser plain SGD. Without arguments it is a GRU of 128 units and 3,000 steps.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "passes/passes.h"
#include "stoker/graph/session.h"
#include "stoker/nn/recurrent.h"

typedef struct size {
    stk_recurrent_kind kind;
    int64_t units, steps, batch, width;
    int threads;
    bool both;
} size;

static double seconds(void)
{
    return (double)stk_clock_ns() * 1e-9;
}

/* In MiB, of /proc/self/status. */
static double read_status(const char *key)
{
    char line[256];
    double mib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, key, strlen(key))) mib = strtod(line + strlen(key) + 1, NULL) / 1024;
    if (file) fclose(file);
    return mib;
}

static stk_graph *build(const size *s)
{
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(s->batch, s->steps, s->width));
    stk_recurrent_config config = {.kind = s->kind, .units = s->units, .bidirectional = s->both};
    stk_value y = stk_recurrent(x, &config, NULL);
    stk_value loss = stk_reduce_mean(stk_mul(y, y), 0);
    stk_graph_output(graph, "loss", loss);
    stk_minimize(loss, stk_sgd(.lr = 0.1), 0, NULL);
    return graph;
}

/* Without taking the plan's memory, whose pages the kernel must clear. */
static stk_status compile_only(stk_engine *engine, const size *s, double *took)
{
    stk_compile_options options = {.plan_only = true};
    stk_program *program;
    double start = seconds();
    STK_RETURN_IF_ERROR(stk_engine_compile(engine, build(s), &options, &program));
    *took = seconds() - start;
    return STK_OK;
}

static stk_status run(const size *s)
{
    stk_status status = STK_OK;
    stk_engine *engine = NULL;
    stk_program *program;
    stk_compile_options options = {0};
    stk_device_config device = {.n_threads = s->threads};
    stk_tensor_desc desc;
    char line[16];
    size_t n = (size_t)(s->batch * s->steps * s->width);
    float *x = malloc(n * sizeof(*x) + 1), rate = 0.1f;
    if (!x) STK_TRY(stk_fail_memory(n * sizeof(*x)));
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 2654435761u >> 7) % 2001) / 1000 - 1;
    STK_TRY(stk_engine_open("cpu", &device, 0, &engine));
    double before = read_status("VmRSS:"), alone = 0;
    STK_TRY(compile_only(engine, s, &alone));
    double start = seconds();
    STK_TRY(stk_engine_compile(engine, build(s), &options, &program));
    double compiled = seconds() - start;
    stk_program_bind(program, stk_program_input(program, "x"), x);
    STK_TRY(stk_program_set(program, stk_program_input(program, "lr"), &rate));
    STK_TRY(stk_program_run(program));
    STK_TRY(stk_program_wait(program, 0));
    stk_program_info plan = stk_program_get_info(program);
    size_t planned = plan.arena_bytes + plan.variable_bytes + plan.packed_bytes + plan.program_bytes;
    printf("compiled in %.3f s, with memory %.3f s, planned %.1f MiB, process %.1f MiB more than before\n", alone,
           compiled, (double)planned / (1 << 20), read_status("VmRSS:") - before);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        start = seconds();
        STK_TRY(stk_program_run(program));
        STK_TRY(stk_program_wait(program, 0));
        double took = seconds() - start;
        printf("%.6f %.6g\n", took, (double)*(const float *)stk_program_output(program, "loss", &desc));
        fflush(stdout);
    }
done:
    stk_engine_close(engine);
    free(x);
    return status;
}

static int64_t number(int argc, char **argv, int i, int64_t otherwise)
{
    return argc > i ? strtoll(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    size s = {.kind = argc > 1 && !strcmp(argv[1], "lstm") ? STK_RECURRENT_LSTM : STK_RECURRENT_GRU,
              .units = number(argc, argv, 2, 128),
              .steps = number(argc, argv, 3, 3000),
              .batch = number(argc, argv, 4, 16),
              .width = number(argc, argv, 5, 32),
              .threads = (int)number(argc, argv, 6, 0),
              .both = argc > 7 && !strcmp(argv[7], "both")};
    if (run(&s) == STK_OK) return 0;
    fprintf(stderr, "bench_recurrent: %s\n", stk_error_text());
    return 1;
}
