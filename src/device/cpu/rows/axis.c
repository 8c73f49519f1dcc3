/* iota, argmax and cumsum: parts share what lies around the axis, tiles of the inner elements. */
#include "device/cpu/rows/axis.h"

#include "device/cpu/impl.h"

typedef struct axis_state {
    stk_axis_fns fns;
    stk_op op;
    int64_t n_outer, n, n_inner, n_tiles; /* tiles of the inner elements */
    size_t bytes;                         /* of an element */
    bool last, exclusive, reverse;
    int n_threads;
} axis_state;

static void run_tile(const axis_state *s, const stk_kernel_args *args, int64_t outer, int64_t inner, int n_here)
{
    size_t at = (size_t)(outer * s->n * s->n_inner + inner) * s->bytes;
    const char *src = (const char *)args->in[0] + at;
    if (s->op == STK_OP_argmax)
        s->fns.argmax(s->n, s->n_inner, n_here, src, s->last, (int32_t *)args->out[0] + outer * s->n_inner + inner);
    else
        s->fns.cumsum(s->n, s->n_inner, n_here, src, s->exclusive, s->reverse, (char *)args->out[0] + at);
}

static void tiles_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const axis_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n_outer * s->n_tiles, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t inner = i % s->n_tiles * STK_AXIS_TILE, rest = s->n_inner - inner;
        run_tile(s, task->args, i / s->n_tiles, inner, rest < STK_AXIS_TILE ? (int)rest : STK_AXIS_TILE);
    }
}

static void fill_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const axis_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n_outer * s->n, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        s->fns.fill(s->n_inner, i % s->n, (char *)task->args->out[0] + (size_t)(i * s->n_inner) * s->bytes);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const axis_state *s = p;
    stk_cpu_parallel(s->n_threads, s->op == STK_OP_iota ? fill_share : tiles_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_tensor_desc x, int axis,
                       stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(axis_state), run, out));
    axis_state *s = out->state;
    s->fns = stk_axis_of(device->isa)->fns[x.dtype];
    s->op = call->op;
    s->n_outer = stk_shape_product(x.shape, 0, axis);
    s->n = x.shape.dim[axis];
    s->n_inner = stk_shape_product(x.shape, axis + 1, x.shape.rank);
    s->n_tiles = (s->n_inner + STK_AXIS_TILE - 1) / STK_AXIS_TILE;
    s->bytes = stk_dtype_bytes(x.dtype);
    s->n_threads = stk_cpu_threads_for((double)stk_shape_count(x.shape), device->base.n_threads);
    return STK_OK;
}

static bool has_loops(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    stk_dtype dtype = call->n_in ? call->in[0].dtype : call->out[0].dtype;
    return dtype != STK_BF16 && dtype != STK_F16 && dtype != STK_BOOL;
}

static stk_status make_iota(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make(device, call, call->out[0], call->attrs->axis, out);
}

static stk_status make_argmax(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, call, call->in[0], call->attrs->argmax.axis, out));
    ((axis_state *)out->state)->last = call->attrs->argmax.last;
    return STK_OK;
}

static stk_status make_cumsum(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, call, call->in[0], call->attrs->cumsum.axis, out));
    axis_state *s = out->state;
    s->exclusive = call->attrs->cumsum.exclusive;
    s->reverse = call->attrs->cumsum.reverse;
    out->in_place[0] = 1;
    return STK_OK;
}

#define X(name)                                                                                                        \
    stk_status stk_cpu_##name##_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)         \
    {                                                                                                                  \
        static const stk_cpu_impl impls[] = {{NULL, has_loops, make_##name}, STK_CPU_IMPL_WIDENED, {0}};               \
        return stk_cpu_make_first(device, call, impls, out);                                                           \
    }
X(iota)
X(argmax)
X(cumsum)
#undef X
