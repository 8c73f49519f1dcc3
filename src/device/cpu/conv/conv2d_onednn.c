/* Threads take some images each, with an operation of their own: oneDNN's team of threads would spin against ours. Only
 * where images are fewer than threads it is used. Gradients of weights are sums of each part's images; they are added
 * up in the order of the parts.
 */
#include "device/cpu/conv/conv2d_onednn.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/hash.h"
#include "device/cpu/conv/conv2d_finish.h"
#include "device/cpu/conv/conv2d_pack.h"
#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/conv/conv2d_winograd.h"
#include "device/cpu/conv/depthwise.h"

typedef struct conv_state {
    stk_onednn_conv **conv; /* of each part */
    stk_conv_pass pass;
    int n_parts, n_threads;
    size_t x_step, y_step; /* bytes of a part's images */
    int64_t n_weights;
    size_t sums_bytes;         /* of the weights' gradients of a part; 0: not for weights, or one part */
    size_t part_bytes;         /* of a part's other scratch */
    stk_conv_packing packing;  /* of the weights, which all parts share */
    const stk_tile_fns *tiles; /* which do it; NULL: nothing is packed */
    bool has_bias, has_relu;
    stk_dtype dtype;
    const stk_conv_finish_fns *finish;
    int64_t n_channels, n_pixels, last_pixels; /* of what is finished: of a part, and of the last one */
} conv_state;

typedef struct conv_task {
    const conv_state *s;
    const stk_kernel_args *args;
    _Atomic int *failed;
} conv_task;

enum { PACKS_A_THREAD = 4 };

/* Kept, or behind what the parts have; sums are for the other pass. */
static void *packed_weight(const conv_state *s, const stk_kernel_args *args)
{
    /* oneDNN's handles are not const; weights are only read. */
    if (args->packed) return (void *)(uintptr_t)args->packed;
    return (char *)args->scratch + s->part_bytes * (size_t)s->n_parts;
}

static void pack_share(const void *p, int i_share, int n_shares)
{
    const conv_task *task = p;
    const conv_state *s = task->s;
    stk_conv_pack_share(s->tiles, &s->packing, task->args->in[1], NULL, packed_weight(s, task->args), i_share,
                        n_shares);
}

static void keep_share(const void *p, int i_share, int n_shares)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const stk_kernel_args *args = task->args;
    stk_conv_pack_share(s->tiles, &s->packing, NULL, args->in[0], args->out[0], i_share, n_shares);
}

static stk_status pack_weight(const void *p, const stk_kernel_args *args)
{
    const conv_state *s = p;
    stk_cpu_parallel(PACKS_A_THREAD * s->n_threads, keep_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

/* What oneDNN leaves to us: ReLU, and the bias of a gradient of data. */
static void finish(const conv_state *s, int64_t n_pixels, void *y, const float *bias)
{
    bool is_bf16 = s->dtype == STK_BF16;
    if (bias && is_bf16)
        s->finish->rows_bf16(n_pixels, s->n_channels, y, bias, s->has_relu);
    else if (bias)
        s->finish->rows(n_pixels, s->n_channels, y, bias, s->has_relu);
    else if (s->has_relu && is_bf16)
        s->finish->relu_bf16(n_pixels * s->n_channels, y);
    else if (s->has_relu)
        s->finish->rows(1, n_pixels * s->n_channels, y, NULL, true);
}

static void run_part(const void *p, int i_part, int n_parts)
{
    (void)n_parts;
    const conv_task *task = p;
    const conv_state *s = task->s;
    const stk_kernel_args *args = task->args;
    char *sums = args->scratch, *own = sums + s->sums_bytes * (size_t)s->n_parts + s->part_bytes * (size_t)i_part;
    char *x = s->pass == STK_CONV_GRAD_DATA ? args->out[0] : args->in[0];
    char *y = s->pass == STK_CONV_FORWARD ? args->out[0] : s->pass == STK_CONV_GRAD_DATA ? args->in[0] : args->in[1];
    char *weight = s->pass != STK_CONV_GRAD_WEIGHT ? args->in[1] : args->out[0];
    if (s->packing.kind != STK_PACK_NONE) weight = packed_weight(s, args);
    if (s->sums_bytes) weight = sums + s->sums_bytes * (size_t)i_part;
    x += s->x_step * (size_t)i_part;
    y += s->y_step * (size_t)i_part;
    bool is_data = s->pass == STK_CONV_GRAD_DATA;
    float *bias = s->has_bias ? args->in[2] : NULL;
    stk_status status = stk_onednn_conv_run(s->conv[i_part], x, weight, is_data ? NULL : bias, y, own);
    if (status != STK_OK) atomic_store(task->failed, (int)status);
    if (s->pass == STK_CONV_GRAD_WEIGHT) return;
    finish(s, i_part + 1 == s->n_parts ? s->last_pixels : s->n_pixels, is_data ? x : y, is_data ? bias : NULL);
}

static void add_share(const void *p, int i_share, int n_shares)
{
    const conv_task *task = p;
    const conv_state *s = task->s;
    const float *sums = task->args->scratch;
    float *out = task->args->out[0];
    int64_t begin, end, step = (int64_t)(s->sums_bytes / sizeof(float));
    stk_cpu_share(s->n_weights, 64, i_share, n_shares, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        out[i] = sums[i] + sums[step + i];
    for (int part = 2; part < s->n_parts; part++)
        for (int64_t i = begin; i < end; i++)
            out[i] += sums[part * step + i];
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const conv_state *s = p;
    _Atomic int failed = STK_OK;
    conv_task task = {s, args, &failed};
    bool packs = s->packing.kind != STK_PACK_NONE && !args->packed;
    if (packs) stk_cpu_parallel(PACKS_A_THREAD * s->n_threads, pack_share, &task);
    stk_cpu_parallel(s->n_parts, run_part, &task);
    /* The text was kept in the thread that failed. */
    if (failed != STK_OK) return stk_fail((stk_status)failed, "oneDNN's convolution failed");
    if (s->sums_bytes) stk_cpu_parallel(s->n_threads, add_share, &task);
    return STK_OK;
}

static void free_parts(conv_state *s)
{
    for (int i = 0; s->conv && i < s->n_parts; i++)
        stk_onednn_conv_free(s->conv[i]);
    free(s->conv);
    s->conv = NULL;
    s->part_bytes = 0;
}

static void release(void *p)
{
    free_parts(p);
    free(p);
}

static bool is_same_packing(const stk_conv_packing *a, const stk_conv_packing *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->block == b->block && a->o_step == b->o_step &&
           a->c_step == b->c_step && a->y_step == b->y_step && a->x_step == b->x_step;
}

static uint64_t layout_of(const stk_conv_packing *p)
{
    const int64_t about[] = {(int64_t)p->kind, p->o,      p->kernel_h, p->kernel_w, p->c,      p->padded_o, p->padded_c,
                             p->block,         p->o_step, p->c_step,   p->y_step,   p->x_step, p->is_turned};
    return stk_hash64(about, sizeof(about), 'c');
}

/* Of a 1x1 convolution without stride, where only pixels count. oneDNN then takes more of them to the weights that it
 * has in the cache, which small images would not give it. */
static bool is_one_image(const stk_conv_shape *s)
{
    const stk_window *w = &s->window;
    return s->pass == STK_CONV_FORWARD && s->x.rank == 4 && s->weight.dim[1] == 1 && s->weight.dim[2] == 1 &&
           w->stride[0] == 1 && w->stride[1] == 1 && !w->pad_low[0] && !w->pad_low[1] && !w->pad_high[0] &&
           !w->pad_high[1];
}

static void join_images(stk_shape *s)
{
    s->dim[1] *= s->dim[0];
    s->dim[0] = 1;
}

/* *agree: every part wants the weights packed alike; meaningless where packs is false. */
static stk_status make_parts(const stk_cpu_device *device, const stk_conv_shape *shape, stk_dtype dtype, bool packs,
                             conv_state *s, bool *agree)
{
    int64_t n_images = shape->x.dim[0];
    int64_t images = s->n_threads > n_images ? n_images : (n_images + s->n_threads - 1) / s->n_threads;
    size_t bytes = stk_dtype_bytes(dtype);
    int n_parts = (int)((n_images + images - 1) / images), threads = n_parts > 1 ? 1 : s->n_threads;
    s->x_step = (size_t)(stk_shape_count(shape->x) / n_images * images) * bytes;
    s->y_step = (size_t)(stk_shape_count(shape->y) / n_images * images) * bytes;
    stk_shape to = shape->pass == STK_CONV_GRAD_DATA ? shape->x : shape->y;
    int64_t image_pixels = stk_shape_product(to, 1, to.rank - 1);
    s->n_channels = to.dim[to.rank - 1];
    s->n_pixels = image_pixels * images;
    s->last_pixels = image_pixels * n_images - s->n_pixels * (n_parts - 1);
    s->n_weights = stk_shape_count(shape->weight);
    if (shape->pass == STK_CONV_GRAD_WEIGHT && n_parts > 1)
        s->sums_bytes = stk_round_up((size_t)s->n_weights * sizeof(float), 64);
    s->conv = calloc((size_t)n_parts, sizeof(*s->conv));
    if (!s->conv) return stk_fail_memory((size_t)n_parts * sizeof(*s->conv));
    bool joins = is_one_image(shape);
    *agree = true;
    for (s->n_parts = 0; s->n_parts < n_parts; s->n_parts++) {
        stk_conv_shape part = *shape;
        stk_conv_packing packing = {.kind = STK_PACK_NONE};
        int64_t left = n_images - s->n_parts * images;
        part.x.dim[0] = part.y.dim[0] = left < images ? left : images;
        if (shape->pass != STK_CONV_FORWARD) part.has_bias = false;
        if (joins) join_images(&part.x), join_images(&part.y);
        STK_RETURN_IF_ERROR(
            stk_onednn_conv_new(device->onednn, &part, dtype, threads, packs ? &packing : NULL, &s->conv[s->n_parts]));
        if (!s->n_parts) s->packing = packing;
        if (!is_same_packing(&packing, &s->packing)) *agree = false;
        size_t scratch = stk_round_up(stk_onednn_conv_scratch_bytes(s->conv[s->n_parts]), 64);
        if (scratch > s->part_bytes) s->part_bytes = scratch;
    }
    return STK_OK;
}

/* Where the gradient of data is faster as a convolution of grad_dst with the weights turned round: as measured, with
 * many channels and rows that are not too short, and 1x1 into fewer channels. */
static bool turns_round(const stk_conv_shape *s, stk_dtype dtype)
{
    enum { FEW = 128, SHORT = 7 }; /* channels; pixels of a row */
    const stk_window *w = &s->window;
    if (dtype != STK_BF16 || s->pass != STK_CONV_GRAD_DATA || s->x.rank != 4 || w->groups != 1) return false;
    for (int i = 0; i < 2; i++) {
        int64_t most = (int64_t)w->dilation[i] * (s->weight.dim[i + 1] - 1);
        if (w->stride[i] != 1 || w->pad_low[i] > most || w->pad_high[i] > most) return false;
    }
    int64_t o = s->weight.dim[0], c = s->weight.dim[3];
    return s->weight.dim[1] * s->weight.dim[2] > 1 ? c >= FEW && s->x.dim[2] >= SHORT : c <= FEW && o >= c;
}

static stk_conv_shape turn_round(const stk_conv_shape *s)
{
    stk_conv_shape t = *s;
    t.pass = STK_CONV_FORWARD;
    t.x = s->y, t.y = s->x;
    t.weight.dim[0] = s->weight.dim[3], t.weight.dim[3] = s->weight.dim[0];
    for (int i = 0; i < 2; i++) {
        int32_t most = s->window.dilation[i] * (int32_t)(s->weight.dim[i + 1] - 1);
        t.window.pad_low[i] = most - s->window.pad_low[i];
        t.window.pad_high[i] = most - s->window.pad_high[i];
    }
    return t;
}

/* STK_UNSUPPORTED: not turned round, since the weights are to be packed in another way. */
static stk_status make_turned(const stk_cpu_device *device, const stk_conv_shape *shape, stk_dtype dtype, conv_state *s)
{
    stk_conv_shape turned = turn_round(shape);
    bool agree;
    STK_RETURN_IF_ERROR(make_parts(device, &turned, dtype, true, s, &agree));
    if (!agree || s->packing.kind != STK_PACK_IN_PAIRS) return STK_UNSUPPORTED;
    s->packing.is_turned = true;
    s->pass = turned.pass;
    return STK_OK;
}

static stk_status make_straight(const stk_cpu_device *device, const stk_conv_shape *shape, stk_dtype dtype,
                                conv_state *s)
{
    bool agree;
    STK_RETURN_IF_ERROR(make_parts(device, shape, dtype, s->tiles != NULL, s, &agree));
    if (agree) return STK_OK;
    free_parts(s);
    return make_parts(device, shape, dtype, false, s, &agree);
}

/* --- for which calls --- */

/* Each thread has sums of its own for a gradient of weights, which costs more than the arithmetic where pixels are few.
 */
bool stk_conv_onednn_has_bf16(const stk_cpu_device *device, const stk_op_call *call)
{
    enum { FEW = 64, FEW_IN_ALL = 8192 }; /* pixels of an image, and of all */
    stk_conv_shape s = stk_conv_shape_of(call);
    if (call->in[0].dtype != STK_BF16 || !stk_isa_has_bf16(device->isa)) return false;
    int64_t pixels = s.y.dim[1] * s.y.dim[2];
    bool has_few = s.y.rank == 4 && pixels <= FEW && s.y.dim[0] * pixels <= FEW_IN_ALL;
    return s.pass != STK_CONV_GRAD_WEIGHT || !has_few || !stk_conv_is_winograd(&s);
}

bool stk_conv_onednn_can_bf16(const stk_cpu_device *device, const stk_op_call *call)
{
    return call->in[0].dtype == STK_BF16 && stk_isa_has_bf16(device->isa);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool stk_conv_onednn_overruns(const stk_conv_shape *s)
{
    enum { LONGEST_VECTOR = 16 };
    bool has_stride = s->window.stride[0] > 1 || s->window.stride[1] > 1;
    return s->pass == STK_CONV_GRAD_WEIGHT && s->x.rank == 4 && s->window.groups == 1 && has_stride &&
           s->weight.dim[1] == 1 && s->weight.dim[2] == 1 && s->weight.dim[3] < LONGEST_VECTOR;
}

/* With AVX-512, whose vectors are as long as a few channels (docs/kernels.md): our tiles are 32 of them wide. */
bool stk_conv_onednn_is_faster(const stk_cpu_device *device, const stk_op_call *call)
{
    enum { A_VECTOR = 16, FEW = 32 };
    stk_conv_shape s = stk_conv_shape_of(call);
    if (call->in[0].dtype != STK_F32 || device->isa != STK_ISA_AVX512 || s.x.rank != 4 || stk_conv_onednn_overruns(&s))
        return false;
    int64_t c = smaller(s.x.dim[3], s.y.dim[3]);
    if (stk_conv_is_depthwise(&s)) return true;
    if (s.window.groups > 1) return false; /* It is oneDNN's in any case. */
    if (stk_conv_is_point(&s)) return c <= FEW;
    if (s.pass == STK_CONV_GRAD_WEIGHT) return c <= FEW && !stk_conv_is_winograd(&s);
    return c <= A_VECTOR;
}

bool stk_conv_onednn_in_f32(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    stk_conv_shape s = stk_conv_shape_of(call);
    return call->in[0].dtype == STK_F32 && !stk_conv_onednn_overruns(&s);
}

stk_status stk_conv_onednn_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_conv_shape whole = stk_conv_shape_of(call), *shape = &whole;
    stk_dtype dtype = call->in[0].dtype;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(conv_state), run, out));
    conv_state *s = out->state;
    out->release = release;
    s->pass = shape->pass;
    s->n_threads = device->base.n_threads;
    s->has_bias = shape->has_bias;
    s->has_relu = shape->has_relu;
    s->dtype = dtype;
    s->finish = stk_conv_finish_of(device->isa);
    s->tiles = stk_bf16_tile_of(device->isa);
    stk_status status = s->tiles && turns_round(shape, dtype) ? make_turned(device, shape, dtype, s) : STK_UNSUPPORTED;
    if (status == STK_UNSUPPORTED) {
        free_parts(s);
        status = make_straight(device, shape, dtype, s);
    }
    STK_RETURN_IF_ERROR(status);
    if (stk_conv_is_depthwise(shape) && !stk_onednn_conv_is_depthwise(s->conv[0]))
        return stk_fail(STK_UNSUPPORTED, "oneDNN has no depthwise convolution for this shape");
    out->library_bytes = STK_ONEDNN_BYTES;
    out->scratch_bytes = (s->sums_bytes + s->part_bytes) * (size_t)s->n_parts + s->packing.bytes;
    out->impl = stk_onednn_conv_impl(s->conv[0]);
    if (s->packing.kind != STK_PACK_NONE) {
        out->packed_bytes = s->packing.bytes;
        out->packed_layout = layout_of(&s->packing);
        out->packed_input = 1;
        out->pack = pack_weight;
    }
    return STK_OK;
}
