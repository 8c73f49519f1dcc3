/* See neighbour.h. */
#include "base/neighbour.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

bool stk_path_neighbour(const char *path, char *out, size_t out_bytes)
{
    char folder[4096];
    stk_names names;
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path, *nearest = NULL;
    size_t n = slash ? (size_t)(slash - path) : 0, least = strlen(last) / 3 + 1;
    if (n >= sizeof(folder)) return false;
    memcpy(folder, path, n);
    folder[n] = 0;
    if (stk_dir_list(n ? folder : slash ? "/" : ".", &names) != STK_OK) return false;
    for (size_t i = 0; i < names.n; i++) {
        size_t distance = stk_edit_distance(last, names.name[i]);
        if (distance == 0 || distance >= least) continue;
        least = distance;
        nearest = names.name[i];
    }
    int length = nearest ? snprintf(out, out_bytes, "%s%s%s", folder, slash ? "/" : "", nearest) : -1;
    stk_names_free(&names);
    return length > 0 && (size_t)length < out_bytes;
}

const char *stk_path_hint(const char *path, char out[STK_PATH_HINT])
{
    char name[STK_PATH_HINT - 32];
    out[0] = 0;
    if (stk_path_neighbour(path, name, sizeof(name))) snprintf(out, STK_PATH_HINT, " (did you mean '%s'?)", name);
    return out;
}
