/* A training step of a known network on inputs that stay the same: time of the whole step, then of each entry, with
 * GFLOP/s and GB/s. usage: bench_step mlp|cnn|resnet18 [device] [steps] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "optim/update.h"
#include "stoker/nn.h"

enum { BATCH = 128 };

static stk_graph *make_graph(const char *name)
{
    stk_model *model = stk_model_new(name);
    const int64_t hidden[] = {128}, widths[] = {32, 64, 128};
    bool is_mlp = !strcmp(name, "mlp");
    stk_value x = is_mlp ? stk_model_input(model, STK_F32, 28, 28, 1) : stk_model_input(model, STK_F32, 32, 32, 3);
    if (is_mlp)
        x = stk_mlp(x, hidden, 1, 0.2, 10);
    else if (!strcmp(name, "cnn"))
        x = stk_cnn(x, widths, 3, 10);
    else
        x = stk_resnet18(x, 10, STK_STEM_CIFAR);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    stk_graph *graph = stk_graph_clone(stk_model_graph(model), BATCH);
    stk_value loss = stk_reduce_mean((stk_value){graph, stk_model_get_loss(model).id}, 0);
    stk_graph_output(graph, "loss", loss);
    stk_optim_options options = {.optimizer = is_mlp ? stk_adam(.lr = 1e-3) : stk_sgd(.lr = 0.01, .momentum = 0.9)};
    stk_optim_build(graph, loss, &options);
    stk_model_free(model);
    return graph;
}

static float images[BATCH * 32 * 32 * 3];
static int32_t labels[BATCH];
static float lr = 0.01f;
static int64_t step, seed, sample;

static void bind_inputs(stk_program *program)
{
    stk_rng rng = stk_rng_make(1, 0, 0, 0);
    for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++)
        images[i] = stk_rng_normal(&rng);
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % 10;
    stk_program_bind(program, stk_program_input(program, "image"), images);
    stk_program_bind(program, stk_program_input(program, "label"), labels);
    stk_program_bind(program, stk_program_input(program, "lr"), &lr);
    stk_program_bind(program, stk_program_input(program, "step"), &step);
    stk_program_bind(program, stk_program_input(program, "seed"), &seed);
    stk_program_bind(program, stk_program_input(program, "sample"), &sample);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static stk_status measure(stk_program *program, int n)
{
    stk_text text = {0};
    int64_t *times = calloc((size_t)n, sizeof(*times));
    if (!times) return STK_NO_MEMORY;
    for (int i = -3; i < n; i++) {
        int64_t start = stk_clock_ns();
        stk_status status = stk_program_run(program);
        if (status != STK_OK) {
            free(times);
            return status;
        }
        if (i >= 0) times[i] = stk_clock_ns() - start;
    }
    qsort(times, (size_t)n, sizeof(*times), compare);
    stk_program_info info = stk_program_get_info(program);
    printf("step: median %.3f ms, least %.3f ms; %.0f samples/s; %.1f GFLOP/s; arena %.1f MiB\n",
           (double)times[n / 2] * 1e-6, (double)times[0] * 1e-6, BATCH / ((double)times[n / 2] * 1e-9),
           info.flops / (double)times[n / 2], (double)info.arena_bytes / 1048576);
    free(times);
    stk_program_profile(program, true);
    for (int i = 0; i < n; i++)
        if (stk_program_run(program) != STK_OK) break;
    stk_program_print_profile(program, &text);
    fputs(stk_text_get(&text), stdout);
    stk_text_free(&text);
    return STK_OK;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "mlp";
    stk_engine *engine;
    stk_program *program;
    stk_device_config config = {.n_threads = 0};
    stk_status status = stk_engine_open(argc > 2 ? argv[2] : "cpu", &config, 1, &engine);
    if (status == STK_OK) {
        status = stk_engine_compile(engine, make_graph(name), NULL, &program);
        if (status == STK_OK) {
            bind_inputs(program);
            status = measure(program, argc > 3 ? atoi(argv[3]) : !strcmp(name, "mlp") ? 500 : 10);
        }
        stk_engine_close(engine);
    }
    if (status != STK_OK) fprintf(stderr, "bench_step: %s\n", stk_error_text());
    return status != STK_OK;
}
