/* Control groups as version 1, version 2 and both at once show them: limits of the group and of those around it, and
 * what came of them. From files laid over the machine's own. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/sampler.h"

enum { JOB = 4711 };
static char over[] = "/tmp/stoker-group-XXXXXX";

/* Writes a file below `over`, and the folders that it lies in. */
static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "%s%s", over, path);
    for (char *slash = whole + strlen(over) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(whole, 0777);
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* The machine that runs this test may have limits of its own. */
static void put_no_limits(void)
{
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/memory.max", "max\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/unified/cpu.max", "max 100000\n");
}

static void begin(stk_watch_sampler *sampler)
{
    stk_watch_config config = {.pid = JOB, .root = {.over = over, .without = "libnvidia"}};
    assert_int_equal(stk_watch_sampler_open(sampler, &config), STK_OK);
    stk_watch_process_at(&sampler->sample, 0)->cpu_us = 1;
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(over) ? 0 : -1;
}

static int clear(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s/proc %s/sys", over, over);
    return system(command);
}

static int finish(void **state)
{
    return clear(state) || rmdir(over);
}

static void test_version_2(void **state)
{
    (void)state;
    stk_watch_sampler sampler;
    const stk_watch_machine *m = &sampler.sample.machine;
    put_no_limits();
    /* The inner group has no limits of its own. */
    put("/proc/4711/cgroup", "0::/pods/job/inner\n");
    put("/sys/fs/cgroup/pods/job/inner/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/pods/job/inner/memory.max", "max\n");
    put("/sys/fs/cgroup/pods/job/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/pods/job/cpu.stat", "usage_usec 9\nnr_periods 20\nnr_throttled 5\nthrottled_usec 700\n");
    put("/sys/fs/cgroup/pods/job/memory.max", "1073741824\n");
    put("/sys/fs/cgroup/pods/job/memory.current", "805306368\n");
    put("/sys/fs/cgroup/pods/job/memory.stat", "anon 1\nfile 268435456\n");
    put("/sys/fs/cgroup/pods/job/memory.events", "low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\n");
    put("/sys/fs/cgroup/pods/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/pods/memory.max", "8589934592\n");
    begin(&sampler);
    stk_watch_read_machine(&sampler);
    assert_int_equal(m->quota_millicores, 1500);
    assert_int_equal(m->n_periods, 20);
    assert_int_equal(m->n_throttled, 5);
    assert_int_equal(m->throttled_us, 700);
    assert_int_equal(m->limit_kb, 1 << 20);
    assert_int_equal(m->used_kb, 512 << 10);
    assert_int_equal(m->n_limit_hits, 3);
    assert_int_equal(m->group_oom_kills, 1);
    /* What has changed since is seen, and the job may have ended. */
    put("/sys/fs/cgroup/pods/job/cpu.stat", "nr_periods 30\nnr_throttled 15\nthrottled_usec 900\n");
    put("/sys/fs/cgroup/pods/job/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/pods/job/memory.events", "max 3\noom_kill 2\n");
    stk_watch_read_machine(&sampler);
    assert_int_equal(m->quota_millicores, 500);
    assert_int_equal(m->n_throttled, 15);
    put("/sys/fs/cgroup/pods/job/memory.events", "max 9\noom_kill 5\n");
    assert_int_equal(stk_watch_sampler_last_kills(&sampler), 3);
    stk_watch_sampler_close(&sampler);
}

/* A container sees its own group as the root. */
static void test_container(void **state)
{
    (void)state;
    stk_watch_sampler sampler;
    put_no_limits();
    put("/proc/4711/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    put("/sys/fs/cgroup/cpu.stat", "nr_periods 7\nnr_throttled 6\nthrottled_usec 5\n");
    begin(&sampler);
    stk_watch_read_machine(&sampler);
    assert_int_equal(sampler.sample.machine.quota_millicores, 2000);
    assert_int_equal(sampler.sample.machine.n_throttled, 6);
    stk_watch_sampler_close(&sampler);
}

static void test_version_1(void **state)
{
    (void)state;
    stk_watch_sampler sampler;
    const stk_watch_machine *m = &sampler.sample.machine;
    put_no_limits();
    put("/proc/4711/cgroup", "5:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n0::/system\n");
    put("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/docker/x/cpu.stat", "nr_periods 20\nnr_throttled 5\nthrottled_time 700000\n");
    put("/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "104857600\n");
    put("/sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", "94371840\n");
    put("/sys/fs/cgroup/memory/docker/x/memory.stat", "cache 5\ntotal_cache 10485760\n");
    put("/sys/fs/cgroup/memory/docker/x/memory.failcnt", "12\n");
    put("/sys/fs/cgroup/memory/docker/x/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    begin(&sampler);
    stk_watch_read_machine(&sampler);
    assert_int_equal(m->quota_millicores, 500);
    assert_int_equal(m->throttled_us, 700);
    assert_int_equal(m->limit_kb, 100 << 10);
    assert_int_equal(m->used_kb, 80 << 10);
    assert_int_equal(m->n_limit_hits, 12);
    assert_int_equal(m->group_oom_kills, 4);
    stk_watch_sampler_close(&sampler);
}

/* Both at once: version 2 lies in a folder of its own, and the lesser limit holds. */
static void test_both(void **state)
{
    (void)state;
    stk_watch_sampler sampler;
    put_no_limits();
    put("/proc/4711/cgroup", "3:cpu:/x\n0::/y\n");
    put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/unified/y/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/unified/y/cpu.stat", "nr_periods 2\nnr_throttled 1\nthrottled_usec 5\n");
    begin(&sampler);
    stk_watch_read_machine(&sampler);
    assert_int_equal(sampler.sample.machine.quota_millicores, 1000);
    assert_int_equal(sampler.sample.machine.n_throttled, 1);
    stk_watch_sampler_close(&sampler);
}

/* Damaged files say nothing, and break nothing. */
static void test_damaged(void **state)
{
    (void)state;
    stk_watch_sampler sampler;
    put_no_limits();
    put("/proc/4711/cgroup", "::::\n0:\n0::\n0::/../../x\nmemory\n");
    put("/sys/fs/cgroup/cpu.max", "-5 0\n");
    put("/sys/fs/cgroup/memory.max", "many\n");
    begin(&sampler);
    stk_watch_read_machine(&sampler);
    assert_true(sampler.sample.machine.quota_millicores <= 0);
    assert_int_equal(sampler.sample.machine.limit_kb, -1);
    stk_watch_sampler_close(&sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_version_2, clear), cmocka_unit_test_teardown(test_container, clear),
        cmocka_unit_test_teardown(test_version_1, clear), cmocka_unit_test_teardown(test_both, clear),
        cmocka_unit_test_teardown(test_damaged, clear),
    };
    return cmocka_run_group_tests(tests, setup, finish);
}
