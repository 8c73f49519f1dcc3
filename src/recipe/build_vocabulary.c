/* How many rows the embedding of a network of tokens has where the recipe does not say. See recipe/build.h. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "data/source/source_list.h"
#include "nn/model_list.h"
#include "recipe/build.h"
#include "stoker/data/tokenizer.h"

static const stk_yaml_node *find_tokenizer(const stk_recipe_part *part)
{
    if (part->masked) return stk_yaml_get(part->masked, "tokenizer");
    for (const stk_yaml_node *stage = part->stages ? part->stages->child : NULL; stage; stage = stage->next) {
        const stk_yaml_node *tokenize = stk_yaml_get(stage, "tokenize");
        if (tokenize) return stk_yaml_get(tokenize, "tokenizer");
    }
    return NULL;
}

static stk_status ask_tokenizer(const stk_yaml_node *path, int64_t *out)
{
    stk_tokenizer *tokenizer;
    stk_status status = stk_tokenizer_open(path->text, NULL, &tokenizer);
    if (status != STK_OK) return stk_build_fail(path, status);
    *out = stk_tokenizer_vocabulary(tokenizer);
    stk_tokenizer_free(tokenizer);
    return STK_OK;
}

static stk_status ask_data(const stk_recipe_part *train, int64_t *out)
{
    const stk_yaml_node *tokenizer = find_tokenizer(train);
    if (tokenizer) return ask_tokenizer(tokenizer, out);
    const stk_source_kind *kind = train->source ? stk_source_kind_find(train->source->key) : NULL;
    return kind && kind->vocabulary ? kind->vocabulary(train->source, out) : STK_OK;
}

stk_status stk_build_fill_vocabulary(stk_recipe *recipe, bool from_data)
{
    char text[24];
    int64_t n = 0;
    stk_transformer_config config;
    const stk_model_class *class = recipe->model_class;
    if (!class || !class->configure || stk_yaml_get(recipe->model, "vocabulary")) return STK_OK;
    if (from_data) STK_RETURN_IF_ERROR(ask_data(&recipe->part[STK_PART_TRAIN], &n));
    STK_RETURN_IF_ERROR(class->configure(recipe->model, &config));
    if (n < 1 || n > INT32_MAX) n = config.vocabulary;
    snprintf(text, sizeof(text), "%lld", (long long)n);
    stk_yaml_node *node = stk_yaml_add(recipe->yaml, (stk_yaml_node *)recipe->model, "vocabulary", text);
    if (!node) return stk_fail_memory(sizeof(*node));
    node->integer = n;
    return STK_OK;
}
