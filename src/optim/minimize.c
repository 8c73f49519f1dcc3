/* An optimiser's part of a graph that is run by hand. See stoker/graph/session.h. */
#include <string.h>

#include "base/error.h"
#include "graph/query.h"
#include "optim/update.h"
#include "stoker/graph/session.h"

void stk_minimize(stk_value loss, stk_optimizer optimizer, double clip_norm, const char *only)
{
    stk_graph *graph = loss.graph;
    /* The first that matches counts, so that the second freezes what is not named. */
    const stk_param_group groups[] = {{.match = only, .lr_factor = 1, .weight_decay = -1},
                                      {.match = "*", .lr_factor = 1, .frozen = true}};
    stk_optim_options options = {.optimizer = optimizer, .clip_norm = clip_norm, .groups = groups};
    if (!graph || stk_graph_status(graph) != STK_OK) return;
    options.n_groups = only ? 2 : 0;
    if (stk_graph_find(graph, STK_OP_input, "lr").id >= 0) {
        (void)stk_graph_keep_error(graph, stk_fail(STK_INVALID, "the graph is minimised twice: make a graph for each "
                                                                "optimiser, with the same names of variables"));
        return;
    }
    if (stk_optim_build(graph, loss, &options) != STK_OK) return;
    /* The session begins with it. */
    stk_value lr = stk_graph_find(graph, STK_OP_input, "lr");
    graph->node[graph->value[lr.id].node].attrs.leaf.init = (stk_init){STK_INIT_CONSTANT, optimizer.lr};
}
