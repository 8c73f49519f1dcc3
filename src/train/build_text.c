/* A part's source of text from its keys. See train/build.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "stoker/text.h"
#include "train/build.h"

static int64_t get_int(const stk_yaml_node *node, const char *key)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child ? child->integer : 0;
}

static stk_status build_tokens(const stk_yaml_node *source, stk_dataset **out)
{
    const char **paths, *dtype = stk_yaml_get(source, "dtype")->text;
    int n_paths;
    stk_tokens_config config = {.length = get_int(source, "length"),
                                .stride = get_int(source, "stride"),
                                .vocabulary = get_int(source, "vocabulary")};
    config.type = !strcmp(dtype, "u16") ? STK_TOKENS_U16 : !strcmp(dtype, "u32") ? STK_TOKENS_U32 : STK_TOKENS_AUTO;
    STK_RETURN_IF_ERROR(stk_build_list(stk_yaml_get(source, "files"), &paths, &n_paths));
    *out = stk_dataset_tokens(paths, n_paths, &config);
    free(paths);
    return STK_OK;
}

static stk_status build_lines(const stk_yaml_node *source, stk_dataset **out)
{
    const char **paths;
    int n_paths;
    stk_text_config config = {.whole = !strcmp(stk_yaml_get(source, "record")->text, "file"),
                              .by_folder = stk_yaml_get(source, "by") != NULL,
                              .skip = get_int(source, "skip"),
                              .in_memory = stk_yaml_get(source, "in_memory")->truth};
    STK_RETURN_IF_ERROR(stk_build_list(stk_yaml_get(source, "files"), &paths, &n_paths));
    *out = stk_dataset_text(paths, n_paths, &config);
    free(paths);
    return STK_OK;
}

bool stk_build_is_text(const char *kind)
{
    return !strcmp(kind, "tokens") || !strcmp(kind, "text");
}

stk_status stk_build_text(const stk_yaml_node *source, stk_dataset **out)
{
    return !strcmp(source->key, "tokens") ? build_tokens(source, out) : build_lines(source, out);
}

stk_status stk_build_tokenize(const stk_yaml_node *settings, stk_stage **out)
{
    const stk_yaml_node *path = stk_yaml_get(settings, "tokenizer"), *length = stk_yaml_get(settings, "length"),
                        *pad = stk_yaml_get(settings, "pad"), *pad_id = stk_yaml_get(settings, "pad_id");
    stk_tokenizer_config opening = {.lowercase = stk_yaml_get(settings, "lowercase")->truth};
    stk_tokenize_config config = stk_tokenize_config_default();
    stk_tokenizer *tokenizer;
    stk_status status = stk_tokenizer_open(path->text, &opening, &tokenizer);
    if (status != STK_OK) return stk_build_fail(path, status);
    config.length = length ? length->integer : 0;
    config.pad = pad ? pad->truth : length != NULL;
    config.special = stk_yaml_get(settings, "special")->truth;
    if (pad_id) config.pad_id = (int32_t)pad_id->integer;
    *out = stk_tokenize(tokenizer, &config);
    stk_tokenizer_free(tokenizer);
    return STK_OK;
}
