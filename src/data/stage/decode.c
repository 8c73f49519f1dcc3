/* Encoded JPEG, PNG or WebP -> u8 [H,W,channels], turned upright as a JPEG's EXIF orientation says, if wanted. */
#include "data/stage/decode.h"
#include "base/error.h"
#include "data/codec/exif.h"
#include "data/codec/image.h"
#include "data/stage/stage_list.h"

typedef struct decode_params {
    int channels;
    int32_t exif; /* bool; without padding */
} decode_params;

static int orientation_of(const decode_params *p, stk_span encoded)
{
    return p->exif ? stk_exif_orientation(encoded) : 1;
}

bool stk_decode_turns(const void *params, stk_span encoded)
{
    return orientation_of(params, encoded) != 1;
}

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const decode_params *p = params;
    char text[STK_SHAPE_TEXT_BYTES];
    if (in->kind != STK_FIELD_ENCODED)
        return stk_fail(STK_INVALID, "needs encoded JPEG, PNG or WebP bytes, not %s", stk_desc_text(in->desc, text));
    *out = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(STK_ANY, STK_ANY, p->channels))};
    return STK_OK;
}

static stk_status measure(const void *params, const stk_stage_key *key, const stk_item *in, stk_field_type *out)
{
    const decode_params *p = params;
    int64_t height, width;
    (void)key;
    stk_span encoded = {in->data, in->n_bytes};
    STK_RETURN_IF_ERROR(stk_image_size(encoded, &height, &width));
    if (stk_exif_swaps_sides(orientation_of(p, encoded))) {
        int64_t kept = height;
        height = width;
        width = kept;
    }
    *out = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(height, width, p->channels))};
    return STK_OK;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const decode_params *p = params;
    stk_span encoded = {in->data, in->n_bytes};
    int orientation = orientation_of(p, encoded);
    int64_t height, width;
    (void)key;
    if (orientation == 1) return stk_image_decode(encoded, p->channels, out->data);
    STK_RETURN_IF_ERROR(stk_image_size(encoded, &height, &width));
    size_t n_bytes = (size_t)(height * width) * (size_t)p->channels;
    uint8_t *pixels = stk_scratch_get(scratch, n_bytes);
    if (!pixels) return STK_NO_MEMORY;
    STK_RETURN_IF_ERROR(stk_image_decode(encoded, p->channels, pixels));
    stk_exif_turn(orientation, pixels, height, width, p->channels, out->data);
    return STK_OK;
}

static const stk_key keys[] = {{.name = "channels",
                                .type = STK_KEY_INT,
                                .default_value = "3",
                                .least = 1,
                                .most = 3,
                                .doc = "1 for grey, 3 for RGB."},
                               {.name = "exif",
                                .type = STK_KEY_BOOL,
                                .default_value = "false",
                                .doc = "Whether a JPEG is turned upright as its EXIF orientation says."},
                               STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_decode_with((int)stk_yaml_int(settings, "channels", 3), stk_yaml_bool(settings, "exif"));
    return STK_OK;
}

const stk_stage_class stk_stage_decode = {
    .key = {.name = "decode", .type = STK_KEY_MAP, .keys = keys, .doc = "JPEG, PNG or WebP to pixels."},
    .build = build,
    .params_bytes = sizeof(decode_params),
    .plan = plan,
    .measure = measure,
    .run = run,
    .plain = true};

stk_stage *stk_decode_with(int channels, bool exif)
{
    if (channels != 1 && channels != 3)
        return stk_stage_new_failed(STK_INVALID, "decode: %d channels; 1 (grey) or 3 (RGB) are possible", channels);
    return stk_stage_new(&stk_stage_decode, &(decode_params){channels, exif});
}

stk_stage *stk_decode_channels(int channels)
{
    return stk_decode_with(channels, false);
}

stk_stage *stk_decode(void)
{
    return stk_decode_channels(3);
}
