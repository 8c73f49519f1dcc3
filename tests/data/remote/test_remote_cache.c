/* Blocks of remote files on disk: limits as people write them, blocks that come back, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/remote/cache.h"
#include "data/remote/http.h"
#include "data/source/files.h"

static void limits(void **state)
{
    (void)state;
    uint64_t n;
    assert_true(stk_cache_parse_limit("1048576", &n) && n == 1 << 20);
    assert_true(stk_cache_parse_limit("500MiB", &n) && n == 500ULL << 20);
    assert_true(stk_cache_parse_limit("2TiB", &n) && n == 2ULL << 40);
    assert_true(stk_cache_parse_limit("0", &n) && n == 0);
    static const char *const bad[] = {"", "-1", "GiB", "5GB", "5 GiB", "99999999999999999999", "16777216TiB"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (stk_cache_parse_limit(bad[i], &n)) fail_msg("'%s' is taken for a size", bad[i]);
}

static void addresses(void **state)
{
    (void)state;
    assert_true(stk_is_remote("http://host/x") && stk_is_remote("https://host"));
    assert_false(stk_is_remote("ftp://host/x") || stk_is_remote("/http://x") || stk_is_remote("") ||
                 stk_is_remote("http"));
}

static void blocks_come_back(void **state)
{
    (void)state;
    uint8_t data[1000], got[1000] = {0};
    stk_block_place place = {{0xABCDEF, 1}, 7, sizeof(data)}, other = {{0xABCDEF, 1}, 8, sizeof(data)};
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    assert_false(stk_cache_read(&place, true, 0, 10, got));
    stk_cache_write(&place, data);
    assert_true(stk_cache_read(&place, true, 100, 300, got));
    assert_memory_equal(got, data + 100, 300);
    assert_true(stk_cache_read(&place, false, 0, 1000, got));
    assert_memory_equal(got, data, 1000);
    assert_false(stk_cache_read(&other, true, 0, 10, got));
    const char *path = in_folder("remote/0000000000abcdef0000000000000001/7");
    assert_true(stk_path_exists(path));
    /* One changed byte: refused, and gone. */
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fputc('x', f), 'x');
    assert_int_equal(fclose(f), 0);
    assert_false(stk_cache_read(&place, true, 0, 10, got));
    assert_false(stk_path_exists(path));
    /* Cut short. */
    stk_cache_write(&place, data);
    assert_int_equal(truncate(path, 500), 0);
    assert_false(stk_cache_read(&place, true, 0, 10, got));
    /* Another block's bytes under this name. */
    stk_cache_write(&other, data);
    assert_int_equal(rename(in_folder("remote/0000000000abcdef0000000000000001/8"), path), 0);
    assert_false(stk_cache_read(&place, true, 0, 10, got));
}

/* Each part of what a file is known by counts, and where one ends: a store's ETag cannot be made to stand for another's
 * file. */
static void other_files_have_other_blocks(void **state)
{
    (void)state;
    const stk_cache_key keys[] = {
        {"", "http://a/x", "\"1\"", "", 5},         {"", "http://b/x", "\"1\"", "", 5},
        {"", "http://a:81/x", "\"1\"", "", 5},      {"", "https://a/x", "\"1\"", "", 5},
        {"", "http://me@a/x", "\"1\"", "", 5},      {"", "http://a/x", "\"2\"", "", 5},
        {"", "http://a/x", "\"1\"", "", 6},         {"", "http://a/x", "\"1\"", "Mon", 5},
        {"", "http://a/x", "", "\"1\"", 5},         {"http", "://a/x", "\"1\"", "", 5},
        {"http://one me", "s3://b/k", "e", "", 5},  {"http://two me", "s3://b/k", "e", "", 5},
        {"http://one you", "s3://b/k", "e", "", 5}, {"", "http://a/x", "", "", 5},
    };
    enum { N = sizeof(keys) / sizeof(keys[0]) };
    uint64_t id[N][2], again[2];
    for (int i = 0; i < N; i++) {
        assert_int_equal(stk_cache_id(&keys[i], id[i]), STK_OK);
        assert_int_equal(stk_cache_id(&keys[i], again), STK_OK);
        assert_memory_equal(id[i], again, sizeof(again));
        for (int k = 0; k < i; k++)
            if (id[i][0] == id[k][0] || id[i][1] == id[k][1]) fail_msg("%d and %d are taken for one file", i, k);
    }
}

static int set_cache(void **state)
{
    return make_test_folder(state) == 0 && setenv("STOKER_CACHE", test_folder, 1) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(addresses),
        cmocka_unit_test(blocks_come_back),
        cmocka_unit_test(other_files_have_other_blocks),
    };
    return cmocka_run_group_tests(tests, set_cache, remove_test_folder);
}
