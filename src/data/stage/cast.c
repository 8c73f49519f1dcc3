/* Elements of another type: among u8, i32, i64, f32 and f64. Floats become integers by rounding to the nearest, kept
 * within the range; NaN becomes 0. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/stage/simd.h"
#include "data/stage/stage_list.h"

typedef struct cast_params {
    stk_dtype dtype;
} cast_params;

static bool is_castable(stk_dtype dtype)
{
    return dtype == STK_U8 || dtype == STK_I32 || dtype == STK_I64 || dtype == STK_F32 || dtype == STK_F64;
}

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const cast_params *p = params;
    char text[STK_SHAPE_TEXT_BYTES];
    if (in->kind != STK_FIELD_ARRAY || !is_castable(in->desc.dtype))
        return stk_fail(STK_INVALID, "needs u8, i32, i64, f32 or f64 arrays, not %s",
                        in->kind == STK_FIELD_ARRAY ? stk_desc_text(in->desc, text) : "encoded bytes");
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

static double load(const void *src, stk_dtype dtype, int64_t i)
{
    switch (dtype) {
    case STK_U8: return ((const uint8_t *)src)[i];
    case STK_I32: return ((const int32_t *)src)[i];
    case STK_I64: return (double)((const int64_t *)src)[i];
    case STK_F32: return (double)((const float *)src)[i];
    default: return ((const double *)src)[i];
    }
}

static double clamp(double x, double low, double high)
{
    if (isnan(x)) return 0;
    x = nearbyint(x);
    return x < low ? low : x > high ? high : x;
}

static void store(void *dst, stk_dtype dtype, int64_t i, double x)
{
    switch (dtype) {
    case STK_U8: ((uint8_t *)dst)[i] = (uint8_t)clamp(x, 0, 255); break;
    case STK_I32: ((int32_t *)dst)[i] = (int32_t)clamp(x, INT32_MIN, INT32_MAX); break;
    case STK_I64: ((int64_t *)dst)[i] = (int64_t)clamp(x, -0x1p62, 0x1p62); break;
    case STK_F32: ((float *)dst)[i] = (float)x; break;
    default: ((double *)dst)[i] = x; break;
    }
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const cast_params *p = params;
    int64_t n = stk_shape_count(in->type.desc.shape);
    (void)key;
    (void)scratch;
    if (in->type.desc.dtype == p->dtype)
        memcpy(out->data, in->data, in->n_bytes);
    else if (in->type.desc.dtype == STK_U8 && p->dtype == STK_F32)
        u8_to_f32(in->data, out->data, n);
    else
        for (int64_t i = 0; i < n; i++)
            store(out->data, p->dtype, i, load(in->data, in->type.desc.dtype, i));
    return STK_OK;
}

const stk_stage_class stk_stage_cast = {.name = "cast", .params_bytes = sizeof(cast_params), .plan = plan, .run = run};

stk_stage *stk_cast(stk_dtype dtype)
{
    if (!is_castable(dtype))
        return stk_stage_new_failed(STK_UNSUPPORTED, "cast: to '%s' is not supported; u8, i32, i64, f32 and f64 are",
                                    stk_dtype_name(dtype));
    return stk_stage_new(&stk_stage_cast, &(cast_params){dtype});
}
