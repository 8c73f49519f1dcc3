/* What must not grow with the square of anything, in the plan on the cpu device: attention in the length of its
 * sequences, the loss over a vocabulary in rows times classes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "graph/graph.h"

/* The arena that a graph would take; the graph is used up. */
static double plan_bytes(stk_graph *graph)
{
    stk_engine *engine;
    stk_program *program;
    stk_device_config config = {.n_threads = 2};
    if (stk_engine_open("cpu", &config, 1, &engine) != STK_OK) fail_msg("%s", stk_error_text());
    stk_compile_options options = {.plan_only = true};
    if (stk_engine_compile(engine, graph, &options, &program) != STK_OK) fail_msg("%s", stk_error_text());
    double bytes = (double)stk_program_get_info(program).arena_bytes;
    stk_engine_close(engine);
    return bytes;
}

/* Attention of t positions with dropout, forward and backward. */
static double attention_bytes(int64_t t, bool causal)
{
    stk_graph *graph = stk_graph_new();
    const char *const name[] = {"q", "k", "v"};
    stk_value in[3], none = {graph, -1};
    for (int i = 0; i < 3; i++)
        in[i] = stk_graph_input(graph, name[i], STK_F32, STK_SHAPE(2, t, 3, 64));
    stk_value seed = stk_graph_input(graph, "seed", STK_I64, (stk_shape){.rank = 0});
    stk_value sample = stk_graph_input(graph, "sample", STK_I64, (stk_shape){.rank = 0});
    stk_attention options = {.causal = causal, .dropout = 0.1};
    stk_value y = stk_attention_raw(in[0], in[1], in[2], none, seed, sample, options);
    stk_value loss = stk_reduce_sum(stk_square(y), 0);
    const char *const gradient[] = {"dq", "dk", "dv"};
    for (int i = 0; i < 3; i++)
        stk_graph_output(graph, gradient[i], stk_grad(loss, in[i]));
    return plan_bytes(graph);
}

static void attention_grows_with_the_length(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        double small = attention_bytes(512, causal), large = attention_bytes(4096, causal);
        print_message("attention%s: %.1f MiB at 512, %.1f MiB at 4,096\n", causal ? ", causal" : "", small / (1 << 20),
                      large / (1 << 20));
        /* 8 times the length; one head's weights alone would be 64 MiB. */
        assert_true(large < 8.2 * small);
    }
}

static void logits_are_never_whole(void **state)
{
    (void)state;
    const int64_t m = 8192, v = 16384, d = 32;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(m, d));
    stk_value weight = stk_graph_input(graph, "weight", STK_F32, STK_SHAPE(v, d));
    stk_value labels = stk_graph_input(graph, "labels", STK_I32, STK_SHAPE(m));
    stk_value loss = stk_linear_cross_entropy_raw(x, weight, labels, stk_linear_cross_entropy_default());
    loss = stk_reduce_mean(loss, 0);
    stk_graph_output(graph, "loss", loss);
    stk_graph_output(graph, "dx", stk_grad(loss, x));
    stk_graph_output(graph, "dweight", stk_grad(loss, weight));
    double bytes = plan_bytes(graph), logits = 4.0 * (double)m * (double)v;
    print_message("loss over a vocabulary: %.1f MiB, its logits would be %.1f MiB\n", bytes / (1 << 20),
                  logits / (1 << 20));
    assert_true(bytes < 0.1 * logits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_grows_with_the_length),
        cmocka_unit_test(logits_are_never_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
