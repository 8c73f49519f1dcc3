/* Answers of scans that are kept: used again, asked again where a file has changed or the question has, and where what
 * was kept is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/dataset/dataset.h"
#include "data/source/files.h"
#include "stoker/data/filter.h"
#include "stoker/data/sources.h"

enum { N_FILES = 1200 };

/* File i has i % 50 bytes. */
static int make_files(void **state)
{
    char name[64], bytes[64] = {0};
    if (make_test_folder(state) != 0) return -1;
    setenv("STOKER_CACHE", in_folder("cache"), 1);
    for (int i = 0; i < N_FILES; i++) {
        snprintf(name, sizeof(name), "f/%04d.jpg", i);
        write_file(name, bytes, (size_t)i % 50);
    }
    return 0;
}

/* How many files have at least N bytes; how: a part of what the scan reports. */
static int64_t count(int64_t least, const char *how)
{
    const char *path = in_folder("f");
    stk_filter_rule rule = stk_filter_rule_default();
    rule.field = "image", rule.least_bytes = least;
    stk_dataset *dataset = stk_dataset_files(&path, 1, STK_LABELS_NONE, NULL);
    stk_dataset_filter_by(dataset, &rule);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    bool kept = strstr(dataset->scan[0], "kept from before"), again = strstr(dataset->scan[0], "out of date");
    assert_string_equal(kept ? "kept" : again ? "again" : "asked", how);
    int64_t n = stk_dataset_count(dataset);
    stk_dataset_free(dataset);
    return n;
}

static void answers_are_kept(void **state)
{
    (void)state;
    char bytes[64] = {0};
    assert_int_equal(count(25, "asked"), N_FILES / 2);
    assert_int_equal(count(25, "kept"), N_FILES / 2);
    assert_int_equal(count(40, "asked"), N_FILES / 5);
    assert_int_equal(count(25, "kept"), N_FILES / 2);
    /* A file has grown. */
    write_file("f/0700.jpg", bytes, 30);
    assert_int_equal(count(25, "again"), N_FILES / 2 + 1);
    assert_int_equal(count(25, "kept"), N_FILES / 2 + 1);
}

static void damage_is_found(void **state)
{
    (void)state;
    stk_names names;
    int n_damaged = 0;
    count(25, "kept");
    assert_int_equal(stk_dir_list(in_folder("cache"), &names), STK_OK);
    for (size_t i = 0; i < names.n; i++) {
        char name[300];
        uint8_t *bytes = NULL;
        size_t capacity = 0, n;
        if (strncmp(names.name[i], "survey-", 7) != 0) continue;
        snprintf(name, sizeof(name), "cache/%s", names.name[i]);
        assert_int_equal(stk_file_read(in_folder(name), &bytes, &capacity, &n), STK_OK);
        bytes[100] ^= 1;
        write_file(name, bytes, n);
        free(bytes);
        n_damaged++;
    }
    stk_names_free(&names);
    assert_int_equal(n_damaged, 2);
    assert_int_equal(count(25, "again"), N_FILES / 2 + 1);
    assert_int_equal(count(25, "kept"), N_FILES / 2 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_are_kept), cmocka_unit_test(damage_is_found)};
    return cmocka_run_group_tests(tests, make_files, remove_test_folder);
}
