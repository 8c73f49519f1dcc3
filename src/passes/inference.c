/* The graph for evaluation: batch norm by its running statistics, dropout gone, no updates of variables. In training
 * the same for frozen batch norms, and nothing else.
 *
 * Behind a convolution whose weights are few next to its results, these are scaled instead, and pass_fuse_epilogue adds
 * the rest while the results are made:  batch_norm(conv2d(x, w), ..)   becomes   conv2d(x, w * s) + t A bias of the
 * convolution's own is part of t then.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "passes/passes.h"

static bool is_conv(const stk_node *node)
{
    return node->op == STK_OP_conv2d || node->op == STK_OP_conv3d;
}

/* The result of the convolution that x is but for a bias, which *bias is then, else -1; or x itself. */
static int32_t skip_bias(const stk_graph *graph, const int32_t *n_uses, int32_t x, int32_t *bias)
{
    const stk_node *add = &graph->node[graph->value[x].node];
    *bias = -1;
    if (add->op != STK_OP_binary || add->attrs.element.kind != STK_BINARY_add || n_uses[x] != 1) return x;
    for (int i = 0; i < 2; i++) {
        if (!is_conv(&graph->node[graph->value[add->in[i]].node])) continue;
        *bias = stk_pass_find_bias(graph, add->in[1 - i]);
        if (*bias >= 0) return add->in[i];
    }
    return x;
}

/* Whether the convolution that makes x, which nothing else reads, shall have its weights scaled in each run. */
static bool is_scalable(const stk_graph *graph, const int32_t *n_uses, int32_t x)
{
    enum { FEW = 4 }; /* results for each weight, so that scaled weights hardly count as memory either */
    const stk_node *conv = &graph->node[graph->value[x].node];
    if (!is_conv(conv) || conv->n_in != 2 || n_uses[x] != 1 || !stk_shape_known(graph->value[x].desc.shape))
        return false;
    return stk_shape_count(graph->value[x].desc.shape) / FEW >= stk_shape_count(graph->value[conv->in[1]].desc.shape);
}

/* The convolution of node i by w * s, rounded once. */
static stk_value scale_conv(stk_graph *graph, int32_t i, stk_value s)
{
    stk_node conv = graph->node[i]; /* A copy: the array moves. */
    stk_value w = stk_value_of(graph, conv.in[1]), wide = w;
    const stk_node *maker = stk_value_node(w);
    stk_shape shape = stk_value_shape(w);
    stk_dtype dtype = stk_value_dtype(w);
    if (maker->op == STK_OP_cast && graph->value[maker->in[0]].desc.dtype == stk_value_dtype(s))
        wide = stk_value_of(graph, maker->in[0]);
    for (int k = 1; k < shape.rank; k++)
        shape.dim[k] = 1;
    wide = stk_mul(stk_cast_to(wide, stk_value_dtype(s)), stk_reshape(s, shape));
    return stk_graph_add(graph, conv.op, &conv.attrs,
                         (stk_value[]){stk_value_of(graph, conv.in[0]), stk_cast_to(wide, dtype)}, 2);
}

/* y = x * s + (bias - mean * s) with s = scale / sqrt(var + eps); the [C] part is computed once a run, all in f32.
 * Where x is a convolution that may be scaled, plus a bias perhaps, this is part of mean. */
static stk_value normalise(stk_graph *graph, const stk_node *node, const int32_t *n_uses, bool scales)
{
    stk_value x = stk_value_of(graph, node->in[0]), scale = stk_value_of(graph, node->in[1]);
    stk_value bias = stk_value_of(graph, node->in[2]), mean = stk_value_of(graph, node->in[3]);
    stk_value var = stk_value_of(graph, node->in[4]);
    int32_t conv_bias, conv = skip_bias(graph, n_uses, node->in[0], &conv_bias);
    bool scales_conv = scales && is_scalable(graph, n_uses, conv);
    if (scales_conv && conv_bias >= 0) mean = stk_sub(mean, stk_value_of(graph, conv_bias));
    stk_value s = stk_mul(scale, stk_rsqrt(stk_shift_by(var, node->attrs.batch_norm.eps)));
    stk_value t = stk_sub(bias, stk_mul(mean, s));
    stk_value y;
    if (scales_conv)
        y = stk_add(scale_conv(graph, graph->value[conv].node, s), stk_cast_to(t, stk_value_dtype(x)));
    else
        y = stk_add(stk_mul(stk_cast_to(x, stk_value_dtype(s)), s), t);
    return stk_cast_to(node->attrs.batch_norm.relu ? stk_relu(y) : y, stk_value_dtype(x));
}

/* Attention without dropout, and without the two inputs that go with it. */
static stk_value keep_weights(stk_graph *graph, const stk_node *node)
{
    enum { MOST = 6 };
    stk_attrs attrs = node->attrs;
    stk_value in[MOST];
    if (attrs.attention.rate == 0) return stk_value_of(graph, node->first_out);
    attrs.attention.rate = 0;
    attrs.attention.stream = 0;
    for (int i = 0; i < node->n_in - 2; i++)
        in[i] = stk_value_of(graph, node->in[i]);
    return stk_graph_add(graph, STK_OP_attention, &attrs, in, node->n_in - 2);
}

static bool is_frozen(const stk_graph *graph, int32_t node)
{
    return graph->node[node].op == STK_OP_batch_norm && graph->node[node].attrs.batch_norm.frozen;
}

/* All of them, or those that frozen batch norms make. */
static void drop_updates(stk_graph *graph, bool all)
{
    int32_t n = 0;
    for (int i = 0; i < graph->n_roots; i++) {
        bool is_update = graph->root[i].variable >= 0;
        if (is_update && (all || is_frozen(graph, graph->value[graph->root[i].value].node))) continue;
        graph->root[n++] = graph->root[i];
    }
    graph->n_roots = n;
}

static bool has_frozen(const stk_graph *graph)
{
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (is_frozen(graph, i)) return true;
    return false;
}

/* What was made for node i runs when that would: a convolution that came last of all would find the weights of all
 * others turned or cast before it. */
static stk_status fill_ages(const stk_graph *graph, int32_t i, int32_t **age, int32_t *n_ages)
{
    size_t bytes = ((size_t)graph->n_nodes + 1) * sizeof(**age);
    int32_t *more = realloc(*age, bytes);
    if (!more) return stk_fail_memory(bytes);
    *age = more;
    for (; *n_ages < graph->n_nodes; ++*n_ages)
        more[*n_ages] = i < 0 ? *n_ages : i;
    return STK_OK;
}

stk_status pass_inference(stk_graph *graph, const stk_pass_options *options)
{
    bool all = !options || !options->training;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (!all && !has_frozen(graph)) return STK_OK;
    stk_status status = STK_OK;
    int32_t n_nodes = graph->n_nodes, n_values = graph->n_values, n_ages = 0;
    int32_t *changed = stk_pass_identity(graph, 0), *n_uses = stk_pass_count_uses(graph), *replace = NULL, *age = NULL;
    if (!changed || !n_uses) STK_TRY(stk_fail_memory((size_t)n_values * sizeof(*changed)));
    drop_updates(graph, all);
    STK_TRY(fill_ages(graph, -1, &age, &n_ages));
    for (int32_t i = 0; i < n_nodes; i++) {
        stk_node node = graph->node[i]; /* A copy: the array moves. */
        if (!all && !is_frozen(graph, i)) continue;
        if (node.op == STK_OP_dropout) changed[node.first_out] = node.in[0];
        if (node.op == STK_OP_attention) changed[node.first_out] = keep_weights(graph, &node).id;
        if (node.op == STK_OP_batch_norm) changed[node.first_out] = normalise(graph, &node, n_uses, all).id;
        STK_TRY(stk_graph_status(graph));
        STK_TRY(fill_ages(graph, i, &age, &n_ages));
    }
    replace = stk_pass_identity(graph, 0);
    if (!replace) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    memcpy(replace, changed, (size_t)n_values * sizeof(*replace));
    STK_TRY(stk_graph_rewrite_aged(graph, replace, age));
done:
    free(age);
    free(changed);
    free(n_uses);
    free(replace);
    return status;
}
