/* The middle height x width of an image that is at least that large. */
#include "base/error.h"
#include "data/stage/crop.h"
#include "data/stage/keys.h"
#include "data/stage/stage_list.h"

typedef struct center_crop_params {
    int64_t height, width;
} center_crop_params;

static stk_status check_sides(const center_crop_params *p, const int64_t *dim)
{
    if ((dim[0] == STK_ANY || dim[0] >= p->height) && (dim[1] == STK_ANY || dim[1] >= p->width)) return STK_OK;
    return stk_fail(STK_INVALID, "an image of %lld x %lld is smaller than the crop of %lld x %lld; resize it first",
                    (long long)dim[0], (long long)dim[1], (long long)p->height, (long long)p->width);
}

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const center_crop_params *p = params;
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, false));
    STK_RETURN_IF_ERROR(check_sides(p, in->desc.shape.dim));
    *out = *in;
    out->desc.shape.dim[0] = p->height;
    out->desc.shape.dim[1] = p->width;
    return STK_OK;
}

/* Where the middle begins: half of what is left over, an odd one rounded to even, as torchvision rounds. */
static int64_t begin_of(int64_t side, int64_t part)
{
    int64_t half = (side - part) / 2;
    return half + ((side - part) % 2 && half % 2);
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const center_crop_params *p = params;
    const int64_t *dim = in->type.desc.shape.dim;
    (void)key;
    (void)scratch;
    STK_RETURN_IF_ERROR(check_sides(p, dim)); /* The plan may have left the sides open. */
    stk_copy_rectangle(in, begin_of(dim[0], p->height), begin_of(dim[1], p->width), out);
    return STK_OK;
}

static stk_status look(const void *params, const stk_stage_key *key, stk_view *view, bool *fits)
{
    const center_crop_params *p = params;
    (void)key;
    STK_RETURN_IF_ERROR(check_sides(p, (const int64_t[]){view->height, view->width}));
    stk_rect middle = {begin_of(view->height, p->height), begin_of(view->width, p->width), p->height, p->width};
    *fits = stk_view_crop(view, middle);
    return STK_OK;
}

static const stk_key keys[] = {
    {.name = "size", .type = STK_KEY_INT, STK_STAGE_SIDES, .doc = "Both sides, in pixels."},
    {.name = "height", .type = STK_KEY_INT, STK_STAGE_SIDES, .doc = "With width, instead of size."},
    {.name = "width", .type = STK_KEY_INT, STK_STAGE_SIDES, .doc = "With height, instead of size."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    int64_t height, width;
    STK_RETURN_IF_ERROR(stk_stage_read_sides(settings, &height, &width));
    *out = stk_center_crop(height, width);
    return STK_OK;
}

const stk_stage_class stk_stage_center_crop = {
    .key = {.name = "center_crop", .type = STK_KEY_MAP, .keys = keys, .doc = "The middle of the image."},
    .build = build,
    .crops = true,
    .params_bytes = sizeof(center_crop_params),
    .plan = plan,
    .run = run,
    .geometric = true,
    .view = look,
    .plain = true};

stk_stage *stk_center_crop(int64_t height, int64_t width)
{
    if (height < 1 || width < 1) return stk_stage_new_failed(STK_INVALID, "center_crop: sizes must be at least 1");
    return stk_stage_new(&stk_stage_center_crop, &(center_crop_params){height, width});
}
