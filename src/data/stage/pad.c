/* A border of one value around the image. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/image.h"
#include "data/stage/stage_list.h"

enum { MOST_SIDE = 65535 };

typedef struct pad_params {
    int64_t top, left, bottom, right;
    float value, unused; /* without padding */
} pad_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const pad_params *p = params;
    const int64_t more[2] = {p->top + p->bottom, p->left + p->right};
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, false));
    if (in->desc.dtype == STK_U8 && !(p->value >= 0 && p->value <= 255 && p->value == floorf(p->value)))
        return stk_fail(STK_INVALID, "value %g is no u8; put the stage after 'normalize', or choose 0 to 255",
                        (double)p->value);
    *out = *in;
    for (int i = 0; i < 2; i++)
        if (in->desc.shape.dim[i] != STK_ANY) out->desc.shape.dim[i] = in->desc.shape.dim[i] + more[i];
    return STK_OK;
}

static void fill(void *at, stk_dtype dtype, float value, int64_t n)
{
    float *x = at;
    if (dtype == STK_U8)
        memset(at, (int)value, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = value;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const pad_params *p = params;
    const int64_t *from = in->type.desc.shape.dim, *to = out->type.desc.shape.dim;
    stk_dtype dtype = in->type.desc.dtype;
    int64_t channels = from[2], n_row = to[1] * channels, n_left = p->left * channels, n_inside = from[1] * channels;
    size_t element = stk_dtype_bytes(dtype);
    (void)key;
    (void)scratch;
    for (int64_t y = 0; y < to[0]; y++) {
        char *row = (char *)out->data + (size_t)(y * n_row) * element;
        int64_t in_y = y - p->top;
        if (in_y < 0 || in_y >= from[0]) {
            fill(row, dtype, p->value, n_row);
            continue;
        }
        fill(row, dtype, p->value, n_left);
        memcpy(row + (size_t)n_left * element, (const char *)in->data + (size_t)(in_y * n_inside) * element,
               (size_t)n_inside * element);
        fill(row + (size_t)(n_left + n_inside) * element, dtype, p->value, p->right * channels);
    }
    return STK_OK;
}

static stk_status look(const void *params, const stk_stage_key *key, stk_view *view, bool *fits)
{
    const pad_params *p = params;
    (void)key;
    stk_rect grown = {-p->top, -p->left, view->height + p->top + p->bottom, view->width + p->left + p->right};
    *fits = p->value == 0 && stk_view_crop(view, grown);
    return STK_OK;
}

static void for_mask(void *params)
{
    pad_params *p = params;
    p->value = 0;
}

static const stk_key keys[] = {
    {.name = "size",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = 65535,
     .doc = "Pixels on each side."},
#define SIDE(key_name)                                                                                                 \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_INT, .least = 0, .most = 65535, .doc = "Instead of size, on this side."      \
    }
    SIDE("top"),
    SIDE("left"),
    SIDE("bottom"),
    SIDE("right"),
#undef SIDE
    {.name = "value", .type = STK_KEY_REAL, .default_value = "0", .doc = "What the border is filled with."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    int64_t size = stk_yaml_int(settings, "size", 0);
    *out = stk_pad_image(stk_yaml_int(settings, "top", size), stk_yaml_int(settings, "left", size),
                         stk_yaml_int(settings, "bottom", size), stk_yaml_int(settings, "right", size),
                         stk_yaml_real(settings, "value", 0));
    return STK_OK;
}

const stk_stage_class stk_stage_pad = {
    .key = {.name = "pad", .type = STK_KEY_MAP, .keys = keys, .doc = "A border of one value."},
    .build = build,
    .params_bytes = sizeof(pad_params),
    .plan = plan,
    .run = run,
    .view = look,
    .geometric = true,
    .for_mask = for_mask,
    .plain = true};

stk_stage *stk_pad_image(int64_t top, int64_t left, int64_t bottom, int64_t right, double value)
{
    const int64_t side[4] = {top, left, bottom, right};
    for (int i = 0; i < 4; i++)
        if (side[i] < 0 || side[i] > MOST_SIDE)
            return stk_stage_new_failed(STK_INVALID, "pad: sides must be 0 to %d", MOST_SIDE);
    if (!isfinite(value)) return stk_stage_new_failed(STK_INVALID, "pad: the value is not a number");
    return stk_stage_new(&stk_stage_pad, &(pad_params){top, left, bottom, right, (float)value, 0});
}
