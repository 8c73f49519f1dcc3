/* Turned, moved, scaled and sheared by random amounts, the size kept; as torchvision's RandomAffine, and as its
 * RandomRotation, which turns the other way round. u8 images. */
#include <math.h>

#include "base/error.h"
#include "data/stage/keys.h"
#include "data/stage/stage_list.h"
#include "data/stage/warp.h"

typedef struct random_affine_params {
    float degrees[2], move_x, move_y, scale[2], shear_x[2], shear_y[2];
    uint8_t filter, fill;
} random_affine_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    (void)params;
    *out = *in;
    return stk_stage_needs_image(in, true);
}

static double draw(stk_rng *rng, const float range[2])
{
    double x = (double)stk_rng_uniform(rng);
    return (double)range[0] + ((double)range[1] - (double)range[0]) * x;
}

/* A whole number of pixels, up to share of the side. */
static double draw_move(stk_rng *rng, float share, int64_t side)
{
    double most = (double)share * (double)side;
    return nearbyint(most * (2 * (double)stk_rng_uniform(rng) - 1));
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const random_affine_params *p = params;
    const int64_t *dim = in->type.desc.shape.dim;
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    stk_warp_config config = {0};
    (void)scratch;
    config.angle = draw(&rng, p->degrees);
    config.move_x = draw_move(&rng, p->move_x, dim[1]);
    config.move_y = draw_move(&rng, p->move_y, dim[0]);
    config.scale = draw(&rng, p->scale);
    config.shear_x = draw(&rng, p->shear_x);
    config.shear_y = draw(&rng, p->shear_y);
    stk_warp warp = stk_warp_make(&config);
    stk_warp_apply(&warp, (stk_filter)p->filter, p->fill, in->data, out->data, dim[0], dim[1], (int)dim[2]);
    return STK_OK;
}

static void for_mask(void *params)
{
    random_affine_params *p = params;
    p->filter = STK_FILTER_NEAREST;
    p->fill = 0;
}

/* --- settings --- */

static const char *const warp_words[] = {"nearest", "bilinear", NULL};
#define WARP_KEYS                                                                                                      \
    {.name = "filter",                                                                                                 \
     .type = STK_KEY_WORD,                                                                                             \
     .words = warp_words,                                                                                              \
     .default_value = "nearest",                                                                                       \
     .doc = "How pixels are mixed."},                                                                                  \
    {                                                                                                                  \
        .name = "fill", .type = STK_KEY_INT, .default_value = "0", .least = 0, .most = 255,                            \
        .doc = "The value of what comes from outside of the image."                                                    \
    }
static const stk_key affine_keys[] = {
    STK_STAGE_RANGE("degrees", "[0, 0]", "The least and the largest angle, clockwise."),
    STK_STAGE_RANGE("translate", "[0, 0]",
                    "The largest moves sideways and upright, either way, as shares of width and height."),
    STK_STAGE_RANGE("scale", "[1, 1]", "The least and the largest factor."),
    STK_STAGE_RANGE("shear", "[0, 0]", "The least and the largest angle of shear along x."),
    STK_STAGE_RANGE("shear_y", "[0, 0]", "The least and the largest angle of shear along y."),
    WARP_KEYS,
    STK_KEY_END};
static const stk_key rotation_keys[] = {
    STK_STAGE_RANGE("degrees", "[-10, 10]", "The least and the largest angle, counter-clockwise."), WARP_KEYS,
    STK_KEY_END};

static stk_status build_affine(const stk_yaml_node *settings, stk_stage **out)
{
    stk_random_affine_config config = {.filter = stk_stage_read_filter(settings),
                                       .fill = (int)stk_yaml_int(settings, "fill", 0)};
    double moves[2];
    STK_RETURN_IF_ERROR(stk_yaml_range(settings, "degrees", config.degrees));
    STK_RETURN_IF_ERROR(stk_yaml_range(settings, "translate", moves));
    STK_RETURN_IF_ERROR(stk_yaml_range(settings, "scale", config.scale));
    STK_RETURN_IF_ERROR(stk_yaml_range(settings, "shear", config.shear_x));
    STK_RETURN_IF_ERROR(stk_yaml_range(settings, "shear_y", config.shear_y));
    config.move_x = moves[0];
    config.move_y = moves[1];
    *out = stk_random_affine(&config);
    return STK_OK;
}

static stk_status build_rotation(const stk_yaml_node *settings, stk_stage **out)
{
    double degrees[2];
    STK_RETURN_IF_ERROR(stk_yaml_range(settings, "degrees", degrees));
    *out = stk_random_rotation(degrees[0], degrees[1], stk_stage_read_filter(settings),
                               (int)stk_yaml_int(settings, "fill", 0));
    return STK_OK;
}

const stk_stage_class stk_stage_random_affine = {
    .key = {.name = "random_affine",
            .type = STK_KEY_MAP,
            .keys = affine_keys,
            .doc = "Turned, moved, scaled and sheared, the size kept; as torchvision's. u8."},
    .build = build_affine,
    .params_bytes = sizeof(random_affine_params),
    .plan = plan,
    .run = run,
    .geometric = true,
    .for_mask = for_mask,
    .random = true};
const stk_stage_class stk_stage_random_rotation = {.key = {.name = "random_rotation",
                                                           .type = STK_KEY_MAP,
                                                           .keys = rotation_keys,
                                                           .doc = "Turned about the middle, the size kept. u8."},
                                                   .build = build_rotation,
                                                   .params_bytes = sizeof(random_affine_params),
                                                   .plan = plan,
                                                   .run = run,
                                                   .geometric = true,
                                                   .for_mask = for_mask,
                                                   .random = true};

static bool is_range(const double range[2], double least, double most)
{
    return range[0] >= least && range[0] <= range[1] && range[1] <= most;
}

stk_random_affine_config stk_random_affine_config_default(void)
{
    return (stk_random_affine_config){.scale = {1, 1}, .filter = STK_FILTER_NEAREST};
}

static stk_stage *make(const stk_stage_class *class, const stk_random_affine_config *c)
{
    if (!is_range(c->degrees, -360, 360))
        return stk_stage_new_failed(STK_INVALID, "%s: degrees must rise and lie between -360 and 360", class->key.name);
    if (!(c->move_x >= 0 && c->move_x <= 1 && c->move_y >= 0 && c->move_y <= 1))
        return stk_stage_new_failed(STK_INVALID, "%s: moves must lie between 0 and 1, shares of the sides",
                                    class->key.name);
    if (!is_range(c->scale, 0.01, 100))
        return stk_stage_new_failed(STK_INVALID, "%s: scale must rise and lie between 0.01 and 100", class->key.name);
    if (!is_range(c->shear_x, -80, 80) || !is_range(c->shear_y, -80, 80))
        return stk_stage_new_failed(STK_INVALID, "%s: shears must rise and lie between -80 and 80", class->key.name);
    if (c->filter != STK_FILTER_NEAREST && c->filter != STK_FILTER_BILINEAR)
        return stk_stage_new_failed(STK_INVALID, "%s: the filter must be nearest or bilinear", class->key.name);
    if (c->fill < 0 || c->fill > 255)
        return stk_stage_new_failed(STK_INVALID, "%s: fill %d is not between 0 and 255", class->key.name, c->fill);
    const random_affine_params p = {
        .degrees = {(float)c->degrees[0], (float)c->degrees[1]},
        .move_x = (float)c->move_x,
        .move_y = (float)c->move_y,
        .scale = {(float)c->scale[0], (float)c->scale[1]},
        .shear_x = {(float)c->shear_x[0], (float)c->shear_x[1]},
        .shear_y = {(float)c->shear_y[0], (float)c->shear_y[1]},
        .filter = (uint8_t)c->filter,
        .fill = (uint8_t)c->fill,
    };
    return stk_stage_new(class, &p);
}

stk_stage *stk_random_affine(const stk_random_affine_config *config)
{
    if (!config) return stk_stage_new_failed(STK_INVALID, "random_affine: the settings are missing");
    return make(&stk_stage_random_affine, config);
}

stk_stage *stk_random_rotation(double from_degrees, double to_degrees, stk_filter filter, int fill)
{
    stk_random_affine_config config = stk_random_affine_config_default();
    config.degrees[0] = -to_degrees;
    config.degrees[1] = -from_degrees;
    config.filter = filter;
    config.fill = fill;
    return make(&stk_stage_random_rotation, &config);
}
