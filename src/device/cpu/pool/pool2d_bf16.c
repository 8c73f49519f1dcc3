/* The gradient of max pooling in bf16. Windows overlap, so that up to four gradients add up in a pixel: in f32, in a
 * ring of as many rows of dx as a window is high. A row is rounded and written once the windows are below it. Threads
 * share the images.
 *
 *     dx   | written | in the ring: added to by this row of windows | not reached |
 */
#include "device/cpu/pool/pool2d_bf16.h"

#include <string.h>

#include "base/align.h"
#include "device/cpu/element/element.h"
#include "device/cpu/pool/pool2d.h"

typedef struct grad_state {
    const stk_pool_half_fns *fns;
    stk_element_fn round; /* of f32 to bf16 */
    stk_pool_axis height, width;
    int n_threads;
    int64_t n_images, c;
    int64_t reach, n_ring; /* rows: of a window, and of the ring, which has no more than an image */
    size_t ring_bytes, taps_bytes;
} grad_state;

/* What a thread works with; row y of dx is in the ring at y % n_ring. */
typedef struct grad_image {
    const grad_state *s;
    const uint16_t *x, *y, *dy;
    uint16_t *dx;
    float *ring;
    int64_t *x_offset, *ring_offset; /* of a window's taps */
    int64_t n_written, n_reached;    /* rows */
} grad_image;

static float *ring_row(const grad_image *im, int64_t row)
{
    return im->ring + row % im->s->n_ring * im->s->width.n_in * im->s->c;
}

static void write_rows(grad_image *im, int64_t end)
{
    int64_t n = im->s->width.n_in * im->s->c;
    for (; im->n_written < end; im->n_written++) {
        uint16_t *to = im->dx + im->n_written * n;
        const void *from = ring_row(im, im->n_written);
        if (im->n_written < im->n_reached)
            im->s->round(n, to, &from);
        else
            memset(to, 0, (size_t)n * sizeof(*to)); /* no window is there */
    }
}

static void reach_rows(grad_image *im, int64_t begin, int64_t end)
{
    if (im->n_reached < begin) im->n_reached = begin;
    for (; im->n_reached < end; im->n_reached++)
        memset(ring_row(im, im->n_reached), 0, (size_t)(im->s->width.n_in * im->s->c) * sizeof(float));
}

static int find_taps(grad_image *im, int64_t row, int64_t col)
{
    const grad_state *s = im->s;
    int n = 0;
    int64_t y, x;
    for (int64_t i = 0; i < s->height.n_taps; i++) {
        if (!stk_pool_find_input(&s->height, row, i, &y)) continue;
        for (int64_t k = 0; k < s->width.n_taps; k++) {
            if (!stk_pool_find_input(&s->width, col, k, &x)) continue;
            im->x_offset[n] = (y * s->width.n_in + x) * s->c;
            im->ring_offset[n++] = (y % s->n_ring * s->width.n_in + x) * s->c;
        }
    }
    return n;
}

static void run_image(grad_image *im)
{
    const grad_state *s = im->s;
    for (int64_t row = 0; row < s->height.n_out; row++) {
        int64_t begin = row * s->height.stride - s->height.pad, end = begin + s->reach;
        begin = begin < 0 ? 0 : begin < s->height.n_in ? begin : s->height.n_in;
        end = end < begin ? begin : end < s->height.n_in ? end : s->height.n_in;
        write_rows(im, begin);
        reach_rows(im, begin, end);
        for (int64_t col = 0; col < s->width.n_out; col++) {
            int64_t at = (row * s->width.n_out + col) * s->c;
            stk_pool_taps taps = {find_taps(im, row, col), im->x_offset};
            s->fns->max_grad(s->c, &taps, im->ring_offset, im->x, im->y + at, im->dy + at, im->ring);
        }
    }
    write_rows(im, s->height.n_in);
}

static void run_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const grad_state *s = task->state;
    const stk_kernel_args *args = task->args;
    char *own = (char *)args->scratch + (s->ring_bytes + 2 * s->taps_bytes) * (size_t)stk_cpu_worker();
    int64_t begin, end, x_step = s->height.n_in * s->width.n_in * s->c,
                        y_step = s->height.n_out * s->width.n_out * s->c;
    stk_cpu_share(s->n_images, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        grad_image image = {.s = s,
                            .x = (const uint16_t *)args->in[0] + i * x_step,
                            .y = (const uint16_t *)args->in[1] + i * y_step,
                            .dy = (const uint16_t *)args->in[2] + i * y_step,
                            .dx = (uint16_t *)args->out[0] + i * x_step,
                            .ring = (float *)(void *)own,
                            .x_offset = (int64_t *)(void *)(own + s->ring_bytes),
                            .ring_offset = (int64_t *)(void *)(own + s->ring_bytes + s->taps_bytes)};
        run_image(&image);
    }
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    enum { PARTS_A_THREAD = 16 };
    const grad_state *s = p;
    int64_t most = s->n_threads == 1 ? 1 : (int64_t)s->n_threads * PARTS_A_THREAD;
    stk_cpu_parallel((int)(s->n_images < most ? s->n_images : most), run_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

bool stk_pool_bf16_grad_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    return call->op == STK_OP_max_pool2d_grad && call->in[0].dtype == STK_BF16 && stk_shape_count(call->in[0].shape) &&
           stk_shape_count(call->in[1].shape);
}

stk_status stk_pool_bf16_grad_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_shape x = call->in[0].shape, y = call->in[1].shape;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(grad_state), run, out));
    grad_state *s = out->state;
    s->fns = &stk_pool_of(device->isa)->bf16;
    s->round = stk_element_of(device->isa)->cast[STK_F32][STK_BF16];
    s->height = stk_pool_make_axis(&call->attrs->window, x, y, 0);
    s->width = stk_pool_make_axis(&call->attrs->window, x, y, 1);
    s->n_images = x.dim[0];
    s->c = x.dim[3];
    s->reach = s->height.dilation * (s->height.n_taps - 1) + 1;
    s->n_ring = s->reach < s->height.n_in ? s->reach : s->height.n_in;
    s->n_threads = stk_cpu_threads_for((double)stk_shape_count(x) * 2, device->base.n_threads);
    s->ring_bytes = stk_round_up((size_t)(s->n_ring * s->width.n_in * s->c) * sizeof(float), 64);
    s->taps_bytes = stk_round_up((size_t)(s->height.n_taps * s->width.n_taps) * sizeof(int64_t), 64);
    out->scratch_bytes = (s->ring_bytes + 2 * s->taps_bytes) * (size_t)device->base.n_threads;
    return STK_OK;
}
