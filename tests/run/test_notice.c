/* Trouble is told once, with a remedy, and sound runs hear nothing. */
#include "run/notice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "run/throttle.h"

/* How often `words` was told in that many steps of a run whose loss at step i is loss(i). */
static int count(double (*loss)(int i), double input, double (*scale)(int i), const char *words)
{
    stk_notice notice = {0};
    char text[STK_NOTICE_TEXT];
    int n = 0;
    for (int i = 0; i < 1000; i++) {
        stk_train_event event = {.kind = STK_EVENT_STEP,
                                 .step = i + 1,
                                 .loss = loss(i),
                                 .grad_norm = -1,
                                 .loss_scale = scale ? scale(i) : 0};
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

/* How often `words` was told in 1000 steps whose gradients have that norm. */
static int count_norms(double (*norm)(int i), double clip_norm, const char *words)
{
    stk_notice notice = {.clip_norm = clip_norm};
    char text[STK_NOTICE_TEXT];
    int n = 0;
    for (int i = 0; i < 1000; i++) {
        stk_train_event event = {.kind = STK_EVENT_STEP, .step = i + 1, .loss = 1, .grad_norm = norm(i)};
        if (!stk_notice_look(&notice, &event, text)) continue;
        if (!strstr(text, words)) fail_msg("'%s' is not about '%s'", text, words);
        n++;
    }
    return n;
}

static double rough(int i)
{
    return 2 + 1.5 * sin(i) + (i < 20 ? 40 : 0) + (i % 100 == 50 ? 90 : 0); /* single ones are no explosion */
}

static double explodes(int i)
{
    return i < 600 ? rough(i) : i < 610 ? 2 * pow(3, i - 600) : NAN;
}

static double overflows(int i)
{
    return i < 40 ? NAN : i < 600 ? 1 : INFINITY;
}

static double unknown(int i)
{
    (void)i;
    return -1;
}

static void gradients_that_explode_are_told_once(void **state)
{
    (void)state;
    assert_int_equal(count_norms(rough, 0, "nothing"), 0);
    assert_int_equal(count_norms(unknown, 0, "nothing"), 0);
    assert_int_equal(count_norms(explodes, 0, "was about 2.093; a lower learning rate, a warm-up or 'clip_norm: 1'"),
                     1);
    assert_int_equal(count_norms(explodes, 0.5, "'clip_norm: 0.5' holds"), 1);
    assert_int_equal(count_norms(overflows, 0, "is inf at step 603, and was about 1;"), 1);
}

/* Steps of 10 ms; the wait for the batch takes the rest of 100 ms from a step on. */
static int count_waits(int from, int to, const char *words)
{
    stk_notice notice = {0};
    char text[STK_NOTICE_TEXT];
    double loop = 0, wait = 0;
    int n = 0;
    for (int i = 0; i < 2000; i++) {
        bool waits = i >= from && i < to;
        stk_train_event event = {.kind = STK_EVENT_STEP, .step = i + 1, .loss = 1, .step_s = 0.01, .grad_norm = -1};
        if (waits) event.step_s += event.wait_s = 0.09;
        loop += event.step_s;
        wait += event.wait_s;
        event.time.input = wait / loop;
        if (!stk_notice_look(&notice, &event, text)) continue;
        if (!strstr(text, words)) fail_msg("'%s' is not about '%s'", text, words);
        n++;
    }
    return n;
}

static void a_loader_that_begins_to_starve_is_told_of(void **state)
{
    (void)state;
    assert_int_equal(count_waits(1900, 1903, "nothing"), 0); /* a few slow ones are none */
    assert_int_equal(count_waits(1900, 1910, "the data loader starves: 5"), 1);
    assert_int_equal(count_waits(0, 2000, "input-bound: 90 %"), 1);
}

/* --- clocks: files as the kernel shows them --- */

static char cpus[] = "/tmp/stk-clocks-XXXXXX";

static void plant(int cpu, const char *folder, const char *name, long long x)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/cpu%d", cpus, cpu);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/cpu%d/%s", cpus, cpu, folder);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/cpu%d/%s/%s", cpus, cpu, folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%lld\n", x);
    fclose(file);
}

static void plant_clocks(long long mhz, long long limit_mhz)
{
    for (int i = 0; i < 2; i++) {
        plant(i, "cpufreq", "scaling_cur_freq", mhz * 1000);
        plant(i, "cpufreq", "base_frequency", 2400000);
        plant(i, "cpufreq", "cpuinfo_max_freq", 4000000);
        plant(i, "cpufreq", "scaling_max_freq", limit_mhz * 1000);
    }
}

static int count_looks(stk_throttle *t, int n_looks, double compute, const char *words)
{
    char text[STK_NOTICE_TEXT];
    int n = 0;
    for (int i = 0; i < n_looks; i++) {
        if (!stk_throttle_look(t, compute, text, sizeof(text))) continue;
        if (!strstr(text, words)) fail_msg("'%s' is not about '%s'", text, words);
        n++;
    }
    return n;
}

static void clocks_that_are_held_down_are_told_of(void **state)
{
    (void)state;
    stk_throttle t;
    assert_non_null(mkdtemp(cpus));
    stk_throttle_open(&t, cpus, 2); /* as in a virtual machine: nothing there */
    assert_int_equal(count_looks(&t, 10, 1, "nothing"), 0);
    plant_clocks(2500, 4000);
    stk_throttle_open(&t, cpus, 2);
    assert_int_equal(count_looks(&t, 10, 1, "nothing"), 0); /* all cores at once are never at their highest */
    plant_clocks(1000, 4000);
    assert_int_equal(count_looks(&t, 10, 0.1, "nothing"), 0); /* a run that waits needs no clock */
    assert_int_equal(count_looks(&t, 2, 1, "nothing"), 0);
    assert_int_equal(count_looks(&t, 10, 1, "clocks are held down: 1000 MHz, of 4000 at best; heat"), 1);
    plant_clocks(1200, 1200);
    stk_throttle_open(&t, cpus, 2);
    assert_int_equal(count_looks(&t, 10, 1, "a policy caps them"), 1);
    plant_clocks(3000, 4000);
    plant(1, "thermal_throttle", "core_throttle_count", 7);
    stk_throttle_open(&t, cpus, 2);
    assert_int_equal(count_looks(&t, 10, 1, "nothing"), 0); /* cuts of days ago */
    plant(1, "thermal_throttle", "core_throttle_count", 9);
    assert_int_equal(count_looks(&t, 1, 1, "nothing"), 0);
    plant(1, "thermal_throttle", "core_throttle_count", 12);
    assert_int_equal(count_looks(&t, 1, 1, "too hot"), 1);
    assert_int_equal(stk_tree_remove(cpus), STK_OK);
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
        cmocka_unit_test(gradients_that_explode_are_told_once),
        cmocka_unit_test(a_loader_that_begins_to_starve_is_told_of),
        cmocka_unit_test(clocks_that_are_held_down_are_told_of),
    };
    return cmocka_run_group_tests_name("run/notice", tests, NULL, NULL);
}
