/* A folder of images: which files count, in which order; records, names, and folders that cannot be right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "data/source/files.h"

static void touch(const char *name)
{
    write_file(name, name, strlen(name));
}

static void expect_failure(const char *name, stk_status want, const char *text)
{
    stk_source *source;
    assert_int_equal(stk_source_open_images(in_folder(name), &source), want);
    assert_string_equal(strstr(stk_error_text(), text) ? "" : stk_error_text(), "");
    assert_string_equal(strstr(stk_error_text(), name) ? "" : stk_error_text(), "");
}

static void records_are_sorted(void **state)
{
    (void)state;
    static const char *const sorted[] = {"good/Zebra/1.jpg", "good/cat/10.jpg",    "good/cat/2.PNG",
                                         "good/cat/b.JpEg",  "good/dog.jpg/1.png", "good/dog/x.y.jpg"};
    static const int32_t labels[] = {0, 1, 1, 1, 2 + 1, 2};
    touch("good/cat/b.JpEg");
    touch("good/cat/10.jpg");
    touch("good/cat/2.PNG");
    touch("good/cat/.hidden.jpg");
    touch("good/cat/notes.txt");
    touch("good/cat/jpg");
    touch("good/dog/x.y.jpg");
    touch("good/dog.jpg/1.png"); /* a class may be called so */
    touch("good/Zebra/1.jpg");
    touch("good/.cache/1.jpg");
    touch("good/stray.jpg");
    touch("good/README");
    stk_source *source;
    assert_int_equal(stk_source_open_images(in_folder("good"), &source), STK_OK);
    assert_int_equal(source->n_records, 6);
    assert_int_equal(source->n_classes, 4);
    assert_string_equal(source->class_names[0], "Zebra");
    assert_string_equal(source->class_names[1], "cat");
    assert_string_equal(source->class_names[2], "dog");
    assert_string_equal(source->class_names[3], "dog.jpg");
    assert_string_equal(source->field[0].name, "image");
    assert_int_equal(source->field[0].type.kind, STK_FIELD_ENCODED);
    assert_string_equal(source->field[1].name, "label");
    stk_scratch scratch[STK_MAX_FIELDS] = {{0}};
    for (int i = 0; i < 6; i++) {
        /* "dog" comes before "dog.jpg", though '/' comes after '.'. */
        int k = i == 4 ? 5 : i == 5 ? 4 : i;
        stk_item item[STK_MAX_FIELDS];
        char name[512], want[600];
        assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
        assert_int_equal(item[0].n_bytes, strlen(sorted[k]));
        assert_memory_equal(item[0].data, sorted[k], item[0].n_bytes);
        assert_int_equal(*(int32_t *)item[1].data, labels[k]);
        source->class->name_record(source, i, name, sizeof(name));
        snprintf(want, sizeof(want), "'%s'", in_folder(sorted[k]));
        assert_string_equal(name, want);
    }
    free_scratch(scratch);
    source->class->close(source);
}

static void wrong_folders_are_named(void **state)
{
    (void)state;
    expect_failure("absent", STK_NOT_FOUND, "no such file");
    touch("file");
    expect_failure("file", STK_NOT_FOUND, "cannot open folder");
    touch("flat/1.jpg");
    touch("flat/2.jpg");
    expect_failure("flat", STK_INVALID, "has no sub-folder");
    touch("partly/full/1.jpg");
    touch("partly/empty/notes.txt");
    expect_failure("partly/empty", STK_INVALID, "has no sub-folder");
    stk_source *source;
    assert_int_equal(stk_source_open_images(in_folder("partly"), &source), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "partly/empty' holds no JPEG, PNG or WebP file"));
    if (geteuid() == 0) return; /* root reads everything */
    touch("locked/cat/1.jpg");
    assert_int_equal(chmod(in_folder("locked/cat"), 0), 0);
    assert_int_equal(stk_source_open_images(in_folder("locked"), &source), STK_IO);
    assert_non_null(strstr(stk_error_text(), "locked/cat"));
    assert_int_equal(chmod(in_folder("locked/cat"), 0700), 0);
}

/* Records that go away, or were never files, are errors that name them; nothing hangs. */
static void records_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    touch("bad/a/1.jpg");
    touch("bad/a/2.jpg/inside");
    assert_int_equal(mkfifo(in_folder("bad/a/3.jpg"), 0600), 0);
    touch("bad/a/4.jpg");
    stk_source *source;
    assert_int_equal(stk_source_open_images(in_folder("bad"), &source), STK_OK);
    assert_int_equal(source->n_records, 4);
    assert_int_equal(unlink(in_folder("bad/a/1.jpg")), 0);
    write_file("bad/a/4.jpg", "", 0);
    stk_scratch scratch[STK_MAX_FIELDS] = {{0}};
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(source->class->read(source, 0, scratch, item), STK_NOT_FOUND);
    assert_non_null(strstr(stk_error_text(), "bad/a/1.jpg': no such file"));
    assert_int_equal(source->class->read(source, 1, scratch, item), STK_IO);
    assert_non_null(strstr(stk_error_text(), "bad/a/2.jpg': not a regular file"));
    assert_int_equal(source->class->read(source, 2, scratch, item), STK_IO);
    assert_non_null(strstr(stk_error_text(), "bad/a/3.jpg': not a regular file"));
    assert_int_equal(source->class->read(source, 3, scratch, item), STK_OK);
    assert_int_equal(item[0].n_bytes, 0);
    free_scratch(scratch);
    source->class->close(source);
}

static void many_files_are_listed_fast(void **state)
{
    (void)state;
    enum { N = 20000 };
    for (int i = 0; i < N; i++) {
        char name[64];
        snprintf(name, sizeof(name), "many/class%d/%06d.jpg", i % 10, i);
        if (i < 10) touch(name);
        int fd = i < 10 ? -1 : creat(in_folder(name), 0600);
        if (fd >= 0) close(fd);
    }
    stk_source *source;
    int64_t start = stk_clock_ns();
    assert_int_equal(stk_source_open_images(in_folder("many"), &source), STK_OK);
    double ms = (double)(stk_clock_ns() - start) / 1e6;
    assert_int_equal(source->n_records, N);
    print_message("%d files in %.0f ms\n", N, ms);
    assert_true(ms < 2000); /* about 15; the bound only catches a call of stat for each file and the like */
    source->class->close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_sorted),
        cmocka_unit_test(wrong_folders_are_named),
        cmocka_unit_test(records_that_cannot_be_read_are_named),
        cmocka_unit_test(many_files_are_listed_fast),
    };
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
