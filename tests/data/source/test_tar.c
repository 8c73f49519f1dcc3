/* Tar archives in every format as Python and WebDataset write them, read as WebDataset reads them; damage; indexes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <zlib.h>

#include "base/text.h"
#include "data/source/files.h"
#include "data/source/records.h"
#include "data/source/tar_samples.h"
#include "golden/tar_golden.h"

static stk_scratch scratch[STK_MAX_FIELDS];

typedef struct archive {
    const char *name;
    const uint8_t *packed;
    size_t n_packed, n;
    const golden_sample *samples;
    int n_samples;
} archive;

#define ARCHIVE(x)                                                                                                     \
    {                                                                                                                  \
#x, golden_##x, sizeof(golden_##x), golden_##x##_bytes, golden_##x##_samples,                                  \
            sizeof(golden_##x##_samples) / sizeof(golden_##x##_samples[0])                                             \
    }
static const archive archives[] = {ARCHIVE(gnu), ARCHIVE(pax), ARCHIVE(ustar), ARCHIVE(web)};
enum { N_ARCHIVES = 4 };

/* The caller frees it. */
static uint8_t *unpack(const archive *a)
{
    uint8_t *bytes = malloc(a->n);
    uLongf n = a->n;
    assert_int_equal(uncompress(bytes, &n, a->packed, a->n_packed), Z_OK);
    assert_int_equal(n, a->n);
    return bytes;
}

static stk_source *open_one(const char *path, const stk_tar_field *fields, int n_fields)
{
    stk_source *source;
    stk_status status = stk_source_open_tar(&path, 1, fields, n_fields, &source);
    assert_string_equal(status == STK_OK ? "" : stk_error_text(), "");
    return source;
}

static void check_samples(const stk_source *source, int64_t i_first, const archive *a)
{
    stk_item item[STK_MAX_FIELDS];
    for (int i = 0; i < a->n_samples; i++) {
        const golden_sample *sample = &a->samples[i];
        const char *image = sample->jpg ? sample->jpg : sample->jpeg ? sample->jpeg : sample->png;
        char name[1024];
        assert_int_equal(source->class->read(source, i_first + i, scratch, item), STK_OK);
        /* Its first byte may be a zero, which the golden file does not spell. */
        if (image[0]) {
            assert_int_equal(item[0].n_bytes, strlen(image));
            assert_memory_equal(item[0].data, image, strlen(image));
        }
        assert_int_equal(*(int32_t *)item[1].data, atoi(sample->cls));
        source->class->name_record(source, i_first + i, name, sizeof(name));
        assert_non_null(strstr(name, sample->key));
    }
}

static void every_format(void **state)
{
    (void)state;
    for (int k = 0; k < N_ARCHIVES; k++) {
        uint8_t *bytes = unpack(&archives[k]);
        char path[512];
        snprintf(path, sizeof(path), "%s", write_file(archives[k].name, bytes, archives[k].n));
        for (int pass = 0; pass < 2; pass++) { /* the second has an index */
            stk_source *source = open_one(path, NULL, 0);
            assert_int_equal(source->n_records, archives[k].n_samples);
            assert_int_equal(source->n_fields, 2);
            assert_string_equal(source->field[0].name, "image");
            assert_int_equal(source->field[0].type.kind, STK_FIELD_ENCODED);
            assert_int_equal(source->field[1].type.desc.dtype, STK_I32);
            assert_string_equal(source->note, "");
            check_samples(source, 0, &archives[k]);
            source->class->close(source);
        }
        free(bytes);
    }
    char pattern[512], unlike[512];
    snprintf(pattern, sizeof(pattern), "%s/[gp]*", test_folder);
    snprintf(unlike, sizeof(unlike), "%s/web", test_folder);
    const char *paths[] = {unlike, pattern};
    stk_source *source;
    assert_int_equal(stk_source_open_tar(paths, 2, NULL, 0, &source), STK_OK);
    assert_int_equal(source->n_records, 3 + 4 + 4);
    check_samples(source, 0, &archives[3]);
    check_samples(source, 3, &archives[0]);
    check_samples(source, 7, &archives[1]);
    source->class->close(source);
}

/* Where the first block is that begins with text and a 0. */
static int64_t find_block(const uint8_t *bytes, size_t n, const char *text)
{
    size_t at = 0;
    while (at < n && memcmp(bytes + at, text, strlen(text) + 1) != 0)
        at += 512;
    assert_true(at < n);
    return (int64_t)at;
}

static void fields_are_chosen(void **state)
{
    (void)state;
    static const stk_tar_field mask[] = {{"image", "png;jpg;jpeg"}, {"mask", "seg.png"}};
    stk_item item[STK_MAX_FIELDS];
    uint8_t *bytes = unpack(&archives[1]);
    const char *path = write_file("chosen", bytes, archives[1].n);
    stk_source *source = open_one(path, mask, 2);
    assert_int_equal(source->class->read(source, 2, scratch, item), STK_OK);
    assert_memory_equal(item[0].data, "image", 5);
    assert_memory_equal(item[1].data, "mask", 4);
    /* Parts that lie close together are read at once. */
    int64_t at = find_block(bytes, archives[1].n, "mask"), far = (uint8_t *)item[1].data - (uint8_t *)item[0].data;
    assert_true(far % 512 == 0 && llabs(far) <= 4096 && far <= at);
    assert_memory_equal(bytes + at - far, "image", 5);
    assert_int_equal(source->class->read(source, 0, scratch, item), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "it has no file .seg.png"));
    source->class->close(source);
    static const struct {
        stk_tar_field field;
        stk_status want;
        const char *text;
    } cases[] = {{{"caption", "npy"}, STK_UNSUPPORTED, "field 'caption' is to be made of '.npy' files"},
                 {{"meta", "jpg;bin"}, STK_UNSUPPORTED, "'.bin' files"},
                 {{"meta", "jpg;json"}, STK_INVALID, "cannot be of two kinds"},
                 {{"x", "jpg;cls"}, STK_INVALID, "cannot be of two kinds, images, texts or numbers"},
                 {{"x", ""}, STK_INVALID, "extensions of field 0 are missing"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(stk_source_open_tar(&path, 1, &cases[i].field, 1, &source), cases[i].want);
        assert_string_equal(strstr(stk_error_text(), cases[i].text) ? "" : stk_error_text(), "");
    }
    free(bytes);
}

static void expect_failure(const char *name, const uint8_t *bytes, size_t n, stk_status want, const char *text)
{
    stk_source *source;
    const char *path = write_file(name, bytes, n);
    assert_int_equal(stk_source_open_tar(&path, 1, NULL, 0, &source), want);
    assert_string_equal(strstr(stk_error_text(), text) ? "" : stk_error_text(), "");
    assert_non_null(strstr(stk_error_text(), path));
}

static void set_sum(uint8_t *header)
{
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
}

/* Of one character, too. */
static void names_have_prefixes(void **state)
{
    (void)state;
    uint8_t bytes[6 * 512] = {0};
    static const char *const ends[] = {"jpg", "cls"}, *const prefixes[] = {"q", "qr"};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 2; i++) {
            uint8_t *header = bytes + (size_t)i * 1024;
            memset(header, 0, 512);
            snprintf((char *)header, 100, "7.%s", ends[i]);
            snprintf((char *)header + 100, 8, "0000644");
            snprintf((char *)header + 124, 12, "00000000001");
            header[156] = '0';
            memcpy(header + 257, "ustar\00000", 8);
            snprintf((char *)header + 345, 155, "%s", prefixes[k]);
            set_sum(header);
            header[512] = '3';
        }
        char name[1024], want[16];
        stk_source *source = open_one(write_file(prefixes[k], bytes, sizeof(bytes)), NULL, 0);
        assert_int_equal(source->n_records, 1);
        source->class->name_record(source, 0, name, sizeof(name));
        snprintf(want, sizeof(want), "%s/7", prefixes[k]);
        assert_string_equal(strstr(name, want) ? "" : name, "");
        source->class->close(source);
    }
}

/* Texts come as they are, JSON among them, next to an image and alone; an empty one is a text, too. */
static void texts_are_fields(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } files[] = {{"1.jpg", "image"}, {"1.txt", "a caption\n"}, {"1.json", "{\"a\": [1]}"}, {"2.jpg", "other"},
                 {"2.txt", ""},      {"2.json", "{}"}};
    uint8_t bytes[14 * 512] = {0};
    for (int i = 0; i < 6; i++) {
        uint8_t *header = bytes + (size_t)i * 1024;
        snprintf((char *)header, 100, "%s", files[i].name);
        snprintf((char *)header + 100, 8, "0000644");
        snprintf((char *)header + 124, 12, "%011o", (unsigned)strlen(files[i].text));
        header[156] = '0';
        memcpy(header + 257, "ustar\00000", 8);
        set_sum(header);
        memcpy(header + 512, files[i].text, strlen(files[i].text));
        if (!files[i].text[0]) { /* no block of data: what follows moves up */
            for (int k = i + 1; k < 6; k++) {
                uint8_t *next = bytes + (size_t)k * 1024 - 512;
                snprintf((char *)next, 100, "%s", files[k].name);
                snprintf((char *)next + 100, 8, "0000644");
                snprintf((char *)next + 124, 12, "%011o", (unsigned)strlen(files[k].text));
                next[156] = '0';
                memcpy(next + 257, "ustar\00000", 8);
                set_sum(next);
                memcpy(next + 512, files[k].text, strlen(files[k].text));
            }
            break;
        }
    }
    const stk_tar_field all[] = {{"image", "jpg"}, {"text", "txt"}, {"about", "json"}};
    for (int first = 0; first < 2; first++) {
        stk_item got_item[STK_MAX_FIELDS];
        stk_source *source = open_one(write_file("texts", bytes, sizeof(bytes)), all + first, 3 - first);
        assert_int_equal(source->n_records, 2);
        for (int64_t i = 0; i < 2; i++) {
            assert_int_equal(source->class->read(source, i, scratch, got_item), STK_OK);
            for (int f = first; f < 3; f++) {
                const stk_item *got = &got_item[f - first];
                const char *want = files[3 * i + f].text;
                assert_int_equal(got->n_bytes, strlen(want));
                assert_memory_equal(got->data, want, strlen(want));
                if (f > 0) assert_int_equal(got->type.desc.shape.dim[0], strlen(want));
            }
        }
        source->class->close(source);
    }
}

static void damage_is_named(void **state)
{
    (void)state;
    const archive *a = &archives[2];
    uint8_t *bytes = unpack(a), header[512];
    expect_failure("empty", bytes, 0, STK_INVALID, "holds no sample");
    expect_failure("cut", bytes, 700, STK_CORRUPT, "at byte 512: it is cut short in a tar header");
    expect_failure("cut", bytes, 512 + 512 + 3, STK_CORRUPT,
                   "'a/0001.jpg' is cut short: it has 5 bytes, and 3 are left");
    expect_failure("cut", bytes, 512 + 512 + 100, STK_CORRUPT, "cut short behind 'a/0001.jpg'");
    for (size_t at = 512; at < 1024; at += 7) {
        bytes[at] ^= 1;
        expect_failure("sum", bytes, a->n, STK_CORRUPT, "at byte 512: the checksum of a tar header is wrong");
        bytes[at] ^= 1;
    }
    memcpy(header, bytes + 512, 512);
    snprintf((char *)bytes + 512 + 124, 12, "%s", "77777777777");
    set_sum(bytes + 512);
    expect_failure("size", bytes, a->n, STK_CORRUPT, "it has 8589934591 bytes");
    memset(bytes + 512 + 124, 0xff, 12);
    set_sum(bytes + 512);
    expect_failure("size", bytes, a->n, STK_CORRUPT, "the size in a tar header is damaged");
    bytes[512 + 124] = 0x80;
    memset(bytes + 512 + 125, 0, 3);
    set_sum(bytes + 512);
    expect_failure("size", bytes, a->n, STK_CORRUPT, "it has 18446744073709551615 bytes");
    memcpy(bytes + 512, header, 512);
    bytes[512 + 156] = 'S';
    set_sum(bytes + 512);
    expect_failure("sparse", bytes, a->n, STK_UNSUPPORTED, "a sparse file");
    bytes[512 + 156] = 'L';
    snprintf((char *)bytes + 512 + 124, 12, "%s", "00000300000");
    set_sum(bytes + 512);
    expect_failure("name", bytes, a->n, STK_CORRUPT, "");
    /* Two files of one name in one sample. */
    memcpy(bytes + 512, header, 512);
    memcpy(bytes + 512 + 1024, header, 512);
    expect_failure("twice", bytes, a->n, STK_CORRUPT, "sample 'a/0001' has two files '.jpg'");
    free(bytes);
}

static void labels_must_be_numbers(void **state)
{
    (void)state;
    const archive *a = &archives[0];
    stk_item item[STK_MAX_FIELDS];
    uint8_t *bytes = unpack(a);
    bytes[4 * 512] = 'c'; /* the first cls */
    const char *path = write_file("label", bytes, a->n);
    stk_source *source = open_one(path, NULL, 0);
    assert_int_equal(source->class->read(source, 0, scratch, item), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "its .cls is no whole number: 'c'"));
    assert_int_equal(source->class->read(source, 1, scratch, item), STK_OK);
    assert_int_equal(truncate(path, 3000), 0);
    assert_int_equal(source->class->read(source, 2, scratch, item), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "the file has become shorter"));
    source->class->close(source);
    free(bytes);
}

static void indexes_and_gzip(void **state)
{
    (void)state;
    const archive *a = &archives[1];
    uint8_t *bytes = unpack(a), *index = NULL;
    size_t capacity = 0, n;
    char path[512];
    snprintf(path, sizeof(path), "%s", write_file("i/x.tar", bytes, a->n));
    stk_source *source = open_one(path, NULL, 0);
    source->class->close(source);
    assert_int_equal(stk_file_read(in_folder("i/x.tar.stkidx"), &index, &capacity, &n), STK_OK);
    for (size_t at = 8; at < n; at += 13) { /* behind what makes it ours */
        index[at] ^= 0x40;
        write_file("i/x.tar.stkidx", index, n);
        index[at] ^= 0x40;
        source = open_one(path, NULL, 0);
        assert_non_null(strstr(source->note, "has been rebuilt"));
        check_samples(source, 0, a);
        source->class->close(source);
    }
    /* Somebody's file of that name stays, and the index lies in the cache folder. */
    write_file("i/x.tar.stkidx", "notes", 5);
    for (int i = 0; i < 2; i++) {
        source = open_one(path, NULL, 0);
        assert_int_equal(source->note[0] == 0, i > 0);
        check_samples(source, 0, a);
        source->class->close(source);
        assert_int_equal(stk_file_read(in_folder("i/x.tar.stkidx"), &index, &capacity, &n), STK_OK);
        assert_true(n == 5 && !memcmp(index, "notes", 5));
    }
    free(index);
    char packed[512];
    snprintf(packed, sizeof(packed), "%s", in_folder("x.tar.gz"));
    gzFile gz = gzopen(packed, "wb");
    assert_int_equal(gzwrite(gz, bytes, (unsigned)a->n), a->n);
    assert_int_equal(gzclose(gz), Z_OK);
    source = open_one(packed, NULL, 0);
    check_samples(source, 0, a);
    source->class->close(source);
    free(bytes);
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

/* Names that agree up to the first dot are one sample, and each part was compared with all before: 60,000 took minutes.
 */
static void parts_of_a_sample_are_bounded(void **state)
{
    (void)state;
    static const uint8_t nothing[1];
    stk_input file = stk_input_of_memory((stk_span){nothing, 1});
    for (int n = 4096; n <= 60000; n += 60000 - 4096) {
        stk_tar_samples samples;
        stk_text index = {0};
        for (int i = 0; i < n; i++) {
            uint8_t entry[20] = {0};
            char name[32];
            entry[16] = (uint8_t)snprintf(name, sizeof(name), "s.%d", i);
            stk_text_add_bytes(&index, entry, sizeof(entry));
            stk_text_add_bytes(&index, name, entry[16]);
        }
        stk_status status = stk_tar_samples_parse(&file, (stk_span){(uint8_t *)index.data, index.n}, &samples);
        assert_int_equal(status, n == 4096 ? STK_OK : STK_UNSUPPORTED);
        if (n > 4096) assert_non_null(strstr(stk_error_text(), "sample 's' has more than 4096 files"));
        stk_tar_samples_free(&samples);
        stk_text_free(&index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_prefixes), cmocka_unit_test(every_format),
        cmocka_unit_test(fields_are_chosen),   cmocka_unit_test(texts_are_fields),
        cmocka_unit_test(damage_is_named),     cmocka_unit_test(labels_must_be_numbers),
        cmocka_unit_test(indexes_and_gzip),    cmocka_unit_test(parts_of_a_sample_are_bounded)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
