/* attention and attention_grad: parts are heads; forward, heads are cut into ranges of queries where they are few.
 * Heads of 16-bit floats become f32 in the worker's scratch, where they stay in its cache, and results are rounded; but
 * bf16 are multiplied as they are where the processor can.
 */
#include "device/cpu/attention/attention.h"

#include "device/cpu/amx/amx.h"
#include "device/cpu/element/element.h"
#include "device/cpu/impl.h"

typedef struct attention_state {
    stk_attention_fns fns;
    stk_attention_call call; /* pointers are set by a run */
    stk_gemm_fns gemm;
    int64_t stream, n_splits; /* ranges of queries of each head */
    int n_in;
    size_t worker_bytes; /* of scratch */
    /* For 16-bit floats; else NULL and 0. */
    stk_element_fn widen, narrow;
    size_t head_bytes; /* of scratch, in front of the worker's other: one head in f32 */
} attention_state;

typedef struct attention_task {
    const attention_state *s;
    const stk_attention_call *call;
    char *scratch;
} attention_task;

static void set_optional(const attention_state *s, const stk_kernel_args *args, int n_fixed, stk_attention_call *call)
{
    if (stk_attention_has_mask(s->n_in, n_fixed)) call->mask = args->in[n_fixed];
    if (!stk_attention_has_dropout(s->n_in, n_fixed)) return;
    call->key = stk_dropout_key(*(const int64_t *)args->in[s->n_in - 2], s->stream);
    call->sample = *(const int64_t *)args->in[s->n_in - 1];
}

static void *worker_scratch(const attention_task *task)
{
    return task->scratch + task->s->worker_bytes * (size_t)stk_cpu_worker();
}

/* --- one head of 16-bit floats --- */

/* Rows [begin, end) of head h of x [N,n_rows,H,D] into to [n_rows,D] in f32. */
static void widen_rows(const attention_task *task, const void *x, int64_t n_rows, int64_t n, int64_t h, int64_t begin,
                       int64_t end, float *to)
{
    stk_attention_sizes z = task->call->size;
    for (int64_t i = begin; i < end; i++) {
        const void *from = (const uint16_t *)x + ((n * n_rows + i) * z.h + h) * z.d;
        task->s->widen(z.d, to + i * z.d, &from);
    }
}

static void narrow_rows(const attention_task *task, const float *x, int64_t n_rows, int64_t n, int64_t h, int64_t begin,
                        int64_t end, void *to)
{
    stk_attention_sizes z = task->call->size;
    for (int64_t i = begin; i < end; i++) {
        const void *from = x + i * z.d;
        task->s->narrow(z.d, (uint16_t *)to + ((n * n_rows + i) * z.h + h) * z.d, &from);
    }
}

/* Elements of n rows, in whole lines of the cache. */
static int64_t rows_of(const attention_state *s, int64_t n)
{
    return (n * s->call.size.d + 15) / 16 * 16;
}

static void forward_head(const attention_task *task, int64_t n, int64_t h, int64_t begin, int64_t end)
{
    const attention_state *s = task->s;
    stk_attention_call call = *task->call;
    stk_attention_sizes z = call.size;
    float *q = worker_scratch(task), *y = q + rows_of(s, z.t), *k = y + rows_of(s, z.t), *v = k + rows_of(s, z.s);
    widen_rows(task, call.q, z.t, n, h, begin, end, q);
    widen_rows(task, call.k, z.s, n, h, 0, z.s, k);
    widen_rows(task, call.v, z.s, n, h, 0, z.s, v);
    call.has_one_head = true;
    call.q = q, call.k = k, call.v = v, call.y = y;
    s->fns.forward(&call, n, h, begin, end, (char *)q + s->head_bytes);
    narrow_rows(task, y, z.t, n, h, begin, end, task->call->y);
}

static void backward_head(const attention_task *task, int64_t n, int64_t h)
{
    const attention_state *s = task->s;
    stk_attention_call call = *task->call;
    stk_attention_sizes z = call.size;
    int64_t of_t = rows_of(s, z.t), of_s = rows_of(s, z.s);
    float *q = worker_scratch(task), *dq = q + of_t, *y = dq + of_t, *dy = y + of_t;
    float *k = dy + of_t, *v = k + of_s, *dk = v + of_s, *dv = dk + of_s;
    widen_rows(task, call.q, z.t, n, h, 0, z.t, q);
    widen_rows(task, call.y, z.t, n, h, 0, z.t, y);
    widen_rows(task, call.dy, z.t, n, h, 0, z.t, dy);
    widen_rows(task, call.k, z.s, n, h, 0, z.s, k);
    widen_rows(task, call.v, z.s, n, h, 0, z.s, v);
    call.has_one_head = true;
    call.q = q, call.k = k, call.v = v, call.y = y, call.dy = dy;
    call.dq = dq, call.dk = dk, call.dv = dv;
    s->fns.backward(&call, n, h, (char *)q + s->head_bytes);
    narrow_rows(task, dq, z.t, n, h, 0, z.t, task->call->dq);
    narrow_rows(task, dk, z.s, n, h, 0, z.s, task->call->dk);
    narrow_rows(task, dv, z.s, n, h, 0, z.s, task->call->dv);
}

/* --- running --- */

static void forward_part(const void *p, int i_part, int n_parts)
{
    const attention_task *task = p;
    stk_attention_sizes z = task->call->size;
    int64_t begin, end, first, last, n_splits = task->s->n_splits;
    stk_cpu_share(z.n * z.h * n_splits, 1, i_part, n_parts, &first, &last);
    for (int64_t i = first; i < last; i++) {
        stk_cpu_share(z.t, STK_ATTENTION_QUERIES, (int)(i % n_splits), (int)n_splits, &begin, &end);
        int64_t head = i / n_splits;
        if (begin >= end) continue;
        if (task->s->widen)
            forward_head(task, head / z.h, head % z.h, begin, end);
        else
            task->s->fns.forward(task->call, head / z.h, head % z.h, begin, end, worker_scratch(task));
    }
}

static void backward_part(const void *p, int i_part, int n_parts)
{
    const attention_task *task = p;
    stk_attention_sizes z = task->call->size;
    int64_t first, last;
    stk_cpu_share(z.n * z.h, 1, i_part, n_parts, &first, &last);
    for (int64_t head = first; head < last; head++)
        if (task->s->widen)
            backward_head(task, head / z.h, head % z.h);
        else
            task->s->fns.backward(task->call, head / z.h, head % z.h, worker_scratch(task));
}

/* More parts than threads, so that a core that is slow for a while gets fewer of them; within what a call can count. */
static int count_parts(int64_t n)
{
    enum { MOST = 4096 };
    return (int)(n < MOST ? n : MOST);
}

static stk_status run_forward(const void *p, const stk_kernel_args *args)
{
    const attention_state *s = p;
    stk_attention_call call = s->call;
    call.gemm = &s->gemm;
    call.q = args->in[0];
    call.k = args->in[1];
    call.v = args->in[2];
    call.y = args->out[0];
    call.lse = args->out[1];
    set_optional(s, args, STK_ATTENTION_FIXED, &call);
    int64_t n = call.size.n * call.size.h * s->n_splits;
    if (n) stk_cpu_parallel(count_parts(n), forward_part, &(attention_task){s, &call, args->scratch});
    return STK_OK;
}

static stk_status run_backward(const void *p, const stk_kernel_args *args)
{
    const attention_state *s = p;
    stk_attention_call call = s->call;
    call.gemm = &s->gemm;
    call.dy = args->in[0];
    call.q = args->in[1];
    call.k = args->in[2];
    call.v = args->in[3];
    call.y = args->in[4];
    call.lse = args->in[5];
    call.dq = args->out[0];
    call.dk = args->out[1];
    call.dv = args->out[2];
    set_optional(s, args, STK_ATTENTION_GRAD_FIXED, &call);
    int64_t n = call.size.n * call.size.h;
    if (n) stk_cpu_parallel(count_parts(n), backward_part, &(attention_task){s, &call, args->scratch});
    return STK_OK;
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, const stk_attention_fns *fns,
                       const stk_gemm_fns *gemm, stk_kernel *out)
{
    enum { PARTS_A_THREAD = 4 };
    bool is_grad = call->op == STK_OP_attention_grad;
    int i_q = is_grad ? 1 : 0;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(attention_state), is_grad ? run_backward : run_forward, out));
    attention_state *s = out->state;
    s->fns = *fns;
    s->gemm = *gemm;
    s->n_in = call->n_in;
    s->stream = call->attrs->attention.stream;
    s->call.gemm = &s->gemm;
    s->call.size = stk_attention_get_sizes(call->in[i_q].shape, call->in[i_q + 1].shape);
    s->call.scale = call->attrs->attention.scale;
    s->call.rate = call->attrs->attention.rate;
    s->call.causal = call->attrs->attention.causal;
    int64_t n_heads = s->call.size.n * s->call.size.h, wanted = PARTS_A_THREAD * device->base.n_threads;
    int64_t most = (s->call.size.t + STK_ATTENTION_QUERIES - 1) / STK_ATTENTION_QUERIES;
    s->n_splits = device->base.n_threads > 1 && n_heads && n_heads < wanted ? (wanted + n_heads - 1) / n_heads : 1;
    s->n_splits = s->n_splits > most ? (most ? most : 1) : s->n_splits;
    s->worker_bytes = (is_grad ? s->fns.backward_bytes(&s->call) : s->fns.forward_bytes(&s->call)) / 64 * 64 + 64;
    out->scratch_bytes = s->worker_bytes * (size_t)device->base.n_threads;
    return STK_OK;
}

/* bf16 as they lie; NULL where they have to become f32. */
static const stk_attention_fns *find_bf16(const stk_cpu_device *device)
{
#ifdef STK_ISA_X86
    return stk_isa_has_bf16(device->isa) ? &stk_attention_avx512bf16 : NULL;
#else
    (void)device;
    return NULL;
#endif
}

static bool bf16_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    return call->in[0].dtype == STK_BF16 && find_bf16(device);
}

static stk_status make_bf16(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, call, find_bf16(device), &stk_gemm_of(device->isa)->f32, out));
#ifdef STK_ISA_X86
    ((attention_state *)out->state)->call.products = &stk_attention_by_pairs;
#endif
    return STK_OK;
}

static bool tiles_support(const stk_cpu_device *device, const stk_op_call *call)
{
    return bf16_supports(device, call) && stk_amx_of(device->isa);
}

static stk_status make_tiles(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_amx_fns *amx = stk_amx_of(device->isa);
    STK_RETURN_IF_ERROR(make_bf16(device, call, out));
    const stk_attention_products *products = &stk_attention_by_model;
#ifdef STK_AMX
    if (amx == &stk_amx_silicon) products = &stk_attention_by_tiles;
#endif
    ((attention_state *)out->state)->call.products = products;
    out->impl = stk_amx_impl(amx);
    return STK_OK;
}

static stk_status make_wide(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_attention_table *table = stk_attention_of(device->isa);
    const stk_gemm_table *gemm = stk_gemm_of(device->isa);
    bool is_f64 = call->in[0].dtype == STK_F64;
    return make(device, call, is_f64 ? &table->f64 : &table->f32, is_f64 ? &gemm->f64 : &gemm->f32, out);
}

static stk_status make_half(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_element_table *element = stk_element_of(device->isa);
    stk_dtype dtype = call->in[0].dtype;
    STK_RETURN_IF_ERROR(make(device, call, &stk_attention_of(device->isa)->f32, &stk_gemm_of(device->isa)->f32, out));
    attention_state *s = out->state;
    size_t n = call->op == STK_OP_attention_grad ? 4 : 2; /* of queries, and as many of keys */
    s->widen = element->cast[dtype][STK_F32];
    s->narrow = element->cast[STK_F32][dtype];
    s->head_bytes = sizeof(float) * n * (size_t)(rows_of(s, s->call.size.t) + rows_of(s, s->call.size.s));
    s->worker_bytes += s->head_bytes;
    out->scratch_bytes = s->worker_bytes * (size_t)device->base.n_threads;
    return STK_OK;
}

static const stk_cpu_impl impls[] = {
    /* bf16 as they are, where the processor multiplies them: by tiles, or by pairs. */
    {NULL, tiles_support, make_tiles},
    {NULL, bf16_supports, make_bf16},
    {NULL, stk_cpu_reads_wide, make_wide},
    /* Other 16-bit floats: a head at a time as f32. */
    {NULL, stk_cpu_has_half, make_half},
    {0},
};

stk_status stk_cpu_attention_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

stk_status stk_cpu_attention_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}
