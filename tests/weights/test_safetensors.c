/* The safetensors format: round trip, the layout by hand, and everything that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "high_water.h"
#include "weights/safetensors.h"

/* A file of a header and n bytes of data. Returned: free(). */
static uint8_t *make_file(const char *header, size_t n_data, size_t *n)
{
    size_t length = strlen(header);
    uint8_t *file = calloc(1, 8 + length + n_data);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < n_data; i++)
        file[8 + length + i] = (uint8_t)i;
    *n = 8 + length + n_data;
    return file;
}

static void assert_refused(const char *header, size_t n_data, const char *message)
{
    size_t n;
    stk_safetensors set;
    uint8_t *file = make_file(header, n_data, &n);
    if (stk_safetensors_parse((stk_span){file, n}, &set) == STK_OK) fail_msg("accepted: %s", header);
    assert_int_equal(set.n, 0);
    if (!strstr(stk_error_text(), message)) fail_msg("'%s' lacks '%s'", stk_error_text(), message);
    free(file);
}

static void a_file_made_by_hand_is_read(void **state)
{
    (void)state;
    size_t n;
    stk_safetensors set;
    uint8_t *file = make_file("{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]},"
                              "\"__metadata__\":{\"format\":\"pt\"},"
                              "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                              "\"s\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[11,13]}}  ",
                              13, &n);
    assert_int_equal(stk_safetensors_parse((stk_span){file, n}, &set), STK_OK);
    assert_int_equal(set.n, 3);
    const stk_safetensors_entry *b = stk_safetensors_find(&set, "b"), *s = stk_safetensors_find(&set, "s");
    assert_int_equal(b->desc.dtype, STK_U8);
    assert_int_equal(((const uint8_t *)b->data)[0], 8);
    assert_int_equal(s->desc.shape.rank, 0);
    assert_null(stk_safetensors_find(&set, "c"));
    stk_safetensors_free(&set);
    free(file);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    const char *names[] = {"conv2d.weight", "odd \"name\" \\ \x01", "empty", "scalar"};
    stk_tensor_desc descs[] = {stk_desc_make(STK_F32, STK_SHAPE(2, 3, 3, 1)), stk_desc_make(STK_I64, STK_SHAPE(5)),
                               stk_desc_make(STK_F16, STK_SHAPE(0)), stk_desc_make(STK_F64, (stk_shape){0})};
    stk_text file = {0};
    stk_safetensors set;
    size_t bytes = 0;
    static const char zeros[256];
    assert_int_equal(stk_safetensors_header(names, descs, 4, NULL, &file), STK_OK);
    assert_int_equal(file.n % 8, 0);
    for (int i = 0; i < 4; i++)
        bytes += stk_desc_bytes(descs[i]);
    stk_text_add_bytes(&file, zeros, bytes);
    if (stk_safetensors_parse((stk_span){(const uint8_t *)file.data, file.n}, &set) != STK_OK)
        fail_msg("%s", stk_error_text());
    for (int i = 0; i < 4; i++) {
        const stk_safetensors_entry *entry = stk_safetensors_find(&set, names[i]);
        assert_non_null(entry);
        assert_int_equal(entry->desc.dtype, descs[i].dtype);
        assert_true(stk_shape_equal(entry->desc.shape, descs[i].shape));
    }
    stk_safetensors_free(&set);
    stk_text_free(&file);
}

#define ENTRY(shape, from, to) "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}}"

static void bad_files_are_refused(void **state)
{
    (void)state;
    assert_refused(ENTRY("[2]", "0", "8"), 7, "outside");
    assert_refused(ENTRY("[2]", "0", "8"), 9, "after the last tensor");
    assert_refused(ENTRY("[2]", "4", "12"), 12, "gap");
    assert_refused(ENTRY("[3]", "0", "8"), 8, "needs 12");
    assert_refused(ENTRY("[-2]", "0", "8"), 8, "dimension");
    assert_refused(ENTRY("[2.0]", "0", "8"), 8, "dimension");
    assert_refused(ENTRY("[2]", "8", "0"), 8, "outside");
    assert_refused(ENTRY("[2]", "-1", "7"), 8, "outside");
    assert_refused(ENTRY("[4611686018427387904,4]", "0", "0"), 0, "");
    assert_refused(ENTRY("[1,1,1,1,1,1,1,1,1]", "0", "4"), 4, "dimensions");
    assert_refused("{\"a\":{\"dtype\":\"F7\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype 'F7'");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "'a'");
    assert_refused("{\"a\":[]}", 0, "'a'");
    assert_refused("[]", 0, "no JSON object");
    assert_refused("{", 0, "not JSON");
    assert_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
                   "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
                   8, "overlaps");
    assert_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                   "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
                   8, "not JSON");
}

static void bad_lengths_are_refused(void **state)
{
    (void)state;
    stk_safetensors set;
    uint8_t file[16] = {0};
    for (size_t n = 0; n < 8; n++)
        assert_int_equal(stk_safetensors_parse((stk_span){file, n}, &set), STK_CORRUPT);
    memset(file, 0xff, 8);
    assert_int_equal(stk_safetensors_parse((stk_span){file, 16}, &set), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "header"));
    memset(file, 0, 8);
    file[0] = 9; /* one byte more than there is */
    assert_int_equal(stk_safetensors_parse((stk_span){file, 16}, &set), STK_CORRUPT);
}

/* "[],[],..." would become fifty bytes of tree for each of text. */
static void a_header_takes_no_more_than_its_bound(void **state)
{
    (void)state;
    enum { N = 30 << 20 };
    stk_safetensors set;
    uint8_t *file = malloc(8 + N);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)N >> (8 * i));
    memcpy(file + 8, "{\"a\":[[]", 9);
    for (size_t i = 9; i < N; i++)
        file[8 + i] = (uint8_t)(",[]"[(i - 9) % 3]);
    memcpy(file + 8 + N - 5, "\"\"]} ", 5);
    size_t before = high_water();
    assert_int_equal(stk_safetensors_parse((stk_span){file, 8 + N}, &set), STK_UNSUPPORTED);
    if (!strstr(stk_error_text(), "and may take 256")) fail_msg("%s", stk_error_text());
    assert_true(high_water() - before < (size_t)300 << 20);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_made_by_hand_is_read),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(bad_lengths_are_refused),
        cmocka_unit_test(a_header_takes_no_more_than_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
