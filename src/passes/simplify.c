/* Simplify: fold constants, drop operations that do nothing, and merge equal nodes. Dead nodes go with the rewriting.
 *
 * One walk in order, each node seen with its inputs already simplified:
 *   fold    constants through unary, binary, cast, broadcast, reshape and transpose
 *   drop    x + 0, x - 0, x * 1, x / 1, casts and reshapes and broadcasts to the same type, transposes of nothing,
 *           casts to a wider float and back
 *   join    a + scatter_add(...) into one scatter_add; gradients of slices that make up the whole into a concat
 *   merge   a node equal to an earlier one in op, attributes and inputs (common subexpressions; barriers excepted)
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "passes/join_parts.h"
#include "passes/passes.h"

typedef struct simplifier {
    stk_graph *graph;
    int32_t *replace;
    int32_t n_replace; /* room of replace */
    int32_t *table;    /* hash table of node numbers + 1 */
    uint32_t table_size;
} simplifier;

static bool constant_of(const simplifier *s, int32_t value, double *out)
{
    const stk_node *node = &s->graph->node[s->graph->value[value].node];
    if (node->op != STK_OP_constant) return false;
    *out = node->attrs.constant.value;
    return true;
}

static bool fold_unary(int kind, double x, double *out)
{
    switch (kind) {
    case STK_UNARY_neg: *out = -x; return true;
    case STK_UNARY_abs: *out = fabs(x); return true;
    case STK_UNARY_square: *out = x * x; return true;
    case STK_UNARY_sqrt: *out = sqrt(x); return true;
    case STK_UNARY_rsqrt: *out = 1 / sqrt(x); return true;
    case STK_UNARY_reciprocal: *out = 1 / x; return true;
    case STK_UNARY_relu: *out = x > 0 ? x : 0; return true;
    default: return false;
    }
}

static bool fold_binary(int kind, double a, double b, double *out)
{
    switch (kind) {
    case STK_BINARY_add: *out = a + b; return true;
    case STK_BINARY_sub: *out = a - b; return true;
    case STK_BINARY_mul: *out = a * b; return true;
    case STK_BINARY_div: *out = a / b; return b != 0;
    default: return false;
    }
}

/* True when the node is a constant; *value tells which. Integers are left alone: their arithmetic wraps and rounds. */
static bool fold(const simplifier *s, const stk_node *node, double *value)
{
    double a, b;
    stk_dtype dtype = s->graph->value[node->first_out].desc.dtype;
    if (node->n_in < 1 || !constant_of(s, node->in[0], &a)) return false;
    switch (node->op) {
    case STK_OP_broadcast:
    case STK_OP_reshape:
    case STK_OP_transpose: *value = a; return true;
    case STK_OP_cast:
        *value = a;
        return stk_dtype_is_float(dtype) && stk_dtype_is_float(s->graph->value[node->in[0]].desc.dtype);
    case STK_OP_unary: return stk_dtype_is_float(dtype) && fold_unary(node->attrs.element.kind, a, value);
    case STK_OP_binary:
        return stk_dtype_is_float(dtype) && constant_of(s, node->in[1], &b) &&
               fold_binary(node->attrs.element.kind, a, b, value);
    default: return false;
    }
}

static bool same_type(const stk_graph *graph, int32_t a, int32_t b)
{
    return graph->value[a].desc.dtype == graph->value[b].desc.dtype &&
           stk_shape_equal(graph->value[a].desc.shape, graph->value[b].desc.shape);
}

/* What a cast of x to the dtype that it has stands for, directly or after a cast to a wider one; or -1. */
static int32_t uncast(const stk_graph *graph, const stk_node *cast)
{
    int32_t x = cast->in[0], from;
    if (same_type(graph, x, cast->first_out)) return x;
    const stk_node *inner = &graph->node[graph->value[x].node];
    if (inner->op != STK_OP_cast || inner->barrier) return -1;
    from = inner->in[0];
    bool is_float = stk_dtype_is_float(graph->value[x].desc.dtype) && stk_dtype_is_float(graph->value[from].desc.dtype);
    bool widens = stk_dtype_bytes(graph->value[x].desc.dtype) > stk_dtype_bytes(graph->value[from].desc.dtype);
    return is_float && widens && same_type(graph, from, cast->first_out) ? from : -1;
}

/* The input that node merely passes on, or -1. */
static int32_t passed_on(const simplifier *s, const stk_node *node)
{
    const stk_graph *graph = s->graph;
    double c;
    switch (node->op) {
    case STK_OP_cast: return uncast(graph, node);
    case STK_OP_reshape:
    case STK_OP_broadcast: return same_type(graph, node->in[0], node->first_out) ? node->in[0] : -1;
    case STK_OP_transpose:
        for (int i = 0; i < graph->value[node->first_out].desc.shape.rank; i++)
            if (node->attrs.permutation[i] != i) return -1;
        return node->in[0];
    case STK_OP_reduce:
        return same_type(graph, node->in[0], node->first_out) && node->attrs.reduce.axes == 0 ? node->in[0] : -1;
    case STK_OP_dropout: return node->attrs.dropout.rate == 0 ? node->in[0] : -1;
    case STK_OP_binary: {
        int kind = node->attrs.element.kind;
        bool right = constant_of(s, node->in[1], &c);
        if (right && c == 0 && (kind == STK_BINARY_add || kind == STK_BINARY_sub)) return node->in[0];
        if (right && c == 1 && (kind == STK_BINARY_mul || kind == STK_BINARY_div)) return node->in[0];
        bool left = constant_of(s, node->in[0], &c);
        if (left && c == 0 && kind == STK_BINARY_add) return node->in[1];
        if (left && c == 1 && kind == STK_BINARY_mul) return node->in[1];
        return -1;
    }
    default: return -1;
    }
}

static uint64_t hash_node(const stk_node *node)
{
    uint64_t h = stk_attrs_hash(&node->attrs, (uint64_t)node->op);
    return stk_hash64(node->in, (size_t)node->n_in * sizeof(*node->in), h);
}

static bool equal_nodes(const stk_node *a, const stk_node *b)
{
    return a->op == b->op && a->n_in == b->n_in && stk_attrs_equal(&a->attrs, &b->attrs) &&
           !memcmp(a->in, b->in, (size_t)a->n_in * sizeof(*a->in));
}

/* The earlier node that equals node i, or -1 after entering node i. */
static int32_t find_equal(simplifier *s, int32_t i)
{
    const stk_node *node = &s->graph->node[i];
    if (node->op == STK_OP_input || node->op == STK_OP_variable || node->barrier) return -1;
    uint32_t slot = (uint32_t)hash_node(node) & (s->table_size - 1);
    for (; s->table[slot]; slot = (slot + 1) & (s->table_size - 1))
        if (equal_nodes(&s->graph->node[s->table[slot] - 1], node)) return s->table[slot] - 1;
    s->table[slot] = i + 1;
    return -1;
}

/* a + scatter_add(dy, ids) becomes scatter_add(dy, ids, a): a tied embedding's gradient then needs no zeros of its own
 * and no sweep to be added, since scatter_add works in place. */
static void scatter_onto(simplifier *s, stk_node *node)
{
    if (node->op != STK_OP_binary || node->attrs.element.kind != STK_BINARY_add) return;
    for (int k = 0; k < 2; k++) {
        const stk_node *maker = &s->graph->node[s->graph->value[node->in[k]].node];
        if (maker->op != STK_OP_scatter_add || maker->n_in != 2 || maker->barrier) continue;
        int32_t *in = stk_arena_alloc(s->graph->arena, 3 * sizeof(*in));
        if (!in) return; /* It stays as it is. */
        in[0] = maker->in[0];
        in[1] = maker->in[1];
        in[2] = node->in[1 - k];
        node->op = STK_OP_scatter_add;
        node->attrs = maker->attrs;
        node->in = in;
        node->n_in = 3;
        return;
    }
}

static void simplify_node(simplifier *s, int32_t i)
{
    stk_graph *graph = s->graph;
    stk_node *node = &graph->node[i];
    double value;
    for (int j = 0; j < node->n_in; j++)
        node->in[j] = s->replace[node->in[j]];
    if (fold(s, node, &value)) {
        stk_attrs attrs = stk_attrs_zero();
        attrs.dtype = graph->value[node->first_out].desc.dtype;
        attrs.shape = graph->value[node->first_out].desc.shape;
        attrs.constant.value = value;
        node->op = STK_OP_constant;
        node->attrs = attrs;
        node->n_in = 0;
    }
    scatter_onto(s, node);
    stk_join_parts(graph, node);
    int32_t input = passed_on(s, node);
    if (input >= 0) {
        s->replace[node->first_out] = input;
        return;
    }
    int32_t equal = find_equal(s, i);
    for (int j = 0; equal >= 0 && j < node->n_out; j++)
        s->replace[node->first_out + j] = graph->node[equal].first_out + j;
}

stk_status pass_simplify(stk_graph *graph, const stk_pass_options *options)
{
    (void)options;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    simplifier s = {.graph = graph, .replace = stk_pass_identity(graph, 0), .table_size = 64};
    while (s.table_size < 4 * (uint32_t)graph->n_nodes)
        s.table_size *= 2;
    s.table = calloc(s.table_size, sizeof(*s.table));
    if (!s.replace || !s.table) STK_TRY(stk_fail_memory(s.table_size * sizeof(*s.table)));
    for (int32_t i = 0; i < graph->n_nodes; i++)
        simplify_node(&s, i);
    STK_TRY(stk_graph_rewrite(graph, s.replace));
done:
    free(s.replace);
    free(s.table);
    return status;
}
