/* 16-bit floats for kernels that work sample by sample: slices of the batch become f32 in a thread's own scratch, which
 * stays in its cache, the f32 kernel runs there, and the results are rounded. Memory sees 16 bits only.
 */
#include <stdlib.h>

#include "device/cpu/cpu.h"
#include "device/cpu/element/element.h"

enum { MOST = 8 };

/* One input or output. Shared ones are converted as a whole, before the slices. */
typedef struct tensor {
    stk_element_fn loop; /* NULL: f32 already */
    bool is_shared;
    int64_t n_sample; /* elements of a sample; of a shared one all */
    size_t bytes;     /* of an element as stored */
    size_t offset;    /* of its f32 copy in scratch: the shared part, or a thread's */
} tensor;

typedef struct slices_state {
    stk_kernel kernel, rest; /* of n_slice samples; of what is left */
    int n_in, n_out, n_threads;
    int64_t n_samples, n_slice, n_slices;
    size_t shared_bytes, thread_bytes, inner_offset; /* of scratch */
    tensor in[MOST], out[MOST];
} slices_state;

static void convert(const tensor *t, int64_t n, const void *src, void *dst)
{
    t->loop(n, dst, &src);
}

static void run_slice(const slices_state *s, const stk_kernel_args *args, int64_t i_slice)
{
    char *shared = args->scratch, *own = shared + s->shared_bytes + s->thread_bytes * (size_t)stk_cpu_worker();
    int64_t first = i_slice * s->n_slice, n = s->n_samples - first < s->n_slice ? s->n_samples - first : s->n_slice;
    const stk_kernel *kernel = n == s->n_slice ? &s->kernel : &s->rest;
    void *in[MOST], *out[MOST];
    for (int i = 0; i < s->n_in; i++) {
        const tensor *t = &s->in[i];
        const char *from = args->in[i];
        if (!t->is_shared) from += (size_t)(first * t->n_sample) * t->bytes;
        in[i] = !t->loop ? (void *)from : (t->is_shared ? shared : own) + t->offset;
        if (t->loop && !t->is_shared) convert(t, n * t->n_sample, from, in[i]);
    }
    for (int i = 0; i < s->n_out; i++) {
        char *to = (char *)args->out[i] + (size_t)(first * s->out[i].n_sample) * s->out[i].bytes;
        out[i] = s->out[i].loop ? own + s->out[i].offset : to;
    }
    stk_kernel_args inner = {.in = in, .out = out, .scratch = own + s->inner_offset};
    /* Such kernels fail when they are made, not when they run. */
    (void)kernel->run(kernel->state, &inner);
    for (int i = 0; i < s->n_out; i++) {
        char *to = (char *)args->out[i] + (size_t)(first * s->out[i].n_sample) * s->out[i].bytes;
        if (s->out[i].loop) convert(&s->out[i], n * s->out[i].n_sample, out[i], to);
    }
}

static void convert_shared(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const slices_state *s = task->state;
    for (int i = 0; i < s->n_in; i++) {
        const tensor *t = &s->in[i];
        int64_t begin, end;
        if (!t->is_shared || !t->loop) continue;
        stk_cpu_share(t->n_sample, 64, i_part, n_parts, &begin, &end);
        float *to = (float *)(void *)((char *)task->args->scratch + t->offset) + begin;
        convert(t, end - begin, (const char *)task->args->in[i] + (size_t)begin * t->bytes, to);
    }
}

static void run_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const slices_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n_slices, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        run_slice(s, task->args, i);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    enum { PARTS_A_THREAD = 16 };
    const slices_state *s = p;
    int64_t most = (int64_t)s->n_threads * PARTS_A_THREAD;
    if (s->shared_bytes) stk_cpu_parallel(s->n_threads, convert_shared, &(stk_cpu_task){p, args});
    stk_cpu_parallel((int)(s->n_slices < most ? s->n_slices : most), run_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

static void release(void *p)
{
    slices_state *s = p;
    stk_kernel_free(&s->kernel);
    stk_kernel_free(&s->rest);
    free(s);
}

static tensor plan(const stk_element_table *table, stk_tensor_desc desc, bool is_in, bool is_shared, slices_state *s)
{
    bool is_half = desc.dtype == STK_BF16 || desc.dtype == STK_F16;
    tensor t = {.is_shared = is_shared, .bytes = stk_dtype_bytes(desc.dtype)};
    t.n_sample = stk_shape_product(desc.shape, is_shared ? 0 : 1, desc.shape.rank);
    if (!is_half) return t;
    size_t *total = is_shared ? &s->shared_bytes : &s->inner_offset;
    t.loop = is_in ? table->cast[desc.dtype][STK_F32] : table->cast[STK_F32][desc.dtype];
    t.offset = *total;
    *total += ((size_t)(t.n_sample * (is_shared ? 1 : s->n_slice)) * sizeof(float) + 63) / 64 * 64;
    return t;
}

/* The f32 kernel for n samples, on one thread. */
static stk_status make_inner(const stk_cpu_device *device, const stk_op_call *call, const slices_state *s, int64_t n,
                             stk_cpu_maker make, stk_kernel *out)
{
    stk_tensor_desc in[MOST], dst[MOST];
    stk_attrs attrs = *call->attrs;
    stk_cpu_device one = *device;
    one.base.n_threads = 1;
    for (int i = 0; i < call->n_in; i++) {
        in[i] = call->in[i];
        if (s->in[i].loop) in[i].dtype = STK_F32;
        if (!s->in[i].is_shared) in[i].shape.dim[0] = n;
    }
    for (int i = 0; i < call->n_out; i++) {
        dst[i] = call->out[i];
        if (s->out[i].loop) dst[i].dtype = STK_F32;
        dst[i].shape.dim[0] = n;
    }
    if (attrs.shape.rank) attrs.shape.dim[0] = n;
    stk_op_call slice = {call->op, &attrs, call->n_in, call->n_out, in, dst};
    out->impl = stk_cpu_own_impl(device->isa);
    return make(&one, &slice, out);
}

stk_status stk_cpu_slices_kernel(const stk_cpu_device *device, const stk_op_call *call, uint32_t shared,
                                 int64_t n_slice, stk_cpu_maker make, stk_kernel *out)
{
    const stk_element_table *table = stk_element_of(device->isa);
    int64_t n_samples = call->out[0].shape.dim[0];
    if (call->n_in > MOST || call->n_out > MOST) return stk_cpu_unsupported(call);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(slices_state), run, out));
    slices_state *s = out->state;
    out->release = release;
    s->n_in = call->n_in;
    s->n_out = call->n_out;
    s->n_threads = device->base.n_threads;
    s->n_samples = n_samples;
    int64_t most = (n_samples + s->n_threads - 1) / s->n_threads;
    s->n_slice = n_slice > most ? most : n_slice;
    s->n_slice = s->n_slice < 1 ? 1 : s->n_slice;
    s->n_slices = (n_samples + s->n_slice - 1) / s->n_slice;
    for (int i = 0; i < call->n_in; i++)
        s->in[i] = plan(table, call->in[i], true, shared >> i & 1, s);
    for (int i = 0; i < call->n_out; i++)
        s->out[i] = plan(table, call->out[i], false, false, s);
    int64_t n_rest = n_samples % s->n_slice;
    STK_RETURN_IF_ERROR(make_inner(device, call, s, s->n_slice, make, &s->kernel));
    if (n_rest) STK_RETURN_IF_ERROR(make_inner(device, call, s, n_rest, make, &s->rest));
    size_t inner = s->kernel.scratch_bytes > s->rest.scratch_bytes ? s->kernel.scratch_bytes : s->rest.scratch_bytes;
    s->thread_bytes = (s->inner_offset + inner + 63) / 64 * 64;
    out->scratch_bytes = s->shared_bytes + s->thread_bytes * (size_t)s->n_threads + 64;
    out->library_bytes =
        s->kernel.library_bytes > s->rest.library_bytes ? s->kernel.library_bytes : s->rest.library_bytes;
    out->impl = s->kernel.impl;
    return STK_OK;
}
