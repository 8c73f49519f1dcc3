/* Pooling and its gradients in two and three dimensions: pool.dev. */
#include "base/text.h"
#include "device/gpu/ops/product.h"
#include "device/gpu/ops/rows.h"

enum { GROUP = 256 };

/* As pool.dev has them. */
typedef struct pool_sizes {
    gpu_divisor channels, in[3], out[3];
} pool_sizes;

static pool_sizes sizes_of(stk_shape x, stk_shape y)
{
    pool_sizes out = {.channels = gpu_divide_by(x.dim[x.rank - 1])};
    for (int i = 0; i < 3; i++) {
        const int k = i - (5 - x.rank);
        out.in[i] = gpu_divide_by(k < 0 ? 1 : x.dim[1 + k]);
        out.out[i] = gpu_divide_by(k < 0 ? 1 : y.dim[1 + k]);
    }
    return out;
}

static void add_window(const stk_window *w, int rank, stk_text *settings)
{
    for (int i = 0; i < 3; i++) {
        const int k = i - (5 - rank);
        stk_text_add(settings, "#define TAPS_%d %d\n#define STRIDE_%d %d\n#define DILATION_%d %d\n#define PAD_%d %d\n",
                     i, k < 0 ? 1 : (int)w->kernel[k], i, k < 0 ? 1 : (int)w->stride[k], i,
                     k < 0 ? 1 : (int)w->dilation[k], i, k < 0 ? 0 : (int)w->pad_low[k]);
    }
}

/* An output from the inputs, in their order; x and y: the shapes before and behind the windows. */
static void make(gpu_maker *m, const char *kernel, stk_shape x, stk_shape y)
{
    const stk_op_call *call = m->call;
    const pool_sizes sizes = sizes_of(x, y);
    const int64_t n = stk_shape_count(call->out[0].shape);
    const int each = gpu_each(call->out[0].dtype, x.dim[x.rank - 1]);
    stk_text window = {0};
    add_window(&call->attrs->window, x.rank, &window);
    gpu_add(m, "pool.dev", kernel, "#define T %s\n#define EACH %d\n%s", stk_dtype_name(call->out[0].dtype), each,
            stk_text_get(&window));
    stk_text_free(&window);
    for (int i = 0; i < call->n_in; i++)
        gpu_in(m, i);
    gpu_out(m, 0);
    gpu_index(m, n);
    gpu_bytes(m, &sizes, sizeof(sizes));
    gpu_items(m, n / each, GROUP);
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
