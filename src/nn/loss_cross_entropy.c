/* Cross-entropy with everything: any number of positions a sample, smoothing, weights of classes, labels that do not
 * count.
 */
#include <stdlib.h>

#include "base/error.h"
#include "nn/loss.h"

static const stk_key weight_key = {.name = "weight", .type = STK_KEY_REAL, .least = 0, .most = 1e30};
static const stk_key keys[] = {
    {.name = "smoothing",
     .type = STK_KEY_REAL,
     .default_value = "0",
     .least = 0,
     .most = 0.99,
     .doc = "The share of each label that goes to all classes alike."},
    {.name = "class_weights",
     .type = STK_KEY_LIST,
     .element = &weight_key,
     .doc = "A factor for each class; the mean is over the factors, as in PyTorch. Default: 1."},
    {.name = "ignore",
     .type = STK_KEY_INT,
     .least = -2147483648.0,
     .most = 2147483647,
     .doc = "Positions with this label do not count, as -100 or 255. Default: all count."},
    STK_LOSS_TARGET,
    STK_LOSS_END};

enum { MOST_WEIGHTS = 4096 };

static bool check(const stk_layer *layer, stk_value labels, const stk_cross_entropy_config *c)
{
    stk_shape x = layer->shape, y = stk_value_shape(labels);
    char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
    if (labels.graph != layer->graph || labels.id < 0) {
        stk_layer_fail(layer, "the labels are no value");
        return false;
    }
    if (!stk_layer_need_float(layer)) return false;
    bool fits = x.rank >= 2 && x.dim[x.rank - 1] > 0, are_shares = stk_dtype_is_float(stk_value_dtype(labels));
    fits = fits && (are_shares || stk_value_dtype(labels) == STK_I32) && y.rank == x.rank - !are_shares;
    for (int i = 0; fits && i < y.rank; i++)
        fits = x.dim[i] == y.dim[i] && (i == 0 || x.dim[i] > 0);
    if (!fits) {
        stk_layer_fail(layer,
                       "the logits are %s and the labels %s; they must be [N,...,classes] and i32 [N,...], or shares "
                       "like the logits",
                       stk_shape_text(x, a), stk_desc_text(stk_desc_make(stk_value_dtype(labels), y), b));
        return false;
    }
    if (!(c->smoothing >= 0 && c->smoothing < 1)) {
        stk_layer_fail(layer, "the smoothing is %g, and must be in [0,1)", c->smoothing);
        return false;
    }
    int64_t n_classes = x.dim[x.rank - 1];
    if (c->class_weights && (c->n_class_weights != n_classes || n_classes > MOST_WEIGHTS)) {
        stk_layer_fail(layer, "there are %lld class weights for %lld classes; there must be one for each, %d at most",
                       (long long)c->n_class_weights, (long long)n_classes, MOST_WEIGHTS);
        return false;
    }
    for (int64_t i = 0; c->class_weights && i < n_classes; i++) {
        if (c->class_weights[i] >= 0 && c->class_weights[i] < 1e30) continue;
        stk_layer_fail(layer, "the weight of class %lld is %g, and must not be negative", (long long)i,
                       c->class_weights[i]);
        return false;
    }
    if (c->ignores && are_shares) {
        stk_layer_fail(layer, "labels that are shares have no number to ignore");
        return false;
    }
    return true;
}

/* The weights as a value [classes]. */
static stk_value make_weights(stk_value like, const stk_cross_entropy_config *c)
{
    stk_value *each = calloc((size_t)c->n_class_weights, sizeof(*each));
    if (!each) {
        stk_graph_keep_error(like.graph, stk_fail_memory((size_t)c->n_class_weights * sizeof(*each)));
        return stk_value_none(like.graph);
    }
    for (int64_t i = 0; i < c->n_class_weights; i++)
        each[i] = stk_graph_constant(like.graph, stk_value_dtype(like), STK_SHAPE(1), c->class_weights[i]);
    stk_value weights = stk_concat(each, (int)c->n_class_weights, 0);
    free(each);
    return weights;
}

/* x [N,...,C] with y [N,...] or [N,...,C] -> [N,P]. Positions are folded into the batch for this alone: constants have
 * no shape that grows with it, so that all other arithmetic stays outside. */
static stk_value compare(stk_value x, stk_value y, double smoothing)
{
    bool are_shares = stk_dtype_is_float(stk_value_dtype(y));
    stk_shape shape = stk_value_shape(x);
    y = are_shares ? stk_loss_rows(y) : stk_loss_list(y);
    return stk_loss_by_sample(stk_cross_entropy_raw(stk_loss_rows(x), y, smoothing),
                              stk_shape_product(shape, 1, shape.rank - 1));
}

/* -sum(w q log p) of each position, where q are smoothed shares: the cross-entropy of w q made to shares again, times
 * their sum. */
static stk_value compare_weighed(stk_value x, stk_value shares, stk_value weights, double smoothing)
{
    stk_shape shape = stk_value_shape(x);
    uint32_t last = 1u << (shape.rank - 1);
    double n_classes = (double)shape.dim[shape.rank - 1];
    stk_value q = stk_mul(stk_shift_by(stk_scale_by(shares, 1 - smoothing), smoothing / n_classes), weights);
    stk_value sum = stk_reduce_sum(q, last);
    stk_value tiny = stk_graph_constant(x.graph, stk_value_dtype(q), (stk_shape){0}, 1e-30);
    shape.dim[shape.rank - 1] = 1;
    q = stk_div(q, stk_reshape(stk_max(sum, tiny), shape));
    return stk_mul(compare(x, q, 0), stk_loss_by_sample(sum, stk_shape_product(shape, 1, shape.rank)));
}

static stk_value one_hot(stk_value x, stk_value labels)
{
    stk_shape column = stk_value_shape(x), row = {.rank = column.rank};
    for (int i = 0; i < row.rank; i++)
        row.dim[i] = i == row.rank - 1 ? column.dim[i] : 1;
    column.dim[column.rank - 1] = 1;
    stk_value numbers = stk_iota(x.graph, STK_I32, row, row.rank - 1);
    return stk_cast_to(stk_equal(stk_reshape(labels, column), numbers), stk_value_dtype(x));
}

/* A loss for each position [N,P]; all labels are classes. */
static stk_value compare_all(stk_value x, stk_value y, const stk_cross_entropy_config *c)
{
    bool are_shares = stk_dtype_is_float(stk_value_dtype(y));
    if (!c->class_weights) return compare(x, y, c->smoothing);
    stk_value weights = make_weights(x, c);
    if (are_shares || c->smoothing > 0)
        return compare_weighed(x, are_shares ? y : one_hot(x, y), weights, c->smoothing);
    stk_shape shape = stk_value_shape(x);
    stk_value own = stk_loss_by_sample(stk_gather(weights, y, 0), stk_shape_product(shape, 1, shape.rank - 1));
    return stk_mul(compare(x, y, 0), own);
}

/* What each position counts for, [N,P]: 1, or the weight of its label's class; 0 where it does not count. */
static stk_value weigh_positions(stk_value x, stk_value y, stk_value counts, const stk_cross_entropy_config *c)
{
    stk_shape shape = stk_value_shape(x);
    int64_t n_positions = stk_shape_product(shape, 1, shape.rank - 1);
    stk_value weight = {x.graph, -1};
    if (c->class_weights) weight = stk_loss_by_sample(stk_gather(make_weights(x, c), y, 0), n_positions);
    if (!c->ignores) return weight;
    stk_value share = stk_cast_to(stk_loss_by_sample(counts, n_positions), stk_value_dtype(x));
    return weight.id >= 0 ? stk_mul(weight, share) : share;
}

/* sum(loss) / sum(weight) of each sample, 0 where nothing counts. */
static stk_value divide_by(stk_value loss, stk_value weight)
{
    stk_dtype dtype = stk_value_dtype(weight);
    stk_value zero = stk_graph_constant(loss.graph, dtype, (stk_shape){0}, 0);
    stk_value one = stk_graph_constant(loss.graph, dtype, (stk_shape){0}, 1), some = stk_greater(weight, zero);
    return stk_select(some, stk_div(stk_reduce_sum(loss, 2), stk_select(some, weight, one)), zero);
}

stk_value stk_cross_entropy_with(stk_value logits, stk_value labels, const stk_cross_entropy_config *config,
                                 stk_value *weight)
{
    stk_cross_entropy_config c = config ? *config : (stk_cross_entropy_config){0};
    stk_layer layer;
    if (weight) *weight = stk_value_none(logits.graph);
    if (!stk_layer_begin(&layer, logits, "cross_entropy", NULL)) return stk_value_none(logits.graph);
    if (!check(&layer, labels, &c)) return stk_value_none(logits.graph);
    bool are_shares = stk_dtype_is_float(stk_value_dtype(labels));
    stk_graph *graph = logits.graph;
    stk_value counts = {graph, -1}, y = labels;
    if (c.ignores) {
        counts = stk_not_equal(labels, stk_graph_constant(graph, STK_I32, (stk_shape){0}, (double)c.ignore_index));
        y = stk_select(counts, labels, stk_graph_constant(graph, STK_I32, (stk_shape){0}, 0));
    }
    stk_value loss = compare_all(logits, y, &c);
    if (c.ignores) {
        stk_value by_position = stk_loss_by_sample(counts, stk_shape_product(layer.shape, 1, layer.shape.rank - 1));
        loss = stk_select(by_position, loss, stk_graph_constant(graph, stk_value_dtype(loss), (stk_shape){0}, 0));
    }
    if (are_shares || (!c.ignores && !(weight && c.class_weights))) return stk_layer_end(&layer, stk_loss_mean(loss));
    if (!weight) c.class_weights = NULL; /* The losses have them; the divisor is the number of positions. */
    stk_value sum = stk_reduce_sum(weigh_positions(logits, y, counts, &c), 2);
    if (weight) *weight = sum;
    return stk_layer_end(&layer, divide_by(loss, sum));
}

/* --- recipes --- */

static stk_status read_weights(const stk_yaml_node *list, int64_t n_classes, double **out)
{
    int64_t n = 0;
    *out = NULL;
    if (!list) return STK_OK;
    if (list->n_children != n_classes)
        return stk_yaml_fail(list, "'class_weights' has %lld numbers, the model tells %lld classes apart",
                             (long long)list->n_children, (long long)n_classes);
    *out = calloc((size_t)list->n_children + 1, sizeof(**out));
    if (!*out) return stk_fail_memory((size_t)list->n_children * sizeof(**out));
    for (const stk_yaml_node *weight = list->child; weight; weight = weight->next)
        (*out)[n++] = weight->real;
    return STK_OK;
}

static stk_status build(const stk_yaml_node *settings, stk_model *model, stk_value output, stk_value target)
{
    const stk_yaml_node *ignore = stk_yaml_get(settings, "ignore"), *weights = stk_yaml_get(settings, "class_weights");
    stk_shape shape = stk_value_shape(output);
    int64_t n_classes = shape.dim[shape.rank - 1];
    stk_cross_entropy_config config = {.smoothing = stk_yaml_real(settings, "smoothing", 0),
                                       .ignores = ignore,
                                       .ignore_index = stk_yaml_int(settings, "ignore", 0)};
    double *list;
    stk_model_target(model, target, config.ignores, config.ignore_index);
    /* The usual one is a single op. */
    if (!ignore && !weights && shape.rank == 2) {
        stk_model_loss(model, stk_cross_entropy_smooth(output, target, config.smoothing));
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(read_weights(weights, n_classes, &list));
    config.class_weights = list;
    config.n_class_weights = list ? n_classes : 0;
    stk_value weight;
    stk_model_loss(model, stk_cross_entropy_with(output, target, &config, &weight));
    if (weight.id >= 0) stk_model_loss_weight(model, weight);
    free(list);
    return STK_OK;
}

const stk_loss_class stk_loss_class_cross_entropy = {
    .key = STK_LOSS_KEY("cross_entropy", keys, "Softmax cross-entropy, of a sample or of each of its positions."),
    .compares = STK_LOSS_CLASSES,
    .predicts = STK_LOSS_PREDICTS_CLASS,
    .build = build,
};
