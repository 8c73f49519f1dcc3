/* What names and error texts become on their way to a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/error.h"
#include "base/printable.h"

static void check(const char *text, const char *want)
{
    char out[200];
    stk_text grown = {0};
    assert_string_equal(stk_printable(text, out, sizeof(out)), want);
    stk_text_add_printable(&grown, text);
    assert_string_equal(stk_text_get(&grown), want);
    stk_text_free(&grown);
}

static void plain_text_stays(void **state)
{
    (void)state;
    check("", "");
    check("a 'name', 100 %", "a 'name', 100 %");
    check("na\xc3\xafve \xe2\x82\xac \xe7\x8c\xab \xf0\x9f\x90\x88",
          "na\xc3\xafve \xe2\x82\xac \xe7\x8c\xab \xf0\x9f\x90\x88");
}

static void terminals_are_told_nothing(void **state)
{
    (void)state;
    check("\x1b[2Jcat", "\\x1b[2Jcat");
    check("\x1b]0;title\a", "\\x1b]0;title\\x07");
    check("a\rb\nc\td\x7f", "a\\rb\\nc\\td\\x7f");
    /* C1: the same as ESC [ in one character, or in one byte, which is no UTF-8. */
    check("\xc2\x9b"
          "2J",
          "\\u009b2J");
    check("\x9b"
          "2J",
          "\\x9b2J");
}

static void direction_and_lines_cannot_be_faked(void **state)
{
    (void)state;
    check("photo\xe2\x80\xaegpj.exe", "photo\\u202egpj.exe");
    check("\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069");
    check("one\xe2\x80\xa8two\xe2\x80\xa9", "one\\u2028two\\u2029");
    check("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\u061c\\u200e\\u200f");
}

/* Longer than need be, halves of UTF-16's pairs, what is above U+10FFFF, and a cut end. */
static void bytes_that_are_no_text_show(void **state)
{
    (void)state;
    check("\xc0\x9b", "\\xc0\\x9b");
    check("\xe0\x80\x9b", "\\xe0\\x80\\x9b");
    check("\xed\xa0\x80", "\\xed\\xa0\\x80");
    check("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    check("x\xe2\x82", "x\\xe2\\x82");
}

static void long_text_is_cut_at_a_character(void **state)
{
    char out[6];
    (void)state;
    assert_string_equal(stk_printable("abc\x1b", out, sizeof(out)), "abc");
    assert_string_equal(stk_printable("abcd\xc3\xaf", out, sizeof(out)), "abcd");
    assert_string_equal(stk_printable("abcdef", out, sizeof(out)), "abcde");
    assert_string_equal(stk_printable("a", out, 1), "");
}

/* An error's text may have lines of its own; what it names may not move the cursor. */
static void errors_tell_terminals_nothing(void **state)
{
    (void)state;
    stk_fail(STK_INVALID, "no file '%s':\n  so", "\x1b[31mred\xc2\x9b");
    assert_string_equal(stk_error_text(), "no file '\\x1b[31mred\\u009b':\n  so");
    stk_fail_prefix(STK_INVALID, "'%s': ", "\b\b");
    assert_string_equal(stk_error_text(), "'\\x08\\x08': no file '\\x1b[31mred\\u009b':\n  so");
    /* Escapes are not escaped again. */
    stk_fail(STK_INVALID, "%s", stk_error_text());
    assert_string_equal(stk_error_text(), "'\\x08\\x08': no file '\\x1b[31mred\\u009b':\n  so");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_stays),
        cmocka_unit_test(terminals_are_told_nothing),
        cmocka_unit_test(direction_and_lines_cannot_be_faked),
        cmocka_unit_test(bytes_that_are_no_text_show),
        cmocka_unit_test(long_text_is_cut_at_a_character),
        cmocka_unit_test(errors_tell_terminals_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
