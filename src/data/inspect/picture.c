/* See data/inspect/picture.h. */
#include "data/inspect/picture.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "data/codec/image.h"

stk_status stk_picture_plan(const stk_dataset *dataset, const char *field, stk_picture *out)
{
    stk_shape shape;
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_dataset_field(dataset, field, true, &out->dtype, &shape));
    bool fits = shape.rank == 3 && stk_shape_known(shape) && (out->dtype == STK_U8 || out->dtype == STK_F32);
    bool last = fits && (shape.dim[2] == 1 || shape.dim[2] == 3);
    bool first = fits && (shape.dim[0] == 1 || shape.dim[0] == 3);
    if (!last && !first)
        return stk_fail(STK_UNSUPPORTED, "field '%s' is %s, and no u8 or f32 image of 1 or 3 channels", field,
                        stk_desc_text(stk_desc_make(out->dtype, shape), text));
    out->planar = !last;
    out->channels = (int)shape.dim[last ? 2 : 0];
    out->height = shape.dim[last ? 0 : 1];
    out->width = shape.dim[last ? 1 : 2];
    out->sample_bytes = stk_desc_bytes(stk_desc_make(out->dtype, shape));
    stk_undo_init(&out->undo, &dataset->chain[stk_dataset_find_field(dataset, field)], out->channels);
    return STK_OK;
}

static float value_at(const stk_picture *p, const void *image, int64_t i)
{
    return p->dtype == STK_U8 ? (float)((const uint8_t *)image)[i] : ((const float *)image)[i];
}

/* Where nothing is known of the values, the least becomes black and the most white. */
static stk_undo spread(const stk_picture *p, const void *image)
{
    stk_undo undo = {.known = true};
    float low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < p->height * p->width * p->channels; i++) {
        float v = value_at(p, image, i);
        if (v < low) low = v;
        if (v > high) high = v;
    }
    for (int c = 0; c < p->channels; c++) {
        undo.low[c] = low;
        undo.high[c] = high > low ? high : low + 1;
    }
    return undo;
}

stk_status stk_picture_encode(const stk_picture *p, const void *image, uint8_t **png, size_t *n_bytes)
{
    int64_t n = p->height * p->width;
    stk_undo undo = p->undo.known ? p->undo : spread(p, image);
    uint8_t *pixels = malloc((size_t)(n * p->channels));
    if (!pixels) return stk_fail_memory((size_t)(n * p->channels));
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < p->channels; c++) {
            int64_t from = p->planar ? c * n + i : i * p->channels + c;
            pixels[i * p->channels + c] = stk_undo_value(&undo, c, value_at(p, image, from));
        }
    stk_status status = stk_png_encode(pixels, p->height, p->width, p->channels, png, n_bytes);
    free(pixels);
    return status;
}
