/* See stoker/nn/recurrent.h. A step is a product for each gate and element-wise work, which fusion makes one kernel of
 * a few. Weights are cut into gates once, for all steps.
 */
#include "stoker/nn/recurrent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/query.h"
#include "nn/model_list.h"

enum { MOST_GATES = 4 };

/* The parameters of one layer and direction, by gate. */
typedef struct direction {
    const stk_recurrent_config *config;
    int64_t units;
    int n_gates;
    stk_value w_in[MOST_GATES], w_state[MOST_GATES]; /* [units,C], [units,units] */
    stk_value b_in[MOST_GATES], b_state[MOST_GATES]; /* [units] */
} direction;

typedef struct state {
    stk_value h, c; /* [N,units]; c of LSTM only; id -1: zeros */
} state;

/* --- parameters --- */

/* Rows of one gate. */
static stk_value cut(stk_value x, int64_t units, int i)
{
    return stk_slice(x, (int64_t[]){i * units, 0}, (int64_t[]){(i + 1) * units, STK_ANY}, (int64_t[]){1, 1});
}

static void make_gates(const stk_layer *layer, const direction *d, const char *part, int i_layer, bool reverse,
                       stk_shape shape, stk_value *out)
{
    char name[64];
    shape.dim[0] *= d->n_gates;
    snprintf(name, sizeof(name), "%s_l%d%s", part, i_layer, reverse ? "_reverse" : "");
    stk_init init = {STK_INIT_UNIFORM, 1 / sqrt((double)d->units)};
    stk_value all = stk_layer_variable(layer, name, shape, init, true);
    for (int i = 0; i < d->n_gates; i++)
        out[i] = cut(all, d->units, i);
}

static direction make_direction(const stk_layer *layer, const stk_recurrent_config *config, int64_t n_in, int i_layer,
                                bool reverse)
{
    int64_t n = config->units;
    direction d = {.config = config, .units = n, .n_gates = config->kind == STK_RECURRENT_LSTM ? 4 : 3};
    make_gates(layer, &d, "weight_ih", i_layer, reverse, STK_SHAPE(n, n_in), d.w_in);
    make_gates(layer, &d, "weight_hh", i_layer, reverse, STK_SHAPE(n, n), d.w_state);
    make_gates(layer, &d, "bias_ih", i_layer, reverse, STK_SHAPE(n), d.b_in);
    make_gates(layer, &d, "bias_hh", i_layer, reverse, STK_SHAPE(n), d.b_state);
    return d;
}

/* --- steps --- */

/* What comes from the input of a gate, and what from the state. */
static stk_value from_input(const direction *d, int gate, stk_value x)
{
    return stk_add(stk_matmul(x, d->w_in[gate], false, true), d->b_in[gate]);
}

static stk_value from_state(const direction *d, int gate, state s)
{
    if (s.h.id < 0) return d->b_state[gate];
    return stk_add(stk_matmul(s.h, d->w_state[gate], false, true), d->b_state[gate]);
}

static stk_value gate_of(const direction *d, int gate, stk_value x, state s)
{
    return stk_add(from_input(d, gate, x), from_state(d, gate, s));
}

static state step_lstm(const direction *d, stk_value x, state s)
{
    stk_value i = stk_sigmoid(gate_of(d, 0, x, s)), f = stk_sigmoid(gate_of(d, 1, x, s));
    stk_value g = stk_tanh(gate_of(d, 2, x, s)), o = stk_sigmoid(gate_of(d, 3, x, s));
    stk_value c = stk_mul(i, g);
    if (s.c.id >= 0) c = stk_add(stk_mul(f, s.c), c);
    return (state){stk_mul(o, stk_tanh(c)), c};
}

/* h' = n + z (h - n) */
static state step_gru(const direction *d, stk_value x, state s)
{
    stk_value r = stk_sigmoid(gate_of(d, 0, x, s)), z = stk_sigmoid(gate_of(d, 1, x, s));
    stk_value n = stk_tanh(stk_add(from_input(d, 2, x), stk_mul(r, from_state(d, 2, s))));
    stk_value rest = s.h.id < 0 ? stk_neg(n) : stk_sub(s.h, n);
    return (state){stk_add(n, stk_mul(z, rest)), s.c};
}

/* New where the step counts, else as before. */
static stk_value choose(stk_value counts, stk_value new, stk_value before)
{
    if (before.id >= 0) return stk_select(counts, new, before);
    return stk_select(counts, new, stk_graph_constant(new.graph, stk_value_dtype(new), (stk_shape){0}, 0));
}

/* Step t of x [N,T,...] without its axis. */
static stk_value pick(stk_value x, int64_t t)
{
    stk_shape shape = stk_value_shape(x);
    int64_t start[3] = {0, t, 0}, stop[3] = {STK_ANY, t + 1, STK_ANY}, step[3] = {1, 1, 1};
    stk_value one = stk_slice(x, start, stop, step);
    return stk_reshape(one, shape.rank == 3 ? STK_SHAPE(STK_ANY, shape.dim[2]) : STK_SHAPE(STK_ANY, 1));
}

/* All steps of one direction: outputs [N,T,units] into *out, the last state into *last. */
static bool run_direction(const direction *d, stk_value x, bool reverse, stk_value *out, stk_value *last)
{
    stk_shape shape = stk_value_shape(x);
    int64_t n_steps = shape.dim[1];
    stk_value none = stk_value_none(x.graph), zero = stk_graph_constant(x.graph, stk_value_dtype(x), (stk_shape){0}, 0);
    stk_value *y = calloc((size_t)n_steps, sizeof(*y));
    if (!y) {
        stk_graph_keep_error(x.graph, stk_fail_memory((size_t)n_steps * sizeof(*y)));
        return false;
    }
    state s = {none, none};
    for (int64_t i = 0; i < n_steps; i++) {
        int64_t t = reverse ? n_steps - 1 - i : i;
        state new = d->config->kind == STK_RECURRENT_LSTM ? step_lstm(d, pick(x, t), s) : step_gru(d, pick(x, t), s);
        stk_value shown = new.h;
        if (d->config->mask) {
            stk_value counts = pick(*d->config->mask, t);
            shown = stk_select(counts, new.h, zero);
            new.h = choose(counts, new.h, s.h);
            if (new.c.id >= 0) new.c = choose(counts, new.c, s.c);
        }
        s = new;
        y[t] = stk_reshape(shown, STK_SHAPE(STK_ANY, 1, d->units));
    }
    *out = n_steps > 1 ? stk_concat(y, (int)n_steps, 1) : y[0];
    *last = s.h;
    free(y);
    return x.graph->status == STK_OK;
}

/* --- layers --- */

static bool check(const stk_layer *layer, const stk_recurrent_config *c)
{
    if (!stk_layer_need_sequence(layer) || !stk_layer_need_range(layer, "units", c->units, 1, INT32_MAX / 8) ||
        !stk_layer_need_range(layer, "the number of layers", c->layers, 1, 1000) ||
        !stk_layer_need_range(layer, "the number of steps", layer->shape.dim[1], 1, 4096))
        return false;
    stk_shape want = {.rank = 2, .dim = {layer->shape.dim[0], layer->shape.dim[1]}};
    if (!c->mask || (stk_value_dtype(*c->mask) == STK_BOOL && stk_shape_equal(stk_value_shape(*c->mask), want)))
        return true;
    char text[STK_SHAPE_TEXT_BYTES];
    stk_layer_fail(layer, "its mask is %s, and must be bool[N,T] for its input [N,T,C]",
                   stk_desc_text(stk_desc_make(stk_value_dtype(*c->mask), stk_value_shape(*c->mask)), text));
    return false;
}

/* Layer number i on x; *last as for the whole. */
static stk_value run_layer(const stk_layer *layer, const stk_recurrent_config *c, stk_value x, int i, stk_value *last)
{
    stk_value y[2], end[2];
    int64_t n_in = stk_value_shape(x).dim[2];
    int n = c->bidirectional ? 2 : 1;
    for (int k = 0; k < n; k++) {
        direction d = make_direction(layer, c, n_in, i, k == 1);
        if (!run_direction(&d, x, k == 1, &y[k], &end[k])) return stk_value_none(x.graph);
    }
    *last = n == 2 ? stk_concat(end, 2, 1) : end[0];
    return n == 2 ? stk_concat(y, 2, 2) : y[0];
}

stk_value stk_recurrent(stk_value x, const stk_recurrent_config *config, stk_value *last)
{
    stk_recurrent_config c = config ? *config : (stk_recurrent_config){0};
    stk_value end = stk_value_none(x.graph);
    stk_layer layer;
    if (last) *last = end;
    if (!stk_layer_begin(&layer, x, c.kind == STK_RECURRENT_LSTM ? "lstm" : "gru", c.name))
        return stk_value_none(x.graph);
    if (c.layers == 0) c.layers = 1;
    if (!check(&layer, &c)) return stk_value_none(x.graph);
    for (int i = 0; i < c.layers; i++) {
        if (i > 0 && c.dropout != 0) x = stk_dropout(x, c.dropout);
        if (x.id >= 0) x = run_layer(&layer, &c, x, i, &end);
        if (x.id < 0) break;
    }
    if (last) *last = end;
    return stk_layer_end(&layer, x);
}

stk_value stk_lstm(stk_value x, int64_t units)
{
    return stk_recurrent(x, &(stk_recurrent_config){.kind = STK_RECURRENT_LSTM, .units = units}, NULL);
}

stk_value stk_gru(stk_value x, int64_t units)
{
    return stk_recurrent(x, &(stk_recurrent_config){.kind = STK_RECURRENT_GRU, .units = units}, NULL);
}

stk_value stk_classify_recurrent(stk_value tokens, const stk_recurrent_classifier *config, int64_t classes)
{
    stk_recurrent_classifier c = config ? *config : (stk_recurrent_classifier){0};
    stk_value last;
    stk_value x = stk_embedding(tokens, c.vocabulary, c.width);
    if (c.dropout != 0) x = stk_dropout(x, c.dropout);
    (void)stk_recurrent(x, &c.recurrent, &last);
    if (c.dropout != 0) last = stk_dropout(last, c.dropout);
    return stk_dense(last, classes);
}

/* --- in a recipe --- */

static stk_status build(const stk_model_call *call, stk_recurrent_kind kind, stk_value *out)
{
    const stk_yaml_node *s = call->settings;
    stk_value mask;
    stk_recurrent_classifier c = {.vocabulary = stk_yaml_int(s, "vocabulary", 0),
                                  .width = stk_yaml_int(s, "width", 0),
                                  .dropout = stk_yaml_real(s, "dropout", 0)};
    c.recurrent = (stk_recurrent_config){.kind = kind,
                                         .units = stk_yaml_int(s, "units", 0),
                                         .layers = (int)stk_yaml_int(s, "layers", 1),
                                         .bidirectional = stk_yaml_bool(s, "bidirectional"),
                                         .dropout = c.dropout,
                                         .mask = stk_pad_mask_of(s, call->x, &mask)};
    *out = stk_classify_recurrent(call->x, &c, call->n_classes);
    return STK_OK;
}

static stk_status build_lstm(const stk_model_call *call, stk_value *out)
{
    return build(call, STK_RECURRENT_LSTM, out);
}

static stk_status build_gru(const stk_model_call *call, stk_value *out)
{
    return build(call, STK_RECURRENT_GRU, out);
}

static const stk_key keys[] = {
    {.name = "vocabulary",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .required = true,
     .doc = "Rows of the embedding; tokens are below it."},
    {.name = "width", .type = STK_KEY_INT, .least = 1, .most = 1e6, .default_value = "128", .doc = "Of the embedding."},
    {.name = "units",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .default_value = "128",
     .doc = "Of the state, in each direction."},
    {.name = "layers",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 100,
     .default_value = "1",
     .doc = "One upon the other."},
    {.name = "bidirectional",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "A second state, from the end to the start."},
    {.name = "dropout",
     .type = STK_KEY_REAL,
     .least = 0,
     .most = 0.99,
     .default_value = "0",
     .doc = "Of embeddings, between layers, and of the last state."},
    {.name = "pad",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 2147483647,
     .doc = "The token that sequences are filled up with, at which the state stays as it is. Default: all count."},
    STK_KEY_CLASSES("the data"),
    {.name = "length",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1 << 24,
     .doc = "Tokens of a sample, which the data must have. Default: as many as the data has."},
    {.name = NULL}};

#define RECURRENT(kind, place_, text)                                                                                  \
    const stk_model_class stk_model_class_##kind = {                                                                   \
        .key = {.name = #kind, .type = STK_KEY_MAP, .keys = keys, .no_short = true, .doc = text},                      \
        .takes = STK_MODEL_TAKES_TOKENS,                                                                               \
        .has_classes = true,                                                                                           \
        .build = build_##kind,                                                                                         \
        .sample = {{.name = #kind ": {vocabulary: 30522}",                                                             \
                    .of = "32 tokens, 2 classes",                                                                      \
                    .fields = "tokens: {shape: [32], below: 30522}",                                                   \
                    .n_classes = 2}},                                                                                  \
        .place = place_,                                                                                               \
    };
RECURRENT(lstm, 150,
          "Classes of sequences of tokens: embedding, LSTM, dense on its last state; Hochreiter & Schmidhuber 1997.")
RECURRENT(gru, 151, "The same with a GRU; Cho et al. 2014.")
