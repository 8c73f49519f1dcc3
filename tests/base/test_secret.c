/* What is hidden of addresses, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/error.h"
#include "base/secret.h"

static void check(const char *text, const char *want)
{
    char out[400];
    stk_text grown = {0};
    assert_string_equal(stk_hide_secrets(text, out, sizeof(out)), want);
    (void)stk_text_add_secrets(&grown, text, STK_HIDDEN, false);
    assert_string_equal(stk_text_get(&grown), want);
    /* What is hidden stays as it is. */
    assert_string_equal(stk_hide_secrets(want, out, sizeof(out)), want);
    for (size_t n = 1; n <= strlen(want); n++) {
        char small[400];
        stk_hide_secrets(text, small, n);
        assert_int_equal(strlen(small), n - 1);
        assert_memory_equal(small, want, n - 1);
    }
    stk_text_free(&grown);
}

static void passwords_are_hidden(void **state)
{
    (void)state;
    check("http://anna:geheim@host:8080/a/b.tar", "http://anna:***@host:8080/a/b.tar");
    check("https://ghp_token@host/x", "https://***@host/x");
    check("http://:pw@host", "http://:***@host");
    check("http://a:p@ss:w@host/x@y", "http://a:***@host/x@y");
    check("cannot read 'http://a:it's@h/x': 401; 'http://b:c@h/y' too",
          "cannot read 'http://a:***@h/x': 401; 'http://b:***@h/y' too");
}

static void secrets_in_queries_are_hidden(void **state)
{
    (void)state;
    check("https://h/x?token=abc&part=2", "https://h/x?token=***&part=2");
    check("https://b.s3.amazonaws.com/k?X-Amz-Credential=AK%2F1&X-Amz-Expires=60&X-Amz-Signature=ff00&x=1",
          "https://b.s3.amazonaws.com/k?X-Amz-Credential=***&X-Amz-Expires=60&X-Amz-Signature=***&x=1");
    check("https://h/c/x?sv=2021&sig=a%2Fb%3D", "https://h/c/x?sv=2021&sig=***");
    check("https://h/x?AWSAccessKeyId=AK&Signature=s#top", "https://h/x?AWSAccessKeyId=***&Signature=***#top");
    check("'https://h/x?api_key=k': no", "'https://h/x?api_key=***': no");
    check("http://a:b@h/x?password=c d", "http://a:***@h/x?password=*** d");
}

static void other_text_stays(void **state)
{
    (void)state;
    check("", "");
    check("mail anna@host: no address", "mail anna@host: no address");
    check("http://host/a@b?x=1&token=", "http://host/a@b?x=1&token=");
    check("http://anna@", "http://***@");
    check("s3://bucket/key=3/design=x?y", "s3://bucket/key=3/design=x?y");
    check("what ?token=abc is", "what ?token=abc is");
}

static void hidden_ones_come_back(void **state)
{
    (void)state;
    stk_text text = {0};
    assert_int_equal(stk_text_add_secrets(&text, "http://a:***@h/x?sig=***&token=t", "new", true), 2);
    assert_string_equal(stk_text_get(&text), "http://a:new@h/x?sig=new&token=t");
    stk_text_free(&text);
    assert_int_equal(stk_text_add_secrets(&text, "http://a:b@h/*** x", "new", true), 0);
    assert_string_equal(stk_text_get(&text), "http://a:b@h/*** x");
    stk_text_free(&text);
}

static void errors_hide_secrets(void **state)
{
    (void)state;
    stk_fail(STK_IO, "cannot read '%s'", "http://a:geheim@h/x");
    assert_string_equal(stk_error_text(), "cannot read 'http://a:***@h/x'");
    stk_fail_prefix(STK_IO, "'%s': ", "http://h/y?token=geheim");
    assert_string_equal(stk_error_text(), "'http://h/y?token=***': cannot read 'http://a:***@h/x'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_hidden), cmocka_unit_test(secrets_in_queries_are_hidden),
        cmocka_unit_test(other_text_stays),     cmocka_unit_test(hidden_ones_come_back),
        cmocka_unit_test(errors_hide_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
