#include "onednn_alone.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/cpu/onednn/onednn_version.h"

enum { MOST_ARGS = 3, FORMATS = 0, SGEMM = 1 };

typedef struct alone {
    stk_device *device;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive; /* NULL: none was found */
    dnnl_exec_arg_t args[MOST_ARGS];
    void *data[MOST_ARGS];
    size_t bytes[MOST_ARGS];
    int n_args;
    stk_sgemm sgemm; /* where has_sgemm */
    bool has_sgemm;
} alone;

/* One of the three tensors: sizes as oneDNN names them, and the argument that it is. */
typedef struct operand {
    int n_dims, arg;
    dnnl_dims_t dims;
    stk_dtype dtype;
} operand;

bool onednn_alone_has(stk_op op)
{
    switch (op) {
    case STK_OP_matmul:
    case STK_OP_linear_cross_entropy:
    case STK_OP_linear_cross_entropy_grad:
    case STK_OP_conv2d:
    case STK_OP_conv2d_grad_data:
    case STK_OP_conv2d_grad_weight:
    case STK_OP_conv3d:
    case STK_OP_conv3d_grad_data:
    case STK_OP_conv3d_grad_weight: return true;
    default: return false;
    }
}

/* --- descriptors --- */

static bool describe(const operand *o, bool in_f32, stk_md *md)
{
    dnnl_data_type_t type = in_f32 || o->dtype == STK_F32 ? dnnl_f32 : o->dtype == STK_BF16 ? dnnl_bf16 : dnnl_f16;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_create_with_tag(&md->desc, o->n_dims, o->dims, type, dnnl_format_tag_any) == dnnl_success;
#else
    return dnnl_memory_desc_init_by_tag(&md->desc, o->n_dims, o->dims, type, dnnl_format_tag_any) == dnnl_success;
#endif
}

static bool make_matmul_pd(dnnl_engine_t engine, const stk_md md[3], dnnl_primitive_desc_t *out)
{
    stk_md_ref a = stk_md_get(&md[0]), b = stk_md_get(&md[1]), c = stk_md_get(&md[2]);
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_matmul_primitive_desc_create(out, engine, a, b, NULL, c, NULL) == dnnl_success;
#else
    dnnl_matmul_desc_t desc;
    return dnnl_matmul_desc_init(&desc, a, b, NULL, c) == dnnl_success &&
           dnnl_primitive_desc_create(out, &desc, NULL, engine, NULL) == dnnl_success;
#endif
}

/* a [..,M,K], b [..,K,N] and c [..,M,N]; with one b for all, rows of all matrices below each other. */
static void find_product(const stk_op_call *call, operand o[3])
{
    bool ta = call->attrs->matmul.transpose_a, tb = call->attrs->matmul.transpose_b;
    stk_shape a = call->in[0].shape, b = call->in[1].shape, c = call->out[0].shape;
    bool one_b = b.rank == 2 && !ta;
    int64_t m = one_b ? stk_shape_product(c, 0, c.rank - 1) : c.dim[c.rank - 2], n = c.dim[c.rank - 1];
    int64_t k = b.dim[b.rank - (tb ? 1 : 2)], n_batch = one_b ? 1 : stk_shape_product(a, 0, a.rank - 2);
    int64_t n_b = b.rank == 2 ? 1 : n_batch;
    o[0] = (operand){3, DNNL_ARG_SRC, {n_batch, m, k}, call->in[0].dtype};
    o[1] = (operand){3, DNNL_ARG_WEIGHTS, {n_b, k, n}, call->in[1].dtype};
    o[2] = (operand){3, DNNL_ARG_DST, {n_batch, m, n}, call->out[0].dtype};
    for (int i = 0; i < 3 && n_batch == 1; i++) {
        o[i].n_dims = 2;
        memmove(o[i].dims, o[i].dims + 1, 2 * sizeof(o[i].dims[0]));
    }
}

/* oneDNN names dimensions N, C, (D,) H, W whatever their order in memory. */
static void set_image(stk_tensor_desc desc, int arg, operand *o)
{
    int rank = desc.shape.rank;
    *o = (operand){rank, arg, {desc.shape.dim[0], desc.shape.dim[rank - 1]}, desc.dtype};
    for (int i = 2; i < rank; i++)
        o->dims[i] = desc.shape.dim[i - 1];
}

static void set_weight(stk_tensor_desc desc, int64_t groups, int arg, operand *o)
{
    set_image(desc, arg, o);
    if (groups == 1) return;
    memmove(o->dims + 1, o->dims, (size_t)o->n_dims * sizeof(o->dims[0]));
    o->n_dims++;
    o->dims[0] = groups;
    o->dims[1] /= groups;
}

/* x, weight, y. */
static stk_conv_pass find_conv(const stk_op_call *call, operand o[3])
{
    const stk_tensor_desc *in = call->in, *out = call->out;
    int64_t groups = call->attrs->window.groups;
    switch (call->op) {
    case STK_OP_conv2d_grad_data:
    case STK_OP_conv3d_grad_data:
        set_image(out[0], DNNL_ARG_DIFF_SRC, &o[0]);
        set_weight(in[1], groups, DNNL_ARG_WEIGHTS, &o[1]);
        set_image(in[0], DNNL_ARG_DIFF_DST, &o[2]);
        return STK_CONV_GRAD_DATA;
    case STK_OP_conv2d_grad_weight:
    case STK_OP_conv3d_grad_weight:
        set_image(in[0], DNNL_ARG_SRC, &o[0]);
        set_weight(out[0], groups, DNNL_ARG_DIFF_WEIGHTS, &o[1]);
        set_image(in[1], DNNL_ARG_DIFF_DST, &o[2]);
        return STK_CONV_GRAD_WEIGHT;
    default:
        set_image(in[0], DNNL_ARG_SRC, &o[0]);
        set_weight(in[1], groups, DNNL_ARG_WEIGHTS, &o[1]);
        set_image(out[0], DNNL_ARG_DST, &o[2]);
        return STK_CONV_FORWARD;
    }
}

static bool make_conv_pd(dnnl_engine_t engine, const stk_op_call *call, stk_conv_pass pass, const stk_md md[4],
                         dnnl_primitive_desc_t *out)
{
    const stk_window *w = &call->attrs->window;
    stk_dnnl_conv c = {.pass = pass, .x = stk_md_get(&md[0]), .weight = stk_md_get(&md[1]), .y = stk_md_get(&md[2])};
    c.read_weight = stk_md_get(&md[3]);
    for (int i = 0; i < call->in[0].shape.rank - 2; i++) {
        c.strides[i] = w->stride[i];
        c.dilates[i] = w->dilation[i] - 1;
        c.pad_low[i] = w->pad_low[i];
        c.pad_high[i] = w->pad_high[i];
    }
    return stk_dnnl_conv_pd(engine, &c, NULL, out) == dnnl_success;
}

/* --- opening --- */

/* Memory as programs have it: zeroed, and in huge pages where the system has them. */
static bool add_arg(alone *a, const_dnnl_primitive_desc_t pd, int arg)
{
    stk_md_ref md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
    dnnl_memory_t memory;
    if (!md) return false;
    size_t bytes = dnnl_memory_desc_get_size(md);
    void *data;
    if (a->device->class->alloc(a->device, bytes, STK_MEMORY_ZEROED, &data) != STK_OK) return false;
    memset(data, 0, bytes);
    a->data[a->n_args] = data;
    a->bytes[a->n_args] = bytes;
    if (dnnl_memory_create(&memory, md, a->engine, data) != dnnl_success) return false;
    a->args[a->n_args++] = (dnnl_exec_arg_t){arg, memory};
    return true;
}

/* One product in f32 is also sgemm's, on the memory of the same three. */
static void find_sgemm(const stk_op_call *call, const operand o[3], alone *a)
{
    int64_t m = o[0].dims[0], k = o[0].dims[1], n = o[1].dims[1];
    bool ta = call->attrs->matmul.transpose_a, tb = call->attrs->matmul.transpose_b;
    if (o[0].n_dims != 2 || o[0].dtype != STK_F32) return;
    a->sgemm = (stk_sgemm){m, n, k, ta, tb, .a_step = ta ? m : k, .b_step = tb ? k : n, .c_step = n};
    a->sgemm.a = a->data[0], a->sgemm.b = a->data[1], a->sgemm.c = a->data[2];
    a->has_sgemm = true;
}

static bool open_alone(alone *a, const stk_op_call *call, bool in_f32)
{
    operand o[4];
    stk_md md[4] = {0};
    dnnl_primitive_desc_t pd = NULL;
    bool is_product = call->op == STK_OP_matmul;
    stk_conv_pass pass = STK_CONV_FORWARD;
    if (is_product)
        find_product(call, o);
    else
        pass = find_conv(call, o);
    o[3] = o[1]; /* the weight as it is read, whatever its gradient is */
    o[3].dtype = o[0].dtype;
    bool ok = dnnl_engine_create(&a->engine, dnnl_cpu, 0) == dnnl_success &&
              dnnl_stream_create(&a->stream, a->engine, dnnl_stream_default_flags) == dnnl_success;
    for (int i = 0; i < 4 && ok; i++)
        ok = describe(&o[i], in_f32, &md[i]);
    ok = ok && (is_product ? make_matmul_pd(a->engine, md, &pd) : make_conv_pd(a->engine, call, pass, md, &pd));
    for (int i = 0; i < 3 && ok; i++)
        ok = add_arg(a, pd, o[i].arg);
    ok = ok && dnnl_primitive_create(&a->primitive, pd) == dnnl_success;
    if (ok && is_product) find_sgemm(call, o, a);
    if (pd) dnnl_primitive_desc_destroy(pd);
    for (int i = 0; i < 4; i++)
        stk_md_clear(&md[i]);
    return ok;
}

static void close_alone(alone *a)
{
    for (int i = 0; i < a->n_args; i++)
        dnnl_memory_destroy(a->args[i].memory);
    for (int i = 0; i < MOST_ARGS; i++)
        if (a->data[i]) a->device->class->free(a->device, a->data[i], a->bytes[i]);
    if (a->primitive) dnnl_primitive_destroy(a->primitive);
    if (a->stream) dnnl_stream_destroy(a->stream);
    if (a->engine) dnnl_engine_destroy(a->engine);
}

/* --- timing --- */

static bool run_way(alone *a, int way)
{
    const stk_sgemm *g = &a->sgemm;
    if (way == SGEMM)
        return dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k, 1.0f, g->a,
                          g->a_step, g->b, g->b_step, 0.0f, g->c, g->c_step) == dnnl_success;
    return dnnl_primitive_execute(a->primitive, a->stream, a->n_args, a->args) == dnnl_success &&
           dnnl_stream_wait(a->stream) == dnnl_success;
}

/* With one thread the processor's, which other work on the machine disturbs least. */
static int64_t now_ns(const alone *a)
{
    struct timespec t;
    if (a->device->n_threads > 1) return stk_clock_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static stk_status time_ways(alone *a, double seconds, double *ns)
{
    int n_ways = a->has_sgemm ? 2 : 1;
    int64_t end = 0;
    *ns = 1e30;
    for (int i = 0; i < 3 || stk_clock_ns() < end; i++) {
        if (i == 1) end = stk_clock_ns() + (int64_t)(seconds * 1e9);
        for (int way = 0; way < n_ways; way++) {
            int64_t start = now_ns(a);
            if (!run_way(a, way)) return stk_fail(STK_DEVICE, "oneDNN failed");
            double took = (double)(now_ns(a) - start);
            if (took > 0 && took < *ns) *ns = took;
        }
    }
    return STK_OK;
}

static stk_status time_one(stk_device *device, const stk_op_call *call, double seconds, double *ns, bool *is_f32)
{
    stk_status status = STK_OK;
    alone a = {.device = device};
    bool is_half = call->in[0].dtype != STK_F32, ok = open_alone(&a, call, false);
    *is_f32 = false;
    if (!ok && is_half) {
        close_alone(&a);
        a = (alone){.device = device};
        ok = *is_f32 = open_alone(&a, call, true);
    }
    status = ok ? time_ways(&a, seconds, ns) : stk_fail(STK_UNSUPPORTED, "oneDNN has no such product or convolution");
    close_alone(&a);
    return status;
}

/* The products of a loss over a vocabulary: logits = x w', and for the gradient dx = dlogits w and dw = dlogits' x. */
static stk_status time_loss(stk_device *device, const stk_op_call *call, double seconds, double *ns, bool *is_f32)
{
    stk_tensor_desc x = call->in[0], w = call->in[1], logits = {x.dtype, {.rank = 2}};
    logits.shape.dim[0] = x.shape.dim[0];
    logits.shape.dim[1] = w.shape.dim[0];
    const struct {
        stk_tensor_desc in[2], out;
        bool ta, tb;
    } product[] = {{{x, w}, logits, false, true}, {{logits, w}, x, false, false}, {{logits, x}, w, true, false}};
    int n = call->op == STK_OP_linear_cross_entropy ? 1 : 3;
    *ns = 0;
    for (int i = 0; i < n; i++) {
        stk_attrs attrs = stk_attrs_zero();
        attrs.matmul.transpose_a = product[i].ta;
        attrs.matmul.transpose_b = product[i].tb;
        stk_tensor_desc out = product[i].out;
        stk_op_call one = {STK_OP_matmul, &attrs, 2, 1, product[i].in, &out};
        double took;
        STK_RETURN_IF_ERROR(time_one(device, &one, seconds, &took, is_f32));
        *ns += took;
    }
    return STK_OK;
}

stk_status onednn_alone_time(stk_device *device, const stk_op_call *call, double seconds, double *ns, bool *is_f32)
{
    if (call->op == STK_OP_linear_cross_entropy || call->op == STK_OP_linear_cross_entropy_grad)
        return time_loss(device, call, seconds, ns, is_f32);
    return time_one(device, call, seconds, ns, is_f32);
}
