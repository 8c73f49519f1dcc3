/* Recipes with sizes that nobody means: each is refused at its line, with words that say why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/error.h"
#include "recipe/build.h"

static void check(const char *text, const char *words)
{
    stk_recipe *recipe;
    stk_dataset *train = NULL;
    stk_model *model = NULL;
    if (stk_recipe_parse("recipe.yaml", text, strlen(text), NULL, 0, &recipe) != STK_OK)
        fail_msg("%s", stk_error_text());
    stk_status status = stk_build_dataset(recipe, STK_PART_TRAIN, &train);
    if (status == STK_OK) status = stk_build_model(recipe, train, &model);
    if (status == STK_OK) fail_msg("built: %s", text);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    stk_model_free(model);
    stk_dataset_free(train);
    stk_recipe_free(recipe);
}

/* 23086380 * 429509837 * 5581 is 12 in 64 bits. */
static void reshaped_sides_do_not_wrap_around(void **state)
{
    (void)state;
    check("data: {train: {source: {synthetic: {fields: {x: [12]}, classes: 2, samples: 8}}}}\n"
          "batch: 2\n"
          "model: {layers: [{reshape: [23086380, 429509837, 5581]}, flatten, {dense: 2}]}\n",
          "which these sides do not hold");
    check("data: {train: {source: {synthetic: {fields: {x: [12]}, classes: 2, samples: 8}}}}\n"
          "batch: 2\n"
          "model: {layers: [{reshape: [1000000000, -1, 1000000000, 1000000000]}, flatten, {dense: 2}]}\n",
          "which these sides do not hold");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reshaped_sides_do_not_wrap_around)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
