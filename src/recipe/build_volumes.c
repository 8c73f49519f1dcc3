/* The source `volumes` of a recipe. See recipe/build.h and stoker/data/volumes.h. */
#include "stoker/data/volumes.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "recipe/build.h"
#include "tensor/shape.h"

enum { MOST_FIELDS = 64 };

static stk_status read_window(const stk_yaml_node *source, int64_t out[3])
{
    const stk_yaml_node *window = stk_yaml_get(source, "window");
    int n = 0;
    if (!window) return STK_OK;
    if (window->n_children != 3) return stk_yaml_fail(window, "a window has three sides: [z, y, x]");
    for (const stk_yaml_node *side = window->child; side; side = side->next)
        out[n++] = side->integer;
    return STK_OK;
}

stk_status stk_build_volumes(const stk_yaml_node *source, stk_dataset **out)
{
    const stk_yaml_node *named = stk_yaml_get(source, "fields");
    stk_volume_field fields[MOST_FIELDS];
    const char **paths[MOST_FIELDS] = {NULL};
    stk_volumes_config config = {.fields = fields,
                                 .windows = stk_yaml_is(source, "windows", "random")   ? STK_WINDOWS_RANDOM
                                            : stk_yaml_is(source, "windows", "middle") ? STK_WINDOWS_MIDDLE
                                                                                       : STK_WINDOWS_GRID,
                                 .n_windows = stk_yaml_get(source, "per_volume")->integer,
                                 .canonical = stk_yaml_is(source, "orientation", "ras")};
    stk_status status;
    if (named->n_children > MOST_FIELDS) return stk_yaml_fail(named, "more than %d fields", MOST_FIELDS);
    STK_TRY(read_window(source, config.window));
    for (const stk_yaml_node *field = named->child; field; field = field->next) {
        stk_volume_field *f = &fields[config.n_fields];
        *f = (stk_volume_field){.name = field->key};
        stk_dtype_from_name(stk_yaml_get(field, "dtype")->text, &f->dtype);
        STK_TRY(stk_build_list(stk_yaml_get(field, "files"), &paths[config.n_fields], &f->n_paths));
        f->paths = paths[config.n_fields++];
    }
    *out = stk_dataset_volumes(&config);
done:
    for (int i = 0; i < MOST_FIELDS; i++)
        free(paths[i]);
    return status;
}
