/* JSON where memory is short: each allocation of jansson fails once, and what is parsed or printed is whole or refused.
 */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static long n_until_failure; /* 0: none fails */

static void *failing_malloc(size_t n)
{
    if (n_until_failure > 0 && --n_until_failure == 0) return NULL;
    return malloc(n);
}

static const char document[] = "{\"a name of some length\": \"a text of some length\", \"number\": 1234567890123456, "
                               "\"list\": [1.25, \"another text of some length\", {\"x\": null}]}";

/* True where nothing failed any more. */
static bool print_once(long i, char **out)
{
    n_until_failure = i;
    unsigned mark = stk_json_mark();
    json_t *root = json_pack("{s:s, s:i}", "first", "a text of some length", "second", 2);
    json_object_set_new(root, "third", json_string("whether this is set is not looked at"));
    stk_status status = stk_json_print(root, mark, JSON_SORT_KEYS, out);
    bool is_over = n_until_failure > 0;
    n_until_failure = 0;
    assert_true(status == STK_OK ? *out != NULL : status == STK_NO_MEMORY && *out == NULL);
    return is_over;
}

static void prints_all_or_nothing(void **state)
{
    (void)state;
    char *whole, *text;
    assert_true(print_once(1000000, &whole));
    for (long i = 1; !print_once(i, &text); i++) {
        if (text) assert_string_equal(text, whole);
        free(text);
        assert_true(i < 1000);
    }
    free(text);
    free(whole);
}

/* jansson's parser leaves characters out where its buffer cannot grow, and calls that success. */
static void parses_all_or_nothing(void **state)
{
    (void)state;
    json_t *whole, *value;
    json_error_t error;
    assert_int_equal(stk_json_parse(document, sizeof(document) - 1, 0, &whole, &error), STK_OK);
    for (long i = 1;; i++) {
        n_until_failure = i;
        stk_status status = stk_json_parse(document, sizeof(document) - 1, 0, &value, &error);
        bool is_over = n_until_failure > 0;
        n_until_failure = 0;
        assert_true(status == STK_OK || status == STK_NO_MEMORY);
        if (status == STK_OK) assert_true(json_equal(value, whole));
        json_decref(value);
        if (is_over) break;
        assert_int_equal(status, STK_NO_MEMORY);
    }
    json_decref(whole);
}

static void says_where_text_is_no_json(void **state)
{
    (void)state;
    json_t *value;
    json_error_t error;
    assert_int_equal(stk_json_parse("{\"a\": 1,\n 2}", 12, 0, &value, &error), STK_CORRUPT);
    assert_null(value);
    assert_non_null(strstr(stk_error_text(), "line 2: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prints_all_or_nothing), cmocka_unit_test(parses_all_or_nothing),
                                       cmocka_unit_test(says_where_text_is_no_json)};
    json_set_alloc_funcs(failing_malloc, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
