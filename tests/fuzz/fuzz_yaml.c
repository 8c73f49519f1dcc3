/* A recipe from memory: the tree, which must print to an equal one, and then the typed recipe. */
#include <stdlib.h>
#include <string.h>

#include "train/recipe.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_recipe *recipe;
    stk_text text = {0};
    try_tree(data, size);
    if (stk_recipe_parse("recipe.yaml", data, size, NULL, 0, &recipe) != STK_OK) return 0;
    stk_recipe_print(recipe, &text);
    stk_recipe_free(recipe);
    /* The recipe in full is a recipe. */
    if (stk_recipe_parse("full", stk_text_get(&text), text.n, NULL, 0, &recipe) != STK_OK) abort();
    stk_recipe_free(recipe);
    stk_text_free(&text);
    return 0;
}
