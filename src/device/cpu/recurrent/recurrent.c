/* lstm, gru and their gradients. A step is a product of blocks (matmul/matmul.h) with the state's weight, packed once
 * for all steps, and work on rows of gates.
 *
 *   by samples   each part takes some samples through all steps by itself: one parallel call
 *   by units     each part makes its units of every gate, of all samples: a parallel call for each step. Where weights
 *                are so large that a core's cache holds a part of them only, or samples are too few for whole tiles
 *
 * Which way is taken depends on sizes and number of threads alone.
 */
#include "device/cpu/recurrent/recurrent.h"

#include <string.h>

#include "base/align.h"
#include "device/cpu/impl.h"
#include "device/cpu/matmul/matmul.h"

enum { MOST_ROWS = 64 };           /* samples whose sums are made at a time */
enum { LARGE_WEIGHT = 768 << 10 }; /* bytes, of which a part by units has a share */
enum { FEW_ROWS = 8 };             /* a tile's */
enum { LINE = 64 };

typedef struct recurrent_state {
    stk_gemm_fns gemm;
    stk_recurrent_fns fns;
    int64_t n, t, h;
    int n_gates, n_parts;
    bool is_lstm, is_back, reverse, has_mask, by_units, has_large_weight;
    size_t bytes; /* of an element */
    /* Where in scratch: the packed weight; sums or carry; pass and dc_carry [N,H]. */
    size_t sums_at, sums_part, pass_at, dc_at;
    /* Inputs and outputs by number; -1: none. */
    int in_weight, in_h0, in_c0, in_mask, in_dc;
} recurrent_state;

/* Samples and units that a call is about. */
typedef struct recurrent_range {
    int64_t row, row_end, unit, unit_end;
    char *sums; /* of its first row; forward [rows,GH], backward [rows,H] */
} recurrent_range;

typedef struct step_task {
    const recurrent_state *s;
    const stk_kernel_args *args;
    int64_t k; /* steps before it in the forward pass */
} step_task;

static int64_t step_of(const recurrent_state *s, int64_t k)
{
    return s->reverse ? s->t - 1 - k : k;
}

/* Element `unit` of sample `row` at that step of x [N,T,width]. */
static char *at_step(const recurrent_state *s, void *x, int64_t width, int64_t row, int64_t k, int64_t unit)
{
    return (char *)x + (size_t)((row * s->t + step_of(s, k)) * width + unit) * s->bytes;
}

/* The state before step k of the forward pass, of which `first` is the one that it begins with. */
static char *state_before(const recurrent_state *s, void *x, void *first, int64_t row, int64_t k, int64_t unit)
{
    if (k == 0) return (char *)first + (size_t)(row * s->h + unit) * s->bytes;
    return at_step(s, x, s->h, row, k - 1, unit);
}

static bool counts(const recurrent_state *s, const stk_kernel_args *args, int64_t row, int64_t k)
{
    return !s->has_mask || ((const uint8_t *)args->in[s->in_mask])[row * s->t + step_of(s, k)];
}

/* --- the packed weight --- */

/* Forward b [H,GH] is the weight turned, and each gate begins with a panel of its own where units are shared out;
 * backward b [GH,H] is the weight. */
static void pack_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const recurrent_state *s = task->state;
    const char *weight = task->args->in[s->in_weight];
    char *to = task->args->scratch;
    int64_t width = s->n_gates * s->h, n = s->is_back || s->by_units ? s->h : width;
    int64_t n_blocks = s->by_units && !s->is_back ? s->n_gates : 1, depth = s->is_back ? width : s->h, begin, end;
    stk_cpu_share(n, s->gemm.tile_cols, i_part, n_parts, &begin, &end);
    for (int64_t block = 0; block < n_blocks && end > begin; block++) {
        int64_t col = block * s->h + begin;
        const char *from = weight + (size_t)(s->is_back ? col : col * s->h) * s->bytes;
        char *dst = to + (size_t)(block * s->gemm.block_elements(depth, s->h) + begin * depth) * s->bytes;
        s->gemm.pack_block(from, s->is_back ? s->h : 1, s->is_back ? 1 : s->h, depth, end - begin, dst);
    }
}

/* --- forward --- */

static void multiply_state(const recurrent_state *s, const stk_kernel_args *args, const recurrent_range *r, int64_t k)
{
    int64_t width = s->n_gates * s->h;
    stk_gemm_block g = {.m = r->row_end - r->row, .n = width, .k = s->h, .depth = s->h, .c_row = width, .a_col = 1};
    g.is_large = s->has_large_weight;
    g.a = state_before(s, args->out[0], args->in[s->in_h0], r->row, k, 0);
    g.a_row = k == 0 ? s->h : s->t * s->h;
    g.b = args->scratch;
    g.c = r->sums;
    if (!s->by_units) {
        s->gemm.multiply_block(&g);
        return;
    }
    g.n = r->unit_end - r->unit;
    for (int64_t gate = 0; gate < s->n_gates; gate++) {
        int64_t packed = gate * s->gemm.block_elements(s->h, s->h) + r->unit * s->h;
        g.b = (char *)args->scratch + (size_t)packed * s->bytes;
        g.c = r->sums + (size_t)(gate * s->h + r->unit) * s->bytes;
        s->gemm.multiply_block(&g);
    }
}

static void hold(const recurrent_state *s, const stk_recurrent_row *row)
{
    size_t bytes = (size_t)row->n * s->bytes;
    memcpy(row->h, row->h_before, bytes);
    if (s->is_lstm) memcpy(row->c, row->c_before, bytes);
    for (int gate = 0; gate < s->n_gates; gate++)
        memset((char *)row->gates + (size_t)(gate * row->stride) * s->bytes, 0, bytes);
    if (!s->is_lstm) memset(row->part, 0, bytes);
}

static void do_row(const recurrent_state *s, const stk_kernel_args *args, const recurrent_range *r, int64_t i,
                   int64_t k)
{
    int64_t width = s->n_gates * s->h, unit = r->unit;
    stk_recurrent_row row = {.n = r->unit_end - unit, .stride = s->h};
    row.x = at_step(s, args->in[0], width, i, k, unit);
    row.sums = r->sums + (size_t)((i - r->row) * width + unit) * s->bytes;
    row.bias = (const char *)args->in[2] + (size_t)unit * s->bytes;
    row.h_before = state_before(s, args->out[0], args->in[s->in_h0], i, k, unit);
    row.h = at_step(s, args->out[0], s->h, i, k, unit);
    row.gates = at_step(s, args->out[s->is_lstm ? 2 : 1], width, i, k, unit);
    if (s->is_lstm) {
        row.c_before = state_before(s, args->out[1], args->in[s->in_c0], i, k, unit);
        row.c = at_step(s, args->out[1], s->h, i, k, unit);
    } else {
        row.part = at_step(s, args->out[2], s->h, i, k, unit);
    }
    if (!counts(s, args, i, k))
        hold(s, &row);
    else if (s->is_lstm)
        s->fns.lstm(&row);
    else
        s->fns.gru(&row);
}

static void do_step(const recurrent_state *s, const stk_kernel_args *args, const recurrent_range *r, int64_t k)
{
    multiply_state(s, args, r, k);
    for (int64_t i = r->row; i < r->row_end; i++)
        do_row(s, args, r, i, k);
}

/* --- backward --- */

/* What the step behind step k had to do, times the weight: into sums. */
static void multiply_back(const recurrent_state *s, const stk_kernel_args *args, const recurrent_range *r, int64_t k)
{
    int64_t width = s->n_gates * s->h;
    stk_gemm_block g = {
        .m = r->row_end - r->row, .n = r->unit_end - r->unit, .k = width, .depth = width, .c_row = s->h, .a_col = 1};
    g.is_large = s->has_large_weight;
    g.a = at_step(s, args->out[s->is_lstm ? 0 : 1], width, r->row, k + 1, 0);
    g.a_row = s->t * width;
    g.b = (char *)args->scratch + (size_t)(r->unit * width) * s->bytes;
    g.c = r->sums + (size_t)r->unit * s->bytes;
    s->gemm.multiply_block(&g);
}

static char *state_at(const recurrent_state *s, const stk_kernel_args *args, size_t offset, int64_t row, int64_t unit)
{
    return (char *)args->scratch + offset + (size_t)(row * s->h + unit) * s->bytes;
}

static void do_row_back(const recurrent_state *s, const stk_kernel_args *args, const recurrent_range *r, int64_t i,
                        int64_t k)
{
    int64_t width = s->n_gates * s->h, unit = r->unit;
    stk_recurrent_back row = {.n = r->unit_end - unit, .stride = s->h};
    row.dh = at_step(s, args->in[0], s->h, i, k, unit);
    if (s->in_dc >= 0) row.dc = at_step(s, args->in[s->in_dc], s->h, i, k, unit);
    if (k < s->t - 1) row.carry = r->sums + (size_t)((i - r->row) * s->h + unit) * s->bytes;
    row.gates = at_step(s, args->in[2], width, i, k, unit);
    row.dx = at_step(s, args->out[0], width, i, k, unit);
    row.pass = state_at(s, args, s->pass_at, i, unit);
    if (s->is_lstm) {
        row.c = at_step(s, args->in[1], s->h, i, k, unit);
        row.c_before = state_before(s, args->in[1], args->in[s->in_c0], i, k, unit);
        row.dc_carry = state_at(s, args, s->dc_at, i, unit);
    } else {
        row.h_before = state_before(s, args->in[1], args->in[s->in_h0], i, k, unit);
        row.part = at_step(s, args->in[3], s->h, i, k, unit);
        row.dstate = at_step(s, args->out[1], width, i, k, unit);
    }
    if (!counts(s, args, i, k))
        s->fns.hold_back(&row, s->n_gates);
    else if (s->is_lstm)
        s->fns.lstm_back(&row);
    else
        s->fns.gru_back(&row);
}

static void do_step_back(const recurrent_state *s, const stk_kernel_args *args, const recurrent_range *r, int64_t k)
{
    if (k < s->t - 1) multiply_back(s, args, r, k);
    for (int64_t i = r->row; i < r->row_end; i++)
        do_row_back(s, args, r, i, k);
}

/* Before the first step, after the last one of the backward pass. */
static void add_pass(const recurrent_state *s, const char *carry, const char *pass, char *dst, int64_t n)
{
    if (s->bytes == sizeof(double))
        for (int64_t u = 0; u < n; u++)
            ((double *)dst)[u] = ((const double *)carry)[u] + ((const double *)pass)[u];
    else
        for (int64_t u = 0; u < n; u++)
            ((float *)dst)[u] = ((const float *)carry)[u] + ((const float *)pass)[u];
}

static void end_back(const recurrent_state *s, const stk_kernel_args *args, const recurrent_range *r)
{
    int64_t n = r->unit_end - r->unit;
    multiply_back(s, args, r, -1);
    for (int64_t i = r->row; i < r->row_end; i++) {
        size_t at = (size_t)(i * s->h + r->unit) * s->bytes;
        add_pass(s, r->sums + (size_t)((i - r->row) * s->h + r->unit) * s->bytes,
                 state_at(s, args, s->pass_at, i, r->unit), (char *)args->out[s->is_lstm ? 1 : 2] + at, n);
        if (s->is_lstm)
            memcpy((char *)args->out[2] + at, state_at(s, args, s->dc_at, i, r->unit), (size_t)n * s->bytes);
    }
}

static void begin_back(const recurrent_state *s, const stk_kernel_args *args, const recurrent_range *r)
{
    size_t bytes = (size_t)(r->unit_end - r->unit) * s->bytes;
    for (int64_t i = r->row; i < r->row_end; i++) {
        memset(state_at(s, args, s->pass_at, i, r->unit), 0, bytes);
        if (s->is_lstm) memset(state_at(s, args, s->dc_at, i, r->unit), 0, bytes);
    }
}

/* --- sharing --- */

static void share_samples(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const recurrent_state *s = task->state;
    const stk_kernel_args *args = task->args;
    recurrent_range r = {.unit_end = s->h};
    int64_t begin, end;
    stk_cpu_share(s->n, 1, i_part, n_parts, &begin, &end);
    r.sums = (char *)args->scratch + s->sums_at + (size_t)i_part * s->sums_part;
    for (r.row = begin; r.row < end; r.row = r.row_end) {
        r.row_end = end - r.row < MOST_ROWS ? end : r.row + MOST_ROWS;
        if (s->is_back) begin_back(s, args, &r);
        for (int64_t k = 0; k < s->t; k++)
            if (s->is_back)
                do_step_back(s, args, &r, s->t - 1 - k);
            else
                do_step(s, args, &r, k);
        if (s->is_back) end_back(s, args, &r);
    }
}

/* Step k of all samples; backward, step T is what comes before the first one, and -1 what comes behind the last. */
static void share_units(const void *p, int i_part, int n_parts)
{
    const step_task *task = p;
    const recurrent_state *s = task->s;
    recurrent_range r = {.row_end = 0};
    stk_cpu_share(s->h, s->gemm.tile_cols, i_part, n_parts, &r.unit, &r.unit_end);
    r.sums = (char *)task->args->scratch + s->sums_at;
    if (r.unit == r.unit_end) return;
    for (r.row = 0; r.row < s->n; r.row = r.row_end) {
        r.row_end = s->n - r.row < MOST_ROWS ? s->n : r.row + MOST_ROWS;
        if (!s->is_back)
            do_step(s, task->args, &r, task->k);
        else if (task->k == s->t)
            begin_back(s, task->args, &r);
        else if (task->k >= 0)
            do_step_back(s, task->args, &r, task->k);
        else
            end_back(s, task->args, &r);
    }
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const recurrent_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->n_parts, pack_share, &task);
    if (!s->by_units) {
        stk_cpu_parallel(s->n_parts, share_samples, &task);
        return STK_OK;
    }
    for (int64_t k = 0; !s->is_back && k < s->t; k++)
        stk_cpu_parallel(s->n_parts, share_units, &(step_task){s, args, k});
    for (int64_t k = s->t; s->is_back && k >= -1; k--)
        stk_cpu_parallel(s->n_parts, share_units, &(step_task){s, args, k});
    return STK_OK;
}

/* --- preparing --- */

static void choose_way(recurrent_state *s, int n_threads)
{
    double work = (double)s->n * (double)s->t * (double)s->h * (double)s->n_gates;
    int64_t weight_bytes = s->n_gates * s->h * s->h * (int64_t)s->bytes;
    s->n_parts = stk_cpu_threads_for(work, n_threads);
    s->has_large_weight = weight_bytes > LARGE_WEIGHT;
    bool few = s->n < FEW_ROWS * s->n_parts || s->has_large_weight;
    s->by_units = s->n_parts > 1 && few && s->h >= s->n_parts * s->gemm.tile_cols;
    if (!s->by_units && s->n_parts > s->n) s->n_parts = s->n > 0 ? (int)s->n : 1;
}

static size_t take(size_t *offset, int64_t n_elements, size_t bytes)
{
    size_t at = *offset;
    *offset = stk_round_up(at + (size_t)n_elements * bytes, LINE);
    return at;
}

static void place_scratch(recurrent_state *s, stk_kernel *out)
{
    int64_t width = s->n_gates * s->h, rows = s->n < MOST_ROWS ? s->n : MOST_ROWS;
    int64_t packed = s->gemm.block_elements(s->is_back ? width : s->h, s->is_back ? s->h : width);
    size_t offset = 0;
    if (s->by_units && !s->is_back) packed = s->n_gates * s->gemm.block_elements(s->h, s->h);
    take(&offset, packed, s->bytes);
    int64_t sums = rows * (s->is_back ? s->h : width);
    s->sums_part = (size_t)stk_cpu_apart((int64_t)stk_round_up((size_t)sums * s->bytes, LINE));
    s->sums_at = offset;
    offset += s->sums_part * (size_t)(s->by_units ? 1 : s->n_parts);
    if (s->is_back) {
        s->pass_at = take(&offset, s->n * s->h, s->bytes);
        s->dc_at = take(&offset, s->is_lstm ? s->n * s->h : 0, s->bytes);
    }
    out->scratch_bytes = offset;
}

/* i_gates: the input [N,T,GH]. */
static stk_status make(const stk_cpu_device *device, const stk_op_call *call, int i_gates, recurrent_state from,
                       stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(recurrent_state), run, out));
    recurrent_state *s = out->state;
    stk_tensor_desc x = call->in[i_gates];
    const stk_gemm_table *gemm = stk_gemm_of(device->isa);
    const stk_recurrent_table *table = stk_recurrent_of(device->isa);
    *s = from;
    s->gemm = x.dtype == STK_F64 ? gemm->f64 : gemm->f32;
    s->fns = x.dtype == STK_F64 ? table->f64 : table->f32;
    s->bytes = stk_dtype_bytes(x.dtype);
    s->n_gates = from.is_lstm ? 4 : 3;
    s->n = x.shape.dim[0];
    s->t = x.shape.dim[1];
    s->h = x.shape.dim[2] / s->n_gates;
    s->reverse = call->attrs->recurrent.reverse != 0;
    s->has_mask = call->attrs->recurrent.has_mask != 0;
    choose_way(s, device->base.n_threads);
    place_scratch(s, out);
    return STK_OK;
}

static stk_status make_lstm(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    recurrent_state s = {.is_lstm = true, .in_weight = 1, .in_h0 = 3, .in_c0 = 4, .in_mask = 5, .in_dc = -1};
    out->in_place[2] = 1;
    return make(device, call, 0, s, out);
}

static stk_status make_gru(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    recurrent_state s = {.in_weight = 1, .in_h0 = 3, .in_mask = 4, .in_dc = -1};
    out->in_place[1] = 1;
    return make(device, call, 0, s, out);
}

static stk_status make_lstm_grad(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    int i_dc = call->attrs->recurrent.has_mask ? 6 : 5;
    recurrent_state s = {.is_lstm = true, .is_back = true, .in_weight = 3, .in_c0 = 4, .in_mask = 5};
    s.in_dc = call->n_in > i_dc ? i_dc : -1;
    out->in_place[0] = 1 << 2;
    return make(device, call, 2, s, out);
}

static stk_status make_gru_grad(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    recurrent_state s = {.is_back = true, .in_weight = 4, .in_h0 = 5, .in_mask = 6, .in_dc = -1};
    out->in_place[0] = 1 << 2;
    return make(device, call, 2, s, out);
}

/* The op's kernel, of 16-bit floats between two conversions. */
#define KERNEL(name)                                                                                                   \
    stk_status stk_cpu_##name##_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)         \
    {                                                                                                                  \
        static const stk_cpu_impl impls[] = {{NULL, stk_cpu_reads_wide, make_##name}, STK_CPU_IMPL_WIDENED, {0}};      \
        return stk_cpu_make_first(device, call, impls, out);                                                           \
    }
KERNEL(lstm)
KERNEL(lstm_grad)
KERNEL(gru)
KERNEL(gru_grad)
