/* LSTM, GRU and RNN. What the inputs give is one product for all steps. LSTM without peepholes, and GRU with the reset
 * gate behind the product, are the ops lstm and gru, one node for each direction; for the others each step is nodes of
 * its own. The length must be known. Formulas: ONNX's operator descriptions, LSTM-22, GRU-22 and RNN-22.
 */
#include <string.h>

#include "onnx/build_list.h"

enum { MOST_STEPS = 1 << 24, MOST_UNROLLED = 4096 };

typedef enum recurrent_kind { KIND_RNN, KIND_GRU, KIND_LSTM } recurrent_kind;

typedef struct recurrent {
    recurrent_kind kind;
    int n_gates;
    int64_t n_steps, hidden;
    bool reset_first; /* GRU: linear_before_reset is 0 */
} recurrent;

/* One direction's weights: [I,G*H], [H,G*H], and biases [G*H] of each; peepholes [H] of LSTM. id -1: none. */
typedef struct direction {
    stk_value w, r, w_bias, r_bias, peephole[3], h, c;
    bool backwards;
} direction;

/* Part i of n equal ones along the axis. */
static stk_value part(stk_value x, int axis, int64_t i, int64_t size)
{
    int64_t start[STK_MAX_RANK] = {0}, stop[STK_MAX_RANK], step[STK_MAX_RANK];
    for (int k = 0; k < STK_MAX_RANK; k++) {
        stop[k] = STK_ANY;
        step[k] = 1;
    }
    start[axis] = i * size;
    stop[axis] = (i + 1) * size;
    return stk_slice(x, start, stop, step);
}

/* Row i of the first axis, which goes. */
static stk_value row(stk_value x, int64_t i)
{
    stk_shape shape = stk_value_shape(x), to = {.rank = shape.rank - 1};
    for (int k = 1; k < shape.rank; k++)
        to.dim[k - 1] = shape.dim[k];
    return stk_reshape(part(x, 0, i, 1), to);
}

/* x with one more axis of 1. */
static stk_value expand(stk_value x, int axis)
{
    stk_shape shape = stk_value_shape(x), to = {.rank = shape.rank + 1};
    for (int k = 0; k < to.rank; k++)
        to.dim[k] = k < axis ? shape.dim[k] : k == axis ? 1 : shape.dim[k - 1];
    return stk_reshape(x, to);
}

static stk_value join(stk_value a, stk_value b)
{
    return a.id < 0 ? b : b.id < 0 ? a : stk_add(a, b);
}

static stk_value product(stk_value a, stk_value b)
{
    return a.id < 0 ? a : stk_mul(a, b);
}

static stk_value gate(const recurrent *r, stk_value all, int i)
{
    return all.id < 0 ? all : part(all, 1, i, r->hidden);
}

/* from_x and from_h: [B,G*H], the latter none in the first step where h is 0. */
static void step_lstm(const recurrent *r, const direction *d, stk_value from_x, stk_value from_h, stk_value *h,
                      stk_value *c)
{
    stk_value gates = join(from_x, from_h), in = gate(r, gates, 0), out = gate(r, gates, 1), forget = gate(r, gates, 2);
    bool peeps = d->peephole[0].id >= 0 && c->id >= 0;
    if (peeps) in = stk_add(in, stk_mul(d->peephole[0], *c));
    if (peeps) forget = stk_add(forget, stk_mul(d->peephole[2], *c));
    stk_value added = stk_mul(stk_sigmoid(in), stk_tanh(gate(r, gates, 3)));
    *c = join(product(*c, stk_sigmoid(forget)), added);
    if (d->peephole[1].id >= 0) out = stk_add(out, stk_mul(d->peephole[1], *c));
    *h = stk_mul(stk_sigmoid(out), stk_tanh(*c));
}

static void step_gru(const recurrent *r, const direction *d, stk_value from_x, stk_value from_h, stk_value *h)
{
    stk_value update = stk_sigmoid(join(gate(r, from_x, 0), gate(r, from_h, 0)));
    stk_value reset = stk_sigmoid(join(gate(r, from_x, 1), gate(r, from_h, 1))), old = gate(r, from_h, 2);
    if (r->reset_first && h->id >= 0) {
        old = stk_matmul(stk_mul(reset, *h), part(d->r, 1, 2, r->hidden), false, false);
        if (d->r_bias.id >= 0) old = stk_add(old, part(d->r_bias, 0, 2, r->hidden));
    } else if (!r->reset_first) {
        old = product(old, reset);
    }
    stk_value fresh = stk_tanh(join(gate(r, from_x, 2), old)), kept = stk_sub(stk_onnx_like(update, 1), update);
    *h = join(stk_mul(kept, fresh), product(*h, update));
}

/* x [T,B,I] -> each step's h [1,B,H] in y[T], in the steps' own order; d->h and d->c become the last ones. */
static void run(const recurrent *r, direction *d, stk_value x, stk_value *y)
{
    stk_value all = stk_matmul(x, d->w, false, false);
    if (d->w_bias.id >= 0) all = stk_add(all, d->w_bias);
    for (int64_t t = 0; t < r->n_steps; t++) {
        int64_t at = d->backwards ? r->n_steps - 1 - t : t;
        stk_value from_x = row(all, at), from_h = d->h;
        if (d->h.id >= 0) from_h = stk_matmul(d->h, d->r, false, false);
        if (d->r_bias.id >= 0) {
            stk_shape shape = stk_value_shape(from_x);
            from_h = from_h.id >= 0 ? stk_add(from_h, d->r_bias) : stk_broadcast(d->r_bias, shape);
        }
        if (r->kind == KIND_LSTM)
            step_lstm(r, d, from_x, from_h, &d->h, &d->c);
        else if (r->kind == KIND_GRU)
            step_gru(r, d, from_x, from_h, &d->h);
        else
            d->h = stk_tanh(join(from_x, from_h));
        y[at] = expand(d->h, 0);
    }
}

/* --- all steps as one node --- */

/* Parts of n_gates * H along the axis in the order that lstm and gru have: ONNX's are i, o, f, c and z, r, h. */
static stk_value order_gates(const recurrent *r, stk_value x, int axis)
{
    static const int lstm[] = {0, 2, 3, 1}, gru[] = {1, 0, 2};
    stk_value parts[4];
    for (int i = 0; i < r->n_gates; i++)
        parts[i] = part(x, axis, (r->kind == KIND_LSTM ? lstm : gru)[i], r->hidden);
    return stk_concat(parts, r->n_gates, axis);
}

static stk_value or_zeros(stk_value x, stk_value like, stk_shape shape)
{
    return x.id >= 0 ? x : stk_broadcast(stk_onnx_like(like, 0), shape);
}

/* x [T,B,I] -> h [T,B,H], 0 at steps that the mask [B,T] leaves out; d->h and d->c become the last ones. */
static stk_value run_whole(const recurrent *r, direction *d, stk_value x, stk_value mask)
{
    stk_shape shape = stk_value_shape(x), states = STK_SHAPE(shape.dim[1], r->hidden);
    stk_shape biases = STK_SHAPE(r->n_gates * r->hidden);
    stk_value samples = stk_transpose(x, (int32_t[]){1, 0, 2}), turned = stk_transpose(d->r, (int32_t[]){1, 0});
    stk_recurrence steps = {.weight = order_gates(r, turned, 0),
                            .bias = order_gates(r, or_zeros(d->r_bias, x, biases), 0),
                            .h0 = or_zeros(d->h, x, states),
                            .mask = mask,
                            .reverse = d->backwards};
    stk_value gates = stk_matmul(samples, order_gates(r, d->w, 1), false, false), h;
    if (d->w_bias.id >= 0) gates = stk_add(gates, order_gates(r, d->w_bias, 0));
    int64_t last = d->backwards ? 0 : r->n_steps - 1;
    if (r->kind == KIND_LSTM) {
        steps.c0 = or_zeros(d->c, x, states);
        h = stk_lstm_raw(gates, &steps);
        stk_value c = stk_graph_status(x.graph) == STK_OK ? stk_value_sibling(h, 1) : h;
        d->c = row(stk_transpose(part(c, 1, last, 1), (int32_t[]){1, 0, 2}), 0);
    } else {
        h = stk_gru_raw(gates, &steps);
    }
    d->h = row(stk_transpose(part(h, 1, last, 1), (int32_t[]){1, 0, 2}), 0);
    if (mask.id >= 0) h = stk_select(expand(mask, 2), h, stk_onnx_like(h, 0));
    return stk_transpose(h, (int32_t[]){1, 0, 2});
}

/* Steps that count [B,T] where lengths i32 [B] are given and not all whole. */
static stk_value mask_of(stk_build *b, const recurrent *r)
{
    const int64_t *list;
    int n = 0;
    if (!stk_onnx_has_input(b, 4)) return stk_value_none(b->model->graph);
    bool whole = stk_onnx_input_ints(b, 4, &list, &n) == STK_OK;
    for (int i = 0; i < n && whole; i++)
        whole = list[i] == r->n_steps;
    if (whole) return stk_value_none(b->model->graph);
    stk_value step = stk_iota(b->model->graph, STK_I32, STK_SHAPE(1, r->n_steps), 1);
    stk_value length = stk_onnx_within(stk_cast_to(stk_onnx_input(b, 4), STK_I32), r->n_steps + 1);
    return stk_less(step, expand(length, 1));
}

/* --- what a node says --- */

/* Row i of an input, where it is there. */
static stk_value row_of(stk_build *b, int i_input, int64_t i)
{
    if (!stk_onnx_has_input(b, i_input)) return stk_value_none(b->model->graph);
    return row(stk_onnx_input(b, i_input), i);
}

/* What the states begin with: [D,B,H], or with layout 1 [B,D,H]. */
static stk_value state_of(stk_build *b, int i_input, int64_t i, bool batch_first)
{
    if (!stk_onnx_has_input(b, i_input) || !batch_first) return row_of(b, i_input, i);
    return row(stk_transpose(stk_onnx_input(b, i_input), (int32_t[]){1, 0, 2}), i);
}

/* Of those that are known: others are looked at in each run, where a loop takes them at all. */
static stk_status check_lengths(stk_build *b, const recurrent *r, bool is_whole)
{
    const int64_t *list;
    int n;
    if (!stk_onnx_has_input(b, 4)) return STK_OK;
    stk_status status = stk_onnx_input_ints(b, 4, &list, &n);
    if (status != STK_OK) return is_whole ? STK_OK : status;
    for (int i = 0; i < n; i++)
        if (list[i] < 0 || list[i] > r->n_steps)
            return stk_fail(STK_INVALID, "its sequence %d has %lld steps of %lld", i, (long long)list[i],
                            (long long)r->n_steps);
    for (int i = 0; i < n && !is_whole; i++)
        if (list[i] != r->n_steps)
            return stk_fail(STK_UNSUPPORTED, "its sequence %d has %lld steps of %lld, and all must be whole here", i,
                            (long long)list[i], (long long)r->n_steps);
    return STK_OK;
}

static stk_status check_weights(stk_build *b, const recurrent *r, int64_t n_directions)
{
    char text[STK_SHAPE_TEXT_BYTES];
    int64_t n = r->n_gates * r->hidden;
    stk_shape x = stk_value_shape(stk_onnx_input(b, 0));
    const stk_shape wanted[] = {{.rank = 3, .dim = {n_directions, n, x.dim[2]}},
                                {.rank = 3, .dim = {n_directions, n, r->hidden}},
                                {.rank = 2, .dim = {n_directions, 2 * n}}};
    for (int i = 0; i < 3; i++) {
        if (i == 2 && !stk_onnx_has_input(b, 3)) continue;
        stk_shape shape = stk_value_shape(stk_onnx_input(b, 1 + i));
        if (!stk_shape_equal(shape, wanted[i]))
            return stk_fail(STK_INVALID, "its input %d is %s, which does not fit", 1 + i, stk_shape_text(shape, text));
    }
    if (stk_onnx_has_input(b, 7) && r->kind == KIND_LSTM &&
        !stk_shape_equal(stk_value_shape(stk_onnx_input(b, 7)), STK_SHAPE(n_directions, 3 * r->hidden)))
        return stk_fail(STK_INVALID, "its peepholes do not fit");
    return STK_OK;
}

static direction read_direction(stk_build *b, const recurrent *r, int64_t i, bool batch_first)
{
    stk_value none = stk_value_none(b->model->graph), bias = row_of(b, 3, i), holes = none;
    int64_t n = r->n_gates * r->hidden;
    direction d = {.w = stk_transpose(row_of(b, 1, i), (int32_t[]){1, 0}),
                   .r = stk_transpose(row_of(b, 2, i), (int32_t[]){1, 0}),
                   .w_bias = bias.id >= 0 ? part(bias, 0, 0, n) : none,
                   .r_bias = bias.id >= 0 ? part(bias, 0, 1, n) : none,
                   .h = state_of(b, 5, i, batch_first),
                   .c = none};
    if (r->kind == KIND_LSTM) {
        d.c = state_of(b, 6, i, batch_first);
        holes = row_of(b, 7, i);
    }
    for (int k = 0; k < 3; k++)
        d.peephole[k] = holes.id >= 0 ? part(holes, 0, k, r->hidden) : none;
    return d;
}

/* States [D,B,H] of all directions, or with layout 1 [B,D,H]. */
static stk_status put_state(stk_build *b, int i_output, const stk_value *state, int n, bool batch_first)
{
    stk_value parts[2];
    if (!stk_onnx_has_output(b, i_output)) return STK_OK;
    for (int i = 0; i < n; i++)
        parts[i] = expand(state[i], batch_first);
    return stk_onnx_output(b, i_output, stk_concat(parts, n, batch_first));
}

/* Each direction's functions must be those that ONNX has where none are named. */
static stk_status check_functions(const stk_build *b, recurrent_kind kind)
{
    static const char *const usual[][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    static const size_t n_usual[] = {1, 2, 3};
    const Onnx__AttributeProto *a = stk_onnx_attribute(b, "activations");
    for (size_t i = 0; a && i < a->n_strings; i++) {
        const char *wanted = usual[kind][i % n_usual[kind]];
        ProtobufCBinaryData text = a->strings[i];
        if (text.len == strlen(wanted) && !memcmp(text.data, wanted, text.len)) continue;
        return stk_fail(STK_UNSUPPORTED, "its attribute 'activations' has %.*s, and can have %s there",
                        text.len > 60 ? 60 : (int)text.len, (const char *)text.data, wanted);
    }
    return STK_OK;
}

static stk_status build(stk_build *b, recurrent_kind kind, int n_gates)
{
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    bool batch_first = stk_onnx_attribute_int(b, "layout", 0) != 0;
    bool both = stk_onnx_attribute_is(b, "direction", "bidirectional");
    int n_directions = both ? 2 : 1;
    if (stk_value_shape(x).rank != 3 || stk_value_shape(stk_onnx_input(b, 2)).rank != 3)
        return stk_fail(STK_INVALID, "its input or its weight has not three dimensions");
    if (batch_first) x = stk_transpose(x, (int32_t[]){1, 0, 2});
    recurrent r = {.kind = kind,
                   .n_gates = n_gates,
                   .n_steps = stk_value_shape(x).dim[0],
                   .hidden = stk_value_shape(stk_onnx_input(b, 2)).dim[2],
                   .reset_first = !stk_onnx_attribute_int(b, "linear_before_reset", 0)};
    bool is_whole = kind == KIND_LSTM ? !stk_onnx_has_input(b, 7) : kind == KIND_GRU && !r.reset_first;
    int64_t most = is_whole ? MOST_STEPS : MOST_UNROLLED;
    if (r.n_steps < 1 || r.n_steps > most)
        return stk_fail(STK_UNSUPPORTED, "it has %lld steps, and can have 1 to %lld here", (long long)r.n_steps,
                        (long long)most);
    if (stk_onnx_attribute_int(b, "hidden_size", r.hidden) != r.hidden)
        return stk_fail(STK_INVALID, "its attribute 'hidden_size' is not its weight's %lld", (long long)r.hidden);
    STK_RETURN_IF_ERROR(check_functions(b, kind));
    STK_RETURN_IF_ERROR(check_lengths(b, &r, is_whole));
    STK_RETURN_IF_ERROR(check_weights(b, &r, n_directions));
    stk_value *steps = NULL, h[2], c[2], all[2], mask = is_whole ? mask_of(b, &r) : stk_value_none(b->model->graph);
    if (!is_whole && !(steps = stk_arena_alloc(b->model->arena, 2 * (size_t)r.n_steps * sizeof(*steps))))
        return stk_fail_memory((size_t)r.n_steps * sizeof(*steps));
    for (int i = 0; i < n_directions; i++) {
        direction d = read_direction(b, &r, i, batch_first);
        d.backwards = i == 1 || stk_onnx_attribute_is(b, "direction", "reverse");
        if (!is_whole) run(&r, &d, x, steps);
        stk_value y = is_whole ? run_whole(&r, &d, x, mask) : stk_concat(steps, (int)r.n_steps, 0);
        all[i] = expand(y, 1); /* [T,1,B,H] */
        h[i] = d.h;
        c[i] = d.c;
    }
    stk_value y = stk_concat(all, n_directions, 1);
    if (batch_first) y = stk_transpose(y, (int32_t[]){2, 0, 1, 3});
    if (stk_onnx_has_output(b, 0)) STK_RETURN_IF_ERROR(stk_onnx_output(b, 0, y));
    STK_RETURN_IF_ERROR(put_state(b, 1, h, n_directions, batch_first));
    return kind == KIND_LSTM ? put_state(b, 2, c, n_directions, batch_first) : STK_OK;
}

stk_status stk_onnx_build_LSTM(stk_build *b)
{
    return build(b, KIND_LSTM, 4);
}

stk_status stk_onnx_build_GRU(stk_build *b)
{
    return build(b, KIND_GRU, 3);
}

stk_status stk_onnx_build_RNN(stk_build *b)
{
    return build(b, KIND_RNN, 1);
}
