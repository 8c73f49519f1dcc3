/* How many rows the embedding of a network of tokens has where the recipe does not say. See recipe/build.h. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/remote/remote.h"
#include "data/source/paths.h"
#include "data/source/text_records.h"
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

/* What lies beside the first of the files; 0: nothing, or it does not say. */
static stk_status ask_note(const char *first, int64_t *out)
{
    char path[PATH_MAX];
    uint8_t *bytes = NULL;
    size_t capacity = 0, n = 0;
    stk_tokens_facts facts = {.vocabulary = 0};
    if (snprintf(path, sizeof(path), "%s.json", first) >= (int)sizeof(path)) return STK_OK;
    stk_status status = stk_read_input_small(path, STK_TOKENS_FACTS_BYTES, &bytes, &capacity, &n);
    if (status == STK_OK) status = stk_tokens_facts_parse((stk_span){bytes, n}, &facts);
    free(bytes);
    *out = facts.vocabulary;
    if (status == STK_NO_MEMORY) return status;
    stk_error_clear(); /* A note that is damaged is an error of the data set, which has read it, too. */
    return STK_OK;
}

static stk_status ask_files(const stk_yaml_node *source, int64_t *out)
{
    const stk_yaml_node *given = stk_yaml_get(source, "vocabulary"), *files = stk_yaml_get(source, "files");
    const char *first = files->child ? files->child->text : files->text;
    stk_names names = {0};
    if (given) {
        *out = given->integer;
        return STK_OK;
    }
    stk_status status = stk_paths_expand(&first, 1, false, &names);
    if (status == STK_OK && names.n > 0) status = ask_note(names.name[0], out);
    stk_names_free(&names);
    return status;
}

static stk_status ask_data(const stk_recipe_part *train, int64_t *out)
{
    const stk_yaml_node *tokenizer = find_tokenizer(train);
    if (tokenizer) return ask_tokenizer(tokenizer, out);
    if (train->source && !strcmp(train->source->key, "tokens")) return ask_files(train->source, out);
    return STK_OK;
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
