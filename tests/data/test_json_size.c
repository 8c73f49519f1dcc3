/* What a JSON text takes as a tree is told before the tree is made, and never too low. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <malloc.h>
#include <string.h>

#include "base/json_size.h"
#include "base/text.h"

/* The bytes that jansson's tree of the text really takes, or SIZE_MAX where the C library does not tell. */
static size_t real_bytes(const stk_text *text)
{
    struct mallinfo2 before = mallinfo2();
    json_t *tree = json_loadb(text->data, text->n, 0, NULL);
    struct mallinfo2 after = mallinfo2();
    assert_non_null(tree);
    json_decref(tree);
    return after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
}

static void never_too_low(void **state)
{
    (void)state;
    static const char *const parts[] = {"[]",
                                        "{}",
                                        "1",
                                        "\"\"",
                                        "\"a text of some length\"",
                                        "[1,2,3]",
                                        "{\"a\":1}",
                                        "[[[[1]]]]",
                                        "{\"key\":\"value\"}",
                                        "0.5",
                                        "\"\\\"[[\\\\\"",
                                        "[\"a\",\"b\"]",
                                        "[[],[],[]]"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        for (int kind = 0; kind < 2; kind++) {
            stk_text text = {0};
            stk_text_add(&text, kind ? "{" : "[");
            for (int k = 0; k < 3000; k++) {
                if (kind)
                    stk_text_add(&text, "%s\"%d\":%s", k ? "," : "", k, parts[i]);
                else
                    stk_text_add(&text, "%s%s", k ? "," : "", parts[i]);
            }
            stk_text_add(&text, kind ? "}" : "]");
            size_t real = real_bytes(&text);
            size_t told = stk_json_tree_bytes((stk_span){(const uint8_t *)text.data, text.n});
#if !defined(__SANITIZE_ADDRESS__)
            if (told < real) fail_msg("'%s': %zu bytes, told %zu", parts[i], real, told);
            if (real > 0 && told > 8 * real) fail_msg("'%s': %zu bytes, told %zu", parts[i], real, told);
#else
            (void)real, (void)told;
#endif
            stk_text_free(&text);
        }
    }
}

static void the_bound_is_named(void **state)
{
    (void)state;
    static const char text[] = "[[],[],[],[]]";
    stk_span span = {(const uint8_t *)text, strlen(text)};
    assert_int_equal(stk_json_check(span, 1 << 20), STK_OK);
    assert_int_equal(stk_json_check(span, 100), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "13 bytes of JSON would take about 1 MiB"));
    assert_int_equal(stk_json_check((stk_span){(const uint8_t *)"\"a\\", 3}, 1 << 20), STK_OK); /* an end in a text */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(never_too_low), cmocka_unit_test(the_bound_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
