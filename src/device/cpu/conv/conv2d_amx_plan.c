#include "device/cpu/conv/conv2d_amx_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "device/cpu/amx/amx.h"

enum {
    UNIT_BYTES = 1024 * 1024, /* of the second-level cache, next to a panel of weights */
    FEW_CHANNELS = 16,
    MOST_OF_ROW = 2 * STK_AMX_DEPTH,
    UNITS_A_THREAD = 2,
    MOST_PHASES = STK_CONV_AMX_PHASES
};

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- an axis --- */

int64_t stk_conv_amx_count(int64_t pixels, int phase, int n_phases)
{
    return (pixels - phase + n_phases - 1) / n_phases;
}

bool stk_conv_amx_tap(const stk_conv_amx_axis *a, int out_phase, int64_t tap, int *in, int64_t *shift)
{
    int64_t at = a->is_data ? out_phase + a->pad - tap * a->dilation : tap * a->dilation - a->pad;
    int64_t rest = (at % a->stride + a->stride) % a->stride;
    *shift = (at - rest) / a->stride;
    *in = a->is_data ? 0 : (int)rest;
    return !a->is_data || rest == 0;
}

static stk_conv_amx_axis make_axis(const stk_conv_shape *s, int axis)
{
    bool is_data = s->pass == STK_CONV_GRAD_DATA;
    const stk_window *w = &s->window;
    const stk_shape *in = is_data ? &s->y : &s->x, *out = is_data ? &s->x : &s->y;
    stk_conv_amx_axis a = {.in = in->dim[axis + 1], .out = out->dim[axis + 1], .is_data = is_data};
    a.stride = w->stride[axis];
    a.n_in = is_data ? 1 : a.stride;
    a.n_out = is_data ? a.stride : 1;
    a.kernel = s->weight.dim[axis + 1];
    a.pad = w->pad_low[axis];
    a.dilation = w->dilation[axis];
    return a;
}

static void measure_axis(stk_conv_amx_axis *a)
{
    a->lead = a->tail = 0;
    for (int out = 0; out < a->n_out; out++)
        for (int64_t tap = 0; tap < a->kernel; tap++) {
            int in;
            int64_t shift;
            if (!stk_conv_amx_tap(a, out, tap, &in, &shift)) continue;
            a->lead = most_of(a->lead, -shift);
            a->tail = most_of(a->tail, shift);
        }
    a->places = stk_conv_amx_count(a->out, 0, a->n_out);
    a->pitch = most_of(a->places + a->tail, stk_conv_amx_count(a->in, 0, a->n_in) + a->lead);
}

/* --- units --- */

/* Whether a place is a pixel of 16 images, the rows of a tile. */
static bool gains_together(const stk_conv_amx_plan *p)
{
    enum { ALL = 100, MOST = 105 };
    int64_t computed = p->y.pitch * p->x.pitch, wanted = p->y.places * p->x.places;
    return !p->joins_row && p->n_images % STK_AMX_ROWS == 0 && computed * ALL > wanted * MOST;
}

static void cut_units(stk_conv_amx_plan *p, int n_threads)
{
    int64_t place = p->n_slots * p->n_chunks * p->place * (int64_t)sizeof(uint16_t), row = p->x.pitch * place;
    int64_t group = p->y.pitch * row, n_shares = UNITS_A_THREAD * n_threads;
    p->unit_groups = p->n_bands = 1;
    p->unit_rows = p->y.places;
    if (group <= UNIT_BYTES) {
        int64_t share = (p->n_groups + n_shares - 1) / n_shares;
        p->unit_groups = UNIT_BYTES / (group ? group : 1);
        if (p->unit_groups > share) p->unit_groups = share;
    } else {
        int64_t most = most_of(UNIT_BYTES / row - p->y.lead - p->y.tail, 1);
        p->n_bands = (p->y.places + most - 1) / most;
        p->unit_rows = (p->y.places + p->n_bands - 1) / p->n_bands;
        p->n_bands = (p->y.places + p->unit_rows - 1) / p->unit_rows;
    }
    p->n_units = (p->n_groups + p->unit_groups - 1) / p->unit_groups * p->n_bands;
    int64_t rows = p->n_bands > 1 ? p->unit_rows : p->unit_groups * p->y.pitch;
    p->front = p->y.lead * p->x.pitch + p->x.lead;
    p->phase_places = p->front + (rows + p->y.tail) * p->x.pitch + p->x.tail + STK_AMX_SIDE;
    p->phase_places |= 1; /* chunks a power of two apart would share a few sets of the first-level cache */
    p->unit_bytes = (size_t)(p->phase_places * place);
}

/* --- what each out phase does --- */

/* Its steps, or, where steps is NULL, how many they are and which lines they read. */
static int64_t list_steps(stk_conv_amx_plan *p, int phase, int64_t *steps)
{
    int64_t n = 0, shift_y, shift_x;
    int in_y, in_x, out_y = phase / p->x.n_out, out_x = phase % p->x.n_out;
    for (int64_t chunk = 0; chunk < p->n_chunks; chunk++)
        for (int64_t tap = 0; tap < p->taps_y * p->taps_x; tap++) {
            if (!stk_conv_amx_tap(&p->y, out_y, tap / p->taps_x, &in_y, &shift_y)) continue;
            if (!stk_conv_amx_tap(&p->x, out_x, tap % p->taps_x, &in_x, &shift_x)) continue;
            int *slot = &p->slot[in_y * p->x.n_in + in_x];
            if (*slot < 0) *slot = p->n_slots++;
            int64_t place = p->front + shift_y * p->x.pitch + shift_x;
            if (steps) steps[n] = ((*slot * p->n_chunks + chunk) * p->phase_places + place) * p->place;
            n++;
        }
    return n;
}

/* Places that are computed, and, where images are together, no others: by rows, then columns, then images. */
static void list_rows(const stk_conv_amx_plan *p, int phase, int32_t *rows, int64_t *tiles)
{
    int out_y = phase / p->x.n_out, out_x = phase % p->x.n_out;
    int64_t n_y = stk_conv_amx_count(p->y.out, out_y, p->y.n_out);
    int64_t n_x = stk_conv_amx_count(p->x.out, out_x, p->x.n_out), image = p->y.out * p->x.out;
    bool is_band = p->n_bands > 1;
    int64_t pitch = is_band ? p->unit_rows : p->y.pitch;
    for (int64_t i = 0; i < p->unit_groups * pitch; i++)
        for (int64_t x = 0; x < p->x.pitch; x++) {
            int64_t group = i / pitch, y = i % pitch;
            int64_t pixel = (y * p->y.n_out + out_y) * p->x.out + x * p->x.n_out + out_x;
            bool exists = x < n_x && (y < n_y || is_band);
            if (!exists && tiles) continue;
            if (tiles) *tiles++ = (i * p->x.pitch + x) * p->place;
            for (int64_t k = 0; k < p->together; k++)
                *rows++ = exists ? (int32_t)((group * p->together + k) * image + pixel) : -1;
        }
}

int64_t stk_conv_amx_rows(const stk_conv_amx_plan *p, int phase, int64_t n_groups, int64_t first_row)
{
    int64_t n_y = stk_conv_amx_count(p->y.out, phase / p->x.n_out, p->y.n_out) - first_row;
    int64_t n_x = stk_conv_amx_count(p->x.out, phase % p->x.n_out, p->x.n_out);
    bool is_line = p->together == 1, is_band = p->n_bands > 1;
    if (n_y > p->unit_rows && is_band) n_y = p->unit_rows;
    if (n_y <= 0) return 0;
    int64_t rows = is_band ? n_y : n_groups * (is_line ? p->y.pitch : n_y);
    return rows * (is_line ? p->x.pitch : n_x * p->together);
}

static stk_status make_phases(stk_conv_amx_plan *p)
{
    int n_phases = p->y.n_out * p->x.n_out;
    size_t n_places = (size_t)(p->unit_groups * (p->n_bands > 1 ? p->unit_rows : p->y.pitch) * p->x.pitch);
    for (int i = 0; i < n_phases; i++) {
        size_t n_steps = (size_t)p->n_steps[i], n_rows = n_places * (size_t)p->together;
        p->most_rows = most_of(p->most_rows, (int64_t)n_rows);
        p->steps[i] = calloc(n_steps + 1, sizeof(*p->steps[i]));
        p->rows[i] = calloc(n_rows + 1, sizeof(*p->rows[i]));
        if (p->together > 1) p->tiles[i] = calloc(n_places + 1, sizeof(*p->tiles[i]));
        if (!p->steps[i] || !p->rows[i] || (p->together > 1 && !p->tiles[i]))
            return stk_fail_memory((n_steps + n_places) * sizeof(int64_t) + n_rows * sizeof(int32_t));
        list_steps(p, i, p->steps[i]);
        list_rows(p, i, p->rows[i], p->tiles[i]);
    }
    return STK_OK;
}

static void join_row(stk_conv_amx_plan *p)
{
    p->joins_row = true;
    p->place_values = p->x.kernel * p->n_channels;
    p->taps_x = 1;
    p->x.kernel = p->x.dilation = p->x.stride = p->x.n_in = 1;
    p->x.in = p->x.out;
    p->x.pad = 0;
}

stk_status stk_conv_amx_plan_make(const stk_conv_shape *s, int n_threads, stk_conv_amx_plan *p)
{
    bool is_data = s->pass == STK_CONV_GRAD_DATA;
    const stk_window *w = &s->window;
    *p = (stk_conv_amx_plan){.y = make_axis(s, 0), .x = make_axis(s, 1), .n_images = s->x.dim[0]};
    if (w->stride[0] > STK_CONV_AMX_STRIDE || w->stride[1] > STK_CONV_AMX_STRIDE)
        return stk_fail(STK_UNSUPPORTED, "tiles have strides of 1 and 2");
    p->n_channels = is_data ? s->weight.dim[0] : s->weight.dim[3];
    p->n_out_channels = is_data ? s->weight.dim[3] : s->weight.dim[0];
    p->taps_y = p->y.kernel;
    p->taps_x = p->x.kernel;
    p->place_values = p->n_channels;
    if (!is_data && p->n_channels < FEW_CHANNELS && p->taps_x * p->n_channels <= MOST_OF_ROW && p->x.dilation == 1)
        join_row(p);
    measure_axis(&p->y);
    measure_axis(&p->x);
    p->n_chunks = (p->place_values + STK_AMX_DEPTH - 1) / STK_AMX_DEPTH;
    p->n_panels = (p->n_out_channels + STK_AMX_SIDE - 1) / STK_AMX_SIDE;
    memset(p->slot, 0xff, sizeof(p->slot));
    int64_t n_steps = 0;
    for (int i = 0; i < p->y.n_out * p->x.n_out; i++) {
        p->first[i] = n_steps;
        p->n_steps[i] = list_steps(p, i, NULL);
        n_steps += p->n_steps[i];
    }
    p->weight_bytes = (size_t)(p->n_panels * n_steps * STK_AMX_STEP) * sizeof(uint16_t);
    p->together = gains_together(p) ? STK_AMX_ROWS : 1;
    p->n_groups = p->n_images / p->together;
    p->place = p->together * STK_AMX_DEPTH;
    cut_units(p, n_threads);
    if (p->unit_groups * p->together * p->y.out * p->x.out > INT32_MAX)
        return stk_fail(STK_UNSUPPORTED, "too many pixels for tiles");
    return make_phases(p);
}

void stk_conv_amx_plan_free(stk_conv_amx_plan *p)
{
    for (int i = 0; i < MOST_PHASES; i++) {
        free(p->steps[i]);
        free(p->rows[i]);
        free(p->tiles[i]);
        p->steps[i] = p->tiles[i] = NULL;
        p->rows[i] = NULL;
    }
}
