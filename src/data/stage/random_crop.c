/* Pads with zeros or reflected on all sides, then cuts size x size at a random place: the usual augmentation for CIFAR.
 */
#include "base/error.h"
#include "data/stage/crop.h"
#include "data/stage/keys.h"
#include "data/stage/stage_list.h"

typedef struct random_crop_params {
    int64_t size, pad;
    stk_border border;
} random_crop_params;

static stk_status check_sides(const random_crop_params *p, const int64_t *dim)
{
    for (int i = 0; i < 2; i++)
        if (dim[i] != STK_ANY && dim[i] + 2 * p->pad < p->size)
            return stk_fail(STK_INVALID,
                            "an image with a side of %lld, padded by %lld, is smaller than the crop of %lld",
                            (long long)dim[i], (long long)p->pad, (long long)p->size);
    for (int i = 0; i < 2 && p->border == STK_BORDER_REFLECT; i++)
        if (dim[i] != STK_ANY && dim[i] <= p->pad)
            return stk_fail(STK_INVALID,
                            "a side of %lld cannot be reflected for a border of %lld; take a smaller 'pad'",
                            (long long)dim[i], (long long)p->pad);
    return STK_OK;
}

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const random_crop_params *p = params;
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, false));
    STK_RETURN_IF_ERROR(check_sides(p, in->desc.shape.dim));
    *out = *in;
    out->desc.shape.dim[0] = out->desc.shape.dim[1] = p->size;
    return STK_OK;
}

/* The sides must have been checked: the plan may have left them open. */
static stk_rect draw_rect(const random_crop_params *p, const stk_stage_key *key, int64_t height, int64_t width)
{
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    int64_t top = stk_rng_below(&rng, (uint32_t)(height + 2 * p->pad - p->size + 1)) - p->pad;
    int64_t left = stk_rng_below(&rng, (uint32_t)(width + 2 * p->pad - p->size + 1)) - p->pad;
    return (stk_rect){top, left, p->size, p->size};
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const random_crop_params *p = params;
    const int64_t *dim = in->type.desc.shape.dim;
    (void)scratch;
    STK_RETURN_IF_ERROR(check_sides(p, dim));
    stk_rect rect = draw_rect(p, key, dim[0], dim[1]);
    if (p->border == STK_BORDER_REFLECT)
        stk_copy_rectangle_reflected(in, rect.top, rect.left, out);
    else
        stk_copy_rectangle(in, rect.top, rect.left, out);
    return STK_OK;
}

static stk_status look(const void *params, const stk_stage_key *key, stk_view *view, bool *fits)
{
    const random_crop_params *p = params;
    STK_RETURN_IF_ERROR(check_sides(p, (const int64_t[]){view->height, view->width}));
    stk_rect rect = draw_rect(p, key, view->height, view->width);
    bool inside = rect.top >= 0 && rect.left >= 0 && rect.top + rect.height <= view->height &&
                  rect.left + rect.width <= view->width;
    *fits = (inside || p->border == STK_BORDER_ZERO) && stk_view_crop(view, rect);
    return STK_OK;
}

static const char *const border_words[] = {[STK_BORDER_ZERO] = "zero", [STK_BORDER_REFLECT] = "reflect", NULL};
static const stk_key keys[] = {
    {.name = "size", .type = STK_KEY_INT, STK_STAGE_SIDES, .required = true, .doc = "Both sides, in pixels."},
    {.name = "pad",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = 65536,
     .doc = "Pixels added on each side first."},
    {.name = "border",
     .type = STK_KEY_WORD,
     .words = border_words,
     .default_value = "zero",
     .doc = "What those are; reflect: the image, reflected at its outermost pixels."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_random_crop_with(stk_yaml_int(settings, "size", 0), stk_yaml_int(settings, "pad", 0),
                                (stk_border)stk_yaml_word(settings, "border", border_words));
    return STK_OK;
}

const stk_stage_class stk_stage_random_crop = {
    .key = {.name = "random_crop", .type = STK_KEY_MAP, .keys = keys, .doc = "A random square of the padded image."},
    .build = build,
    .crops = true,
    .params_bytes = sizeof(random_crop_params),
    .plan = plan,
    .run = run,
    .geometric = true,
    .view = look,
    .random = true};

stk_stage *stk_random_crop(int64_t size, int64_t pad)
{
    return stk_random_crop_with(size, pad, STK_BORDER_ZERO);
}

stk_stage *stk_random_crop_with(int64_t size, int64_t pad, stk_border border)
{
    if (size < 1 || size > 65535 || pad < 0 || pad > 65535)
        return stk_stage_new_failed(STK_INVALID, "random_crop: size %lld with pad %lld is out of range",
                                    (long long)size, (long long)pad);
    return stk_stage_new(&stk_stage_random_crop, &(random_crop_params){size, pad, border});
}
