/* Where index files of entry points lie, and opening them; see source/entries.h. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"
#include "data/common/side_file.h"
#include "data/source/entries.h"

enum { MOST_CHECKED = 16 };

void stk_entries_places(const char *folder, char places[2][STK_ENTRIES_PATH])
{
    char whole[PATH_MAX], cache[PATH_MAX];
    if (stk_path_join(places[0], STK_ENTRIES_PATH, folder, STK_ENTRIES_NAME) != STK_OK) places[0][0] = 0;
    places[1][0] = 0;
    if (!realpath(folder, whole) || stk_cache_folder(cache, sizeof(cache)) != STK_OK) return;
    int n = snprintf(places[1], STK_ENTRIES_PATH, "%s/%016llx%s", cache,
                     (unsigned long long)stk_hash64(whole, strlen(whole), 0), STK_ENTRIES_NAME);
    if (n >= STK_ENTRIES_PATH) places[1][0] = 0;
}

static stk_status read_index(const char *folder, const char *path, stk_entries *out)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, n;
    stk_status status;
    *out = (stk_entries){0};
    STK_TRY(stk_file_read(path, &bytes, &capacity, &n));
    status = stk_entries_parse((stk_span){bytes, n}, out);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
    out->n_folder = strlen(folder);
    while (out->n_folder > 1 && folder[out->n_folder - 1] == '/')
        out->n_folder--;
    out->folder = strndup(folder, out->n_folder);
    if (!out->folder) STK_TRY(stk_fail_memory(out->n_folder));
    out->bytes = bytes;
    out->memory_bytes = capacity + n / STK_ENTRIES_ENTRY * sizeof(*out->entry);
    out->memory_bytes += (size_t)out->n_files * sizeof(*out->fits);
    return STK_OK;
done:
    free(bytes);
    free(out->entry);
    free(out->fits);
    *out = (stk_entries){0};
    return status;
}

stk_status stk_entries_open(const char *folder, const char *path, stk_entries *out)
{
    char places[2][STK_ENTRIES_PATH];
    stk_status status = STK_OK;
    *out = (stk_entries){0};
    if (path) return read_index(folder, path, out);
    stk_entries_places(folder, places);
    for (int i = 0; i < 2; i++) {
        if (!places[i][0] || !stk_path_exists(places[i])) continue;
        status = read_index(folder, places[i], out);
        if (status == STK_OK || status == STK_NO_MEMORY) return status;
    }
    return status;
}

stk_status stk_entries_use(const char *folder, const char *path, stk_entries *entries)
{
    stk_entries found = {0};
    if (path) STK_RETURN_IF_ERROR(stk_entries_open(folder, path, &found));
    stk_entries_close(entries);
    *entries = found;
    return STK_OK;
}

static bool is_current(const stk_entries *e, int64_t i)
{
    char path[PATH_MAX];
    struct stat info;
    stk_entries_file file = stk_entries_get(e, i);
    if (stk_path_join(path, sizeof(path), e->folder, file.name) != STK_OK || stat(path, &info) != 0) return false;
    return (uint64_t)info.st_size == file.n_bytes &&
           (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec == file.times.mtime_ns;
}

stk_status stk_entries_find_own(const char *folder, stk_entries *entries, char *note, size_t note_bytes)
{
    stk_status status = stk_entries_open(folder, NULL, entries);
    if (status == STK_NO_MEMORY) return status;
    if (status != STK_OK) {
        snprintf(note, note_bytes, "%.180s: it is not used; run 'stoker index' again", stk_error_text());
        return STK_OK;
    }
    int64_t n = entries->n_files < MOST_CHECKED ? entries->n_files : MOST_CHECKED;
    for (int64_t i = 0; i < n; i++) {
        if (is_current(entries, i * (entries->n_files / n))) continue;
        snprintf(note, note_bytes,
                 "the index of '%.120s' is out of date for some files, which are read without: run "
                 "'stoker index' again",
                 folder);
        break;
    }
    return STK_OK;
}

void stk_entries_close(stk_entries *entries)
{
    free(entries->folder);
    free(entries->bytes);
    free(entries->entry);
    free(entries->fits);
    *entries = (stk_entries){0};
}
