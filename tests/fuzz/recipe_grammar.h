/* Random recipes that mostly can be trained: synthetic samples, a model that takes them, a loss that fits, and whatever
 * else the schema has (stk_recipe_key), walked as a grammar. Nothing in them names a file. Threads: one at a time.
 */
#ifndef STK_TESTS_FUZZ_RECIPE_GRAMMAR_H
#define STK_TESTS_FUZZ_RECIPE_GRAMMAR_H

#include "base/text.h"
#include "fuzz/draw.h"
#include "settings/yaml.h"

void fuzz_make_recipe(fuzz_draw *draw, stk_text *out);

/* Whether the recipe reads or writes files, or could take long before the first step. */
bool fuzz_recipe_is_bounded(const stk_yaml_node *node);

#endif
