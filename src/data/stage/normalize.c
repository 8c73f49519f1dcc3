/* (x - mean[c]) / std[c] as one multiplication and one addition a channel; u8 is taken as x / 255. Named constants:
 *   mnist     .1307 / .3081           cifar10   .4914 .4822 .4465 / .2470 .2435 .2616
 *   imagenet  .485 .456 .406 / .229 .224 .225 (torchvision's)
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/stage/affine.h"
#include "data/stage/keys.h"
#include "data/stage/stage_list.h"

enum { MOST_CHANNELS = 4 };

typedef struct normalize_params {
    int n_channels;
    float mean[MOST_CHANNELS], std[MOST_CHANNELS];
} normalize_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const normalize_params *p = params;
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, false));
    if (in->desc.shape.dim[2] != p->n_channels)
        return stk_fail(STK_INVALID, "has constants for %d channels, the image has %lld", p->n_channels,
                        (long long)in->desc.shape.dim[2]);
    *out = *in;
    out->desc.dtype = STK_F32;
    return STK_OK;
}

static void get_factors(const normalize_params *p, bool is_u8, float *a, float *b)
{
    for (int c = 0; c < p->n_channels; c++) {
        a[c] = (is_u8 ? 1.0f / 255.0f : 1.0f) / p->std[c];
        b[c] = -p->mean[c] / p->std[c];
    }
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const normalize_params *p = params;
    bool is_u8 = in->type.desc.dtype == STK_U8;
    int64_t n = stk_shape_count(in->type.desc.shape);
    float a[MOST_CHANNELS], b[MOST_CHANNELS];
    stk_affine affine;
    (void)key;
    (void)scratch;
    get_factors(p, is_u8, a, b);
    stk_affine_init(&affine, a, b, p->n_channels);
    if (is_u8)
        stk_affine_u8(&affine, in->data, out->data, n);
    else
        stk_affine_f32(&affine, in->data, out->data, n);
    return STK_OK;
}

static stk_status look(const void *params, const stk_stage_key *key, stk_view *view, bool *fits)
{
    const normalize_params *p = params;
    float a[MOST_CHANNELS], b[MOST_CHANNELS];
    (void)key;
    get_factors(p, true, a, b);
    *fits = stk_view_affine(view, a, b, p->n_channels);
    return STK_OK;
}

static const char *const name_words[] = {"mnist", "cifar10", "imagenet", NULL};
static const stk_key keys[] = {
    {.name = "name", .type = STK_KEY_WORD, .words = name_words, .doc = "Known constants; instead of mean and std."},
    {.name = "mean",
     .type = STK_KEY_LIST,
     .element = &stk_stage_number_key,
     .doc = "One for each channel, of values from 0 to 1."},
    {.name = "std", .type = STK_KEY_LIST, .element = &stk_stage_number_key, .doc = "One for each channel."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    const stk_yaml_node *name = stk_yaml_get(settings, "name");
    const stk_yaml_node *lists[2] = {stk_yaml_get(settings, "mean"), stk_yaml_get(settings, "std")};
    float values[2][MOST_CHANNELS];
    if (name && !lists[0] && !lists[1]) {
        *out = stk_normalize_named(name->text);
        return STK_OK;
    }
    if (name || !lists[0] || !lists[1])
        return stk_yaml_fail(settings, "'normalize' needs either a name, or 'mean' and 'std'");
    if (lists[0]->n_children != lists[1]->n_children || lists[0]->n_children < 1 ||
        lists[0]->n_children > MOST_CHANNELS)
        return stk_yaml_fail(settings, "'mean' and 'std' need one number for each channel");
    for (int k = 0; k < 2; k++) {
        int n = 0;
        for (const stk_yaml_node *number = lists[k]->child; number; number = number->next) {
            values[k][n++] = (float)number->real;
            if (k == 1 && number->real <= 0) return stk_yaml_fail(number, "'std' must be above 0");
        }
    }
    *out = stk_normalize(values[0], values[1], lists[0]->n_children);
    return STK_OK;
}

const stk_stage_class stk_stage_normalize = {
    .key = {.name = "normalize",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "Mean and deviation of each channel; u8 is divided by 255 first."},
    .build = build,
    .rescales = true,
    .params_bytes = sizeof(normalize_params),
    .plan = plan,
    .run = run,
    .view = look,
    .in_place = true,
    .plain = true};

stk_stage *stk_normalize(const float *mean, const float *std, int n_channels)
{
    normalize_params p = {.n_channels = n_channels};
    if (n_channels < 1 || n_channels > MOST_CHANNELS)
        return stk_stage_new_failed(STK_INVALID, "normalize: %d channels; 1 to %d are possible", n_channels,
                                    MOST_CHANNELS);
    if (!mean || !std) return stk_stage_new_failed(STK_INVALID, "normalize: mean and std are needed");
    for (int c = 0; c < n_channels; c++) {
        if (!isfinite(mean[c]) || !isfinite(std[c]) || std[c] <= 0)
            return stk_stage_new_failed(STK_INVALID, "normalize: mean %g and std %g of channel %d cannot be right",
                                        (double)mean[c], (double)std[c], c);
        p.mean[c] = mean[c];
        p.std[c] = std[c];
    }
    return stk_stage_new(&stk_stage_normalize, &p);
}

stk_stage *stk_normalize_named(const char *name)
{
    if (!name) return stk_stage_new_failed(STK_INVALID, "normalize: the name is missing");
    if (!strcmp(name, "mnist")) return stk_normalize_mnist();
    if (!strcmp(name, "cifar10")) return stk_normalize_cifar10();
    if (!strcmp(name, "imagenet")) return stk_normalize_imagenet();
    return stk_stage_new_failed(STK_INVALID, "normalize: no constants named '%s'; there are mnist, cifar10, imagenet",
                                name);
}

stk_stage *stk_normalize_mnist(void)
{
    return stk_normalize((float[]){0.1307f}, (float[]){0.3081f}, 1);
}

stk_stage *stk_normalize_cifar10(void)
{
    return stk_normalize((float[]){0.4914f, 0.4822f, 0.4465f}, (float[]){0.2470f, 0.2435f, 0.2616f}, 3);
}

stk_stage *stk_normalize_imagenet(void)
{
    return stk_normalize((float[]){0.485f, 0.456f, 0.406f}, (float[]){0.229f, 0.224f, 0.225f}, 3);
}
