/* n operations in a row, each drawn out of 14 and as strong as the magnitude says; Cubuk et al. 2020, with the
 * operations and the table of torchvision's RandAugment (31 magnitudes, nearest, filled with 0). u8 images. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/stage/color.h"
#include "data/stage/randaugment.h"
#include "data/stage/stage_list.h"
#include "data/stage/tone.h"
#include "data/stage/warp.h"

enum { N_MAGNITUDES = 31 };

typedef struct randaugment_params {
    int n, magnitude;
} randaugment_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    (void)params;
    *out = *in;
    return stk_stage_needs_colors(in);
}

static bool has_sign(stk_augment_kind kind)
{
    return kind >= STK_AUGMENT_SHEAR_X && kind <= STK_AUGMENT_SHARPNESS;
}

/* Entry i of a table of N_MAGNITUDES from `from` to `to`, as torch.linspace has it: steps of f32, from the nearer end,
 * rounded once. A threshold that is a whole number but for that rounding lies on the same side of it. */
static double of_table(double from, double to, int i)
{
    float first = (float)from, last = (float)to, step = (last - first) / (N_MAGNITUDES - 1);
    return i < N_MAGNITUDES / 2 ? (double)(float)((double)first + (double)step * i)
                                : (double)(float)((double)last - (double)step * (N_MAGNITUDES - 1 - i));
}

double stk_augment_amount(stk_augment_kind kind, int magnitude, int64_t height, int64_t width)
{
    switch (kind) {
    case STK_AUGMENT_SHEAR_X:
    case STK_AUGMENT_SHEAR_Y: return of_table(0, 0.3, magnitude);
    case STK_AUGMENT_TRANSLATE_X: return of_table(0, 150.0 / 331 * (double)width, magnitude);
    case STK_AUGMENT_TRANSLATE_Y: return of_table(0, 150.0 / 331 * (double)height, magnitude);
    case STK_AUGMENT_ROTATE: return of_table(0, 30, magnitude);
    case STK_AUGMENT_POSTERIZE: return 8 - nearbyint(4 * (double)magnitude / (N_MAGNITUDES - 1));
    case STK_AUGMENT_SOLARIZE: return of_table(1, 0, magnitude);
    case STK_AUGMENT_IDENTITY:
    case STK_AUGMENT_AUTOCONTRAST:
    case STK_AUGMENT_EQUALIZE: return 0;
    default: return of_table(0, 0.9, magnitude);
    }
}

static stk_warp make_warp(stk_augment_kind kind, double amount, int64_t height, int64_t width)
{
    const double degrees = 180 / 3.14159265358979323846;
    stk_warp_config c = {.scale = 1};
    bool shears = kind == STK_AUGMENT_SHEAR_X || kind == STK_AUGMENT_SHEAR_Y;
    /* Shears leave the upper left corner where it is. */
    if (shears) c.centre_x = -0.5 * (double)width;
    if (shears) c.centre_y = -0.5 * (double)height;
    if (kind == STK_AUGMENT_SHEAR_X) c.shear_x = atan(amount) * degrees;
    if (kind == STK_AUGMENT_SHEAR_Y) c.shear_y = atan(amount) * degrees;
    if (kind == STK_AUGMENT_TRANSLATE_X) c.move_x = trunc(amount);
    if (kind == STK_AUGMENT_TRANSLATE_Y) c.move_y = trunc(amount);
    if (kind == STK_AUGMENT_ROTATE) c.angle = -amount;
    return stk_warp_make(&c);
}

static stk_color_kind color_of(stk_augment_kind kind)
{
    return kind == STK_AUGMENT_BRIGHTNESS ? STK_COLOR_BRIGHTNESS
           : kind == STK_AUGMENT_COLOR    ? STK_COLOR_SATURATION
                                          : STK_COLOR_CONTRAST;
}

void stk_augment_apply(stk_augment_kind kind, double amount, const uint8_t *src, uint8_t *dst, int64_t height,
                       int64_t width, int channels)
{
    int64_t n = height * width;
    stk_warp warp;
    switch (kind) {
    case STK_AUGMENT_SHEAR_X:
    case STK_AUGMENT_SHEAR_Y:
    case STK_AUGMENT_TRANSLATE_X:
    case STK_AUGMENT_TRANSLATE_Y:
    case STK_AUGMENT_ROTATE:
        warp = make_warp(kind, amount, height, width);
        stk_warp_apply(&warp, STK_FILTER_NEAREST, 0, src, dst, height, width, channels);
        break;
    case STK_AUGMENT_BRIGHTNESS:
    case STK_AUGMENT_COLOR:
    case STK_AUGMENT_CONTRAST:
        stk_color_apply(&(stk_color_op){color_of(kind), (float)(1 + amount)}, 1, src, dst, n, channels);
        break;
    case STK_AUGMENT_SHARPNESS: stk_tone_sharpness(1 + amount, src, dst, height, width, channels); break;
    case STK_AUGMENT_POSTERIZE: stk_tone_posterize((int)amount, src, dst, n * channels); break;
    case STK_AUGMENT_SOLARIZE: stk_tone_solarize((int)ceilf((float)(255 * amount)), src, dst, n * channels); break;
    case STK_AUGMENT_AUTOCONTRAST: stk_tone_autocontrast(src, dst, n, channels); break;
    case STK_AUGMENT_EQUALIZE: stk_tone_equalize(src, dst, n, channels); break;
    default: memcpy(dst, src, (size_t)(n * channels));
    }
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const randaugment_params *p = params;
    const int64_t *dim = in->type.desc.shape.dim;
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    uint8_t *place[2] = {stk_scratch_get(scratch, in->n_bytes), out->data};
    const uint8_t *now = in->data;
    if (!place[0]) return STK_NO_MEMORY;
    for (int i = 0; i < p->n; i++) {
        stk_augment_kind kind = (stk_augment_kind)stk_rng_below(&rng, STK_N_AUGMENTS);
        double amount = stk_augment_amount(kind, p->magnitude, dim[0], dim[1]);
        if (stk_rng_u32(&rng) >> 31 && has_sign(kind)) amount = -amount;
        if (kind == STK_AUGMENT_IDENTITY) continue;
        uint8_t *to = place[now != out->data];
        stk_augment_apply(kind, amount, now, to, dim[0], dim[1], (int)dim[2]);
        now = to;
    }
    if (now != out->data) memcpy(out->data, now, in->n_bytes);
    return STK_OK;
}

static const stk_key keys[] = {{.name = "n",
                                .type = STK_KEY_INT,
                                .default_value = "2",
                                .least = 0,
                                .most = 100,
                                .doc = "Operations for each image."},
                               {.name = "magnitude",
                                .type = STK_KEY_INT,
                                .default_value = "9",
                                .least = 0,
                                .most = 30,
                                .doc = "How strong they are."},
                               STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_randaugment(stk_yaml_int(settings, "n", 0), stk_yaml_int(settings, "magnitude", 0));
    return STK_OK;
}

const stk_stage_class stk_stage_randaugment = {
    .key = {.name = "randaugment",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "n operations out of 14, with torchvision's table of strengths. u8."},
    .build = build,
    .params_bytes = sizeof(randaugment_params),
    .plan = plan,
    .run = run,
    .random = true};

stk_stage *stk_randaugment(int64_t n, int64_t magnitude)
{
    if (n < 0 || n > 100) return stk_stage_new_failed(STK_INVALID, "randaugment: n must be 0 to 100");
    if (magnitude < 0 || magnitude >= N_MAGNITUDES)
        return stk_stage_new_failed(STK_INVALID, "randaugment: magnitude %lld is not between 0 and %d",
                                    (long long)magnitude, N_MAGNITUDES - 1);
    return stk_stage_new(&stk_stage_randaugment, &(randaugment_params){(int)n, (int)magnitude});
}
