/* Wide and deep, for tables: Cheng et al. 2016. */
#include <stdio.h>

#include "nn/layer.h"
#include "stoker/nn/networks.h"

enum { MOST_IDS = 64 };

/* The linear model: a weight for each number that a feature can have, and one for each of the numbers. */
static stk_value build_wide(const stk_value *ids, const int64_t *rows, int n_ids, stk_value numbers, int64_t outputs)
{
    stk_graph *graph = n_ids > 0 ? ids[0].graph : numbers.graph;
    stk_value sum = {graph, -1};
    stk_scope_push(graph, "wide");
    if (numbers.id >= 0) sum = stk_dense(numbers, outputs);
    for (int i = 0; i < n_ids; i++) {
        stk_value one =
            stk_embedding_with(ids[i], &(stk_embedding_config){.rows = rows[i], .width = outputs, .deviation = 1e-3});
        sum = sum.id >= 0 ? stk_add(sum, one) : one;
    }
    stk_scope_pop(graph);
    return sum;
}

static stk_value build_deep(const stk_value *ids, const int64_t *rows, int n_ids, stk_value numbers, int64_t width,
                            const int64_t *hidden, int n_hidden, int64_t outputs)
{
    stk_graph *graph = n_ids > 0 ? ids[0].graph : numbers.graph;
    stk_value part[MOST_IDS + 1];
    int n = 0;
    stk_scope_push(graph, "deep");
    for (int i = 0; i < n_ids; i++)
        part[n++] =
            stk_embedding_with(ids[i], &(stk_embedding_config){.rows = rows[i], .width = width, .deviation = 0.1});
    if (numbers.id >= 0) part[n++] = numbers;
    stk_value x = n > 1 ? stk_concat(part, n, 1) : part[0];
    for (int i = 0; i < n_hidden; i++)
        x = stk_relu(stk_dense(x, hidden[i]));
    x = stk_dense(x, outputs);
    stk_scope_pop(graph);
    return x;
}

stk_value stk_wide_and_deep(const stk_value *ids, const int64_t *rows, int n_ids, stk_value numbers, int64_t width,
                            const int64_t *hidden, int n_hidden, int64_t outputs)
{
    stk_layer layer;
    stk_value x = n_ids > 0 ? ids[0] : numbers;
    if (!stk_layer_begin(&layer, x, "wide_and_deep", NULL)) return stk_value_none(x.graph);
    if (!stk_layer_need_range(&layer, "the number of categories", n_ids, 0, MOST_IDS)) return stk_value_none(x.graph);
    stk_value wide = build_wide(ids, rows, n_ids, numbers, outputs);
    return stk_add(wide, build_deep(ids, rows, n_ids, numbers, width, hidden, n_hidden, outputs));
}
