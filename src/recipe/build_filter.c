/* `filter:` of a recipe: the records that a part is made of. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "recipe/build.h"
#include "stoker/data/filter.h"

/* A class by its name, or a whole number. */
static stk_status read_value(const stk_yaml_node *node, const char *const *names, int64_t n_names, int64_t *out)
{
    char *end;
    for (int64_t i = 0; i < n_names; i++)
        if (!strcmp(names[i], node->text)) {
            *out = i;
            return STK_OK;
        }
    *out = strtoll(node->text, &end, 10);
    if (*end == 0 && end != node->text) return STK_OK;
    const char *nearest = n_names ? stk_nearest_name(node->text, names) : NULL;
    if (nearest) return stk_yaml_fail(node, "there is no class '%s'; did you mean '%s'?", node->text, nearest);
    return stk_yaml_fail(node, "'%s' is neither a whole number nor the name of a class", node->text);
}

/* The values of a list, malloc'ed. */
static stk_status read_values(const stk_yaml_node *list, const stk_dataset *dataset, int64_t **out, int *n)
{
    const char *const *classes;
    int64_t n_classes = stk_dataset_classes(dataset, &classes);
    stk_status status = STK_OK;
    *n = list->n_children;
    *out = calloc((size_t)*n + 1, sizeof(**out));
    /* For stk_nearest_name, which wants an end. */
    const char **names = calloc((size_t)n_classes + 1, sizeof(*names));
    if (!*out || !names) STK_TRY(stk_fail_memory((size_t)n_classes * sizeof(*names)));
    if (n_classes) memcpy(names, classes, (size_t)n_classes * sizeof(*names));
    int64_t i = 0;
    for (const stk_yaml_node *node = list->child; node; node = node->next)
        STK_TRY(read_value(node, names, n_classes, &(*out)[i++]));
done:
    free(names);
    return status;
}

static stk_status apply_rule(const stk_yaml_node *node, stk_dataset *dataset)
{
    stk_filter_rule filter = stk_filter_rule_default();
    const stk_yaml_node *keep = stk_yaml_get(node, "keep"), *drop = stk_yaml_get(node, "drop"), *key;
    int64_t *values = NULL;
    stk_status status = STK_OK;
    filter.field = stk_yaml_get(node, "field")->text;
    filter.drop = drop != NULL;
    if (keep && drop) STK_TRY(stk_yaml_fail_key(drop, "'keep' and 'drop' exclude each other"));
    if (keep || drop) STK_TRY(read_values(keep ? keep : drop, dataset, &values, &filter.n_values));
    filter.values = values;
    if ((key = stk_yaml_get(node, "min"))) filter.least = key->real;
    if ((key = stk_yaml_get(node, "max"))) filter.most = key->real;
    if ((key = stk_yaml_get(node, "min_bytes"))) filter.least_bytes = key->integer;
    if ((key = stk_yaml_get(node, "max_bytes"))) filter.most_bytes = key->integer;
    if ((key = stk_yaml_get(node, "min_length"))) filter.least_length = key->integer;
    if ((key = stk_yaml_get(node, "max_length"))) filter.most_length = key->integer;
    stk_dataset_filter_by(dataset, &filter);
    STK_TRY(stk_build_check(node, dataset));
done:
    free(values);
    return status;
}

stk_status stk_build_filter(const stk_yaml_node *filter, stk_dataset *dataset)
{
    for (const stk_yaml_node *node = filter ? filter->child : NULL; node; node = node->next)
        STK_RETURN_IF_ERROR(apply_rule(node, dataset));
    return STK_OK;
}
