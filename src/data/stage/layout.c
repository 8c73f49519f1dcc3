/* [H,W,C] -> [C,H,W], for consumers that want channels first. The last stage: those for images want [H,W,C]. */
#include "base/error.h"
#include "data/stage/simd.h"
#include "data/stage/stage_list.h"

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const int64_t *dim = in->desc.shape.dim;
    (void)params;
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, false));
    *out = *in;
    out->desc.shape = STK_SHAPE(dim[2], dim[0], dim[1]);
    return STK_OK;
}

#define SPREAD(name, type)                                                                                             \
    STK_SIMD_CLONES                                                                                                    \
    static void name##_rgb(const type *restrict src, type *restrict dst, int64_t n)                                    \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            dst[i] = src[3 * i];                                                                                       \
            dst[n + i] = src[3 * i + 1];                                                                               \
            dst[2 * n + i] = src[3 * i + 2];                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void name(const type *src, type *dst, int64_t n, int64_t channels)                                          \
    {                                                                                                                  \
        if (channels == 3) {                                                                                           \
            name##_rgb(src, dst, n);                                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t c = 0; c < channels; c++)                                                                         \
            for (int64_t i = 0; i < n; i++)                                                                            \
                dst[c * n + i] = src[i * channels + c];                                                                \
    }

SPREAD(spread_u8, uint8_t)
SPREAD(spread_f32, float)
#undef SPREAD

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const int64_t *dim = in->type.desc.shape.dim;
    (void)params;
    (void)key;
    (void)scratch;
    if (in->type.desc.dtype == STK_U8)
        spread_u8(in->data, out->data, dim[0] * dim[1], dim[2]);
    else
        spread_f32(in->data, out->data, dim[0] * dim[1], dim[2]);
    return STK_OK;
}

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    (void)settings;
    *out = stk_layout_channels_first();
    return STK_OK;
}

const stk_stage_class stk_stage_layout = {
    .key = {.name = "layout", .type = STK_KEY_NONE, .doc = "[H,W,C] to [C,H,W]; the last stage."},
    .build = build,
    .plan = plan,
    .run = run,
    .plain = true};

stk_stage *stk_layout_channels_first(void)
{
    return stk_stage_new(&stk_stage_layout, NULL);
}
