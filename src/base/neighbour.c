/* See neighbour.h. */
#include "base/neighbour.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

enum { MOST_PATH = 4096 };

/* The end of the first part that is not there, or of the last one. */
static const char *find_wrong_end(const char *path, char part[MOST_PATH])
{
    for (const char *end = path + 1;; end++) {
        if (*end && (*end != '/' || end[-1] == '/')) continue;
        memcpy(part, path, (size_t)(end - path));
        part[end - path] = 0;
        if (!*end || !stk_path_exists(part)) return end;
    }
}

/* What stands in the part's place, next to it. */
static bool find_nearest(const char *part, char *out, size_t out_bytes)
{
    char folder[MOST_PATH];
    stk_names names;
    const char *slash = strrchr(part, '/'), *last = slash ? slash + 1 : part, *nearest = NULL;
    size_t n = slash ? (size_t)(slash - part) : 0, least = strlen(last) / 3 + 1;
    memcpy(folder, part, n);
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

bool stk_path_neighbour(const char *path, char *out, size_t out_bytes)
{
    char part[MOST_PATH], next[MOST_PATH];
    size_t n_path = strlen(path);
    if (n_path == 0 || n_path >= sizeof(part)) return false;
    snprintf(next, sizeof(next), "%s", path);
    /* Each turn mends the first part with a slip; there may be several. */
    for (int i_slip = 0; i_slip < 8; i_slip++) {
        const char *end = find_wrong_end(next, part);
        if (!find_nearest(part, out, out_bytes)) return false;
        size_t n = strlen(out), n_rest = strlen(end);
        if (n + n_rest >= out_bytes || n + n_rest >= sizeof(next)) return false;
        memcpy(out + n, end, n_rest + 1);
        if (stk_path_exists(out)) return true;
        memcpy(next, out, n + n_rest + 1);
    }
    return false;
}

const char *stk_path_hint(const char *path, char out[STK_PATH_HINT])
{
    char name[STK_PATH_HINT - 32];
    out[0] = 0;
    if (stk_path_neighbour(path, name, sizeof(name))) snprintf(out, STK_PATH_HINT, " (did you mean '%s'?)", name);
    return out;
}
