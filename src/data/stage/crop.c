#include "data/stage/crop.h"

#include <string.h>

void stk_copy_rectangle(const stk_item *src, int64_t top, int64_t left, stk_item *dst)
{
    const stk_shape *from = &src->type.desc.shape, *to = &dst->type.desc.shape;
    size_t pixel = (size_t)from->dim[2] * stk_dtype_bytes(src->type.desc.dtype);
    size_t row = (size_t)to->dim[1] * pixel;
    /* The columns of dst that lie inside of src: [first, last). */
    int64_t first = left < 0 ? -left : 0, last = from->dim[1] - left;
    if (last > to->dim[1]) last = to->dim[1];
    if (first > to->dim[1]) first = to->dim[1];
    if (last < first) last = first;
    for (int64_t y = 0; y < to->dim[0]; y++) {
        char *out = (char *)dst->data + (size_t)y * row;
        int64_t in_y = y + top;
        if (in_y < 0 || in_y >= from->dim[0]) {
            memset(out, 0, row);
            continue;
        }
        const char *in = (const char *)src->data + (size_t)(in_y * from->dim[1] + left + first) * pixel;
        memset(out, 0, (size_t)first * pixel);
        memcpy(out + (size_t)first * pixel, in, (size_t)(last - first) * pixel);
        memset(out + (size_t)last * pixel, 0, (size_t)(to->dim[1] - last) * pixel);
    }
}

static int64_t reflect(int64_t i, int64_t n)
{
    return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
}

void stk_copy_rectangle_reflected(const stk_item *src, int64_t top, int64_t left, stk_item *dst)
{
    const stk_shape *from = &src->type.desc.shape, *to = &dst->type.desc.shape;
    size_t pixel = (size_t)from->dim[2] * stk_dtype_bytes(src->type.desc.dtype);
    for (int64_t y = 0; y < to->dim[0]; y++) {
        const char *in = (const char *)src->data + (size_t)(reflect(y + top, from->dim[0]) * from->dim[1]) * pixel;
        char *out = (char *)dst->data + (size_t)(y * to->dim[1]) * pixel;
        for (int64_t x = 0; x < to->dim[1]; x++)
            memcpy(out + (size_t)x * pixel, in + (size_t)reflect(x + left, from->dim[1]) * pixel, pixel);
    }
}
