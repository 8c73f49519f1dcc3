/* Resizing to a fixed size, or of the shorter side with the longer in proportion. */
#include "base/error.h"
#include "data/stage/keys.h"
#include "data/stage/resample.h"
#include "data/stage/stage_list.h"

enum { MOST_SIDE = 65535 };

typedef struct resize_params {
    int64_t height, width; /* 0: by shorter */
    int64_t shorter;
    stk_sampling how;
    int32_t unused; /* without padding */
} resize_params;

/* The output's sides for an input whose sides are known. */
static stk_status measure_sides(const resize_params *p, int64_t height, int64_t width, int64_t *out)
{
    out[0] = p->height;
    out[1] = p->width;
    if (!p->shorter) return STK_OK;
    bool tall = height > width;
    int64_t shorter = tall ? width : height, longer = tall ? height : width;
    int64_t scaled = p->shorter * longer / shorter; /* rounded down, as torchvision does */
    if (scaled > MOST_SIDE)
        return stk_fail(STK_INVALID, "an image of %lld x %lld is too long to resize its shorter side to %lld",
                        (long long)height, (long long)width, (long long)p->shorter);
    out[0] = tall ? scaled : p->shorter;
    out[1] = tall ? p->shorter : scaled;
    return STK_OK;
}

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const int64_t *dim = in->desc.shape.dim;
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, false));
    *out = *in;
    const resize_params *p = params;
    /* TensorFlow's own gives floats, but for the nearest. */
    if (p->how.like == STK_LIKE_TF && p->how.filter != STK_FILTER_NEAREST) out->desc.dtype = STK_F32;
    if (p->shorter && (dim[0] == STK_ANY || dim[1] == STK_ANY)) {
        out->desc.shape.dim[0] = out->desc.shape.dim[1] = STK_ANY;
        return STK_OK;
    }
    return measure_sides(p, dim[0], dim[1], out->desc.shape.dim);
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const resize_params *p = params;
    const int64_t *dim = in->type.desc.shape.dim;
    (void)key;
    return stk_resample(in, (stk_rect){0, 0, dim[0], dim[1]}, p->how, out, scratch);
}

static stk_status look(const void *params, const stk_stage_key *key, stk_view *view, bool *fits)
{
    const resize_params *p = params;
    int64_t sides[2];
    (void)key;
    STK_RETURN_IF_ERROR(measure_sides(p, view->height, view->width, sides));
    *fits = (p->how.like != STK_LIKE_TF || p->how.filter == STK_FILTER_NEAREST) &&
            stk_view_resize(view, sides[0], sides[1], p->how);
    return STK_OK;
}

static void for_mask(void *params)
{
    resize_params *p = params;
    p->how.filter = STK_FILTER_NEAREST;
    p->how.antialias = false;
}

static const char *const like_words[] = {
    [STK_LIKE_PIL] = "pil", [STK_LIKE_TF] = "tf", [STK_LIKE_OPENCV] = "opencv", NULL};
static const stk_key keys[] = {
    {.name = "size", .type = STK_KEY_INT, STK_STAGE_SIDES, .doc = "Both sides, in pixels."},
    {.name = "height", .type = STK_KEY_INT, STK_STAGE_SIDES, .doc = "With width, instead of size."},
    {.name = "width", .type = STK_KEY_INT, STK_STAGE_SIDES, .doc = "With height, instead of size."},
    {.name = "shorter",
     .type = STK_KEY_INT,
     STK_STAGE_SIDES,
     .doc = "The shorter side, the longer in proportion; instead of size."},
    {.name = "filter",
     .type = STK_KEY_WORD,
     .words = stk_stage_filter_words,
     .default_value = "bilinear",
     .doc = "How pixels are mixed."},
    {.name = "like",
     .type = STK_KEY_WORD,
     .words = like_words,
     .default_value = "pil",
     .doc = "Whose pixels come out: PIL's, those of tf.image.resize (f32, unless nearest), or OpenCV's."},
    {.name = "antialias",
     .type = STK_KEY_BOOL,
     .doc = "Whether the filter widens when shrinking. Default: true, but false for tf and opencv, as theirs is."},
    STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    const stk_yaml_node *shorter = stk_yaml_get(settings, "shorter"), *antialias = stk_yaml_get(settings, "antialias");
    stk_resize_config config = stk_resize_config_default();
    config.filter = stk_stage_read_filter(settings);
    config.like = (stk_resize_like)stk_yaml_word(settings, "like", like_words);
    config.antialias = antialias ? antialias->truth : config.like == STK_LIKE_PIL;
    if (!shorter) {
        STK_RETURN_IF_ERROR(stk_stage_read_sides(settings, &config.height, &config.width));
    } else {
        if (stk_yaml_get(settings, "size") || stk_yaml_get(settings, "height") || stk_yaml_get(settings, "width"))
            return stk_yaml_fail(shorter, "'shorter' says it all; leave out 'size', 'height' and 'width'");
        config.shorter = shorter->integer;
    }
    *out = stk_resize_with(&config);
    return STK_OK;
}

const stk_stage_class stk_stage_resize = {
    .key = {.name = "resize", .type = STK_KEY_MAP, .keys = keys, .doc = "Resizing."},
    .build = build,
    .resizes = true,
    .params_bytes = sizeof(resize_params),
    .plan = plan,
    .run = run,
    .geometric = true,
    .for_mask = for_mask,
    .view = look,
    .plain = true};

stk_resize_config stk_resize_config_default(void)
{
    return (stk_resize_config){.antialias = true};
}

stk_stage *stk_resize_with(const stk_resize_config *config)
{
    if (!config) return stk_stage_new_failed(STK_INVALID, "resize: the settings are missing");
    const stk_resize_config *c = config;
    bool by_shorter = c->shorter != 0;
    int64_t least = by_shorter ? c->shorter : c->height < c->width ? c->height : c->width;
    int64_t most = by_shorter ? c->shorter : c->height < c->width ? c->width : c->height;
    if (by_shorter && (c->height || c->width))
        return stk_stage_new_failed(STK_INVALID, "resize: either height and width or shorter, not both");
    if (least < 1 || most > MOST_SIDE)
        return stk_stage_new_failed(STK_INVALID, "resize: sizes must be 1 to %d", MOST_SIDE);
    if ((unsigned)c->filter > STK_FILTER_NEAREST || (unsigned)c->like > STK_LIKE_OPENCV)
        return stk_stage_new_failed(STK_INVALID, "resize: no such filter or likeness: %d, %d", (int)c->filter,
                                    (int)c->like);
    if (c->like == STK_LIKE_OPENCV && c->antialias)
        return stk_stage_new_failed(STK_INVALID, "resize: opencv has no antialiasing; use like pil, or leave it out");
    return stk_stage_new(&stk_stage_resize,
                         &(resize_params){c->height, c->width, c->shorter, {c->filter, c->like, c->antialias}, 0});
}

stk_stage *stk_resize(int64_t height, int64_t width, bool antialias)
{
    if (height < 1 || width < 1) height = width = -1; /* 0 is not to stand for anything here */
    return stk_resize_with(&(stk_resize_config){.height = height, .width = width, .antialias = antialias});
}

stk_stage *stk_resize_shorter(int64_t side, bool antialias)
{
    return stk_resize_with(&(stk_resize_config){.shorter = side ? side : -1, .antialias = antialias});
}
