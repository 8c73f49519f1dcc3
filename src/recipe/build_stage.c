/* Stages from a recipe. See recipe/build.h. */
#include <string.h>

#include "base/error.h"
#include "recipe/build.h"
#include "stoker/data/fields.h"

/* size, or height and width. */
static stk_status get_sides(const stk_yaml_node *settings, int64_t *height, int64_t *width)
{
    const stk_yaml_node *size = stk_yaml_get(settings, "size"), *h = stk_yaml_get(settings, "height"),
                        *w = stk_yaml_get(settings, "width");
    if ((size != NULL) == (h || w) || (h != NULL) != (w != NULL))
        return stk_yaml_fail(settings, "'%s' needs either 'size', or 'height' and 'width'", settings->key);
    *height = size ? size->integer : h->integer;
    *width = size ? size->integer : w->integer;
    return STK_OK;
}

static stk_filter get_filter(const stk_yaml_node *settings)
{
    const char *name = stk_yaml_get(settings, "filter")->text;
    return !strcmp(name, "bicubic")   ? STK_FILTER_BICUBIC
           : !strcmp(name, "nearest") ? STK_FILTER_NEAREST
                                      : STK_FILTER_BILINEAR;
}

static stk_status make_resize(const stk_yaml_node *settings, stk_stage **out)
{
    const stk_yaml_node *shorter = stk_yaml_get(settings, "shorter"), *antialias = stk_yaml_get(settings, "antialias");
    const char *like = stk_yaml_get(settings, "like")->text;
    stk_resize_config config = stk_resize_config_default();
    config.filter = get_filter(settings);
    config.like = !strcmp(like, "tf") ? STK_LIKE_TF : !strcmp(like, "opencv") ? STK_LIKE_OPENCV : STK_LIKE_PIL;
    config.antialias = antialias ? antialias->truth : config.like == STK_LIKE_PIL;
    if (!shorter) {
        STK_RETURN_IF_ERROR(get_sides(settings, &config.height, &config.width));
    } else {
        if (stk_yaml_get(settings, "size") || stk_yaml_get(settings, "height") || stk_yaml_get(settings, "width"))
            return stk_yaml_fail(shorter, "'shorter' says it all; leave out 'size', 'height' and 'width'");
        config.shorter = shorter->integer;
    }
    *out = stk_resize_with(&config);
    return STK_OK;
}

static stk_status make_normalize(const stk_yaml_node *settings, stk_stage **out)
{
    const stk_yaml_node *name = stk_yaml_get(settings, "name");
    const stk_yaml_node *lists[2] = {stk_yaml_get(settings, "mean"), stk_yaml_get(settings, "std")};
    float values[2][4];
    if (name && !lists[0] && !lists[1]) {
        *out = stk_normalize_named(name->text);
        return STK_OK;
    }
    if (name || !lists[0] || !lists[1])
        return stk_yaml_fail(settings, "'normalize' needs either a name, or 'mean' and 'std'");
    if (lists[0]->n_children != lists[1]->n_children || lists[0]->n_children < 1 || lists[0]->n_children > 4)
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

static stk_status make_center_crop(const stk_yaml_node *settings, stk_stage **out)
{
    int64_t height, width;
    STK_RETURN_IF_ERROR(get_sides(settings, &height, &width));
    *out = stk_center_crop(height, width);
    return STK_OK;
}

/* A list of two numbers. */
static stk_status get_range(const stk_yaml_node *settings, const char *key, double range[2])
{
    const stk_yaml_node *list = stk_yaml_get(settings, key);
    if (list->n_children != 2) return stk_yaml_fail(list, "'%s' needs two numbers: [least, most]", key);
    range[0] = list->child->real;
    range[1] = list->child->next->real;
    return STK_OK;
}

static stk_status make_blur(const stk_yaml_node *settings, stk_stage **out)
{
    double sigma[2] = {0, 0};
    STK_RETURN_IF_ERROR(get_range(settings, "sigma", sigma));
    *out = stk_gaussian_blur(stk_yaml_int(settings, "kernel", 0), sigma[0], sigma[1]);
    return STK_OK;
}

static stk_status make_erasing(const stk_yaml_node *settings, stk_stage **out)
{
    stk_random_erasing_config config = {.chance = stk_yaml_real(settings, "p", 0),
                                        .value = stk_yaml_real(settings, "value", 0)};
    STK_RETURN_IF_ERROR(get_range(settings, "scale", config.scale));
    STK_RETURN_IF_ERROR(get_range(settings, "ratio", config.ratio));
    *out = stk_random_erasing(&config);
    return STK_OK;
}

static stk_status make_rotation(const stk_yaml_node *settings, stk_stage **out)
{
    double degrees[2] = {0, 0};
    STK_RETURN_IF_ERROR(get_range(settings, "degrees", degrees));
    *out = stk_random_rotation(degrees[0], degrees[1], get_filter(settings), (int)stk_yaml_int(settings, "fill", 0));
    return STK_OK;
}

static stk_status make_affine(const stk_yaml_node *settings, stk_stage **out)
{
    stk_random_affine_config config = {.filter = get_filter(settings), .fill = (int)stk_yaml_int(settings, "fill", 0)};
    double moves[2] = {0, 0};
    STK_RETURN_IF_ERROR(get_range(settings, "degrees", config.degrees));
    STK_RETURN_IF_ERROR(get_range(settings, "translate", moves));
    STK_RETURN_IF_ERROR(get_range(settings, "scale", config.scale));
    STK_RETURN_IF_ERROR(get_range(settings, "shear", config.shear_x));
    STK_RETURN_IF_ERROR(get_range(settings, "shear_y", config.shear_y));
    config.move_x = moves[0];
    config.move_y = moves[1];
    *out = stk_random_affine(&config);
    return STK_OK;
}

static stk_stage *make_pad(const stk_yaml_node *settings)
{
    int64_t size = stk_yaml_int(settings, "size", 0);
    return stk_pad_image(stk_yaml_int(settings, "top", size), stk_yaml_int(settings, "left", size),
                         stk_yaml_int(settings, "bottom", size), stk_yaml_int(settings, "right", size),
                         stk_yaml_real(settings, "value", 0));
}

static stk_status make_simple(const stk_yaml_node *settings, stk_stage **out)
{
    const char *kind = settings->key;
    if (!strcmp(kind, "decode_mask"))
        *out = stk_decode_mask();
    else if (!strcmp(kind, "decode"))
        *out = stk_decode_with((int)stk_yaml_int(settings, "channels", 3), stk_yaml_bool(settings, "exif"));
    else if (!strcmp(kind, "random_crop"))
        *out = stk_random_crop_with(stk_yaml_int(settings, "size", 0), stk_yaml_int(settings, "pad", 0),
                                    !strcmp(stk_yaml_get(settings, "border")->text, "reflect") ? STK_BORDER_REFLECT
                                                                                               : STK_BORDER_ZERO);
    else if (!strcmp(kind, "random_resized_crop"))
        *out = stk_random_resized_crop_with(stk_yaml_int(settings, "size", 0), get_filter(settings),
                                            stk_yaml_bool(settings, "antialias"));
    else if (!strcmp(kind, "random_flip"))
        *out = stk_random_flip_with(!strcmp(stk_yaml_get(settings, "axis")->text, "vertical"),
                                    stk_yaml_bool(settings, "alternate"));
    else if (!strcmp(kind, "color_jitter"))
        *out = stk_color_jitter(stk_yaml_real(settings, "brightness", 0), stk_yaml_real(settings, "contrast", 0),
                                stk_yaml_real(settings, "saturation", 0), stk_yaml_real(settings, "hue", 0));
    else if (!strcmp(kind, "random_grayscale"))
        *out = stk_random_grayscale(stk_yaml_real(settings, "p", 0));
    else if (!strcmp(kind, "randaugment"))
        *out = stk_randaugment(stk_yaml_int(settings, "n", 0), stk_yaml_int(settings, "magnitude", 0));
    else if (!strcmp(kind, "pad"))
        *out = make_pad(settings);
    else if (!strcmp(kind, "clip"))
        *out = stk_clip_values(stk_yaml_real(settings, "low", 0), stk_yaml_real(settings, "high", 0));
    else if (!strcmp(kind, "layout"))
        *out = stk_layout_channels_first();
    else if (!strcmp(kind, "cast"))
        *out = stk_cast(!strcmp(stk_yaml_get(settings, "dtype")->text, "u8") ? STK_U8 : STK_F32);
    else if (!strcmp(kind, "scale"))
        *out = stk_scale(stk_yaml_get(settings, "factor")->real);
    else if (!strcmp(kind, "one_hot"))
        *out = stk_one_hot(stk_yaml_int(settings, "classes", 0));
    else
        return stk_yaml_fail(settings, "stage '%s' cannot be built", kind);
    return STK_OK;
}

stk_status stk_build_stage(const stk_yaml_node *stage, stk_stage **out)
{
    const stk_yaml_node *settings = stage->child;
    *out = NULL;
    if (!strcmp(settings->key, "resize")) return make_resize(settings, out);
    if (!strcmp(settings->key, "tokenize")) return stk_build_tokenize(settings, out);
    if (!strcmp(settings->key, "normalize")) return make_normalize(settings, out);
    if (!strcmp(settings->key, "center_crop")) return make_center_crop(settings, out);
    if (!strcmp(settings->key, "gaussian_blur")) return make_blur(settings, out);
    if (!strcmp(settings->key, "random_erasing")) return make_erasing(settings, out);
    if (!strcmp(settings->key, "random_rotation")) return make_rotation(settings, out);
    if (!strcmp(settings->key, "random_affine")) return make_affine(settings, out);
    return make_simple(settings, out);
}
