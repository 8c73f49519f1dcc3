/* See join_parts.h. */
#include "passes/join_parts.h"

#include <string.h>

enum { MOST_PARTS = 8 };

static const stk_node *maker_of(const stk_graph *graph, int32_t value)
{
    return &graph->node[graph->value[value].node];
}

/* Adds the slice_grads that `value` is a sum of to part[n]; how many there are then, or -1 where it is another sum. */
static int list_parts(const stk_graph *graph, int32_t value, const stk_node **part, int n, int depth)
{
    const stk_node *node = maker_of(graph, value);
    bool is_sum = node->op == STK_OP_binary && node->attrs.element.kind == STK_BINARY_add;
    if (node->barrier || n < 0 || n == MOST_PARTS || depth == MOST_PARTS) return -1;
    if (node->op == STK_OP_slice_grad) {
        part[n] = node;
        return n + 1;
    }
    if (!is_sum) return -1;
    n = list_parts(graph, node->in[0], part, n, depth + 1);
    return list_parts(graph, node->in[1], part, n, depth + 1);
}

/* Whether the slice takes all of that axis. */
static bool is_whole(const stk_node *part, int axis)
{
    const stk_attrs *a = &part->attrs;
    int64_t size = a->shape.dim[axis], stop = a->slice.stop[axis];
    return a->slice.start[axis] == 0 && a->slice.step[axis] == 1 && (stop == INT64_MAX || (size >= 0 && stop >= size));
}

/* The one axis along which the first part is cut, or -1. */
static int find_axis(const stk_node *part)
{
    int axis = -1;
    for (int i = 0; i < part->attrs.shape.rank; i++) {
        if (is_whole(part, i)) continue;
        if (axis >= 0) return -1;
        axis = i;
    }
    return axis;
}

static void sort_parts(const stk_node **part, int n, int axis)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && part[k]->attrs.slice.start[axis] < part[k - 1]->attrs.slice.start[axis]; k--) {
            const stk_node *swap = part[k];
            part[k] = part[k - 1];
            part[k - 1] = swap;
        }
}

/* Whether sorted parts lie one after the other from the axis' start to its end, whole along all others. */
static bool make_up_the_whole(const stk_graph *graph, const stk_node *const *part, int n, int axis)
{
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < part[i]->attrs.shape.rank; k++)
            if (k != axis && !is_whole(part[i], k)) return false;
        if (part[i]->attrs.slice.start[axis] != at || part[i]->attrs.slice.step[axis] != 1) return false;
        at += graph->value[part[i]->in[0]].desc.shape.dim[axis];
    }
    return at == part[0]->attrs.shape.dim[axis];
}

void stk_join_parts(stk_graph *graph, stk_node *node)
{
    const stk_node *part[MOST_PARTS];
    if (node->op != STK_OP_binary || node->attrs.element.kind != STK_BINARY_add || node->barrier) return;
    int n = list_parts(graph, node->in[0], part, 0, 1);
    n = list_parts(graph, node->in[1], part, n, 1);
    if (n < 2) return;
    int axis = find_axis(part[0]);
    if (axis < 0) return;
    sort_parts(part, n, axis);
    if (!make_up_the_whole(graph, part, n, axis)) return;
    int32_t *in = stk_arena_alloc(graph->arena, (size_t)n * sizeof(*in));
    if (!in) return;
    for (int i = 0; i < n; i++)
        in[i] = part[i]->in[0];
    node->op = STK_OP_concat;
    node->attrs = stk_attrs_zero();
    node->attrs.concat.axis = axis;
    node->in = in;
    node->n_in = n;
}
