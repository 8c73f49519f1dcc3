/* Pooling and its gradients in two and three dimensions: pool.dev. */
#include "device/gpu/ops/product.h"

enum { GROUP = 256 };

/* As pool.dev has them. */
typedef struct pool_axis {
    gpu_divisor n_in, n_out, stride, dilation;
    int32_t n_taps, pad;
} pool_axis;
typedef struct pool_window {
    pool_axis axis[3];
} pool_window;

static pool_window window_of(const stk_window *w, stk_shape x, stk_shape y)
{
    pool_window out;
    int n_dims = x.rank - 2;
    for (int i = 0; i < 3; i++) {
        int k = i - (3 - n_dims);
        out.axis[i] = (pool_axis){.n_in = gpu_divide_by(k < 0 ? 1 : x.dim[1 + k]),
                                  .n_out = gpu_divide_by(k < 0 ? 1 : y.dim[1 + k]),
                                  .stride = gpu_divide_by(k < 0 ? 1 : w->stride[k]),
                                  .dilation = gpu_divide_by(k < 0 ? 1 : w->dilation[k]),
                                  .n_taps = k < 0 ? 1 : w->kernel[k],
                                  .pad = k < 0 ? 0 : w->pad_low[k]};
    }
    return out;
}

/* An output from the inputs, in their order; x and y: the shapes before and behind the windows. */
static void make(gpu_maker *m, const char *kernel, stk_shape x, stk_shape y)
{
    const stk_op_call *call = m->call;
    pool_window window = window_of(&call->attrs->window, x, y);
    gpu_divisor channels = gpu_divide_by(x.dim[x.rank - 1]);
    int64_t n = stk_shape_count(call->out[0].shape);
    gpu_add(m, "pool.dev", kernel, "#define T %s\n#define FIRST_AXIS %d\n", stk_dtype_name(call->out[0].dtype),
            x.rank == 4);
    for (int i = 0; i < call->n_in; i++)
        gpu_in(m, i);
    gpu_out(m, 0);
    gpu_index(m, n);
    gpu_bytes(m, &channels, sizeof(channels));
    gpu_bytes(m, &window, sizeof(window));
    gpu_items(m, n, GROUP);
}

void gpu_make_max_pool2d(gpu_maker *m)
{
    make(m, "max_pool", m->call->in[0].shape, m->call->out[0].shape);
}

void gpu_make_avg_pool2d(gpu_maker *m)
{
    make(m, "avg_pool", m->call->in[0].shape, m->call->out[0].shape);
}

void gpu_make_max_pool2d_grad(gpu_maker *m)
{
    make(m, "max_pool_grad", m->call->in[0].shape, m->call->in[1].shape);
}

void gpu_make_avg_pool2d_grad(gpu_maker *m)
{
    make(m, "avg_pool_grad", m->call->out[0].shape, m->call->in[0].shape);
}

void gpu_make_max_pool3d(gpu_maker *m)
{
    gpu_make_max_pool2d(m);
}

void gpu_make_avg_pool3d(gpu_maker *m)
{
    gpu_make_avg_pool2d(m);
}

void gpu_make_max_pool3d_grad(gpu_maker *m)
{
    gpu_make_max_pool2d_grad(m);
}

void gpu_make_avg_pool3d_grad(gpu_maker *m)
{
    gpu_make_avg_pool2d_grad(m);
}
