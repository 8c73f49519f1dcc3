/* 16-bit floats for kernels that lack them: inputs become f32 in scratch, the f32 kernel runs, results are rounded. */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/cpu/element/element.h"

enum { MOST = 10, PIECE = 4096 };

/* One input or output: a conversion, or nothing where loop is NULL. */
typedef struct conversion {
    stk_element_fn loop;
    int64_t n;
    size_t offset; /* of its f32 copy in scratch */
    size_t from_bytes, to_bytes;
} conversion;

typedef struct widen_state {
    stk_kernel kernel;
    int n_in, n_out, n_threads;
    size_t inner_scratch; /* offset */
    conversion in[MOST], out[MOST];
} widen_state;

typedef struct convert_task {
    const conversion *c;
    const char *src;
    char *dst;
} convert_task;

static void convert_share(const void *p, int i_thread, int n_threads)
{
    const convert_task *t = p;
    int64_t begin, end;
    stk_cpu_share(t->c->n, 64, i_thread, n_threads, &begin, &end);
    const void *src = t->src + (size_t)begin * t->c->from_bytes;
    t->c->loop(end - begin, t->dst + (size_t)begin * t->c->to_bytes, &src);
}

static void convert(const widen_state *s, const conversion *c, const void *src, void *dst)
{
    stk_cpu_parallel(stk_cpu_threads_for((double)c->n, s->n_threads), convert_share, &(convert_task){c, src, dst});
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const widen_state *s = p;
    void *in[MOST], *out[MOST];
    char nothing, *scratch = args->scratch ? args->scratch : &nothing; /* of empty tensors */
    for (int i = 0; i < s->n_in; i++) {
        in[i] = s->in[i].loop ? scratch + s->in[i].offset : args->in[i];
        if (s->in[i].loop) convert(s, &s->in[i], args->in[i], in[i]);
    }
    for (int i = 0; i < s->n_out; i++)
        out[i] = s->out[i].loop ? scratch + s->out[i].offset : args->out[i];
    stk_kernel_args inner = {
        .in = in, .out = out, .scratch = s->kernel.scratch_bytes ? scratch + s->inner_scratch : NULL};
    STK_RETURN_IF_ERROR(s->kernel.run(s->kernel.state, &inner));
    for (int i = 0; i < s->n_out; i++)
        if (s->out[i].loop) convert(s, &s->out[i], out[i], args->out[i]);
    return STK_OK;
}

static void release(void *p)
{
    widen_state *s = p;
    stk_kernel_free(&s->kernel);
    free(s);
}

static bool is_half(stk_dtype dtype)
{
    return dtype == STK_BF16 || dtype == STK_F16;
}

/* The desc in f32, and its conversion, where it is of 16 bits. */
static bool plan(stk_tensor_desc *desc, const stk_element_table *table, bool is_in, size_t *scratch, conversion *c)
{
    if (!is_half(desc->dtype)) return false;
    c->loop = is_in ? table->cast[desc->dtype][STK_F32] : table->cast[STK_F32][desc->dtype];
    c->n = stk_shape_count(desc->shape);
    c->from_bytes = is_in ? 2 : 4;
    c->to_bytes = is_in ? 4 : 2;
    c->offset = *scratch;
    desc->dtype = STK_F32;
    *scratch += (stk_desc_bytes(*desc) + 63) / 64 * 64;
    return true;
}

stk_status stk_cpu_widen_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_cpu_maker make,
                                stk_kernel *out)
{
    const stk_element_table *table = stk_element_of(device->isa);
    stk_tensor_desc in[MOST], dst[MOST];
    bool any = false;
    if (call->n_in > MOST || call->n_out > MOST) return stk_cpu_unsupported(call);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(widen_state), run, out));
    widen_state *s = out->state;
    out->release = release;
    s->n_in = call->n_in;
    s->n_out = call->n_out;
    s->n_threads = device->base.n_threads;
    for (int i = 0; i < call->n_in; i++) {
        in[i] = call->in[i];
        any |= plan(&in[i], table, true, &s->inner_scratch, &s->in[i]);
    }
    for (int i = 0; i < call->n_out; i++) {
        dst[i] = call->out[i];
        any |= plan(&dst[i], table, false, &s->inner_scratch, &s->out[i]);
    }
    /* Not a 16-bit float, then: the same call would come back here for ever. */
    if (!any) return stk_cpu_unsupported(call);
    stk_op_call wide = {call->op, call->attrs, call->n_in, call->n_out, in, dst};
    s->kernel.impl = out->impl;
    STK_RETURN_IF_ERROR(make(device, &wide, &s->kernel));
    out->scratch_bytes = s->inner_scratch + s->kernel.scratch_bytes;
    out->library_bytes = s->kernel.library_bytes;
    out->impl = s->kernel.impl;
    /* Inputs that are converted may be overwritten before the inner kernel has read all others: no use in place. */
    return STK_OK;
}
