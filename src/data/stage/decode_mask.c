/* PNG -> u8 [H,W,1] with the numbers that are stored: the indices of a palette, or grey values of any depth. */
#include "base/error.h"
#include "data/codec/png.h"
#include "data/stage/stage_list.h"
#include "stoker/data/fields.h"

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    char text[STK_SHAPE_TEXT_BYTES];
    (void)params;
    if (in->kind != STK_FIELD_ENCODED)
        return stk_fail(STK_INVALID, "needs encoded PNG bytes, not %s", stk_desc_text(in->desc, text));
    *out = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(STK_ANY, STK_ANY, 1))};
    return STK_OK;
}

static stk_status measure(const void *params, const stk_stage_key *key, const stk_item *in, stk_field_type *out)
{
    stk_span encoded = {in->data, in->n_bytes};
    int64_t height, width;
    (void)params, (void)key;
    if (stk_image_format_of(encoded) != STK_IMAGE_PNG)
        return stk_fail(STK_CORRUPT, "a mask must be a PNG file: others do not keep class numbers");
    STK_RETURN_IF_ERROR(stk_image_size(encoded, &height, &width));
    *out = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(height, width, 1))};
    return STK_OK;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const int64_t *dim = out->type.desc.shape.dim;
    (void)params, (void)key, (void)scratch;
    return stk_png_decode((stk_span){in->data, in->n_bytes}, dim[0], dim[1], STK_PNG_STORED, out->data);
}

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    (void)settings;
    *out = stk_decode_mask();
    return STK_OK;
}

const stk_stage_class stk_stage_decode_mask = {
    .key = {.name = "decode_mask",
            .type = STK_KEY_NONE,
            .doc = "PNG to class numbers as they are stored, of a palette or grey."},
    .build = build,
    .plan = plan,
    .measure = measure,
    .run = run};

stk_stage *stk_decode_mask(void)
{
    return stk_stage_new(&stk_stage_decode_mask, NULL);
}
