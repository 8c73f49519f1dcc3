/* How many cores a process may use: quotas of control groups in made-up trees, and affinity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/file.h"
#include "base/thread.h"

static char root[1024];

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[2048];
    snprintf(path, sizeof(path), "%s%s", root, folder);
    assert_int_equal(stk_dir_make(path), STK_OK);
    snprintf(path, sizeof(path), "%s%s/%s", root, folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "%s/test-cores-%ld", STK_BINARY_DIR, (long)getpid());
    return stk_dir_make(root) == STK_OK ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return stk_tree_remove(root) == STK_OK ? 0 : -1;
}

static void expect_cores(const char *groups, double want)
{
    double got = stk_cgroup_cores(groups, root);
    if (got != want) fail_msg("%g cores for '%s', not %g", got, groups, want);
}

static void the_least_quota_on_the_path_counts(void **state)
{
    (void)state;
    write_file("/job", "cpu.max", "150000 100000\n");
    write_file("/job/inner", "cpu.max", "max 100000\n");
    write_file("/job/small", "cpu.max", "50000 100000\n");
    write_file("/other", "cpu.max", "800000 100000\n");
    expect_cores("0::/job\n", 1.5);
    expect_cores("0::/job/inner\n", 1.5); /* That of the group around it. */
    expect_cores("0::/job/small\n", 0.5);
    expect_cores("0::/other\n", 8);
    expect_cores("0::/gone/away\n", 1e9);
    expect_cores("0::/\n", 1e9);
    expect_cores("", 1e9);
    expect_cores("nonsense\n:\n::\n", 1e9);
    write_file("", "cpu.max", "400000 100000\n"); /* As a container sees its own. */
    expect_cores("0::/\n", 4);
    expect_cores("0::/../..\n", 4);
    expect_cores("0::/other\n", 4);
}

static void version_one_counts_too(void **state)
{
    (void)state;
    write_file("/cpu/box", "cpu.cfs_quota_us", "300000\n");
    write_file("/cpu/box", "cpu.cfs_period_us", "100000\n");
    write_file("/cpu/free", "cpu.cfs_quota_us", "-1\n");
    write_file("/cpu/free", "cpu.cfs_period_us", "100000\n");
    expect_cores("5:memory:/box\n4:cpu,cpuacct:/box\n", 3);
    expect_cores("4:cpuacct,cpu:/box\n", 3);
    expect_cores("4:cpuset:/box\n", 1e9);
    expect_cores("4:cpu:/free\n", 1e9);
}

static void affinity_counts(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_true(stk_n_cores() >= 1 && stk_n_cores() <= CPU_COUNT(&before));
    int i = 0;
    while (!CPU_ISSET(i, &before))
        i++;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(stk_n_cores(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* Processes alike share what their parent has; one that is bound has that. */
static void ranks_share_the_cores_of_a_host(void **state)
{
    (void)state;
    int all = stk_n_cores();
    assert_int_equal(stk_n_cores_of(1), all);
    for (int n = 2; n <= 2 * all; n++) {
        int share = stk_n_cores_of(n);
        assert_true(share >= 1 && share <= stk_n_cores_of(n - 1));
    }
    assert_int_equal(stk_n_cores_of(1000000), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_quota_on_the_path_counts),
        cmocka_unit_test(version_one_counts_too),
        cmocka_unit_test(affinity_counts),
        cmocka_unit_test(ranks_share_the_cores_of_a_host),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
