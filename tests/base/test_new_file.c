/* Files and folders that appear whole or not at all: no name that can be guessed, no link followed, nobody's file
 * removed; what a killed writer left is cleared by the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/new_folder.h"

static char root[3000];
static int rename_error; /* other than 0: what the kernel says of renameat2 */

long syscall(long number, ...);
long syscall(long number, ...)
{
    static long (*system_call)(long, ...);
    va_list list;
    long a[6];
    if (!system_call) system_call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number != SYS_renameat2 || !rename_error) return system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    errno = rename_error;
    return -1;
}

static const char *in_root(const char *name)
{
    static char path[4][4096];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof(path[i]), "%s/%s", root, name);
    return path[i];
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void expect_text(const char *path, const char *text)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, n;
    if (stk_file_read(path, &bytes, &capacity, &n) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(n, strlen(text));
    assert_memory_equal(bytes, text, n);
    free(bytes);
}

/* How many names in a folder are temporary ones of ours; the last one to name. */
static int count_temporary(const char *folder, char name[256])
{
    stk_names names;
    int n = 0;
    assert_int_equal(stk_dir_list(folder, &names), STK_OK);
    for (size_t i = 0; i < names.n; i++) {
        if (!stk_temporary_is_name(names.name[i])) continue;
        if (name) snprintf(name, 256, "%s", names.name[i]);
        n++;
    }
    stk_names_free(&names);
    return n;
}

/* Somebody lays links where a writer of guessable names would write. */
static void temporary_names_cannot_be_guessed(void **state)
{
    (void)state;
    char name[200], path[4096];
    put(in_root("precious"), "mine");
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "out.tmp-%ld-%d", (long)getpid(), i);
        assert_int_equal(symlink(in_root("precious"), in_root(name)), 0);
    }
    snprintf(path, sizeof(path), "%s", in_root("out"));
    assert_int_equal(stk_file_write_durably(path, "new", 3), STK_OK);
    expect_text(in_root("precious"), "mine");
    expect_text(path, "new");
    assert_int_equal(stk_file_write_durably(path, "newer", 5), STK_OK);
    expect_text(path, "newer");
    assert_int_equal(count_temporary(root, NULL), 0);
}

static void only_regular_files_are_replaced(void **state)
{
    (void)state;
    struct stat info;
    assert_int_equal(mkfifo(in_root("pipe"), 0600), 0);
    assert_int_equal(stk_file_write_durably(in_root("pipe"), "x", 1), STK_IO);
    assert_non_null(strstr(stk_error_text(), "no regular file"));
    assert_int_equal(stat(in_root("pipe"), &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(stk_dir_make(in_root("folder")), STK_OK);
    assert_int_equal(stk_file_write_durably(in_root("folder"), "x", 1), STK_IO);
    assert_non_null(strstr(stk_error_text(), "it is a folder"));
    assert_int_equal(stk_file_write_durably(in_root("nowhere/x"), "x", 1), STK_NOT_FOUND);
    assert_int_equal(count_temporary(root, NULL), 0);
}

/* In a process that may not read it, whoever runs the test. */
static void a_file_that_cannot_be_read_is_told_so(void **state)
{
    (void)state;
    int end;
    put(in_root("secret"), "mine");
    assert_int_equal(chmod(in_root("secret"), 0), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (chdir(root) < 0 || (geteuid() == 0 && seteuid(65534) < 0)) _exit(77);
        bool told = stk_new_file_check_kind("secret", "a PNG file", 0, "P", 1) == STK_IO &&
                    strstr(stk_error_text(), "cannot be read (permission denied)");
        _exit(told ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    if (WIFEXITED(end) && WEXITSTATUS(end) == 77) skip();
    assert_int_equal(end, 0);
}

static void a_name_is_a_mark(void **state)
{
    (void)state;
    char name[256], path[4096], *digit;
    stk_new_file file;
    snprintf(path, sizeof(path), "%s", in_root("marked"));
    assert_int_equal(stk_new_file_begin(&file, path), STK_OK);
    assert_int_equal(count_temporary(root, name), 1);
    stk_new_file_end(&file);
    assert_int_equal(count_temporary(root, NULL), 0);
    assert_false(stk_path_exists(path));
    assert_true(stk_temporary_is_name(name));
    for (digit = name + 12; *digit; digit++) {
        char kept = *digit;
        *digit = kept == '0' ? '1' : '0';
        assert_false(stk_temporary_is_name(name));
        *digit = kept;
    }
    assert_false(stk_temporary_is_name(".stoker-tmp-"));
    assert_false(stk_temporary_is_name("notes.tmp"));
}

/* A child begins a file and a folder, and is killed in the midst of it. */
static void leave_behind(const char *file_path, const char *folder_path)
{
    int ready[2], end;
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        stk_new_file file;
        stk_new_folder folder;
        bool ok = stk_new_file_begin(&file, file_path) == STK_OK && write(file.fd, "half", 4) == 4 &&
                  stk_new_folder_begin(&folder, folder_path) == STK_OK && stk_dir_make(folder.folder) == STK_OK &&
                  write(ready[1], "x", 1) == 1;
        if (ok) pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    /* A living one is left alone, and its folder is taken. */
    stk_new_folder folder;
    assert_int_equal(stk_new_folder_begin(&folder, folder_path), STK_BUSY);
    assert_non_null(strstr(stk_error_text(), "another process is writing"));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &end, 0), child);
    close(ready[0]);
    close(ready[1]);
}

/* In a process of its own, since each looks at a folder once. */
static int write_in_child(const char *path)
{
    int end;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(stk_file_write_durably(path, "whole", 5) == STK_OK ? 0 : 1);
    assert_int_equal(waitpid(child, &end, 0), child);
    return end;
}

static void leftovers_of_killed_writers_go_and_nothing_else(void **state)
{
    (void)state;
    char name[256], theirs[4096], of_elsewhere[4096];
    assert_int_equal(stk_dir_make(in_root("place/out.tmp")), STK_OK);
    put(in_root("place/out.tmp/photo"), "mine");
    put(in_root("place/out.part"), "mine");
    leave_behind(in_root("place/file"), in_root("place/out"));
    assert_int_equal(count_temporary(in_root("place"), name), 2);
    /* The name with another sum, and that of another machine, whose locks may not be seen here. */
    name[strlen(name) - 1] ^= 1;
    snprintf(theirs, sizeof(theirs), "%s/%s", in_root("place"), name);
    put(theirs, "mine");
    snprintf(of_elsewhere, sizeof(of_elsewhere), "%s/.stoker-tmp-00000000-%s", in_root("place"), name + 21);
    put(of_elsewhere, "mine");
    assert_int_equal(write_in_child(in_root("place/file")), 0);
    assert_int_equal(count_temporary(in_root("place"), NULL), 0);
    expect_text(in_root("place/file"), "whole");
    expect_text(in_root("place/out.tmp/photo"), "mine");
    expect_text(in_root("place/out.part"), "mine");
    expect_text(theirs, "mine");
    expect_text(of_elsewhere, "mine");
}

/* Who may remove any file does not remove another user's. Only root can give files away, and test it. */
static void a_leftover_of_another_user_stays(void **state)
{
    (void)state;
    char name[256];
    if (geteuid() != 0) skip();
    assert_int_equal(stk_dir_make(in_root("shared")), STK_OK);
    leave_behind(in_root("shared/file"), in_root("shared/out"));
    assert_int_equal(count_temporary(in_root("shared"), name), 2);
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", in_root("shared"), name);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(write_in_child(in_root("shared/file")), 0);
    assert_int_equal(count_temporary(in_root("shared"), NULL), 1);
    assert_true(stk_path_exists(path));
}

/* What lies at OUT.tmp is somebody's. */
static void a_new_folder_removes_nobodys_files(void **state)
{
    (void)state;
    stk_new_folder folder;
    char path[4096];
    assert_int_equal(stk_dir_make(in_root("photos.tmp")), STK_OK);
    put(in_root("photos.tmp/cat.jpg"), "mine");
    snprintf(path, sizeof(path), "%s/", in_root("photos"));
    assert_int_equal(stk_new_folder_begin(&folder, path), STK_OK);
    assert_int_equal(stk_new_folder_finish(&folder, true), STK_OK);
    stk_new_folder_end(&folder, STK_OK);
    assert_true(stk_path_is_dir(in_root("photos")));
    expect_text(in_root("photos.tmp/cat.jpg"), "mine");
    assert_int_equal(stk_new_folder_begin(&folder, in_root("photos.tmp")), STK_BUSY);
    stk_new_folder_end(&folder, STK_BUSY);
    expect_text(in_root("photos.tmp/cat.jpg"), "mine");
}

static void folders_of_what_failed_are_taken_back(void **state)
{
    (void)state;
    size_t n_there;
    stk_new_folder folder;
    char path[4096];
    snprintf(path, sizeof(path), "%s", in_root("a/b//c/file"));
    assert_int_equal(stk_dir_make_for(path, &n_there), STK_OK);
    assert_int_equal(n_there, strlen(root));
    stk_dir_take_back_for(path, n_there);
    assert_false(stk_path_exists(in_root("a")));
    assert_true(stk_path_is_dir(root));
    /* What was there stays, and so does what holds something by now. */
    assert_int_equal(stk_dir_make(in_root("a")), STK_OK);
    assert_int_equal(stk_dir_make_new(in_root("a/b/c/"), &n_there), STK_OK);
    put(in_root("a/b/note"), "mine");
    stk_dir_take_back(in_root("a/b/c/"), n_there);
    assert_false(stk_path_exists(in_root("a/b/c")));
    expect_text(in_root("a/b/note"), "mine");
    assert_int_equal(stk_dir_make_new(in_root("a/b"), &n_there), STK_OK);
    stk_dir_take_back(in_root("a/b"), n_there);
    assert_true(stk_path_is_dir(in_root("a/b")));
    /* A name that no folder can have was not made; the ones above it were. */
    snprintf(path, sizeof(path), "%s/%0300d", in_root("long"), 0);
    assert_int_equal(stk_dir_make(in_root("long")), STK_OK);
    stk_dir_take_back(path, strlen(root));
    assert_false(stk_path_exists(in_root("long")));
    /* A folder in the way of which a file is: nothing is left over. */
    assert_int_equal(stk_dir_make_new(in_root("a/b/note/x"), &n_there), STK_NOT_FOUND);
    assert_int_equal(stk_new_folder_begin(&folder, in_root("deep/er/out")), STK_OK);
    stk_new_folder_end(&folder, STK_CORRUPT);
    assert_false(stk_path_exists(in_root("deep")));
}

/* Out of the way, under a name that nobody has; a failure is told. */
static void aside_is_a_free_name(void **state)
{
    (void)state;
    char out[4096];
    put(in_root("aside"), "first");
    for (int i = 0; i < 3; i++) {
        put(in_root("away"), "it");
        assert_int_equal(stk_rename_aside(in_root("away"), in_root("aside"), out), STK_OK);
        assert_string_equal(strrchr(out, '/'), i == 0 ? "/aside-2" : i == 1 ? "/aside-3" : "/aside-4");
        expect_text(out, "it");
    }
    expect_text(in_root("aside"), "first");
    assert_int_equal(stk_rename_aside(in_root("nothing"), in_root("aside"), out), STK_IO);
    assert_non_null(strstr(stk_error_text(), "cannot rename"));
}

/* Old kernels, and file systems that others wrote. */
static void renames_where_the_kernel_cannot_refuse(void **state)
{
    (void)state;
    static const int errors[] = {EINVAL, ENOSYS, EACCES};
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "to-%d", i);
        put(in_root("from"), "it");
        rename_error = errors[i];
        stk_status first = stk_rename_new(in_root("from"), in_root(name));
        if (i == 2) {
            rename_error = 0;
            assert_int_equal(first, STK_IO);
            return;
        }
        put(in_root("from"), "another");
        stk_status second = stk_rename_new(in_root("from"), in_root(name));
        rename_error = 0;
        assert_int_equal(first, STK_OK);
        assert_int_equal(second, STK_BUSY);
        expect_text(in_root(name), "it");
    }
}

static int begin(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "%s/test-new-file-%ld", STK_BINARY_DIR, (long)getpid());
    return stk_tree_remove(root) != STK_OK || stk_dir_make(root) != STK_OK;
}

static int end(void **state)
{
    (void)state;
    return stk_tree_remove(root) == STK_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leftovers_of_killed_writers_go_and_nothing_else),
        cmocka_unit_test(a_leftover_of_another_user_stays),
        cmocka_unit_test(temporary_names_cannot_be_guessed),
        cmocka_unit_test(only_regular_files_are_replaced),
        cmocka_unit_test(a_file_that_cannot_be_read_is_told_so),
        cmocka_unit_test(a_name_is_a_mark),
        cmocka_unit_test(a_new_folder_removes_nobodys_files),
        cmocka_unit_test(folders_of_what_failed_are_taken_back),
        cmocka_unit_test(aside_is_a_free_name),
        cmocka_unit_test(renames_where_the_kernel_cannot_refuse),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
