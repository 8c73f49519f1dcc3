/* Grey in all channels, with a chance. */
#include <string.h>

#include "base/error.h"
#include "data/stage/color.h"
#include "data/stage/keys.h"
#include "data/stage/stage_list.h"

typedef struct random_grayscale_params {
    float chance;
} random_grayscale_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    (void)params;
    *out = *in;
    return stk_stage_needs_colors(in);
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const random_grayscale_params *p = params;
    const int64_t *dim = in->type.desc.shape.dim;
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    (void)scratch;
    if (stk_rng_uniform(&rng) < p->chance)
        stk_color_apply(&(stk_color_op){.kind = STK_COLOR_GRAYSCALE}, 1, in->data, out->data, dim[0] * dim[1],
                        (int)dim[2]);
    else if (out->data != in->data)
        memcpy(out->data, in->data, in->n_bytes);
    return STK_OK;
}

static const stk_key keys[] = {STK_STAGE_CHANCE("0.1", "The chance."), STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_random_grayscale(stk_yaml_real(settings, "p", 0));
    return STK_OK;
}

const stk_stage_class stk_stage_random_grayscale = {
    .key = {.name = "random_grayscale", .type = STK_KEY_MAP, .keys = keys, .doc = "Grey by chance. u8."},
    .build = build,
    .params_bytes = sizeof(random_grayscale_params),
    .plan = plan,
    .run = run,
    .random = true,
    .in_place = true};

stk_stage *stk_random_grayscale(double chance)
{
    if (!(chance >= 0 && chance <= 1))
        return stk_stage_new_failed(STK_INVALID, "random_grayscale: chance %g is not between 0 and 1", chance);
    return stk_stage_new(&stk_stage_random_grayscale, &(random_grayscale_params){(float)chance});
}
