/* Values without elements in whole programs: they have an address, which may be another value's, and no kernel may take
 * them for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "engine/engine.h"

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* What is put around nothing is there. */
static void pad_of_an_empty_value(const char *device)
{
    static const int64_t low[STK_MAX_RANK] = {1, 1}, high[STK_MAX_RANK] = {0, 2};
    static const float nothing;
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.no_fuse = false};
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, (stk_shape){2, {2, 0}});
    stk_graph_output(graph, "y", stk_pad(stk_exp(stk_add(x, x)), low, high, 1.5));
    expect_ok(stk_engine_open(device, NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, graph, &options, &program));
    stk_program_bind(program, stk_program_input(program, "x"), &nothing);
    for (int i_run = 0; i_run < 2; i_run++) {
        expect_ok(stk_program_run(program));
        const float *y = stk_program_output(program, "y", NULL);
        for (int i = 0; i < 9; i++)
            assert_true(y[i] == 1.5f);
    }
    stk_engine_close(engine);
}

static void padding_around_nothing_is_there(void **state)
{
    (void)state;
    pad_of_an_empty_value("reference");
    pad_of_an_empty_value("cpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(padding_around_nothing_is_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
