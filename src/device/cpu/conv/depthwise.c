/* Depthwise convolution. There is next to no arithmetic: what counts is that every pixel is read where it lies, in long
 * rows of channels, and that padding is absent.
 *
 *   forward, data    each pixel of the result asks for its taps inside the image, and sums them up in registers; for
 *                    the gradient of data, the taps are those of grad_dst that this pixel went into
 *   weight           for each tap and row of outputs, a sum over the row's pixels; parts have sums of their own, added
 *                    up in the order of the parts
 */
#include "device/cpu/conv/depthwise.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "device/cpu/conv/conv2d_finish.h"
#include "device/cpu/conv/conv2d_shape.h"

typedef struct depthwise_axis {
    int64_t n_x, n_y, n_taps, stride, pad, dilation;
} depthwise_axis;

typedef struct depthwise_state {
    const stk_depthwise_fns *fns;
    const stk_conv_finish_fns *finish;
    bool has_bias, has_relu;
    stk_conv_pass pass;
    depthwise_axis axis[2];
    int64_t n_images, c, n_taps;
    int n_threads;
    size_t weights_bytes, taps_bytes;
} depthwise_state;

enum { ALIGN = 64, PARTS_A_THREAD = 4 };

/* --- forward, and the gradient of data --- */

/* Weights [C][tap] to [tap][C]. */
static void pack(const depthwise_state *s, const float *weight, float *packed)
{
    for (int64_t c = 0; c < s->c; c++)
        for (int64_t t = 0; t < s->n_taps; t++)
            packed[t * s->c + c] = weight[c * s->n_taps + t];
}

/* The pixel of the source under tap t of the result's pixel i; false where there is none. */
static inline bool find_source(const depthwise_axis *a, bool is_forward, int64_t i, int64_t t, int64_t *source)
{
    if (is_forward) {
        *source = i * a->stride - a->pad + t * a->dilation;
        return *source >= 0 && *source < a->n_x;
    }
    int64_t at = i + a->pad - t * a->dilation;
    *source = at / a->stride;
    return at >= 0 && at % a->stride == 0 && *source < a->n_y;
}

static void run_row(const depthwise_state *s, const stk_kernel_args *args, int64_t image, int64_t row,
                    stk_depthwise_tap *taps)
{
    const depthwise_axis *ay = &s->axis[0], *ax = &s->axis[1];
    bool is_forward = s->pass == STK_CONV_FORWARD;
    int64_t src_h = is_forward ? ay->n_x : ay->n_y, src_w = is_forward ? ax->n_x : ax->n_y, y, x;
    int64_t dst_h = is_forward ? ay->n_y : ay->n_x, dst_w = is_forward ? ax->n_y : ax->n_x;
    float *out = (float *)args->out[0] + (image * dst_h + row) * dst_w * s->c;
    for (int64_t col = 0; col < dst_w; col++) {
        int64_t n = 0;
        for (int64_t i = 0; i < ay->n_taps; i++) {
            if (!find_source(ay, is_forward, row, i, &y)) continue;
            for (int64_t j = 0; j < ax->n_taps; j++)
                if (find_source(ax, is_forward, col, j, &x))
                    taps[n++] =
                        (stk_depthwise_tap){((image * src_h + y) * src_w + x) * s->c, (i * ax->n_taps + j) * s->c};
        }
        s->fns->pixel(s->c, taps, n, args->in[0], args->scratch, out + col * s->c);
    }
    s->finish->rows(dst_w, s->c, out, s->has_bias ? args->in[2] : NULL, s->has_relu);
}

static void rows_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const depthwise_state *s = task->state;
    int64_t begin, end, n_rows = s->pass == STK_CONV_FORWARD ? s->axis[0].n_y : s->axis[0].n_x;
    char *own = (char *)task->args->scratch + s->weights_bytes + s->taps_bytes * (size_t)stk_cpu_worker();
    stk_cpu_share(s->n_images * n_rows, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        run_row(s, task->args, i / n_rows, i % n_rows, (stk_depthwise_tap *)(void *)own);
}

static stk_status run_rows(const void *p, const stk_kernel_args *args)
{
    const depthwise_state *s = p;
    pack(s, args->in[1], args->scratch);
    stk_cpu_parallel(s->n_threads == 1 ? 1 : s->n_threads * PARTS_A_THREAD, rows_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

/* --- the gradient of weights --- */

/* Outputs [*begin, *end) whose input under tap t lies inside. */
static void find_outputs(const depthwise_axis *a, int64_t t, int64_t *begin, int64_t *end)
{
    int64_t at = t * a->dilation - a->pad;
    *begin = at < 0 ? (-at + a->stride - 1) / a->stride : 0;
    *end = a->n_x > at ? (a->n_x - at + a->stride - 1) / a->stride : 0;
    if (*end > a->n_y) *end = a->n_y;
}

/* One row of outputs under every tap. */
static void sum_row(const depthwise_state *s, const stk_kernel_args *args, int64_t image, int64_t row, float *sums)
{
    const depthwise_axis *ay = &s->axis[0], *ax = &s->axis[1];
    const float *dy = (const float *)args->in[1] + (image * ay->n_y + row) * ax->n_y * s->c;
    for (int64_t i = 0; i < ay->n_taps; i++) {
        int64_t y = row * ay->stride - ay->pad + i * ay->dilation, begin, end;
        if (y < 0 || y >= ay->n_x) continue;
        const float *x = (const float *)args->in[0] + (image * ay->n_x + y) * ax->n_x * s->c;
        for (int64_t j = 0; j < ax->n_taps; j++) {
            find_outputs(ax, j, &begin, &end);
            if (begin >= end) continue;
            s->fns->row(s->c, end - begin, x + (begin * ax->stride - ax->pad + j * ax->dilation) * s->c,
                        ax->stride * s->c, dy + begin * s->c, sums + (i * ax->n_taps + j) * s->c);
        }
    }
}

static void sums_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const depthwise_state *s = task->state;
    float *sums = (float *)(void *)((char *)task->args->scratch + s->weights_bytes * (size_t)i_part);
    int64_t begin, end, n_rows = s->axis[0].n_y;
    memset(sums, 0, s->weights_bytes);
    stk_cpu_share(s->n_images * n_rows, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        sum_row(s, task->args, i / n_rows, i % n_rows, sums);
}

static stk_status run_weight(const void *p, const stk_kernel_args *args)
{
    const depthwise_state *s = p;
    const float *sums = args->scratch;
    float *out = args->out[0];
    int64_t step = (int64_t)(s->weights_bytes / sizeof(float));
    stk_cpu_parallel(s->n_threads, sums_share, &(stk_cpu_task){p, args});
    for (int64_t c = 0; c < s->c; c++)
        for (int64_t t = 0; t < s->n_taps; t++) {
            float sum = 0;
            for (int i = 0; i < s->n_threads; i++)
                sum += sums[i * step + t * s->c + c];
            out[c * s->n_taps + t] = sum;
        }
    return STK_OK;
}

/* --- all --- */

bool stk_conv_is_depthwise(const stk_conv_shape *s)
{
    return s->x.rank == 4 && s->window.groups > 1 && s->window.groups == s->x.dim[3] && s->y.dim[3] == s->x.dim[3];
}

bool stk_conv_depthwise_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_conv_shape shape = stk_conv_shape_of(call);
    (void)device;
    return call->in[0].dtype == STK_F32 && stk_conv_is_depthwise(&shape);
}

stk_status stk_conv_depthwise_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_conv_shape whole = stk_conv_shape_of(call), *shape = &whole;
    bool is_weight = shape->pass == STK_CONV_GRAD_WEIGHT;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(depthwise_state), is_weight ? run_weight : run_rows, out));
    depthwise_state *s = out->state;
    s->fns = stk_depthwise_of(device->isa);
    s->finish = stk_conv_finish_of(device->isa);
    s->has_bias = shape->has_bias;
    s->has_relu = shape->has_relu;
    s->pass = shape->pass;
    s->n_images = shape->x.dim[0];
    s->c = shape->x.dim[3];
    s->n_taps = 1;
    for (int i = 0; i < 2; i++) {
        const stk_window *w = &shape->window;
        s->axis[i] = (depthwise_axis){shape->x.dim[1 + i], shape->y.dim[1 + i], w->kernel[i],
                                      w->stride[i],        w->pad_low[i],       w->dilation[i]};
        s->n_taps *= w->kernel[i];
    }
    s->n_threads = stk_cpu_threads_for((double)stk_shape_count(shape->x) * 2, device->base.n_threads);
    s->weights_bytes = stk_round_up((size_t)(s->n_taps * s->c) * sizeof(float), ALIGN);
    s->taps_bytes = stk_round_up((size_t)s->n_taps * sizeof(stk_depthwise_tap), ALIGN);
    out->scratch_bytes = is_weight ? s->weights_bytes * (size_t)s->n_threads
                                   : s->weights_bytes + s->taps_bytes * (size_t)device->base.n_threads;
    return STK_OK;
}
