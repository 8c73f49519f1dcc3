/* Windows of tokens: which numbers each sample has, over several files; types, headers and side files; files that lie
 * or are cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/source/files.h"
#include "data/source/text_records.h"
#include "stoker/data/loader.h"

static stk_scratch scratch[STK_MAX_FIELDS];

/* n numbers from first on. */
static const char *write_tokens(const char *name, int bytes, uint32_t first, int n)
{
    uint8_t data[4096];
    for (int i = 0; i < n; i++) {
        uint32_t token = first + (uint32_t)i;
        for (int b = 0; b < bytes; b++)
            data[i * bytes + b] = (uint8_t)(token >> 8 * b);
    }
    return write_file(name, data, (size_t)(n * bytes));
}

static stk_source *open_tokens(const char *path, stk_tokens_config config)
{
    stk_source *source = NULL;
    assert_int_equal(stk_source_open_tokens(&path, 1, &config, &source), STK_OK);
    return source;
}

static void check_window(const stk_source *source, int64_t i, int32_t first, int n)
{
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
    const int32_t *tokens = item[0].data, *targets = item[1].data;
    assert_int_equal(item[0].n_bytes, 4 * n);
    assert_int_equal(item[1].n_bytes, 4 * n);
    for (int k = 0; k < n; k++) {
        assert_int_equal(tokens[k], first + k);
        assert_int_equal(targets[k], first + k + 1);
    }
}

static void windows_at_any_stride(void **state)
{
    (void)state;
    for (int bytes = 2; bytes <= 4; bytes += 2) {
        stk_token_type type = bytes == 2 ? STK_TOKENS_U16 : STK_TOKENS_U32;
        const char *path = write_tokens("t.bin", bytes, 40000, 101);
        for (int64_t stride = 1; stride <= 12; stride++) {
            stk_source *source = open_tokens(path, (stk_tokens_config){10, stride, type, 0});
            assert_int_equal(source->n_records, (101 - 11) / stride + 1);
            for (int64_t i = 0; i < source->n_records; i++)
                check_window(source, i, (int32_t)(40000 + i * stride), 10);
            source->class->close(source);
        }
        stk_source *source = open_tokens(path, (stk_tokens_config){100, 0, type, 0});
        assert_int_equal(source->n_records, 1);
        check_window(source, 0, 40000, 100);
        source->class->close(source);
    }
}

/* A window does not go over the end of its file; a file too short for one has none. */
static void several_files(void **state)
{
    (void)state;
    write_tokens("s0.bin", 2, 0, 25);
    write_tokens("s1.bin", 2, 100, 9);
    write_tokens("s2.bin", 2, 200, 21);
    write_file("s2.bin.json", "{\"dtype\": \"u16\"}", 16);
    stk_source *source = open_tokens(in_folder("s*.bin"), (stk_tokens_config){10, 0, STK_TOKENS_U16, 0});
    assert_int_equal(source->n_records, 4);
    static const int32_t first[] = {0, 10, 200, 210};
    static const int64_t file[] = {0, 0, 2, 2};
    for (int i = 0; i < 4; i++) {
        check_window(source, i, first[i], 10);
        assert_int_equal(source->class->file_of(source, i), file[i]);
    }
    char name[256];
    source->class->name_record(source, 3, name, sizeof(name));
    assert_non_null(strstr(name, "s2.bin', token 10"));
    source->class->close(source);
    /* Side files match the pattern "s*", too, and are no data. */
    write_file("s0.bin.json", "{\"dtype\": \"u16\"}", 16);
    write_file("s1.bin.json", "{\"dtype\": \"u16\"}", 16);
    source = open_tokens(in_folder("s*"), (stk_tokens_config){10, 0, STK_TOKENS_AUTO, 0});
    assert_int_equal(source->n_records, 4);
    source->class->close(source);
}

static void expect_error(const char *path, stk_tokens_config config, stk_status want, const char *text)
{
    stk_source *source = NULL;
    assert_int_equal(stk_source_open_tokens(&path, 1, &config, &source), want);
    if (!strstr(stk_error_text(), text)) fail_msg("'%s' has no '%s'", stk_error_text(), text);
}

static void type_from_side_file_and_header(void **state)
{
    (void)state;
    stk_tokens_config automatic = {10, 0, STK_TOKENS_AUTO, 0};
    const char *path = write_tokens("a.bin", 4, 7, 31);
    expect_error(path, automatic, STK_INVALID, "u16 or u32");
    static const char json[] = "{\"dtype\": \"u32\", \"vocabulary\": 30, \"other\": [1]}";
    write_file("a.bin.json", json, sizeof(json) - 1);
    stk_source *source = open_tokens(path, automatic);
    assert_int_equal(source->n_records, 3);
    check_window(source, 0, 7, 10);
    /* Tokens from 30 on are not in the vocabulary. */
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(source->class->read(source, 2, scratch, item), STK_CORRUPT);
    assert_string_equal(stk_error_text(), "token 23 is 30, which is not below 30; is the dtype right?");
    source->class->close(source);
    write_file("a.bin.json", "{\"dtype\": \"u8\"}", 15);
    expect_error(path, automatic, STK_CORRUPT, "u16");
    write_file("a.bin.json", "{", 1);
    expect_error(path, automatic, STK_CORRUPT, "a.bin.json");

    uint8_t file[1024 + 42] = {0};
    uint32_t header[3] = {20240520, 1, 21};
    memcpy(file, header, sizeof(header));
    for (int i = 0; i < 21; i++)
        file[1024 + 2 * i] = (uint8_t)(50 + i);
    path = write_file("h.bin", file, sizeof(file));
    source = open_tokens(path, automatic);
    assert_int_equal(source->n_records, 2);
    check_window(source, 1, 60, 10);
    source->class->close(source);
    expect_error(path, (stk_tokens_config){10, 0, STK_TOKENS_U32, 0}, STK_MISMATCH, "says u16");
    path = write_file("h.bin", file, sizeof(file) - 2);
    expect_error(path, automatic, STK_CORRUPT, "header says 21");
}

static void files_that_do_not_fit(void **state)
{
    (void)state;
    stk_tokens_config config = {10, 0, STK_TOKENS_U16, 0};
    expect_error(write_tokens("x.bin", 2, 0, 10), config, STK_INVALID, "no window of 10 + 1");
    expect_error(write_file("x.bin", "", 0), config, STK_INVALID, "no window");
    expect_error(write_file("x.bin", "abc", 3), config, STK_CORRUPT, "whole number of tokens");
    expect_error(in_folder("none.bin"), config, STK_NOT_FOUND, "none.bin");
    expect_error("x", (stk_tokens_config){0, 0, STK_TOKENS_U16, 0}, STK_INVALID, "length");
    expect_error("x", (stk_tokens_config){1, -1, STK_TOKENS_U16, 0}, STK_INVALID, "stride");
    /* Cut short while it is in use. */
    stk_source *source = open_tokens(write_tokens("y.bin", 2, 0, 41), config);
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(truncate(in_folder("y.bin"), 44), 0);
    check_window(source, 1, 10, 10);
    assert_int_equal(source->class->read(source, 2, scratch, item), STK_CORRUPT);
    source->class->close(source);
    /* Numbers that no i32 holds. */
    static const uint8_t huge[12] = {255, 255, 255, 255};
    source = open_tokens(write_file("z.bin", huge, sizeof(huge)), (stk_tokens_config){2, 0, STK_TOKENS_U32, 0});
    assert_int_equal(source->class->read(source, 0, scratch, item), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "4294967295"));
    source->class->close(source);
}

/* Through a loader, shuffled: every window once an epoch. */
static void whole_epochs(void **state)
{
    (void)state;
    const char *path = write_tokens("e.bin", 2, 0, 1601);
    stk_tokens_config config = {.length = 16, .type = STK_TOKENS_U16};
    stk_dataset *dataset = stk_dataset_tokens(&path, 1, &config);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_batch(dataset, 10, true);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_n_batches(dataset), 10);
    stk_loader_config loader_config = stk_loader_config_default();
    stk_loader *loader = NULL;
    assert_int_equal(stk_loader_open(dataset, &loader_config, &loader), STK_OK);
    int n_seen = 0, seen[100] = {0};
    for (int b = 0; b < 10; b++) {
        const stk_batch *batch = stk_loader_next(loader);
        assert_non_null(batch);
        const int32_t *tokens = stk_batch_data(batch, "tokens"), *targets = stk_batch_data(batch, "targets");
        for (int r = 0; r < 10; r++) {
            assert_int_equal(tokens[16 * r] % 16, 0);
            assert_int_equal(targets[16 * r + 15], tokens[16 * r] + 16);
            n_seen += !seen[tokens[16 * r] / 16]++;
        }
        stk_batch_release(batch);
    }
    assert_int_equal(n_seen, 100);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_at_any_stride),
        cmocka_unit_test(several_files),
        cmocka_unit_test(type_from_side_file_and_header),
        cmocka_unit_test(files_that_do_not_fit),
        cmocka_unit_test(whole_epochs),
    };
    int n_failed = cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
    free_scratch(scratch);
    return n_failed;
}
