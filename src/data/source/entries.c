/* See source/entries.h. An index file is, little-endian,
 *
 *     "stkjpg1\n"   u64 n_files   u64 n_names   u64 n_entries
 *     n_files x { u64 bytes  i64 mtime_ns  u64 first_entry  u32 n_entries  u32 name_at }   sorted by name
 *     n_names bytes of names, each ended by 0
 *     n_entries x { u32 offset  u16 bit  i16 dc[3] }
 *     u64 XXH64 of all before
 */
#include "data/source/entries.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "data/codec/little.h"

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
    if (!out->entry) return stk_fail_memory((n_entries + 1) * sizeof(*out->entry));
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
                              .mtime_ns = (int64_t)stk_little64(p + 8),
                              .entry = e->entry + stk_little64(p + 16),
                              .n_entries = stk_little32(p + 24)};
}

bool stk_entries_find(const stk_entries *e, const char *path, stk_entries_file *out)
{
    if (!e->folder || strncmp(path, e->folder, e->n_folder) != 0) return false;
    const char *name = path + e->n_folder;
    if (*name != '/' && e->folder[e->n_folder - 1] != '/') return false;
    name += strspn(name, "/");
    for (int64_t low = 0, high = e->n_files; low < high;) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(name, e->names + stk_little32(e->table + middle * FILE_BYTES + 28));
        if (order == 0) {
            *out = stk_entries_get(e, middle);
            return true;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

void stk_entries_give(const stk_entries *e, const char *path, uint64_t n_bytes, int64_t mtime_ns, stk_jpeg_hint *hint)
{
    stk_entries_file file;
    if (!e->folder || !stk_entries_find(e, path, &file)) return;
    if (file.n_bytes != n_bytes || file.mtime_ns != mtime_ns || file.n_entries > INT_MAX) return;
    hint->entry = file.entry;
    hint->n_entries = (int)file.n_entries;
}
