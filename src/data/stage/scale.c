/* x * factor, as f32. */
#include <math.h>

#include "base/error.h"
#include "data/stage/simd.h"
#include "data/stage/stage_list.h"

typedef struct scale_params {
    float factor;
} scale_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    char text[STK_SHAPE_TEXT_BYTES];
    (void)params;
    if (in->kind != STK_FIELD_ARRAY || (in->desc.dtype != STK_U8 && in->desc.dtype != STK_F32))
        return stk_fail(STK_INVALID, "needs u8 or f32 arrays, not %s",
                        in->kind == STK_FIELD_ARRAY ? stk_desc_text(in->desc, text) : "encoded bytes");
    *out = *in;
    out->desc.dtype = STK_F32;
    return STK_OK;
}

STK_SIMD_CLONES
static void scale_u8(const uint8_t *restrict src, float factor, float *restrict dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)src[i] * factor;
}

STK_SIMD_CLONES
static void scale_f32(const float *src, float factor, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i] * factor;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const scale_params *p = params;
    int64_t n = stk_shape_count(in->type.desc.shape);
    (void)key;
    (void)scratch;
    if (in->type.desc.dtype == STK_U8)
        scale_u8(in->data, p->factor, out->data, n);
    else
        scale_f32(in->data, p->factor, out->data, n);
    return STK_OK;
}

static stk_status look(const void *params, const stk_stage_key *key, stk_view *view, bool *fits)
{
    const scale_params *p = params;
    float a[STK_VIEW_CHANNELS], b[STK_VIEW_CHANNELS];
    (void)key;
    for (int c = 0; c < STK_VIEW_CHANNELS; c++) {
        a[c] = p->factor;
        b[c] = -0.0f; /* changes no bit of a sum */
    }
    *fits = stk_view_affine(view, a, b, STK_VIEW_CHANNELS);
    return STK_OK;
}

static const stk_key keys[] = {{.name = "factor",
                                .type = STK_KEY_REAL,
                                .required = true,
                                .doc = "Each value is multiplied by it, as f32; 1/255 may be written so."},
                               STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_scale(stk_yaml_real(settings, "factor", 0));
    return STK_OK;
}

const stk_stage_class stk_stage_scale = {
    .key = {.name = "scale", .type = STK_KEY_MAP, .keys = keys, .doc = "Multiplies by a factor."},
    .build = build,
    .rescales = true,
    .params_bytes = sizeof(scale_params),
    .plan = plan,
    .run = run,
    .view = look,
    .in_place = true,
    .plain = true};

stk_stage *stk_scale(double factor)
{
    if (!isfinite(factor)) return stk_stage_new_failed(STK_INVALID, "scale: the factor is not a number");
    return stk_stage_new(&stk_stage_scale, &(scale_params){(float)factor});
}
