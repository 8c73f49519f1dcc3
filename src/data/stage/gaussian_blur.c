/* Gaussian blur with a random deviation. u8 images. */
#include "base/error.h"
#include "data/stage/blur.h"
#include "data/stage/keys.h"
#include "data/stage/stage_list.h"

typedef struct gaussian_blur_params {
    int kernel;
    float sigma[2];
} gaussian_blur_params;

static stk_status check_sides(const gaussian_blur_params *p, const int64_t *dim)
{
    for (int i = 0; i < 2; i++)
        if (dim[i] != STK_ANY && dim[i] <= p->kernel / 2)
            return stk_fail(STK_INVALID, "an image with a side of %lld is too small for a kernel of %d",
                            (long long)dim[i], p->kernel);
    return STK_OK;
}

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, true));
    *out = *in;
    return check_sides(params, in->desc.shape.dim);
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const gaussian_blur_params *p = params;
    const int64_t *dim = in->type.desc.shape.dim;
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    double sigma = (double)(p->sigma[0] + (p->sigma[1] - p->sigma[0]) * stk_rng_uniform(&rng));
    STK_RETURN_IF_ERROR(check_sides(p, dim)); /* The plan may have left the sides open. */
    return stk_blur(p->kernel, sigma, in->data, out->data, dim[0], dim[1], (int)dim[2], scratch);
}

static const stk_key keys[] = {
    {.name = "kernel",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 255,
     .required = true,
     .doc = "The kernel's side in pixels, odd."},
    STK_STAGE_RANGE("sigma", "[0.1, 2.0]", "The least and the largest deviation, in pixels."),
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    double sigma[2];
    STK_RETURN_IF_ERROR(stk_yaml_range(settings, "sigma", sigma));
    *out = stk_gaussian_blur(stk_yaml_int(settings, "kernel", 0), sigma[0], sigma[1]);
    return STK_OK;
}

const stk_stage_class stk_stage_gaussian_blur = {
    .key = {.name = "gaussian_blur", .type = STK_KEY_MAP, .keys = keys, .doc = "A blur of random width. u8."},
    .build = build,
    .params_bytes = sizeof(gaussian_blur_params),
    .plan = plan,
    .run = run,
    .random = true};

stk_stage *stk_gaussian_blur(int64_t kernel, double least_sigma, double most_sigma)
{
    if (kernel < 1 || kernel > STK_BLUR_MOST_KERNEL || kernel % 2 == 0)
        return stk_stage_new_failed(STK_INVALID, "gaussian_blur: kernel %lld is not odd and between 1 and %d",
                                    (long long)kernel, STK_BLUR_MOST_KERNEL);
    if (!(least_sigma >= 0.01 && least_sigma <= most_sigma && most_sigma <= 1000))
        return stk_stage_new_failed(STK_INVALID, "gaussian_blur: sigma must rise and lie between 0.01 and 1000");
    return stk_stage_new(&stk_stage_gaussian_blur,
                         &(gaussian_blur_params){(int)kernel, {(float)least_sigma, (float)most_sigma}});
}
