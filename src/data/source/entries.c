/* See source/entries.h. An index file is, little-endian,
 *
 *     "stkjpg2\n"   u64 n_files   u64 n_names   u64 n_entries
 *     n_files x { u64 bytes  i64 mtime_ns  u64 first_entry  u32 n_entries  u32 name_at  i64 ctime_ns  u64 content }
 *                 sorted by name
 *     n_names bytes of names, each ended by 0
 *     n_entries x { u32 offset  u16 bit  i16 dc[3] }
 *     u64 XXH64 of all before
 */
#include "data/source/entries.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/little.h"

enum {
    HEADER = STK_ENTRIES_HEADER,
    FILE_BYTES = STK_ENTRIES_FILE,
    ENTRY_BYTES = STK_ENTRIES_ENTRY,
    SUM_BYTES = STK_ENTRIES_SUM
};

static stk_status fail_damaged(void)
{
    return stk_fail(STK_CORRUPT, "not an index of entry points, or a damaged one");
}

/* Every file's name and entries lie inside, and names rise. */
static bool check_files(const stk_entries *e, uint64_t n_names, uint64_t n_entries)
{
    for (int64_t i = 0; i < e->n_files; i++) {
        const uint8_t *p = e->table + i * FILE_BYTES;
        uint64_t first = stk_little64(p + 16), n = stk_little32(p + 24), name_at = stk_little32(p + 28);
        if (name_at >= n_names || first > n_entries || n > n_entries - first) return false;
        if (i > 0 && strcmp(e->names + stk_little32(p - FILE_BYTES + 28), e->names + name_at) >= 0) return false;
    }
    return true;
}

static void copy_entries(const uint8_t *p, uint64_t n, stk_jpeg_entry *out)
{
    for (uint64_t i = 0; i < n; i++, p += ENTRY_BYTES) {
        uint64_t rest = stk_little64(p + 4);
        out[i] = (stk_jpeg_entry){.offset = stk_little32(p), .bit = (uint16_t)rest};
        for (int c = 0; c < 3; c++)
            out[i].dc[c] = (int16_t)(uint16_t)(rest >> (16 * (c + 1)));
    }
}

stk_status stk_entries_parse(stk_span bytes, stk_entries *out)
{
    const uint8_t *p = bytes.data;
    *out = (stk_entries){0};
    if (bytes.n >= 8 && !memcmp(p, "stkjpg1\n", 8))
        return stk_fail(STK_CORRUPT, "an index of an older kind, which says nothing of the files' contents");
    if (bytes.n < HEADER + SUM_BYTES || memcmp(p, STK_ENTRIES_MAGIC, 8)) return fail_damaged();
    uint64_t n_files = stk_little64(p + 8), n_names = stk_little64(p + 16), n_entries = stk_little64(p + 24);
    uint64_t most = bytes.n - HEADER - SUM_BYTES;
    if (n_files > most / FILE_BYTES || n_names > most || n_entries > most / ENTRY_BYTES ||
        n_files * FILE_BYTES + n_names + n_entries * ENTRY_BYTES != most)
        return fail_damaged();
    if (stk_little64(p + bytes.n - SUM_BYTES) != stk_hash64(p, bytes.n - SUM_BYTES, 0)) return fail_damaged();
    out->n_files = (int64_t)n_files;
    out->table = p + HEADER;
    out->names = (const char *)out->table + n_files * FILE_BYTES;
    if (n_files && (n_names == 0 || out->names[n_names - 1] != 0)) return fail_damaged();
    if (!check_files(out, n_names, n_entries)) return fail_damaged();
    out->entry = malloc((n_entries + 1) * sizeof(*out->entry));
    out->fits = malloc((n_files + 1) * sizeof(*out->fits));
    if (!out->entry || !out->fits) {
        free(out->entry);
        free(out->fits);
        *out = (stk_entries){0};
        return stk_fail_memory((n_entries + 1) * sizeof(*out->entry));
    }
    for (int64_t i = 0; i < out->n_files; i++)
        atomic_init(&out->fits[i], stk_entries_get(out, i).times.ctime_ns);
    copy_entries((const uint8_t *)out->names + n_names, n_entries, out->entry);
    return STK_OK;
}

size_t stk_entries_bytes(const stk_entries *entries)
{
    return entries->memory_bytes;
}

stk_entries_file stk_entries_get(const stk_entries *e, int64_t i)
{
    const uint8_t *p = e->table + i * FILE_BYTES;
    return (stk_entries_file){.name = e->names + stk_little32(p + 28),
                              .n_bytes = stk_little64(p),
                              .times = {(int64_t)stk_little64(p + 8), (int64_t)stk_little64(p + 32)},
                              .content = stk_little64(p + 40),
                              .entry = e->entry + stk_little64(p + 16),
                              .n_entries = stk_little32(p + 24)};
}

/* -1: it is not there. */
static int64_t find_number(const stk_entries *e, const char *path)
{
    if (!e->folder || strncmp(path, e->folder, e->n_folder) != 0) return -1;
    const char *name = path + e->n_folder;
    if (*name != '/' && e->folder[e->n_folder - 1] != '/') return -1;
    name += strspn(name, "/");
    for (int64_t low = 0, high = e->n_files; low < high;) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(name, e->names + stk_little32(e->table + middle * FILE_BYTES + 28));
        if (order == 0) return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

bool stk_entries_find(const stk_entries *e, const char *path, stk_entries_file *out)
{
    int64_t i = find_number(e, path);
    if (i >= 0) *out = stk_entries_get(e, i);
    return i >= 0;
}

bool stk_entries_fit(const stk_entries_file *file, stk_span encoded, int64_t ctime_ns)
{
    return file->n_bytes == encoded.n && ((ctime_ns != 0 && ctime_ns == file->times.ctime_ns) ||
                                          file->content == stk_content_hash(encoded.data, encoded.n));
}

void stk_entries_give_at(const stk_entries *e, int64_t i, stk_span encoded, int64_t ctime_ns, stk_jpeg_hint *hint)
{
    stk_entries_file file = stk_entries_get(e, i);
    if (file.n_entries == 0 || file.n_entries > INT_MAX) return;
    file.times.ctime_ns = atomic_load_explicit(&e->fits[i], memory_order_relaxed);
    if (!stk_entries_fit(&file, encoded, ctime_ns)) return;
    if (file.times.ctime_ns != ctime_ns) atomic_store_explicit(&e->fits[i], ctime_ns, memory_order_relaxed);
    hint->entry = file.entry;
    hint->n_entries = (int)file.n_entries;
}

void stk_entries_give(const stk_entries *e, const char *path, stk_span encoded, stk_file_times times,
                      stk_jpeg_hint *hint)
{
    int64_t i = e->folder ? find_number(e, path) : -1;
    if (i < 0 || stk_entries_get(e, i).times.mtime_ns != times.mtime_ns) return;
    stk_entries_give_at(e, i, encoded, times.ctime_ns, hint);
}
