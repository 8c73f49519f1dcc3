/* See data/source/keys.h; and the list of kinds. */
#include "data/source/keys.h"

#include <string.h>

#include "data/source/source_list.h"

const stk_key stk_source_path_key = {.name = "path", .type = STK_KEY_TEXT, .is_path = true};
const stk_key stk_source_side_key = {.name = "side", .type = STK_KEY_INT, .least = 1, .most = 65536};
const char *const stk_source_by_words[] = {"folder", NULL};

stk_status stk_source_read_labels(const stk_yaml_node *settings, stk_labels *out, const char **path)
{
    bool by_folder = stk_yaml_get(settings, "by") != NULL;
    *path = stk_yaml_text(settings, "labels");
    *out = by_folder ? STK_LABELS_BY_FOLDER : *path ? STK_LABELS_FROM_FILE : STK_LABELS_NONE;
    if (by_folder && *path) return stk_yaml_fail(settings, "'by' and 'labels' exclude each other");
    return STK_OK;
}

stk_status stk_source_check_names(const stk_yaml_node *map)
{
    if (map->n_children <= STK_SOURCE_MOST_NAMES) return STK_OK;
    return stk_yaml_fail(map, "'%s' has more than %d fields", map->key, STK_SOURCE_MOST_NAMES);
}

const stk_source_kind *stk_source_kind_find(const char *name)
{
    static const stk_source_kind *const all[] = {
#define X(kind) &stk_source_kind_##kind,
        STK_SOURCE_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!strcmp(all[i]->key.name, name)) return all[i];
    return NULL;
}
