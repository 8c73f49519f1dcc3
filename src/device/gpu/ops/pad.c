/* Elements with others around them: pad, and the gradient of slice, which has zeros between them, too. */
#include <string.h>

#include "base/half.h"
#include "device/gpu/gpu.h"

enum { GROUP = 256, MOST_UNIT = 16 };

typedef struct border {
    size_t unit_bytes;
    int n_axes;
    bool steps;                                                                             /* some step is not 1 */
    int64_t size[STK_MAX_RANK], low[STK_MAX_RANK], inner[STK_MAX_RANK], step[STK_MAX_RANK]; /* as in pad.dev */
} border;

/* The next axis, from the outside: one that is taken whole becomes one with the one before. */
static void add_axis(border *b, int64_t size, int64_t low, int64_t inner, int64_t step)
{
    int last = b->n_axes - 1;
    if (last >= 0 && b->step[last] == 1 && low == 0 && inner == size) {
        b->size[last] *= size;
        b->low[last] *= size;
        b->inner[last] *= size;
        return;
    }
    b->steps |= step != 1;
    b->size[++last] = size;
    b->low[last] = low;
    b->inner[last] = inner;
    b->step[last] = step;
    b->n_axes++;
}

/* Pairs of elements move as one where every border lies between pairs. */
static void widen(border *b)
{
    int last = b->n_axes - 1;
    if (b->step[last] != 1) return;
    while (b->unit_bytes < MOST_UNIT && b->size[last] % 2 == 0 && b->low[last] % 2 == 0 && b->inner[last] % 2 == 0) {
        b->unit_bytes *= 2;
        b->size[last] /= 2;
        b->low[last] /= 2;
        b->inner[last] /= 2;
    }
}

static int64_t clamp(double x, double lowest, double beyond)
{
    return x != x ? 0 : x <= lowest ? (int64_t)lowest : x >= beyond ? (int64_t)(beyond - 1) : (int64_t)x;
}

/* The element again and again, in 8 bytes. */
static int64_t repeat(double value, stk_dtype dtype)
{
    uint64_t bits;
    switch (dtype) {
    case STK_F32: bits = stk_f32_bits((float)value); break;
    case STK_BF16: bits = stk_f32_to_bf16((float)value); break;
    case STK_F16: bits = stk_f32_to_f16((float)value); break;
    case STK_I64: bits = value >= 0x1p63 ? (uint64_t)INT64_MAX : (uint64_t)clamp(value, -0x1p63, 0x1p63); break;
    case STK_I32: bits = (uint32_t)clamp(value, -0x1p31, 0x1p31); break;
    case STK_I8: bits = (uint8_t)clamp(value, -128, 128); break;
    case STK_U8: bits = (uint8_t)clamp(value, 0, 256); break;
    default: bits = value != 0; break;
    }
    for (size_t bytes = stk_dtype_bytes(dtype); bytes < 8; bytes *= 2)
        bits |= bits << 8 * bytes;
    return (int64_t)bits;
}

static void add_launch(gpu_maker *m, border *b, double value)
{
    int64_t wide[4 * STK_MAX_RANK], n_units = 1;
    int32_t narrow[4 * STK_MAX_RANK];
    int n = 0;
    const int64_t *part[4] = {b->size, b->low, b->inner, b->step};
    if (stk_shape_count(m->call->out[0].shape) == 0) return;
    if (b->n_axes == 0) add_axis(b, 1, 0, 1, 1);
    widen(b);
    for (int k = 0; k < 4; k++)
        for (int a = 0; a < b->n_axes; a++, n++) {
            wide[n] = part[k][a];
            narrow[n] = (int32_t)part[k][a];
            if (k == 0) n_units *= part[k][a];
        }
    gpu_add(m, "pad.dev", "pad", "#define UNIT unit_%zu\n#define N_AXES %d\n#define STEPS %d\n", b->unit_bytes,
            b->n_axes, b->steps);
    gpu_in(m, 0);
    gpu_out(m, 0);
    gpu_bytes(m, m->wide ? (const void *)wide : narrow, (size_t)n * (m->wide ? sizeof(*wide) : sizeof(*narrow)));
    gpu_long(m, repeat(value, m->call->out[0].dtype));
    gpu_index(m, n_units);
    gpu_items(m, n_units, GROUP);
}

void gpu_make_pad(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    border b = {.unit_bytes = stk_dtype_bytes(call->out[0].dtype)};
    for (int a = 0; a < call->out[0].shape.rank; a++)
        add_axis(&b, call->out[0].shape.dim[a], call->attrs->pad.low[a], call->in[0].shape.dim[a], 1);
    add_launch(m, &b, call->attrs->pad.value);
}

void gpu_make_slice_grad(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    border b = {.unit_bytes = stk_dtype_bytes(call->out[0].dtype)};
    for (int a = 0; a < call->out[0].shape.rank; a++)
        add_axis(&b, call->out[0].shape.dim[a], call->attrs->slice.start[a], call->in[0].shape.dim[a],
                 call->attrs->slice.step[a]);
    add_launch(m, &b, 0);
}
