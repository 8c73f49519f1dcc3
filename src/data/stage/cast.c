/* Elements of another type. Floats become integers by rounding to the nearest, kept within the range; NaN becomes 0.
 * Anything but 0 is true. Elements pass through f64, which holds all values but those of i64 beyond 2^53, and through
 * f32 on the way to f16 and bf16.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "data/stage/simd.h"
#include "data/stage/stage_list.h"

typedef struct cast_params {
    stk_dtype dtype;
} cast_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const cast_params *p = params;
    if (in->kind != STK_FIELD_ARRAY) return stk_fail(STK_INVALID, "needs an array, not encoded bytes");
    *out = *in;
    out->desc.dtype = p->dtype;
    return STK_OK;
}

STK_SIMD_CLONES
static void u8_to_f32(const uint8_t *restrict src, float *restrict dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)src[i];
}

#define EACH(expression)                                                                                               \
    for (int i = 0; i < n; i++)                                                                                        \
        dst[i] = (expression);                                                                                         \
    break

/* n elements from number `at` on. */
STK_SIMD_CLONES
static void load(const void *from, stk_dtype dtype, int64_t at, int n, double *restrict dst)
{
    switch (dtype) {
    case STK_U8: EACH(((const uint8_t *)from)[at + i]);
    case STK_I8: EACH(((const int8_t *)from)[at + i]);
    case STK_BOOL: EACH(((const uint8_t *)from)[at + i] != 0);
    case STK_I32: EACH(((const int32_t *)from)[at + i]);
    case STK_I64: EACH((double)((const int64_t *)from)[at + i]);
    case STK_F32: EACH((double)((const float *)from)[at + i]);
    case STK_BF16: EACH((double)stk_bf16_to_f32(((const uint16_t *)from)[at + i]));
    case STK_F16: EACH((double)stk_f16_to_f32(((const uint16_t *)from)[at + i]));
    default: EACH(((const double *)from)[at + i]);
    }
}

#undef EACH

static inline double clamp(double x, double low, double high)
{
    double rounded = nearbyint(x);
    rounded = rounded < low ? low : rounded > high ? high : rounded;
    return x == x ? rounded : 0;
}

#define EACH(type, expression)                                                                                         \
    for (int i = 0; i < n; i++)                                                                                        \
        ((type *)to)[at + i] = (type)(expression);                                                                     \
    break

STK_SIMD_CLONES
static void store(const double *restrict src, stk_dtype dtype, int64_t at, int n, void *restrict to)
{
    switch (dtype) {
    case STK_U8: EACH(uint8_t, clamp(src[i], 0, UINT8_MAX));
    case STK_I8: EACH(int8_t, clamp(src[i], INT8_MIN, INT8_MAX));
    case STK_BOOL: EACH(uint8_t, src[i] != 0);
    case STK_I32: EACH(int32_t, clamp(src[i], INT32_MIN, INT32_MAX));
    case STK_I64: EACH(int64_t, clamp(src[i], -0x1p63, 0x1.fffffffffffffp62)); /* the last double below 2^63 */
    case STK_F32: EACH(float, src[i]);
    case STK_BF16: EACH(uint16_t, stk_f32_to_bf16((float)src[i]));
    case STK_F16: EACH(uint16_t, stk_f32_to_f16((float)src[i]));
    default: EACH(double, src[i]);
    }
}

#undef EACH

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const cast_params *p = params;
    stk_dtype from = in->type.desc.dtype;
    int64_t n = stk_shape_count(in->type.desc.shape);
    (void)key;
    (void)scratch;
    if (from == p->dtype) {
        memcpy(out->data, in->data, in->n_bytes);
        return STK_OK;
    }
    if (from == STK_U8 && p->dtype == STK_F32) {
        u8_to_f32(in->data, out->data, n);
        return STK_OK;
    }
    double part[256]; /* stays in the first cache */
    for (int64_t at = 0; at < n; at += 256) {
        int n_part = n - at < 256 ? (int)(n - at) : 256;
        load(in->data, from, at, n_part, part);
        store(part, p->dtype, at, n_part, out->data);
    }
    return STK_OK;
}

static stk_status look(const void *params, const stk_stage_key *key, stk_view *view, bool *fits)
{
    const cast_params *p = params;
    float a[STK_VIEW_CHANNELS], b[STK_VIEW_CHANNELS];
    (void)key;
    for (int c = 0; c < STK_VIEW_CHANNELS; c++) {
        a[c] = 1;
        b[c] = -0.0f; /* changes no bit of a sum */
    }
    *fits = p->dtype == STK_F32 && stk_view_affine(view, a, b, STK_VIEW_CHANNELS);
    return STK_OK;
}

#define X(name, text, bytes) text,
static const char *const dtype_words[] = {STK_DTYPE_LIST(X) NULL};
#undef X
static const stk_key keys[] = {
    {.name = "dtype", .type = STK_KEY_WORD, .words = dtype_words, .required = true, .doc = "The element type."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    int dtype = STK_F32;
    while (dtype + 1 < STK_N_DTYPES && !stk_yaml_is(settings, "dtype", dtype_words[dtype]))
        dtype++;
    *out = stk_cast((stk_dtype)dtype);
    return STK_OK;
}

const stk_stage_class stk_stage_cast = {
    .key = {.name = "cast", .type = STK_KEY_MAP, .keys = keys, .doc = "Changes the element type."},
    .build = build,
    .rescales = true,
    .params_bytes = sizeof(cast_params),
    .plan = plan,
    .run = run,
    .view = look,
    .plain = true};

stk_stage *stk_cast(stk_dtype dtype)
{
    if ((unsigned)dtype >= STK_N_DTYPES)
        return stk_stage_new_failed(STK_INVALID, "cast: no such element type: %d", (int)dtype);
    return stk_stage_new(&stk_stage_cast, &(cast_params){dtype});
}
