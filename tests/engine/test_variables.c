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
static float *make_content(stk_init_kind kind, int n_threads)
{
    stk_engine *engine;
    stk_program *program;
    stk_device_config config = {.n_threads = n_threads};
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(N), (stk_init){kind, 0.5}, true);
    stk_graph_output(graph, "y", stk_neg(w));
    if (stk_engine_open("cpu", &config, SEED, &engine) != STK_OK) fail_msg("%s", stk_error_text());
    if (stk_engine_compile(engine, graph, NULL, &program) != STK_OK) fail_msg("%s", stk_error_text());
    float *copy = malloc(N * sizeof(*copy));
    assert_non_null(copy);
    assert_int_equal(stk_engine_read_variable(engine, 0, copy), STK_OK);
    stk_engine_close(engine);
    return copy;
}

/* The formula of engine/draw.h in double. */
static double expected(stk_init_kind kind, int64_t i)
{
    stk_u32x4 r = stk_philox(stk_mix64(SEED ^ stk_hash_text("w")), 0, (uint64_t)i / 4);
    if (kind == STK_INIT_UNIFORM) return 0.5 * ((double)(r.v[i % 4] >> 8) * 0x1p-23 - 1);
    int64_t pair = i % 4 / 2 * 2;
    double size = sqrt(-2 * log(1 - (double)(r.v[pair] >> 8) * 0x1p-24));
    /* The upper two bits are a quarter turn each; the lower ones stand for an angle around it. */
    double angle =
        1.5707963267948966 * ((double)(r.v[pair + 1] >> 30) + ((double)(r.v[pair + 1] << 2) - 0x1p31) * 0x1p-32);
    return 0.5 * size * (i % 2 ? sin(angle) : cos(angle));
}

static void check(stk_init_kind kind)
{
    float *one = make_content(kind, 1), *three = make_content(kind, 3);
    assert_memory_equal(one, three, N * sizeof(*one));
    for (int64_t i = 0; i < N; i++)
        if (!(fabs((double)one[i] - expected(kind, i)) < 3e-7)) fail_msg("element %lld is %g", (long long)i, one[i]);
    free(three);
    free(one);
}

static void content_is_the_same_for_any_threads(void **state)
{
    (void)state;
    check(STK_INIT_UNIFORM);
    check(STK_INIT_NORMAL);
}

static void content_is_the_same_on_any_processor(void **state)
{
    (void)state;
    setenv("STOKER_ISA", "baseline", 1);
    float *plain = make_content(STK_INIT_NORMAL, 1);
    unsetenv("STOKER_ISA");
    float *best = make_content(STK_INIT_NORMAL, 1);
    assert_memory_equal(plain, best, N * sizeof(*plain));
    free(best);
    free(plain);
}

static void normal_content_is_normal(void **state)
{
    (void)state;
    float *x = make_content(STK_INIT_NORMAL, 1);
    double sum[5] = {0};
    for (int64_t i = 0; i < N; i++)
        for (int k = 1; k <= 4; k++)
            sum[k] += pow(2 * (double)x[i], k) / N;
    /* Four standard errors of each moment. */
    assert_true(fabs(sum[1]) < 4 * sqrt(1.0 / N) && fabs(sum[2] - 1) < 4 * sqrt(2.0 / N));
    assert_true(fabs(sum[3]) < 4 * sqrt(15.0 / N) && fabs(sum[4] - 3) < 4 * sqrt(96.0 / N));
    free(x);
}

/* Filters 0 to C-1 of a weight [O,3,4,C] are channels 0 to C-1; the others are as without it. */
static void identity_lets_channels_through(void **state)
{
    enum { O = 7, C = 3, FILTER = 3 * 4 * C };
    float x[2][O * FILTER];
    (void)state;
    for (int k = 0; k < 2; k++) {
        stk_engine *engine;
        stk_program *program;
        stk_init init = {k ? STK_INIT_IDENTITY : STK_INIT_UNIFORM, 0.5};
        stk_graph *graph = stk_graph_new();
        stk_graph_output(graph, "y",
                         stk_neg(stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(O, 3, 4, C), init, true)));
        assert_int_equal(stk_engine_open("cpu", NULL, SEED, &engine), STK_OK);
        if (stk_engine_compile(engine, graph, NULL, &program) != STK_OK) fail_msg("%s", stk_error_text());
        assert_int_equal(stk_engine_read_variable(engine, 0, x[k]), STK_OK);
        stk_engine_close(engine);
    }
    for (int i = 0; i < O * FILTER; i++) {
        int filter = i / FILTER, place = i % FILTER;
        float want = filter >= C ? x[0][i] : place == (1 * 4 + 2) * C + filter ? 1.0f : 0.0f;
        assert_true(x[1][i] == want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_is_the_same_for_any_threads), cmocka_unit_test(content_is_the_same_on_any_processor),
        cmocka_unit_test(normal_content_is_normal), cmocka_unit_test(identity_lets_channels_through)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
