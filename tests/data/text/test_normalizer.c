/* Normal forms and the other steps on characters by themselves, and on runs that are longer than what is worked on at a
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/text/normalize.h"

static size_t run(const stk_normalizer *s, const char *text, size_t n, char **out)
{
    uint32_t *work = malloc(STK_NORMALIZE_WORK);
    size_t n_out = 0;
    *out = malloc(stk_normalizer_room(s, n));
    assert_int_equal(stk_normalizer_run(s, (stk_span){(const uint8_t *)text, n}, (uint8_t *)*out, work, &n_out),
                     STK_OK);
    free(work);
    return n_out;
}

static stk_normalizer make(const stk_normalize_step *steps, int n)
{
    stk_normalizer s = {0};
    for (int i = 0; i < n; i++)
        assert_int_equal(stk_normalizer_add(&s, steps[i]), STK_OK);
    stk_normalizer_finish(&s);
    return s;
}

static void steps(void **state)
{
    (void)state;
    static const struct {
        stk_normalize_step step;
        const char *text, *want;
    } cases[] = {
        {STK_STEP_NFC, "e\u0301 \u304b\u3099 \u1112\u1161\u11ab", "\u00e9 \u304c \ud55c"},
        {STK_STEP_NFD, "\u00e9 \u304c \ud55c", "e\u0301 \u304b\u3099 \u1112\u1161\u11ab"},
        {STK_STEP_NFD, "a\u0308\u0323", "a\u0323\u0308"},
        {STK_STEP_NFC, "a\u0308\u0323 \u212b", "\u1ea1\u0308 \u00c5"},
        /* Younger than the Unicode of `tokenizers`: no marks, and not joined. */
        {STK_STEP_NFD, "a\u0eba\u0334 \U00011938", "a\u0eba\u0334 \U00011938"},
        {STK_STEP_NFC, "\U00011935\U00011930 e\u0eba\u0301 e\u0301\u0eba",
         "\U00011935\U00011930 e\u0eba\u0301 \u00e9\u0eba"},
        {STK_STEP_NFKC, "\ufb01 \u2460 \uff76\uff9e", "fi 1 \u30ac"},
        {STK_STEP_NFKD, "\u01c6", "dz\u030c"},
        {STK_STEP_LOWER, "\u0130 \u00c4\u03a3 ABC", "i\u0307 \u00e4\u03c3 abc"},
        {STK_STEP_CLEAN,
         "a\x01\t\u00a0\u200b\xff"
         "b",
         "a  b"},
        {STK_STEP_CJK, "a\u65e5b", "a \u65e5 b"},
        {STK_STEP_ACCENTS, "e\u0301x\u0903", "ex\u0903"},
        {STK_STEP_MARKS, "e\u0301x\u0903", "ex"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *out;
        stk_normalizer s = make(&cases[i].step, 1);
        size_t n = run(&s, cases[i].text, strlen(cases[i].text), &out);
        if (n != strlen(cases[i].want) || memcmp(out, cases[i].want, n))
            fail_msg("case %zu: '%.*s', not '%s'", i, (int)n, out, cases[i].want);
        free(out);
    }
}

/* Wherever a run is cut, the parts are those of the whole. */
static void long_runs(void **state)
{
    (void)state;
    enum { TIMES = 700 };
    static const char *const parts[] = {
        "\u304b\u3099",       "\u304c",       "\u1112\u1161\u11ab", "\ud55c",
        "\u03b1\u0308\u0323", "\u65e5\u672c", "\U0001f600\u200d",   "\u0915\u093e\u093c",
        "\u09c7\u09be",       "\ufdfa",       "e\u0301\u0327",      "\u1e9b\u0323"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        for (int form = STK_STEP_NFD; form <= STK_STEP_NFKC; form++) {
            size_t n = strlen(parts[i]), n_one, n_all;
            char *text = malloc(n * TIMES), *one, *all;
            for (int k = 0; k < TIMES; k++)
                memcpy(text + (size_t)k * n, parts[i], n);
            stk_normalizer s = make(&(stk_normalize_step){(stk_normalize_step)form}, 1);
            n_one = run(&s, parts[i], n, &one);
            n_all = run(&s, text, n * TIMES, &all);
            bool same = n_all == n_one * TIMES;
            for (int k = 0; k < TIMES && same; k++)
                same = !memcmp(all + (size_t)k * n_one, one, n_one);
            if (!same) fail_msg("part %zu in form %d", i, form);
            free(text);
            free(one);
            free(all);
        }
}

static void too_many_steps(void **state)
{
    (void)state;
    stk_normalizer s = {0};
    for (int i = 0; i < STK_MOST_STEPS; i++)
        assert_int_equal(stk_normalizer_add(&s, STK_STEP_CLEAN), STK_OK);
    assert_int_equal(stk_normalizer_add(&s, STK_STEP_CLEAN), STK_UNSUPPORTED);
}

int main(void)
{
    stk_normalizer normalizer = {0};
    if (stk_normalizer_add(&normalizer, STK_STEP_LOWER) != STK_OK) {
        puts("SKIP: this build has no libutf8proc");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(long_runs),
                                       cmocka_unit_test(too_many_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
