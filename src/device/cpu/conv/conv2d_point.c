/* A 1x1 convolution is a product, and so is the gradient of its data: pixels by channels, times the weights. Threads
 * take some rows of pixels each, and oneDNN's sgemm multiplies them (matmul_onednn.h). With a stride, the pixels that
 * a convolution reads are gathered in the thread's scratch memory before, and those of a gradient are spread behind;
 * there 16-bit floats become f32 before and are rounded behind.
 *
 * So is the gradient of few weights, a long sum over the pixels: each part has sums of its own, which are added up in
 * the order of the parts. That of many weights has a kernel of its own (conv2d_weight_point.h).
 */
#include "device/cpu/conv/conv2d_point.h"

#include <stdatomic.h>
#include <string.h>

#include "device/cpu/conv/conv2d_finish.h"
#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/element/element.h"
#include "device/cpu/matmul/matmul_onednn.h"
#include "device/cpu/onednn/sgemm_memory.h"

typedef struct point_state {
    stk_conv_pass pass;
    int n_threads, n_parts;
    stk_element_fn widen, narrow; /* of 16-bit floats; NULL: f32 */
    size_t bytes;                 /* of an element of inputs and outputs */
    bool is_strided;
    int64_t n_pixels;         /* outputs of the convolution, of all images */
    int64_t part_pixels;      /* most of a part */
    int64_t k, n;             /* channels that are summed over, and those of the result; for weights, of x and y */
    int64_t weight_step;      /* elements */
    int64_t in_h, in_w, h, w; /* of the convolution's input and output */
    int64_t stride_y, stride_x;
    const stk_conv_finish_fns *finish; /* NULL: nothing to do */
    bool has_bias, has_relu;
    /* Scratch: the weights in f32, then each part's or thread's. */
    size_t weight_bytes, part_bytes;
    size_t in_bytes; /* of a thread's, what comes before its results */
} point_state;

/* Pixels that a thread takes at a time: weights are packed for each part, so that few pixels would not pay. */
enum { LEAST_PIXELS = 128, USUAL_PIXELS = 512, PARTS_A_THREAD = 4 };

/* Weights whose gradient is a sum for each part. */
enum { MOST_WEIGHTS = 256 * 128 };

bool stk_conv_point_can(const stk_cpu_device *device, const stk_op_call *call)
{
    const stk_conv_shape whole = stk_conv_shape_of(call), *s = &whole;
    const stk_window *w = &s->window;
    stk_dtype dtype = call->in[0].dtype;
    if (dtype != STK_F32 && !stk_cpu_has_half(device, call)) return false;
    if (device->isa == STK_ISA_BASELINE || !stk_conv_is_point(s)) return false;
    bool spreads = s->pass == STK_CONV_GRAD_DATA && (w->stride[0] > 1 || w->stride[1] > 1);
    if (spreads && stk_conv_has_finish(s)) return false; /* Pixels that no product reaches have a bias, too. */
    int64_t n_pixels = stk_shape_product(s->y, 0, 3);
    bool is_strided = w->stride[0] > 1 || w->stride[1] > 1;
    if (s->pass == STK_CONV_GRAD_WEIGHT && (dtype != STK_F32 || is_strided)) return false;
    return n_pixels / device->base.n_threads >= LEAST_PIXELS &&
           stk_sgemm_pays(n_pixels, s->weight.dim[0], s->weight.dim[3]);
}

bool stk_conv_point_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_conv_shape s = stk_conv_shape_of(call);
    return stk_conv_point_can(device, call) &&
           (s.pass != STK_CONV_GRAD_WEIGHT || stk_shape_count(s.weight) <= MOST_WEIGHTS);
}

/* --- strides --- */

/* Where output pixel i reads, counted in pixels of the input. */
static int64_t input_pixel(const point_state *s, int64_t i)
{
    int64_t x = i % s->w, y = i / s->w % s->h, image = i / s->w / s->h;
    return (image * s->in_h + y * s->stride_y) * s->in_w + x * s->stride_x;
}

/* n elements as they are stored into f32, and back. */
static void read_row(const point_state *s, const char *from, int64_t n, float *to)
{
    const void *src = from;
    if (s->widen)
        s->widen(n, to, &src);
    else
        memcpy(to, from, (size_t)n * sizeof(float));
}

static void write_row(const point_state *s, const float *from, int64_t n, char *to)
{
    const void *src = from;
    if (s->narrow)
        s->narrow(n, to, &src);
    else
        memcpy(to, from, (size_t)n * sizeof(float));
}

static void gather(const point_state *s, const char *x, int64_t begin, int64_t end, float *to)
{
    for (int64_t i = begin; i < end; i++, to += s->k)
        read_row(s, x + (size_t)(input_pixel(s, i) * s->k) * s->bytes, s->k, to);
}

/* Each output pixel answers for the input pixels up to the next one: it gives the first its sums, the others zeros. */
static void spread(const point_state *s, const float *from, int64_t begin, int64_t end, char *dx)
{
    size_t pixel = (size_t)s->n * s->bytes;
    for (int64_t i = begin; i < end; i++, from += s->n) {
        int64_t x = i % s->w * s->stride_x, y = i / s->w % s->h * s->stride_y, at = input_pixel(s, i);
        int64_t cols = s->in_w - x < s->stride_x ? s->in_w - x : s->stride_x;
        int64_t rows = s->in_h - y < s->stride_y ? s->in_h - y : s->stride_y;
        for (int64_t r = 0; r < rows; r++)
            memset(dx + (size_t)(at + r * s->in_w) * pixel, 0, (size_t)cols * pixel);
        write_row(s, from, s->n, dx + (size_t)at * pixel);
    }
}

/* --- running --- */

typedef struct point_task {
    const point_state *state;
    const stk_kernel_args *args;
    _Atomic int *failed;
} point_task;

static void run_part(const void *p, int i_part, int n_parts)
{
    const point_task *task = p;
    const point_state *s = task->state;
    const char *x = task->args->in[0];
    char *y = task->args->out[0], *scratch = task->args->scratch;
    char *own = scratch + s->weight_bytes + (size_t)stk_cpu_worker() * s->part_bytes;
    float *sums = (float *)(void *)(own + s->in_bytes);
    int64_t begin, end;
    bool is_forward = s->pass == STK_CONV_FORWARD;
    stk_cpu_share(s->n_pixels, 6, i_part, n_parts, &begin, &end);
    stk_sgemm g = {.m = end - begin, .n = s->n, .k = s->k, .transpose_b = is_forward};
    if (begin == end) return;
    bool gathers = s->is_strided && is_forward, spreads = s->is_strided && !is_forward;
    x += (size_t)(gathers ? 0 : begin * s->k) * s->bytes;
    y += (size_t)(spreads ? 0 : begin * s->n) * s->bytes;
    if (gathers)
        gather(s, x, begin, end, (float *)(void *)own);
    else if (s->widen)
        read_row(s, x, (end - begin) * s->k, (float *)(void *)own);
    g.a = (const float *)(const void *)(gathers || s->widen ? own : x);
    g.c = spreads || s->narrow ? sums : (float *)(void *)y;
    g.b = s->widen ? task->args->scratch : task->args->in[1];
    g.a_step = s->k;
    g.b_step = s->weight_step;
    g.c_step = s->n;
    stk_status status = stk_onednn_sgemm(&g);
    if (status != STK_OK) atomic_store(task->failed, (int)status);
    if (s->finish) s->finish->rows(end - begin, s->n, g.c, s->has_bias ? task->args->in[2] : NULL, s->has_relu);
    if (spreads)
        spread(s, sums, begin, end, y);
    else if (s->narrow)
        write_row(s, sums, (end - begin) * s->n, y);
}

static void run_weight_part(const void *p, int i_part, int n_parts)
{
    const point_task *task = p;
    const point_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n_pixels, 1, i_part, n_parts, &begin, &end);
    stk_sgemm g = {.m = s->n, .n = s->k, .k = end - begin, .transpose_a = true};
    g.a = (const float *)task->args->in[1] + begin * s->n;
    g.b = (const float *)task->args->in[0] + begin * s->k;
    g.c = (float *)((char *)task->args->scratch + (size_t)i_part * s->part_bytes);
    g.a_step = s->n;
    g.b_step = g.c_step = s->k;
    stk_status status = stk_onednn_sgemm(&g);
    if (status != STK_OK) atomic_store(task->failed, (int)status);
}

static void add_weight_part(const void *p, int i_part, int n_parts)
{
    const point_task *task = p;
    const point_state *s = task->state;
    const float *sums = task->args->scratch;
    float *out = task->args->out[0];
    int64_t begin, end, step = (int64_t)(s->part_bytes / sizeof(float));
    stk_cpu_share(s->n * s->k, 16, i_part, n_parts, &begin, &end);
    memcpy(out + begin, sums + begin, (size_t)(end - begin) * sizeof(float));
    for (int part = 1; part < s->n_parts; part++)
        for (int64_t i = begin; i < end; i++)
            out[i] += sums[part * step + i];
}

static stk_status run_weight(const void *p, const stk_kernel_args *args)
{
    const point_state *s = p;
    _Atomic int failed = STK_OK;
    point_task task = {s, args, &failed};
    stk_cpu_parallel(s->n_parts, run_weight_part, &task);
    stk_cpu_parallel(s->n_threads, add_weight_part, &task);
    return failed == STK_OK ? STK_OK : stk_fail((stk_status)failed, "oneDNN's product failed");
}

/* Many: the threads share these, or, where their parts would be small, the pixels (matmul_onednn.h). */
static stk_status run_many_weights(const void *p, const stk_kernel_args *args)
{
    const point_state *s = p;
    stk_sgemm g = {.m = s->n, .n = s->k, .k = s->n_pixels, .transpose_a = true, .c = args->out[0]};
    g.a = args->in[1];
    g.b = args->in[0];
    g.a_step = s->n;
    g.b_step = g.c_step = s->k;
    return s->n_parts > 1 ? stk_sgemm_run_deep(&g, s->n_parts, s->n_threads, args->scratch)
                          : stk_sgemm_run(&g, s->n_threads);
}

static void widen_weight_part(const void *p, int i_part, int n_parts)
{
    const point_task *task = p;
    const point_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n * s->k, 64, i_part, n_parts, &begin, &end);
    read_row(s, (const char *)task->args->in[1] + (size_t)begin * s->bytes, end - begin,
             (float *)task->args->scratch + begin);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const point_state *s = p;
    _Atomic int failed = STK_OK;
    point_task task = {s, args, &failed};
    if (s->widen) stk_cpu_parallel(s->n_threads, widen_weight_part, &task);
    stk_cpu_parallel(s->n_parts, run_part, &task);
    /* The text was kept in the thread that failed. */
    return failed == STK_OK ? STK_OK : stk_fail((stk_status)failed, "oneDNN's product failed");
}

/* As many parts as even out what the threads take, where each is large enough. */
static void cut(point_state *s)
{
    int64_t most = (s->n_pixels + s->n_threads - 1) / s->n_threads, part = (most + PARTS_A_THREAD - 1) / PARTS_A_THREAD;
    if (part < USUAL_PIXELS) part = most < USUAL_PIXELS ? most : USUAL_PIXELS;
    /* What is copied or swept again stays in the cache. */
    if ((s->is_strided || s->widen || s->finish) && part > 2 * USUAL_PIXELS) part = 2 * USUAL_PIXELS;
    s->n_parts = (int)((s->n_pixels + part - 1) / part);
    s->part_pixels = (s->n_pixels + s->n_parts - 1) / s->n_parts + 6; /* cut at multiples of 6 */
}

static size_t floats(int64_t n)
{
    return ((size_t)n * sizeof(float) + 63) / 64 * 64;
}

stk_status stk_conv_point_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_conv_shape whole = stk_conv_shape_of(call), *shape = &whole;
    stk_dtype dtype = call->in[0].dtype;
    const stk_element_table *table = stk_element_of(device->isa);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(point_state), run, out));
    point_state *s = out->state;
    bool is_forward = shape->pass == STK_CONV_FORWARD;
    int64_t c = shape->weight.dim[3], o = shape->weight.dim[0];
    *s = (point_state){.pass = shape->pass,
                       .n_threads = device->base.n_threads,
                       .n_pixels = stk_shape_product(shape->y, 0, 3),
                       .k = is_forward ? c : o,
                       .n = is_forward ? o : c,
                       .weight_step = c,
                       .in_h = shape->x.dim[1],
                       .in_w = shape->x.dim[2],
                       .h = shape->y.dim[1],
                       .w = shape->y.dim[2],
                       .stride_y = shape->window.stride[0],
                       .stride_x = shape->window.stride[1],
                       .has_bias = shape->has_bias,
                       .has_relu = shape->has_relu,
                       .bytes = stk_dtype_bytes(dtype)};
    if (stk_conv_has_finish(shape)) s->finish = stk_conv_finish_of(device->isa);
    if (dtype != STK_F32) s->widen = table->cast[dtype][STK_F32], s->narrow = table->cast[STK_F32][dtype];
    s->is_strided = s->stride_y > 1 || s->stride_x > 1;
    cut(s);
    if (shape->pass == STK_CONV_GRAD_WEIGHT) {
        s->k = c, s->n = o;
        if (o * c > MOST_WEIGHTS) {
            out->run = run_many_weights;
            s->n_parts = stk_sgemm_depth(o, c, s->n_pixels, s->n_threads);
            out->scratch_bytes = stk_sgemm_deep_bytes(o, c, s->n_parts);
            out->library_bytes = STK_ONEDNN_BYTES + stk_sgemm_library_bytes(o, c, s->n_pixels, s->n_threads);
            return STK_OK;
        }
        out->run = run_weight;
        s->n_parts = s->n_threads == 1 ? 1 : s->n_threads * PARTS_A_THREAD;
        s->part_bytes = floats(o * c);
        out->scratch_bytes = s->part_bytes * (size_t)s->n_parts;
        int64_t most_pixels = (s->n_pixels + s->n_parts - 1) / s->n_parts;
        out->library_bytes = STK_ONEDNN_BYTES + (size_t)s->n_threads * stk_sgemm_packing_bytes(s->n, s->k, most_pixels);
        return STK_OK;
    }
    out->library_bytes = STK_ONEDNN_BYTES + (size_t)s->n_threads * stk_sgemm_packing_bytes(s->part_pixels, s->n, s->k);
    if (s->widen) s->weight_bytes = floats(o * c);
    if (s->widen || (s->is_strided && is_forward)) s->in_bytes = floats(s->part_pixels * s->k);
    s->part_bytes = s->in_bytes;
    if (s->narrow || (s->is_strided && !is_forward)) s->part_bytes += floats(s->part_pixels * s->n);
    out->scratch_bytes = s->weight_bytes + s->part_bytes * (size_t)s->n_threads;
    return STK_OK;
}
