/* Tensors in files: one file and shards, conversions, axes in another order, and indexes that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "stoker/files/safetensors.h"
#include "weights/safetensors.h"

#define FOLDER STK_BINARY_DIR "/safetensors-files"

static const float weight[2][3] = {{1, 2, 3}, {-4, 0.5f, 1e-8f}};
static const int64_t steps[2] = {((int64_t)1 << 62) + 1, -5};

static int fresh_folder(void **state)
{
    (void)state;
    return stk_tree_remove(FOLDER) != STK_OK || stk_dir_make(FOLDER) != STK_OK;
}

static void write_text(const char *path, const char *text)
{
    assert_int_equal(stk_file_write_durably(path, text, strlen(text)), STK_OK);
}

static stk_safetensor get(const stk_safetensors_file *file, const char *name)
{
    stk_safetensor t = {0};
    if (stk_safetensors_get(file, name, &t) != STK_OK) fail_msg("%s", stk_error_text());
    return t;
}

static const int32_t turned[] = {1, 0};
static const stk_safetensors_entry_out both[] = {
    {"weight", STK_F32, {2, {2, 3}}, weight, STK_F32, NULL},
    {"turned", STK_F32, {2, {2, 3}}, weight, STK_F32, turned},
    {"half", STK_F32, {2, {2, 3}}, weight, STK_BF16, NULL},
    {"steps", STK_I64, {1, {2}}, steps, STK_I64, NULL},
};

static void check_both(const char *path)
{
    stk_safetensors_file *file;
    float back[6];
    uint16_t half[6];
    int64_t numbers[2];
    if (stk_safetensors_open(path, &file) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_safetensors_count(file), 4);
    stk_safetensor t = get(file, "weight");
    assert_string_equal(t.type, "F32");
    assert_int_equal(stk_safetensors_read(&t, STK_F32, NULL, back), STK_OK);
    assert_memory_equal(back, weight, sizeof(weight));
    t = get(file, "turned");
    assert_true(stk_shape_equal(t.shape, STK_SHAPE(3, 2)));
    assert_int_equal(stk_safetensors_read(&t, STK_F32, turned, back), STK_OK);
    assert_memory_equal(back, weight, sizeof(weight));
    t = get(file, "half");
    assert_int_equal(t.dtype, STK_BF16);
    assert_int_equal(stk_safetensors_read(&t, STK_BF16, NULL, half), STK_OK);
    assert_int_equal(half[3], 0xc080);
    assert_int_equal(stk_safetensors_read(&t, STK_F32, NULL, back), STK_OK);
    assert_true(back[1] == 2 && fabs(back[5] - 1e-8) < 1e-10);
    t = get(file, "steps");
    assert_int_equal(stk_safetensors_read(&t, STK_I64, NULL, numbers), STK_OK);
    assert_memory_equal(numbers, steps, sizeof(steps));
    assert_int_equal(stk_safetensors_read(&t, STK_I32, NULL, back), STK_UNSUPPORTED);
    assert_int_equal(stk_safetensors_get(file, "weigth", &t), STK_NOT_FOUND);
    assert_non_null(strstr(stk_error_text(), "did you mean 'weight'?"));
    assert_string_equal(stk_safetensors_metadata(file, "format"), "pt");
    assert_string_equal(stk_safetensors_metadata(file, "a \"key\""), "a\nvalue");
    assert_null(stk_safetensors_metadata(file, "other"));
    stk_safetensors_close(file);
}

static void one_file_and_shards_read_the_same(void **state)
{
    (void)state;
    int64_t n;
    stk_safetensors_options options = {.metadata = (const char *const[]){"a \"key\"", "a\nvalue", NULL}};
    assert_int_equal(stk_safetensors_write(FOLDER "/model.safetensors", both, 4, &options, &n), STK_OK);
    assert_int_equal(n, 1);
    check_both(FOLDER "/model.safetensors");
    check_both(FOLDER);
    options.shard_bytes = 40;
    assert_int_equal(stk_safetensors_write(FOLDER "/model.safetensors", both, 4, &options, &n), STK_OK);
    assert_int_equal(n, 3);
    assert_true(stk_path_exists(FOLDER "/model-00003-of-00003.safetensors"));
    assert_false(stk_path_exists(FOLDER "/model.safetensors")); /* it would be read instead of the shards */
    check_both(FOLDER);
    check_both(FOLDER "/model.safetensors");
    check_both(FOLDER "/model.safetensors.index.json");
}

static void assert_bad_index(const char *index, stk_status status, const char *message)
{
    stk_safetensors_file *file;
    write_text(FOLDER "/bad.index.json", index);
    assert_int_equal(stk_safetensors_open(FOLDER "/bad.index.json", &file), status);
    if (!strstr(stk_error_text(), message)) fail_msg("'%s' lacks '%s'", stk_error_text(), message);
}

static void indexes_that_lie_are_refused(void **state)
{
    (void)state;
    assert_int_equal(stk_safetensors_write(FOLDER "/a.safetensors", both, 2, NULL, NULL), STK_OK);
    assert_int_equal(stk_safetensors_write(FOLDER "/b.safetensors", both, 1, NULL, NULL), STK_OK);
#define MAP(entries) "{\"metadata\":{},\"weight_map\":{" entries "}}"
    assert_bad_index(MAP("\"weight\":\"../a.safetensors\""), STK_CORRUPT, "no file name");
    assert_bad_index(MAP("\"weight\":\"/etc/passwd\""), STK_CORRUPT, "no file name");
    assert_bad_index(MAP("\"weight\":\"..\""), STK_CORRUPT, "no file name");
    assert_bad_index(MAP("\"weight\":7"), STK_CORRUPT, "no text");
    assert_bad_index(MAP("\"weight\":\"none.safetensors\""), STK_NOT_FOUND, "none.safetensors");
    assert_bad_index(MAP("\"weight\":\"a.safetensors\""), STK_CORRUPT, "does not tell");
    assert_bad_index(MAP("\"weight\":\"a.safetensors\",\"turned\":\"b.safetensors\""), STK_CORRUPT, "two shards");
    assert_bad_index(MAP("\"weight\":\"b.safetensors\",\"x\":\"b.safetensors\""), STK_CORRUPT, "though the index says");
    assert_bad_index("{}", STK_CORRUPT, "weight_map");
    assert_bad_index("[", STK_CORRUPT, "not JSON");
}

static void other_formats_are_named(void **state)
{
    (void)state;
    stk_safetensors_file *file;
    write_text(FOLDER "/a.pt", "PK\3\4 archive/data.pkl");
    assert_int_equal(stk_safetensors_open(FOLDER "/a.pt", &file), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "weights_only=True"));
    write_text(FOLDER "/a.pkl", "\x80\2}q");
    assert_int_equal(stk_safetensors_open(FOLDER "/a.pkl", &file), STK_UNSUPPORTED);
    assert_int_equal(stk_safetensors_open(FOLDER "/none", &file), STK_NOT_FOUND);
}

static void names_must_differ(void **state)
{
    (void)state;
    stk_safetensors_entry_out twice[] = {both[0], both[0]};
    assert_int_equal(stk_safetensors_write(FOLDER "/twice", twice, 2, NULL, NULL), STK_INVALID);
    twice[1] = both[1];
    twice[1].permutation = (const int32_t[]){1, 1};
    assert_int_equal(stk_safetensors_write(FOLDER "/twice", twice, 2, NULL, NULL), STK_INVALID);
    assert_false(stk_path_exists(FOLDER "/twice"));
}

/* Every value of the small floats, by their definition; integers at their ends. */
static void small_types_convert(void **state)
{
    (void)state;
    uint8_t bytes[] = {0x00, 0x01, 0x38, 0x7e, 0x7f, 0xb8}, u8[2];
    float x[6];
    stk_shape six = STK_SHAPE(6);
    assert_int_equal(stk_safetensors_convert("t", "F8_E4M3", six, bytes, STK_F32, NULL, x), STK_OK);
    assert_true(x[0] == 0 && x[1] == 0x1p-9f && x[2] == 1 && x[3] == 448 && isnan(x[4]) && x[5] == -1);
    uint8_t e5m2[] = {0x01, 0x3c, 0x7b, 0x7c, 0x7d, 0xfc};
    assert_int_equal(stk_safetensors_convert("t", "F8_E5M2", six, e5m2, STK_F32, NULL, x), STK_OK);
    assert_true(x[0] == 0x1p-16f && x[1] == 1 && x[2] == 57344 && x[3] == INFINITY && isnan(x[4]) && x[5] == -INFINITY);
    uint16_t u16[] = {65535, 255};
    assert_int_equal(stk_safetensors_convert("t", "U16", STK_SHAPE(2), u16, STK_F32, NULL, x), STK_OK);
    assert_true(x[0] == 65535);
    assert_int_equal(stk_safetensors_convert("t", "U16", STK_SHAPE(2), u16, STK_U8, NULL, u8), STK_UNSUPPORTED);
    assert_int_equal(stk_safetensors_convert("t", "U16", STK_SHAPE(1), u16 + 1, STK_U8, NULL, u8), STK_OK);
    assert_int_equal(u8[0], 255);
    uint64_t large = UINT64_MAX;
    int64_t out;
    assert_int_equal(stk_safetensors_convert("t", "U64", STK_SHAPE(1), &large, STK_I64, NULL, &out), STK_UNSUPPORTED);
    float reals[] = {3, 3.5f};
    int32_t whole[2];
    assert_int_equal(stk_safetensors_convert("t", "F32", STK_SHAPE(1), reals, STK_I32, NULL, whole), STK_OK);
    assert_int_equal(whole[0], 3);
    assert_int_equal(stk_safetensors_convert("t", "F32", STK_SHAPE(2), reals, STK_I32, NULL, whole), STK_UNSUPPORTED);
    /* An order of two axes; what lies behind it is none of it. */
    static const int32_t twice[] = {0, 0, 1};
    const float four[4] = {0};
    assert_int_equal(stk_safetensors_convert("t", "F32", STK_SHAPE(2, 2), four, STK_F32, twice, x), STK_INVALID);
    assert_string_equal(stk_error_text(), "tensor 't' has 2 axes, and the new order is no order of them");
}

/* Before, they were mapped: the process ended. */
static void a_file_that_shrinks_is_an_error(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    static float large[N], back[N];
    stk_safetensors_file *file;
    stk_safetensors_entry_out entry = {"large", STK_F32, {2, {1024, N / 1024}}, large, STK_F32, NULL};
    assert_int_equal(stk_safetensors_write(FOLDER "/shrinks", &entry, 1, NULL, NULL), STK_OK);
    assert_int_equal(stk_safetensors_open(FOLDER "/shrinks", &file), STK_OK);
    stk_safetensor t = get(file, "large");
    assert_int_equal(truncate(FOLDER "/shrinks", 100000), 0);
    assert_int_equal(stk_safetensors_read(&t, STK_F32, NULL, back), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "shrinks': tensor 'large': the file has become shorter"));
    assert_int_equal(stk_safetensors_read(&t, STK_BF16, NULL, back), STK_CORRUPT);
    assert_int_equal(stk_safetensors_read(&t, STK_F32, turned, back), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "at byte"));
    stk_safetensors_close(file);
}

/* Piece by piece, with the first axis in place, and as a whole, with it moved. */
static void large_tensors_are_converted_in_pieces(void **state)
{
    (void)state;
    enum { H = 37, W = 60000, ROWS = 3 };
    float *data = malloc(sizeof(float) * ROWS * H * W);
    double *back = malloc(sizeof(double) * ROWS * H * W);
    stk_safetensors_file *file;
    assert_true(data && back);
    for (int i = 0; i < ROWS * H * W; i++)
        data[i] = (float)i;
    stk_safetensors_entry_out entry = {"t", STK_F32, {3, {ROWS, H, W}}, data, STK_F32, NULL};
    assert_int_equal(stk_safetensors_write(FOLDER "/pieces", &entry, 1, NULL, NULL), STK_OK);
    assert_int_equal(stk_safetensors_open(FOLDER "/pieces", &file), STK_OK);
    stk_safetensor t = get(file, "t");
    for (int way = 0; way < 3; way++) {
        static const int32_t order[3][3] = {{0, 1, 2}, {0, 2, 1}, {2, 0, 1}};
        if (stk_safetensors_read(&t, STK_F64, order[way], back) != STK_OK) fail_msg("%s", stk_error_text());
        for (int i = 0; i < ROWS; i++)
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x += 997) {
                    size_t at = ((size_t)i * H + (size_t)y) * W + (size_t)x;
                    size_t to = way == 0   ? at
                                : way == 1 ? ((size_t)i * W + (size_t)x) * H + (size_t)y
                                           : ((size_t)x * ROWS + (size_t)i) * H + (size_t)y;
                    assert_true(back[to] == (double)data[at]);
                }
    }
    data[2 * H * W] = 0.5f;
    assert_int_equal(stk_safetensors_write(FOLDER "/pieces", &entry, 1, NULL, NULL), STK_OK);
    stk_safetensors_close(file);
    assert_int_equal(stk_safetensors_open(FOLDER "/pieces", &file), STK_OK);
    t = get(file, "t");
    assert_int_equal(stk_safetensors_read(&t, STK_I32, NULL, back), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "element 4440000 is no i32"));
    stk_safetensors_close(file);
    free(data);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file_and_shards_read_the_same),
        cmocka_unit_test(indexes_that_lie_are_refused),
        cmocka_unit_test(other_formats_are_named),
        cmocka_unit_test(names_must_differ),
        cmocka_unit_test(small_types_convert),
        cmocka_unit_test(a_file_that_shrinks_is_an_error),
        cmocka_unit_test(large_tensors_are_converted_in_pieces),
    };
    return cmocka_run_group_tests(tests, fresh_folder, NULL);
}
