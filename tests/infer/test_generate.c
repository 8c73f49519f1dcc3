/* Generation: with the cache as without it, across a full context, and the draws of tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "infer/sample.h"

enum { VOCABULARY = 61, POSITIONS = 40 };

static stk_generator *open_generator(const char *device, bool no_cache)
{
    stk_transformer_config config = {
        .layers = 3, .heads = 3, .width = 24, .vocabulary = VOCABULARY, .positions = POSITIONS, .dropout = 0.5};
    stk_generator_options options = {.device = device, .n_threads = 2, .no_cache = no_cache};
    stk_generator *g;
    if (stk_generator_new(&config, 5, &options, &g) != STK_OK) fail_msg("%s", stk_error_text());
    return g;
}

static void feed(stk_generator *g, const int32_t *tokens, int64_t n)
{
    if (stk_generator_feed(g, tokens, n) != STK_OK) fail_msg("%s", stk_error_text());
}

static int32_t likeliest(stk_generator *g)
{
    stk_sampling sampling = {.temperature = 0, .top_p = 1};
    int32_t token;
    if (stk_generator_sample(g, &sampling, &token) != STK_OK) fail_msg("%s", stk_error_text());
    return token;
}

static void compare(stk_generator *a, stk_generator *b)
{
    const float *x = stk_generator_logits(a), *y = stk_generator_logits(b);
    for (int i = 0; i < VOCABULARY; i++)
        if (!(fabsf(x[i] - y[i]) < 1e-5f)) fail_msg("logit %d is %g and %g", i, (double)x[i], (double)y[i]);
    assert_int_equal(likeliest(a), likeliest(b));
    assert_int_equal(stk_generator_n_tokens(a), stk_generator_n_tokens(b));
}

/* Prompts of many lengths, then tokens one by one, until the context has been full twice. Random weights give nearly
 * flat logits, so that the tokens that are fed are drawn. */
static void cache_or_none(void **state)
{
    (void)state;
    stk_sampling sampling = stk_sampling_default();
    int32_t prompt[3 * POSITIONS], token;
    for (int i = 0; i < 3 * POSITIONS; i++)
        prompt[i] = i * 7 % VOCABULARY;
    static const int64_t lengths[] = {1, 2, 13, 32, 33, POSITIONS - 1, POSITIONS, POSITIONS + 1, 3 * POSITIONS};
    stk_generator *g[] = {open_generator("cpu", false), open_generator("cpu", true),
                          open_generator("reference", false)};
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        for (int i = 0; i < 3; i++) {
            stk_generator_clear(g[i]);
            feed(g[i], prompt, lengths[k]);
        }
        for (int step = 0; step < (lengths[k] == 13 ? 2 * POSITIONS : 3); step++) {
            compare(g[0], g[1]);
            compare(g[0], g[2]);
            assert_int_equal(stk_generator_sample(g[0], &sampling, &token), STK_OK);
            for (int i = 0; i < 3; i++)
                feed(g[i], &token, 1);
        }
        compare(g[0], g[1]);
    }
    for (int i = 0; i < 3; i++)
        stk_generator_close(g[i]);
}

/* Several tokens at once behind others, as a second question would be. */
static void fed_in_parts(void **state)
{
    (void)state;
    int32_t tokens[30];
    for (int i = 0; i < 30; i++)
        tokens[i] = i * i % VOCABULARY;
    stk_generator *a = open_generator("cpu", false), *b = open_generator("cpu", false);
    feed(a, tokens, 30);
    feed(b, tokens, 4);
    feed(b, tokens + 4, 1);
    feed(b, tokens + 5, 20);
    feed(b, tokens + 25, 5);
    compare(a, b);
    stk_generator_close(a);
    stk_generator_close(b);
}

static void refused(void **state)
{
    (void)state;
    stk_generator *g = open_generator("cpu", false), *none;
    stk_sampling sampling = stk_sampling_default();
    stk_transformer_config bad = {.layers = 1, .heads = 3, .width = 8, .vocabulary = 5, .positions = 4};
    int32_t token = VOCABULARY, fine = 3;
    assert_null(stk_generator_logits(g));
    assert_int_equal(stk_generator_sample(g, &sampling, &token), STK_INVALID);
    assert_int_equal(stk_generator_feed(g, &token, 0), STK_INVALID);
    assert_int_equal(stk_generator_feed(g, &token, 1), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "vocabulary has 61"));
    assert_int_equal(stk_generator_n_tokens(g), 0);
    feed(g, &fine, 1);
    sampling.temperature = -1;
    assert_int_equal(stk_generator_sample(g, &sampling, &token), STK_INVALID);
    sampling = (stk_sampling){.temperature = 1, .top_p = 0};
    assert_int_equal(stk_generator_sample(g, &sampling, &token), STK_INVALID);
    sampling = (stk_sampling){.temperature = 1, .top_p = 1, .top_k = -1};
    assert_int_equal(stk_generator_sample(g, &sampling, &token), STK_INVALID);
    assert_int_equal(stk_generator_new(&bad, 0, NULL, &none), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "does not divide into 3 heads"));
    assert_null(none);
    assert_int_equal(stk_generator_open("/nowhere", NULL, &none), STK_NOT_FOUND);
    stk_generator_close(g);
}

/* --- draws --- */

static int32_t draw(const float *logits, int64_t n, stk_sampling sampling, uint64_t number)
{
    stk_candidate scratch[16];
    int32_t token = -1;
    if (stk_sample(logits, n, &sampling, number, scratch, &token) != STK_OK) fail_msg("%s", stk_error_text());
    return token;
}

static void count(const float *logits, int64_t n, stk_sampling sampling, int n_draws, double *share)
{
    memset(share, 0, (size_t)n * sizeof(*share));
    for (int i = 0; i < n_draws; i++)
        share[draw(logits, n, sampling, (uint64_t)i)] += 1.0 / n_draws;
}

static void frequencies(void **state)
{
    (void)state;
    enum { N = 20000 };
    /* Probabilities 0.5, 0.25, 0.125, 0.125, in mixed order. */
    float logits[] = {logf(0.125f), logf(0.5f), logf(0.125f), logf(0.25f)};
    static const double plain[] = {0.125, 0.5, 0.125, 0.25}, cold[] = {0.0454545, 0.727273, 0.0454545, 0.181818};
    double share[4];
    count(logits, 4, (stk_sampling){.temperature = 1, .top_p = 1, .seed = 9}, N, share);
    for (int i = 0; i < 4; i++)
        assert_true(fabs(share[i] - plain[i]) < 0.015);
    count(logits, 4, (stk_sampling){.temperature = 0.5, .top_p = 1, .seed = 9}, N, share);
    for (int i = 0; i < 4; i++)
        assert_true(fabs(share[i] - cold[i]) < 0.015);
    count(logits, 4, (stk_sampling){.temperature = 1, .top_k = 2, .top_p = 1}, N, share);
    assert_true(fabs(share[1] - 2.0 / 3) < 0.015 && share[0] == 0 && share[2] == 0);
    count(logits, 4, (stk_sampling){.temperature = 1, .top_p = 0.7}, N, share); /* 0.5 is too little */
    assert_true(fabs(share[1] - 2.0 / 3) < 0.015 && share[0] == 0 && share[2] == 0);
    count(logits, 4, (stk_sampling){.temperature = 1, .top_k = 3, .top_p = 1}, N, share); /* of the ties the first */
    assert_true(fabs(share[0] - 1.0 / 7) < 0.015 && share[2] == 0);
    count(logits, 4, (stk_sampling){.temperature = 1, .top_p = 1, .n_tokens = 3}, N, share);
    assert_true(fabs(share[1] - 2.0 / 3) < 0.015 && share[3] == 0);
    assert_int_equal(draw(logits, 4, (stk_sampling){.top_p = 1, .n_tokens = 1}, 0), 0); /* the likeliest of one */
    count(logits, 4, (stk_sampling){.temperature = 1, .top_p = 1e-9}, 100, share);
    assert_true(share[1] > 0.999);
}

static void special_logits(void **state)
{
    (void)state;
    stk_sampling plain = stk_sampling_default();
    stk_candidate scratch[4];
    int32_t token;
    static const float none[] = {-INFINITY, 1, -INFINITY}, sure[] = {0, INFINITY, 3}, wrong[] = {0, NAN, 3},
                       equal[] = {2, 2, 2};
    for (uint64_t i = 0; i < 50; i++) {
        assert_int_equal(draw(none, 3, plain, i), 1);
        assert_int_equal(draw(sure, 3, plain, i), 1);
    }
    assert_int_equal(draw(equal, 3, (stk_sampling){.temperature = 0, .top_p = 1}, 3), 0);
    assert_int_equal(stk_sample(wrong, 3, &plain, 0, scratch, &token), STK_CORRUPT);
    /* Another number of the draw, another token; the same, the same. */
    int n_other = 0;
    for (uint64_t i = 0; i < 50; i++) {
        assert_int_equal(draw(equal, 3, plain, i), draw(equal, 3, plain, i));
        n_other +=
            draw(equal, 3, plain, i) != draw(equal, 3, (stk_sampling){.temperature = 1, .top_p = 1, .seed = 1}, i);
    }
    assert_true(n_other > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cache_or_none), cmocka_unit_test(fed_in_parts),
                                       cmocka_unit_test(refused), cmocka_unit_test(frequencies),
                                       cmocka_unit_test(special_logits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
