/* Layers with a state of opset 27: a causal convolution along time, channel by channel, and linear attention, step by
 * step; then determinants and grids, which are small products. Formulas: ONNX's operator descriptions.
 */
#include <math.h>
#include <string.h>

#include "onnx/build_list.h"

enum { MOST_TAPS = 1024, MOST_STEPS = 4096, MOST_DET = 4 };

static stk_value wide(stk_value x)
{
    return stk_value_dtype(x) == STK_F64 ? x : stk_cast_to(x, STK_F32);
}

/* --- CausalConvWithState --- */

stk_status stk_onnx_build_CausalConvWithState(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), weight = stk_onnx_input(b, 1), sum = stk_value_none(b->model->graph);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(x), taps = stk_value_shape(weight);
    stk_dtype dtype = stk_value_dtype(x);
    if (shape.rank != 3 || taps.rank != 3 || taps.dim[0] != shape.dim[1] || taps.dim[1] != 1 || shape.dim[2] < 1)
        return stk_fail(STK_INVALID, "its input and weight must be [N,C,L] and [C,1,K]");
    int64_t k = taps.dim[2], n = shape.dim[2];
    if (k < 1 || k > MOST_TAPS)
        return stk_fail(STK_UNSUPPORTED, "it has %lld taps, and can have 1 to 1024 here", (long long)k);
    if (stk_onnx_has_input(b, 3))
        x = stk_concat((stk_value[]){stk_onnx_input(b, 3), x}, 2, 2);
    else
        x = stk_pad(x, (int64_t[]){0, 0, k - 1}, (int64_t[]){0, 0, 0}, 0);
    for (int64_t i = 0; i < k; i++) {
        stk_value tap = stk_reshape(stk_onnx_cut(weight, 2, i, 1), STK_SHAPE(1, shape.dim[1], 1));
        stk_value part = stk_mul(wide(stk_onnx_cut(x, 2, i, n)), wide(tap));
        sum = sum.id < 0 ? part : stk_add(sum, part);
    }
    if (stk_onnx_has_input(b, 2))
        sum = stk_add(sum, wide(stk_reshape(stk_onnx_input(b, 2), STK_SHAPE(1, shape.dim[1], 1))));
    if (stk_onnx_attribute_is(b, "activation", "silu") || stk_onnx_attribute_is(b, "activation", "swish")) {
        sum = wide(stk_cast_to(sum, dtype));
        sum = stk_mul(sum, stk_sigmoid(sum));
    }
    STK_RETURN_IF_ERROR(stk_onnx_output(b, 0, stk_cast_to(sum, dtype)));
    if (!stk_onnx_has_output(b, 1)) return STK_OK;
    return stk_onnx_output(b, 1, stk_onnx_cut(x, 2, n, k - 1));
}

/* --- LinearAttention --- */

typedef struct linear {
    int64_t n, t, heads, kv_heads, d_k, d_v;
    bool gates, corrects;
    double scale;
    stk_value q, k, v, decay, beta; /* [N,T,heads,...], f32; id -1: none */
} linear;

static stk_value unpack(stk_value x, int64_t heads)
{
    stk_shape shape = stk_value_shape(x);
    return wide(stk_reshape(x, STK_SHAPE(shape.dim[0], shape.dim[1], heads, shape.dim[2] / heads)));
}

/* Step t of x [N,T,H,D] as [N,H,...]: with one more axis of 1 at the end (`column`) or before D. */
static stk_value step_of(stk_value x, int64_t t, bool column)
{
    stk_shape s = stk_value_shape(x);
    stk_value one = stk_onnx_cut(x, 1, t, 1);
    return stk_reshape(one, column ? STK_SHAPE(s.dim[0], s.dim[2], s.dim[3], 1)
                                   : STK_SHAPE(s.dim[0], s.dim[2], 1, s.dim[3]));
}

static stk_status read_linear(stk_build *b, linear *a)
{
    stk_value q = stk_onnx_input(b, 0), k = stk_onnx_input(b, 1), v = stk_onnx_input(b, 2);
    stk_value none = stk_value_none(b->model->graph);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(q), values = stk_value_shape(v), keys = stk_value_shape(k);
    *a = (linear){.n = shape.dim[0], .t = shape.dim[1], .decay = none, .beta = none};
    a->heads = stk_onnx_attribute_int(b, "q_num_heads", 0);
    a->kv_heads = stk_onnx_attribute_int(b, "kv_num_heads", 0);
    if (shape.rank != 3 || keys.rank != 3 || values.rank != 3 || a->heads < 1 || a->kv_heads < 1 ||
        a->heads % a->kv_heads || shape.dim[2] % a->heads || keys.dim[2] % a->kv_heads || values.dim[2] % a->kv_heads ||
        keys.dim[2] / a->kv_heads != shape.dim[2] / a->heads || keys.dim[1] != a->t || values.dim[1] != a->t)
        return stk_fail(STK_INVALID, "its inputs and numbers of heads do not fit");
    if (a->t < 1 || a->t > MOST_STEPS)
        return stk_fail(STK_UNSUPPORTED, "it has %lld steps, and can have 1 to %d here", (long long)a->t, MOST_STEPS);
    a->d_k = shape.dim[2] / a->heads;
    a->d_v = values.dim[2] / a->kv_heads;
    a->gates = !stk_onnx_attribute_is(b, "update_rule", "linear") && !stk_onnx_attribute_is(b, "update_rule", "delta");
    a->corrects =
        !stk_onnx_attribute_is(b, "update_rule", "linear") && !stk_onnx_attribute_is(b, "update_rule", "gated");
    if (a->gates != stk_onnx_has_input(b, 4) || a->corrects != stk_onnx_has_input(b, 5))
        return stk_fail(STK_INVALID, "its inputs 'decay' and 'beta' do not fit its attribute 'update_rule'");
    a->scale = stk_onnx_attribute_float(b, "scale", 0);
    if (a->scale == 0) a->scale = 1 / sqrt((double)a->d_k);
    a->q = unpack(q, a->heads);
    a->k = unpack(k, a->kv_heads);
    a->v = unpack(v, a->kv_heads);
    if (a->gates) {
        int64_t width = stk_value_shape(stk_onnx_input(b, 4)).dim[2];
        if (width != a->kv_heads && width != a->kv_heads * a->d_k)
            return stk_fail(STK_INVALID, "its decay does not fit");
        a->decay = unpack(stk_onnx_input(b, 4), a->kv_heads);
    }
    if (a->corrects) {
        int64_t width = stk_value_shape(stk_onnx_input(b, 5)).dim[2];
        if (width != a->kv_heads && width != 1) return stk_fail(STK_INVALID, "its beta does not fit");
        a->beta = unpack(stk_onnx_input(b, 5), width);
    }
    return stk_graph_status(b->model->graph);
}

/* The state [N,H,K,V] behind step t; state's id is -1 where it begins with zeros. */
static stk_value next_state(const linear *a, stk_value state, int64_t t)
{
    stk_value k = step_of(a->k, t, true), v = step_of(a->v, t, false); /* [N,H,K,1], [N,H,1,V] */
    if (a->gates && state.id >= 0) state = stk_mul(state, stk_exp(step_of(a->decay, t, true)));
    if (a->corrects) {
        stk_value seen = v;
        if (state.id >= 0) {
            stk_value sum = stk_reduce_sum(stk_mul(state, k), 1u << 2);
            seen = stk_sub(v, stk_reshape(sum, STK_SHAPE(a->n, a->kv_heads, 1, a->d_v)));
        }
        v = stk_mul(step_of(a->beta, t, false), seen);
    }
    stk_value added = stk_mul(k, v);
    return state.id < 0 ? added : stk_add(state, added);
}

stk_status stk_onnx_build_LinearAttention(stk_build *b)
{
    linear a;
    STK_RETURN_IF_ERROR(read_linear(b, &a));
    stk_value state = stk_value_none(b->model->graph), *y;
    stk_dtype dtype = stk_value_dtype(stk_onnx_input(b, 0)), of_state = dtype;
    if (stk_onnx_has_input(b, 3)) {
        of_state = stk_value_dtype(stk_onnx_input(b, 3));
        state = wide(stk_onnx_input(b, 3));
    }
    if (!(y = stk_arena_alloc(b->model->arena, (size_t)a.t * sizeof(*y)))) return stk_fail_memory((size_t)a.t);
    for (int64_t t = 0; t < a.t; t++) {
        state = next_state(&a, state, t);
        stk_value q = stk_reshape(stk_onnx_cut(a.q, 1, t, 1), STK_SHAPE(a.n, a.kv_heads, a.heads / a.kv_heads, a.d_k));
        stk_value read = stk_scale_by(stk_matmul(q, state, false, false), a.scale);
        y[t] = stk_reshape(read, STK_SHAPE(a.n, 1, a.heads * a.d_v));
    }
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(stk_onnx_output(b, 0, stk_cast_to(stk_concat(y, (int)a.t, 1), dtype)));
    return stk_onnx_has_output(b, 1) ? stk_onnx_output(b, 1, stk_cast_to(state, of_state)) : STK_OK;
}

/* --- Det --- */

/* Element (i, j) of matrices [...,M,M]: [...]. */
static stk_value element(stk_value x, int i, int j)
{
    stk_shape shape = stk_value_shape(x), rest = shape;
    rest.rank -= 2;
    rest.dim[rest.rank] = rest.dim[rest.rank + 1] = 0;
    return stk_reshape(stk_onnx_cut(stk_onnx_cut(x, shape.rank - 2, i, 1), shape.rank - 1, j, 1), rest);
}

/* Of rows `row` and below, and the columns whose bits are set: along the first of those rows. */
static stk_value det(stk_value x, int row, unsigned columns)
{
    stk_value sum = stk_value_none(x.graph);
    int sign = 1, m = (int)stk_value_shape(x).dim[stk_value_shape(x).rank - 1];
    for (int j = 0; j < m; j++) {
        if (!(columns >> j & 1)) continue;
        stk_value term = element(x, row, j);
        if (row + 1 < m) term = stk_mul(term, det(x, row + 1, columns & ~(1u << j)));
        sum = sum.id < 0 ? term : sign > 0 ? stk_add(sum, term) : stk_sub(sum, term);
        sign = -sign;
    }
    return sum;
}

stk_status stk_onnx_build_Det(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(x);
    if (shape.rank < 2 || shape.dim[shape.rank - 1] != shape.dim[shape.rank - 2])
        return stk_fail(STK_INVALID, "its input is no square matrix");
    int64_t m = shape.dim[shape.rank - 1];
    if (m < 1 || m > MOST_DET)
        return stk_fail(STK_UNSUPPORTED, "it has %lld rows, and can have 1 to %d here", (long long)m, MOST_DET);
    return stk_onnx_output(b, 0, det(x, 0, (1u << m) - 1));
}

/* --- AffineGrid --- */

stk_status stk_onnx_build_AffineGrid(stk_build *b)
{
    stk_value theta = stk_onnx_input(b, 0);
    const int64_t *size;
    int n;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &size, &n));
    stk_shape shape = stk_value_shape(theta), to = {.rank = n, .dim = {shape.dim[0]}};
    int n_dims = n - 2;
    if (n_dims < 2 || n_dims > 3 || shape.rank != 3 || shape.dim[1] != n_dims || shape.dim[2] != n_dims + 1)
        return stk_fail(STK_INVALID, "its theta and size must be [N,2,3] and [N,C,H,W], or [N,3,4] and [N,C,D,H,W]");
    bool corners = stk_onnx_attribute_int(b, "align_corners", 0) != 0;
    int64_t n_places = 1;
    for (int i = 0; i < n_dims; i++) {
        to.dim[1 + i] = size[2 + i];
        if (size[2 + i] < 1 || (n_places *= size[2 + i]) > 1 << 24)
            return stk_fail(STK_UNSUPPORTED, "its size is not from 1 to 16777216 pixels");
    }
    to.dim[n - 1] = n_dims;
    /* Rows: x, y, (z), 1; the last dimension of the image is x. */
    float *base = stk_arena_alloc(b->model->arena, (size_t)((n_dims + 1) * n_places) * sizeof(*base));
    if (!base) return stk_fail_memory((size_t)n_places * sizeof(*base));
    for (int64_t p = 0; p < n_places; p++) {
        int64_t rest = p;
        for (int i = n_dims - 1; i >= 0; i--) {
            int64_t m = size[2 + i], at = rest % m;
            double even = (2 * (double)at + 1) / (double)m - 1,
                   edges = m > 1 ? 2 * (double)at / (double)(m - 1) - 1 : -1;
            base[(n_dims - 1 - i) * n_places + p] = (float)(corners ? edges : even);
            rest /= m;
        }
        base[n_dims * n_places + p] = 1;
    }
    stk_value grid = stk_onnx_fixed_value(b, STK_F32, STK_SHAPE(n_dims + 1, n_places), base);
    stk_value y = stk_matmul(theta, stk_cast_to(grid, stk_value_dtype(theta)), false, false);
    return stk_onnx_output(b, 0, stk_reshape(stk_transpose(y, (int32_t[]){0, 2, 1}), to));
}
