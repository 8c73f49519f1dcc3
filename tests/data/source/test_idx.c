/* IDX files, plain and gzip; sizes that lie; files that do not belong together; MNIST itself where it is present. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <zlib.h>

#include "data/codec/idx.h"
#include "data/source/files.h"

/* Three images of 2 x 4, pixels 0 to 23, and their labels. */
static const uint8_t images[16 + 24] = {0, 0, 8, 3, 0, 0, 0,  3,  0,  0,  0,  2,  0,  0,  0,  4,  0,  1,  2,  3,
                                        4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
static const uint8_t labels[8 + 3] = {0, 0, 8, 1, 0, 0, 0, 3, 9, 200, 0};

/* deflate with a gzip header; returns the size. */
static size_t compress_gzip(const uint8_t *src, size_t n, uint8_t *out, size_t out_bytes)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)src;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)out_bytes;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n_out = out_bytes - z.avail_out;
    deflateEnd(&z);
    return n_out;
}

static void check_records(stk_source *source)
{
    stk_scratch scratch[STK_MAX_FIELDS] = {{0}};
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(source->n_records, 3);
    assert_int_equal(source->n_fields, 2);
    assert_int_equal(source->n_bytes, 24);
    assert_true(stk_shape_equal(source->field[0].type.desc.shape, STK_SHAPE(2, 4, 1)));
    assert_int_equal(source->field[0].type.desc.dtype, STK_U8);
    assert_int_equal(source->field[1].type.desc.dtype, STK_I32);
    assert_int_equal(source->field[1].type.desc.shape.rank, 0);
    assert_null(source->class_names);
    for (int i = 0; i < 3; i++) {
        source->class->prefetch(source, i);
        assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
        assert_int_equal(item[0].n_bytes, 8);
        assert_memory_equal(item[0].data, images + 16 + 8 * i, 8);
        assert_int_equal(*(int32_t *)item[1].data, labels[8 + i]);
    }
    free_scratch(scratch);
}

static void plain_and_gzip_are_told_by_content(void **state)
{
    (void)state;
    uint8_t packed[256];
    const char *plain = write_file("plain.gz", images, sizeof(images)); /* names do not matter */
    const char *zipped = write_file("zipped", packed, compress_gzip(images, sizeof(images), packed, sizeof(packed)));
    const char *label_file = write_file("labels", labels, sizeof(labels));
    for (int i = 0; i < 2; i++) {
        stk_source *source;
        char name[512];
        assert_int_equal(stk_source_open_idx(i ? zipped : plain, label_file, &source), STK_OK);
        check_records(source);
        source->class->name_record(source, 2, name, sizeof(name));
        assert_non_null(strstr(name, i ? "/zipped'" : "/plain.gz'"));
        assert_memory_equal(name, "record 2 of '", 13);
        source->class->close(source);
    }
    stk_source *source;
    assert_int_equal(stk_source_open_idx(plain, NULL, &source), STK_OK);
    assert_int_equal(source->n_fields, 1);
    source->class->close(source);
}

static void a_file_cut_short_later_does_no_harm(void **state)
{
    (void)state;
    stk_source *source;
    const char *path = write_file("cut_later", images, sizeof(images));
    assert_int_equal(stk_source_open_idx(path, write_file("labels", labels, sizeof(labels)), &source), STK_OK);
    assert_int_equal(truncate(path, 0), 0);
    check_records(source);
    source->class->close(source);
}

static void expect_failure(const uint8_t *bytes, size_t n, stk_status want, const char *text)
{
    stk_source *source;
    const char *path = write_file("wrong", bytes, n);
    assert_int_equal(stk_source_open_idx(path, NULL, &source), want);
    assert_string_equal(strstr(stk_error_text(), text) ? "" : stk_error_text(), "");
    assert_non_null(strstr(stk_error_text(), path));
}

static void sizes_must_be_exact(void **state)
{
    (void)state;
    uint8_t copy[sizeof(images) + 1] = {0};
    memcpy(copy, images, sizeof(images));
    expect_failure(copy, 0, STK_CORRUPT, "not an IDX file");
    expect_failure(copy, 7, STK_CORRUPT, "the IDX header is cut short");
    expect_failure(copy, sizeof(images) - 1, STK_CORRUPT, "the file has 23 bytes of data");
    expect_failure(copy, sizeof(images) + 1, STK_CORRUPT, "the file has 25 bytes of data, its IDX header says 24");
    memset(copy + 4, 0xFF, 12); /* a product far beyond 2^64 */
    expect_failure(copy, sizeof(images), STK_CORRUPT, "fewer than its IDX header says");
    memset(copy + 4, 0, 4);
    expect_failure(copy, sizeof(images), STK_CORRUPT, "dimension 0 of its IDX header is 0");
    memcpy(copy, images, sizeof(images));
    copy[2] = 0x0D;
    expect_failure(copy, sizeof(images), STK_UNSUPPORTED, "IDX element type 0x0d; only u8 (0x08) is supported");
    copy[2] = 8;
    copy[3] = 9;
    expect_failure(copy, sizeof(images), STK_CORRUPT, "IDX rank 9");
    expect_failure(labels, sizeof(labels), STK_INVALID, "is no file of images: its shape is [3]");
}

static void damaged_gzip_is_refused(void **state)
{
    (void)state;
    uint8_t packed[256];
    size_t n = compress_gzip(images, sizeof(images), packed, sizeof(packed));
    for (size_t cut = 2; cut < n; cut++)
        expect_failure(packed, cut, STK_CORRUPT, "the gzip data are cut short");
    for (size_t at = 10; at < n; at++) { /* 10: after the header, whose time and system do not matter */
        packed[at] ^= 0x04;
        uint8_t *inflated = NULL;
        size_t n_inflated;
        stk_status status = stk_gunzip((stk_span){packed, n}, 4096, &inflated, &n_inflated);
        /* Only the bits that fill the last byte of the deflate stream, before eight of checksum and size, are free. */
        assert_int_equal(status, at == n - 9 && status == STK_OK ? STK_OK : STK_CORRUPT);
        if (status == STK_OK) assert_memory_equal(inflated, images, sizeof(images));
        free(inflated);
        packed[at] ^= 0x04;
    }
    uint8_t *out;
    size_t n_out;
    assert_int_equal(stk_gunzip((stk_span){packed, n}, sizeof(images), &out, &n_out), STK_OK);
    assert_int_equal(n_out, sizeof(images));
    free(out);
    assert_int_equal(stk_gunzip((stk_span){packed, n}, sizeof(images) - 1, &out, &n_out), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "it inflates to more than 39 bytes"));
}

static void files_must_belong_together(void **state)
{
    (void)state;
    uint8_t fewer[8 + 2] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 2};
    stk_source *source;
    const char *image_file = write_file("images", images, sizeof(images));
    assert_int_equal(stk_source_open_idx(image_file, write_file("fewer", fewer, sizeof(fewer)), &source), STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "has 2 labels for the 3 images of '"));
    assert_int_equal(stk_source_open_idx(image_file, image_file, &source), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "is no file of labels"));
    assert_int_equal(stk_source_open_idx(image_file, in_folder("absent"), &source), STK_NOT_FOUND);
    assert_int_equal(stk_source_open_idx(test_folder, NULL, &source), STK_IO);
    assert_non_null(strstr(stk_error_text(), "it is a folder"));
}

static void mnist_is_read(void **state)
{
    (void)state;
    char folder[512], path[2][600];
    const char *given = getenv("STOKER_DATA");
    snprintf(folder, sizeof(folder), "%s", given ? given : STK_SOURCE_DIR "/../shared/data");
    snprintf(path[0], sizeof(path[0]), "%s/mnist/train-images-idx3-ubyte.gz", folder);
    snprintf(path[1], sizeof(path[1]), "%s/mnist/train-labels-idx1-ubyte.gz", folder);
    if (!stk_path_exists(path[0])) {
        print_message("SKIP: no MNIST in '%s' (set STOKER_DATA)\n", folder);
        skip();
    }
    stk_source *source;
    stk_item item[STK_MAX_FIELDS];
    stk_scratch scratch[STK_MAX_FIELDS] = {{0}};
    assert_int_equal(stk_source_open_idx(path[0], path[1], &source), STK_OK);
    assert_int_equal(source->n_records, 60000);
    assert_true(stk_shape_equal(source->field[0].type.desc.shape, STK_SHAPE(28, 28, 1)));
    double sum = 0, squares = 0;
    int64_t n_of[10] = {0};
    for (int64_t i = 0; i < source->n_records; i++) {
        assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
        for (size_t k = 0; k < 784; k++) {
            double x = (double)((uint8_t *)item[0].data)[k] / 255;
            sum += x;
            squares += x * x;
        }
        assert_in_range(*(int32_t *)item[1].data, 0, 9);
        n_of[*(int32_t *)item[1].data]++;
        if (i == 0) assert_int_equal(*(int32_t *)item[1].data, 5);
    }
    /* The well-known figures of the training set. */
    double mean = sum / (60000.0 * 784), variance = squares / (60000.0 * 784) - mean * mean;
    assert_true(mean > 0.13065 && mean < 0.13067);
    assert_true(variance > 0.3081 * 0.3081 - 1e-5 && variance < 0.3081 * 0.3081 + 1e-5);
    assert_int_equal(n_of[0], 5923);
    assert_int_equal(n_of[1], 6742);
    free_scratch(scratch);
    source->class->close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_gzip_are_told_by_content),
        cmocka_unit_test(a_file_cut_short_later_does_no_harm),
        cmocka_unit_test(sizes_must_be_exact),
        cmocka_unit_test(damaged_gzip_is_refused),
        cmocka_unit_test(files_must_belong_together),
        cmocka_unit_test(mnist_is_read),
    };
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
