#include "optim/no_decay.h"

#include <string.h>

/* True where the variable is the scale or the bias of a normalisation: any input but x of such a node. */
static bool belongs_to_norm(const stk_graph *graph, int32_t variable)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_batch_norm && node->op != STK_OP_layer_norm && node->op != STK_OP_group_norm) continue;
        for (int j = 1; j < node->n_in; j++)
            if (node->in[j] == variable) return true;
    }
    return false;
}

bool stk_no_decay_matches(const stk_graph *graph, int32_t variable, const char *parts)
{
    const char *name = graph->node[graph->value[variable].node].name;
    for (const char *part = parts; part && *part;) {
        part += strspn(part, " ,");
        size_t n = strcspn(part, ",");
        const char *next = part + n;
        while (n > 0 && part[n - 1] == ' ')
            n--;
        if (n > 0 && memmem(name, strlen(name), part, n)) return true;
        if (n == 4 && !memcmp(part, "norm", 4) && belongs_to_norm(graph, variable)) return true;
        part = next;
    }
    return false;
}
