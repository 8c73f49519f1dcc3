/* linear_cross_entropy and its gradient: rows in chunks of MOST_ROWS, or fewer where their logits would not fit
 * into CHUNK_BYTES of scratch.
 *
 *   logits = x weight'          by columns
 *   logits -> loss, dlogits     by rows, in place
 *   dx = dlogits weight         by columns or rows of dx, or by slices of the classes that are added up
 *   dweight += dlogits' x       by classes, onto a base where there is one
 *
 * The products are oneDNN's: in f32 (matmul_onednn.h), or in bf16 (product.h) where the processor multiplies that.
 * Logits are f32 in any case; bf16 gradients of a row's logits then lie where the row's logits began.
 */
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "device/cpu/amx/amx.h"
#include "device/cpu/cpu.h"
#include "device/cpu/element/element.h"
#include "device/cpu/loss/linear_cross_entropy.h"
#include "device/cpu/loss/softmax.h"
#include "device/cpu/matmul/matmul_onednn.h"
#include "device/cpu/matmul/product.h"

/* The weights' gradient is read and written once a chunk: with 512 rows that is 1/40 of the arithmetic's time. By
 * tiles, which are faster, it is more, and so is packing the weights: TILES_FACTOR times as much of both. */
enum { CHUNK_BYTES = 128 << 20, MOST_ROWS = 512, TILES_FACTOR = 2, ROW_GRAIN = 16, LANES = 16 };

/* Products in bf16 for a number of rows; dweight overwrites or adds. NULL: not needed. */
typedef struct half_products {
    int64_t n;
    stk_product *logits, *dx, *dweight[2];
} half_products;

typedef struct linear_state {
    stk_softmax_fns fns;
    stk_element_fn narrow;  /* f32 to bf16; NULL: x and weight are f32 */
    half_products half[2];  /* for a whole chunk, and for the last one */
    size_t element;         /* bytes, of x and weight */
    int64_t m, v, d, chunk; /* rows, classes, features; rows at a time */
    int64_t step;           /* from one row of logits to the next: whole vectors */
    int64_t ignored;
    double smoothing;
    int n_threads;
    int depth; /* slices of the classes in dx's product */
    bool is_grad, has_base;
} linear_state;

/* Rows [row, row + n). */
typedef struct linear_task {
    const linear_state *s;
    const stk_kernel_args *args;
    int64_t row, n;
} linear_task;

/* n floats to bf16, in the same place. */
static void narrow_row(const linear_state *s, float *row)
{
    enum { PIECE = 512 };
    uint16_t piece[PIECE];
    for (int64_t i = 0, n; i < s->v; i += n) {
        n = s->v - i < PIECE ? s->v - i : PIECE;
        const void *src = row + i;
        s->narrow(n, piece, &src);
        memcpy((uint16_t *)row + i, piece, (size_t)n * sizeof(*piece));
    }
}

static void row_part(const void *p, int i_part, int n_parts)
{
    const linear_task *task = p;
    const linear_state *s = task->s;
    const int32_t *labels = task->args->in[2];
    int64_t begin, end;
    stk_cpu_share(task->n, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t row = task->row + i;
        float *logits = (float *)task->args->scratch + i * s->step, *loss = task->args->out[s->is_grad ? 2 : 0];
        if (labels[row] == s->ignored) {
            loss[row] = 0;
            if (s->is_grad) memset(logits, 0, (size_t)s->v * sizeof(*logits));
            continue;
        }
        if (s->is_grad)
            s->fns.loss_and_grad(s->v, logits, labels[row], s->smoothing, (const float *)task->args->in[3] + row,
                                 loss + row, logits);
        else
            s->fns.loss(s->v, logits, labels[row], NULL, s->smoothing, loss + row);
        if (s->is_grad && s->narrow) narrow_row(s, logits);
    }
}

static const half_products *half_of(const linear_task *task)
{
    return &task->s->half[task->n != task->s->half[0].n];
}

static const void *x_of(const linear_task *task)
{
    return (const char *)task->args->in[0] + (size_t)(task->row * task->s->d) * task->s->element;
}

/* Scratch memory behind the logits, for products. */
static void *behind_logits(const linear_task *task)
{
    return (float *)task->args->scratch + task->s->chunk * task->s->step;
}

static stk_status make_logits(const linear_task *task)
{
    const linear_state *s = task->s;
    if (s->narrow)
        return stk_product_run(half_of(task)->logits, x_of(task), task->args->in[1], NULL, task->args->scratch,
                               behind_logits(task));
    stk_sgemm g = {.m = task->n, .n = s->v, .k = s->d, .transpose_b = true, .a_step = s->d, .b_step = s->d};
    g.a = x_of(task);
    g.b = task->args->in[1];
    g.c = task->args->scratch;
    g.c_step = s->step;
    return stk_sgemm_run(&g, s->n_threads);
}

static stk_status add_gradients_half(const linear_task *task)
{
    const linear_state *s = task->s;
    const half_products *half = half_of(task);
    const stk_kernel_args *args = task->args;
    char *dx = (char *)args->out[0] + (size_t)(task->row * s->d) * s->element;
    STK_RETURN_IF_ERROR(stk_product_run(half->dx, args->scratch, args->in[1], NULL, dx, behind_logits(task)));
    return stk_product_run(half->dweight[task->row > 0 || s->has_base], args->scratch, x_of(task), NULL, args->out[1],
                           behind_logits(task));
}

static stk_status add_gradients(const linear_task *task)
{
    const linear_state *s = task->s;
    if (s->narrow) return add_gradients_half(task);
    stk_sgemm g = {.m = task->n, .n = s->d, .k = s->v, .a_step = s->step, .b_step = s->d, .c_step = s->d};
    g.a = task->args->scratch;
    g.b = task->args->in[1];
    g.c = (float *)task->args->out[0] + task->row * s->d;
    STK_RETURN_IF_ERROR(s->depth > 1 ? stk_sgemm_run_deep(&g, s->depth, s->n_threads, behind_logits(task))
                                     : stk_sgemm_run(&g, s->n_threads));
    g = (stk_sgemm){.m = s->v, .n = s->d, .k = task->n, .transpose_a = true, .a_step = s->step, .b_step = s->d};
    g.a = task->args->scratch;
    g.b = x_of(task);
    g.c = task->args->out[1];
    g.c_step = s->d;
    g.adds = task->row > 0 || s->has_base;
    return stk_sgemm_run(&g, s->n_threads);
}

stk_status stk_linear_check_labels(const int32_t *labels, int64_t n, int64_t n_classes, int64_t ignored)
{
    for (int64_t row = 0; row < n; row++)
        if (labels[row] != ignored && (labels[row] < 0 || labels[row] >= n_classes))
            return stk_fail(STK_CORRUPT, "label %d of row %lld is not one of the %lld classes", (int)labels[row],
                            (long long)row, (long long)n_classes);
    return STK_OK;
}

/* What the products do not write themselves. */
static void start_weights(const linear_state *s, const stk_kernel_args *args)
{
    size_t bytes = (size_t)(s->v * s->d) * sizeof(float);
    if (bytes == 0) return;
    if (s->has_base && args->out[1] != args->in[4])
        memcpy(args->out[1], args->in[4], bytes);
    else if (!s->has_base && s->m == 0)
        memset(args->out[1], 0, bytes);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const linear_state *s = p;
    STK_RETURN_IF_ERROR(stk_linear_check_labels(args->in[2], s->m, s->v, s->ignored));
    if (s->is_grad) start_weights(s, args);
    linear_task task = {.s = s, .args = args};
    for (; task.row < s->m; task.row += s->chunk) {
        task.n = s->m - task.row < s->chunk ? s->m - task.row : s->chunk;
        STK_RETURN_IF_ERROR(make_logits(&task));
        int64_t n_parts = task.n < 4 * s->n_threads ? task.n : 4 * s->n_threads;
        stk_cpu_parallel((int)n_parts, row_part, &task);
        if (s->is_grad && s->d > 0) STK_RETURN_IF_ERROR(add_gradients(&task));
    }
    return STK_OK;
}

/* Rows at a time: as many as fit, in chunks of about the same size. */
static int64_t choose_chunk(int64_t m, int64_t v, int factor)
{
    int64_t most = factor * (int64_t)CHUNK_BYTES / (int64_t)sizeof(float) / (v ? v : 1);
    most = most < ROW_GRAIN ? ROW_GRAIN : most;
    most = most > factor * MOST_ROWS ? factor * MOST_ROWS : most;
    if (m <= most) return m ? m : 1;
    int64_t n_chunks = (m + most - 1) / most, each = (m + n_chunks - 1) / n_chunks;
    return stk_round_up_i64(each, ROW_GRAIN);
}

/* --- preparing --- */

static void release(void *p)
{
    linear_state *s = p;
    for (int i = 0; i < 2; i++) {
        stk_product_free(s->half[i].logits);
        stk_product_free(s->half[i].dx);
        stk_product_free(s->half[i].dweight[0]);
        stk_product_free(s->half[i].dweight[1]);
    }
    free(s);
}

/* Products in bf16 for n rows at a time, and what scratch memory they take at most. */
static stk_status add_half(const stk_cpu_device *device, const linear_state *s, int64_t n, half_products *half,
                           size_t *scratch)
{
    stk_product_shape logits = {.m = n, .n = s->v, .k = s->d, .transpose_b = true, .out = STK_F32};
    stk_product_shape dx = {.m = n, .n = s->d, .k = s->v, .a_step = 2 * s->step, .out = STK_BF16};
    stk_product_shape dweight = {.m = s->v, .n = s->d, .k = n, .transpose_a = true, .a_step = 2 * s->step};
    logits.a_step = logits.b_step = dx.b_step = dx.c_step = dweight.b_step = dweight.c_step = s->d;
    logits.c_step = s->step;
    logits.in = dx.in = dweight.in = STK_BF16;
    dweight.out = STK_F32;
    half->n = n;
    STK_RETURN_IF_ERROR(stk_product_new(device, &logits, &half->logits));
    if (s->is_grad) STK_RETURN_IF_ERROR(stk_product_new(device, &dx, &half->dx));
    for (int adds = 0; adds < 2 && s->is_grad; adds++) {
        dweight.adds = adds;
        STK_RETURN_IF_ERROR(stk_product_new(device, &dweight, &half->dweight[adds]));
    }
    stk_product *const all[] = {half->logits, half->dx, half->dweight[0], half->dweight[1]};
    for (int i = 0; i < (s->is_grad ? 4 : 1); i++)
        if (stk_product_scratch_bytes(all[i]) > *scratch) *scratch = stk_product_scratch_bytes(all[i]);
    return STK_OK;
}

static linear_state state_of(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_shape x = call->in[0].shape;
    linear_state s = {.fns = stk_softmax_of(device->isa)->f32, .m = x.dim[0], .d = x.dim[1]};
    s.element = stk_dtype_bytes(call->in[0].dtype);
    s.v = call->in[1].shape.dim[0];
    s.step = stk_round_up_i64(s.v, LANES);
    s.chunk = choose_chunk(s.m, s.v, call->in[0].dtype == STK_BF16 && stk_amx_of(device->isa) ? TILES_FACTOR : 1);
    s.ignored = call->attrs->linear_cross_entropy.ignore_index;
    s.smoothing = call->attrs->linear_cross_entropy.smoothing;
    s.is_grad = call->op == STK_OP_linear_cross_entropy_grad;
    s.has_base = call->n_in == 5;
    s.n_threads = stk_cpu_threads_for((double)s.m * (double)s.v * (double)(s.d + 8), device->base.n_threads);
    return s;
}

/* Whether the processor multiplies bf16, and there is something to multiply. */
static bool half_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_shape x = call->in[0].shape;
    return call->in[0].dtype == STK_BF16 && stk_isa_has_bf16(device->isa) && x.dim[0] > 0 && x.dim[1] > 0 &&
           call->in[1].shape.dim[0] > 0;
}

/* oneDNN may be told to use less than the processor has (ONEDNN_MAX_CPU_ISA), and then refuses. */
static stk_status make_half(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(linear_state), run, out));
    linear_state *s = out->state;
    *s = state_of(device, call);
    int64_t last = s->m % s->chunk;
    size_t scratch = 0;
    out->release = release;
    if (s->has_base) out->in_place[1] = 1u << 4;
    s->narrow = stk_element_of(device->isa)->cast[STK_F32][STK_BF16];
    if (s->m >= s->chunk) STK_RETURN_IF_ERROR(add_half(device, s, s->chunk, &s->half[0], &scratch));
    if (last) STK_RETURN_IF_ERROR(add_half(device, s, last, &s->half[1], &scratch));
    out->scratch_bytes = (size_t)(s->chunk * s->step) * sizeof(float) + scratch;
    const stk_product *logits = s->half[s->m < s->chunk].logits;
    out->library_bytes = stk_product_library_bytes(logits);
    out->impl = stk_product_impl(logits);
    return STK_OK;
}

/* Of the largest of its products. */
static size_t library_bytes(const linear_state *s)
{
    size_t most = stk_sgemm_library_bytes(s->chunk, s->v, s->d, s->n_threads);
    size_t dx = stk_sgemm_library_bytes(s->chunk, s->d, s->v, s->n_threads);
    size_t dweight = stk_sgemm_library_bytes(s->v, s->d, s->chunk, s->n_threads);
    if (s->is_grad && dx > most) most = dx;
    return s->is_grad && dweight > most ? dweight : most;
}

static bool f32_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    return call->in[0].dtype == STK_F32;
}

static stk_status make_f32(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(linear_state), run, out));
    linear_state *s = out->state;
    *s = state_of(device, call);
    if (s->has_base) out->in_place[1] = 1u << 4;
    s->depth = stk_sgemm_depth(s->chunk, s->d, s->v, s->n_threads);
    out->scratch_bytes = (size_t)(s->chunk * s->step) * sizeof(float);
    if (s->is_grad) out->scratch_bytes += stk_sgemm_deep_bytes(s->chunk, s->d, s->depth);
    out->library_bytes = STK_ONEDNN_BYTES + library_bytes(s);
    return STK_OK;
}

static const stk_cpu_impl impls[] = {
    {"plain f64", stk_linear_f64_supports, stk_linear_f64_make},
    /* bf16 that the processor multiplies; named by its products. */
    {NULL, half_supports, make_half},
    {"onednn sgemm", f32_supports, make_f32},
    STK_CPU_IMPL_WIDENED,
    {0},
};

stk_status stk_cpu_linear_cross_entropy_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

stk_status stk_cpu_linear_cross_entropy_grad_kernel(const stk_cpu_device *device, const stk_op_call *call,
                                                    stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}
