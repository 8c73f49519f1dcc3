/* Encoded JPEG or PNG -> u8 [H,W,channels]. */
#include "base/error.h"
#include "data/codec/image.h"
#include "data/stage/stage_list.h"

typedef struct decode_params {
    int channels;
} decode_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const decode_params *p = params;
    char text[STK_SHAPE_TEXT_BYTES];
    if (in->kind != STK_FIELD_ENCODED)
        return stk_fail(STK_INVALID, "needs encoded JPEG or PNG bytes, not %s", stk_desc_text(in->desc, text));
    *out = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(STK_ANY, STK_ANY, p->channels))};
    return STK_OK;
}

static stk_status measure(const void *params, const stk_stage_key *key, const stk_item *in, stk_field_type *out)
{
    const decode_params *p = params;
    int64_t height, width;
    (void)key;
    STK_RETURN_IF_ERROR(stk_image_size((stk_span){in->data, in->n_bytes}, &height, &width));
    *out = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(height, width, p->channels))};
    return STK_OK;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const decode_params *p = params;
    (void)key;
    (void)scratch;
    return stk_image_decode((stk_span){in->data, in->n_bytes}, p->channels, out->data);
}

const stk_stage_class stk_stage_decode = {
    .name = "decode", .params_bytes = sizeof(decode_params), .plan = plan, .measure = measure, .run = run};

stk_stage *stk_decode_channels(int channels)
{
    if (channels != 1 && channels != 3)
        return stk_stage_new_failed(STK_INVALID, "decode: %d channels; 1 (grey) or 3 (RGB) are possible", channels);
    return stk_stage_new(&stk_stage_decode, &(decode_params){channels});
}

stk_stage *stk_decode(void)
{
    return stk_decode_channels(3);
}
