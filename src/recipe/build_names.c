/* What a recipe says of parameters by name, against the parameters that the model has. See recipe/build.h. */
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "optim/groups.h"
#include "recipe/build.h"
#include "train/whiten.h"

/* Each pattern of a list matches a trainable parameter. */
static stk_status check_patterns(const stk_graph *graph, const stk_yaml_node *list, bool is_frozen)
{
    for (const stk_yaml_node *pattern = list ? list->child : NULL; pattern; pattern = pattern->next) {
        stk_param_group group = {.match = pattern->text, .lr_factor = 1, .frozen = is_frozen};
        stk_status status = stk_groups_check(graph, &group, 1);
        if (status != STK_OK) return stk_build_fail(pattern, status);
    }
    return STK_OK;
}

static bool is_in_a_name(const stk_graph *graph, const char *part, size_t n)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op == STK_OP_variable && memmem(node->name, strlen(node->name), part, n)) return true;
    }
    return false;
}

/* Each part of names in `leave`, which may be one text with commas as well, is in the name of a variable. */
static stk_status check_leave(const stk_graph *graph, const stk_yaml_node *list)
{
    for (const stk_yaml_node *item = list ? list->child : NULL; item; item = item->next)
        for (const char *part = item->text; *part;) {
            size_t n = strcspn(part, ",");
            if (n > 0 && !is_in_a_name(graph, part, n))
                return stk_yaml_fail(item, "no parameter has '%.*s' in its name, which is to be left as it is", (int)n,
                                     part);
            part += n + (part[n] == ',');
        }
    return STK_OK;
}

stk_status stk_build_check_names(const stk_recipe *recipe, const stk_model *model)
{
    const stk_graph *graph = stk_model_graph((stk_model *)model);
    const stk_yaml_node *root = recipe->yaml->root, *groups = stk_yaml_get(root, "groups");
    STK_RETURN_IF_ERROR(check_patterns(graph, stk_yaml_get(root, "freeze"), true));
    for (const stk_yaml_node *group = groups ? groups->child : NULL; group; group = group->next)
        STK_RETURN_IF_ERROR(check_patterns(graph, stk_yaml_get(group, "match"), false));
    STK_RETURN_IF_ERROR(check_leave(graph, stk_yaml_get(stk_yaml_get(root, "init"), "leave")));
    stk_status status = stk_whiten_check(graph, &recipe->config.whiten);
    return status == STK_OK ? STK_OK : stk_build_fail(stk_yaml_get(root, "whiten"), status);
}
