#include "device/cpu/conv/conv2d_plan.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more of n items in *items, which is a pointer of any type. */
static stk_status grow(void *items, int64_t n, size_t item_bytes)
{
    void *p;
    if (n & (n - 1)) return STK_OK;
    memcpy(&p, items, sizeof(p));
    size_t bytes = (size_t)(n ? 2 * n : 1) * item_bytes;
    p = realloc(p, bytes);
    if (!p) return stk_fail_memory(bytes);
    memcpy(items, &p, sizeof(p));
    return STK_OK;
}

static int64_t div_up(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

/* --- axes --- */

static stk_conv_axis forward_axis(const stk_conv_shape *s, int i)
{
    return (stk_conv_axis){
        .n_in = s->x.dim[1 + i],
        .n_out = s->y.dim[1 + i],
        .n_taps = s->window.kernel[i],
        .stride = s->window.stride[i],
        .pad = s->window.pad_low[i],
        .dilation = s->window.dilation[i],
        .out_step = 1,
        .tap_step = 1,
    };
}

/* Pixels p of x with (p + pad) % stride == phase. Tap t = phase + stride * j reads pixel (p + pad - t) / stride of
 * grad_dst; a dilation has stride 1. Taps run backwards, so that inputs run forwards. */
static stk_conv_axis gradient_axis(const stk_conv_shape *s, int i, int64_t phase)
{
    int64_t stride = s->window.stride[i], pad = s->window.pad_low[i], kernel = s->window.kernel[i];
    int64_t n_taps = phase < kernel ? (kernel - 1 - phase) / stride + 1 : 0;
    int64_t quotient = div_up(pad - phase, stride), first = quotient * stride + phase - pad, n = s->x.dim[1 + i];
    int64_t dilation = stride == 1 ? s->window.dilation[i] : 1;
    return (stk_conv_axis){
        .n_in = s->y.dim[1 + i],
        .n_out = first < n ? (n - 1 - first) / stride + 1 : 0,
        .n_taps = n_taps,
        .stride = 1,
        .pad = dilation * (n_taps - 1) - quotient,
        .dilation = dilation,
        .out_first = first,
        .out_step = stride,
        .tap_first = phase + stride * (n_taps - 1),
        .tap_step = -stride,
    };
}

/* The outputs from `begin` on that have the same taps inside as it has. */
static stk_conv_range next_range(const stk_conv_axis *a, int64_t begin)
{
    stk_conv_range r = {.begin = begin, .end = begin};
    for (; r.end < a->n_out; r.end++) {
        int64_t at = r.end * a->stride - a->pad;
        int64_t first = div_up(-at, a->dilation), end = div_up(a->n_in - at, a->dilation);
        first = first < 0 ? 0 : first > a->n_taps ? a->n_taps : first;
        end = end < first ? first : end > a->n_taps ? a->n_taps : end;
        if (r.end == begin)
            r.first_tap = first, r.end_tap = end;
        else if (first != r.first_tap || end != r.end_tap)
            break;
    }
    return r;
}

/* --- forward and gradient of data --- */

/* Cuts the segment where the chunk is full. */
static stk_status add_segment(stk_conv_dense *d, int64_t depth, int64_t *n_left, stk_conv_segment s)
{
    while (s.n > 0) {
        if (*n_left == 0) {
            STK_RETURN_IF_ERROR(grow(&d->chunks, d->n_chunks, sizeof(*d->chunks)));
            d->chunks[d->n_chunks++] = (stk_conv_chunk){d->n_segments, 0};
            *n_left = depth;
        }
        stk_conv_segment part = {s.x, s.k, s.n < *n_left ? s.n : *n_left};
        STK_RETURN_IF_ERROR(grow(&d->segments, d->n_segments, sizeof(*d->segments)));
        d->segments[d->n_segments++] = part;
        d->chunks[d->n_chunks - 1].n++;
        *n_left -= part.n;
        s = (stk_conv_segment){s.x + part.n, s.k + part.n, s.n - part.n};
    }
    return STK_OK;
}

static stk_status add_class(stk_conv_dense *d, const stk_conv_phase *phase, int64_t depth, stk_conv_range y,
                            stk_conv_range x)
{
    const stk_conv_axis *ay = &phase->axis[0], *ax = &phase->axis[1];
    int64_t c = d->c_in, n_taps = x.end_tap - x.first_tap, n_left = depth, first = d->n_chunks;
    int64_t n_rows = (y.end_tap - y.first_tap) * n_taps * c, n_chunks = (n_rows + depth - 1) / depth;
    /* Chunks are about equal. */
    if (n_chunks) depth = n_left = ((n_rows + n_chunks - 1) / n_chunks + 7) / 8 * 8;
    STK_RETURN_IF_ERROR(grow(&d->chunks, d->n_chunks, sizeof(*d->chunks)));
    d->chunks[d->n_chunks++] = (stk_conv_chunk){d->n_segments, 0};
    /* Dilated taps are not side by side. */
    int64_t step = ax->dilation == 1 ? n_taps : 1;
    for (int64_t i = y.first_tap; i < y.end_tap; i++)
        for (int64_t j = x.first_tap; j < x.end_tap; j += step)
            STK_RETURN_IF_ERROR(add_segment(d, depth, &n_left,
                                            (stk_conv_segment){i * ay->dilation * d->in_row + j * ax->dilation * c,
                                                               (i * ax->n_taps + j) * c, step * c}));
    STK_RETURN_IF_ERROR(grow(&d->classes, d->n_classes, sizeof(*d->classes)));
    d->classes[d->n_classes++] = (stk_conv_class){y, x, first, d->n_chunks - first};
    return STK_OK;
}

static stk_status add_phase(stk_conv_dense *d, stk_conv_axis y, stk_conv_axis x, int64_t depth)
{
    stk_conv_phase phase = {
        .axis = {y, x}, .n_rows = y.n_taps * x.n_taps * d->c_in, .first_row = d->n_rows, .first_class = d->n_classes};
    stk_conv_range ry, rx;
    if (!y.n_out || !x.n_out) return STK_OK;
    for (ry = next_range(&y, 0); ry.begin < y.n_out; ry = next_range(&y, ry.end))
        for (rx = next_range(&x, 0); rx.begin < x.n_out; rx = next_range(&x, rx.end))
            STK_RETURN_IF_ERROR(add_class(d, &phase, depth, ry, rx));
    phase.n_classes = d->n_classes - phase.first_class;
    d->n_rows += phase.n_rows;
    STK_RETURN_IF_ERROR(grow(&d->phases, d->n_phases, sizeof(*d->phases)));
    d->phases[d->n_phases++] = phase;
    return STK_OK;
}

stk_status stk_conv_plan_dense(const stk_conv_shape *s, int64_t depth, stk_conv_dense *out)
{
    bool is_forward = s->pass == STK_CONV_FORWARD;
    stk_shape in = is_forward ? s->x : s->y, to = is_forward ? s->y : s->x;
    int64_t c = s->weight.dim[3], filter = s->weight.dim[1] * s->weight.dim[2] * c;
    *out = (stk_conv_dense){
        .n_images = in.dim[0],
        .c_in = in.dim[3],
        .c_out = to.dim[3],
        .in_image = in.dim[1] * in.dim[2] * in.dim[3],
        .in_row = in.dim[2] * in.dim[3],
        .out_image = to.dim[1] * to.dim[2] * to.dim[3],
        .out_row = to.dim[2] * to.dim[3],
        .has_relu = s->has_relu,
        .kernel_w = s->weight.dim[2],
        .weight_tap = c,
        .weight_in = is_forward ? 1 : filter,
        .weight_out = is_forward ? filter : 1,
    };
    if (is_forward) return add_phase(out, forward_axis(s, 0), forward_axis(s, 1), depth);
    for (int64_t i = 0; i < s->window.stride[0]; i++)
        for (int64_t j = 0; j < s->window.stride[1]; j++)
            STK_RETURN_IF_ERROR(add_phase(out, gradient_axis(s, 0, i), gradient_axis(s, 1, j), depth));
    return STK_OK;
}

void stk_conv_dense_free(stk_conv_dense *d)
{
    free(d->phases);
    free(d->classes);
    free(d->chunks);
    free(d->segments);
}

/* --- gradient of weights --- */

/* Outputs whose input under this tap lies inside. */
static stk_conv_range outputs_of(const stk_conv_axis *a, int64_t tap)
{
    int64_t at = tap * a->dilation - a->pad;
    stk_conv_range r = {.begin = div_up(-at, a->stride), .end = div_up(a->n_in - at, a->stride)};
    r.begin = r.begin < 0 ? 0 : r.begin > a->n_out ? a->n_out : r.begin;
    r.end = r.end < r.begin ? r.begin : r.end > a->n_out ? a->n_out : r.end;
    return r;
}

static stk_status add_slice(stk_conv_weight *w, const stk_conv_axis axis[2], int64_t i, int64_t j)
{
    stk_conv_range y = outputs_of(&axis[0], i), x = outputs_of(&axis[1], j);
    if (y.begin == y.end || x.begin == x.end) return STK_OK;
    STK_RETURN_IF_ERROR(grow(&w->slices, w->n_slices, sizeof(*w->slices)));
    w->slices[w->n_slices++] = (stk_conv_slice){
        .k = (i * axis[1].n_taps + j) * w->c_in,
        .y = y.begin,
        .end_y = y.end,
        .x = x.begin,
        .end_x = x.end,
        .in_y = i * axis[0].dilation - axis[0].pad,
        .in_x = j * axis[1].dilation - axis[1].pad,
    };
    return STK_OK;
}

/* A 1x1 with a stride is one without, on the image of the pixels that it reads. */
static void skip_pixels(stk_conv_weight *w, stk_conv_axis axis[2])
{
    w->in_row *= axis[0].stride;
    w->in_pixel *= axis[1].stride;
    w->stride_y = w->stride_x = axis[0].stride = axis[1].stride = 1;
    w->in_h = axis[0].n_in = w->out_h;
    w->in_w = axis[1].n_in = w->out_w;
}

stk_status stk_conv_plan_weight(const stk_conv_shape *s, stk_conv_weight *out)
{
    stk_conv_axis axis[2] = {forward_axis(s, 0), forward_axis(s, 1)};
    *out = (stk_conv_weight){
        .n_images = s->x.dim[0],
        .c_in = s->x.dim[3],
        .c_out = s->y.dim[3],
        .in_h = s->x.dim[1],
        .in_w = s->x.dim[2],
        .out_h = s->y.dim[1],
        .out_w = s->y.dim[2],
        .in_image = s->x.dim[1] * s->x.dim[2] * s->x.dim[3],
        .in_row = s->x.dim[2] * s->x.dim[3],
        .in_pixel = s->x.dim[3],
        .stride_y = axis[0].stride,
        .stride_x = axis[1].stride,
        .first_y = -axis[0].pad,
        .last_y = (axis[0].n_taps - 1) * axis[0].dilation - axis[0].pad,
        .n_rows = axis[0].n_taps * axis[1].n_taps * s->x.dim[3],
    };
    if (axis[0].n_taps * axis[1].n_taps == 1 && !axis[0].pad && !axis[1].pad) skip_pixels(out, axis);
    for (int64_t i = 0; i < axis[0].n_taps; i++)
        for (int64_t j = 0; j < axis[1].n_taps; j++)
            STK_RETURN_IF_ERROR(add_slice(out, axis, i, j));
    return STK_OK;
}

void stk_conv_weight_free(stk_conv_weight *w)
{
    free(w->slices);
}
