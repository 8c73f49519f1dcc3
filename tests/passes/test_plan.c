/* What a plan says of itself: every value's place and life agree with the numbers that the program gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"

static char *dumped;

static void keep(void *user, const char *pass, const char *text)
{
    (void)user;
    assert_string_equal(pass, "plan");
    assert_null(dumped);
    dumped = strdup(text);
}

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* One step of gradient descent for a product, and a reshape, which takes no memory. */
static stk_graph *make_step(void)
{
    stk_graph *graph = stk_graph_new();
    stk_init one = {STK_INIT_CONSTANT, 1};
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(32, 16), one, true);
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(8, 16));
    stk_value y = stk_reshape(stk_exp(stk_matmul(x, w, false, true)), STK_SHAPE(256));
    stk_value loss = stk_reduce_sum(y, 0);
    stk_graph_output(graph, "loss", loss);
    stk_graph_update(graph, w, stk_sub(w, stk_grad(loss, w)));
    return graph;
}

static void places_and_lives_are_told(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.dump_after = "plan", .dump = keep};
    expect_ok(stk_engine_open("reference", NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, make_step(), &options, &program));
    stk_program_info info = stk_program_get_info(program);
    assert_non_null(dumped);
    size_t most = 0;
    int n_arena = 0;
    for (char *line = strtok(dumped, "\n"); line; line = strtok(NULL, "\n")) {
        size_t from, to;
        const char *bytes = strstr(line, "bytes ");
        if (!bytes) continue;
        assert_int_equal(sscanf(bytes, "bytes %zu to %zu, alive from node", &from, &to), 2);
        assert_true(from < to && from % 64 == 0);
        if (to > most) most = to;
        n_arena++;
    }
    assert_true(n_arena >= 2);
    assert_int_equal(most, info.arena_bytes);
    free(dumped);
    dumped = NULL;
    options.dump_after = "fuse plan"; /* a name is the whole name */
    expect_ok(stk_engine_compile(engine, make_step(), &options, &program));
    assert_null(dumped);
    stk_engine_close(engine);
}

static void words_for_variables(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.dump_after = "plan", .dump = keep};
    expect_ok(stk_engine_open("reference", NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, make_step(), &options, &program));
    assert_non_null(strstr(dumped, "in variable 'w'"));       /* the update works in place */
    assert_non_null(strstr(dumped, "% above the"));           /* how far from the bound */
    assert_non_null(strstr(dumped, "alive at once at node")); /* and where that is */
    free(dumped);
    dumped = NULL;
    stk_engine_close(engine);
}

/* What cannot be made in place is copied behind the last reader of the old content. */
static void copies_are_told(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.dump_after = "plan", .dump = keep};
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "kept", STK_F32, STK_SHAPE(4), (stk_init){STK_INIT_CONSTANT, 3}, false);
    stk_value next = stk_shift_by(w, 1);
    stk_graph_update(graph, w, next);
    stk_graph_output(graph, "both", stk_add(stk_reduce_sum(next, 0), stk_reduce_sum(w, 0)));
    expect_ok(stk_engine_open("reference", NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, graph, &options, &program));
    const char *copy = strstr(dumped, "\ncopy  v");
    assert_non_null(copy);
    assert_non_null(strstr(copy, " into variable 'kept'\n"));
    free(dumped);
    dumped = NULL;
    stk_engine_close(engine);
}

typedef struct range {
    size_t from, to;
} range;

/* Every line "bytes A to B" of the dump; returns how many. */
static int find_ranges(range *out, int most)
{
    int n = 0;
    for (const char *at = dumped; n < most && (at = strstr(at, "bytes ")) != NULL; at++)
        n += sscanf(at, "bytes %zu to %zu, alive", &out[n].from, &out[n].to) == 2;
    return n;
}

static stk_program_info compile_dumped(stk_engine *engine, size_t limit)
{
    stk_program *program;
    stk_compile_options options = {.dump_after = "plan", .dump = keep, .memory_limit_bytes = limit};
    free(dumped);
    dumped = NULL;
    expect_ok(stk_engine_compile(engine, make_step(), &options, &program));
    assert_non_null(dumped);
    return stk_program_get_info(program);
}

/* On several threads, where nothing is in the way, and without needing more. */
static void small_programs_lie_apart(void **state)
{
    enum { MOST = 64 };
    (void)state;
    const char *threads = getenv("OMP_NUM_THREADS");
    if (threads && atoi(threads) == 1) skip(); /* One thread has nobody in its way. */
    stk_engine *engine;
    range r[MOST];
    expect_ok(stk_engine_open("cpu", NULL, 2, &engine));
    stk_program_info spread = compile_dumped(engine, 0);
    int n = find_ranges(r, MOST);
    assert_true(n > 2 && spread.spread_bytes > 0);
    assert_int_equal(spread.used_bytes, spread.arena_bytes);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            bool is_same = r[i].from == r[j].from && r[i].to == r[j].to; /* in place */
            assert_true(is_same || r[i].to <= r[j].from || r[j].to <= r[i].from);
        }
    size_t needed = spread.arena_bytes + 2 * spread.variable_bytes;
    stk_program_info packed = compile_dumped(engine, needed + spread.spread_bytes / 2);
    assert_int_equal(packed.spread_bytes, 0);
    assert_int_equal(packed.arena_bytes, spread.arena_bytes);
    free(dumped);
    dumped = NULL;
    stk_engine_close(engine);
}

int main(void)
{
    /* Where a processor's table takes a library for small products, that has memory of its own, beyond these limits. */
    setenv("STOKER_KERNELS", "default", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(places_and_lives_are_told),
                                       cmocka_unit_test(words_for_variables), cmocka_unit_test(copies_are_told),
                                       cmocka_unit_test(small_programs_lie_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
