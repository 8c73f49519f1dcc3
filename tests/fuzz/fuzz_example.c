/* tf.train.Example from memory, every kind of feature out of it; spans must lie in the input.
 *
 * covers: data/codec/example.c data/codec/wire.c
 */
#include <stdlib.h>
#include <string.h>

#include "data/codec/example.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(stk_span part, stk_span whole)
{
    if (part.n && (part.data < whole.data || part.data + part.n > whole.data + whole.n)) abort();
}

static void read_feature(stk_span feature, stk_span whole)
{
    static const stk_dtype dtypes[] = {STK_U8, STK_I8, STK_BOOL, STK_I32, STK_I64, STK_F32, STK_F64, STK_F16};
    uint8_t dst[64];
    stk_span bytes;
    check_inside(feature, whole);
    (void)stk_feature_is_empty(feature);
    if (stk_feature_bytes(feature, &bytes) == STK_OK) check_inside(bytes, whole);
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        for (int64_t n = 1; n <= 3; n++) {
            stk_tensor_desc desc = stk_desc_make(dtypes[i], STK_SHAPE(n));
            const void *in_place = stk_feature_in_place(feature, desc);
            memset(dst, 0x5a, sizeof(dst));
            stk_status status = stk_feature_array(feature, desc, dst);
            for (size_t k = stk_desc_bytes(desc); k < sizeof(dst); k++)
                if (dst[k] != 0x5a) abort();
            if (!in_place) continue;
            check_inside((stk_span){in_place, stk_desc_bytes(desc)}, whole);
            if (status != STK_OK || memcmp(in_place, dst, stk_desc_bytes(desc))) abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const stk_span keys[] = {{(const uint8_t *)"x", 1}, {(const uint8_t *)"image", 5}, {(const uint8_t *)"", 0}};
    stk_span value[3], whole = {data, size};
    if (stk_example_find(whole, keys, 3, value) == STK_OK)
        for (int i = 0; i < 3; i++)
            if (value[i].data) read_feature(value[i], whole);
    read_feature(whole, whole);
    return 0;
}
