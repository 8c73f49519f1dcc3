/* TFRecord files as TensorFlow writes them, read and written; every kind of damage; indexes that are stale or damaged;
 * compressed shards; what errors say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "data/codec/example.h"
#include "data/codec/tfrecord.h"
#include "data/codec/tfrecord_writer.h"
#include "data/source/files.h"
#include "data/source/records.h"
#include "golden/tfrecord_golden.h"
#include "stoker/data/loader.h"

static stk_scratch scratch[STK_MAX_FIELDS];

static const float score_standard[3] = {1, 2, 3};
static const stk_feature features[] = {
    {.name = "image", .dtype = STK_U8, .shape = {2, {3, 2}}},
    {.name = "label", .dtype = STK_I64},
    {.name = "score", .dtype = STK_F32, .shape = {1, {3}}},
    {.name = "sizes", .dtype = STK_I32, .shape = {1, {3}}},
    {.name = "extra", .key = "image/extra", .dtype = STK_F32, .shape = {1, {3}}, .default_value = score_standard},
};
enum { N_FEATURES = 5 };

static void check_record(const stk_source *source, int64_t i_record, int i)
{
    stk_item item[STK_MAX_FIELDS];
    stk_status status = source->class->read(source, i_record, scratch, item);
    assert_string_equal(status == STK_OK ? "" : stk_error_text(), "");
    float score[3] = {0.5f * (float)i, -1.25f, 1e-30f};
    int32_t sizes[3] = {i, 300, -2};
    assert_int_equal(item[0].n_bytes, 6);
    for (int k = 0; k < 6; k++)
        assert_int_equal(((uint8_t *)item[0].data)[k], (uint8_t)(7 * i + k));
    assert_memory_equal(item[1].data, &golden_labels[i], 8);
    assert_memory_equal(item[2].data, score, 12);
    assert_memory_equal(item[3].data, sizes, 12);
    assert_memory_equal(item[4].data, score_standard, 12);
}

/* Like write_file; the path stays. */
static const char *write_kept(const char *name, const void *bytes, size_t n)
{
    static char paths[4][512];
    static int i_path;
    char *path = paths[i_path++ % 4];
    snprintf(path, sizeof(paths[0]), "%s", write_file(name, bytes, n));
    return path;
}

static stk_source *open_source(const char *const *paths, int n_paths)
{
    stk_source *source;
    stk_status status = stk_source_open_tfrecord(paths, n_paths, features, N_FEATURES, false, &source);
    assert_string_equal(status == STK_OK ? "" : stk_error_text(), "");
    return source;
}

static void plain_gzip_and_zlib(void **state)
{
    (void)state;
    const char *paths[] = {write_kept("t/b.tfrecord", golden_plain, sizeof(golden_plain)),
                           write_kept("t/c.tfrecord", golden_gzip, sizeof(golden_gzip)),
                           write_kept("t/a.tfrecord", golden_zlib, sizeof(golden_zlib))};
    for (int pass = 0; pass < 2; pass++) { /* the second finds indexes and unpacked files */
        stk_source *source = open_source(paths, 3);
        assert_int_equal(source->n_records, 3 * N_GOLDEN_RECORDS);
        assert_string_equal(source->note, "");
        for (int i = 0; i < 3 * N_GOLDEN_RECORDS; i++)
            check_record(source, i, i % N_GOLDEN_RECORDS);
        char name[512], want[512];
        source->class->name_record(source, 6, name, sizeof(name));
        snprintf(want, sizeof(want), "'%s', record 1 at byte ", paths[1]);
        assert_memory_equal(name, want, strlen(want));
        source->class->name_record(source, 6, name, 12); /* no room for any of the path */
        assert_string_equal(name, "'', record ");
        source->class->name_record(source, 6, name, 60);
        assert_int_equal(strlen(name), 59);
        assert_non_null(strstr(name, "/t/c.tfrecord', record 1 at byte "));
        source->class->close(source);
        assert_true(stk_path_exists(in_folder("t/b.tfrecord.stkidx")));
        assert_false(stk_path_exists(in_folder("t/c.tfrecord.stkidx"))); /* next to the unpacked file */
    }
    char pattern[512];
    snprintf(pattern, sizeof(pattern), "%s/t/[ab].tf*", test_folder);
    stk_source *source;
    const char *list[] = {pattern};
    assert_int_equal(stk_source_open_tfrecord(list, 1, features, N_FEATURES, false, &source), STK_OK);
    assert_int_equal(source->n_records, 2 * N_GOLDEN_RECORDS);
    source->class->close(source);
    snprintf(pattern, sizeof(pattern), "%s/t/x*", test_folder);
    assert_int_equal(stk_source_open_tfrecord(list, 1, features, N_FEATURES, false, &source), STK_NOT_FOUND);
    assert_non_null(strstr(stk_error_text(), "no file matches"));
}

/* Adds the golden records. */
static void write_records(const char *path, stk_tfrecord_packing packing, int n_times)
{
    stk_tfrecord_writer *writer;
    assert_int_equal(stk_tfrecord_writer_open(path, packing, &writer), STK_OK);
    for (int n = 0; n < n_times * N_GOLDEN_RECORDS; n++) {
        stk_text list = {0}, example = {0};
        int i = n % N_GOLDEN_RECORDS;
        uint8_t image[6];
        for (int k = 0; k < 6; k++)
            image[k] = (uint8_t)(7 * i + k);
        stk_example_add_bytes(&list, "image", image, 6);
        stk_example_add_ints(&list, "label", &golden_labels[i], 1);
        stk_example_add_floats(&list, "score", (float[]){0.5f * (float)i, -1.25f, 1e-30f}, 3);
        stk_example_add_ints(&list, "sizes", (int64_t[]){i, 300, -2}, 3);
        stk_example_finish(&list, &example);
        assert_int_equal(stk_tfrecord_writer_add(writer, (stk_span){(uint8_t *)example.data, example.n}), STK_OK);
        stk_text_free(&list);
        stk_text_free(&example);
    }
    assert_int_equal(stk_tfrecord_writer_finish(writer), STK_OK);
    stk_tfrecord_writer_free(writer);
}

static void what_is_kept_in_memory_must_fit(void **state)
{
    (void)state;
    stk_memory *memory;
    stk_source *source = NULL;
    const char *path = write_kept("kept.tfrecord", "", 0);
    write_records(path, STK_TFRECORD_PLAIN, 2000);
    for (int fits = 0; fits < 2; fits++) {
        assert_int_equal(stk_memory_new((fits ? 8 : 1) << 20, &memory), STK_OK);
        stk_memory *before = stk_memory_use(memory);
        stk_status status = stk_source_open_tfrecord(&path, 1, features, N_FEATURES, true, &source);
        stk_memory_use(before);
        assert_int_equal(status, fits ? STK_OK : STK_NO_MEMORY);
        const char *text = "kept.tfrecord' is kept in memory: ";
        if (!fits && !strstr(stk_error_text(), text)) fail_msg("%s", stk_error_text());
        if (fits) source->class->close(source);
        stk_memory_free(memory);
    }
}

static void written_as_tensorflow_writes(void **state)
{
    (void)state;
    uint8_t *bytes = NULL;
    size_t capacity = 0, n;
    const char *path = in_folder("ours.tfrecord");
    write_records(path, STK_TFRECORD_PLAIN, 1);
    assert_int_equal(stk_file_read(path, &bytes, &capacity, &n), STK_OK);
    assert_int_equal(n, sizeof(golden_plain));
    assert_memory_equal(bytes, golden_plain, n);
    free(bytes);
    for (int packing = 1; packing <= 2; packing++) { /* more than a buffer */
        write_records(path, (stk_tfrecord_packing)packing, 20000);
        stk_source *source = open_source(&path, 1);
        assert_int_equal(source->n_records, 20000 * N_GOLDEN_RECORDS);
        for (int i = 0; i < 20000 * N_GOLDEN_RECORDS; i += 997)
            check_record(source, i, i % N_GOLDEN_RECORDS);
        source->class->close(source);
    }
}

static void expect_failure(const char *name, const void *bytes, size_t n, stk_status want, const char *text)
{
    stk_source *source;
    const char *path = write_file(name, bytes, n);
    assert_int_equal(stk_source_open_tfrecord(&path, 1, features, N_FEATURES, false, &source), want);
    assert_string_equal(strstr(stk_error_text(), text) ? "" : stk_error_text(), "");
    assert_string_equal(strstr(stk_error_text(), path) ? "" : stk_error_text(), "");
}

static size_t record_bytes(const uint8_t *record)
{
    return (size_t)record[0] + ((size_t)record[1] << 8) + 16;
}

static void damage_is_named(void **state)
{
    (void)state;
    uint8_t bytes[sizeof(golden_plain)];
    size_t first = record_bytes(golden_plain), whole = 0;
    char text[128];
    for (size_t n = 1; n < sizeof(bytes); n++) { /* a cut is one wherever it is, but between two records */
        if (n == whole + record_bytes(golden_plain + whole))
            whole = n;
        else
            expect_failure("cut", golden_plain, n, STK_CORRUPT, "it is cut short");
    }
    expect_failure("empty", "", 0, STK_INVALID, "holds no record");
    memcpy(bytes, golden_plain, sizeof(bytes));
    bytes[first] ^= 1;
    snprintf(text, sizeof(text), "record 1 at byte %zu: the CRC of its length is wrong", first);
    expect_failure("length", bytes, sizeof(bytes), STK_CORRUPT, text);
    /* Huge lengths whose CRC is right. */
    for (int shift = 12; shift < 64; shift += 3) {
        uint64_t length = UINT64_MAX >> (63 - shift);
        memcpy(bytes, golden_plain, sizeof(bytes));
        for (int i = 0; i < 8; i++)
            bytes[i] = (uint8_t)(length >> 8 * i);
        uint32_t crc = stk_crc32c_mask(stk_crc32c(bytes, 8));
        for (int i = 0; i < 4; i++)
            bytes[8 + i] = (uint8_t)(crc >> 8 * i);
        expect_failure("huge", bytes, sizeof(bytes), STK_CORRUPT, "record 0 at byte 0: it is cut short: its length is");
    }

    /* Damaged data are found when the record is read, and name the place. */
    memcpy(bytes, golden_plain, sizeof(bytes));
    bytes[first + 20] ^= 0x10;
    const char *path = write_file("data.tfrecord", bytes, sizeof(bytes));
    stk_dataset *dataset = stk_dataset_tfrecord(&path, 1, features, N_FEATURES, false);
    stk_dataset_batch(dataset, N_GOLDEN_RECORDS, false);
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
    snprintf(text, sizeof(text), "/data.tfrecord', record 1 at byte %zu: the CRC of its data is wrong", first);
    assert_string_equal(strstr(stk_error_text(), text) ? "" : stk_error_text(), "");
    stk_loader_close(loader);
    stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    assert_non_null(stk_loader_next(loader));
    assert_non_null(strstr(stk_loader_skipped(loader, 0), text));
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void packed_damage_is_named(void **state)
{
    (void)state;
    uint8_t bytes[sizeof(golden_gzip)];
    for (size_t n = 12; n < sizeof(bytes); n += 7)
        expect_failure("cut.gz", golden_gzip, n, STK_CORRUPT, "the compressed data are cut short");
    memcpy(bytes, golden_gzip, sizeof(bytes));
    bytes[sizeof(bytes) - 6] ^= 1; /* its CRC */
    expect_failure("damaged.gz", bytes, sizeof(bytes), STK_CORRUPT, "the compressed data are damaged");
    expect_failure("short.zlib", golden_zlib, sizeof(golden_zlib) - 1, STK_CORRUPT, "cut short");
    /* Two streams one after the other are one file, as gzip has it. */
    uint8_t twice[2 * sizeof(golden_gzip)];
    memcpy(twice, golden_gzip, sizeof(golden_gzip));
    memcpy(twice + sizeof(golden_gzip), golden_gzip, sizeof(golden_gzip));
    const char *path = write_file("twice.gz", twice, sizeof(twice));
    stk_source *source = open_source(&path, 1);
    assert_int_equal(source->n_records, 2 * N_GOLDEN_RECORDS);
    check_record(source, 8, 3);
    source->class->close(source);
}

static void indexes_are_checked(void **state)
{
    (void)state;
    const char *path = write_kept("i/x.tfrecord", golden_plain, sizeof(golden_plain));
    char index[512];
    snprintf(index, sizeof(index), "%s.stkidx", path);
    stk_source *source = open_source(&path, 1);
    source->class->close(source);
    uint8_t *bytes = NULL;
    size_t capacity = 0, n;
    assert_int_equal(stk_file_read(index, &bytes, &capacity, &n), STK_OK);
    assert_int_equal(n, 48 + 8 * N_GOLDEN_RECORDS);
    /* Damage at every byte behind what makes it ours is found, and a good one is written. */
    for (size_t at = 8; at < n; at++) {
        bytes[at] ^= 0x40;
        write_file("i/x.tfrecord.stkidx", bytes, n);
        bytes[at] ^= 0x40;
        source = open_source(&path, 1);
        assert_non_null(strstr(source->note, "the index of '"));
        check_record(source, 4, 4);
        source->class->close(source);
        source = open_source(&path, 1);
        assert_string_equal(source->note, "");
        source->class->close(source);
    }
    free(bytes);
    /* The file changes: the same size, another time. */
    struct timespec times[2] = {{1000, 5}, {1000, 5}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    source = open_source(&path, 1);
    assert_non_null(strstr(source->note, "did not fit the file any more and has been rebuilt"));
    source->class->close(source);
    /* Where nothing can be written next to the file, the index lies in the cache folder. */
    assert_int_equal(unlink(index), 0);
    assert_int_equal(mkdir(index, 0777), 0);
    source = open_source(&path, 1);
    source->class->close(source);
    stk_names names;
    size_t n_found = 0;
    assert_int_equal(stk_dir_list(in_folder("cache"), &names), STK_OK);
    for (size_t i = 0; i < names.n; i++)
        n_found += strstr(names.name[i], "-x.tfrecord.stkidx") != NULL;
    stk_names_free(&names);
    assert_int_equal(n_found, 1);
    source = open_source(&path, 1);
    check_record(source, 2, 2);
    assert_string_equal(source->note, "");
    source->class->close(source);
}

/* Records of these lengths, in a file with this time. */
static const char *write_lengths(const char *name, const int *lengths, int n)
{
    static const uint8_t bytes[64];
    const struct timespec times[2] = {{1000, 5}, {1000, 5}};
    static char path[512];
    stk_tfrecord_writer *writer;
    write_file(name, bytes, 1); /* makes the folder */
    snprintf(path, sizeof(path), "%s", in_folder(name));
    assert_int_equal(stk_tfrecord_writer_open(path, STK_TFRECORD_PLAIN, &writer), STK_OK);
    for (int i = 0; i < n; i++)
        assert_int_equal(stk_tfrecord_writer_add(writer, (stk_span){bytes, (size_t)lengths[i]}), STK_OK);
    assert_int_equal(stk_tfrecord_writer_finish(writer), STK_OK);
    stk_tfrecord_writer_free(writer);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    return path;
}

/* Another content of the same size, which has been given the same time: records lie elsewhere. */
static void another_content_of_the_same_size_and_time(void **state)
{
    (void)state;
    const char *path = write_lengths("s/x.tfrecord", (const int[]){10, 30, 20}, 3);
    stk_source *source = open_source(&path, 1);
    source->class->close(source);
    source = open_source(&path, 1);
    assert_string_equal(source->note, "");
    source->class->close(source);
    path = write_lengths("s/x.tfrecord", (const int[]){30, 10, 20}, 3);
    source = open_source(&path, 1);
    assert_non_null(strstr(source->note, "did not fit the file any more and has been rebuilt"));
    source->class->close(source);
}

static void a_file_cut_short_in_use(void **state)
{
    (void)state;
    stk_item item[STK_MAX_FIELDS];
    const char *path = write_kept("later.tfrecord", golden_plain, sizeof(golden_plain));
    stk_source *source = open_source(&path, 1);
    assert_int_equal(truncate(path, 300), 0);
    assert_int_equal(source->class->read(source, N_GOLDEN_RECORDS - 1, scratch, item), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "the file has become shorter while it was in use"));
    source->class->close(source);
    /* In memory it does no harm. */
    write_file("later.tfrecord", golden_plain, sizeof(golden_plain));
    assert_int_equal(stk_source_open_tfrecord(&path, 1, features, N_FEATURES, true, &source), STK_OK);
    assert_int_equal(source->n_bytes, sizeof(golden_plain));
    assert_int_equal(truncate(path, 0), 0);
    for (int i = 0; i < N_GOLDEN_RECORDS; i++) {
        source->class->prefetch(source, i);
        check_record(source, i, i);
    }
    source->class->close(source);
}

static void wrong_features_are_named(void **state)
{
    (void)state;
    static const struct {
        stk_feature feature;
        const char *text;
    } cases[] = {
        {{.name = "mask", .dtype = STK_U8}, "the Example has no key 'mask'"},
        {{.name = "image", .dtype = STK_U8, .shape = {1, {7}}}, "key 'image': it has 6 bytes, where 7 are needed"},
        {{.name = "image", .key = "label", .encoded = true}, "key 'label': it has an Int64List"},
        {{.name = "label", .dtype = STK_F32}, "key 'label': it has an Int64List, which f32[] cannot be made of"},
    };
    const char *path = write_file("wrong.tfrecord", golden_plain, sizeof(golden_plain));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_source *source;
        stk_item item[STK_MAX_FIELDS];
        assert_int_equal(stk_source_open_tfrecord(&path, 1, &cases[i].feature, 1, false, &source), STK_OK);
        assert_int_not_equal(source->class->read(source, 0, scratch, item), STK_OK);
        assert_string_equal(strstr(stk_error_text(), cases[i].text) ? "" : stk_error_text(), "");
        source->class->close(source);
    }
    stk_source *source;
    stk_feature open_side = {.name = "image", .dtype = STK_U8, .shape = {1, {STK_ANY}}};
    assert_int_equal(stk_source_open_tfrecord(&path, 1, &open_side, 1, false, &source), STK_INVALID);
    assert_int_equal(stk_source_open_tfrecord(&path, 1, features, 0, false, &source), STK_INVALID);
    assert_int_equal(stk_source_open_tfrecord(NULL, 0, features, 1, false, &source), STK_INVALID);
}

static int set_up(void **state)
{
    if (make_test_folder(state) != 0) return -1;
    return setenv("STOKER_CACHE", in_folder("cache"), 1);
}

static int tear_down(void **state)
{
    free_scratch(scratch);
    return remove_test_folder(state);
}

/* By the first two bytes, as zlib's RFC 1950 and gzip's 1952 give them. */
static void packings_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        uint8_t byte[2];
        stk_tfrecord_packing packing;
    } starts[] = {{{0x1f, 0x8b}, STK_TFRECORD_GZIP}, {{0x1f, 0x8c}, STK_TFRECORD_PLAIN},
                  {{0x78, 0x9c}, STK_TFRECORD_ZLIB}, {{0x78, 0x9d}, STK_TFRECORD_PLAIN},
                  {{0x08, 0x1d}, STK_TFRECORD_ZLIB}, {{0x79, 0x9c}, STK_TFRECORD_PLAIN},
                  {{0x88, 0x1c}, STK_TFRECORD_PLAIN}};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        assert_int_equal(stk_tfrecord_packing_of((stk_span){starts[i].byte, 2}), starts[i].packing);
        assert_int_equal(stk_tfrecord_packing_of((stk_span){starts[i].byte, 1}), STK_TFRECORD_PLAIN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_gzip_and_zlib),
        cmocka_unit_test(what_is_kept_in_memory_must_fit),
        cmocka_unit_test(written_as_tensorflow_writes),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(packed_damage_is_named),
        cmocka_unit_test(indexes_are_checked),
        cmocka_unit_test(another_content_of_the_same_size_and_time),
        cmocka_unit_test(a_file_cut_short_in_use),
        cmocka_unit_test(wrong_features_are_named),
        cmocka_unit_test(packings_are_told_apart),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
