/* Scopes: what stands in front of the names of layers. */
#include <string.h>

#include "base/error.h"
#include "nn/layer.h"

static stk_status push(stk_graph *graph, const char *name)
{
    if (!name || !name[0]) return stk_fail(STK_INVALID, "the name of a scope is empty");
    const char *outer = graph->scope ? graph->scope->prefix : "";
    size_t n_outer = strlen(outer), n = strlen(name);
    stk_scope *scope = stk_arena_alloc(graph->arena, sizeof(*scope));
    char *prefix = stk_arena_alloc(graph->arena, n_outer + n + 2);
    if (!scope || !prefix) return stk_fail_memory(n_outer + n + 2);
    memcpy(prefix, outer, n_outer);
    memcpy(prefix + n_outer, name, n);
    prefix[n_outer + n] = '.';
    *scope = (stk_scope){graph->scope, prefix};
    graph->scope = scope;
    return STK_OK;
}

void stk_scope_push(stk_graph *graph, const char *name)
{
    if (graph && graph->status == STK_OK) stk_graph_keep_error(graph, push(graph, name));
}

void stk_scope_pop(stk_graph *graph)
{
    /* After an error pushes did nothing, and pops must not either. */
    if (!graph || graph->status != STK_OK) return;
    if (graph->scope)
        graph->scope = graph->scope->outer;
    else
        stk_graph_keep_error(graph, stk_fail(STK_INVALID, "stk_scope_pop without a stk_scope_push before it"));
}
