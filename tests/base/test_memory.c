/* Accounts: limits hold whoever charges them, blocks go back where they came from, turns; control groups from text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

static stk_memory_stats stats_of(const stk_memory *memory)
{
    stk_memory_stats stats;
    stk_memory_get_stats(memory, &stats);
    return stats;
}

static void a_limit_holds(void **state)
{
    (void)state;
    stk_memory *memory;
    assert_int_equal(stk_memory_new(1000, &memory), STK_OK);
    assert_int_equal(stk_memory_charge(memory, 600), STK_OK);
    assert_int_equal(stk_memory_charge(memory, 401), STK_NO_MEMORY);
    assert_int_equal(stk_memory_charge(memory, SIZE_MAX), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "memory limit of 1000 B, of which 600 B are in use: raise the limit "
                                             "(sizes have units, as in 100MiB)"));
    assert_int_equal(stk_memory_charge(memory, 400), STK_OK);
    assert_int_equal(stk_memory_left(memory), 0);
    stk_memory_release(memory, 1000);
    assert_int_equal(stats_of(memory).used_bytes, 0);
    assert_int_equal(stats_of(memory).peak_bytes, 1000);
    /* A limit that somebody gave does not grow by what was there before. */
    assert_int_equal(stk_memory_charge_held(memory, 1001), STK_NO_MEMORY);
    stk_memory_free(memory);
    /* Nobody means bytes who has said a million of them. */
    assert_int_equal(stk_memory_new((size_t)1 << 20, &memory), STK_OK);
    assert_int_equal(stk_memory_charge(memory, SIZE_MAX), STK_NO_MEMORY);
    assert_null(strstr(stk_error_text(), "units"));
    stk_memory_free(memory);
    assert_int_equal(stk_memory_new(0, &memory), STK_OK);
    size_t limit = stats_of(memory).limit_bytes;
    assert_true(limit >= 64 << 20);
    assert_int_equal(stk_memory_charge_held(memory, 5000), STK_OK);
    assert_int_equal(stats_of(memory).limit_bytes, limit + 5000);
    stk_memory_release_held(memory, 5000);
    assert_int_equal(stats_of(memory).limit_bytes, limit);
    stk_memory_free(memory);
}

static void blocks_are_charged_to_the_account_in_use(void **state)
{
    (void)state;
    stk_memory *memory;
    stk_block small = {0}, large = {0}, free_of_charge = {0};
    assert_non_null(stk_block_get(&free_of_charge, 5 << 20));
    assert_int_equal(stk_memory_new(2 << 20, &memory), STK_OK);
    assert_null(stk_memory_use(memory));
    assert_non_null(stk_block_get(&small, 100));
    assert_int_equal((uintptr_t)small.data % 64, 0);
    /* No room for a quarter more than asked for, but for what is asked. */
    assert_non_null(stk_block_get(&large, (2 << 20) - 4096));
    memset(large.data, 1, large.n_bytes);
    assert_true(stats_of(memory).used_bytes <= 2 << 20);
    assert_null(stk_block_get(&large, 3 << 20));
    assert_int_equal(large.n_bytes, 0);
    assert_int_equal(stats_of(memory).used_bytes, small.n_bytes);
    assert_ptr_equal(stk_memory_use(NULL), memory);
    stk_block_free(&small);
    stk_block_free(&free_of_charge);
    assert_int_equal(stats_of(memory).used_bytes, 0);
    stk_memory_free(memory);
}

static void pages_are_aligned(void **state)
{
    (void)state;
    for (size_t n = 1; n < 20 << 20; n = n * 3 + 1)
        for (size_t alignment = 64; alignment <= 2 << 20; alignment *= 32) {
            char *p = stk_pages_get(n, alignment);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % alignment, 0);
            p[0] = p[n - 1] = 1;
            stk_pages_free(p, n);
        }
    assert_null(stk_pages_get(SIZE_MAX - (1 << 20), 2 << 20));
}

static void trim_block(void *block)
{
    stk_block_free(block);
}

static void a_turn_frees_what_tenants_keep(void **state)
{
    (void)state;
    stk_memory *memory;
    stk_block kept[2] = {{0}}, wanted = {0};
    stk_memory_tenant tenant[2];
    assert_int_equal(stk_memory_new(1000, &memory), STK_OK);
    stk_memory_use(memory);
    for (int i = 0; i < 2; i++) {
        assert_non_null(stk_block_get(&kept[i], 300));
        tenant[i] = (stk_memory_tenant){.trim = trim_block, .user = &kept[i]};
        assert_int_equal(stk_memory_join(memory, &tenant[i]), STK_OK);
    }
    assert_null(stk_block_get(&wanted, 900));
    stk_memory_begin_turn(memory);
    assert_non_null(stk_block_get(&wanted, 900));
    stk_block_free(&wanted);
    stk_memory_end_turn(memory);
    for (int i = 0; i < 2; i++) {
        assert_null(kept[i].data);
        stk_memory_leave(memory, &tenant[i]);
    }
    stk_memory_use(NULL);
    assert_int_equal(stats_of(memory).n_turns, 1);
    stk_memory_free(memory);
}

/* --- control groups --- */

static const char root[] = "memory-groups";

static void put(const char *path, const char *text)
{
    char whole[300], folder[300];
    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    snprintf(folder, sizeof(folder), "%s", whole);
    *strrchr(folder, '/') = 0;
    assert_int_equal(stk_dir_make(folder), STK_OK);
    assert_int_equal(stk_file_write_durably(whole, text, strlen(text)), STK_OK);
}

static void groups_limit_by_the_least_on_the_path(void **state)
{
    (void)state;
    (void)stk_tree_remove(root);
    put("memory.max", "max\n");
    put("a/memory.max", "1000\n");
    put("a/memory.current", "900\n");
    put("a/memory.stat", "anon 300\ninactive_file 500\n");
    put("a/b/memory.max", "5000\n");
    put("a/b/memory.current", "100\n");
    put("memory/c/memory.limit_in_bytes", "3000\n");
    put("memory/c/memory.usage_in_bytes", "2000\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    /* Files that the group has in the cache count as free. */
    assert_int_equal(stk_cgroup_memory("0::/a/b\n", root, true), 600);
    assert_int_equal(stk_cgroup_memory("0::/a/b\n", root, false), 1000);
    assert_int_equal(stk_cgroup_memory("3:cpu:/x\n2:memory:/c\n0::/\n", root, true), 1000);
    assert_int_equal(stk_cgroup_memory("2:memory:/c\n", root, false), 3000);
    assert_true(stk_cgroup_memory("2:memory:/\n", root, false) == SIZE_MAX);
    assert_true(stk_cgroup_memory("0::/elsewhere\n", root, true) == SIZE_MAX);
    assert_true(stk_cgroup_memory("nonsense", root, true) == SIZE_MAX);
    assert_true(stk_cgroup_memory("", root, true) == SIZE_MAX);
    assert_int_equal(stk_tree_remove(root), STK_OK);
    assert_true(stk_machine_memory(true) > 0);
    assert_true(stk_machine_memory(true) <= stk_machine_memory(false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_holds),
        cmocka_unit_test(blocks_are_charged_to_the_account_in_use),
        cmocka_unit_test(pages_are_aligned),
        cmocka_unit_test(a_turn_frees_what_tenants_keep),
        cmocka_unit_test(groups_limit_by_the_least_on_the_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
