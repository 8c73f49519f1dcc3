/* Who holds the others back: by what ranks sleep for, by their GPUs, by hangs and ends. Reports are made up; recordings
 * of true ranks: test_together.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "watch/together.h"

enum { MOST = 4 };
static stk_watch_report report[MOST];
static stk_watch_facts facts[MOST];
static stk_watch_history history;
static stk_watch_member member[MOST];
static stk_watch_together together;
static const char *const paths[MOST] = {"a.rec", "x/b.rec", "c.rec", "d.rec"};

static int clear(void **state)
{
    (void)state;
    for (int i = 0; i < MOST; i++) {
        stk_watch_facts_free(&facts[i]);
        memset(&report[i], 0, sizeof(report[i]));
        report[i].facts = &facts[i];
        report[i].history = &history;
        report[i].length_s = 10;
        for (int k = 0; k < STK_WATCH_SIGNALS; k++)
            report[i].signals.value[k] = NAN;
        member[i].report = &report[i];
    }
    return 0;
}

static void set_verdict(int i, const char *name)
{
    size_t n;
    const stk_watch_rule *rules = stk_watch_rules(&n);
    for (size_t k = 0; k < n; k++)
        if (!strcmp(rules[k].name, name)) report[i].verdict[0].rule = &rules[k];
    assert_non_null(report[i].verdict[0].rule);
    report[i].n_verdicts = 1;
}

static void set_waits(int i, double share)
{
    double *x = report[i].signals.value;
    x[STK_WATCH_account] = 1;
    x[STK_WATCH_by_net] = share;
    x[STK_WATCH_by_unknown] = x[STK_WATCH_by_outside] = 0;
}

static void set_gpu(int i, double busy, double power, double clock)
{
    double *x = report[i].signals.value;
    x[STK_WATCH_gpus_used] = 1;
    x[STK_WATCH_gpu_busy] = busy;
    x[STK_WATCH_power_busy] = power;
    x[STK_WATCH_clock_low] = 1 - clock;
}

static void set_time(int i, double began_s, double length_s)
{
    assert_int_equal(stk_watch_facts_add(&facts[i], "began", "%.3f", began_s), STK_OK);
    report[i].length_s = length_s;
}

static void expect(int n, stk_watch_joint joint, int odd)
{
    stk_watch_together_judge(member, paths, n, &together);
    assert_string_equal(stk_watch_joint_name(together.joint), stk_watch_joint_name(joint));
    assert_int_equal(together.n_odd, odd < 0 ? 0 : 1);
    for (int i = 0; i < n; i++)
        assert_int_equal(member[i].is_odd, i == odd);
}

static void test_sleep(void **state)
{
    (void)state;
    for (int i = 0; i < MOST; i++)
        set_waits(i, i == 2 ? 0.05 : 0.6 + 0.05 * i);
    set_verdict(2, "one-core");
    set_verdict(0, "input-network");
    expect(MOST, STK_WATCH_JOINT_STRAGGLER, 2);
    assert_true(together.cost > 0.55 && together.cost < 0.75);
    assert_int_equal(together.n_evidence, 2);
    assert_non_null(strstr(together.evidence[1], "one-core"));
    /* What another one has, too, is no reason. */
    set_verdict(0, "one-core");
    expect(MOST, STK_WATCH_JOINT_STRAGGLER, 2);
    assert_int_equal(together.n_evidence, 1);
    expect(2, STK_WATCH_JOINT_EXCHANGE, -1);
    set_waits(2, 0.5);
    expect(MOST, STK_WATCH_JOINT_EXCHANGE, -1);
    for (int i = 0; i < MOST; i++)
        set_waits(i, 0.1);
    expect(MOST, STK_WATCH_JOINT_MIXED, -1);
    for (int i = 0; i < MOST; i++)
        set_verdict(i, "input-cpu");
    expect(MOST, STK_WATCH_JOINT_SAME, -1);
    /* Three that work and one that waits are no stragglers. */
    set_waits(1, 0.8);
    expect(MOST, STK_WATCH_JOINT_SAME, -1);
}

static void test_gpus(void **state)
{
    (void)state;
    for (int i = 0; i < MOST; i++)
        set_gpu(i, i == 1 ? 0.5 : 0.97, 0.6, 1);
    expect(MOST, STK_WATCH_JOINT_STRAGGLER, 1);
    set_gpu(1, 0.97, 0.9, 1);
    expect(MOST, STK_WATCH_JOINT_STRAGGLER, 1);
    assert_true(fabs(together.cost - 0.3) < 1e-9);
    set_gpu(1, 0.97, 0.6, 0.5);
    expect(MOST, STK_WATCH_JOINT_STRAGGLER, 1);
    set_gpu(1, 0.97, 0.6, 0.9);
    expect(MOST, STK_WATCH_JOINT_SAME, -1);
    /* One that is not known says nothing of the others. */
    set_gpu(1, 0.5, 0.6, 1);
    report[3].signals.value[STK_WATCH_gpu_busy] = NAN;
    expect(MOST, STK_WATCH_JOINT_SAME, -1);
}

static void test_hang(void **state)
{
    (void)state;
    for (int i = 0; i < MOST; i++)
        set_verdict(i, i == 3 ? "input-storage" : "hang");
    expect(MOST, STK_WATCH_JOINT_HANG, 3);
    assert_non_null(strstr(together.evidence[1], "input-storage"));
    set_verdict(3, "hang");
    expect(MOST, STK_WATCH_JOINT_SAME, -1);
}

static void test_end(void **state)
{
    (void)state;
    for (int i = 0; i < MOST; i++)
        set_time(i, 1e9, i == 2 ? 8 : 10);
    expect(MOST, STK_WATCH_JOINT_SAME, -1);
    assert_int_equal(stk_watch_facts_add(&facts[2], "exit", "137"), STK_OK);
    assert_int_equal(stk_watch_facts_add(&facts[2], "signal", "9"), STK_OK);
    expect(MOST, STK_WATCH_JOINT_ENDED, 2);
    assert_non_null(strstr(together.evidence[0], "SIGKILL"));
    /* Runs of two days tell nothing of who ended first or waits for whom. */
    stk_watch_facts_free(&facts[0]);
    set_time(0, 1e9 + 86400, 10);
    expect(MOST, STK_WATCH_JOINT_SAME, -1);
    assert_true(together.are_apart);
    for (int i = 0; i < MOST; i++)
        set_waits(i, i == 1 ? 0.05 : 0.7);
    expect(MOST, STK_WATCH_JOINT_SAME, -1);
    assert_int_equal(together.n_evidence, 0);
}

static void test_names(void **state)
{
    (void)state;
    stk_text text = {0};
    assert_int_equal(stk_watch_facts_add(&facts[0], "rank", "7"), STK_OK);
    assert_int_equal(stk_watch_facts_add(&facts[0], "host", "n\xe2\x80\xae<b>"), STK_OK);
    assert_int_equal(stk_watch_facts_add(&facts[2], "host", "same"), STK_OK);
    assert_int_equal(stk_watch_facts_add(&facts[3], "host", "same"), STK_OK);
    expect(MOST, STK_WATCH_JOINT_SAME, -1);
    assert_string_equal(member[1].name, "b.rec");
    assert_string_equal(member[2].name, "same (c.rec)");
    assert_string_equal(member[3].name, "same (d.rec)");
    stk_watch_together_html(&together, &text);
    assert_null(strstr(stk_text_get(&text), "<b>"));
    assert_null(strstr(stk_text_get(&text), "\xe2\x80\xae"));
    assert_non_null(strstr(stk_text_get(&text), "rank 7 on n\\u202e&lt;b&gt;"));
    stk_text_free(&text);
    stk_watch_together_text(&together, 80, &text);
    assert_null(strstr(stk_text_get(&text), "\xe2\x80\xae"));
    stk_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sleep, clear, clear),
        cmocka_unit_test_setup_teardown(test_gpus, clear, clear),
        cmocka_unit_test_setup_teardown(test_hang, clear, clear),
        cmocka_unit_test_setup_teardown(test_end, clear, clear),
        cmocka_unit_test_setup_teardown(test_names, clear, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
