/* A recipe from memory: the tree, which must print to an equal one, and then the typed recipe. What stands after a
 * byte 0x1E, of which there may be several, is given as --set is.
 *
 * covers: settings/yaml.c settings/schema.c settings/schema_scalar.c recipe/recipe.c
 */
#include <stdlib.h>
#include <string.h>

#include "recipe/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_tree(const uint8_t *data, size_t size)
{
    stk_yaml *yaml, *again;
    stk_text first = {0}, second = {0};
    if (stk_yaml_parse("recipe.yaml", data, size, &yaml) != STK_OK) return;
    stk_yaml_print(yaml->root, &first);
    if (stk_text_status(&first) != STK_OK) abort();
    if (stk_yaml_parse("printed", stk_text_get(&first), first.n, &again) != STK_OK) abort();
    stk_yaml_print(again->root, &second);
    if (strcmp(stk_text_get(&first), stk_text_get(&second))) abort();
    stk_text_free(&first);
    stk_text_free(&second);
    stk_yaml_free(yaml);
    stk_yaml_free(again);
}

static void try_recipe(const uint8_t *data, size_t size, const char *const *set, int n_set)
{
    stk_recipe *recipe;
    stk_text text = {0};
    if (stk_recipe_parse("recipe.yaml", data, size, set, n_set, &recipe) != STK_OK) return;
    stk_recipe_print(recipe, &text);
    stk_recipe_free(recipe);
    /* The recipe in full is a recipe. */
    if (stk_recipe_parse("full", stk_text_get(&text), text.n, NULL, 0, &recipe) != STK_OK) abort();
    stk_recipe_free(recipe);
    stk_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 8, SEPARATOR = 0x1E };
    const char *set[MOST];
    int n_set = 0;
    char *copy = malloc(size + 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    copy[size] = 0;
    char *end = memchr(copy, SEPARATOR, size);
    size_t n_recipe = end ? (size_t)(end - copy) : size;
    try_tree((const uint8_t *)copy, n_recipe);
    for (; end && n_set < MOST; end = strchr(end, SEPARATOR)) {
        *end++ = 0;
        set[n_set++] = end;
    }
    try_recipe((const uint8_t *)copy, n_recipe, set, n_set);
    free(copy);
    return 0;
}
