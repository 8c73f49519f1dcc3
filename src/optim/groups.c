#include "optim/groups.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { MOST_PATTERN = 256 };

/* The next of comma-separated patterns, without the spaces around it; false: there are no more. */
static bool next_pattern(const char **at, char out[MOST_PATTERN])
{
    *at += strspn(*at, " ,");
    size_t n = strcspn(*at, ","), length = n;
    if (n == 0) return false;
    while (length > 0 && (*at)[length - 1] == ' ')
        length--;
    snprintf(out, MOST_PATTERN, "%.*s", (int)(length < MOST_PATTERN ? length : MOST_PATTERN - 1), *at);
    *at += n;
    return true;
}

/* With *, ? and [a-z], or a whole name, or whole parts at its start: "layer1" matches "layer1.0.conv1.weight". */
static bool matches_one(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    if (strpbrk(pattern, "*?[")) return fnmatch(pattern, name, 0) == 0;
    return !strncmp(pattern, name, n) && (name[n] == 0 || name[n] == '.');
}

static bool matches(const char *patterns, const char *name)
{
    char pattern[MOST_PATTERN];
    for (const char *at = patterns ? patterns : ""; next_pattern(&at, pattern);)
        if (matches_one(pattern, name)) return true;
    return false;
}

const stk_param_group *stk_group_of(const stk_param_group *groups, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (matches(groups[i].match, name)) return &groups[i];
    return NULL;
}

static bool matches_any(const stk_graph *graph, const char *pattern)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op == STK_OP_variable && node->attrs.leaf.trainable && matches_one(pattern, node->name)) return true;
    }
    return false;
}

stk_status stk_groups_check(const stk_graph *graph, const stk_param_group *groups, int n)
{
    char pattern[MOST_PATTERN];
    for (int i = 0; i < n; i++) {
        if (!(groups[i].lr_factor >= 0 && groups[i].lr_factor < 1e30))
            return stk_fail(STK_INVALID, "the factor of a group's learning rate is %g, and must be 0 or more",
                            groups[i].lr_factor);
        if (!(groups[i].until_epochs >= 0 && groups[i].until_epochs < 1e12))
            return stk_fail(STK_INVALID, "a group's 'until' is %g epochs, and must be 0 or more",
                            groups[i].until_epochs);
        for (const char *at = groups[i].match ? groups[i].match : ""; next_pattern(&at, pattern);)
            if (!matches_any(graph, pattern))
                return stk_fail(STK_NOT_FOUND, "no parameter matches '%s' (%s); 'stoker models NAME' lists them",
                                pattern, groups[i].frozen ? "freeze" : "groups");
    }
    return STK_OK;
}

void stk_groups_freeze_norms(stk_graph *graph, const stk_param_group *groups, int n)
{
    for (int i = 0; n > 0 && i < graph->n_nodes; i++) {
        stk_node *node = &graph->node[i];
        if (node->op != STK_OP_batch_norm) continue;
        const stk_node *scale = &graph->node[graph->value[node->in[1]].node];
        const stk_param_group *group = scale->name ? stk_group_of(groups, n, scale->name) : NULL;
        if (group && group->frozen) node->attrs.batch_norm.frozen = true;
    }
}
