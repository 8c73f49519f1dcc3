/* Which device each value lies on, and copies where one is read on another.
 *
 *   place    first: nodes of layers that are marked go to their devices, those of other layers to device 0, what is in
 *            no layer follows what it reads; inputs arrive at device 0, and results leave from there
 *   settle   last: nodes that other passes made follow what they read, the most bytes first
 *
 * A gradient follows by itself: that of a copy is copied back, so it arrives where its parameter lies, and so does the
 * update. What is made of nothing is made on each device that reads it. Where devices do not share memory, all_reduce
 * becomes copies and sums.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/layers.h"
#include "passes/passes.h"

typedef struct placer {
    stk_graph *graph;
    int32_t *moved; /* [n_values][STK_MOST_DEVICES]: the value there; -1: none yet. Values before any copy was added */
    int32_t *age;   /* by node, for the order; room for the copies */
    int32_t n_nodes, capacity; /* nodes before any copy was added; of age */
} placer;

/* --- deciding --- */

static size_t bytes_of(const stk_graph *graph, int32_t value)
{
    return stk_shape_known(graph->value[value].desc.shape) ? stk_desc_bytes(graph->value[value].desc) : 0;
}

/* Where most of what the node reads lies. */
static int32_t follow(const stk_graph *graph, const stk_node *node, int o)
{
    int32_t best = -1;
    if (node->op == STK_OP_copy_to || node->op == STK_OP_all_reduce) return stk_graph_infer_device(graph, node, o);
    if (node->op == STK_OP_grad) return graph->value[node->in[1]].device;
    for (int j = 0; j < node->n_in; j++) {
        int32_t v = node->in[j];
        if (stk_graph_tells_device(graph, v) && (best < 0 || bytes_of(graph, v) > bytes_of(graph, best))) best = v;
    }
    return best < 0 ? 0 : graph->value[best].device;
}

/* -1: the layer is not marked. The longest mark counts. */
static int32_t find_mark(const stk_pass_options *options, stk_layer_name layer)
{
    int32_t device = -1;
    size_t longest = 0;
    for (int i = 0; i < options->n_places; i++) {
        size_t n = strlen(options->place[i].layer);
        if (n < longest || !stk_layer_is_within(layer, options->place[i].layer, n)) continue;
        longest = n;
        device = options->place[i].device;
    }
    return device;
}

static stk_status check_marks(const stk_graph *graph, const stk_pass_options *options, const stk_layer_name *layer)
{
    for (int i = 0; i < options->n_places; i++) {
        const stk_place_mark *mark = &options->place[i];
        bool is_used = false;
        if (mark->device < 0 || mark->device >= options->n_devices)
            return stk_fail(STK_INVALID, "'%s' is to be on device %d, and there are %d", mark->layer, mark->device,
                            options->n_devices);
        for (int32_t k = 0; k < graph->n_nodes && !is_used; k++)
            is_used = stk_layer_is_within(layer[k], mark->layer, strlen(mark->layer));
        if (!is_used) return stk_fail(STK_NOT_FOUND, "there is no layer '%s' to be placed", mark->layer);
    }
    return STK_OK;
}

/* What a graph itself has copied or summed up over devices, and what is made of it. */
static bool is_moved(const stk_graph *graph, const stk_node *node, const bool *moved)
{
    bool any = node->op == STK_OP_copy_to || node->op == STK_OP_all_reduce;
    for (int j = 0; j < node->n_in && !any; j++)
        any = moved[graph->value[node->in[j]].node];
    return any;
}

/* Marks come before what the graph does itself, but for its copies. */
static void decide_node(stk_graph *graph, int32_t i, const stk_pass_options *options, stk_layer_name layer, bool *moved)
{
    const stk_node *node = &graph->node[i];
    int32_t mark = find_mark(options, layer);
    bool is_fixed = node->op == STK_OP_copy_to || node->op == STK_OP_all_reduce || node->op == STK_OP_grad;
    moved[i] = is_moved(graph, node, moved) && (is_fixed || mark < 0);
    for (int o = 0; o < node->n_out; o++) {
        int32_t *device = &graph->value[node->first_out + o].device;
        if (node->op == STK_OP_input)
            *device = 0;
        else if (moved[i] || is_fixed || !layer.text)
            *device = follow(graph, node, o);
        else
            *device = mark < 0 ? 0 : mark;
    }
}

static stk_status decide_by_marks(stk_graph *graph, const stk_pass_options *options)
{
    size_t n = (size_t)graph->n_nodes + 1;
    stk_layer_name *layer = calloc(n, sizeof(*layer));
    bool *moved = calloc(n, sizeof(*moved));
    stk_status status = layer && moved ? stk_graph_find_layers(graph, layer) : stk_fail_memory(n * sizeof(*layer));
    if (status == STK_OK) status = check_marks(graph, options, layer);
    for (int32_t i = 0; i < graph->n_nodes && status == STK_OK; i++)
        decide_node(graph, i, options, layer[i], moved);
    free(layer);
    free(moved);
    return status;
}

static void decide_by_inputs(stk_graph *graph)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->n_in == 0) continue;
        for (int o = 0; o < node->n_out; o++)
            graph->value[node->first_out + o].device = follow(graph, node, o);
    }
}

/* --- copies --- */

/* Puts what was just added into the order right behind what it was made of. */
static stk_status note_age(placer *p, int32_t age)
{
    stk_graph *graph = p->graph;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (graph->n_nodes > p->capacity) {
        int32_t grown = 2 * graph->n_nodes;
        int32_t *ages = realloc(p->age, (size_t)grown * sizeof(*ages));
        if (!ages) return stk_fail_memory((size_t)grown * sizeof(*ages));
        p->age = ages;
        p->capacity = grown;
    }
    p->age[graph->n_nodes - 1] = age;
    return STK_OK;
}

/* The value on that device. */
static stk_status bring(placer *p, int32_t value, int32_t device, int32_t *out)
{
    stk_graph *graph = p->graph;
    int32_t *there = &p->moved[(size_t)value * STK_MOST_DEVICES + (size_t)device], maker = graph->value[value].node;
    *out = value;
    if (graph->value[value].device == device) return STK_OK;
    if (*there < 0) {
        stk_node node = graph->node[maker]; /* A copy: the array moves. */
        *there = stk_graph_tells_device(graph, value)
                     ? stk_copy_to(stk_value_of(graph, value), device).id
                     : stk_graph_add(graph, node.op, &node.attrs, NULL, 0).id + value - node.first_out;
        STK_RETURN_IF_ERROR(note_age(p, maker));
        graph->node[graph->n_nodes - 1].backward = node.backward;
        for (int o = 0; o < graph->node[graph->n_nodes - 1].n_out; o++)
            graph->value[graph->node[graph->n_nodes - 1].first_out + o].device = device;
    }
    *out = *there;
    return STK_OK;
}

/* What is made of nothing is made where it is read first. */
static void settle_free(placer *p)
{
    stk_graph *graph = p->graph;
    for (int32_t i = p->n_nodes - 1; i >= 0; i--) {
        const stk_node *node = &graph->node[i];
        for (int j = 0; j < node->n_in; j++)
            if (!stk_graph_tells_device(graph, node->in[j]) && node->op != STK_OP_all_reduce &&
                node->op != STK_OP_copy_to)
                graph->value[node->in[j]].device = graph->value[node->first_out].device;
    }
}

static stk_status bring_inputs(placer *p)
{
    stk_graph *graph = p->graph;
    for (int32_t i = 0; i < p->n_nodes; i++) {
        stk_op op = graph->node[i].op;
        if (op == STK_OP_copy_to || op == STK_OP_all_reduce || op == STK_OP_grad) continue;
        for (int j = 0; j < graph->node[i].n_in; j++) {
            int32_t there;
            STK_RETURN_IF_ERROR(bring(p, graph->node[i].in[j], graph->value[graph->node[i].first_out].device, &there));
            graph->node[i].in[j] = there;
        }
    }
    for (int r = 0; r < graph->n_roots; r++) {
        int32_t variable = graph->root[r].variable;
        int32_t device = variable < 0 ? 0 : graph->value[variable].device;
        STK_RETURN_IF_ERROR(bring(p, graph->root[r].value, device, &graph->root[r].value));
    }
    return STK_OK;
}

/* --- sums over devices that share no memory --- */

static stk_value cast(stk_value x, stk_dtype dtype)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.dtype = dtype;
    return x.id < 0 ? x : stk_graph_add(x.graph, STK_OP_cast, &attrs, &x, 1);
}

static stk_value add_up(stk_graph *graph, const stk_node *node)
{
    int32_t home = graph->value[node->in[0]].device;
    stk_dtype dtype = graph->value[node->in[0]].desc.dtype;
    bool is_narrow = dtype == STK_BF16 || dtype == STK_F16;
    stk_value sum = stk_value_none(graph);
    for (int i = 0; i < node->n_in; i++) {
        stk_value x = stk_value_of(graph, node->in[i]);
        if (graph->value[x.id].device != home) x = stk_copy_to(x, home);
        if (is_narrow) x = cast(x, STK_F32);
        sum = i ? stk_add(sum, x) : x;
    }
    if (node->attrs.all_reduce.mean)
        sum = stk_div(sum, stk_graph_constant(graph, is_narrow ? STK_F32 : dtype, (stk_shape){0}, node->n_in));
    return is_narrow ? cast(sum, dtype) : sum;
}

static stk_status replace_all_reduce(stk_graph *graph)
{
    int32_t n_nodes = graph->n_nodes, n_values = graph->n_values, n_found = 0;
    int32_t *to = malloc(((size_t)n_values + 1) * sizeof(*to)), *replace = NULL;
    stk_status status = STK_OK;
    if (!to) return stk_fail_memory((size_t)n_values * sizeof(*to));
    for (int32_t v = 0; v < n_values; v++)
        to[v] = v;
    for (int32_t i = 0; i < n_nodes; i++) {
        stk_node node = graph->node[i];
        if (node.op != STK_OP_all_reduce) continue;
        stk_value sum = add_up(graph, &node);
        STK_TRY(stk_graph_status(graph));
        n_found++;
        for (int o = 0; o < node.n_out; o++) {
            int32_t device = graph->value[node.in[o]].device;
            to[node.first_out + o] = device == graph->value[sum.id].device ? sum.id : stk_copy_to(sum, device).id;
        }
        STK_TRY(stk_graph_status(graph));
    }
    if (n_found) {
        replace = stk_pass_identity(graph, 0);
        if (!replace) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
        memcpy(replace, to, (size_t)n_values * sizeof(*to));
        STK_TRY(stk_graph_rewrite(graph, replace));
    }
done:
    free(to);
    free(replace);
    return status;
}

/* --- the passes --- */

/* Values are on devices; those that a device reads of another are copied there. */
static stk_status connect(stk_graph *graph)
{
    placer p = {.graph = graph, .n_nodes = graph->n_nodes};
    stk_status status = STK_OK;
    size_t n_moved = ((size_t)graph->n_values + 1) * STK_MOST_DEVICES;
    int32_t *replace = NULL;
    p.capacity = 2 * graph->n_nodes + 1;
    p.moved = malloc(n_moved * sizeof(*p.moved));
    p.age = malloc((size_t)p.capacity * sizeof(*p.age));
    if (!p.moved || !p.age) STK_TRY(stk_fail_memory(n_moved * sizeof(*p.moved)));
    memset(p.moved, -1, n_moved * sizeof(*p.moved));
    for (int32_t i = 0; i < graph->n_nodes; i++)
        p.age[i] = i;
    settle_free(&p);
    STK_TRY(bring_inputs(&p));
    replace = stk_pass_identity(graph, 0);
    if (!replace) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    STK_TRY(stk_graph_rewrite_aged(graph, replace, p.age));
done:
    free(replace);
    free(p.moved);
    free(p.age);
    return status;
}

stk_status pass_place(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (options->n_places)
        STK_RETURN_IF_ERROR(decide_by_marks(graph, options));
    else
        decide_by_inputs(graph);
    return connect(graph);
}

stk_status pass_settle(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    decide_by_inputs(graph);
    if (!options->shared_memory) {
        STK_RETURN_IF_ERROR(replace_all_reduce(graph));
        decide_by_inputs(graph);
    }
    return connect(graph);
}
