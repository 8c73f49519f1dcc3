/* Building and copying graphs. See graph/graph.h; rewriting is in rewrite.c, checking in verify.c. */
#include "graph/graph.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "graph/fused.h"

/* What stk_graph_new returns when there is no memory at all: every call on it is a no-op. */
static stk_graph no_memory_graph = {.status = STK_NO_MEMORY, .error = "cannot allocate memory for a graph"};

stk_graph *stk_graph_new(void)
{
    stk_graph *graph = calloc(1, sizeof(*graph));
    if (graph) graph->arena = stk_arena_new();
    if (!graph || !graph->arena) {
        free(graph);
        return &no_memory_graph;
    }
    return graph;
}

void stk_graph_free(stk_graph *graph)
{
    if (!graph || graph == &no_memory_graph) return;
    free(graph->node);
    free(graph->value);
    free(graph->root);
    stk_graph_forget_names(graph);
    for (stk_held *held = graph->held; held; held = held->next)
        held->free(held->thing);
    stk_arena_free(graph->arena);
    free(graph);
}

stk_status stk_graph_status(const stk_graph *graph)
{
    if (!graph) return stk_fail(STK_INVALID, "there is no graph");
    return graph->status == STK_OK ? STK_OK : stk_fail(graph->status, "%s", graph->error);
}

stk_status stk_graph_keep_error(stk_graph *graph, stk_status status)
{
    if (status != STK_OK && graph->status == STK_OK) {
        graph->status = status;
        snprintf(graph->error, sizeof(graph->error), "%s", stk_error_text());
    }
    return status;
}

stk_value stk_value_none(stk_graph *graph)
{
    return (stk_value){graph, -1};
}

static bool is_valid(stk_value x)
{
    return x.graph && x.id >= 0 && x.id < x.graph->n_values;
}

stk_shape stk_value_shape(stk_value x)
{
    return is_valid(x) ? x.graph->value[x.id].desc.shape : (stk_shape){0};
}

stk_dtype stk_value_dtype(stk_value x)
{
    return is_valid(x) ? x.graph->value[x.id].desc.dtype : STK_F32;
}

stk_value stk_value_sibling(stk_value x, int i)
{
    return is_valid(x) ? (stk_value){x.graph, x.id + i} : x;
}

const stk_node *stk_value_node(stk_value x)
{
    return is_valid(x) ? &x.graph->node[x.graph->value[x.id].node] : NULL;
}

/* Makes room for one more element of bytes each. */
static stk_status reserve(void **array, int32_t n, int32_t *capacity, size_t bytes)
{
    if (n < *capacity) return STK_OK;
    int32_t grown = *capacity ? 2 * *capacity : 64;
    void *p = realloc(*array, (size_t)grown * bytes);
    if (!p) return stk_fail_memory((size_t)grown * bytes);
    *array = p;
    *capacity = grown;
    return STK_OK;
}

bool stk_graph_tells_device(const stk_graph *graph, int32_t value)
{
    const stk_node *node = &graph->node[graph->value[value].node];
    return node->n_in > 0 || node->op == STK_OP_input || node->op == STK_OP_variable;
}

int32_t stk_graph_infer_device(const stk_graph *graph, const stk_node *node, int o)
{
    if (node->op == STK_OP_copy_to) return node->attrs.copy_to.device;
    if (node->op == STK_OP_all_reduce) return graph->value[node->in[o]].device;
    for (int j = 0; j < node->n_in; j++)
        if (stk_graph_tells_device(graph, node->in[j])) return graph->value[node->in[j]].device;
    return 0;
}

/* Adds a node whose outputs' types are known. */
static stk_status append_node(stk_graph *graph, const stk_node *node, const stk_tensor_desc *out)
{
    STK_RETURN_IF_ERROR(reserve((void **)&graph->node, graph->n_nodes, &graph->node_capacity, sizeof(*graph->node)));
    for (int i = 0; i < node->n_out; i++) {
        STK_RETURN_IF_ERROR(stk_desc_check(out[i]));
        STK_RETURN_IF_ERROR(
            reserve((void **)&graph->value, graph->n_values + i, &graph->value_capacity, sizeof(*graph->value)));
        graph->value[graph->n_values + i] =
            (stk_value_info){out[i], graph->n_nodes, stk_graph_infer_device(graph, node, i)};
    }
    graph->node[graph->n_nodes] = *node;
    graph->node[graph->n_nodes].first_out = graph->n_values;
    graph->n_nodes++;
    graph->n_values += node->n_out;
    return STK_OK;
}

static stk_status add_node(stk_graph *graph, stk_op op, const stk_attrs *attrs, const stk_value *in, int n_in)
{
    const stk_op_rule *rule = stk_op_get_rule(op);
    stk_node node = {.op = op, .n_in = n_in, .attrs = *attrs, .keep_f32 = graph->n_keep_f32 > 0};
    stk_tensor_desc out[STK_MOST_OUTPUTS];
    if (rule->n_in >= 0 && n_in != rule->n_in && op != STK_OP_sgd_update)
        return stk_fail(STK_INVALID, "%s takes %d inputs, not %d", rule->name, rule->n_in, n_in);
    node.in = stk_arena_alloc(graph->arena, (size_t)(n_in + 1) * sizeof(*node.in));
    stk_tensor_desc *desc = stk_arena_alloc(graph->arena, (size_t)(n_in + 1) * sizeof(*desc));
    if (!node.in || !desc) return stk_fail_memory((size_t)n_in * sizeof(*desc));
    for (int i = 0; i < n_in; i++) {
        if (in[i].graph != graph) return stk_fail(STK_INVALID, "%s: input %d is of another graph", rule->name, i);
        if (!is_valid(in[i])) return stk_fail(STK_INVALID, "%s: input %d is no value", rule->name, i);
        node.in[i] = in[i].id;
        desc[i] = graph->value[in[i].id].desc;
    }
    stk_op_call call = {.op = op, .attrs = &node.attrs, .n_in = n_in, .n_out = rule->n_out, .in = desc, .out = out};
    stk_status status = rule->infer(&call);
    if (status != STK_OK) return stk_fail_prefix(status, "%s: ", rule->name);
    node.n_out = call.n_out;
    return append_node(graph, &node, out);
}

stk_value stk_graph_add(stk_graph *graph, stk_op op, const stk_attrs *attrs, const stk_value *in, int n_in)
{
    if (!graph || graph->status != STK_OK) return stk_value_none(graph);
    if (stk_graph_keep_error(graph, add_node(graph, op, attrs, in, n_in)) != STK_OK) return stk_value_none(graph);
    return stk_value_of(graph, graph->node[graph->n_nodes - 1].first_out);
}

stk_attrs stk_attrs_zero(void)
{
    stk_attrs attrs;
    memset(&attrs, 0, sizeof(attrs)); /* Padding too, since attributes are compared as bytes. */
    return attrs;
}

stk_attrs stk_accumulate_tree(int64_t n_parts, int64_t rows)
{
    stk_attrs attrs = stk_attrs_zero();
    for (int64_t n = n_parts; n > 1; n /= 2)
        attrs.accumulate.log2_parts++;
    attrs.accumulate.rows = rows;
    return attrs;
}

/* The op's own part. What lies behind a shape's last dimension and between its members is left to chance. */
enum { OWN_PART = offsetof(stk_attrs, leaf) };

bool stk_attrs_equal(const stk_attrs *a, const stk_attrs *b)
{
    return a->dtype == b->dtype && a->activation == b->activation && a->tf32 == b->tf32 &&
           stk_shape_equal(a->shape, b->shape) &&
           !memcmp((const char *)a + OWN_PART, (const char *)b + OWN_PART, sizeof(*a) - OWN_PART);
}

uint64_t stk_attrs_hash(const stk_attrs *attrs, uint64_t seed)
{
    seed += (uint64_t)attrs->dtype + ((uint64_t)attrs->activation << 8) + ((uint64_t)attrs->tf32 << 16);
    uint64_t h = stk_hash64((const char *)attrs + OWN_PART, sizeof(*attrs) - OWN_PART, seed);
    return stk_hash64(attrs->shape.dim, (size_t)attrs->shape.rank * sizeof(*attrs->shape.dim), h);
}

/* --- leaves by name --- */

static stk_name_table *names_of(stk_graph *graph, stk_op leaf)
{
    return &graph->leaf[leaf == STK_OP_variable];
}

void stk_graph_forget_names(stk_graph *graph)
{
    stk_name_table_free(&graph->leaf[0]);
    stk_name_table_free(&graph->leaf[1]);
    stk_name_table_free(&graph->scopes);
    graph->n_listed = 0;
}

/* "a.b" and "a" of "a.b.weight". Where one is listed, those before it are, too. */
static stk_status list_scopes(stk_graph *graph, const char *name)
{
    stk_text text = {0};
    stk_status status = STK_OK;
    stk_text_add(&text, "%s", name);
    STK_TRY(stk_text_status(&text));
    for (char *dot = text.n ? strrchr(text.data, '.') : NULL; dot; dot = strrchr(text.data, '.')) {
        *dot = 0;
        if (stk_name_table_find(&graph->scopes, text.data) >= 0) break;
        const char *scope = stk_arena_text(graph->arena, text.data);
        STK_TRY(scope ? stk_name_table_add(&graph->scopes, scope, 0) : stk_fail_memory(text.n));
    }
done:
    stk_text_free(&text);
    return status;
}

/* Up to the last node: others than add_leaf add some, too. */
static stk_status list_names(stk_graph *graph)
{
    for (; graph->n_listed < graph->n_nodes; graph->n_listed++) {
        const stk_node *node = &graph->node[graph->n_listed];
        if (!node->name || (node->op != STK_OP_input && node->op != STK_OP_variable)) continue;
        STK_RETURN_IF_ERROR(stk_name_table_add(names_of(graph, node->op), node->name, graph->n_listed));
        if (node->op == STK_OP_variable) STK_RETURN_IF_ERROR(list_scopes(graph, node->name));
    }
    return STK_OK;
}

stk_status stk_graph_new_scope(stk_graph *graph, const char *name, const char **out)
{
    stk_text text = {0};
    stk_status status;
    STK_TRY(list_names(graph));
    int32_t *n_taken = stk_name_table_get(&graph->scopes, name);
    stk_text_add(&text, "%s", name);
    for (int32_t i = n_taken ? *n_taken + 1 : 0; n_taken && !text.failed; i++) {
        text.n = 0;
        stk_text_add(&text, "%s_%d", name, i);
        if (text.failed || stk_name_table_find(&graph->scopes, text.data) < 0) break;
        *n_taken = i;
    }
    STK_TRY(stk_text_status(&text));
    *out = stk_arena_text(graph->arena, text.data);
    if (!*out) status = stk_fail_memory(text.n);
done:
    stk_text_free(&text);
    return status;
}

static stk_status check_new(stk_graph *graph, stk_op op, const char *name)
{
    if (!name) return STK_OK;
    STK_RETURN_IF_ERROR(list_names(graph));
    if (stk_name_table_find(names_of(graph, op), name) < 0) return STK_OK;
    return stk_fail(STK_INVALID, "%s '%s' exists already", stk_op_name(op), name);
}

static stk_value add_leaf(stk_graph *graph, stk_op op, const char *name, const stk_attrs *attrs)
{
    if (!graph || graph->status != STK_OK) return stk_value_none(graph);
    if (stk_graph_keep_error(graph, check_new(graph, op, name)) != STK_OK) return stk_value_none(graph);
    char *copy = name ? stk_arena_text(graph->arena, name) : NULL;
    if (name && !copy) {
        stk_graph_keep_error(graph, stk_fail_memory(strlen(name)));
        return stk_value_none(graph);
    }
    stk_value x = stk_graph_add(graph, op, attrs, NULL, 0);
    if (x.id >= 0) graph->node[graph->n_nodes - 1].name = copy;
    return x;
}

stk_value stk_graph_input(stk_graph *graph, const char *name, stk_dtype dtype, stk_shape shape)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.dtype = dtype;
    attrs.shape = shape;
    return add_leaf(graph, STK_OP_input, name, &attrs);
}

stk_value stk_graph_variable(stk_graph *graph, const char *name, stk_dtype dtype, stk_shape shape, stk_init init,
                             bool trainable)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.dtype = dtype;
    attrs.shape = shape;
    attrs.leaf.init.kind = init.kind;
    attrs.leaf.init.a = init.a;
    attrs.leaf.trainable = trainable;
    return add_leaf(graph, STK_OP_variable, name, &attrs);
}

static stk_node *variable_node(stk_value x)
{
    stk_node *node = x.graph && x.id >= 0 ? &x.graph->node[x.graph->value[x.id].node] : NULL;
    return node && node->op == STK_OP_variable ? node : NULL;
}

void stk_graph_set_content(stk_value variable, const void *content)
{
    stk_node *node = variable_node(variable);
    if (node) node->attrs.leaf.content = content;
}

void stk_graph_freeze(stk_value variable)
{
    stk_node *node = variable_node(variable);
    if (node) node->attrs.leaf.trainable = false;
}

stk_status stk_graph_hold(stk_graph *graph, void *thing, void (*free_thing)(void *thing))
{
    stk_held *held = graph->status == STK_OK ? stk_arena_alloc(graph->arena, sizeof(*held)) : NULL;
    if (!held) return graph->status == STK_OK ? stk_fail_memory(sizeof(*held)) : graph->status;
    *held = (stk_held){graph->held, free_thing, thing};
    graph->held = held;
    return STK_OK;
}

void stk_f32_push(stk_graph *graph)
{
    if (graph && graph->status == STK_OK) graph->n_keep_f32++;
}

void stk_f32_pop(stk_graph *graph)
{
    if (!graph || graph->status != STK_OK) return;
    if (graph->n_keep_f32 == 0)
        stk_graph_keep_error(graph, stk_fail(STK_INVALID, "stk_f32_pop without a stk_f32_push"));
    else
        graph->n_keep_f32--;
}

stk_value stk_graph_constant(stk_graph *graph, stk_dtype dtype, stk_shape shape, double value)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.dtype = dtype;
    attrs.shape = shape;
    attrs.constant.value = value;
    return add_leaf(graph, STK_OP_constant, NULL, &attrs);
}

static void add_root(stk_graph *graph, const char *name, int32_t variable, stk_value x)
{
    if (!graph || graph->status != STK_OK) return;
    stk_status status = STK_OK;
    char *copy = NULL;
    if (!is_valid(x) || x.graph != graph)
        STK_TRY(
            stk_fail(STK_INVALID, "%s '%s' is no value of this graph", name ? "output" : "update", name ? name : ""));
    if (name && stk_graph_find_output(graph, name).id >= 0)
        STK_TRY(stk_fail(STK_INVALID, "output '%s' exists already", name));
    if (name && !(copy = stk_arena_text(graph->arena, name))) STK_TRY(stk_fail_memory(strlen(name)));
    STK_TRY(reserve((void **)&graph->root, graph->n_roots, &graph->root_capacity, sizeof(*graph->root)));
    graph->root[graph->n_roots++] = (stk_graph_root){copy, x.id, variable};
done:
    stk_graph_keep_error(graph, status);
}

void stk_graph_output(stk_graph *graph, const char *name, stk_value x)
{
    add_root(graph, name ? name : "", -1, x);
}

void stk_graph_update(stk_graph *graph, stk_value variable, stk_value x)
{
    if (!graph || graph->status != STK_OK) return;
    const stk_node *node = stk_value_node(variable);
    stk_tensor_desc want, have;
    stk_status status = STK_OK;
    if (!node || node->op != STK_OP_variable) STK_TRY(stk_fail(STK_INVALID, "only variables can be updated"));
    if (!is_valid(x)) STK_TRY(stk_fail(STK_INVALID, "the update of '%s' is no value", node->name));
    want = graph->value[variable.id].desc;
    have = graph->value[x.id].desc;
    if (want.dtype != have.dtype || !stk_shape_equal(want.shape, have.shape)) {
        char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
        STK_TRY(stk_fail(STK_INVALID, "variable '%s' is %s and cannot become %s", node->name, stk_desc_text(want, a),
                         stk_desc_text(have, b)));
    }
    for (int i = 0; i < graph->n_roots; i++)
        if (graph->root[i].variable == variable.id)
            STK_TRY(stk_fail(STK_INVALID, "variable '%s' is updated twice", node->name));
    add_root(graph, NULL, variable.id, x);
done:
    stk_graph_keep_error(graph, status);
}

stk_value stk_graph_find(const stk_graph *graph, stk_op leaf, const char *name)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op == leaf && node->name && !strcmp(node->name, name))
            return (stk_value){(stk_graph *)graph, node->first_out};
    }
    return (stk_value){(stk_graph *)graph, -1};
}

stk_value stk_graph_find_output(const stk_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_roots; i++)
        if (graph->root[i].name && !strcmp(graph->root[i].name, name))
            return (stk_value){(stk_graph *)graph, graph->root[i].value};
    return (stk_value){(stk_graph *)graph, -1};
}

stk_op_call stk_graph_call(const stk_graph *graph, int32_t i_node, stk_tensor_desc *in, stk_tensor_desc *out)
{
    const stk_node *node = &graph->node[i_node];
    for (int i = 0; i < node->n_in; i++)
        in[i] = graph->value[node->in[i]].desc;
    for (int i = 0; i < node->n_out; i++)
        out[i] = graph->value[node->first_out + i].desc;
    return (stk_op_call){node->op, &node->attrs, node->n_in, node->n_out, in, out};
}

static void bind_batch(stk_shape *shape, int64_t batch)
{
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] == STK_ANY) shape->dim[i] = batch;
}

/* The open side of a reshape is what is left, which is not the batch where others were folded into it. */
static void bind_rest(stk_shape x, stk_shape *to)
{
    int64_t n = 1, count = stk_shape_count(x);
    for (int i = 0; i < to->rank; i++)
        if (to->dim[i] != STK_ANY) n *= to->dim[i];
    if (n > 0) bind_batch(to, count / n);
}

/* The types of a node's outputs where the batch is known: those of a leaf are bound, all others follow. */
static stk_status bind_node(stk_graph *copy, stk_node *node, int64_t batch, stk_tensor_desc *out)
{
    const stk_op_rule *rule = stk_op_get_rule(node->op);
    if (node->n_in == 0 || batch == STK_ANY) {
        bind_batch(&node->attrs.shape, batch);
        for (int i = 0; i < node->n_out; i++)
            bind_batch(&out[i].shape, batch);
        return STK_OK;
    }
    stk_tensor_desc *in = stk_arena_alloc(copy->arena, (size_t)node->n_in * sizeof(*in));
    if (!in) return stk_fail_memory((size_t)node->n_in * sizeof(*in));
    for (int i = 0; i < node->n_in; i++)
        in[i] = copy->value[node->in[i]].desc;
    if (node->op == STK_OP_reshape)
        bind_rest(in[0].shape, &node->attrs.shape);
    else
        bind_batch(&node->attrs.shape, batch);
    stk_op_call call = {node->op, &node->attrs, node->n_in, node->n_out, in, out};
    stk_status status = rule->infer(&call);
    return status == STK_OK ? STK_OK
                            : stk_fail_prefix(status, "%s, in batches of %lld: ", rule->name, (long long)batch);
}

/* Copies what a node points at into the new graph's arena. */
static stk_status own_node(stk_graph *copy, stk_node *node)
{
    int32_t *in = stk_arena_alloc(copy->arena, (size_t)(node->n_in + 1) * sizeof(*in));
    if (!in) return stk_fail_memory((size_t)node->n_in * sizeof(*in));
    memcpy(in, node->in, (size_t)node->n_in * sizeof(*in));
    node->in = in;
    if (node->name && !(node->name = stk_arena_text(copy->arena, node->name))) return stk_fail_memory(64);
    if (node->op == STK_OP_fused) {
        node->attrs.fused.program = stk_fused_copy(copy->arena, node->attrs.fused.program);
        if (!node->attrs.fused.program) return stk_fail_memory(sizeof(stk_fused));
    }
    return STK_OK;
}

stk_graph *stk_graph_clone(const stk_graph *graph, int64_t batch)
{
    stk_graph *copy = stk_graph_new();
    stk_status status = STK_OK;
    if (copy == &no_memory_graph) return copy;
    if (graph->status != STK_OK) {
        copy->status = graph->status;
        memcpy(copy->error, graph->error, sizeof(copy->error));
        return copy;
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        stk_tensor_desc out[STK_MOST_OUTPUTS];
        stk_node node = graph->node[i];
        for (int j = 0; j < node.n_out; j++)
            out[j] = graph->value[node.first_out + j].desc;
        STK_TRY(own_node(copy, &node));
        STK_TRY(bind_node(copy, &node, batch, out));
        STK_TRY(append_node(copy, &node, out));
        for (int j = 0; j < node.n_out; j++)
            copy->value[node.first_out + j].device = graph->value[node.first_out + j].device;
    }
    for (int i = 0; i < graph->n_roots; i++) {
        const stk_graph_root *root = &graph->root[i];
        STK_TRY(reserve((void **)&copy->root, copy->n_roots, &copy->root_capacity, sizeof(*copy->root)));
        char *name = root->name ? stk_arena_text(copy->arena, root->name) : NULL;
        copy->root[copy->n_roots++] = (stk_graph_root){name, root->value, root->variable};
        if (root->name && !name) STK_TRY(stk_fail_memory(64));
    }
done:
    stk_graph_keep_error(copy, status);
    return copy;
}
