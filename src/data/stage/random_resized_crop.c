/* A random part of the image, 8 to 100 % of its area and 3/4 to 4/3 in ratio, resized to size x size; when ten tries do
 * not fit, the largest middle part with the ratio clamped. Szegedy et al. 2015; the tries as in torchvision. */
#include <math.h>

#include "base/error.h"
#include "data/stage/keys.h"
#include "data/stage/resample.h"
#include "data/stage/stage_list.h"

typedef struct random_resized_crop_params {
    int64_t size;
    stk_sampling how;
} random_resized_crop_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const random_resized_crop_params *p = params;
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, false));
    *out = *in;
    out->desc.shape.dim[0] = out->desc.shape.dim[1] = p->size;
    return STK_OK;
}

static stk_rect draw_rectangle(stk_rng *rng, int64_t height, int64_t width)
{
    const double low = 3.0 / 4, high = 4.0 / 3;
    double area = (double)height * (double)width;
    for (int i = 0; i < 10; i++) {
        double part = area * (0.08 + 0.92 * (double)stk_rng_uniform(rng));
        double ratio = exp(log(low) + (log(high) - log(low)) * (double)stk_rng_uniform(rng));
        int64_t w = (int64_t)nearbyint(sqrt(part * ratio)), h = (int64_t)nearbyint(sqrt(part / ratio));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        int64_t top = stk_rng_below(rng, (uint32_t)(height - h + 1));
        int64_t left = stk_rng_below(rng, (uint32_t)(width - w + 1));
        return (stk_rect){top, left, h, w};
    }
    double ratio = (double)width / (double)height;
    int64_t h = height, w = width;
    if (ratio < low) h = (int64_t)nearbyint((double)w / low);
    if (ratio > high) w = (int64_t)nearbyint((double)h * high);
    if (h < 1) h = 1;
    if (w < 1) w = 1;
    return (stk_rect){(height - h) / 2, (width - w) / 2, h, w};
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const random_resized_crop_params *p = params;
    const int64_t *dim = in->type.desc.shape.dim;
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    return stk_resample(in, draw_rectangle(&rng, dim[0], dim[1]), p->how, out, scratch);
}

static stk_status look(const void *params, const stk_stage_key *key, stk_view *view, bool *fits)
{
    const random_resized_crop_params *p = params;
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    stk_view cropped = *view;
    *fits = stk_view_crop(&cropped, draw_rectangle(&rng, view->height, view->width)) &&
            stk_view_resize(&cropped, p->size, p->size, p->how);
    if (*fits) *view = cropped;
    return STK_OK;
}

static void for_mask(void *params)
{
    random_resized_crop_params *p = params;
    p->how.filter = STK_FILTER_NEAREST;
    p->how.antialias = false;
}

static const stk_key keys[] = {
    {.name = "size",
     .type = STK_KEY_INT,
     STK_STAGE_SIDES,
     .required = true,
     .doc = "Both sides of the result, in pixels."},
    {.name = "filter",
     .type = STK_KEY_WORD,
     .words = stk_stage_filter_words,
     .default_value = "bilinear",
     .doc = "As for resize."},
    {.name = "antialias", .type = STK_KEY_BOOL, .default_value = "true", .doc = "As for resize."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_random_resized_crop_with(stk_yaml_int(settings, "size", 0), stk_stage_read_filter(settings),
                                        stk_yaml_bool(settings, "antialias"));
    return STK_OK;
}

const stk_stage_class stk_stage_random_resized_crop = {
    .key = {.name = "random_resized_crop",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "A random part (8-100 % of the area, ratio 3/4 to 4/3), resized."},
    .build = build,
    .resizes = true,
    .crops = true,
    .params_bytes = sizeof(random_resized_crop_params),
    .plan = plan,
    .run = run,
    .geometric = true,
    .for_mask = for_mask,
    .view = look,
    .random = true};

stk_stage *stk_random_resized_crop_with(int64_t size, stk_filter filter, bool antialias)
{
    if (size < 1 || size > 65535)
        return stk_stage_new_failed(STK_INVALID, "random_resized_crop: size must be 1 to 65535");
    if ((unsigned)filter > STK_FILTER_NEAREST)
        return stk_stage_new_failed(STK_INVALID, "random_resized_crop: no such filter: %d", (int)filter);
    return stk_stage_new(&stk_stage_random_resized_crop,
                         &(random_resized_crop_params){size, {filter, STK_LIKE_PIL, antialias}});
}

stk_stage *stk_random_resized_crop(int64_t size, bool antialias)
{
    return stk_random_resized_crop_with(size, STK_FILTER_BILINEAR, antialias);
}
