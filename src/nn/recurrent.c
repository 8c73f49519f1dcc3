/* See stoker/nn/recurrent.h. What the inputs give to the gates is one product for all steps; the steps themselves are
 * one op for each direction, lstm or gru.
 */
#include "stoker/nn/recurrent.h"

#include <math.h>
#include <stdio.h>

#include "graph/graph.h"
#include "graph/query.h"
#include "nn/model_list.h"

enum { MOST_STEPS = 1 << 24 };

static int64_t count_gates(const stk_recurrent_config *config)
{
    return config->kind == STK_RECURRENT_LSTM ? 4 : 3;
}

/* A parameter of layer number i_layer, of all gates: its first dimension is their number times `shape`'s. */
static stk_value make_parameter(const stk_layer *layer, const stk_recurrent_config *config, const char *part,
                                int i_layer, bool reverse, stk_shape shape)
{
    char name[64];
    shape.dim[0] *= count_gates(config);
    snprintf(name, sizeof(name), "%s_l%d%s", part, i_layer, reverse ? "_reverse" : "");
    return stk_layer_variable(layer, name, shape, (stk_init){STK_INIT_UNIFORM, 1 / sqrt((double)config->units)}, true);
}

/* Step t of x [N,T,C]: [N,C]. */
static stk_value pick(stk_value x, int64_t t)
{
    int64_t start[3] = {0, t, 0}, stop[3] = {STK_ANY, t + 1, STK_ANY}, step[3] = {1, 1, 1};
    return stk_reshape(stk_slice(x, start, stop, step), STK_SHAPE(STK_ANY, stk_value_shape(x).dim[2]));
}

/* Zeros [N,units] for the samples of x [N,T,C]. */
static stk_value make_zeros(stk_value x, int64_t units)
{
    stk_value zero = stk_graph_constant(x.graph, stk_value_dtype(x), (stk_shape){0}, 0);
    return stk_broadcast(zero, STK_SHAPE(stk_value_shape(x).dim[0], units));
}

/* One direction: outputs [N,T,units]; *last: the state behind the last step that counts. */
static stk_value run_direction(const stk_layer *layer, const stk_recurrent_config *c, stk_value x, int i_layer,
                               bool reverse, stk_value *last)
{
    int64_t n = c->units, n_in = stk_value_shape(x).dim[2], n_steps = stk_value_shape(x).dim[1];
    stk_value w_in = make_parameter(layer, c, "weight_ih", i_layer, reverse, STK_SHAPE(n, n_in));
    stk_value w_state = make_parameter(layer, c, "weight_hh", i_layer, reverse, STK_SHAPE(n, n));
    stk_value b_in = make_parameter(layer, c, "bias_ih", i_layer, reverse, STK_SHAPE(n));
    stk_value b_state = make_parameter(layer, c, "bias_hh", i_layer, reverse, STK_SHAPE(n));
    stk_value zeros = make_zeros(x, n);
    stk_recurrence r = {.weight = w_state,
                        .bias = b_state,
                        .h0 = zeros,
                        .c0 = zeros,
                        .mask = c->mask ? *c->mask : stk_value_none(x.graph),
                        .reverse = reverse};
    stk_value gates = stk_add(stk_matmul(x, w_in, false, true), b_in);
    stk_value h = c->kind == STK_RECURRENT_LSTM ? stk_lstm_raw(gates, &r) : stk_gru_raw(gates, &r);
    *last = pick(h, reverse ? 0 : n_steps - 1);
    if (!c->mask) return h;
    stk_value shown = stk_reshape(*c->mask, STK_SHAPE(STK_ANY, n_steps, 1));
    return stk_select(shown, h, stk_graph_constant(x.graph, stk_value_dtype(x), (stk_shape){0}, 0));
}

/* --- layers --- */

static bool check(const stk_layer *layer, const stk_recurrent_config *c)
{
    if (!stk_layer_need_sequence(layer) || !stk_layer_need_range(layer, "units", c->units, 1, INT32_MAX / 8) ||
        !stk_layer_need_range(layer, "the number of layers", c->layers, 1, 1000) ||
        !stk_layer_need_range(layer, "the number of steps", layer->shape.dim[1], 1, MOST_STEPS))
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
    int n = c->bidirectional ? 2 : 1;
    for (int k = 0; k < n; k++)
        y[k] = run_direction(layer, c, x, i, k == 1, &end[k]);
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
