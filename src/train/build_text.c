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

bool stk_build_is_text(const char *kind)
{
    return !strcmp(kind, "tokens");
}

stk_status stk_build_text(const stk_yaml_node *source, stk_dataset **out)
{
    return build_tokens(source, out);
}
