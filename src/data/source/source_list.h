/* Every kind of source that a recipe can name, once, in the order of docs/recipe.md: its file's descriptor is
 * stk_source_kind_<name>. See docs/adding-a-source.md. Those made of whole data sets are in recipe/build_combined.c.
 */
#ifndef STK_DATA_SOURCE_SOURCE_LIST_H
#define STK_DATA_SOURCE_SOURCE_LIST_H

#include "data/source/source.h"
#include "settings/schema.h"

typedef struct stk_source_kind {
    stk_key key; /* its name, what a recipe can say of it, and what it is */
    /* The source that the settings under that key say, which have been checked against it, and whose paths are found.
     * Errors begin with their place: stk_yaml_fail, and stk_yaml_locate for what the data say. */
    stk_status (*open)(const stk_yaml_node *settings, stk_source **out);
    /* Optional: whether all samples of a class stand together, where there are classes. */
    bool (*is_by_class)(const stk_yaml_node *settings);
    /* Optional, of token numbers: what they are below; 0: not known. */
    stk_status (*vocabulary)(const stk_yaml_node *settings, int64_t *out);
    /* Optional, of token numbers: the path of the tokenizer that made them, returned; NULL: nothing tells. */
    stk_status (*tokenizer)(const stk_yaml_node *settings, char **out);
} stk_source_kind;

#define STK_SOURCE_LIST(X)                                                                                             \
    X(images)                                                                                                          \
    X(idx)                                                                                                             \
    X(files)                                                                                                           \
    X(pairs)                                                                                                           \
    X(volumes)                                                                                                         \
    X(video)                                                                                                           \
    X(npy)                                                                                                             \
    X(tfrecord)                                                                                                        \
    X(tar)                                                                                                             \
    X(csv)                                                                                                             \
    X(text)                                                                                                            \
    X(tokens)                                                                                                          \
    X(synthetic)

#define X(kind) extern const stk_source_kind stk_source_kind_##kind;
STK_SOURCE_LIST(X)
#undef X

/* NULL when there is none of that name. */
const stk_source_kind *stk_source_kind_find(const char *name);

#endif
