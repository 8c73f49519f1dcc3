/* Own convolution loops in f32: the plans (conv2d_plan.h) and what threads do of them. Gradients of weights take 16-bit
 * floats as they are.
 */
#include "device/cpu/conv/conv2d_own.h"

#include <stdlib.h>

#include "device/cpu/conv/conv2d.h"
#include "device/cpu/conv/conv2d_onednn.h"
#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/conv/conv2d_weight_point.h"
#include "device/cpu/matmul/matmul_onednn.h"

typedef struct conv_state {
    stk_isa isa;
    int n_threads;
    stk_conv_dense dense;   /* forward and gradient of data */
    stk_conv_weight weight; /* gradient of weights */
    stk_conv_point_cut cut; /* of weights of 1x1 */
    bool has_bias;
} conv_state;

/* Outputs need no memory of a part's own, so that there may be more parts than threads: the last ones even out. */
enum { PARTS_A_THREAD = 4 };

static void dense_pack_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    stk_conv_dense_of(s->isa)->pack_share(&s->dense, task->args->in[1], task->args->scratch, i_part, n_parts);
}

static void dense_run_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const stk_kernel_args *args = task->args;
    stk_conv_dense_of(s->isa)->run_share(&s->dense, args->in[0], args->scratch, s->has_bias ? args->in[2] : NULL,
                                         args->out[0], i_part, n_parts);
}

static stk_status run_dense(const void *p, const stk_kernel_args *args)
{
    const conv_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->n_threads, dense_pack_share, &task);
    stk_cpu_parallel(s->n_threads == 1 ? 1 : s->n_threads * PARTS_A_THREAD, dense_run_share, &task);
    return STK_OK;
}

static void weight_clear_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    stk_conv_weight_of(s->isa)->clear_share(&s->weight, task->args->scratch, i_part, n_parts);
}

static void weight_run_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const stk_kernel_args *args = task->args;
    stk_conv_weight_of(s->isa)->run_share(&s->weight, args->in[0], args->in[1], args->scratch, i_part, n_parts);
}

static void weight_finish_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    stk_conv_weight_of(s->isa)->finish_share(&s->weight, task->args->scratch, task->args->out[0], i_part, n_parts);
}

static stk_status run_weight(const void *p, const stk_kernel_args *args)
{
    const conv_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->n_threads, weight_clear_share, &task);
    stk_cpu_parallel(s->n_threads, weight_run_share, &task);
    stk_cpu_parallel(s->n_threads, weight_finish_share, &task);
    return STK_OK;
}

/* --- gradient of 1x1 weights --- */

static void point_run_share(const void *p, int i_part, int n_parts)
{
    (void)n_parts;
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const stk_kernel_args *args = task->args;
    stk_conv_point_weight_of(s->isa)->run_share(&s->weight, s->cut, args->in[0], args->in[1], args->scratch, i_part);
}

static void point_finish_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const stk_kernel_args *args = task->args;
    stk_conv_point_weight_of(s->isa)->finish_share(&s->weight, s->cut, args->scratch, args->out[0], i_part, n_parts);
}

static stk_status run_point_weight(const void *p, const stk_kernel_args *args)
{
    const conv_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->cut.rows * s->cut.cols * s->cut.depth, point_run_share, &task);
    stk_cpu_parallel(s->n_threads, point_finish_share, &task);
    return STK_OK;
}

static bool is_large_part(const stk_conv_weight *w, stk_sgemm_grid grid)
{
    int64_t rows = w->c_out / grid.rows, cols = w->c_in / grid.cols;
    return rows >= 96 && cols >= 96 && rows * cols >= 96 * 256;
}

/* Threads share the pixels, each with sums of its own, where these are few. Where not, as many threads share the
 * weights as get enough of them each, and that many groups of threads the pixels. */
static stk_conv_point_cut cut_point(const stk_conv_weight *w, int n_threads)
{
    enum { MOST_SUMS = 5 << 19 }; /* bytes next to one thread's */
    int64_t n_pixels = w->n_images * w->out_h * w->out_w;
    stk_conv_point_cut cut = {1, 1, n_threads};
    bool has_few = (n_threads - 1) * w->c_out * w->c_in * (int64_t)sizeof(float) <= MOST_SUMS;
    for (int n = 2; n <= n_threads && !has_few; n++) {
        stk_sgemm_grid grid = stk_sgemm_cut(w->c_out, w->c_in, n);
        if (n_threads % n == 0 && is_large_part(w, grid))
            cut = (stk_conv_point_cut){grid.rows, grid.cols, n_threads / n};
    }
    if (n_pixels < cut.depth) cut.depth = 1;
    return cut;
}

static void release(void *p)
{
    conv_state *s = p;
    stk_conv_dense_free(&s->dense);
    stk_conv_weight_free(&s->weight);
    free(s);
}

/* oneDNN does the rest. With a few input channels, as colours are, the gradient of weights is
 * a matter of memory: tiles of a tap's channels would be too low. */
bool stk_conv_own_covers(const stk_conv_shape *s)
{
    const stk_window *w = &s->window;
    bool is_dilated = w->dilation[0] > 1 || w->dilation[1] > 1, is_strided = w->stride[0] > 1 || w->stride[1] > 1;
    if (w->groups > 1 || s->x.rank > 4) return false;
    switch (s->pass) {
    case STK_CONV_GRAD_DATA: return !is_dilated || !is_strided;
    case STK_CONV_GRAD_WEIGHT: return s->x.dim[3] >= 8 || stk_conv_onednn_overruns(s);
    default: return true;
    }
}

bool stk_conv_own_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_conv_shape shape = stk_conv_shape_of(call);
    bool takes_half = shape.pass == STK_CONV_GRAD_WEIGHT && stk_cpu_has_half(device, call);
    return (call->in[0].dtype == STK_F32 || takes_half) && stk_conv_own_covers(&shape);
}

stk_status stk_conv_own_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_conv_shape shape = stk_conv_shape_of(call);
    bool is_weight = shape.pass == STK_CONV_GRAD_WEIGHT;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(conv_state), is_weight ? run_weight : run_dense, out));
    conv_state *s = out->state;
    out->release = release;
    s->isa = device->isa;
    s->has_bias = shape.has_bias;
    s->n_threads = stk_op_cost(call).flops < 2.5e5 ? 1 : device->base.n_threads;
    if (is_weight) {
        STK_RETURN_IF_ERROR(stk_conv_plan_weight(&shape, &s->weight));
        s->weight.dtype = call->in[0].dtype;
        if (stk_conv_is_point(&shape)) {
            out->run = run_point_weight;
            s->cut = cut_point(&s->weight, s->n_threads);
            out->scratch_bytes = stk_conv_point_weight_of(s->isa)->scratch_bytes(&s->weight, s->cut);
            return STK_OK;
        }
        out->scratch_bytes = stk_conv_weight_of(s->isa)->scratch_bytes(&s->weight, s->n_threads);
    } else {
        STK_RETURN_IF_ERROR(stk_conv_plan_dense(&shape, stk_conv_dense_of(s->isa)->depth, &s->dense));
        out->scratch_bytes = stk_conv_dense_of(s->isa)->scratch_bytes(&s->dense);
    }
    return STK_OK;
}
