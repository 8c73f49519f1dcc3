/* max_pool2d, avg_pool2d and their gradients.
 *
 * Threads share bands: rows of output pixels, where no two windows of different rows touch the same pixel (forward
 * always), else whole images. A band of a gradient owns rows of dx, which it clears first where windows do not cover
 * or overlap.
 */
#include "device/cpu/pool2d.h"

#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"

typedef struct pool_state {
    stk_pool_fns fns;
    stk_op op;
    stk_window window;
    int n_threads;
    bool alone;   /* every pixel of dx is in one window at most */
    bool by_rows; /* a band is a row of output pixels, else an image */
    bool clears;  /* dx is cleared first */
    int64_t n, h, w, c, out_h, out_w;
    size_t element_bytes, taps_bytes;
} pool_state;

/* The taps of output pixel (row, col) of one image that lie inside it. */
static int find_taps(const pool_state *s, int64_t image, int64_t row, int64_t col, int64_t *offset)
{
    const stk_window *w = &s->window;
    int n = 0;
    for (int32_t kh = 0; kh < w->kernel[0]; kh++) {
        int64_t in_row = row * w->stride[0] - w->pad_low[0] + (int64_t)kh * w->dilation[0];
        if (in_row < 0 || in_row >= s->h) continue;
        for (int32_t kw = 0; kw < w->kernel[1]; kw++) {
            int64_t in_col = col * w->stride[1] - w->pad_low[1] + (int64_t)kw * w->dilation[1];
            if (in_col < 0 || in_col >= s->w) continue;
            offset[n++] = ((image * s->h + in_row) * s->w + in_col) * s->c;
        }
    }
    return n;
}

static void run_pixel(const pool_state *s, const stk_kernel_args *args, const stk_pool_taps *taps, size_t at)
{
    switch (s->op) {
    case STK_OP_max_pool2d: s->fns.max(s->c, taps, args->in[0], (char *)args->out[0] + at); break;
    case STK_OP_avg_pool2d: s->fns.avg(s->c, taps, args->in[0], (char *)args->out[0] + at); break;
    case STK_OP_max_pool2d_grad:
        s->fns.max_grad(s->c, taps, args->in[0], (const char *)args->in[1] + at, (const char *)args->in[2] + at,
                        args->out[0], s->alone);
        break;
    default: s->fns.avg_grad(s->c, taps, (const char *)args->in[0] + at, args->out[0], s->alone); break;
    }
}

static void run_row(const pool_state *s, const stk_kernel_args *args, int64_t image, int64_t row, int64_t *offset)
{
    size_t pixel_bytes = (size_t)s->c * s->element_bytes;
    size_t at = (size_t)((image * s->out_h + row) * s->out_w) * pixel_bytes;
    for (int64_t col = 0; col < s->out_w; col++, at += pixel_bytes) {
        stk_pool_taps taps = {find_taps(s, image, row, col, offset), offset};
        run_pixel(s, args, &taps, at);
    }
}

/* Clears the rows [from, to) of an image of dx. */
static void clear_rows(const pool_state *s, const stk_kernel_args *args, int64_t image, int64_t from, int64_t to)
{
    from = from < 0 ? 0 : from > s->h ? s->h : from;
    to = to > s->h ? s->h : to;
    size_t row_bytes = (size_t)(s->w * s->c) * s->element_bytes;
    if (to > from)
        memset((char *)args->out[0] + (size_t)(image * s->h + from) * row_bytes, 0, (size_t)(to - from) * row_bytes);
}

static void run_share(const void *p, int i_thread, int n_threads)
{
    const stk_cpu_task *task = p;
    const pool_state *s = task->state;
    int64_t *offset = (int64_t *)(void *)((char *)task->args->scratch + s->taps_bytes * (size_t)i_thread);
    int64_t begin, end, stride = s->window.stride[0];
    stk_cpu_share(s->by_rows ? s->n * s->out_h : s->n, 1, i_thread, n_threads, &begin, &end);
    for (int64_t band = begin; band < end; band++) {
        int64_t image = s->by_rows ? band / s->out_h : band, row = s->by_rows ? band % s->out_h : 0;
        int64_t last_row = s->by_rows ? row + 1 : s->out_h;
        /* The first row of windows owns what is above it, the last what is below. */
        int64_t from = row ? row * stride - s->window.pad_low[0] : 0;
        int64_t to = last_row < s->out_h ? last_row * stride - s->window.pad_low[0] : s->h;
        if (s->clears) clear_rows(s, task->args, image, from, to);
        for (; row < last_row; row++)
            run_row(s, task->args, image, row, offset);
    }
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const pool_state *s = p;
    stk_cpu_parallel(s->n_threads, run_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

/* Without output rows there is no band, yet dx has to be cleared. */
static stk_status run_empty(const void *p, const stk_kernel_args *args)
{
    const pool_state *s = p;
    size_t bytes = (size_t)(s->n * s->h * s->w * s->c) * s->element_bytes;
    bool is_grad = s->op == STK_OP_max_pool2d_grad || s->op == STK_OP_avg_pool2d_grad;
    if (is_grad && bytes) memset(args->out[0], 0, bytes);
    return STK_OK;
}

static void plan_bands(pool_state *s)
{
    const stk_window *w = &s->window;
    bool is_grad = s->op == STK_OP_max_pool2d_grad || s->op == STK_OP_avg_pool2d_grad, covers = true;
    s->alone = true;
    for (int i = 0; i < 2; i++) {
        int64_t reach = (int64_t)w->dilation[i] * (w->kernel[i] - 1) + 1, size = i ? s->w : s->h;
        int64_t n_out = i ? s->out_w : s->out_h;
        s->alone = s->alone && w->stride[i] >= reach;
        covers = covers && w->dilation[i] == 1 && w->stride[i] <= w->kernel[i] &&
                 (n_out - 1) * w->stride[i] - w->pad_low[i] + w->kernel[i] >= size;
    }
    s->by_rows = !is_grad || s->alone;
    s->clears = is_grad && !(s->alone && covers);
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_tensor_desc x, stk_tensor_desc y,
                       stk_kernel *out)
{
    const stk_pool_table *table = stk_pool_of(device->isa);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(pool_state), run, out));
    pool_state *s = out->state;
    s->fns = x.dtype == STK_F64 ? table->f64 : table->f32;
    s->op = call->op;
    s->window = call->attrs->window;
    s->element_bytes = stk_dtype_bytes(x.dtype);
    s->n = x.shape.dim[0], s->h = x.shape.dim[1], s->w = x.shape.dim[2], s->c = x.shape.dim[3];
    s->out_h = y.shape.dim[1], s->out_w = y.shape.dim[2];
    plan_bands(s);
    s->n_threads = stk_cpu_threads_for((double)stk_shape_count(x.shape) * 2, device->base.n_threads);
    s->taps_bytes = ((size_t)s->window.kernel[0] * (size_t)s->window.kernel[1] * sizeof(int64_t) + 63) / 64 * 64;
    out->scratch_bytes = s->taps_bytes * (size_t)s->n_threads;
    if (!stk_shape_count(y.shape) || !stk_shape_count(x.shape)) out->run = run_empty;
    return STK_OK;
}

static bool is_native(stk_dtype dtype)
{
    return dtype == STK_F32 || dtype == STK_F64;
}

stk_status stk_cpu_max_pool2d_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    if (!is_native(call->in[0].dtype)) return stk_cpu_widen_kernel(device, call, stk_cpu_max_pool2d_kernel, out);
    return make(device, call, call->in[0], call->out[0], out);
}

stk_status stk_cpu_avg_pool2d_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    if (!is_native(call->in[0].dtype)) return stk_cpu_widen_kernel(device, call, stk_cpu_avg_pool2d_kernel, out);
    return make(device, call, call->in[0], call->out[0], out);
}

stk_status stk_cpu_max_pool2d_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    if (!is_native(call->in[0].dtype)) return stk_cpu_widen_kernel(device, call, stk_cpu_max_pool2d_grad_kernel, out);
    return make(device, call, call->in[0], call->in[1], out);
}

stk_status stk_cpu_avg_pool2d_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    if (!is_native(call->in[0].dtype)) return stk_cpu_widen_kernel(device, call, stk_cpu_avg_pool2d_grad_kernel, out);
    return make(device, call, call->out[0], call->in[0], out);
}
