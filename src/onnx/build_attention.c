/* Attention, and what transformers' exports have around it: RotaryEmbedding, RMSNormalization, Swish, SwiGLU.
 * Formulas: ONNX's operator descriptions, Attention-24 and others of opset 23 to 25.
 */
#include <math.h>

#include "onnx/build_list.h"

enum { MODE_PRODUCT, MODE_SOFTCAP, MODE_BIASED, MODE_SHARES }; /* qk_matmul_output_mode */

typedef struct attention {
    stk_value q, k, v, bias; /* q [B,H,T,D], k and v [B,H,S,D], bias: what is added to products; id -1: nothing */
    stk_dtype dtype;
    int64_t n_queries, n_keys, n_past;
    int n_heads, n_kv_heads;
} attention;

/* [B,T,H*D] -> [B,H,T,D] */
static stk_status split_heads(stk_value *x, int64_t n_heads, const char *what)
{
    stk_shape shape = stk_value_shape(*x);
    if (n_heads < 1 || shape.dim[2] % n_heads)
        return stk_fail(STK_INVALID, "its %lld heads do not divide its %s", (long long)n_heads, what);
    *x = stk_reshape(*x, STK_SHAPE(shape.dim[0], shape.dim[1], n_heads, shape.dim[2] / n_heads));
    *x = stk_transpose(*x, (int32_t[]){0, 2, 1, 3});
    return STK_OK;
}

/* Each head as often as queries' heads share it. */
static stk_value repeat_heads(stk_value x, int64_t times)
{
    stk_shape s = stk_value_shape(x);
    if (times == 1) return x;
    x = stk_reshape(x, STK_SHAPE(s.dim[0], s.dim[1], 1, s.dim[2], s.dim[3]));
    x = stk_broadcast(x, STK_SHAPE(s.dim[0], s.dim[1], times, s.dim[2], s.dim[3]));
    return stk_reshape(x, STK_SHAPE(s.dim[0], s.dim[1] * times, s.dim[2], s.dim[3]));
}

/* 0 where allowed, minus infinity elsewhere. */
static stk_value bias_of(stk_value allowed, stk_dtype dtype)
{
    stk_graph *graph = allowed.graph;
    stk_value none = stk_graph_constant(graph, dtype, (stk_shape){0}, -INFINITY);
    return stk_select(allowed, stk_graph_constant(graph, dtype, (stk_shape){0}, 0), none);
}

static void add_bias(attention *a, stk_value more)
{
    a->bias = a->bias.id < 0 ? more : stk_add(a->bias, more);
}

/* The mask that the node is given; keys behind its end are not allowed. */
static stk_status read_mask(stk_build *b, attention *a)
{
    if (!stk_onnx_has_input(b, 3)) return STK_OK;
    stk_value mask = stk_onnx_input(b, 3);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(mask);
    if (shape.rank < 1 || shape.dim[shape.rank - 1] < 1)
        return stk_fail(STK_UNSUPPORTED, "the size of its mask is not known");
    if (stk_value_dtype(mask) == STK_BOOL) mask = bias_of(mask, a->dtype);
    mask = stk_cast_to(mask, a->dtype);
    int64_t missing = a->n_keys - shape.dim[shape.rank - 1], low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0};
    if (missing < 0) return stk_fail(STK_INVALID, "its mask is for more keys than there are");
    high[shape.rank - 1] = missing;
    if (missing) mask = stk_pad(mask, low, high, -INFINITY);
    add_bias(a, mask);
    return STK_OK;
}

/* Where each sequence's first query stands among the keys, i32 [B,1,1,1] or a scalar. */
static stk_value place_of_queries(stk_build *b, const attention *a, stk_value lengths)
{
    if (lengths.id < 0) return stk_graph_constant(b->model->graph, STK_I32, (stk_shape){0}, (double)a->n_past);
    return stk_shift_by(lengths, -(double)a->n_queries);
}

/* What is left to see of the keys: causal, a window around the query, those that are no padding. */
static void limit_keys(stk_build *b, attention *a)
{
    stk_graph *graph = b->model->graph;
    stk_value lengths = stk_value_none(graph);
    if (stk_onnx_has_input(b, 6)) {
        stk_value n = stk_cast_to(stk_onnx_input(b, 6), STK_I32);
        lengths = stk_reshape(n, STK_SHAPE(stk_shape_count(stk_value_shape(n)), 1, 1, 1));
    }
    stk_value query = stk_iota(graph, STK_I32, STK_SHAPE(a->n_queries, 1), 0),
              key = stk_iota(graph, STK_I32, STK_SHAPE(1, a->n_keys), 1);
    stk_value ahead = stk_sub(key, stk_add(query, place_of_queries(b, a, lengths))); /* of the query, in keys */
    int64_t before = stk_onnx_attribute_int(b, "left_window_size", -1),
            behind = stk_onnx_attribute_int(b, "right_window_size", -1);
    if (stk_onnx_attribute_int(b, "is_causal", 0))
        add_bias(a, bias_of(stk_less_equal(ahead, stk_onnx_like(ahead, 0)), a->dtype));
    if (before >= 0) add_bias(a, bias_of(stk_greater_equal(ahead, stk_onnx_like(ahead, -(double)before)), a->dtype));
    if (behind >= 0) add_bias(a, bias_of(stk_less_equal(ahead, stk_onnx_like(ahead, (double)behind)), a->dtype));
    if (lengths.id >= 0) add_bias(a, bias_of(stk_less(key, lengths), a->dtype));
}

/* The shares of keys, 0 for queries that may see none. */
static stk_value shares_of(const attention *a, stk_value scores, stk_dtype inside)
{
    stk_value shares;
    if (a->bias.id < 0) return stk_softmax(stk_cast_to(scores, inside));
    stk_shape of_bias = stk_value_shape(a->bias), rows = of_bias;
    rows.dim[rows.rank - 1] = 1;
    stk_value most = stk_reshape(stk_reduce_max(a->bias, 1u << (of_bias.rank - 1)), rows);
    stk_value blind = stk_equal(most, stk_onnx_like(most, -INFINITY));
    scores = stk_select(blind, stk_onnx_like(scores, 0), scores);
    shares = stk_softmax(stk_cast_to(scores, inside));
    return stk_select(blind, stk_onnx_like(shares, 0), shares);
}

/* Reads q, k, v and what came before, gives the present keys and values out. */
static stk_status read_values(stk_build *b, attention *a)
{
    a->q = stk_onnx_input(b, 0);
    a->k = stk_onnx_input(b, 1);
    a->v = stk_onnx_input(b, 2);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    a->dtype = stk_value_dtype(a->q);
    int rank = stk_value_shape(a->q).rank;
    if ((rank != 3 && rank != 4) || stk_value_shape(a->k).rank != rank || stk_value_shape(a->v).rank != rank)
        return stk_fail(STK_INVALID, "its queries, keys and values have not all 3 or all 4 dimensions");
    if (rank == 3) {
        int64_t n = stk_onnx_attribute_int(b, "q_num_heads", 0), n_kv = stk_onnx_attribute_int(b, "kv_num_heads", 0);
        STK_RETURN_IF_ERROR(split_heads(&a->q, n, "queries"));
        STK_RETURN_IF_ERROR(split_heads(&a->k, n_kv, "keys"));
        STK_RETURN_IF_ERROR(split_heads(&a->v, n_kv, "values"));
    }
    if (stk_onnx_has_input(b, 4) != stk_onnx_has_input(b, 5))
        return stk_fail(STK_INVALID, "it has past keys or past values, and not both");
    if (stk_onnx_has_input(b, 4)) {
        stk_value past_k = stk_onnx_input(b, 4), past_v = stk_onnx_input(b, 5);
        STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
        a->n_past = stk_value_shape(past_k).rank == 4 ? stk_value_shape(past_k).dim[2] : -1;
        a->k = stk_concat((stk_value[]){past_k, a->k}, 2, 2);
        a->v = stk_concat((stk_value[]){past_v, a->v}, 2, 2);
        STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    }
    STK_RETURN_IF_ERROR(stk_onnx_output(b, 1, a->k));
    STK_RETURN_IF_ERROR(stk_onnx_output(b, 2, a->v));
    a->n_queries = stk_value_shape(a->q).dim[2];
    a->n_keys = stk_value_shape(a->k).dim[2];
    int64_t n = stk_value_shape(a->q).dim[1], n_kv = stk_value_shape(a->k).dim[1];
    if (a->n_queries < 0 || a->n_keys < 0 || a->n_past < 0)
        return stk_fail(STK_UNSUPPORTED, "the number of its queries or keys is not known");
    if (n_kv < 1 || n % n_kv || stk_value_shape(a->v).dim[1] != n_kv)
        return stk_fail(STK_INVALID, "its %lld heads of queries do not share %lld of keys", (long long)n,
                        (long long)n_kv);
    a->k = repeat_heads(a->k, n / n_kv);
    a->v = repeat_heads(a->v, n / n_kv);
    return STK_OK;
}

stk_status stk_onnx_build_Attention(stk_build *b)
{
    attention a = {.bias = stk_value_none(b->model->graph)};
    STK_RETURN_IF_ERROR(read_values(b, &a));
    STK_RETURN_IF_ERROR(read_mask(b, &a));
    limit_keys(b, &a);
    stk_dtype inside = a.dtype;
    if (stk_onnx_attribute(b, "softmax_precision"))
        STK_RETURN_IF_ERROR(stk_onnx_dtype((int32_t)stk_onnx_attribute_int(b, "softmax_precision", 0), &inside));
    double width = (double)stk_value_shape(a.q).dim[3], softcap = stk_onnx_attribute_float(b, "softcap", 0);
    double scale = stk_onnx_attribute_float(b, "scale", width > 0 ? 1 / sqrt(width) : 1);
    if (!(scale > 0)) return stk_fail(STK_UNSUPPORTED, "its attribute 'scale' is %g, and must be above 0", scale);
    int64_t mode = stk_onnx_attribute_int(b, "qk_matmul_output_mode", MODE_PRODUCT);
    stk_value q = stk_scale_by(a.q, sqrt(scale)), k = stk_scale_by(a.k, sqrt(scale));
    stk_value scores = stk_matmul(q, k, false, true), told = scores;
    if (softcap > 0) scores = stk_scale_by(stk_tanh(stk_scale_by(scores, 1 / softcap)), softcap);
    if (softcap > 0) told = scores;
    if (a.bias.id >= 0) scores = stk_add(scores, a.bias);
    if (mode == MODE_BIASED) told = scores;
    stk_value shares = shares_of(&a, scores, inside);
    if (mode == MODE_SHARES) told = shares;
    stk_value y = stk_matmul(stk_cast_to(shares, a.dtype), a.v, false, false);
    if (stk_value_shape(stk_onnx_input(b, 0)).rank == 3) {
        stk_shape s = stk_value_shape(y);
        y = stk_reshape(stk_transpose(y, (int32_t[]){0, 2, 1, 3}), STK_SHAPE(s.dim[0], s.dim[2], s.dim[1] * s.dim[3]));
    }
    STK_RETURN_IF_ERROR(stk_onnx_output(b, 0, y));
    return stk_onnx_output(b, 3, stk_cast_to(told, a.dtype));
}

/* --- beside it --- */

/* From start on every step-th of the last axis, up to stop. */
static stk_value columns(stk_value x, int64_t start, int64_t stop, int64_t step)
{
    int64_t from[STK_MAX_RANK] = {0}, to[STK_MAX_RANK], by[STK_MAX_RANK];
    int rank = stk_value_shape(x).rank;
    for (int i = 0; i < STK_MAX_RANK; i++) {
        to[i] = STK_ANY;
        by[i] = 1;
    }
    if (rank > 0) {
        from[rank - 1] = start;
        to[rank - 1] = stop;
        by[rank - 1] = step;
    }
    return stk_slice(x, from, to, by);
}

/* Sines or cosines [B,T,R/2] of input i, as [B,T,1,R/2]; with position ids rows of a table [P,R/2]. */
static stk_value turns_of(stk_build *b, int i)
{
    stk_value table = stk_onnx_input(b, i);
    if (stk_onnx_has_input(b, 3)) table = stk_gather(table, stk_cast_to(stk_onnx_input(b, 3), STK_I32), 0);
    stk_shape s = stk_value_shape(table);
    return s.rank == 3 ? stk_reshape(table, STK_SHAPE(s.dim[0], s.dim[1], 1, s.dim[2])) : stk_value_none(table.graph);
}

stk_status stk_onnx_build_RotaryEmbedding(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(x);
    int64_t n_heads = stk_onnx_attribute_int(b, "num_heads", 0);
    if (shape.rank == 4) {
        x = stk_transpose(x, (int32_t[]){0, 2, 1, 3});
    } else if (shape.rank == 3 && n_heads > 0 && shape.dim[2] % n_heads == 0) {
        x = stk_reshape(x, STK_SHAPE(shape.dim[0], shape.dim[1], n_heads, shape.dim[2] / n_heads));
    } else {
        return stk_fail(STK_INVALID, "its input has %d dimensions, or no whole heads", (int)shape.rank);
    }
    stk_shape s = stk_value_shape(x);
    int64_t width = s.dim[3], turned = stk_onnx_attribute_int(b, "rotary_embedding_dim", 0);
    if (turned == 0) turned = width;
    if (turned < 2 || turned > width || turned % 2)
        return stk_fail(STK_INVALID, "its attribute 'rotary_embedding_dim' is %lld of %lld", (long long)turned,
                        (long long)width);
    stk_value cosine = turns_of(b, 1), sine = turns_of(b, 2);
    if (cosine.id < 0 || sine.id < 0 || stk_value_shape(cosine).dim[3] != turned / 2)
        return stk_fail(STK_INVALID, "its sines and cosines do not fit its input");
    bool pairs = stk_onnx_attribute_int(b, "interleaved", 0) != 0;
    stk_value first = pairs ? columns(x, 0, turned, 2) : columns(x, 0, turned / 2, 1);
    stk_value second = pairs ? columns(x, 1, turned, 2) : columns(x, turned / 2, turned, 1);
    stk_value real = stk_sub(stk_mul(cosine, first), stk_mul(sine, second));
    stk_value other = stk_add(stk_mul(sine, first), stk_mul(cosine, second)), y;
    if (pairs) {
        stk_shape one = STK_SHAPE(s.dim[0], s.dim[1], s.dim[2], turned / 2, 1);
        y = stk_concat((stk_value[]){stk_reshape(real, one), stk_reshape(other, one)}, 2, 4);
        y = stk_reshape(y, STK_SHAPE(s.dim[0], s.dim[1], s.dim[2], turned));
    } else {
        y = stk_concat((stk_value[]){real, other}, 2, 3);
    }
    if (turned < width) y = stk_concat((stk_value[]){y, columns(x, turned, width, 1)}, 2, 3);
    return stk_onnx_output(b, 0, shape.rank == 4 ? stk_transpose(y, (int32_t[]){0, 2, 1, 3}) : stk_reshape(y, shape));
}

/* x / sqrt(mean(x^2) + eps) * scale, over the axes from `axis` on; in f32 where x has 16 bits. */
stk_status stk_onnx_build_RMSNormalization(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), scale = stk_onnx_input(b, 1);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape kept = stk_value_shape(x);
    stk_dtype dtype = stk_value_dtype(x), inside = dtype == STK_F64 ? STK_F64 : STK_F32;
    int axis;
    uint32_t axes = 0;
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", -1), kept.rank, &axis));
    for (int i = axis; i < kept.rank; i++) {
        axes |= 1u << i;
        kept.dim[i] = 1;
    }
    x = stk_cast_to(x, inside);
    stk_value mean = stk_reshape(stk_reduce_mean(stk_square(x), axes), kept);
    stk_value y = stk_mul(x, stk_rsqrt(stk_shift_by(mean, stk_onnx_attribute_float(b, "epsilon", 1e-5))));
    return stk_onnx_output(b, 0, stk_mul(stk_cast_to(y, dtype), stk_cast_to(scale, dtype)));
}

static stk_value swish(stk_value x, double alpha)
{
    return stk_mul(x, stk_sigmoid(alpha == 1 ? x : stk_scale_by(x, alpha)));
}

stk_status stk_onnx_build_Swish(stk_build *b)
{
    return stk_onnx_output(b, 0, swish(stk_onnx_input(b, 0), stk_onnx_attribute_float(b, "alpha", 1)));
}

stk_status stk_onnx_build_SwiGLU(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), y = stk_onnx_input(b, 1);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    if (!stk_shape_equal(stk_value_shape(x), stk_value_shape(y)))
        return stk_fail(STK_INVALID, "its two inputs differ in shape");
    return stk_onnx_output(b, 0, stk_mul(swish(x, stk_onnx_attribute_float(b, "alpha", 1)), y));
}
