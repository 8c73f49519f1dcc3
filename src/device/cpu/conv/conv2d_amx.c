/* Threads take units, or panels of a unit where units are few. A unit's pixels are laid out in the thread's own memory;
 * then each panel of weights goes over all of them.
 */
#include "device/cpu/conv/conv2d_amx.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/hash.h"
#include "device/cpu/amx/amx.h"
#include "device/cpu/conv/conv2d_amx_plan.h"
#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/simd/stream.h"

typedef struct amx_state {
    stk_conv_amx_plan plan;
    const stk_amx_fns *amx;
    int n_threads, panel_parts;
    bool is_data, has_bias, has_relu, is_far;
    bool in_place;              /* of 1x1: rows are read where they lie */
    size_t thread_bytes;        /* of a unit and what belongs to it, for each thread */
    int64_t width, stride, pad; /* of the columns of what is read, for joined rows */
} amx_state;

enum { DEPTH = STK_AMX_DEPTH, SIDE = STK_AMX_SIDE, STEP = STK_AMX_STEP, ALIGN = 64, PACKS_A_THREAD = 4 };
enum { SHARES_A_THREAD = 4, MOST_WEIGHT_BYTES = 640 << 10 }; /* of 1x1 in place */

/* --- weights --- */

/* Weights [O,KH,KW,C] in bf16 or f32, and where to. */
typedef struct weight_task {
    const amx_state *s;
    const void *weight;
    bool is_wide;
    uint16_t *to;
} weight_task;

/* All steps of one panel for one out phase, in the order of list_steps. */
static void pack_phase(const weight_task *t, int64_t panel, int phase, uint16_t *to)
{
    const stk_conv_amx_plan *p = &t->s->plan;
    int64_t n_taps = p->taps_y * p->taps_x, o = panel * SIDE, n = p->n_out_channels - o, shift;
    /* Elements from a tap to the next, and between numbers that are summed over, and out channels. */
    int64_t c = t->s->is_data ? p->n_out_channels : p->place_values, all = n_taps * c;
    stk_amx_source x = {.row = t->s->is_data ? all : 1, .col = t->s->is_data ? 1 : all, .is_wide = t->is_wide};
    size_t bytes = t->is_wide ? sizeof(float) : sizeof(uint16_t);
    int in;
    for (int64_t l = 0; l < p->place_values; l += DEPTH)
        for (int64_t tap = 0; tap < n_taps; tap++) {
            if (!stk_conv_amx_tap(&p->y, phase / p->x.n_out, tap / p->taps_x, &in, &shift)) continue;
            if (!stk_conv_amx_tap(&p->x, phase % p->x.n_out, tap % p->taps_x, &in, &shift)) continue;
            int64_t k = p->place_values - l;
            x.x = (const char *)t->weight + (size_t)(tap * c + l * x.row + o * x.col) * bytes;
            t->s->amx->pack_b(&x, k < DEPTH ? k : DEPTH, n < SIDE ? n : SIDE, DEPTH, to);
            to += STEP;
        }
}

static int64_t panel_elements(const stk_conv_amx_plan *p)
{
    return (int64_t)(p->weight_bytes / sizeof(uint16_t)) / p->n_panels;
}

static void pack_share(const void *task, int i_part, int n_parts)
{
    const weight_task *t = task;
    const stk_conv_amx_plan *p = &t->s->plan;
    int64_t n_phases = p->y.n_out * p->x.n_out, begin, end;
    stk_cpu_share(p->n_panels * n_phases, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t panel = i / n_phases, phase = i % n_phases;
        pack_phase(t, panel, (int)phase, t->to + panel * panel_elements(p) + p->first[phase] * STEP);
    }
}

static stk_status pack_weight(const void *state, const stk_kernel_args *args)
{
    const amx_state *s = state;
    weight_task t = {s, args->in[0], true, args->out[0]};
    stk_cpu_parallel(PACKS_A_THREAD * s->n_threads, pack_share, &t);
    return STK_OK;
}

/* --- pixels into lines --- */

/* Place x of a joined row where the kernel sticks out of the image. */
static void join_edge(const stk_conv_amx_plan *p, const uint16_t *row, int64_t width, int64_t at, uint16_t *to)
{
    uint16_t values[2 * DEPTH] = {0};
    int64_t c = p->n_channels, n = p->place_values / c;
    for (int64_t i = 0; i < n; i++)
        if (at + i >= 0 && at + i < width) memcpy(values + i * c, row + (at + i) * c, (size_t)c * sizeof(*row));
    for (int64_t chunk = 0; chunk < p->n_chunks; chunk++)
        memcpy(to + chunk * p->phase_places * p->place, values + chunk * DEPTH, DEPTH * sizeof(*to));
}

typedef struct amx_task {
    const amx_state *s;
    const uint16_t *from;
    const uint16_t *weight; /* packed */
    const float *bias;
    uint16_t *to;
    char *scratch;
} amx_task;

static void join_places(const amx_task *t, const uint16_t *row, uint16_t *to)
{
    const stk_conv_amx_plan *p = &t->s->plan;
    int64_t c = p->n_channels, n = p->place_values / c, first = (t->s->pad + t->s->stride - 1) / t->s->stride;
    int64_t last = (t->s->width - n + t->s->pad) / t->s->stride + 1;
    if (t->s->width < n) last = 0;
    last = last > p->x.out ? p->x.out : last;
    first = first > last ? last : first;
    for (int64_t x = 0; x < p->x.out; x++)
        if (x < first || x >= last) join_edge(p, row, t->s->width, x * t->s->stride - t->s->pad, to + x * DEPTH);
    t->s->amx->copy_places(row + (first * t->s->stride - t->s->pad) * c, last - first, t->s->stride * c,
                           p->place_values, to + first * DEPTH, DEPTH, p->phase_places * DEPTH);
}

static void clear_places(const stk_conv_amx_plan *p, uint16_t *to, int64_t n)
{
    for (int64_t chunk = 0; chunk < p->n_chunks && n > 0; chunk++)
        memset(to + chunk * p->phase_places * p->place, 0, (size_t)(n * p->place) * sizeof(*to));
}

/* Row `row` of an image, or zeros where it is NULL, into a line from `to` on. i: which it is of the images that share
 * places, of which the first one clears what no image has. */
static void lay_row(const amx_task *t, const uint16_t *row, int phase_x, int64_t i, uint16_t *to)
{
    const stk_conv_amx_plan *p = &t->s->plan;
    int64_t n = row ? stk_conv_amx_count(p->x.in, phase_x, p->x.n_in) : 0;
    if (row && p->joins_row)
        join_places(t, row, to);
    else if (row)
        t->s->amx->copy_places(row + phase_x * p->n_channels, n, p->x.n_in * p->n_channels, p->n_channels,
                               to + i * DEPTH, p->place, p->phase_places * p->place);
    if (i == 0) clear_places(p, to + n * p->place, p->x.pitch - n);
}

/* Groups [group, group + n), or a band of one, into one line. */
static void lay_line(const amx_task *t, int64_t group, int64_t n, int64_t first_row, int phase, uint16_t *line)
{
    const stk_conv_amx_plan *p = &t->s->plan;
    bool is_band = p->n_bands > 1;
    int phase_y = phase / p->x.n_in, phase_x = phase % p->x.n_in;
    int64_t rows = (is_band ? p->unit_rows : n * p->y.pitch) + p->y.tail, pixels = t->s->width * p->n_channels;
    int64_t count = stk_conv_amx_count(p->y.in, phase_y, p->y.n_in);
    clear_places(p, line, p->x.lead);
    for (int64_t i = -p->y.lead; i < rows; i++) {
        int64_t of = is_band || i < 0 ? 0 : i / p->y.pitch, y = is_band ? first_row + i : i - of * p->y.pitch;
        bool exists = y >= 0 && y < count && of < n;
        int64_t image = (group + of) * p->together;
        for (int64_t k = 0; k < p->together; k++) {
            const uint16_t *row = NULL;
            if (exists) row = t->from + ((image + k) * p->y.in + y * p->y.n_in + phase_y) * pixels;
            lay_row(t, row, phase_x, k, line + (p->front + i * p->x.pitch) * p->place);
        }
    }
}

static void lay_unit(const amx_task *t, int64_t group, int64_t n, int64_t first_row, uint16_t *unit)
{
    const stk_conv_amx_plan *p = &t->s->plan;
    for (int phase = 0; phase < p->y.n_in * p->x.n_in; phase++)
        if (p->slot[phase] >= 0)
            lay_line(t, group, n, first_row, phase, unit + p->slot[phase] * p->n_chunks * p->phase_places * p->place);
}

/* --- products --- */

/* Pixels that no tap reaches, as three of four behind a stride of 2. */
static void clear_phase(const amx_task *t, int phase, int64_t n_rows, uint16_t *to)
{
    _Alignas(STK_LINE_BYTES) static const uint16_t zeros[STK_LINE_BYTES / sizeof(uint16_t)] = {0};
    const stk_conv_amx_plan *p = &t->s->plan;
    const int32_t *rows = p->rows[phase];
    size_t bytes = (size_t)p->n_out_channels * sizeof(*to);
    bool is_far = t->s->is_far && bytes % STK_LINE_BYTES == 0 && (uintptr_t)to % STK_LINE_BYTES == 0;
    for (int64_t i = 0; i < n_rows; i++) {
        if (rows[i] < 0) continue;
        char *row = (char *)(to + rows[i] * p->n_out_channels);
        if (!is_far) memset(row, 0, bytes);
        for (size_t at = 0; at < bytes && is_far; at += STK_LINE_BYTES)
            stk_stream(row + at, zeros, STK_LINE_BYTES);
    }
    if (is_far) stk_stream_end();
}

/* Panels [begin, end) over n_rows rows of a unit's tiles, whose result begins at `to`. */
static void multiply_phase(const amx_task *t, const uint16_t *unit, int phase, int64_t n_rows, int64_t begin,
                           int64_t end, uint16_t *to)
{
    const amx_state *s = t->s;
    const stk_conv_amx_plan *p = &s->plan;
    int64_t bytes = p->n_steps[phase] * STEP * (int64_t)sizeof(*unit);
    for (int64_t i = begin; i < end; i++) {
        stk_amx_block g = {.m = n_rows, .n_steps = p->n_steps[phase], .a = unit, .a_block = STEP};
        g.n = p->n_out_channels - i * SIDE < SIDE ? p->n_out_channels - i * SIDE : SIDE;
        g.steps = p->steps[phase];
        g.tiles = p->tiles[phase];
        g.partial = (float *)(void *)((char *)t->scratch + s->thread_bytes * (size_t)stk_cpu_worker() +
                                      stk_round_up(p->unit_bytes, ALIGN));
        g.b = t->weight + i * panel_elements(p) + p->first[phase] * STEP;
        g.rows = p->rows[phase];
        g.bias = t->bias ? t->bias + i * SIDE : NULL;
        g.has_relu = s->has_relu;
        g.rounded_c = to + i * SIDE;
        g.c_row = p->n_out_channels;
        g.is_far = s->is_far;
        if (i + 1 < end) g.ahead = g.b + panel_elements(p), g.ahead_bytes = bytes;
        s->amx->multiply(&g);
    }
}

/* Part i_panels of the panels over unit i_unit. */
static void run_unit(const amx_task *t, int64_t i_unit, int i_panels)
{
    const amx_state *s = t->s;
    const stk_conv_amx_plan *p = &s->plan;
    int64_t begin, end, first_row = i_unit % p->n_bands * p->unit_rows;
    int64_t group = i_unit / p->n_bands * p->unit_groups, n = p->n_groups - group, image = group * p->together;
    if (n > p->unit_groups) n = p->unit_groups;
    stk_cpu_share(p->n_panels, 1, i_panels, s->panel_parts, &begin, &end);
    if (begin >= end) return;
    uint16_t *unit = (uint16_t *)(void *)(t->scratch + s->thread_bytes * (size_t)stk_cpu_worker());
    lay_unit(t, group, n, first_row, unit);
    uint16_t *to = t->to + (image * p->y.out + first_row * p->y.n_out) * p->x.out * p->n_out_channels;
    for (int phase = 0; phase < p->y.n_out * p->x.n_out; phase++) {
        int64_t n_rows = stk_conv_amx_rows(p, phase, n, first_row);
        if (n_rows <= 0) continue;
        if (p->n_steps[phase] == 0 && !t->bias && s->panel_parts == 1)
            clear_phase(t, phase, n_rows, to);
        else
            multiply_phase(t, unit, phase, n_rows, begin, end, to);
    }
}

/* More units than a call of the pool may have parts go as ranges of them. */
static void run_share(const void *task, int i_part, int n_parts)
{
    const amx_task *t = task;
    int64_t parts = t->s->panel_parts, begin, end;
    stk_cpu_share(t->s->plan.n_units, 1, (int)(i_part / parts), (int)(n_parts / parts), &begin, &end);
    for (int64_t i = begin; i < end; i++)
        run_unit(t, i, (int)(i_part % parts));
}

/* --- products of what lies in memory --- */

static void multiply_in_place(const amx_task *t, const uint16_t *from, int64_t n_pixels, int64_t first)
{
    const amx_state *s = t->s;
    const stk_conv_amx_plan *p = &s->plan;
    stk_amx_block g = {.m = n_pixels, .n = p->n_out_channels, .n_steps = p->n_steps[0], .a = from, .by_rows = true};
    g.a_row = p->n_channels;
    g.a_step = DEPTH;
    g.a_block = SIDE * p->n_channels;
    g.b = t->weight;
    g.b_panel = panel_elements(p);
    g.bias = t->bias;
    g.has_relu = s->has_relu;
    g.rounded_c = t->to + first * p->n_out_channels;
    g.c_row = p->n_out_channels;
    g.is_far = s->is_far;
    s->amx->multiply(&g);
}

/* Tiles read 16 pixels: of fewer at the end a copy. */
static void run_in_place(const void *task, int i_part, int n_parts)
{
    const amx_task *t = task;
    const stk_conv_amx_plan *p = &t->s->plan;
    int64_t n_all = p->n_images * p->y.in * p->x.in, c = p->n_channels, begin, end;
    stk_cpu_share(n_all, SIDE, i_part, n_parts, &begin, &end);
    int64_t whole = (end - begin) / STK_AMX_ROWS * STK_AMX_ROWS, rest = end - begin - whole;
    if (whole > 0) multiply_in_place(t, t->from + begin * c, whole, begin);
    if (rest <= 0) return;
    uint16_t *last = (uint16_t *)(void *)(t->scratch + t->s->thread_bytes * (size_t)stk_cpu_worker());
    memcpy(last, t->from + (begin + whole) * c, (size_t)(rest * c) * sizeof(*last));
    memset(last + rest * c, 0, (size_t)((STK_AMX_ROWS - rest) * c) * sizeof(*last));
    multiply_in_place(t, last, rest, begin + whole);
}

static stk_status run(const void *state, const stk_kernel_args *args)
{
    enum { MOST_SHARES = 4096 };
    const amx_state *s = state;
    const stk_conv_amx_plan *p = &s->plan;
    size_t units = s->thread_bytes * (size_t)s->n_threads;
    amx_task t = {.s = s, .from = args->in[0], .to = args->out[0], .scratch = args->scratch, .weight = args->packed};
    t.bias = s->has_bias ? args->in[2] : NULL;
    if (!t.weight) {
        weight_task w = {s, args->in[1], false, (uint16_t *)(void *)(t.scratch + units)};
        stk_cpu_parallel(PACKS_A_THREAD * s->n_threads, pack_share, &w);
        t.weight = w.to;
    }
    if (s->in_place) {
        stk_cpu_parallel(SHARES_A_THREAD * s->n_threads, run_in_place, &t);
        return STK_OK;
    }
    int64_t shares = p->n_units < MOST_SHARES ? p->n_units : MOST_SHARES;
    stk_cpu_parallel((int)shares * s->panel_parts, run_share, &t);
    return STK_OK;
}

static void release(void *state)
{
    amx_state *s = state;
    stk_conv_amx_plan_free(&s->plan);
    free(s);
}

/* --- making --- */

bool stk_conv_amx_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_conv_shape s = stk_conv_shape_of(call);
    return call->in[0].dtype == STK_BF16 && stk_amx_of(device->isa) && s.pass != STK_CONV_GRAD_WEIGHT &&
           s.x.rank == 4 && s.window.groups == 1 && s.window.stride[0] <= STK_CONV_AMX_STRIDE &&
           s.window.stride[1] <= STK_CONV_AMX_STRIDE;
}

/* Equal for kernels that pack the same weight in the same way. */
static uint64_t layout_of(const amx_state *s)
{
    const stk_conv_amx_plan *p = &s->plan;
    const int64_t about[] = {p->n_channels, p->n_out_channels, p->taps_y, p->taps_x, p->joins_row,  s->is_data,
                             p->y.stride,   p->x.stride,       p->y.pad,  p->x.pad,  p->y.dilation, p->x.dilation};
    return stk_hash64(about, sizeof(about), 'a');
}

/* Whether rows are read where they lie: all weights then come by from the second-level cache for each 32 pixels. */
static bool reads_in_place(const stk_conv_shape *s, const stk_conv_amx_plan *p)
{
    return stk_conv_is_point(s) && p->y.stride == 1 && p->x.stride == 1 && p->n_channels % DEPTH == 0 &&
           p->n_channels > 0 && p->weight_bytes <= MOST_WEIGHT_BYTES;
}

static size_t bytes_of_thread(const amx_state *s)
{
    const stk_conv_amx_plan *p = &s->plan;
    if (s->in_place) return stk_round_up((size_t)(STK_AMX_ROWS * p->n_channels) * sizeof(uint16_t), ALIGN);
    int64_t rows = p->most_rows < STK_AMX_PARTIAL_ROWS ? stk_round_up_i64(p->most_rows, SIDE) : STK_AMX_PARTIAL_ROWS;
    size_t partial = (size_t)(rows * SIDE) * sizeof(float);
    return stk_round_up(p->unit_bytes, ALIGN) + partial;
}

stk_status stk_conv_amx_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_conv_shape shape = stk_conv_shape_of(call);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(amx_state), run, out));
    amx_state *s = out->state;
    out->release = release;
    s->amx = stk_amx_of(device->isa);
    s->n_threads = device->base.n_threads;
    s->is_data = shape.pass == STK_CONV_GRAD_DATA;
    s->has_bias = shape.has_bias;
    s->has_relu = shape.has_relu;
    s->width = s->is_data ? shape.y.dim[2] : shape.x.dim[2];
    s->stride = shape.window.stride[1];
    s->pad = shape.window.pad_low[1];
    s->is_far = stk_is_past_caches(stk_desc_bytes(call->out[0]));
    STK_RETURN_IF_ERROR(stk_conv_amx_plan_make(&shape, s->n_threads, &s->plan));
    const stk_conv_amx_plan *p = &s->plan;
    s->in_place = reads_in_place(&shape, p);
    s->thread_bytes = bytes_of_thread(s);
    int64_t wanted = 2 * (int64_t)s->n_threads;
    s->panel_parts = p->n_units >= wanted ? 1 : (int)((wanted + p->n_units - 1) / p->n_units);
    if (s->panel_parts > p->n_panels) s->panel_parts = (int)p->n_panels;
    out->scratch_bytes = s->thread_bytes * (size_t)s->n_threads + p->weight_bytes;
    out->impl = stk_amx_impl(s->amx);
    out->packed_bytes = p->weight_bytes;
    out->packed_layout = layout_of(s);
    out->packed_input = 1;
    out->pack = pack_weight;
    return STK_OK;
}
