/* See kept.h. A file: magic, the hash of what follows, and that. */
#include "device/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/new_file.h"

static const char magic[] = "stoker program 1\n";

static bool find_path(const char *own, const char *name, char *folder, char *path, size_t n)
{
    char cache[1024];
    if (stk_cache_folder(cache, sizeof(cache)) != STK_OK) return false;
    return (size_t)snprintf(folder, n, "%s/%s", cache, own) < n && (size_t)snprintf(path, n, "%s/%s", folder, name) < n;
}

bool stk_kept_read(const char *own, const char *name, void **bytes, size_t *n, bool *damaged)
{
    char folder[1200], path[1200];
    uint8_t *file = NULL;
    uint64_t hash;
    size_t capacity = 0, n_file = 0;
    const size_t head = sizeof(magic) - 1 + sizeof(hash);
    *bytes = NULL;
    bool is_there =
        find_path(own, name, folder, path, sizeof(path)) && stk_file_read(path, &file, &capacity, &n_file) == STK_OK;
    if (is_there && n_file > head && !memcmp(file, magic, sizeof(magic) - 1)) {
        memcpy(&hash, file + sizeof(magic) - 1, sizeof(hash));
        *n = n_file - head;
        if (hash == stk_hash64(file + head, *n, 0)) *bytes = malloc(*n);
        if (*bytes) memcpy(*bytes, file + head, *n);
    }
    free(file);
    if (damaged) *damaged = is_there && !*bytes;
    return *bytes != NULL;
}

bool stk_kept_write(const char *own, const char *name, const void *bytes, size_t n)
{
    stk_new_file file = {.fd = -1};
    char folder[1200], path[1200];
    bool kept = false;
    if (!find_path(own, name, folder, path, sizeof(path)) || stk_dir_make(folder) != STK_OK) return false;
    uint64_t hash = stk_hash64(bytes, n, 0);
    if (stk_new_file_may_replace(path, magic, sizeof(magic) - 1) && stk_new_file_begin(&file, path) == STK_OK) {
        if (stk_write_all(file.fd, path, magic, sizeof(magic) - 1) == STK_OK &&
            stk_write_all(file.fd, path, &hash, sizeof(hash)) == STK_OK &&
            stk_write_all(file.fd, path, bytes, n) == STK_OK)
            kept = stk_new_file_finish(&file, false) == STK_OK;
        stk_new_file_end(&file);
    }
    return kept;
}
