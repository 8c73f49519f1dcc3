/* Writing index files of entry points; see source/entries.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/little.h"
#include "base/new_file.h"
#include "data/source/entries.h"

static void put_file(uint8_t *p, const stk_entries_file *file, uint64_t first, uint32_t name_at)
{
    stk_put_little64(p, file->n_bytes);
    stk_put_little64(p + 8, (uint64_t)file->times.mtime_ns);
    stk_put_little64(p + 16, first);
    stk_put_little64(p + 24, file->n_entries | (uint64_t)name_at << 32);
    stk_put_little64(p + 32, (uint64_t)file->times.ctime_ns);
    stk_put_little64(p + 40, file->content);
}

static void put_entry(uint8_t *p, const stk_jpeg_entry *e)
{
    uint64_t rest = e->bit;
    for (int c = 0; c < 3; c++)
        rest |= (uint64_t)(uint16_t)e->dc[c] << (16 * (c + 1));
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(e->offset >> (8 * i));
    stk_put_little64(p + 4, rest);
}

stk_status stk_entries_print(const stk_entries_file *files, int64_t n, uint8_t **out, size_t *n_bytes)
{
    uint64_t n_names = 0, n_entries = 0;
    *out = NULL;
    for (int64_t i = 0; i < n; i++) {
        n_names += strlen(files[i].name) + 1;
        n_entries += files[i].n_entries;
    }
    if (n_names > UINT32_MAX) return stk_fail(STK_UNSUPPORTED, "the names of files need more than 4 GiB");
    *n_bytes =
        STK_ENTRIES_HEADER + (size_t)n * STK_ENTRIES_FILE + n_names + n_entries * STK_ENTRIES_ENTRY + STK_ENTRIES_SUM;
    uint8_t *bytes = *out = malloc(*n_bytes);
    if (!bytes) return stk_fail_memory(*n_bytes);
    memcpy(bytes, STK_ENTRIES_MAGIC, 8);
    stk_put_little64(bytes + 8, (uint64_t)n);
    stk_put_little64(bytes + 16, n_names);
    stk_put_little64(bytes + 24, n_entries);
    uint8_t *table = bytes + STK_ENTRIES_HEADER, *names = table + n * STK_ENTRIES_FILE, *entry = names + n_names,
            *name = names;
    uint64_t first = 0;
    for (int64_t i = 0; i < n; i++) {
        put_file(table + i * STK_ENTRIES_FILE, &files[i], first, (uint32_t)(name - names));
        name = memcpy(name, files[i].name, strlen(files[i].name) + 1);
        name += strlen(files[i].name) + 1;
        first += files[i].n_entries;
        for (uint32_t k = 0; k < files[i].n_entries; k++, entry += STK_ENTRIES_ENTRY)
            put_entry(entry, &files[i].entry[k]);
    }
    stk_put_little64(entry, stk_hash64(bytes, *n_bytes - STK_ENTRIES_SUM, 0));
    return STK_OK;
}

static stk_status write_to(const char *path, const uint8_t *bytes, size_t n)
{
    char folder[STK_ENTRIES_PATH];
    size_t n_folder = (size_t)(strrchr(path, '/') - path);
    memcpy(folder, path, n_folder);
    folder[n_folder] = 0;
    if (!stk_new_file_may_replace(path, STK_ENTRIES_MAGIC, STK_ENTRIES_KIND_BYTES))
        return stk_fail(STK_BUSY, "'%s' is there and is no index of Stoker's; move it away", path);
    STK_RETURN_IF_ERROR(stk_dir_make(folder));
    return stk_file_write_durably(path, bytes, n);
}

stk_status stk_entries_save(const char *folder, const stk_entries_file *files, int64_t n, char path[STK_ENTRIES_PATH],
                            int64_t *n_bytes)
{
    char places[2][STK_ENTRIES_PATH];
    uint8_t *bytes;
    size_t size;
    STK_RETURN_IF_ERROR(stk_entries_print(files, n, &bytes, &size));
    stk_entries_places(folder, places);
    stk_status status = STK_IO;
    for (int i = 0; i < 2 && status != STK_OK; i++) {
        if (!places[i][0]) continue;
        status = write_to(places[i], bytes, size);
        if (status != STK_OK) continue;
        *n_bytes = (int64_t)size;
        memcpy(path, places[i], STK_ENTRIES_PATH);
    }
    free(bytes);
    return status;
}
