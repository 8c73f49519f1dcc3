/* (x - mean[c]) / std[c] as one multiplication and one addition a channel; u8 is taken as x / 255. Named constants:
 *   mnist     .1307 / .3081           cifar10   .4914 .4822 .4465 / .2470 .2435 .2616
 *   imagenet  .485 .456 .406 / .229 .224 .225 (torchvision's)
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/stage/simd.h"
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

/* y = x * a[i % period] + b[i % period], the period a multiple of the channels that fills whole vectors. */
enum { PERIOD = 48 };

STK_SIMD_CLONES
static void normalize_u8(const uint8_t *restrict src, const float *restrict a, const float *restrict b,
                         float *restrict dst, int64_t n)
{
    int64_t i = 0;
    for (; i + PERIOD <= n; i += PERIOD)
        for (int k = 0; k < PERIOD; k++)
            dst[i + k] = (float)src[i + k] * a[k] + b[k];
    for (int k = 0; i < n; i++, k++)
        dst[i] = (float)src[i] * a[k] + b[k];
}

STK_SIMD_CLONES
static void normalize_f32(const float *src, const float *restrict a, const float *restrict b, float *dst, int64_t n)
{
    int64_t i = 0;
    for (; i + PERIOD <= n; i += PERIOD)
        for (int k = 0; k < PERIOD; k++)
            dst[i + k] = src[i + k] * a[k] + b[k];
    for (int k = 0; i < n; i++, k++)
        dst[i] = src[i] * a[k] + b[k];
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const normalize_params *p = params;
    bool is_u8 = in->type.desc.dtype == STK_U8;
    int64_t n = stk_shape_count(in->type.desc.shape);
    float a[PERIOD], b[PERIOD];
    (void)key;
    (void)scratch;
    for (int k = 0; k < PERIOD; k++) { /* 48 is a multiple of 1, 2, 3 and 4 channels. */
        int c = k % p->n_channels;
        a[k] = (is_u8 ? 1.0f / 255.0f : 1.0f) / p->std[c];
        b[k] = -p->mean[c] / p->std[c];
    }
    if (is_u8)
        normalize_u8(in->data, a, b, out->data, n);
    else
        normalize_f32(in->data, a, b, out->data, n);
    return STK_OK;
}

const stk_stage_class stk_stage_normalize = {
    .name = "normalize", .params_bytes = sizeof(normalize_params), .plan = plan, .run = run, .in_place = true};

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
