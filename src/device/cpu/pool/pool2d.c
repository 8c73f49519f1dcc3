/* Max and average pooling and their gradients, in two and three dimensions; an image is a volume of depth 1.
 *
 * Threads share bands: rows of output pixels, where no two windows of different rows touch the same pixel (forward
 * always), else whole images. A band of a gradient owns rows of dx, which it clears first where windows do not cover
 * or overlap; in a volume, where a row's windows span several planes, it is then the whole image. The usual max
 * pooling, whose windows do not overlap nor leave the image, takes a row of windows in one call (pool2d_rows_tmpl.h).
 */
#include "device/cpu/pool/pool2d.h"

#include <stdlib.h>
#include <string.h>

#include "device/cpu/impl.h"
#include "device/cpu/pool/pool2d_bf16.h"

typedef enum pool_kind { MAX, MAX_GRAD, AVG, AVG_GRAD } pool_kind;

typedef struct pool_state {
    stk_pool_fns fns;
    pool_kind kind;
    stk_pool_axis axis[3]; /* depth, height, width */
    int n_threads;
    const stk_pool_row_fns *rows; /* of max pooling, where it goes by whole rows of windows; else NULL */
    stk_pool_row window_row;
    bool alone;           /* every pixel of dx is in one window at most */
    bool by_rows;         /* a band is a row of output pixels, else an image */
    bool clears;          /* dx is cleared first */
    int64_t n, n_rows, c; /* images, rows of output pixels of an image, channels */
    size_t element_bytes, taps_bytes;
} pool_state;

/* The taps of output pixel (row, col) of one image that lie inside it; rows are counted over all planes. */
static int find_taps(const pool_state *s, int64_t image, int64_t row, int64_t col, int64_t *offset)
{
    const stk_pool_axis *depth = &s->axis[0], *height = &s->axis[1], *width = &s->axis[2];
    int64_t plane = row / height->n_out, z, y, x;
    int n = 0;
    row %= height->n_out;
    for (int64_t i = 0; i < depth->n_taps; i++) {
        if (!stk_pool_find_input(depth, plane, i, &z)) continue;
        for (int64_t j = 0; j < height->n_taps; j++) {
            if (!stk_pool_find_input(height, row, j, &y)) continue;
            for (int64_t k = 0; k < width->n_taps; k++)
                if (stk_pool_find_input(width, col, k, &x))
                    offset[n++] = (((image * depth->n_in + z) * height->n_in + y) * width->n_in + x) * s->c;
        }
    }
    return n;
}

static void run_pixel(const pool_state *s, const stk_kernel_args *args, const stk_pool_taps *taps, size_t at)
{
    switch (s->kind) {
    case MAX: s->fns.max(s->c, taps, args->in[0], (char *)args->out[0] + at); break;
    case AVG: s->fns.avg(s->c, taps, args->in[0], (char *)args->out[0] + at); break;
    case MAX_GRAD:
        s->fns.max_grad(s->c, taps, args->in[0], (const char *)args->in[1] + at, (const char *)args->in[2] + at,
                        args->out[0], s->alone);
        break;
    default: s->fns.avg_grad(s->c, taps, (const char *)args->in[0] + at, args->out[0], s->alone); break;
    }
}

/* The windows of a row side by side, all of them inside the image. */
static void run_whole_row(const pool_state *s, const stk_kernel_args *args, int64_t image, int64_t row)
{
    const stk_pool_axis *height = &s->axis[1];
    size_t y = (size_t)((image * height->n_out + row) * s->axis[2].n_out * s->c) * s->element_bytes;
    size_t x = (size_t)((image * height->n_in + row * height->stride) * s->axis[2].n_in * s->c) * s->element_bytes;
    const char *in = (const char *)args->in[0] + x;
    if (s->kind == MAX)
        s->rows->max(&s->window_row, in, (char *)args->out[0] + y);
    else
        s->rows->max_grad(&s->window_row, in, (const char *)args->in[1] + y, (const char *)args->in[2] + y,
                          (char *)args->out[0] + x);
}

static void run_row(const pool_state *s, const stk_kernel_args *args, int64_t image, int64_t row, int64_t *offset)
{
    if (s->rows) {
        run_whole_row(s, args, image, row);
        return;
    }
    size_t pixel_bytes = (size_t)s->c * s->element_bytes;
    size_t at = (size_t)((image * s->n_rows + row) * s->axis[2].n_out) * pixel_bytes;
    for (int64_t col = 0; col < s->axis[2].n_out; col++, at += pixel_bytes) {
        stk_pool_taps taps = {find_taps(s, image, row, col, offset), offset};
        run_pixel(s, args, &taps, at);
    }
}

/* Clears the rows [from, to) of an image of dx, counted over all planes. */
static void clear_rows(const pool_state *s, const stk_kernel_args *args, int64_t image, int64_t from, int64_t to)
{
    int64_t n = s->axis[0].n_in * s->axis[1].n_in;
    from = from < 0 ? 0 : from > n ? n : from;
    to = to > n ? n : to;
    size_t row_bytes = (size_t)(s->axis[2].n_in * s->c) * s->element_bytes;
    if (to > from)
        memset((char *)args->out[0] + (size_t)(image * n + from) * row_bytes, 0, (size_t)(to - from) * row_bytes);
}

static void run_share(const void *p, int i_thread, int n_threads)
{
    const stk_cpu_task *task = p;
    const pool_state *s = task->state;
    int64_t *offset = (int64_t *)(void *)((char *)task->args->scratch + s->taps_bytes * (size_t)i_thread);
    int64_t begin, end, stride = s->axis[1].stride, pad = s->axis[1].pad;
    stk_cpu_share(s->by_rows ? s->n * s->n_rows : s->n, 1, i_thread, n_threads, &begin, &end);
    for (int64_t band = begin; band < end; band++) {
        int64_t image = s->by_rows ? band / s->n_rows : band, row = s->by_rows ? band % s->n_rows : 0;
        int64_t last_row = s->by_rows ? row + 1 : s->n_rows;
        /* The first row of windows owns what is above it, the last what is below. */
        int64_t from = row ? row * stride - pad : 0;
        int64_t to = last_row < s->n_rows ? last_row * stride - pad : INT64_MAX;
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
    size_t bytes = (size_t)(s->n * s->axis[0].n_in * s->axis[1].n_in * s->axis[2].n_in * s->c) * s->element_bytes;
    if ((s->kind == MAX_GRAD || s->kind == AVG_GRAD) && bytes) memset(args->out[0], 0, bytes);
    return STK_OK;
}

static void plan_bands(pool_state *s)
{
    bool is_grad = s->kind == MAX_GRAD || s->kind == AVG_GRAD, covers = true;
    s->alone = true;
    for (int i = 0; i < 3; i++) {
        const stk_pool_axis *a = &s->axis[i];
        s->alone = s->alone && a->stride >= a->dilation * (a->n_taps - 1) + 1;
        covers = covers && a->dilation == 1 && a->stride <= a->n_taps &&
                 (a->n_out - 1) * a->stride - a->pad + a->n_taps >= a->n_in;
    }
    s->clears = is_grad && !(s->alone && covers);
    s->by_rows = !is_grad || (s->alone && (!s->clears || s->axis[0].n_in == 1));
}

/* Whether it is max pooling by windows that lie inside the image and do not overlap, in f32 or bf16. */
static bool has_whole_rows(const stk_op_call *call, pool_kind kind)
{
    stk_shape x = call->in[0].shape, y = kind == MAX ? call->out[0].shape : call->in[1].shape;
    if ((kind != MAX && kind != MAX_GRAD) || x.rank != 4) return false;
    if (call->in[0].dtype != STK_F32 && call->in[0].dtype != STK_BF16) return false;
    for (int i = 0; i < 2; i++) {
        stk_pool_axis a = stk_pool_make_axis(&call->attrs->window, x, y, i);
        if (a.pad || a.dilation != 1 || a.stride < a.n_taps || (a.n_out - 1) * a.stride + a.n_taps > a.n_in)
            return false;
    }
    return true;
}

static void plan_rows(pool_state *s, const stk_pool_row_fns *fns)
{
    const stk_pool_axis *height = &s->axis[1], *width = &s->axis[2];
    s->rows = fns;
    s->window_row = (stk_pool_row){.h = (int)height->n_taps,
                                   .w = (int)width->n_taps,
                                   .n = width->n_out,
                                   .c = s->c,
                                   .step = width->stride * s->c,
                                   .row = width->n_in * s->c};
}

static pool_kind kind_of(stk_op op)
{
    switch (op) {
    case STK_OP_max_pool2d:
    case STK_OP_max_pool3d: return MAX;
    case STK_OP_max_pool2d_grad:
    case STK_OP_max_pool3d_grad: return MAX_GRAD;
    case STK_OP_avg_pool2d:
    case STK_OP_avg_pool3d: return AVG;
    default: return AVG_GRAD;
    }
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    pool_kind kind = kind_of(call->op);
    const stk_pool_table *table = stk_pool_of(device->isa);
    stk_tensor_desc x = kind == AVG_GRAD ? call->out[0] : call->in[0];
    stk_shape y = kind == MAX_GRAD ? call->in[1].shape : kind == AVG_GRAD ? call->in[0].shape : call->out[0].shape;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(pool_state), run, out));
    pool_state *s = out->state;
    int64_t n_taps = 1;
    s->fns = x.dtype == STK_F64 ? table->f64 : table->f32;
    if (x.dtype == STK_BF16) s->fns = (stk_pool_fns){.max = table->bf16.max};
    s->kind = kind;
    s->element_bytes = stk_dtype_bytes(x.dtype);
    s->n = x.shape.dim[0], s->c = x.shape.dim[x.shape.rank - 1];
    for (int i = 0; i < 3; i++) {
        s->axis[i] = stk_pool_make_axis(&call->attrs->window, x.shape, y, i + x.shape.rank - 5);
        n_taps *= s->axis[i].n_taps;
    }
    s->n_rows = s->axis[0].n_out * s->axis[1].n_out;
    plan_bands(s);
    if (has_whole_rows(call, kind)) plan_rows(s, x.dtype == STK_BF16 ? &table->bf16_rows : &table->f32_rows);
    s->n_threads = stk_cpu_threads_for((double)stk_shape_count(x.shape) * 2, device->base.n_threads);
    s->taps_bytes = ((size_t)n_taps * sizeof(int64_t) + 63) / 64 * 64;
    out->scratch_bytes = s->taps_bytes * (size_t)s->n_threads;
    if (!stk_shape_count(y) || !stk_shape_count(x.shape)) out->run = run_empty;
    return STK_OK;
}

/* f32 and f64, and of bf16 what needs no sums. */
static bool has_loops(const stk_cpu_device *device, const stk_op_call *call)
{
    pool_kind kind = kind_of(call->op);
    if (call->in[0].dtype == STK_BF16) return kind == MAX || has_whole_rows(call, kind);
    return stk_cpu_reads_wide(device, call);
}

static bool slices_support(const stk_cpu_device *device, const stk_op_call *call)
{
    return stk_cpu_has_half(device, call) && stk_shape_count(call->in[0].shape) && stk_shape_count(call->out[0].shape);
}

/* An image at a time. */
static stk_status make_slices(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_slices_kernel(device, call, 0, 1, stk_cpu_maker_of(call->op), out);
}

static const stk_cpu_impl impls[] = {
    {NULL, has_loops, make},
    /* Windows of bf16 that overlap: sums in f32 while their rows are in the cache. */
    {NULL, stk_pool_bf16_grad_supports, stk_pool_bf16_grad_make},
    /* Other 16-bit floats: f32 of one image, which stay in the cache, or of nothing at all. */
    {NULL, slices_support, make_slices},
    STK_CPU_IMPL_WIDENED,
    {0},
};

#define X(name)                                                                                                        \
    stk_status stk_cpu_##name##_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)         \
    {                                                                                                                  \
        return stk_cpu_make_first(device, call, impls, out);                                                           \
    }
X(max_pool2d)
X(max_pool2d_grad)
X(avg_pool2d)
X(avg_pool2d_grad)
X(max_pool3d)
X(max_pool3d_grad)
X(avg_pool3d)
X(avg_pool3d_grad)
#undef X
