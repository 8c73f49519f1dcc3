/* Autocast: training in bf16 or f16 with f32 where that is needed.
 *
 *   f32 variable ----------------------> update           parameters stay f32; each is rounded once a step
 *        \-> cast -> product -> ...                       products read 16 bits, sum up in f32 and write 16 bits
 *   ... -> cast to f32 -> softmax, loss, exp, ...         whatever is not said to be safe
 *
 * What an op wants stands in its rule (stk_autocast). Kept in f32 besides that: the last product on the way to every
 * output, which is the layer that makes the logits, unless it is one with the loss, where they stay f32; nodes marked
 * keep_f32; and all that depends on a gradient, which is the optimiser's part. Values that depend on parameters and
 * constants alone, as a bias does, follow the others.
 *
 * With `tf32` products keep f32, and are marked as free to round what they multiply to TF32.
 *
 * Before autodiff, so that gradients have the dtypes of their values and a cast's gradient is the cast back. After
 * Micikevicius et al. 2018 and, for the lists, PyTorch's autocast.
 */
#include <stdlib.h>

#include "base/error.h"
#include "passes/passes.h"

enum { MOST = 64 };

typedef struct caster {
    stk_graph *graph;
    stk_dtype narrow;
    int32_t n_nodes, n_values; /* before the pass */
    bool *fixed;               /* by value: depends on no input */
    bool *after_grad;          /* by value: depends on a gradient */
    bool *meets_product;       /* by value: some product comes behind it */
    int32_t *now;              /* by value: what stands for it */
} caster;

static bool is_narrow(stk_dtype dtype)
{
    return dtype == STK_BF16 || dtype == STK_F16;
}

static bool is_castable(stk_dtype dtype)
{
    return dtype == STK_F32 || is_narrow(dtype);
}

/* --- what is known of each value --- */

/* Functions whose results 16 bits cannot hold, or only far too coarsely: PyTorch's list. */
static bool needs_f32(const stk_node *node)
{
    int kind = node->attrs.element.kind;
    if (node->op == STK_OP_binary) return kind == STK_BINARY_pow;
    if (node->op != STK_OP_unary) return false;
    return kind == STK_UNARY_exp || kind == STK_UNARY_log || kind == STK_UNARY_rsqrt || kind == STK_UNARY_reciprocal ||
           kind == STK_UNARY_log1p || kind == STK_UNARY_expm1;
}

static stk_autocast wish_of(const stk_node *node)
{
    if (node->keep_f32 || needs_f32(node)) return STK_AUTOCAST_WIDE;
    return stk_op_get_rule(node->op)->autocast;
}

static void look_forwards(caster *c)
{
    const stk_graph *graph = c->graph;
    for (int32_t i = 0; i < c->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        bool fixed = node->op != STK_OP_input && node->op != STK_OP_grad, after = node->op == STK_OP_grad;
        for (int j = 0; j < node->n_in; j++) {
            fixed = fixed && c->fixed[node->in[j]];
            after = after || c->after_grad[node->in[j]];
        }
        for (int j = 0; j < node->n_out; j++) {
            c->fixed[node->first_out + j] = fixed;
            c->after_grad[node->first_out + j] = after;
        }
    }
}

static void look_backwards(caster *c)
{
    const stk_graph *graph = c->graph;
    for (int32_t i = c->n_nodes - 1; i >= 0; i--) {
        const stk_node *node = &graph->node[i];
        bool meets = wish_of(node) == STK_AUTOCAST_NARROW || wish_of(node) == STK_AUTOCAST_LOSS;
        if (node->op == STK_OP_grad || (node->n_out && c->after_grad[node->first_out])) continue;
        for (int j = 0; j < node->n_out; j++)
            meets = meets || c->meets_product[node->first_out + j];
        for (int j = 0; meets && j < node->n_in; j++)
            c->meets_product[node->in[j]] = true;
    }
}

/* --- casting --- */

/* value in that dtype. The cast goes in front of what only moves elements: a parameter is rounded before it is spread,
 * and groups still read through the broadcast. */
static stk_value cast(caster *c, stk_value value, stk_dtype dtype)
{
    stk_graph *graph = c->graph;
    if (value.id < 0 || stk_value_dtype(value) == dtype || !is_castable(stk_value_dtype(value))) return value;
    stk_node node = *stk_value_node(value); /* A copy: the array moves. */
    if (node.op != STK_OP_broadcast && node.op != STK_OP_reshape && node.op != STK_OP_transpose)
        return stk_cast_to(value, dtype);
    stk_value x = cast(c, stk_value_of(graph, node.in[0]), dtype);
    return stk_graph_add(graph, node.op, &node.attrs, &x, 1);
}

/* The dtype of the inputs that an op takes as they come: 16 bits where all of them that are not fixed have that. */
static stk_dtype follow(const caster *c, const stk_node *node)
{
    stk_dtype dtype = STK_F32;
    for (int j = 0; j < node->n_in; j++) {
        stk_dtype own = c->graph->value[c->now[node->in[j]]].desc.dtype;
        if (!is_castable(own) || (own == STK_F32 && c->fixed[node->in[j]])) continue;
        if (own == STK_F32) return STK_F32;
        dtype = own;
    }
    return dtype;
}

/* Fills in[] with the inputs that the node shall have. */
static void choose_inputs(caster *c, const stk_node *node, stk_value *in)
{
    stk_graph *graph = c->graph;
    stk_autocast wish = wish_of(node);
    bool is_last = node->n_out && !c->meets_product[node->first_out];
    stk_dtype dtype = STK_F32;
    if (wish == STK_AUTOCAST_LOSS || (wish == STK_AUTOCAST_NARROW && !is_last)) dtype = c->narrow;
    if (wish == STK_AUTOCAST_FOLLOW || wish == STK_AUTOCAST_RESULT) dtype = follow(c, node);
    for (int j = 0; j < node->n_in; j++) {
        in[j] = stk_value_of(graph, c->now[node->in[j]]);
        /* What is differentiated by is the value itself, whatever its dtype now. */
        bool as_it_comes = node->op == STK_OP_grad ? j == 1 : wish == STK_AUTOCAST_FIRST && j == 0;
        if (!as_it_comes) in[j] = cast(c, in[j], dtype);
    }
}

/* A sum over 16 bits is wide instead of reading a copy in f32. */
static bool make_wide(caster *c, const stk_node *node, stk_attrs *attrs, stk_value *in)
{
    stk_value x = stk_value_of(c->graph, c->now[node->in[0]]);
    if (node->op != STK_OP_reduce || (attrs->reduce.kind != STK_REDUCE_SUM && attrs->reduce.kind != STK_REDUCE_MEAN) ||
        !is_narrow(stk_value_dtype(x)))
        return false;
    attrs->reduce.wide = 1;
    in[0] = x;
    return true;
}

/* The node on those inputs; nothing where they are the ones that it has. */
static stk_status rebuild(caster *c, const stk_node *node, const stk_value *in)
{
    stk_graph *graph = c->graph;
    bool changed = false;
    for (int j = 0; j < node->n_in; j++)
        changed = changed || in[j].id != node->in[j];
    if (!changed) return stk_graph_status(graph);
    stk_value y = stk_graph_add(graph, node->op, &node->attrs, in, node->n_in);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    graph->node[graph->n_nodes - 1].keep_f32 = node->keep_f32;
    graph->node[graph->n_nodes - 1].barrier = node->barrier;
    for (int j = 0; j < node->n_out; j++)
        c->now[node->first_out + j] = y.id + j;
    return STK_OK;
}

static stk_status cast_node(caster *c, int32_t i)
{
    stk_graph *graph = c->graph;
    stk_node node = graph->node[i]; /* A copy: the array moves. */
    stk_value in[MOST];
    if (node.n_in == 0 || node.n_in > MOST) return STK_OK;
    bool is_optimiser = c->after_grad[node.first_out] && node.op != STK_OP_grad;
    if (is_optimiser) {
        for (int j = 0; j < node.n_in; j++)
            in[j] = cast(c, stk_value_of(graph, c->now[node.in[j]]), graph->value[node.in[j]].desc.dtype);
    } else if (!make_wide(c, &node, &node.attrs, in)) {
        choose_inputs(c, &node, in);
    }
    STK_RETURN_IF_ERROR(rebuild(c, &node, in));
    int32_t *y = &c->now[node.first_out];
    if (wish_of(&node) == STK_AUTOCAST_RESULT && c->fixed[node.in[0]] && c->meets_product[node.first_out])
        *y = cast(c, stk_value_of(graph, *y), c->narrow).id;
    return stk_graph_status(graph);
}

/* Outputs and updates keep the dtypes that they had. */
static stk_status restore_roots(caster *c)
{
    stk_graph *graph = c->graph;
    stk_status status = STK_OK;
    for (int i = 0; i < graph->n_roots; i++) {
        int32_t value = graph->root[i].value;
        c->now[value] = cast(c, stk_value_of(graph, c->now[value]), graph->value[value].desc.dtype).id;
        STK_RETURN_IF_ERROR(stk_graph_status(graph));
    }
    for (int i = 0; i < graph->n_roots; i++)
        graph->root[i].value = c->now[graph->root[i].value];
    int32_t *replace = stk_pass_identity(graph, 0);
    if (!replace) return stk_fail_memory((size_t)graph->n_values * sizeof(*replace));
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(replace);
    return status;
}

/* What would be in 16 bits may be in TF32, and so the layers that the user keeps in f32 and the optimiser's products
 * are not; the last product is, since nothing of it is stored in fewer bits. */
static void allow_tf32(caster *c)
{
    for (int32_t i = 0; i < c->n_nodes; i++) {
        stk_node *node = &c->graph->node[i];
        if (node->keep_f32 || !stk_op_takes_tf32(node->op) || c->after_grad[node->first_out]) continue;
        node->attrs.tf32 = c->graph->value[node->in[0]].desc.dtype == STK_F32;
    }
}

stk_status pass_autocast(stk_graph *graph, const stk_pass_options *options)
{
    if (!options || (!is_narrow(options->compute) && !options->tf32)) return stk_graph_status(graph);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    size_t n = (size_t)graph->n_values + 1;
    caster c = {.graph = graph, .narrow = options->compute, .n_nodes = graph->n_nodes, .n_values = graph->n_values};
    c.fixed = calloc(n, sizeof(*c.fixed));
    c.after_grad = calloc(n, sizeof(*c.after_grad));
    c.meets_product = calloc(n, sizeof(*c.meets_product));
    c.now = stk_pass_identity(graph, 0);
    if (!c.fixed || !c.after_grad || !c.meets_product || !c.now) STK_TRY(stk_fail_memory(n * sizeof(*c.now)));
    look_forwards(&c);
    if (options->tf32) allow_tf32(&c);
    if (!is_narrow(options->compute)) goto done;
    look_backwards(&c);
    for (int32_t i = 0; i < c.n_nodes; i++)
        STK_TRY(cast_node(&c, i));
    STK_TRY(restore_roots(&c));
done:
    free(c.fixed);
    free(c.after_grad);
    free(c.meets_product);
    free(c.now);
    return status;
}
