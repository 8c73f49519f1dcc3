/* What is written durably is synced before it gets its name; what nobody wants durable is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "faults/log_calls.h"

#include "base/file.h"
#include "base/new_file.h"
#include "base/new_folder.h"

static char root[64];

static const char *in_root(const char *name)
{
    static char path[2][128];
    static int i;
    i = (i + 1) % 2;
    snprintf(path[i], sizeof(path[i]), "%s/%s", root, name);
    return path[i];
}

/* The log must be: the call on a temporary name (call "": none), and that one renamed. */
static void expect_logged(const char *call, const char *name)
{
    char first[64], last[64];
    snprintf(first, sizeof(first), "%s .stoker-tmp-", call);
    snprintf(last, sizeof(last), " %s\n", name);
    const char *at = logged.text;
    if (call[0]) {
        assert_int_equal(strncmp(at, first, strlen(first)), 0);
        at = strchr(at, '\n') + 1;
    }
    assert_int_equal(strncmp(at, "rename .stoker-tmp-", 19), 0);
    const char *end = strstr(at, last);
    assert_non_null(end);
    assert_int_equal(end[strlen(last)], 0);
}

static void files(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        stk_new_file file;
        log_begin(root);
        assert_int_equal(stk_new_file_begin(&file, in_root("file")), STK_OK);
        assert_int_equal(stk_write_all(file.fd, file.path, "text", 4), STK_OK);
        assert_int_equal(stk_new_file_finish(&file, sync), STK_OK);
        stk_new_file_end(&file);
        expect_logged(sync ? "fsync" : "", "file");
    }
    log_begin(root);
    assert_int_equal(stk_file_write_durably(in_root("durable"), "text", 4), STK_OK);
    expect_logged("fsync", "durable");
    log_begin(root);
    assert_int_equal(stk_dir_sync(root), STK_OK);
    assert_string_equal(logged.text, "fsync .\n");
}

static void folders(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", "synced"};
    for (int sync = 0; sync < 2; sync++) {
        stk_new_folder folder;
        log_begin(root);
        assert_int_equal(stk_new_folder_begin(&folder, in_root(names[sync])), STK_OK);
        assert_int_equal(stk_new_folder_finish(&folder, sync), STK_OK);
        stk_new_folder_end(&folder, STK_OK);
        expect_logged(sync ? "syncfs" : "", names[sync]);
        assert_true(stk_path_is_dir(in_root(names[sync])));
    }
}

/* After a failure nothing is left of it, and the folders that were made for it are gone. */
static void nothing_is_left_after_a_failure(void **state)
{
    (void)state;
    stk_new_folder folder;
    stk_new_file file;
    stk_names names;
    assert_int_equal(stk_new_folder_begin(&folder, in_root("deep/er/folder")), STK_OK);
    assert_true(stk_path_is_dir(in_root("deep/er")));
    stk_new_folder_end(&folder, stk_fail(STK_IO, "no room"));
    assert_false(stk_path_exists(in_root("deep")));
    assert_int_equal(stk_new_file_begin(&file, in_root("other")), STK_OK);
    stk_new_file_end(&file);
    assert_int_equal(stk_dir_list(root, &names), STK_OK);
    for (size_t i = 0; i < names.n; i++)
        assert_null(strstr(names.name[i], "stoker-tmp"));
    stk_names_free(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files),
        cmocka_unit_test(folders),
        cmocka_unit_test(nothing_is_left_after_a_failure),
    };
    snprintf(root, sizeof(root), "/tmp/stoker-durable-XXXXXX");
    if (!mkdtemp(root)) return 1;
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    return stk_tree_remove(root) == STK_OK ? n_failed : 1;
}
