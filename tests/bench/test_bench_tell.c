/* What is said of two commands: only what the 99 % interval allows, and why it is no more. */
#include "bench/tell.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check_said(stk_bench_comparison c, const char *words)
{
    char said[STK_BENCH_SENTENCE];
    stk_bench_verdict_text(&c, "a", "b", true, said);
    if (!strstr(said, words)) fail_msg("'%s' is not in: %s", words, said);
}

static void test_sentences(void **state)
{
    (void)state;
    stk_bench_comparison c = {
        .is_paired = true, .n = 20, .change = {0.02, 0.01, 0.03}, .decision = {0.02, 0.005, 0.035}};
    c.verdict = -1;
    check_said(c, "'b' is slower than 'a': it takes 2.00 % more (1.00 to 3.00 %; 95 %, 20 pairs)");
    c.verdict = 0;
    c.decision.low = -0.001;
    check_said(c, "(95 %, 20 pairs; the 99 % interval, which decides, has 0 in it)");
    c.n_further = 30;
    check_said(c, "has 0 in it; 30 more would tell a difference of this size)");
    c.is_paired = false; /* Apart, the allowance decides, too. */
    check_said(c, "(95 %, 20 runs; 30 more would tell");
    /* Six pairs have a 95 % interval and none of 99 %. */
    c = (stk_bench_comparison){.is_paired = true, .n = 6, .change = {0.5, 0.5, 0.5}, .decision = {0.5, NAN, NAN}};
    check_said(c, "no difference shown between 'a' and 'b': 6 pairs are too few to tell");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sentences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
