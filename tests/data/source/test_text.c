/* Lines and whole files as records, and tokens made of them: what each sample is, over several files and through a
 * loader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zlib.h>

#include "data/common/side_file.h"
#include "data/source/files.h"
#include "data/source/text_records.h"
#include "data/stage/stage.h"
#include "stoker/data/loader.h"
#include "stoker/data/ragged.h"

static stk_scratch scratch[STK_MAX_FIELDS];

static stk_source *open_text(const char *path, stk_text_config config)
{
    stk_source *source = NULL;
    if (stk_source_open_text(&path, 1, &config, &source) != STK_OK) fail_msg("%s", stk_error_text());
    return source;
}

static void check_text(const stk_source *source, int64_t i, const char *want)
{
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
    assert_int_equal(item[0].n_bytes, strlen(want));
    assert_int_equal(item[0].type.desc.shape.dim[0], strlen(want));
    assert_memory_equal(item[0].data, want, strlen(want));
}

static void lines_of_files(void **state)
{
    (void)state;
    static const char *const want[] = {"first", "", "third\tx", "last", "other file", "\r", "end"};
    static const char a[] = "\xef\xbb\xbf"
                            "first\n\nthird\tx\r\nlast",
                      b[] = "other file\n\r\r\nend\n";
    write_file("l/a.txt", a, sizeof(a) - 1);
    write_file("l/b.txt", b, sizeof(b) - 1);
    write_file("l/c.txt", "", 0);
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        stk_source *source = open_text(in_folder("l/*.txt"), (stk_text_config){.in_memory = in_memory});
        assert_int_equal(source->n_records, 7);
        for (int i = 0; i < 7; i++)
            check_text(source, i, want[i]);
        char name[256];
        source->class->name_record(source, 5, name, sizeof(name));
        assert_non_null(strstr(name, "b.txt', line 2"));
        assert_int_equal(source->class->file_of(source, 4), 1);
        source->class->close(source);
        source = open_text(in_folder("l/*.txt"), (stk_text_config){.skip = 1, .in_memory = in_memory});
        assert_int_equal(source->n_records, 5);
        check_text(source, 0, "");
        check_text(source, 3, "\r");
        source->class->name_record(source, 3, name, sizeof(name));
        assert_non_null(strstr(name, "b.txt', line 2"));
        source->class->close(source);
    }
}

static void whole_files_with_labels(void **state)
{
    (void)state;
    write_file("w/pos/1.txt", "good\nfilm\n", 10);
    write_file("w/neg/1.txt", "bad", 3);
    write_file("w/neg/2.txt", "", 0);
    stk_source *source = open_text(in_folder("w/*/*.txt"), (stk_text_config){.whole = true, .by_folder = true});
    assert_int_equal(source->n_records, 3);
    assert_int_equal(source->n_classes, 2);
    assert_string_equal(source->class_names[1], "pos");
    check_text(source, 0, "bad");
    check_text(source, 1, "");
    check_text(source, 2, "good\nfilm\n");
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(source->class->read(source, 2, scratch, item), STK_OK);
    assert_int_equal(*(int32_t *)item[1].data, 1);
    source->class->close(source);
}

/* Large enough for an index, which is used, found stale, and rebuilt; and as GZIP. */
static void indexes_and_gzip(void **state)
{
    (void)state;
    enum { N = 20000 };
    char *text = malloc(N * 16);
    size_t n = 0;
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(text + n, "line %d\n", i);
    const char *path = write_file("i.txt", text, n);
    for (int round = 0; round < 3; round++) {
        stk_source *source = open_text(path, (stk_text_config){0});
        assert_int_equal(source->n_records, N + (round == 2));
        check_text(source, 12345, "line 12345");
        assert_int_equal(source->note[0] != 0, round == 2);
        assert_true(stk_path_exists(in_folder("i.txt" STK_INDEX_SUFFIX)));
        source->class->close(source);
        if (round == 1) {
            memcpy(text + n, "more", 4);
            write_file("i.txt", text, n + 4);
        }
    }
    gzFile gz = gzopen(in_folder("i.txt.gz"), "wb");
    assert_int_equal(gzwrite(gz, text, (unsigned)n), n);
    assert_int_equal(gzclose(gz), Z_OK);
    assert_int_equal(setenv("STOKER_CACHE", in_folder("cache"), 1), 0);
    stk_source *source = open_text(in_folder("i.txt.gz"), (stk_text_config){0});
    assert_int_equal(source->n_records, N);
    check_text(source, N - 1, "line 19999");
    source->class->close(source);
    free(text);
    /* What begins like ZLIB may be a text. */
    source = open_text(write_file("z.txt", "x^2 + y^2 = 1\n", 14), (stk_text_config){0});
    check_text(source, 0, "x^2 + y^2 = 1");
    source->class->close(source);
}

static void bad_arguments(void **state)
{
    (void)state;
    stk_source *source = NULL;
    const char *path = write_file("e.txt", "", 0);
    assert_int_equal(stk_source_open_text(&path, 1, &(stk_text_config){0}, &source), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "holds no record"));
    assert_int_equal(stk_source_open_text(&path, 1, &(stk_text_config){.skip = -1}, &source), STK_INVALID);
    assert_int_equal(stk_source_open_text(&path, 1, &(stk_text_config){.skip = 1, .whole = true}, &source),
                     STK_INVALID);
    path = "/none.txt";
    assert_int_equal(stk_source_open_text(&path, 1, &(stk_text_config){0}, &source), STK_NOT_FOUND);
    /* Cut short while it is in use. */
    source = open_text(write_file("s.txt", "one\ntwo\nthree\n", 14), (stk_text_config){0});
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(truncate(in_folder("s.txt"), 9), 0);
    check_text(source, 1, "two");
    assert_int_equal(source->class->read(source, 2, scratch, item), STK_CORRUPT);
    source->class->close(source);
}

/* --- tokens --- */

static const stk_batch *next(stk_loader *loader)
{
    const stk_batch *batch = stk_loader_next(loader);
    if (!batch) fail_msg("%s", stk_error_text());
    return batch;
}

static stk_loader *open_loader(stk_dataset *dataset)
{
    stk_loader_config config = stk_loader_config_default();
    stk_loader *loader = NULL;
    if (stk_dataset_status(dataset) != STK_OK || stk_loader_open(dataset, &config, &loader) != STK_OK)
        fail_msg("%s", stk_error_text());
    return loader;
}

static void tokens_of_one_length(void **state)
{
    (void)state;
    static const int32_t want[] = {'a', 'b', 'c', 256, 'l', 'o', 'n', 'g', 256, 256, 256, 256};
    const char *path = write_file("t.txt", "abc\nlong line\n\n", 15);
    stk_tokenizer *bytes;
    assert_int_equal(stk_tokenizer_open("bytes", NULL, &bytes), STK_OK);
    stk_dataset *dataset = stk_dataset_text(&path, 1, NULL);
    stk_tokenize_config config = {.length = 4, .pad = true, .pad_id = -1, .special = true};
    stk_dataset_apply_to(dataset, NULL, stk_tokenize(bytes, &config));
    stk_tokenizer_free(bytes); /* the stage has its own reference */
    stk_dataset_batch(dataset, 3, false);
    stk_loader *loader = open_loader(dataset);
    const stk_batch *batch = next(loader);
    assert_memory_equal(stk_batch_data(batch, "text"), want, sizeof(want));
    stk_batch_release(batch);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void tokens_of_any_length(void **state)
{
    (void)state;
    static const int32_t want[] = {'a', 'b', 'c', 9, 9, 'l', 'o', 'n', 'g', ' ', 9, 9, 9, 9, 9};
    const char *path = write_file("t.txt", "abc\nlong line\n\n", 15);
    stk_tokenizer *bytes;
    assert_int_equal(stk_tokenizer_open("bytes", NULL, &bytes), STK_OK);
    stk_dataset *dataset = stk_dataset_text(&path, 1, NULL);
    stk_tokenize_config config = {.length = 5, .special = true};
    stk_dataset_apply_to(dataset, "text", stk_tokenize(bytes, &config));
    stk_tokenizer_free(bytes);
    stk_dataset_padded_batch(dataset, 3, false, &(stk_padding){.value = 9}, 1);
    stk_loader *loader = open_loader(dataset);
    const stk_batch *batch = next(loader);
    assert_memory_equal(stk_batch_data(batch, "text"), want, sizeof(want));
    const int32_t *lengths = stk_batch_data(batch, "text.length");
    assert_true(lengths[0] == 3 && lengths[1] == 5 && lengths[2] == 0);
    stk_batch_release(batch);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void bad_stages(void **state)
{
    (void)state;
    stk_tokenizer *bytes;
    assert_int_equal(stk_tokenizer_open("bytes", NULL, &bytes), STK_OK);
    const stk_tokenize_config bad[] = {{.length = -1}, {.pad = true}};
    for (int i = 0; i < 3; i++) {
        stk_stage *stage = stk_tokenize(i < 2 ? bytes : NULL, i < 2 ? &bad[i] : NULL);
        assert_int_equal(stage->status, STK_INVALID);
        stk_stage_free(stage);
    }
    static const float image[4];
    stk_array_field field = {.name = "text", .dtype = STK_F32, .sample = STK_SHAPE(4), .data = image};
    stk_dataset *dataset = stk_dataset_arrays(1, &field, 1);
    stk_dataset_apply_to(dataset, NULL, stk_tokenize(bytes, NULL));
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "needs text, u8[?], not f32[4]"));
    stk_dataset_free(dataset);
    stk_tokenizer_free(bytes);
}

/* The kernel's own files say that they are a page long, and end before. */
static void what_ends_before_its_size_is_not_kept(void **state)
{
    (void)state;
    const char *path = "/sys/kernel/mm/transparent_hugepage/enabled";
    stk_source *source;
    if (access(path, R_OK)) skip(); /* a kernel without */
    stk_status status = stk_source_open_text(&path, 1, &(stk_text_config){.whole = true, .in_memory = true}, &source);
    assert_int_equal(status, STK_CORRUPT);
    if (!strstr(stk_error_text(), path)) fail_msg("%s", stk_error_text());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ends_before_its_size_is_not_kept),
        cmocka_unit_test(lines_of_files),
        cmocka_unit_test(whole_files_with_labels),
        cmocka_unit_test(indexes_and_gzip),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(tokens_of_one_length),
        cmocka_unit_test(tokens_of_any_length),
        cmocka_unit_test(bad_stages),
    };
    int n_failed = cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
    free_scratch(scratch);
    return n_failed;
}
