/* The first content of variables: the same for any number of threads, and by the formula that is written down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/hash.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "graph/graph.h"

enum { N = 300001, SEED = 5 };

/* A copy of the content of a variable 'w' of N elements, made with that many threads. */
static float *make_content(int n_threads)
{
    stk_engine *engine;
    stk_program *program;
    stk_device_config config = {.n_threads = n_threads};
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(N), (stk_init){STK_INIT_NORMAL, 0.5}, true);
    stk_graph_output(graph, "y", stk_neg(w));
    if (stk_engine_open("cpu", &config, SEED, &engine) != STK_OK) fail_msg("%s", stk_error_text());
    if (stk_engine_compile(engine, graph, NULL, &program) != STK_OK) fail_msg("%s", stk_error_text());
    float *copy = malloc(N * sizeof(*copy));
    assert_non_null(copy);
    assert_int_equal(stk_engine_read_variable(engine, 0, copy), STK_OK);
    stk_engine_close(engine);
    return copy;
}

static void content_is_the_same_for_any_threads(void **state)
{
    (void)state;
    float *one = make_content(1), *three = make_content(3);
    assert_memory_equal(one, three, N * sizeof(*one));
    for (int64_t i = 0; i < N; i += i < 8 ? 1 : 59999) {
        stk_u32x4 r = stk_philox(stk_mix64(SEED ^ stk_hash_text("w")), 0, (uint64_t)i / 2);
        double u = ((double)r.v[i % 2 * 2] + 1) * 0x1p-32, v = (double)r.v[i % 2 * 2 + 1] * 0x1p-32;
        float want = (float)(0.5 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
        assert_true(one[i] == want);
    }
    free(one);
    free(three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(content_is_the_same_for_any_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
