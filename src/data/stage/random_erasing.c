/* A random rectangle gets one value, with a chance; as torchvision's RandomErasing: ten tries for a size that fits. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/image.h"
#include "data/stage/keys.h"
#include "data/stage/stage_list.h"

typedef struct random_erasing_params {
    float chance, scale[2], ratio[2], value;
} random_erasing_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const random_erasing_params *p = params;
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, false));
    if (in->desc.dtype == STK_U8 && !(p->value >= 0 && p->value <= 255 && p->value == floorf(p->value)))
        return stk_fail(STK_INVALID, "value %g is no u8; put the stage after 'normalize', or choose 0 to 255",
                        (double)p->value);
    *out = *in;
    return STK_OK;
}

/* False when none is to be erased, or none fits. */
static bool draw_rectangle(const random_erasing_params *p, const stk_stage_key *key, int64_t height, int64_t width,
                           stk_rect *out)
{
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    double area = (double)height * (double)width, low = log((double)p->ratio[0]), high = log((double)p->ratio[1]);
    if (stk_rng_uniform(&rng) >= p->chance) return false;
    for (int i = 0; i < 10; i++) {
        double share = (double)p->scale[0] + (double)(p->scale[1] - p->scale[0]) * (double)stk_rng_uniform(&rng);
        double ratio = exp(low + (high - low) * (double)stk_rng_uniform(&rng));
        double h = nearbyint(sqrt(area * share * ratio)), w = nearbyint(sqrt(area * share / ratio));
        if (h >= (double)height || w >= (double)width) continue;
        out->height = (int64_t)h;
        out->width = (int64_t)w;
        out->top = stk_rng_below(&rng, (uint32_t)(height - out->height + 1));
        out->left = stk_rng_below(&rng, (uint32_t)(width - out->width + 1));
        return true;
    }
    return false;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const random_erasing_params *p = params;
    const int64_t *dim = in->type.desc.shape.dim;
    stk_rect r;
    (void)scratch;
    if (out->data != in->data) memcpy(out->data, in->data, in->n_bytes);
    if (!draw_rectangle(p, key, dim[0], dim[1], &r)) return STK_OK;
    for (int64_t y = r.top; y < r.top + r.height; y++) {
        int64_t at = (y * dim[1] + r.left) * dim[2], n = r.width * dim[2];
        if (in->type.desc.dtype == STK_U8)
            memset((uint8_t *)out->data + at, (int)p->value, (size_t)n);
        else
            for (int64_t i = 0; i < n; i++)
                ((float *)out->data)[at + i] = p->value;
    }
    return STK_OK;
}

static const stk_key keys[] = {
    STK_STAGE_CHANCE("0.5", "The chance."),
    STK_STAGE_RANGE("scale", "[0.02, 0.33]", "The least and the largest share of the area."),
    STK_STAGE_RANGE("ratio", "[0.3, 3.3]", "The least and the largest ratio of height to width."),
    {.name = "value", .type = STK_KEY_REAL, .default_value = "0", .doc = "What the rectangle is filled with."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    stk_random_erasing_config config = {.chance = stk_yaml_real(settings, "p", 0),
                                        .value = stk_yaml_real(settings, "value", 0)};
    STK_RETURN_IF_ERROR(stk_yaml_range(settings, "scale", config.scale));
    STK_RETURN_IF_ERROR(stk_yaml_range(settings, "ratio", config.ratio));
    *out = stk_random_erasing(&config);
    return STK_OK;
}

const stk_stage_class stk_stage_random_erasing = {
    .key = {.name = "random_erasing",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "A random rectangle gets one value, as torchvision's."},
    .build = build,
    .params_bytes = sizeof(random_erasing_params),
    .plan = plan,
    .run = run,
    .random = true,
    .in_place = true};

stk_random_erasing_config stk_random_erasing_config_default(void)
{
    return (stk_random_erasing_config){.chance = 0.5, .scale = {0.02, 0.33}, .ratio = {0.3, 3.3}};
}

stk_stage *stk_random_erasing(const stk_random_erasing_config *config)
{
    if (!config) return stk_stage_new_failed(STK_INVALID, "random_erasing: the settings are missing");
    const stk_random_erasing_config *c = config;
    if (!(c->chance >= 0 && c->chance <= 1))
        return stk_stage_new_failed(STK_INVALID, "random_erasing: chance %g is not between 0 and 1", c->chance);
    if (!(c->scale[0] >= 0 && c->scale[0] <= c->scale[1] && c->scale[1] <= 1))
        return stk_stage_new_failed(STK_INVALID, "random_erasing: scale must rise and lie between 0 and 1");
    if (!(c->ratio[0] >= 0.001 && c->ratio[0] <= c->ratio[1] && c->ratio[1] <= 1000))
        return stk_stage_new_failed(STK_INVALID, "random_erasing: ratio must rise and lie between 0.001 and 1000");
    if (!isfinite(c->value)) return stk_stage_new_failed(STK_INVALID, "random_erasing: the value is not a number");
    const random_erasing_params p = {.chance = (float)c->chance,
                                     .scale = {(float)c->scale[0], (float)c->scale[1]},
                                     .ratio = {(float)c->ratio[0], (float)c->ratio[1]},
                                     .value = (float)c->value};
    return stk_stage_new(&stk_stage_random_erasing, &p);
}
