/* See product.h. The parts of a grid are alike but for those at its lower and right edges: four primitives at most.
 * Each thread has memory objects of its own for each of them, so that a run sets pointers and makes nothing.
 */
#include "device/cpu/matmul/product.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "device/cpu/matmul/tile_product.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/onednn_version.h"

enum { A, B, C, BIAS, N_TENSORS, SCRATCHPAD = N_TENSORS, N_ARGS, ALIGN = 64 };

/* A part of m x n elements of c. */
typedef struct product_part {
    dnnl_primitive_t primitive; /* NULL: no part has this size */
    dnnl_memory_t *memory;      /* N_ARGS of each thread; BIAS and SCRATCHPAD may be NULL */
    size_t scratch_bytes;
} product_part;

struct stk_product {
    stk_product_shape shape;
    bool is_own; /* own alone counts */
    stk_tile_product own;
    dnnl_stream_t *stream; /* of each thread */
    int n_threads;
    int rows, cols;           /* of the grid */
    int64_t part_m, part_n;   /* of all parts but the last ones */
    product_part part[2][2];  /* [last along m][last along n] */
    size_t scratch_bytes;     /* of a thread */
    size_t in_bytes, c_bytes; /* of an element */
    char impl[48];
};

/* --- cutting --- */

/* One part for each thread: with two of half the size, which would even out slow cores, packing costs 5 %. */
enum { GRAIN = 64, LEAST_SIDE = 192 };

static int64_t part_of(int64_t n, int n_parts)
{
    int64_t part = (n + n_parts - 1) / n_parts;
    return n_parts == 1 ? n : (part + GRAIN - 1) / GRAIN * GRAIN;
}

/* What a part packs is a row strip of a and a column strip of b: the grid with the least of both wins. But oneDNN is
 * fastest where a, b and c have no gaps, as rows of an a that is not transposed. */
static void cut(stk_product *p, int n_parts)
{
    double least = 1e30;
    p->rows = p->cols = 1;
    if (!p->shape.transpose_a && part_of(p->shape.m, n_parts) >= LEAST_SIDE) {
        p->rows = n_parts;
        return;
    }
    for (int rows = 1; rows <= n_parts; rows++) {
        int cols = n_parts / rows;
        if (n_parts % rows) continue;
        int64_t m = part_of(p->shape.m, rows), n = part_of(p->shape.n, cols);
        bool is_thin = (rows > 1 && m < LEAST_SIDE) || (cols > 1 && n < LEAST_SIDE);
        double strip = (double)m + (double)n + (is_thin ? 1e9 : 0);
        if (strip >= least) continue;
        least = strip;
        p->rows = rows;
        p->cols = cols;
    }
}

static void choose_grid(stk_product *p)
{
    const stk_product_shape *s = &p->shape;
    double work = (double)s->m * (double)s->n * (double)s->k;
    int n_parts = p->n_threads;
    if (s->n_batch >= 2 * p->n_threads || work < 1e6) n_parts = 1;
    cut(p, n_parts);
    p->part_m = part_of(s->m, p->rows);
    p->part_n = part_of(s->n, p->cols);
    p->rows = (int)((s->m + p->part_m - 1) / p->part_m);
    p->cols = (int)((s->n + p->part_n - 1) / p->part_n);
}

/* --- making --- */

static dnnl_data_type_t type_of(stk_dtype dtype)
{
    return dtype == STK_BF16 ? dnnl_bf16 : dnnl_f32;
}

static dnnl_status_t describe(const stk_product_shape *s, int64_t m, int64_t n, stk_md md[N_TENSORS])
{
    dnnl_dims_t a = {m, s->k}, b = {s->k, n}, c = {m, n}, c_strides = {s->c_step, 1};
    dnnl_dims_t bias = {1, n}, bias_strides = {n, 1};
    dnnl_dims_t a_strides = {s->transpose_a ? 1 : s->a_step, s->transpose_a ? s->a_step : 1};
    dnnl_dims_t b_strides = {s->transpose_b ? 1 : s->b_step, s->transpose_b ? s->b_step : 1};
    dnnl_status_t status = stk_md_init(&md[A], 2, a, a_strides, type_of(s->in));
    if (status == dnnl_success) status = stk_md_init(&md[B], 2, b, b_strides, type_of(s->in));
    if (status == dnnl_success && s->has_bias) status = stk_md_init(&md[BIAS], 2, bias, bias_strides, dnnl_f32);
    return status == dnnl_success ? stk_md_init(&md[C], 2, c, c_strides, type_of(s->out)) : status;
}

static dnnl_status_t make_attr(bool adds, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status != dnnl_success || !adds) return status;
    status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success) status = stk_dnnl_add_sum(ops);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(*out, ops);
    if (ops) dnnl_post_ops_destroy(ops);
    return status;
}

/* In f32 only oneDNN's "brg" ways are faster than its sgemm. */
static stk_status check_impl(stk_product *p, const_dnnl_primitive_desc_t pd)
{
    stk_dnnl_kind kind = stk_dnnl_kind_of(pd);
    if (p->shape.in == STK_F32 && !kind.is_brgemm)
        return stk_fail(STK_UNSUPPORTED, "oneDNN multiplies this product of f32 by %s", kind.name);
    if (p->shape.in == STK_BF16 && stk_product_may_fault(p->shape.k) && strstr(kind.name, "amx"))
        return stk_fail(STK_UNSUPPORTED, "oneDNN fails in products of that depth by %s", kind.name);
    snprintf(p->impl, sizeof(p->impl), "onednn %s", kind.name);
    return STK_OK;
}

static dnnl_status_t make_memory(const stk_product *p, product_part *part, const stk_md md[N_TENSORS],
                                 stk_md_ref scratchpad, dnnl_engine_t engine)
{
    dnnl_status_t status = dnnl_success;
    for (int t = 0; t < p->n_threads; t++) {
        dnnl_memory_t *memory = part->memory + t * N_ARGS;
        for (int i = 0; i < N_TENSORS && status == dnnl_success; i++)
            if (i != BIAS || p->shape.has_bias)
                status = dnnl_memory_create(&memory[i], stk_md_get(&md[i]), engine, DNNL_MEMORY_NONE);
        if (status == dnnl_success && part->scratch_bytes)
            status = dnnl_memory_create(&memory[SCRATCHPAD], scratchpad, engine, DNNL_MEMORY_NONE);
    }
    return status;
}

static stk_status make_part(stk_product *p, dnnl_engine_t engine, int64_t m, int64_t n, product_part *part)
{
    stk_status status = STK_OK;
    stk_md md[N_TENSORS] = {0};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    part->memory = calloc((size_t)p->n_threads * N_ARGS, sizeof(*part->memory));
    if (!part->memory) return stk_fail_memory((size_t)p->n_threads * N_ARGS * sizeof(*part->memory));
    STK_TRY(stk_onednn_check(describe(&p->shape, m, n, md), "memory descriptor"));
    STK_TRY(stk_onednn_check(make_attr(p->shape.adds, &attr), "attributes"));
    STK_TRY(stk_onednn_check(stk_dnnl_matmul_pd(engine, stk_md_get(&md[A]), stk_md_get(&md[B]),
                                                p->shape.has_bias ? stk_md_get(&md[BIAS]) : NULL, stk_md_get(&md[C]),
                                                attr, &pd),
                             "product"));
    STK_TRY(check_impl(p, pd));
    STK_TRY(stk_onednn_check(dnnl_primitive_create(&part->primitive, pd), "product"));
    stk_md_ref scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    part->scratch_bytes = scratchpad ? dnnl_memory_desc_get_size(scratchpad) : 0;
    if (part->scratch_bytes > p->scratch_bytes) p->scratch_bytes = part->scratch_bytes;
    STK_TRY(stk_onednn_check(make_memory(p, part, md, scratchpad, engine), "memory"));
done:
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attr) dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < N_TENSORS; i++)
        stk_md_clear(&md[i]);
    return status;
}

static stk_status make_parts(stk_product *p, dnnl_engine_t engine)
{
    int64_t last_m = p->shape.m - (p->rows - 1) * p->part_m, last_n = p->shape.n - (p->cols - 1) * p->part_n;
    for (int i = p->rows > 1 ? 0 : 1; i < 2; i++)
        for (int j = p->cols > 1 ? 0 : 1; j < 2; j++)
            STK_RETURN_IF_ERROR(make_part(p, engine, i ? last_m : p->part_m, j ? last_n : p->part_n, &p->part[i][j]));
    p->scratch_bytes = stk_round_up(p->scratch_bytes, ALIGN);
    return STK_OK;
}

bool stk_product_pays(const stk_product_shape *s)
{
    enum { LEAST = 16 };
    int64_t n_batch = s->n_batch ? s->n_batch : 1;
    return s->m >= LEAST && s->n >= LEAST && s->k >= LEAST &&
           (double)s->m * (double)s->n * (double)s->k * (double)n_batch >= 1e6;
}

bool stk_product_is_fast(const stk_cpu_device *device, stk_dtype in)
{
    if (in == STK_F32) return device->isa == STK_ISA_AVX512;
    return in == STK_BF16 && (stk_isa_has_bf16(device->isa) || stk_amx_of(device->isa));
}

stk_status stk_product_new(const stk_cpu_device *device, const stk_product_shape *shape, stk_product **out)
{
    stk_status status = STK_OK;
    if (!stk_product_is_fast(device, shape->in))
        return stk_fail(STK_UNSUPPORTED, "no fast products in %s here", stk_dtype_name(shape->in));
    stk_product *p = calloc(1, sizeof(*p));
    if (!p) return stk_fail_memory(sizeof(*p));
    p->shape = *shape;
    if (!p->shape.n_batch) p->shape.n_batch = 1;
    p->is_own = shape->way == STK_PRODUCT_BY_RULE ? stk_tile_product_pays(device->isa, shape)
                                                  : shape->way == STK_PRODUCT_BY_TILES;
    if (p->is_own) {
        stk_tile_kind kind = stk_tile_product_kind(device->isa, shape->in);
        p->own = stk_tile_product_cut(device->isa, kind, &p->shape, device->base.n_threads);
        const char *vectors = kind == STK_TILES_F32 ? "own avx512" : "own avx512_bf16";
        snprintf(p->impl, sizeof(p->impl), "%s", p->own.amx ? stk_amx_impl(p->own.amx) : vectors);
        *out = p;
        return STK_OK;
    }
    /* How oneDNN cuts a product into blocks depends on the threads that it thinks it has. */
    int before = stk_cpu_swap_thread_count(1);
    p->n_threads = device->base.n_threads;
    p->in_bytes = stk_dtype_bytes(shape->in);
    p->c_bytes = stk_dtype_bytes(shape->out);
    p->rows = p->cols = 1;
    p->part_m = shape->m;
    p->part_n = shape->n;
    choose_grid(p);
    p->stream = calloc((size_t)p->n_threads, sizeof(*p->stream));
    if (!p->stream) STK_TRY(stk_fail_memory((size_t)p->n_threads * sizeof(*p->stream)));
    for (int t = 0; t < p->n_threads; t++)
        STK_TRY(stk_onednn_check(dnnl_stream_create(&p->stream[t], device->onednn->engine, dnnl_stream_default_flags),
                                 "stream"));
    STK_TRY(make_parts(p, device->onednn->engine));
    *out = p;
    p = NULL;
done:
    stk_cpu_swap_thread_count(before);
    stk_product_free(p);
    return status;
}

static void free_part(product_part *part, int n_threads)
{
    for (int i = 0; part->memory && i < n_threads * N_ARGS; i++)
        if (part->memory[i]) dnnl_memory_destroy(part->memory[i]);
    free(part->memory);
    if (part->primitive) dnnl_primitive_destroy(part->primitive);
}

void stk_product_free(stk_product *p)
{
    if (!p) return;
    for (int i = 0; i < 4; i++)
        free_part(&p->part[i / 2][i % 2], p->n_threads);
    for (int t = 0; p->stream && t < p->n_threads; t++)
        if (p->stream[t]) dnnl_stream_destroy(p->stream[t]);
    free(p->stream);
    free(p);
}

size_t stk_product_scratch_bytes(const stk_product *p)
{
    return p->is_own ? stk_tile_product_scratch_bytes(&p->own) : p->scratch_bytes * (size_t)p->n_threads;
}

size_t stk_product_library_bytes(const stk_product *p)
{
    return p->is_own ? 0 : STK_ONEDNN_BYTES;
}

const char *stk_product_impl(const stk_product *p)
{
    return p->impl;
}

/* --- running --- */

static dnnl_status_t execute(const stk_product *p, const product_part *part, void *data[N_ARGS], int i_thread)
{
    static const int names[N_ARGS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS, DNNL_ARG_SCRATCHPAD};
    dnnl_memory_t *memory = part->memory + i_thread * N_ARGS;
    dnnl_exec_arg_t args[N_ARGS];
    int n_args = 0;
    for (int i = 0; i < N_ARGS; i++) {
        if (!memory[i]) continue;
        dnnl_status_t status = dnnl_memory_set_data_handle(memory[i], data[i]);
        if (status != dnnl_success) return status;
        args[n_args++] = (dnnl_exec_arg_t){names[i], memory[i]};
    }
    sigset_t signals;
    stk_hold_signals(&signals);
    dnnl_status_t status = dnnl_primitive_execute(part->primitive, p->stream[i_thread], n_args, args);
    stk_let_signals_come(&signals);
    return status;
}

static stk_status run_one(const stk_product *p, int64_t i_batch, int row, int col, const void *const in[2],
                          const float *bias, void *c, void *scratch)
{
    const stk_product_shape *s = &p->shape;
    int i_thread = stk_cpu_worker();
    int64_t i = row * p->part_m, j = col * p->part_n;
    int64_t at_a = i_batch * s->a_next + (s->transpose_a ? i : i * s->a_step);
    int64_t at_b = i_batch * s->b_next + (s->transpose_b ? j * s->b_step : j);
    int64_t at_c = i_batch * s->c_next + i * s->c_step + j;
    /* oneDNN's handles are not const; a, b and the bias are only read. */
    void *data[N_ARGS] = {(char *)in[A] + (size_t)at_a * p->in_bytes, (char *)in[B] + (size_t)at_b * p->in_bytes,
                          (char *)c + (size_t)at_c * p->c_bytes, bias ? (void *)(uintptr_t)(bias + j) : NULL,
                          (char *)scratch + (size_t)i_thread * p->scratch_bytes};
    const product_part *part = &p->part[row == p->rows - 1][col == p->cols - 1];
    int before = stk_cpu_swap_thread_count(1);
    dnnl_status_t status = execute(p, part, data, i_thread);
    stk_cpu_swap_thread_count(before);
    return stk_onednn_check(status, "product");
}

typedef struct product_task {
    const stk_product *p;
    const void *in[2];
    const float *bias;
    void *c, *scratch;
    _Atomic int *failed;
} product_task;

static void run_part(const void *task_, int i_part, int n_parts)
{
    (void)n_parts;
    const product_task *task = task_;
    const stk_product *p = task->p;
    int n_grid = p->rows * p->cols, i = i_part % n_grid;
    stk_status status =
        run_one(p, i_part / n_grid, i / p->cols, i % p->cols, task->in, task->bias, task->c, task->scratch);
    if (status != STK_OK) atomic_store(task->failed, (int)status);
}

/* More parts than a call of the pool may have go as ranges of them. */
static void run_parts(const void *task_, int i_share, int n_shares)
{
    const product_task *task = task_;
    int64_t n = task->p->shape.n_batch * task->p->rows * task->p->cols, begin, end;
    stk_cpu_share(n, 1, i_share, n_shares, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        run_part(task, (int)i, 0);
}

stk_status stk_product_run(const stk_product *p, const void *a, const void *b, const float *bias, void *c,
                           void *scratch)
{
    enum { MOST_SHARES = 4096 };
    _Atomic int failed = STK_OK;
    if (p->is_own) {
        stk_tile_product_run(&p->own, a, b, NULL, bias, c, scratch);
        return STK_OK;
    }
    product_task task = {p, {a, b}, bias, c, scratch, &failed};
    int64_t n = p->shape.n_batch * p->rows * p->cols;
    stk_cpu_parallel((int)(n < MOST_SHARES ? n : MOST_SHARES), run_parts, &task);
    /* The text was kept in the thread that failed. */
    return failed == STK_OK ? STK_OK : stk_fail((stk_status)failed, "oneDNN's product failed");
}

/* --- as a kernel --- */

typedef struct product_state {
    stk_product *product;
    int a, b;
    bool has_bias;
} product_state;

static stk_status run_kernel(const void *state, const stk_kernel_args *args)
{
    const product_state *s = state;
    const stk_product *p = s->product;
    const float *bias = s->has_bias ? args->in[2] : NULL;
    if (!args->packed) return stk_product_run(p, args->in[s->a], args->in[s->b], bias, args->out[0], args->scratch);
    stk_tile_product_run(&p->own, args->in[s->a], NULL, args->packed, bias, args->out[0], args->scratch);
    return STK_OK;
}

static stk_status pack_b(const void *state, const stk_kernel_args *args)
{
    const product_state *s = state;
    stk_tile_product_pack(&s->product->own, args->in[0], args->out[0]);
    return STK_OK;
}

static void release(void *state)
{
    product_state *s = state;
    stk_product_free(s->product);
    free(s);
}

stk_status stk_product_kernel(const stk_cpu_device *device, const stk_product_shape *shape, int a, int b,
                              stk_kernel *out)
{
    stk_product *product;
    STK_RETURN_IF_ERROR(stk_product_new(device, shape, &product));
    stk_status status = stk_cpu_new_state(sizeof(product_state), run_kernel, out);
    if (status != STK_OK) {
        stk_product_free(product);
        return status;
    }
    product_state *s = out->state;
    *s = (product_state){product, a, b, shape->has_bias};
    out->release = release;
    out->scratch_bytes = stk_product_scratch_bytes(product);
    out->library_bytes = stk_product_library_bytes(product);
    out->impl = stk_product_impl(product);
    return STK_OK;
}

void stk_product_kernel_keep_b(stk_kernel *kernel)
{
    const product_state *s = kernel->state;
    if (!s->product->is_own) return;
    kernel->packed_bytes = stk_tile_product_kept_bytes(&s->product->own);
    kernel->packed_layout = stk_tile_product_kept_layout(&s->product->own);
    kernel->packed_input = s->b;
    kernel->pack = pack_b;
}
