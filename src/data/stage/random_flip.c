/* Flips left-right, or top-bottom, with chance 1/2; or each image in every other epoch. */
#include <string.h>

#include "base/error.h"
#include "data/stage/stage_list.h"

typedef struct random_flip_params {
    bool vertical, alternate;
} random_flip_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    (void)params;
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, false));
    *out = *in;
    return STK_OK;
}

static void swap_pixels(char *a, char *b, size_t n)
{
    char kept[64];
    for (size_t i = 0; i < n; i += sizeof(kept)) {
        size_t part = n - i < sizeof(kept) ? n - i : sizeof(kept);
        memcpy(kept, a + i, part);
        memcpy(a + i, b + i, part);
        memcpy(b + i, kept, part);
    }
}

/* Flips rows of `width` pixels; three bytes a pixel is the common case and worth its own loop. */
static void mirror_row(char *row, int64_t width, size_t pixel)
{
    char *a = row, *b = row + (size_t)(width - 1) * pixel;
    if (pixel == 3) {
        for (; a < b; a += 3, b -= 3) {
            char x = a[0], y = a[1], z = a[2];
            a[0] = b[0];
            a[1] = b[1];
            a[2] = b[2];
            b[0] = x;
            b[1] = y;
            b[2] = z;
        }
        return;
    }
    if (pixel == 1) {
        for (; a < b; a++, b--) {
            char x = *a;
            *a = *b;
            *b = x;
        }
        return;
    }
    for (; a < b; a += pixel, b -= pixel)
        swap_pixels(a, b, pixel);
}

/* Alternating, half of the images begin flipped, and in each epoch all change sides. */
static bool draw_flip(const random_flip_params *p, const stk_stage_key *key)
{
    stk_rng rng = stk_rng_make(key->seed, p->alternate ? 0 : key->epoch, key->i_sample, key->i_stage);
    bool first = !(stk_rng_u32(&rng) >> 31);
    return p->alternate ? first != (key->epoch & 1) : first;
}

/* Rows of n bytes; dst may be src. */
static void mirror_rows(const char *src, char *dst, int64_t height, size_t n)
{
    if (dst == src)
        for (int64_t y = 0; y < height / 2; y++)
            swap_pixels(dst + (size_t)y * n, dst + (size_t)(height - 1 - y) * n, n);
    else
        for (int64_t y = 0; y < height; y++)
            memcpy(dst + (size_t)y * n, src + (size_t)(height - 1 - y) * n, n);
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const random_flip_params *p = params;
    const stk_tensor_desc *desc = &in->type.desc;
    (void)scratch;
    bool flip = draw_flip(p, key);
    size_t pixel = (size_t)desc->shape.dim[2] * stk_dtype_bytes(desc->dtype);
    if (flip && p->vertical) {
        mirror_rows(in->data, out->data, desc->shape.dim[0], (size_t)desc->shape.dim[1] * pixel);
        return STK_OK;
    }
    if (out->data != in->data) memcpy(out->data, in->data, in->n_bytes);
    if (!flip) return STK_OK;
    for (int64_t y = 0; y < desc->shape.dim[0]; y++)
        mirror_row((char *)out->data + (size_t)(y * desc->shape.dim[1]) * pixel, desc->shape.dim[1], pixel);
    return STK_OK;
}

static stk_status look(const void *params, const stk_stage_key *key, stk_view *view, bool *fits)
{
    const random_flip_params *p = params;
    *fits = !draw_flip(p, key) || (!p->vertical && stk_view_flip(view));
    return STK_OK;
}

static const char *const axis_words[] = {"horizontal", "vertical", NULL};
static const stk_key keys[] = {{.name = "axis",
                                .type = STK_KEY_WORD,
                                .words = axis_words,
                                .default_value = "horizontal",
                                .doc = "horizontal: left and right; vertical: top and bottom."},
                               {.name = "alternate",
                                .type = STK_KEY_BOOL,
                                .default_value = "false",
                                .doc = "Drawn for the first epoch only; then each image is flipped in "
                                       "every other epoch. Jordan 2024."},
                               STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_random_flip_with(stk_yaml_is(settings, "axis", "vertical"), stk_yaml_bool(settings, "alternate"));
    return STK_OK;
}

const stk_stage_class stk_stage_random_flip = {
    .key = {.name = "random_flip",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "Flips left and right, or top and bottom, with chance 1/2."},
    .build = build,
    .params_bytes = sizeof(random_flip_params),
    .plan = plan,
    .run = run,
    .geometric = true,
    .view = look,
    .random = true,
    .in_place = true};

stk_stage *stk_random_flip(void)
{
    return stk_random_flip_with(false, false);
}

stk_stage *stk_random_flip_vertical(void)
{
    return stk_random_flip_with(true, false);
}

stk_stage *stk_random_flip_with(bool vertical, bool alternate)
{
    return stk_stage_new(&stk_stage_random_flip, &(random_flip_params){vertical, alternate});
}
