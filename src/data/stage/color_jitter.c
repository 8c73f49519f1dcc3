/* Brightness, contrast, saturation and hue by random amounts and in random order, as torchvision's ColorJitter. */
#include "base/error.h"
#include "data/stage/color.h"
#include "data/stage/stage_list.h"

enum { N_KINDS = 4 };

typedef struct color_jitter_params {
    float strength[N_KINDS]; /* by stk_color_kind; 0: left out */
} color_jitter_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    (void)params;
    *out = *in;
    return stk_stage_needs_colors(in);
}

/* How many operations there are. */
static int draw_ops(const color_jitter_params *p, const stk_stage_key *key, stk_color_op op[N_KINDS])
{
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    int n = 0;
    for (int kind = 0; kind < N_KINDS; kind++) {
        float s = p->strength[kind], x = stk_rng_uniform(&rng);
        if (s == 0) continue;
        float low = kind == STK_COLOR_HUE ? -s : s < 1 ? 1 - s : 0, high = kind == STK_COLOR_HUE ? s : 1 + s;
        op[n++] = (stk_color_op){(stk_color_kind)kind, low + (high - low) * x};
    }
    for (int i = n - 1; i > 0; i--) {
        uint32_t k = stk_rng_below(&rng, (uint32_t)i + 1);
        stk_color_op kept = op[i];
        op[i] = op[k];
        op[k] = kept;
    }
    return n;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const int64_t *dim = in->type.desc.shape.dim;
    stk_color_op op[N_KINDS];
    int n = draw_ops(params, key, op);
    (void)scratch;
    stk_color_apply(op, n, in->data, out->data, dim[0] * dim[1], (int)dim[2]);
    return STK_OK;
}

#define STRENGTH(key_name, limit, text)                                                                                \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_REAL, .default_value = "0", .least = 0, .most = limit, .doc = text           \
    }
static const stk_key keys[] = {
    STRENGTH("brightness", 100, "The factor lies between 1 - strength, at least 0, and 1 + strength; 0 leaves it out."),
    STRENGTH("contrast", 100, "As brightness; the rest is the mean grey."),
    STRENGTH("saturation", 100, "As brightness; the rest is the pixel's grey."),
    STRENGTH("hue", 0.5, "Turned by up to this part of the colour circle, either way."), STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_color_jitter(stk_yaml_real(settings, "brightness", 0), stk_yaml_real(settings, "contrast", 0),
                            stk_yaml_real(settings, "saturation", 0), stk_yaml_real(settings, "hue", 0));
    return STK_OK;
}

const stk_stage_class stk_stage_color_jitter = {
    .key = {.name = "color_jitter",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "Random brightness, contrast, saturation and hue, in random order, as torchvision's. u8."},
    .build = build,
    .params_bytes = sizeof(color_jitter_params),
    .plan = plan,
    .run = run,
    .random = true,
    .in_place = true};

stk_stage *stk_color_jitter(double brightness, double contrast, double saturation, double hue)
{
    const double strength[N_KINDS] = {[STK_COLOR_BRIGHTNESS] = brightness,
                                      [STK_COLOR_CONTRAST] = contrast,
                                      [STK_COLOR_SATURATION] = saturation,
                                      [STK_COLOR_HUE] = hue};
    color_jitter_params p;
    for (int kind = 0; kind < N_KINDS; kind++) {
        double most = kind == STK_COLOR_HUE ? 0.5 : 100;
        if (!(strength[kind] >= 0 && strength[kind] <= most))
            return stk_stage_new_failed(STK_INVALID, "color_jitter: %g is not between 0 and %g", strength[kind], most);
        p.strength[kind] = (float)strength[kind];
    }
    return stk_stage_new(&stk_stage_color_jitter, &p);
}
