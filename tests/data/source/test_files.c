/* Lists of files: what patterns and folders stand for, in which order; labels by folder and from a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/source/files.h"
#include "data/source/records.h"

static stk_scratch scratch[STK_MAX_FIELDS];
static const char *const files[] = {"a/2.jpg", "a/10.jpg", "b/x,y.png", "B/z.JPEG"};
enum { N_FILES = 4 };

static int set_up(void **state)
{
    if (make_test_folder(state) != 0) return -1;
    for (int i = 0; i < N_FILES; i++) {
        char name[64];
        snprintf(name, sizeof(name), "p/%s", files[i]);
        write_file(name, files[i], strlen(files[i]));
    }
    write_file("p/a/notes.txt", "x", 1);
    write_file("p/a/.hidden.jpg", "x", 1);
    return 0;
}

static int tear_down(void **state)
{
    free_scratch(scratch);
    return remove_test_folder(state);
}

static stk_source *open_one(const char *name, stk_labels labels, const char *labels_path)
{
    stk_source *source;
    const char *path = in_folder(name);
    stk_status status = stk_source_open_files(&path, 1, labels, labels_path, &source);
    assert_string_equal(status == STK_OK ? "" : stk_error_text(), "");
    return source;
}

static void expect(const stk_source *source, const char *const *names, const int32_t *labels, int n)
{
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(source->n_records, n);
    assert_int_equal(source->n_fields, labels ? 2 : 1);
    for (int i = 0; i < n; i++) {
        char name[512];
        assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
        assert_int_equal(item[0].n_bytes, strlen(names[i]));
        assert_memory_equal(item[0].data, names[i], strlen(names[i]));
        source->class->name_record(source, i, name, sizeof(name));
        assert_non_null(strstr(name, names[i]));
        if (labels) assert_int_equal(*(const int32_t *)item[1].data, labels[i]);
    }
}

static void folder_pattern_and_list(void **state)
{
    (void)state;
    static const char *const all[] = {"B/z.JPEG", "a/10.jpg", "a/2.jpg", "b/x,y.png"};
    stk_source *source = open_one("p", STK_LABELS_NONE, NULL);
    expect(source, all, NULL, 4);
    source->class->close(source);
    source = open_one("p/[ab]/*.*g", STK_LABELS_NONE, NULL);
    expect(source, all + 1, NULL, 3);
    source->class->close(source);
    char list[3][512];
    for (int i = 0; i < 3; i++)
        snprintf(list[i], sizeof(list[i]), "%s/p/%s", test_folder, i == 0 ? "b/x,y.png" : i == 1 ? "a/2.jpg" : "a");
    const char *paths[] = {list[0], list[1], list[1], list[2]};
    assert_int_equal(stk_source_open_files(paths, 3, STK_LABELS_NONE, NULL, &source), STK_OK);
    expect(source, all + 1 + 1, NULL, 2); /* each once */
    source->class->close(source);
}

static void labels_by_folder(void **state)
{
    (void)state;
    static const char *const all[] = {"B/z.JPEG", "a/10.jpg", "a/2.jpg", "b/x,y.png"};
    stk_source *source = open_one("p", STK_LABELS_BY_FOLDER, NULL);
    expect(source, all, (int32_t[]){0, 1, 1, 2}, 4);
    assert_int_equal(source->n_classes, 3);
    assert_string_equal(source->class_names[0], "B");
    assert_string_equal(source->class_names[2], "b");
    source->class->close(source);
}

static void labels_from_a_file(void **state)
{
    (void)state;
    static const char *const all[] = {"B/z.JPEG", "a/10.jpg", "a/2.jpg", "b/x,y.png"};
    static const char numbers[] =
        "file,label\n\n# a comment\nz.JPEG, 7\r\na/10.jpg,3\n10.jpg,9\n2.jpg\t0\nb/x,y.png,12\nq,x";
    static const char words[] = "z.JPEG\tdog\n10.jpg\tcat\n2.jpg\tdog\nx,y.png\t5";
    char path[512];
    snprintf(path, sizeof(path), "%s", write_file("labels.csv", numbers, strlen(numbers)));
    stk_source *source = open_one("p", STK_LABELS_FROM_FILE, path);
    expect(source, all, (int32_t[]){7, 3, 0, 12}, 4); /* the longer name counts */
    assert_null(source->class_names);
    source->class->close(source);
    snprintf(path, sizeof(path), "%s", write_file("labels.tsv", words, strlen(words)));
    source = open_one("p", STK_LABELS_FROM_FILE, path);
    expect(source, all, (int32_t[]){2, 1, 2, 0}, 4);
    assert_string_equal(source->class_names[1], "cat");
    source->class->close(source);
}

static void expect_failure(const char *name, const char *labels, stk_status want, const char *text)
{
    stk_source *source;
    char path[512];
    const char *given = in_folder(name);
    if (labels) snprintf(path, sizeof(path), "%s", write_file("bad.csv", labels, strlen(labels)));
    assert_int_equal(stk_source_open_files(&given, 1, labels ? STK_LABELS_FROM_FILE : STK_LABELS_NONE,
                                           labels ? path : NULL, &source),
                     want);
    assert_string_equal(strstr(stk_error_text(), text) ? "" : stk_error_text(), "");
}

static void what_cannot_be_is_named(void **state)
{
    (void)state;
    expect_failure("absent", NULL, STK_NOT_FOUND, "there is no file or folder '");
    expect_failure("p/*.gif", NULL, STK_NOT_FOUND, "no file matches '");
    write_file("empty/x.txt", "x", 1);
    expect_failure("empty", NULL, STK_INVALID, "holds no JPEG, PNG or WebP file");
    expect_failure("p/a", "2.jpg,1\n", STK_NOT_FOUND, "bad.csv': it has no label for '");
    expect_failure("p/a", "2.jpg,1\n10.jpg,2\n2.jpg,3\n", STK_CORRUPT, "lines 1 and 3 give '2.jpg' two labels");
    expect_failure("p/a", "2.jpg 1\n", STK_CORRUPT, "line 1 has no tab and no comma");
    expect_failure("p/a", "2.jpg,1\n10.jpg,\n", STK_CORRUPT, "line 2 has no label");
    stk_source *source;
    const char *path = in_folder("p");
    assert_int_equal(stk_source_open_files(&path, 1, STK_LABELS_FROM_FILE, NULL, &source), STK_INVALID);
    assert_int_equal(stk_source_open_files(NULL, 0, STK_LABELS_NONE, NULL, &source), STK_INVALID);
    stk_item item[STK_MAX_FIELDS];
    source = open_one("p/a", STK_LABELS_NONE, NULL);
    assert_int_equal(unlink(in_folder("p/a/2.jpg")), 0);
    assert_int_equal(source->class->read(source, 1, scratch, item), STK_NOT_FOUND);
    source->class->close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_pattern_and_list),
        cmocka_unit_test(labels_by_folder),
        cmocka_unit_test(labels_from_a_file),
        cmocka_unit_test(what_cannot_be_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
