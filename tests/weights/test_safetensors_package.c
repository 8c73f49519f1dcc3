/* A file written by the Python package safetensors, recorded by tests/golden/make_safetensors.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/error.h"
#include "weights/safetensors.h"

static const void *get(const stk_safetensors *set, const char *name, stk_dtype dtype, stk_shape shape)
{
    const stk_safetensors_entry *entry = stk_safetensors_find(set, name);
    if (!entry) fail_msg("no tensor '%s'", name);
    assert_int_equal(entry->desc.dtype, dtype);
    assert_true(stk_shape_equal(entry->desc.shape, shape));
    return entry->data;
}

static void a_file_of_the_package_is_read(void **state)
{
    (void)state;
    stk_span file;
    stk_safetensors set;
    float weight[12];
    int64_t steps[2];
    double pi;
    int32_t scalar;
    assert_int_equal(stk_file_load(STK_SOURCE_DIR "/tests/golden/small.safetensors", &file), STK_OK);
    if (stk_safetensors_parse(file, &set) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(set.n, 6);
    memcpy(weight, get(&set, "conv.weight", STK_F32, STK_SHAPE(2, 3, 2)), sizeof(weight));
    for (int i = 0; i < 12; i++)
        assert_true(weight[i] == (float)i / 8);
    memcpy(steps, get(&set, "steps", STK_I64, STK_SHAPE(2)), sizeof(steps));
    assert_true(steps[0] == ((int64_t)1 << 62) + 1 && steps[1] == -5);
    memcpy(&pi, get(&set, "double", STK_F64, STK_SHAPE(1)), sizeof(pi));
    assert_true(pi == 0x1.921fb54442d18p+1);
    assert_memory_equal(get(&set, "mask", STK_U8, STK_SHAPE(3)), "\1\0\377", 3);
    assert_memory_equal(get(&set, "half", STK_BF16, STK_SHAPE(2)), "\0\x3f\0\xc0", 4);
    memcpy(&scalar, get(&set, "scalar", STK_I32, (stk_shape){0}), sizeof(scalar));
    assert_int_equal(scalar, -7);
    assert_null(stk_safetensors_find(&set, "none"));
    stk_safetensors_free(&set);
    stk_file_unload(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_file_of_the_package_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
