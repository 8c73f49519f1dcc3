/* Lets a matmul or a convolution add the bias behind it, and a convolution do the ReLU behind that, while its sums are
 * in registers or the cache:
 *
 *   add(matmul(a, b), broadcast(bias))         becomes   matmul(a, b, bias)
 *   relu(add(conv2d(x, w), broadcast(bias)))   becomes   conv2d(x, w, bias) with ReLU
 *
 * so that what a layer makes is not written and read once more for its bias. In f32 the bits stay the same, where
 * the bias comes last; in 16 bits it is added as f32 before the result is rounded, instead of being rounded itself and
 * added to a rounded result. A sum that something else recomputes, or a product that something else reads, stays. The
 * gradient of ReLU asks for its result alone. Each only where the device can do it. Transposed convolutions, which are
 * gradients of data, do the same in f32.
 */
#include "base/error.h"
#include "passes/passes.h"

static const stk_node *maker_of(const stk_graph *graph, int32_t value)
{
    return &graph->node[graph->value[value].node];
}

static bool is_transposed(const stk_node *node)
{
    return node->op == STK_OP_conv2d_grad_data || node->op == STK_OP_conv3d_grad_data;
}

static bool is_conv(const stk_node *node)
{
    return node->op == STK_OP_conv2d || node->op == STK_OP_conv3d || is_transposed(node);
}

/* Whether the product that makes `value`, which nothing else reads, may add a bias. */
static bool takes_bias(const stk_graph *graph, const int32_t *n_uses, int32_t value)
{
    const stk_node *node = maker_of(graph, value);
    bool fits = is_conv(node) || (node->op == STK_OP_matmul && !node->attrs.matmul.wide);
    return fits && node->n_in == 2 && node->attrs.activation == STK_ACTIVATION_NONE && n_uses[value] == 1;
}

/* Whether a transposed convolution's bias stays with a group: in 16 bits, where most kernels have rounded the sums
 * before, and where something element-wise but a ReLU goes over all of it in any case. */
static bool is_for_group(const stk_graph *graph, int32_t value)
{
    stk_dtype dtype = graph->value[value].desc.dtype;
    if (stk_dtype_bytes(dtype) == 2) return true;
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (stk_op_get_rule(node->op)->kind != STK_KIND_ELEMENT) continue;
        if (node->op == STK_OP_unary && node->attrs.element.kind == STK_UNARY_relu) continue;
        for (int j = 0; j < node->n_in; j++)
            if (node->in[j] == value) return true;
    }
    return false;
}

static stk_status join_bias(stk_graph *graph, const int32_t *n_uses, const stk_node *add, int32_t *replace)
{
    for (int i = 0; i < 2; i++) {
        int32_t c = add->in[i], bias = stk_pass_find_bias(graph, add->in[1 - i]);
        if (bias < 0 || !takes_bias(graph, n_uses, c)) continue;
        stk_node *product = &graph->node[graph->value[c].node];
        if (is_transposed(product) && is_for_group(graph, add->first_out)) continue;
        int32_t *in = stk_arena_alloc(graph->arena, 3 * sizeof(*in));
        if (!in) return stk_fail_memory(3 * sizeof(*in));
        in[0] = product->in[0];
        in[1] = product->in[1];
        in[2] = bias;
        product->in = in;
        product->n_in = 3;
        replace[add->first_out] = c;
        return STK_OK;
    }
    return STK_OK;
}

/* Of a convolution, or of the sum that it has taken. */
static void join_relu(stk_graph *graph, const int32_t *n_uses, const stk_node *relu, int32_t *replace)
{
    int32_t y = replace[relu->in[0]];
    stk_node *conv = &graph->node[graph->value[y].node];
    if (!is_conv(conv) || n_uses[relu->in[0]] != 1 || conv->attrs.activation != STK_ACTIVATION_NONE) return;
    conv->attrs.activation = STK_ACTIVATION_RELU;
    replace[relu->first_out] = y;
}

static stk_status visit_add(stk_graph *graph, const stk_node *node, const int32_t *n_uses, int32_t *replace)
{
    bool is_add = node->op == STK_OP_binary && node->attrs.element.kind == STK_BINARY_add;
    return is_add ? join_bias(graph, n_uses, node, replace) : STK_OK;
}

static stk_status visit_relu(stk_graph *graph, const stk_node *node, const int32_t *n_uses, int32_t *replace)
{
    if (node->op == STK_OP_unary && node->attrs.element.kind == STK_UNARY_relu) join_relu(graph, n_uses, node, replace);
    return STK_OK;
}

static stk_status visit(stk_graph *graph, const stk_node *node, const int32_t *n_uses, int32_t *replace)
{
    STK_RETURN_IF_ERROR(visit_add(graph, node, n_uses, replace));
    return visit_relu(graph, node, n_uses, replace);
}

stk_status pass_fuse_epilogue(stk_graph *graph, const stk_pass_options *options)
{
    const stk_device_caps *caps = stk_pass_caps(options);
    if (!caps->bias && !caps->conv_relu) return stk_graph_status(graph);
    return stk_pass_each_node(graph, caps->bias && caps->conv_relu ? visit : caps->bias ? visit_add : visit_relu);
}
