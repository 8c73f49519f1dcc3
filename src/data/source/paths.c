/* See source/paths.h. */
#include "data/source/paths.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "data/common/side_file.h"
#include "data/remote/http.h"
#include "data/remote/objects.h"
#include "data/remote/store.h"
#include "data/source/braces.h"

bool stk_path_is_pattern(const char *path)
{
    return strpbrk(path, "*?[") && !stk_path_exists(path);
}

bool stk_is_image_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot &&
           (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg") || !strcasecmp(dot, ".png") ||
            !strcasecmp(dot, ".webp"));
}

stk_status stk_names_add(stk_names *names, size_t *capacity, const char *name)
{
    if (names->n == *capacity) {
        size_t grown = 2 * *capacity + 64;
        char **p = realloc(names->name, grown * sizeof(*p));
        if (!p) return stk_fail_memory(grown * sizeof(*p));
        names->name = p;
        *capacity = grown;
    }
    char *copy = strdup(name);
    if (!copy) return stk_fail_memory(strlen(name));
    names->name[names->n++] = copy;
    return STK_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void stk_names_sort(stk_names *names)
{
    if (names->n > 1) qsort(names->name, names->n, sizeof(*names->name), compare);
}

/* Our own indexes match many a pattern of shards. */
static bool is_side_file(const char *path)
{
    size_t n = strlen(path), n_suffix = strlen(STK_INDEX_SUFFIX);
    return n > n_suffix && !strcmp(path + n - n_suffix, STK_INDEX_SUFFIX);
}

static stk_status add_matches(const char *pattern, stk_names *out, size_t *capacity)
{
    glob_t found;
    int result = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (result == GLOB_NOMATCH) return stk_fail(STK_NOT_FOUND, "no file matches '%s'", pattern);
    if (result == GLOB_NOSPACE) return stk_fail(STK_NO_MEMORY, "cannot allocate memory for the names of files");
    if (result != 0) return stk_fail(STK_IO, "cannot read the folders that '%s' names", pattern);
    stk_status status = STK_OK;
    qsort(found.gl_pathv, found.gl_pathc, sizeof(*found.gl_pathv), compare);
    for (size_t i = 0; i < found.gl_pathc && status == STK_OK; i++)
        if (!is_side_file(found.gl_pathv[i])) status = stk_names_add(out, capacity, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

static stk_status add_objects(const char *pattern, stk_names *out, size_t *capacity)
{
    stk_objects found = {0};
    stk_status status = stk_objects_match(pattern, &found);
    for (size_t i = 0; i < found.n && status == STK_OK; i++)
        if (!is_side_file(found.object[i].path)) status = stk_names_add(out, capacity, found.object[i].path);
    stk_objects_free(&found);
    return status;
}

static void remove_repetitions(stk_names *names)
{
    size_t n = 0;
    for (size_t i = 0; i < names->n; i++) {
        if (n > 0 && !strcmp(names->name[n - 1], names->name[i]))
            free(names->name[i]);
        else
            names->name[n++] = names->name[i];
    }
    names->n = n;
}

/* A path, address or pattern, without braces. */
static stk_status add_path(const char *path, stk_names *out, size_t *capacity)
{
    if (stk_store_of(path) != STK_STORE_NONE && stk_objects_is_pattern(path)) return add_objects(path, out, capacity);
    if (!stk_is_remote(path) && stk_path_is_pattern(path)) return add_matches(path, out, capacity);
    return stk_names_add(out, capacity, path);
}

/* Braces stand for themselves in the name of a file that is there. */
static stk_status add_with_braces(const char *path, stk_names *out, size_t *capacity)
{
    stk_names each = {0};
    size_t n_each = 0;
    stk_status status;
    if (!strchr(path, '{') || (!stk_is_remote(path) && stk_path_exists(path))) return add_path(path, out, capacity);
    STK_TRY(stk_braces_expand(path, &each, &n_each));
    for (size_t i = 0; i < each.n; i++)
        STK_TRY(add_path(each.name[i], out, capacity));
done:
    stk_names_free(&each);
    return status;
}

stk_status stk_paths_expand(const char *const *paths, int n_paths, bool sort_all, stk_names *out)
{
    stk_status status = STK_OK;
    size_t capacity = 0;
    *out = (stk_names){0};
    if (n_paths < 1 || !paths) return stk_fail(STK_INVALID, "no path is given");
    for (int i = 0; i < n_paths; i++) {
        if (!paths[i] || !paths[i][0]) STK_TRY(stk_fail(STK_INVALID, "path %d is missing", i));
        STK_TRY(add_with_braces(paths[i], out, &capacity));
    }
    if (sort_all) {
        stk_names_sort(out);
        remove_repetitions(out);
    }
done:
    if (status != STK_OK) {
        stk_names_free(out);
        *out = (stk_names){0};
    }
    return status;
}
