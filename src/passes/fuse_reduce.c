#include "passes/fuse_reduce.h"

#include "graph/fused.h"

/* Below these limits two kernels are as fast or faster:
 *   LEAST_ROW      what is to be done once for each row, whatever its length, is more than its elements
 *   LEAST_COLUMNS  as many rows must lie side by side before a loop is worth it
 *   MOST_COLUMNS   sums of columns want many rows at once, and these are to stay in a core's own cache
 *   LEAST_BYTES    for columns: less is read a second time out of the caches as fast as within the group
 * So they are for columns of 16 bits, which are half as much to read, and of a value that nothing else reads, which
 * would need memory for those rows in each thread. docs/engine.md has figures.
 */
enum { LEAST_ROW = 32, LEAST_COLUMNS = 32, MOST_COLUMNS = 4096, LEAST_BYTES = 8 << 20 };

static bool is_worth_it(const stk_fused_matrix *m, stk_tensor_desc x, bool is_stored)
{
    if (!m->by_columns) return m->n_columns >= LEAST_ROW || m->n_rows == 1;
    return is_stored && stk_dtype_bytes(x.dtype) > 2 && stk_desc_bytes(x) >= LEAST_BYTES &&
           m->n_columns >= LEAST_COLUMNS && m->n_columns <= MOST_COLUMNS;
}

bool stk_fuse_may_reduce(const stk_graph *graph, const stk_node *node, bool is_stored)
{
    stk_fused_matrix matrix;
    if (node->op != STK_OP_reduce || node->attrs.reduce.kind == STK_REDUCE_PROD) return false;
    stk_tensor_desc x = graph->value[node->in[0]].desc;
    bool is_most = node->attrs.reduce.kind == STK_REDUCE_MAX || node->attrs.reduce.kind == STK_REDUCE_MIN;
    if (!stk_dtype_is_float(x.dtype) || (is_most && (x.dtype == STK_BF16 || x.dtype == STK_F16))) return false;
    return stk_fused_find_matrix(x.shape, node->attrs.reduce.axes, &matrix) && is_worth_it(&matrix, x, is_stored);
}
