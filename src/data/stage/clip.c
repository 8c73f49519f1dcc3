/* Keeps every element between two numbers; NaN becomes the lower one. */
#include <math.h>

#include "base/error.h"
#include "data/stage/simd.h"
#include "data/stage/stage_list.h"

typedef struct clip_params {
    float low, high;
} clip_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const clip_params *p = params;
    char text[STK_SHAPE_TEXT_BYTES];
    if (in->kind != STK_FIELD_ARRAY || (in->desc.dtype != STK_U8 && in->desc.dtype != STK_F32))
        return stk_fail(STK_INVALID, "needs u8 or f32 arrays, not %s",
                        in->kind == STK_FIELD_ARRAY ? stk_desc_text(in->desc, text) : "encoded bytes");
    if (in->desc.dtype == STK_U8 && (ceilf(p->low) > 255 || floorf(p->high) < 0 || ceilf(p->low) > floorf(p->high)))
        return stk_fail(STK_INVALID, "no u8 lies between %g and %g", (double)p->low, (double)p->high);
    *out = *in;
    return STK_OK;
}

STK_SIMD_CLONES
static void clip_u8(const uint8_t *src, uint8_t low, uint8_t high, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint8_t x = src[i] > low ? src[i] : low;
        dst[i] = x < high ? x : high;
    }
}

STK_SIMD_CLONES
static void clip_f32(const float *src, float low, float high, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = src[i] > low ? src[i] : low;
        dst[i] = x < high ? x : high;
    }
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const clip_params *p = params;
    int64_t n = stk_shape_count(in->type.desc.shape);
    float low = p->low > 0 ? ceilf(p->low) : 0, high = p->high < 255 ? floorf(p->high) : 255;
    (void)key;
    (void)scratch;
    if (in->type.desc.dtype == STK_U8)
        clip_u8(in->data, (uint8_t)low, (uint8_t)high, out->data, n);
    else
        clip_f32(in->data, p->low, p->high, out->data, n);
    return STK_OK;
}

static const stk_key keys[] = {
    {.name = "low", .type = STK_KEY_REAL, .default_value = "0", .doc = "The least value."},
    {.name = "high", .type = STK_KEY_REAL, .default_value = "1", .doc = "The largest value."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_clip_values(stk_yaml_real(settings, "low", 0), stk_yaml_real(settings, "high", 0));
    return STK_OK;
}

const stk_stage_class stk_stage_clip = {
    .key = {.name = "clip", .type = STK_KEY_MAP, .keys = keys, .doc = "Keeps values between two numbers."},
    .build = build,
    .params_bytes = sizeof(clip_params),
    .plan = plan,
    .run = run,
    .in_place = true,
    .plain = true};

stk_stage *stk_clip_values(double low, double high)
{
    if (!(isfinite(low) && isfinite(high) && low <= high))
        return stk_stage_new_failed(STK_INVALID, "clip: %g to %g is no range", low, high);
    return stk_stage_new(&stk_stage_clip, &(clip_params){(float)low, (float)high});
}
