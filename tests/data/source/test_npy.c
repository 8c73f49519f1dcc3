/* Arrays as NumPy writes them; headers and archives that lie; files cut short, before and during use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/codec/npy.h"
#include "data/source/files.h"
#include "data/source/records.h"
#include "golden/npy_golden.h"

static stk_scratch scratch[STK_MAX_FIELDS];

static void check_xy(const stk_npy_field *fields, int n_fields)
{
    stk_source *source;
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(stk_source_open_npy(fields, n_fields, &source), STK_OK);
    assert_int_equal(source->n_records, 4);
    assert_int_equal(source->n_fields, 2);
    assert_int_equal(source->field[0].type.desc.dtype, STK_F32);
    assert_true(stk_shape_equal(source->field[0].type.desc.shape, STK_SHAPE(3, 2)));
    assert_int_equal(source->field[1].type.desc.dtype, STK_I64);
    assert_int_equal(source->field[1].type.desc.shape.rank, 0);
    assert_int_equal(source->n_bytes, 4 * 6 * 4 + 4 * 8);
    for (int64_t i = 0; i < 4; i++) {
        source->class->prefetch(source, i);
        assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
        assert_int_equal(item[0].n_bytes, 24);
        for (int64_t k = 0; k < 6; k++) {
            float value;
            memcpy(&value, (uint8_t *)item[0].data + 4 * k, 4);
            assert_true(value == 0.5f * (float)(6 * i + k) - 3);
        }
        assert_memory_equal(item[1].data, &golden_y[i], 8);
    }
    source->class->close(source);
}

static void files_of_every_version(void **state)
{
    (void)state;
    const char *y = write_file("y.npy", golden_y_v1, sizeof(golden_y_v1));
    check_xy((stk_npy_field[]){{"image", write_file("1.npy", golden_x_v1, sizeof(golden_x_v1))}, {"label", y}}, 2);
    check_xy((stk_npy_field[]){{"image", write_file("2.npy", golden_x_v2, sizeof(golden_x_v2))}, {"label", y}}, 2);
    check_xy((stk_npy_field[]){{"image", write_file("3.npy", golden_x_v3, sizeof(golden_x_v3))}, {"label", y}}, 2);
}

static void archives_stored_and_deflated(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = i ? write_file("d.npz", golden_deflated_npz, sizeof(golden_deflated_npz))
                             : write_file("s.npz", golden_stored_npz, sizeof(golden_stored_npz));
        char x[512], y[512];
        check_xy(&(stk_npy_field){NULL, path}, 1);
        snprintf(x, sizeof(x), "%s:x", path);
        snprintf(y, sizeof(y), "%s:y.npy", path);
        check_xy((stk_npy_field[]){{"image", x}, {"label", y}}, 2);
    }
}

/* Where no memory is left it is read row by row, as a file of its own is. */
static void a_stored_array_need_not_fit(void **state)
{
    (void)state;
    stk_memory *memory;
    stk_source *source;
    stk_item item[STK_MAX_FIELDS];
    float last;
    const char *path = write_file("s.npz", golden_stored_npz, sizeof(golden_stored_npz));
    assert_int_equal(stk_memory_new(64, &memory), STK_OK);
    stk_memory *before = stk_memory_use(memory);
    stk_status status = stk_source_open_npy(&(stk_npy_field){NULL, path}, 1, &source);
    stk_memory_use(before);
    assert_string_equal(status == STK_OK ? "" : stk_error_text(), "");
    assert_int_equal(source->n_bytes, 4 * 8); /* the labels */
    assert_int_equal(source->class->read(source, 3, scratch, item), STK_OK);
    memcpy(&last, (uint8_t *)item[0].data + 20, 4);
    assert_true(last == 0.5f * 23 - 3);
    assert_memory_equal(item[1].data, &golden_y[3], 8);
    source->class->close(source);
    stk_memory_free(memory);
}

static void every_type(void **state)
{
    (void)state;
    static const struct {
        const uint8_t *bytes;
        size_t n;
        stk_dtype dtype;
    } cases[] = {{golden_f4, sizeof(golden_f4), STK_F32}, {golden_f2, sizeof(golden_f2), STK_F16},
                 {golden_f8, sizeof(golden_f8), STK_F64}, {golden_i8, sizeof(golden_i8), STK_I64},
                 {golden_i4, sizeof(golden_i4), STK_I32}, {golden_i1, sizeof(golden_i1), STK_I8},
                 {golden_u1, sizeof(golden_u1), STK_U8},  {golden_b1, sizeof(golden_b1), STK_BOOL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_tensor_desc desc;
        uint64_t data_at;
        assert_int_equal(stk_npy_parse((stk_span){cases[i].bytes, cases[i].n}, cases[i].n, &desc, &data_at, NULL),
                         STK_OK);
        assert_int_equal(desc.dtype, cases[i].dtype);
        assert_true(stk_shape_equal(desc.shape, STK_SHAPE(2, 2)));
        assert_int_equal(data_at + stk_desc_bytes(desc), cases[i].n);
    }
}

static void expect_failure(const char *name, const void *bytes, size_t n, stk_status want, const char *text)
{
    stk_source *source;
    const char *path = write_file(name, bytes, n);
    assert_int_equal(stk_source_open_npy(&(stk_npy_field){NULL, path}, 1, &source), want);
    assert_string_equal(strstr(stk_error_text(), text) ? "" : stk_error_text(), "");
    assert_non_null(strstr(stk_error_text(), path));
}

/* A file of two rows of two elements. */
static const char *write_rows(const char *descr, const void *elements, size_t n)
{
    uint8_t bytes[256] = "\x93NUMPY\x01\x00\x76";
    int end = snprintf((char *)bytes + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 2), }", descr);
    memset(bytes + 10 + end, ' ', (size_t)(118 - end));
    memcpy(bytes + 128, elements, n);
    return write_file("rows.npy", bytes, 128 + n);
}

/* Whole numbers that have no type of ours become the next wider one. */
static void whole_numbers_are_widened(void **state)
{
    (void)state;
    static const int16_t i2[] = {-32768, -1, 7, 32767};
    static const uint16_t u2[] = {0, 1, 40000, 65535};
    static const uint32_t u4[] = {0, 1, 3000000000u, UINT32_MAX};
    static const uint64_t u8[] = {0, 1, UINT64_C(1) << 40, INT64_MAX};
    static const struct {
        const char *descr;
        const void *elements;
        size_t n;
        stk_dtype dtype;
        int64_t want[4];
    } cases[] = {{"<i2", i2, sizeof(i2), STK_I32, {-32768, -1, 7, 32767}},
                 {"<u2", u2, sizeof(u2), STK_I32, {0, 1, 40000, 65535}},
                 {"<u4", u4, sizeof(u4), STK_I64, {0, 1, 3000000000, UINT32_MAX}},
                 {"<u8", u8, sizeof(u8), STK_I64, {0, 1, INT64_C(1) << 40, INT64_MAX}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_source *source;
        stk_item item;
        const char *path = write_rows(cases[i].descr, cases[i].elements, cases[i].n);
        assert_int_equal(stk_source_open_npy(&(stk_npy_field){NULL, path}, 1, &source), STK_OK);
        assert_int_equal(source->field[0].type.desc.dtype, cases[i].dtype);
        for (int64_t k = 0; k < 4; k++) {
            assert_int_equal(source->class->read(source, k / 2, scratch, &item), STK_OK);
            int64_t got = cases[i].dtype == STK_I32 ? ((int32_t *)item.data)[k % 2] : ((int64_t *)item.data)[k % 2];
            assert_true(got == cases[i].want[k]);
        }
        source->class->close(source);
    }
    static const uint64_t large[] = {1, 2, 3, UINT64_C(1) << 63};
    stk_source *source;
    stk_item item;
    const char *path = write_rows("<u8", large, sizeof(large));
    assert_int_equal(stk_source_open_npy(&(stk_npy_field){NULL, path}, 1, &source), STK_OK);
    assert_int_equal(source->class->read(source, 0, scratch, &item), STK_OK);
    assert_int_equal(source->class->read(source, 1, scratch, &item), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "row 1: element 1 is too large for i64"));
    source->class->close(source);
}

static void what_is_not_ours_is_refused_by_name(void **state)
{
    (void)state;
    expect_failure("a.npy", golden_big, sizeof(golden_big), STK_UNSUPPORTED, "'>f4' are big-endian");
    expect_failure("a.npy", golden_fortran, sizeof(golden_fortran), STK_UNSUPPORTED, "in Fortran order");
    expect_failure("a.npy", golden_complex, sizeof(golden_complex), STK_UNSUPPORTED, "'<c8'");
    expect_failure("a.npy", golden_text, sizeof(golden_text), STK_UNSUPPORTED, "'<U2'");
    expect_failure("a.npy", golden_structured, sizeof(golden_structured), STK_UNSUPPORTED, "structured array");
    expect_failure("a.npy", golden_scalar, sizeof(golden_scalar), STK_INVALID, "a single number");
    expect_failure("a.npy", golden_empty, sizeof(golden_empty), STK_INVALID, "it has no rows");
}

static void every_cut_is_noticed(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(golden_x_v1); n++)
        expect_failure("a.npy", golden_x_v1, n, STK_CORRUPT, "");
    uint8_t longer[sizeof(golden_x_v1) + 1] = {0};
    memcpy(longer, golden_x_v1, sizeof(golden_x_v1));
    expect_failure("a.npy", longer, sizeof(longer), STK_CORRUPT, "97 bytes of elements, its .npy header says 96");
    for (size_t n = 0; n < sizeof(golden_deflated_npz); n++)
        expect_failure("a.npz", golden_deflated_npz, n, STK_CORRUPT, "");
}

static void headers_that_lie(void **state)
{
    (void)state;
    uint8_t bytes[sizeof(golden_x_v1)];
    static const struct {
        const char *dict;
        const char *text;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8)}", "cannot be right"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}", "cannot be right"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "more than 8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False}", "damaged"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + x", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "damaged"},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}", "not supported"},
        {"{'descr': '<f4", "damaged"},
        {"", "damaged"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n = strlen(cases[i].dict);
        stk_source *source;
        memcpy(bytes, golden_x_v1, sizeof(bytes));
        bytes[8] = (uint8_t)n;
        bytes[9] = 0;
        memcpy(bytes + 10, cases[i].dict, n);
        const char *path = write_file("lies.npy", bytes, sizeof(bytes));
        assert_int_not_equal(stk_source_open_npy(&(stk_npy_field){NULL, path}, 1, &source), STK_OK);
        assert_string_equal(strstr(stk_error_text(), cases[i].text) ? "" : stk_error_text(), "");
    }
    memcpy(bytes, golden_x_v2, sizeof(bytes));
    memset(bytes + 8, 0xff, 4); /* a header of 4 GiB */
    expect_failure("a.npy", bytes, sizeof(bytes), STK_CORRUPT, "header of 4294967295 bytes cannot be right");
    memcpy(bytes, golden_x_v1, sizeof(bytes));
    bytes[6] = 4;
    expect_failure("a.npy", bytes, sizeof(bytes), STK_UNSUPPORTED, "of version 4");
}

/* Every byte of the archive is checked by something, or does not matter; none may be read past its end. */
static void damaged_archives(void **state)
{
    (void)state;
    uint8_t bytes[sizeof(golden_deflated_npz)];
    for (size_t at = 0; at < sizeof(bytes); at++) {
        stk_source *source;
        memcpy(bytes, golden_deflated_npz, sizeof(bytes));
        bytes[at] ^= 0x11;
        const char *path = write_file("a.npz", bytes, sizeof(bytes));
        if (stk_source_open_npy(&(stk_npy_field){NULL, path}, 1, &source) == STK_OK) source->class->close(source);
    }
    memcpy(bytes, golden_deflated_npz, sizeof(bytes));
    bytes[70] ^= 1; /* in the first member's data */
    expect_failure("a.npz", bytes, sizeof(bytes), STK_CORRUPT, "");
}

static void arrays_must_go_together(void **state)
{
    (void)state;
    stk_source *source;
    const char *x = write_file("x.npy", golden_x_v1, sizeof(golden_x_v1));
    const char *two = write_file("two.npy", golden_i4, sizeof(golden_i4));
    const char *npz = write_file("two.npz", golden_stored_npz, sizeof(golden_stored_npz));
    stk_npy_field fields[] = {{"image", x}, {"label", two}};
    assert_int_equal(stk_source_open_npy(fields, 2, &source), STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "has 2 rows"));
    fields[1].path = x;
    fields[1].name = "image";
    assert_int_equal(stk_source_open_npy(fields, 2, &source), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "two fields are named 'image'"));
    char path[512];
    snprintf(path, sizeof(path), "%s:z", npz);
    assert_int_equal(stk_source_open_npy(&(stk_npy_field){"image", path}, 1, &source), STK_NOT_FOUND);
    assert_non_null(strstr(stk_error_text(), "has no array 'z'; it has 'x', 'y'"));
    assert_int_equal(stk_source_open_npy(&(stk_npy_field){"image", npz}, 1, &source), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "several arrays"));
    assert_int_equal(stk_source_open_npy(&(stk_npy_field){NULL, in_folder("absent.npy")}, 1, &source), STK_NOT_FOUND);
    assert_int_equal(stk_source_open_npy(NULL, 1, &source), STK_INVALID);
}

/* Larger than what is read into memory, but sparse: rows come from the file. */
static void a_large_file_cut_short_in_use(void **state)
{
    (void)state;
    char header[128];
    const uint64_t n_rows = STK_IN_MEMORY_BYTES / 1024 + 1;
    memset(header, ' ', sizeof(header));
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    int n = snprintf(header + 10, 118, "{'descr': '|u1', 'fortran_order': False, 'shape': (%llu, 1024), }",
                     (unsigned long long)n_rows);
    header[10 + n] = ' ';
    const char *path = write_file("large.npy", header, sizeof(header));
    assert_int_equal(truncate(path, (off_t)(128 + n_rows * 1024)), 0);
    stk_source *source;
    stk_item item[STK_MAX_FIELDS];
    assert_int_equal(stk_source_open_npy(&(stk_npy_field){NULL, path}, 1, &source), STK_OK);
    assert_int_equal(source->n_records, n_rows);
    assert_int_equal(source->class->read(source, (int64_t)n_rows - 1, scratch, item), STK_OK);
    assert_int_equal(*(uint8_t *)item[0].data, 0);
    assert_int_equal(truncate(path, 128 + 2048), 0);
    assert_int_equal(source->class->read(source, 1, scratch, item), STK_OK);
    assert_int_equal(source->class->read(source, 2, scratch, item), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "row 2: the file has become shorter"));
    source->class->close(source);
}

static void a_data_set_of_arrays(void **state)
{
    (void)state;
    const char *x = write_file("x.npy", golden_x_v1, sizeof(golden_x_v1));
    stk_dataset *dataset = stk_dataset_npy(&(stk_npy_field){"image", x}, 1);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_count(dataset), 4);
    stk_dataset_free(dataset);
    dataset = stk_dataset_npy(&(stk_npy_field){"image", in_folder("absent.npy")}, 1);
    assert_int_equal(stk_dataset_status(dataset), STK_NOT_FOUND);
    stk_dataset_free(dataset);
}

static int tear_down(void **state)
{
    free_scratch(scratch);
    return remove_test_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_every_version),
        cmocka_unit_test(archives_stored_and_deflated),
        cmocka_unit_test(a_stored_array_need_not_fit),
        cmocka_unit_test(every_type),
        cmocka_unit_test(whole_numbers_are_widened),
        cmocka_unit_test(what_is_not_ours_is_refused_by_name),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(headers_that_lie),
        cmocka_unit_test(damaged_archives),
        cmocka_unit_test(arrays_must_go_together),
        cmocka_unit_test(a_large_file_cut_short_in_use),
        cmocka_unit_test(a_data_set_of_arrays),
    };
    return cmocka_run_group_tests(tests, make_test_folder, tear_down);
}
