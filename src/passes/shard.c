/* See passes/shard.h. */
#include "passes/shard.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/rank_parts.h"
#include "passes/parts.h"

struct stk_sharder {
    stk_graph *graph;
    int n_ranks;
    bool narrow;               /* gradients in f32 go from rank to rank in bf16 */
    int32_t n_nodes, n_values; /* before anything is added */
    bool *excluded;            /* by node: a sum that stays whole */
    int32_t *origin;           /* by value: the sum that it is made of element by element; -1: none */
    int32_t *level;            /* by value: how many sums over ranks come before it */
    bool *zero;                /* by value: what lies behind the last element is 0, where n_ranks do not divide it */
    int32_t *n_uses, *n_inner; /* by value: readers and roots; those that work on parts */
    bool *pulled;              /* by node: made of no gradient, but read by what works on parts alone */
    bool *is_state;            /* by value: a variable that each rank has a part of */
    int32_t *part;             /* by value: its part; -1: none yet */
};

/* --- what can be shared out --- */

static const stk_node *maker_of(const stk_sharder *s, int32_t value)
{
    return &s->graph->node[s->graph->value[value].node];
}

static stk_shape shape_of(const stk_sharder *s, int32_t value)
{
    return s->graph->value[value].desc.shape;
}

/* The variable whose gradient the sum is; -1: it is none, or too small. */
static int32_t find_parameter(const stk_sharder *s, int32_t i_sum)
{
    const stk_node *sum = &s->graph->node[i_sum];
    if (sum->op != STK_OP_accumulate || maker_of(s, sum->in[0])->op != STK_OP_grad) return -1;
    int32_t parameter = maker_of(s, sum->in[0])->in[1];
    stk_tensor_desc desc = s->graph->value[parameter].desc;
    bool is_wide = desc.dtype == STK_F32 || desc.dtype == STK_F64;
    if (maker_of(s, parameter)->op != STK_OP_variable || !is_wide || !stk_shape_known(desc.shape)) return -1;
    return stk_shape_count(desc.shape) >= STK_SHARD_LEAST ? parameter : -1;
}

static bool is_element(const stk_node *node)
{
    return stk_op_get_rule(node->op)->kind == STK_KIND_ELEMENT && node->op != STK_OP_fused;
}

static bool is_update(const stk_node *node)
{
    return node->op == STK_OP_sgd_update || node->op == STK_OP_adam_update;
}

/* One number for all elements. */
static bool is_spread(const stk_sharder *s, int32_t value)
{
    const stk_node *node = maker_of(s, value);
    return node->op == STK_OP_constant ||
           (node->op == STK_OP_broadcast && stk_shape_count(shape_of(s, node->in[0])) == 1);
}

static bool is_zero_behind(const stk_sharder *s, int32_t value)
{
    if (s->origin[value] >= 0) return s->zero[value];
    return maker_of(s, value)->op == STK_OP_variable && maker_of(s, value)->attrs.leaf.trainable;
}

/* Of a node that is element-wise: whether zeros behind the last element stay zeros. */
static bool keeps_zero(const stk_sharder *s, const stk_node *node)
{
    int kind = node->attrs.element.kind;
    bool a = is_zero_behind(s, node->in[0]), b = node->n_in > 1 && is_zero_behind(s, node->in[1]);
    if (node->op == STK_OP_unary) return a && (kind == STK_UNARY_square || kind == STK_UNARY_abs);
    if (node->op != STK_OP_binary) return node->op == STK_OP_cast && a;
    if (kind == STK_BINARY_add || kind == STK_BINARY_sub) return a && b;
    if (kind == STK_BINARY_mul) return (a && (b || is_spread(s, node->in[1]))) || (b && is_spread(s, node->in[0]));
    return kind == STK_BINARY_div && a && is_spread(s, node->in[1]);
}

/* Whether the node works on parts where its inputs are some: an op on each element, or a sum over all of them. */
static bool fits(const stk_sharder *s, const stk_node *node, int32_t origin)
{
    stk_shape whole = shape_of(s, s->graph->node[origin].first_out);
    if (node->op == STK_OP_reduce) {
        bool divides = stk_shape_count(whole) % s->n_ranks == 0;
        return node->attrs.reduce.kind == STK_REDUCE_SUM && shape_of(s, node->first_out).rank == 0 &&
               (divides || s->zero[node->in[0]]);
    }
    if (!is_element(node) && !is_update(node)) return false;
    for (int j = 0; j < node->n_in; j++) {
        if (s->origin[node->in[j]] >= 0 && s->origin[node->in[j]] != origin) return false;
        if (!stk_shape_equal(shape_of(s, node->in[j]), whole) &&
            !(is_update(node) && shape_of(s, node->in[j]).rank == 0))
            return false;
    }
    for (int j = 0; j < node->n_out; j++)
        if (!stk_shape_equal(shape_of(s, node->first_out + j), whole)) return false;
    return true;
}

static bool exclude(stk_sharder *s, int32_t value)
{
    if (s->origin[value] < 0) return false;
    s->excluded[s->origin[value]] = true;
    return true;
}

/* Follows the sums that are not excluded; false: there are more to exclude. */
static bool follow(stk_sharder *s)
{
    const stk_graph *graph = s->graph;
    bool all_well = true;
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        int32_t origin = -1, level = 0;
        for (int j = 0; j < node->n_in; j++) {
            if (s->origin[node->in[j]] >= 0) origin = s->origin[node->in[j]];
            if (s->level[node->in[j]] > level) level = s->level[node->in[j]];
        }
        if (origin >= 0 && !fits(s, node, origin)) {
            for (int j = 0; j < node->n_in; j++)
                all_well &= !exclude(s, node->in[j]);
            origin = -1;
        }
        bool is_sum = origin >= 0 && node->op == STK_OP_reduce;
        bool begins = find_parameter(s, i) >= 0 && !s->excluded[i];
        for (int j = 0; j < node->n_out; j++) {
            s->origin[node->first_out + j] = begins ? i : is_sum ? -1 : origin;
            s->level[node->first_out + j] = level + is_sum;
            s->zero[node->first_out + j] = begins || (origin >= 0 && is_element(node) && keeps_zero(s, node));
        }
    }
    for (int i = 0; i < graph->n_roots; i++)
        if (graph->root[i].variable < 0) all_well &= !exclude(s, graph->root[i].value);
    return all_well;
}

static bool works_on_parts(const stk_sharder *s, int32_t i)
{
    const stk_node *node = &s->graph->node[i];
    if (node->op == STK_OP_accumulate) return false;
    for (int j = 0; j < node->n_in; j++) /* Readers of other sums read new values by now. */
        if (node->in[j] < s->n_values && s->origin[node->in[j]] >= 0) return true;
    return s->pulled[i];
}

static void mark_pulled(stk_sharder *s)
{
    const stk_graph *graph = s->graph;
    for (int32_t i = 0; i < s->n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in; j++)
            s->n_uses[graph->node[i].in[j]]++;
    for (int i = 0; i < graph->n_roots; i++)
        s->n_uses[graph->root[i].value]++;
    for (int32_t i = s->n_nodes - 1; i >= 0; i--) {
        const stk_node *node = &graph->node[i];
        int32_t y = node->first_out;
        if (is_element(node) && s->origin[y] < 0) s->pulled[i] = s->n_uses[y] > 0 && s->n_inner[y] == s->n_uses[y];
        for (int j = 0; j < node->n_in && works_on_parts(s, i); j++)
            s->n_inner[node->in[j]]++;
    }
}

/* "conv.weight.velocity" of "conv.weight", which is called "conv.weight.raw" where a mean has its name. */
static bool is_state_of(const char *name, const char *parameter)
{
    size_t n = strlen(parameter);
    if (n > 4 && !strcmp(parameter + n - 4, ".raw")) n -= 4;
    return !strncmp(name, parameter, n) && name[n] == '.';
}

static void mark_states(stk_sharder *s)
{
    const stk_graph *graph = s->graph;
    for (int i = 0; i < graph->n_roots; i++) {
        int32_t variable = graph->root[i].variable, origin = s->origin[graph->root[i].value];
        if (variable < 0 || origin < 0) continue;
        const stk_node *node = maker_of(s, variable), *parameter = maker_of(s, find_parameter(s, origin));
        s->is_state[variable] = !node->attrs.leaf.trainable && !node->attrs.leaf.content &&
                                node->attrs.leaf.init.kind == STK_INIT_CONSTANT &&
                                is_state_of(node->name, parameter->name) && s->n_inner[variable] == s->n_uses[variable];
    }
}

stk_status stk_shard_new(stk_graph *graph, int n_ranks, bool narrow, stk_sharder **out)
{
    stk_sharder *s = calloc(1, sizeof(*s));
    size_t n_nodes = (size_t)graph->n_nodes + 1, n = (size_t)graph->n_values + 1;
    if (!s) return stk_fail_memory(sizeof(*s));
    *s = (stk_sharder){
        .graph = graph, .n_ranks = n_ranks, .narrow = narrow, .n_nodes = graph->n_nodes, .n_values = graph->n_values};
    s->excluded = calloc(n_nodes, sizeof(*s->excluded));
    s->pulled = calloc(n_nodes, sizeof(*s->pulled));
    s->origin = malloc(n * sizeof(*s->origin));
    s->level = calloc(n, sizeof(*s->level));
    s->zero = calloc(n, sizeof(*s->zero));
    s->n_uses = calloc(n, sizeof(*s->n_uses));
    s->n_inner = calloc(n, sizeof(*s->n_inner));
    s->is_state = calloc(n, sizeof(*s->is_state));
    s->part = malloc(n * sizeof(*s->part));
    if (!s->excluded || !s->pulled || !s->origin || !s->level || !s->zero || !s->n_uses || !s->n_inner ||
        !s->is_state || !s->part) {
        stk_shard_free(s);
        return stk_fail_memory(n * sizeof(*s->part));
    }
    do { /* Each round excludes one more at least, or is the last. */
        for (size_t v = 0; v < n; v++)
            s->origin[v] = s->part[v] = -1;
    } while (!follow(s));
    mark_pulled(s);
    mark_states(s);
    *out = s;
    return STK_OK;
}

void stk_shard_free(stk_sharder *s)
{
    if (!s) return;
    free(s->excluded);
    free(s->pulled);
    free(s->origin);
    free(s->level);
    free(s->zero);
    free(s->n_uses);
    free(s->n_inner);
    free(s->is_state);
    free(s->part);
    free(s);
}

bool stk_shard_takes(const stk_sharder *s, int32_t i_sum)
{
    return s && s->origin[s->graph->node[i_sum].first_out] == i_sum;
}

/* --- parts --- */

static stk_value add_of_ranks(stk_sharder *s, stk_op op, const stk_value *in, int n_in)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.ranks.n = s->n_ranks;
    return stk_graph_add(s->graph, op, &attrs, in, n_in);
}

stk_status stk_shard_begin(stk_sharder *s, int32_t i_sum, int32_t value)
{
    stk_value x = stk_value_of(s->graph, value);
    stk_dtype dtype = stk_value_dtype(x);
    if (s->narrow && dtype == STK_F32) x = stk_cast_to(x, STK_BF16);
    stk_value part = stk_cast_to(add_of_ranks(s, STK_OP_rank_scatter, &x, 1), dtype);
    s->part[s->graph->node[i_sum].first_out] = part.id;
    return stk_graph_status(s->graph);
}

static stk_shape part_shape(const stk_sharder *s, int32_t value)
{
    return STK_SHAPE(stk_rank_parts_count(shape_of(s, value), s->n_ranks));
}

/* The variable becomes one of parts where it is: whatever reads it is made again. */
static int32_t divide_variable(stk_sharder *s, int32_t value)
{
    stk_graph *graph = s->graph;
    stk_node *node = &graph->node[graph->value[value].node];
    stk_shape shape = part_shape(s, value);
    node->attrs.leaf.n_parts = s->n_ranks;
    node->attrs.leaf.whole = node->attrs.shape;
    node->attrs.shape = shape;
    graph->value[value].desc.shape = shape;
    return value;
}

static int32_t part_of(stk_sharder *s, int32_t value);

/* The same node on parts; scalars as they are. Returns its first output. */
static int32_t add_on_parts(stk_sharder *s, int32_t i)
{
    stk_graph *graph = s->graph;
    stk_node node = graph->node[i]; /* A copy: the array moves. */
    stk_value in[8] = {{0}};
    if (node.n_in > 8) return -1;
    for (int j = 0; j < node.n_in; j++) {
        bool is_whole = shape_of(s, node.in[j]).rank > 0;
        in[j] = stk_value_of(graph, is_whole ? part_of(s, node.in[j]) : node.in[j]);
        if (in[j].id < 0) return -1;
    }
    stk_attrs attrs = node.attrs;
    if (node.op == STK_OP_reduce) attrs.reduce.axes = 1;
    stk_value y = stk_graph_add(graph, node.op, &attrs, in, node.n_in);
    for (int j = 0; j < node.n_out && y.id >= 0 && node.op != STK_OP_reduce; j++)
        s->part[node.first_out + j] = y.id + j;
    return y.id;
}

static int32_t spread_again(stk_sharder *s, int32_t value)
{
    stk_node node = *maker_of(s, value);
    stk_shape shape = part_shape(s, value);
    if (node.op == STK_OP_constant)
        return stk_graph_constant(s->graph, s->graph->value[value].desc.dtype, shape, node.attrs.constant.value).id;
    stk_value one = stk_value_of(s->graph, node.in[0]);
    if (shape_of(s, node.in[0]).rank > 0) one = stk_reshape(one, (stk_shape){.rank = 0});
    return stk_broadcast(one, shape).id;
}

static int32_t part_of(stk_sharder *s, int32_t value)
{
    if (s->part[value] >= 0) return s->part[value];
    stk_value x = stk_value_of(s->graph, value);
    int32_t i = s->graph->value[value].node, part;
    if (s->is_state[value])
        part = divide_variable(s, value);
    else if (is_spread(s, value))
        part = spread_again(s, value);
    else if (s->pulled[i])
        part = add_on_parts(s, i);
    else
        part = add_of_ranks(s, STK_OP_rank_part, &x, 1).id;
    return s->part[value] = part;
}

/* --- sums over all elements --- */

typedef struct element_sum {
    int32_t part, whole; /* the rank's, and what readers read */
    int32_t level;
} element_sum;

/* Those that need no other of them go together. */
static stk_status add_up(stk_sharder *s, const element_sum *sum, int n)
{
    stk_graph *graph = s->graph;
    int32_t most = 0;
    for (int i = 0; i < n; i++)
        if (sum[i].level > most) most = sum[i].level;
    for (int32_t level = 0; level <= most; level++)
        for (int wide = 0; wide < 2; wide++) {
            stk_value x[STK_MOST_RANK_SUMS], y[STK_MOST_RANK_SUMS];
            int32_t readers_of[STK_MOST_RANK_SUMS];
            int n_together = 0;
            for (int i = 0; i <= n; i++) {
                bool belongs =
                    i < n && sum[i].level == level && (graph->value[sum[i].part].desc.dtype == STK_F64) == wide;
                if (belongs) {
                    x[n_together] = stk_value_of(graph, sum[i].part);
                    readers_of[n_together++] = sum[i].whole;
                }
                if (n_together == 0 || (i < n && n_together < STK_MOST_RANK_SUMS)) continue;
                stk_rank_sum(x, n_together, y);
                STK_RETURN_IF_ERROR(stk_graph_status(graph));
                for (int k = 0; k < n_together; k++)
                    stk_part_redirect(graph, graph->n_nodes, readers_of[k], y[k].id);
                n_together = 0;
            }
        }
    return STK_OK;
}

/* --- all --- */

static stk_status add_updates(stk_sharder *s, element_sum *sum, int *n)
{
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const stk_node *node = &s->graph->node[i];
        if (node->op == STK_OP_accumulate || s->pulled[i] || !works_on_parts(s, i)) continue;
        bool is_sum = node->op == STK_OP_reduce;
        int32_t whole = node->first_out, level = s->level[node->in[0]];
        int32_t part = add_on_parts(s, i);
        STK_RETURN_IF_ERROR(stk_graph_status(s->graph));
        if (part < 0) return stk_fail(STK_INTERNAL, "an update that is shared out has too many inputs");
        if (is_sum) sum[(*n)++] = (element_sum){part, whole, level};
    }
    return STK_OK;
}

static stk_status redirect_roots(stk_sharder *s)
{
    stk_graph *graph = s->graph;
    for (int i = 0; i < graph->n_roots; i++) {
        int32_t variable = graph->root[i].variable, value = graph->root[i].value;
        if (variable < 0 || value >= s->n_values || s->origin[value] < 0) continue;
        stk_value in[2] = {stk_value_of(graph, part_of(s, value)), stk_value_of(graph, variable)};
        graph->root[i].value = s->is_state[variable] ? in[0].id : add_of_ranks(s, STK_OP_rank_gather, in, 2).id;
        STK_RETURN_IF_ERROR(stk_graph_status(graph));
    }
    return STK_OK;
}

stk_status stk_shard_finish(stk_sharder *s)
{
    int n = 0;
    element_sum *sum = calloc((size_t)s->n_nodes + 1, sizeof(*sum));
    if (!sum) return stk_fail_memory((size_t)s->n_nodes * sizeof(*sum));
    stk_status status = add_updates(s, sum, &n);
    if (status == STK_OK) status = redirect_roots(s);
    if (status == STK_OK) status = add_up(s, sum, n);
    free(sum);
    return status;
}
