#include "data/stage/view.h"

#include <string.h>

void stk_view_init(stk_view *view, int64_t height, int64_t width)
{
    *view = (stk_view){
        .image_height = height, .image_width = width, .height = height, .width = width, .from = {0, 0, height, width}};
}

static bool is_whole(const stk_view *v)
{
    return !v->resized && v->from.height == v->image_height && v->from.width == v->image_width;
}

bool stk_view_crop(stk_view *v, stk_rect part)
{
    bool inside =
        part.top >= 0 && part.left >= 0 && part.height <= v->height - part.top && part.width <= v->width - part.left;
    /* Zeros are put where the whole image ends, and before other values are made of it. */
    if (!inside && (v->padded || v->is_f32 || !is_whole(v))) return false;
    stk_rect *r = v->resized ? &v->keep : &v->from;
    r->top += part.top;
    r->left += v->flipped ? v->width - part.left - part.width : part.left;
    r->height = v->height = part.height;
    r->width = v->width = part.width;
    v->padded = v->padded || !inside;
    return true;
}

bool stk_view_resize(stk_view *v, int64_t height, int64_t width, stk_sampling how)
{
    if (v->resized || v->padded || v->flipped || v->is_f32) return false;
    v->resized = true;
    v->how = how;
    v->to_height = v->height = height;
    v->to_width = v->width = width;
    v->keep = (stk_rect){0, 0, height, width};
    return true;
}

bool stk_view_flip(stk_view *v)
{
    v->flipped = !v->flipped;
    return true;
}

bool stk_view_affine(stk_view *v, const float *a, const float *b, int channels)
{
    if (v->is_f32 || channels > STK_VIEW_CHANNELS) return false;
    v->is_f32 = true;
    memcpy(v->a, a, (size_t)channels * sizeof(*a));
    memcpy(v->b, b, (size_t)channels * sizeof(*b));
    return true;
}
