/* What py-spy and gdb say, true and damaged, and which lines held a thread. Whole runs: test_stacks.py. */
#include "watch/stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char py_spy[] = "Process 41: python3 x.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
                             "Thread 4711 (idle): \"feeder\"\n    wait (threading.py:327)\n"
                             "Thread 471 (active): \"MainThread\"\n    decode (data.py:7)\n    get (data.py:20)\n"
                             "    run (x.py:5)\n    <module> (x.py:9)\n"
                             "Thread 99 (idle): \"none\"\n";

static void test_py_spy(void **state)
{
    (void)state;
    char out[STK_WATCH_STACK_LINE];
    assert_true(stk_watch_parse_py_spy(py_spy, 471, out));
    assert_string_equal(out, "decode (data.py:7) < get (data.py:20) < run (x.py:5)");
    assert_true(stk_watch_parse_py_spy(py_spy, 4711, out));
    assert_string_equal(out, "wait (threading.py:327)");
    assert_false(stk_watch_parse_py_spy(py_spy, 99, out));
    assert_false(stk_watch_parse_py_spy(py_spy, 47, out));
    assert_false(stk_watch_parse_py_spy("Error: Permission denied (os error 1)", 471, out));
    assert_false(stk_watch_parse_py_spy("", 471, out));
    /* A name of a thread is no head of one. */
    assert_false(stk_watch_parse_py_spy("Thread 1 (idle): \"Thread 471 (x)\"\n    a (b.py:1)\n", 471, out));
}

static void test_gdb(void **state)
{
    (void)state;
    char out[STK_WATCH_STACK_LINE];
    assert_true(stk_watch_parse_gdb(
        "[New LWP 12]\nwarning: x\n0x00007f in read () from /lib/libc.so.6\n"
        "#0  0x00007f in read () from /lib/libc.so.6\n#1  0x000055 in load (n=3, name=0x5 \") at \") at /a b/job.c:12\n"
        "#2  main () at job.c:20\n#3  _start ()\n[Inferior 1 (process 12) detached]\n",
        out));
    assert_string_equal(out, "read < load (job.c:12) < main (job.c:20)");
    assert_false(stk_watch_parse_gdb("ptrace: Operation not permitted.\nNo stack.\n", out));
    assert_false(stk_watch_parse_gdb("#", out));
    assert_false(stk_watch_parse_gdb("#0", out));
}

static void test_long(void **state)
{
    (void)state;
    char out[STK_WATCH_STACK_LINE], text[4000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = 0;
    memcpy(text, "#0  ", 4);
    for (int i = 1; i < 5; i++)
        memcpy(text + 700 * i, "\n#1  ", 5);
    assert_true(stk_watch_parse_gdb(text, out));
    assert_true(strlen(out) < STK_WATCH_STACK_LINE);
    memcpy(text, "Thread 1 \n    ", 14);
    for (int i = 1; i < 5; i++)
        memcpy(text + 700 * i, "\n    ", 5);
    assert_true(stk_watch_parse_py_spy(text, 1, out));
    assert_true(strlen(out) < STK_WATCH_STACK_LINE);
}

static void test_sum(void **state)
{
    (void)state;
    stk_watch_facts facts = {0};
    stk_watch_held held;
    const char *const all[] = {"1.00 start", "4.00 b", "5.00 a < x", "6.00 a < x", "7 a < x", "8 b",
                               "9 c",        "9.5 d",  "12 late",    "nan d",      "d",       ""};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_int_equal(stk_watch_facts_add(&facts, "stack", "%s", all[i]), STK_OK);
    stk_watch_stacks_sum(&facts, 3, 10, &held);
    assert_int_equal(held.n_stacks, 7);
    assert_int_equal(held.n_lines, 3);
    assert_string_equal(held.text[0], "a < x");
    assert_int_equal(held.n[0], 3);
    assert_string_equal(held.text[1], "b");
    assert_int_equal(held.n[1], 2);
    assert_int_equal(held.n[2], 1);
    stk_watch_stacks_sum(&facts, 20, 30, &held);
    assert_int_equal(held.n_lines, 0);
    stk_watch_facts_free(&facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_py_spy), cmocka_unit_test(test_gdb),
                                       cmocka_unit_test(test_long), cmocka_unit_test(test_sum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
