/* Trouble is told once, with a remedy, and sound runs hear nothing. */
#include "train/notice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* How often `words` was told in so many steps of a run whose loss at step i is loss(i). */
static int count(double (*loss)(int i), double input, double (*scale)(int i), const char *words)
{
    stk_notice notice = {0};
    char text[STK_NOTICE_TEXT];
    int n = 0;
    for (int i = 0; i < 1000; i++) {
        stk_train_event event = {
            .kind = STK_EVENT_STEP, .step = i + 1, .loss = loss(i), .loss_scale = scale ? scale(i) : 0};
        event.time.input = input;
        if (!stk_notice_look(&notice, &event, text)) continue;
        assert_non_null(strstr(text, words));
        n++;
    }
    return n;
}

static double falls(int i)
{
    return 2.3 * exp(-i / 200.0) + 0.3 * (i % 7 == 0);
}

static double grows(int i)
{
    return i < 300 ? falls(i) : 1 + (i - 300) * 0.02;
}

static double noisy(int i)
{
    return i == 500 ? 60 : i == 700 ? NAN : falls(i);
}

static double sinks(int i)
{
    return 65536 / pow(2, i / 50.0);
}

static double keeps(int i)
{
    return i % 100 < 3 ? 32768 : 65536;
}

static void each_trouble_is_told_once(void **state)
{
    (void)state;
    assert_int_equal(count(falls, 0.1, keeps, "nothing"), 0);
    assert_int_equal(count(noisy, 0.0, NULL, "nothing"), 0); /* a single bad batch is none */
    assert_int_equal(count(falls, 0.3, NULL, "input-bound: 30 %"), 1);
    assert_int_equal(count(grows, 0.0, NULL, "clip_norm"), 1);
    assert_int_equal(count(falls, 0.0, sinks, "precision: bf16"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_trouble_is_told_once),
    };
    return cmocka_run_group_tests_name("train/notice", tests, NULL, NULL);
}
