/* What builders ask of a tree that its schema has checked. See settings/yaml.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "settings/yaml.h"

int stk_yaml_word(const stk_yaml_node *node, const char *key, const char *const *words)
{
    const char *text = stk_yaml_text(node, key);
    for (int i = 0; text && words[i]; i++)
        if (!strcmp(words[i], text)) return i;
    return 0;
}

stk_status stk_yaml_range(const stk_yaml_node *node, const char *key, double out[2])
{
    const stk_yaml_node *list = stk_yaml_get(node, key);
    out[0] = out[1] = 0;
    if (list->n_children != 2) return stk_yaml_fail(list, "'%s' needs two numbers: [least, most]", key);
    out[0] = list->child->real;
    out[1] = list->child->next->real;
    return STK_OK;
}

stk_status stk_yaml_texts(const stk_yaml_node *list, const char ***out, int *n)
{
    *n = 0;
    *out = calloc((size_t)list->n_children + 1, sizeof(**out));
    if (!*out) return stk_fail_memory((size_t)list->n_children * sizeof(**out));
    for (const stk_yaml_node *child = list->child; child; child = child->next)
        (*out)[(*n)++] = child->text;
    return STK_OK;
}

stk_status stk_yaml_locate(const stk_yaml_node *node, stk_status status)
{
    stk_text text = {0};
    if (status == STK_OK) return STK_OK;
    stk_text_add(&text, "%s", stk_error_text());
    stk_yaml_fail(node, "%s", stk_text_get(&text));
    stk_text_free(&text);
    return status;
}
