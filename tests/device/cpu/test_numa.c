/* Where threads go on machines with several memory nodes, as the files of a made /sys describe them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "device/cpu/threads/numa.h"

static char root[4096];

static void write_text(const char *name, const char *text)
{
    char path[5000], *slash;
    snprintf(path, sizeof(path), "%s/devices/system/node/%s", root, name);
    slash = strrchr(path, '/');
    *slash = 0;
    assert_int_equal(stk_dir_make(path), STK_OK);
    *slash = '/';
    assert_int_equal(stk_file_write_durably(path, text, strlen(text)), STK_OK);
}

/* Two sockets of four cores with two threads each, and a node of memory alone. */
static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "%s/test-numa-%ld", STK_BINARY_DIR, (long)getpid());
    write_text("online", "0-2\n");
    write_text("node0/cpulist", "0-3,8-11\n");
    write_text("node1/cpulist", "4-7,12-15\n");
    write_text("node2/cpulist", "\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return stk_tree_remove(root) == STK_OK ? 0 : 1;
}

static cpu_set_t cores(int first, int last)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = first; i <= last; i++)
        CPU_SET((size_t)i, &set);
    return set;
}

static void few_threads_stay_on_one_node(void **state)
{
    (void)state;
    stk_numa numa;
    cpu_set_t all = cores(0, 15);
    stk_numa_plan(root, &all, 5, 8, &numa);
    assert_int_equal(numa.n_nodes, 2);
    assert_int_equal(numa.home, 1); /* where the caller is */
    for (int i = 0; i < 8; i++)
        assert_int_equal(stk_numa_node_of(&numa, i), 1);
    stk_numa_plan(root, &all, -1, 8, &numa);
    assert_int_equal(numa.home, 0);
    /* Six cores of the one, two of the other: four threads fit on the first alone, wherever the caller is. */
    cpu_set_t some = cores(0, 5);
    stk_numa_plan(root, &some, 5, 4, &numa);
    assert_int_equal(numa.n_nodes, 2);
    assert_int_equal(numa.home, 0);
}

static void many_threads_are_shared_out(void **state)
{
    (void)state;
    stk_numa numa;
    cpu_set_t all = cores(0, 15), some = cores(0, 5);
    stk_numa_plan(root, &all, 0, 16, &numa);
    assert_int_equal(numa.home, -1);
    for (int i = 0; i < 16; i++)
        assert_int_equal(stk_numa_node_of(&numa, i), i / 8);
    stk_numa_plan(root, &some, 0, 6, &numa);
    assert_int_equal(numa.home, -1);
    for (int i = 0; i < 6; i++)
        assert_int_equal(stk_numa_node_of(&numa, i), i / 4);
    stk_numa_plan(root, &all, 0, 40, &numa); /* more than there are cores */
    assert_int_equal(stk_numa_node_of(&numa, 0), 0);
    assert_int_equal(stk_numa_node_of(&numa, 39), 1);
}

static void what_cannot_be_read_is_one_node(void **state)
{
    (void)state;
    stk_numa numa;
    cpu_set_t all = cores(0, 15), first = cores(0, 3);
    stk_numa_plan("/nowhere", &all, 0, 4, &numa);
    assert_int_equal(numa.n_nodes, 0);
    stk_numa_plan(root, &first, 0, 4, &numa);
    assert_int_equal(numa.n_nodes, 1);
    static const char *const wrong[] = {"", "x", "0-", "1-0", "0;1", "-1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        write_text("node1/cpulist", wrong[i]);
        stk_numa_plan(root, &all, 0, 4, &numa);
        assert_int_equal(numa.n_nodes, 1);
    }
    set_up(NULL);
}

/* Calls that the system may refuse. */
static void binding_does_no_harm(void **state)
{
    (void)state;
    stk_numa numa;
    cpu_set_t before, all = cores(0, 15);
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    stk_numa_plan(root, &all, 0, 16, &numa);
    size_t n = 1 << 20;
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    stk_numa_bind_memory(&numa, p, n);
    memset(p, 1, n);
    munmap(p, n);
    stk_numa_bind_thread(&numa, 0);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_threads_stay_on_one_node),
        cmocka_unit_test(many_threads_are_shared_out),
        cmocka_unit_test(what_cannot_be_read_is_one_node),
        cmocka_unit_test(binding_does_no_harm),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
