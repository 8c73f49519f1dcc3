/* What the keys of several sources have in common, and how it is read. */
#ifndef STK_DATA_SOURCE_KEYS_H
#define STK_DATA_SOURCE_KEYS_H

#include "settings/schema.h"
#include "stoker/data/sources.h"

enum { STK_SOURCE_MOST_NAMES = 64 };

extern const stk_key stk_source_path_key; /* an element: a path of data */
#define STK_SOURCE_PATHS(key_name, text)                                                                               \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_LIST, .element = &stk_source_path_key, .one_is_list = true,                  \
        .required = true, .doc = text                                                                                  \
    }
extern const stk_key stk_source_side_key; /* an element: a side of a window or a picture */

/* Where labels come from; the first alone, or both. */
extern const char *const stk_source_by_words[];
#define STK_SOURCE_BY_FOLDER                                                                                           \
    {                                                                                                                  \
        .name = "by", .type = STK_KEY_WORD, .words = stk_source_by_words,                                              \
        .doc = "The label is the name of the folder a file is in."                                                     \
    }
#define STK_SOURCE_LABELS                                                                                              \
    {                                                                                                                  \
        .name = "labels", .type = STK_KEY_TEXT, .is_path = true,                                                       \
        .doc = "A file of lines name<TAB or comma>label; instead of by."                                               \
    }
stk_status stk_source_read_labels(const stk_yaml_node *settings, stk_labels *out, const char **path);

/* Refuses more than STK_SOURCE_MOST_NAMES in a map of names. */
stk_status stk_source_check_names(const stk_yaml_node *map);

#endif
