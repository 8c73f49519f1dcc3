/* A convolution is up to four primitives: reorders of what comes in, the convolution, a reorder of what goes out. */
#include "device/cpu/onednn/onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "device/cpu/onednn/onednn_version.h"
#include "device/cpu/onednn/sgemm_memory.h"
#include "device/cpu/threads/parallel.h"
#include <pthread.h>
#include <stddef.h>

/* x, weight or y: as the caller has it, and as the convolution wants it. */
typedef struct conv_tensor {
    stk_md plain_md;
    dnnl_memory_t plain, staged; /* staged NULL: the convolution works on the plain one */
    dnnl_primitive_t reorder;
    size_t offset;  /* of staged in scratch */
    int arg;        /* DNNL_ARG_... */
    bool is_packed; /* the caller brings what the convolution wants */
} conv_tensor;

enum { X, WEIGHT, Y, N_TENSORS, ALIGN = 64 };

struct stk_onednn_conv {
    dnnl_stream_t stream;
    int n_threads;
    dnnl_primitive_t primitive;
    dnnl_memory_t scratchpad, bias; /* bias NULL: none */
    conv_tensor tensor[N_TENSORS];
    stk_md bias_md;
    int target; /* which tensor is written */
    size_t scratch_bytes;
    char impl[64];
    bool is_depthwise;
};

stk_status stk_onednn_check(dnnl_status_t status, const char *what)
{
    switch (status) {
    case dnnl_success: return STK_OK;
    case dnnl_out_of_memory: return stk_fail(STK_NO_MEMORY, "out of memory in oneDNN's %s", what);
    case dnnl_unimplemented: return stk_fail(STK_UNSUPPORTED, "oneDNN does not implement this %s", what);
    default: return stk_fail(STK_DEVICE, "oneDNN's %s failed with status %d", what, (int)status);
    }
}

stk_dnnl_kind stk_dnnl_kind_of(const_dnnl_primitive_desc_t pd)
{
    stk_dnnl_kind kind = {.name = "?"};
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &kind.name);
    kind.is_depthwise = strstr(kind.name, "dw") != NULL;
    kind.is_brgemm = !strncmp(kind.name, "brg:", 4);
    return kind;
}

stk_status stk_onednn_open(stk_onednn **out)
{
    stk_status status = STK_OK;
    stk_onednn *onednn = calloc(1, sizeof(*onednn));
    if (!onednn) return stk_fail_memory(sizeof(*onednn));
    const dnnl_version_t *version = dnnl_version();
    snprintf(onednn->version, sizeof(onednn->version), "%d.%d.%d", version->major, version->minor, version->patch);
    STK_TRY(stk_onednn_check(dnnl_engine_create(&onednn->engine, dnnl_cpu, 0), "engine"));
    *out = onednn;
    return STK_OK;
done:
    stk_onednn_close(onednn);
    return status;
}

void stk_onednn_close(stk_onednn *onednn)
{
    if (!onednn) return;
    if (onednn->engine) dnnl_engine_destroy(onednn->engine);
    free(onednn);
}

const char *stk_onednn_version(const stk_onednn *onednn)
{
    return onednn->version;
}

/* --- descriptors --- */

/* oneDNN names dimensions N, C, (D,) H, W whatever their order in memory. */
static dnnl_status_t describe_image(stk_shape shape, dnnl_data_type_t type, stk_md *plain)
{
    int rank = shape.rank;
    dnnl_dims_t dims = {shape.dim[0], shape.dim[rank - 1]}, strides = {0, 1};
    int64_t step = shape.dim[rank - 1];
    for (int i = rank - 1; i >= 2; i--, step *= shape.dim[i]) {
        dims[i] = shape.dim[i - 1];
        strides[i] = step;
    }
    strides[0] = step;
    return stk_md_init(plain, rank, dims, strides, type);
}

static dnnl_status_t describe_weight(stk_shape shape, int64_t groups, dnnl_data_type_t type, stk_md *plain, stk_md *any)
{
    int rank = shape.rank, skip = groups == 1;
    dnnl_dims_t dims = {groups, shape.dim[0] / groups, shape.dim[rank - 1]}, strides = {0, 0, 1};
    int64_t step = shape.dim[rank - 1];
    for (int i = rank - 1; i >= 2; i--, step *= shape.dim[i]) {
        dims[i + 1] = shape.dim[i - 1];
        strides[i + 1] = step;
    }
    strides[1] = step;
    strides[0] = step * dims[1];
    dnnl_status_t status = stk_md_init(plain, rank + 1 - skip, dims + skip, strides + skip, type);
    return status == dnnl_success ? stk_md_init(any, rank + 1 - skip, dims + skip, NULL, type) : status;
}

static void set_sizes(const stk_window *window, int n_dims, stk_dnnl_conv *out)
{
    for (int i = 0; i < n_dims; i++) {
        out->strides[i] = window->stride[i];
        out->dilates[i] = window->dilation[i] - 1;
        out->pad_low[i] = window->pad_low[i];
        out->pad_high[i] = window->pad_high[i];
    }
}

/* --- building --- */

/* How we pack these weights ourselves, if we can. */
static stk_conv_packing find_packing(const stk_conv_shape *s, stk_dtype dtype, stk_md_ref wanted)
{
    enum { O, C, KH, KW, N_DIMS };
    stk_conv_packing p = {.kind = STK_PACK_NONE}, none = p;
    stk_md_format f;
    if (dtype != STK_BF16 || s->weight.rank != N_DIMS || s->window.groups != 1 || s->pass == STK_CONV_GRAD_WEIGHT ||
        !stk_md_get_format(wanted, &f) || f.n_dims != N_DIMS)
        return none;
    const int64_t *size = f.block_size, *dim = f.block_dim;
    p.o = s->weight.dim[0], p.kernel_h = s->weight.dim[1], p.kernel_w = s->weight.dim[2], p.c = s->weight.dim[3];
    p.padded_o = f.padded_dims[O], p.padded_c = f.padded_dims[C];
    p.o_step = f.steps[O], p.c_step = f.steps[C], p.y_step = f.steps[KH], p.x_step = f.steps[KW];
    p.bytes = dnnl_memory_desc_get_size(wanted);
    if (f.n_blocks == 2 && dim[0] == O && size[0] % STK_PACK_LANES == 0 && dim[1] == C && size[1] == 2 &&
        p.c_step == 2 * size[0] && p.padded_c == (p.c + 1) / 2 * 2)
        p.kind = STK_PACK_IN_PAIRS, p.block = size[0];
    else if (f.n_blocks == 3 && dim[0] == O && 2 * size[0] == STK_PACK_LANES && dim[1] == C &&
             size[1] == STK_PACK_LANES && dim[2] == O && size[2] == 2)
        p.kind = STK_PACK_OUT_PAIRS, p.block = STK_PACK_LANES;
    else
        return none;
    return p;
}

/* The tensor's memory objects; where the convolution wants another format, the staged copy and its reorder. */
static stk_status add_tensor(stk_onednn_conv *conv, int i, dnnl_engine_t engine, stk_md_ref wanted,
                             const_dnnl_primitive_attr_t attr)
{
    conv_tensor *t = &conv->tensor[i];
    stk_md_ref plain = t->is_packed ? wanted : stk_md_get(&t->plain_md), from = i == conv->target ? wanted : plain,
               to = i == conv->target ? plain : wanted;
    dnnl_primitive_desc_t pd = NULL;
    stk_status status = STK_OK;
    STK_TRY(stk_onednn_check(dnnl_memory_create(&t->plain, plain, engine, DNNL_MEMORY_NONE), "memory"));
    if (dnnl_memory_desc_equal(plain, wanted)) goto done;
    STK_TRY(stk_onednn_check(dnnl_memory_create(&t->staged, wanted, engine, DNNL_MEMORY_NONE), "memory"));
    STK_TRY(stk_onednn_check(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr), "reorder"));
    STK_TRY(stk_onednn_check(dnnl_primitive_create(&t->reorder, pd), "reorder"));
    t->offset = conv->scratch_bytes;
    conv->scratch_bytes += stk_round_up(dnnl_memory_desc_get_size(wanted), ALIGN);
done:
    if (pd) dnnl_primitive_desc_destroy(pd);
    return status;
}

static void find_kind(stk_onednn_conv *conv, const_dnnl_primitive_desc_t pd)
{
    stk_dnnl_kind kind = stk_dnnl_kind_of(pd);
    int n_reorders = 0;
    conv->is_depthwise = kind.is_depthwise;
    for (int i = 0; i < N_TENSORS; i++)
        n_reorders += conv->tensor[i].reorder != NULL;
    snprintf(conv->impl, sizeof(conv->impl), "onednn %s%s", kind.name,
             n_reorders > 1   ? " 2 reorders"
             : n_reorders > 0 ? " 1 reorder"
                              : "");
}

static stk_status build(stk_onednn_conv *conv, const stk_onednn *onednn, const_dnnl_primitive_desc_t pd,
                        const_dnnl_primitive_attr_t attr, const stk_conv_shape *shape, stk_dtype dtype,
                        stk_conv_packing *packing)
{
    static const int args[3][N_TENSORS] = {
        [STK_CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [STK_CONV_GRAD_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [STK_CONV_GRAD_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
    };
    stk_status status = STK_OK;
    stk_conv_pass pass = shape->pass;
    STK_TRY(stk_onednn_check(dnnl_stream_create(&conv->stream, onednn->engine, dnnl_stream_default_flags), "stream"));
    conv->target = pass == STK_CONV_FORWARD ? Y : pass == STK_CONV_GRAD_DATA ? X : WEIGHT;
    stk_md_ref scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    conv->scratch_bytes = scratchpad ? stk_round_up(dnnl_memory_desc_get_size(scratchpad), ALIGN) : 0;
    if (conv->scratch_bytes)
        STK_TRY(stk_onednn_check(dnnl_memory_create(&conv->scratchpad, scratchpad, onednn->engine, DNNL_MEMORY_NONE),
                                 "scratchpad"));
    if (shape->has_bias)
        STK_TRY(stk_onednn_check(
            dnnl_memory_create(&conv->bias, stk_md_get(&conv->bias_md), onednn->engine, DNNL_MEMORY_NONE), "memory"));
    for (int i = 0; i < N_TENSORS; i++) {
        conv->tensor[i].arg = args[pass][i];
        stk_md_ref wanted = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, conv->tensor[i].arg);
        if (!wanted) STK_TRY(stk_fail(STK_DEVICE, "oneDNN's convolution has no argument %d", conv->tensor[i].arg));
        if (i == WEIGHT && packing) {
            *packing = find_packing(shape, dtype, wanted);
            conv->tensor[i].is_packed = packing->kind != STK_PACK_NONE;
        }
        STK_TRY(add_tensor(conv, i, onednn->engine, wanted, attr));
    }
    STK_TRY(stk_onednn_check(dnnl_primitive_create(&conv->primitive, pd), "convolution"));
    find_kind(conv, pd);
done:
    return status;
}

stk_status stk_onednn_conv_new(const stk_onednn *onednn, const stk_conv_shape *shape, stk_dtype dtype, int n_threads,
                               stk_conv_packing *packing, stk_onednn_conv **out)
{
    stk_status status = STK_OK;
    dnnl_data_type_t type = dtype == STK_BF16 ? dnnl_bf16 : dnnl_f32;
    dnnl_data_type_t weight_type = shape->pass == STK_CONV_GRAD_WEIGHT ? dnnl_f32 : type;
    int before = stk_cpu_swap_thread_count(n_threads);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    stk_md any = {0}, read_any = {0}, unused = {0};
    stk_onednn_conv *conv = calloc(1, sizeof(*conv));
    if (!conv) STK_TRY(stk_fail_memory(sizeof(*conv)));
    conv->n_threads = n_threads;
    stk_dnnl_conv c = {.pass = shape->pass};
    set_sizes(&shape->window, shape->x.rank - 2, &c);
    STK_TRY(stk_onednn_check(describe_image(shape->x, type, &conv->tensor[X].plain_md), "memory descriptor"));
    STK_TRY(stk_onednn_check(describe_image(shape->y, type, &conv->tensor[Y].plain_md), "memory descriptor"));
    STK_TRY(stk_onednn_check(
        describe_weight(shape->weight, shape->window.groups, weight_type, &conv->tensor[WEIGHT].plain_md, &any),
        "memory descriptor"));
    c.x = stk_md_get(&conv->tensor[X].plain_md);
    STK_TRY(stk_onednn_check(describe_weight(shape->weight, shape->window.groups, type, &unused, &read_any),
                             "memory descriptor"));
    c.weight = stk_md_get(&any);
    c.read_weight = stk_md_get(&read_any);
    c.y = stk_md_get(&conv->tensor[Y].plain_md);
    if (shape->has_bias) {
        dnnl_dims_t dims = {shape->weight.dim[0]}, one = {1};
        STK_TRY(stk_onednn_check(stk_md_init(&conv->bias_md, 1, dims, one, dnnl_f32), "memory descriptor"));
        c.bias = stk_md_get(&conv->bias_md);
    }
    STK_TRY(stk_onednn_check(dnnl_primitive_attr_create(&attr), "attributes"));
    STK_TRY(stk_onednn_check(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), "attributes"));
    STK_TRY(stk_onednn_check(stk_dnnl_conv_pd(onednn->engine, &c, attr, &pd), "convolution"));
    STK_TRY(build(conv, onednn, pd, attr, shape, dtype, packing));
    *out = conv;
    conv = NULL;
done:
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attr) dnnl_primitive_attr_destroy(attr);
    stk_md_clear(&any);
    stk_md_clear(&read_any);
    stk_md_clear(&unused);
    stk_cpu_swap_thread_count(before);
    stk_onednn_conv_free(conv);
    return status;
}

void stk_onednn_conv_free(stk_onednn_conv *conv)
{
    if (!conv) return;
    for (int i = 0; i < N_TENSORS; i++) {
        conv_tensor *t = &conv->tensor[i];
        if (t->plain) dnnl_memory_destroy(t->plain);
        if (t->staged) dnnl_memory_destroy(t->staged);
        if (t->reorder) dnnl_primitive_destroy(t->reorder);
        stk_md_clear(&t->plain_md);
    }
    if (conv->scratchpad) dnnl_memory_destroy(conv->scratchpad);
    if (conv->bias) dnnl_memory_destroy(conv->bias);
    stk_md_clear(&conv->bias_md);
    if (conv->primitive) dnnl_primitive_destroy(conv->primitive);
    if (conv->stream) dnnl_stream_destroy(conv->stream);
    free(conv);
}

size_t stk_onednn_conv_scratch_bytes(const stk_onednn_conv *conv)
{
    return conv->scratch_bytes;
}

const char *stk_onednn_conv_impl(const stk_onednn_conv *conv)
{
    return conv->impl;
}

bool stk_onednn_conv_is_depthwise(const stk_onednn_conv *conv)
{
    return conv->is_depthwise;
}

/* --- products --- */

stk_status stk_onednn_sgemm(const stk_sgemm *g)
{
    stk_sgemm_settle_thread();
    int before = stk_cpu_swap_thread_count(1);
    sigset_t signals;
    stk_hold_signals(&signals);
    dnnl_status_t status = dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k, 1.0f,
                                      g->a, g->a_step, g->b, g->b_step, g->adds ? 1.0f : 0.0f, g->c, g->c_step);
    stk_let_signals_come(&signals);
    stk_cpu_swap_thread_count(before);
    return stk_onednn_check(status, "product");
}

/* --- running --- */

static dnnl_status_t reorder(const stk_onednn_conv *conv, dnnl_primitive_t primitive, dnnl_memory_t from,
                             dnnl_memory_t to)
{
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return dnnl_primitive_execute(primitive, conv->stream, 2, args);
}

static dnnl_status_t run(const stk_onednn_conv *conv)
{
    dnnl_exec_arg_t args[N_TENSORS + 2];
    int n_args = 0;
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < N_TENSORS && status == dnnl_success; i++) {
        const conv_tensor *t = &conv->tensor[i];
        args[n_args++] = (dnnl_exec_arg_t){t->arg, t->staged ? t->staged : t->plain};
        if (t->reorder && i != conv->target) status = reorder(conv, t->reorder, t->plain, t->staged);
    }
    if (conv->bias) args[n_args++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, conv->bias};
    if (conv->scratchpad) args[n_args++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, conv->scratchpad};
    if (status == dnnl_success) status = dnnl_primitive_execute(conv->primitive, conv->stream, n_args, args);
    const conv_tensor *t = &conv->tensor[conv->target];
    if (status == dnnl_success && t->reorder) status = reorder(conv, t->reorder, t->staged, t->plain);
    return status == dnnl_success ? dnnl_stream_wait(conv->stream) : status;
}

stk_status stk_onednn_conv_run(const stk_onednn_conv *conv, void *x, void *weight, void *bias, void *y, void *scratch)
{
    void *data[N_TENSORS] = {[X] = x, [WEIGHT] = weight, [Y] = y};
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < N_TENSORS && status == dnnl_success; i++) {
        const conv_tensor *t = &conv->tensor[i];
        status = dnnl_memory_set_data_handle(t->plain, data[i]);
        if (status == dnnl_success && t->staged)
            status = dnnl_memory_set_data_handle(t->staged, (char *)scratch + t->offset);
    }
    if (status == dnnl_success && conv->bias) status = dnnl_memory_set_data_handle(conv->bias, bias);
    if (status == dnnl_success && conv->scratchpad) status = dnnl_memory_set_data_handle(conv->scratchpad, scratch);
    if (status == dnnl_success) {
        int before = stk_cpu_swap_thread_count(conv->n_threads);
        sigset_t signals; /* Some convolutions are products inside. */
        stk_hold_signals(&signals);
        status = run(conv);
        stk_let_signals_come(&signals);
        stk_cpu_swap_thread_count(before);
    }
    return stk_onednn_check(status, "convolution");
}

void stk_hold_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void stk_let_signals_come(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
