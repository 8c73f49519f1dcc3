/* See common/side_file.h. An index file is
 *
 *     "stkidx1\n"   u64 kind   u64 the file's bytes   i64 its stamp   u64 n   n bytes   u64 XXH64 of all before
 */
#include "data/common/side_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/little.h"
#include "base/new_file.h"
#include <stdatomic.h>

enum { HEADER_BYTES = 40, FRAME_BYTES = HEADER_BYTES + 8 };
static const char magic[8] = "stkidx1\n";

/* --- places --- */

/* folder/hash-name.suffix */
static stk_status make_cache_path(const stk_input *file, uint64_t key, const char *suffix, char *out, size_t out_bytes)
{
    char folder[PATH_MAX], whole[PATH_MAX];
    STK_RETURN_IF_ERROR(stk_cache_folder(folder, sizeof(folder)));
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    if (!realpath(file->path, whole)) snprintf(whole, sizeof(whole), "%s", file->path);
    uint64_t hash = stk_hash64(whole, strlen(whole), key);
    int n = snprintf(out, out_bytes, "%s/%016llx-%.100s%s", folder, (unsigned long long)hash, name, suffix);
    return n < (int)out_bytes ? STK_OK : stk_fail(STK_INVALID, "the path of the cache folder is too long");
}

stk_status stk_cache_path(const stk_input *file, const char *suffix, char *out, size_t out_bytes)
{
    char folder[PATH_MAX];
    uint64_t state[2] = {file->n_bytes, (uint64_t)stk_input_stamp(file)};
    STK_RETURN_IF_ERROR(stk_cache_folder(folder, sizeof(folder)));
    STK_RETURN_IF_ERROR(stk_dir_make(folder));
    return make_cache_path(file, stk_hash64(state, sizeof(state), 1), suffix, out, out_bytes);
}

/* The two places of an index: next to the file, and in the cache folder, "" where there is none. */
static void find_places(const stk_input *file, char places[2][PATH_MAX])
{
    int n = snprintf(places[0], PATH_MAX, "%s%s", file->path, STK_INDEX_SUFFIX);
    if (n >= PATH_MAX || file->backend) places[0][0] = 0; /* nothing is written next to remote files */
    if (make_cache_path(file, 0, STK_INDEX_SUFFIX, places[1], PATH_MAX) != STK_OK) places[1][0] = 0;
}

/* --- reading and writing --- */

bool stk_index_parse(stk_span bytes, stk_index_kind kind, uint64_t file_bytes, int64_t file_stamp, stk_span *payload)
{
    const uint8_t *p = bytes.data;
    if (bytes.n < FRAME_BYTES || memcmp(p, magic, sizeof(magic))) return false;
    if (stk_little64(p + 8) != (uint64_t)kind || stk_little64(p + 16) != file_bytes ||
        (int64_t)stk_little64(p + 24) != file_stamp)
        return false;
    if (stk_little64(p + 32) != bytes.n - FRAME_BYTES) return false;
    if (stk_little64(p + bytes.n - 8) != stk_hash64(p, bytes.n - 8, 0)) return false;
    *payload = (stk_span){p + HEADER_BYTES, bytes.n - FRAME_BYTES};
    return true;
}

stk_status stk_index_read(const stk_input *file, stk_index_kind kind, uint8_t **payload, size_t *n, bool *stale)
{
    char places[2][PATH_MAX];
    *payload = NULL;
    *n = 0;
    *stale = false;
    if (!file->path) return STK_OK; /* memory */
    find_places(file, places);
    for (int i = 0; i < 2; i++) {
        uint8_t *bytes = NULL;
        size_t capacity = 0, n_bytes;
        stk_span found;
        if (!places[i][0] || !stk_path_exists(places[i])) continue;
        stk_status status = stk_file_read(places[i], &bytes, &capacity, &n_bytes);
        if (status == STK_OK &&
            stk_index_parse((stk_span){bytes, n_bytes}, kind, file->n_bytes, stk_input_stamp(file), &found)) {
            memmove(bytes, found.data, found.n);
            *payload = bytes;
            *n = found.n;
            *stale = false;
            return STK_OK;
        }
        free(bytes);
        if (status == STK_NO_MEMORY) return status;
        *stale = true;
    }
    return STK_OK;
}

void stk_index_write(const stk_input *file, stk_index_kind kind, const void *payload, size_t n)
{
    char places[2][PATH_MAX];
    uint8_t *bytes = file->path && stk_keeps_data() ? malloc(FRAME_BYTES + n) : NULL;
    if (!bytes) return;
    memcpy(bytes, magic, sizeof(magic));
    stk_put_little64(bytes + 8, (uint64_t)kind);
    stk_put_little64(bytes + 16, file->n_bytes);
    stk_put_little64(bytes + 24, (uint64_t)stk_input_stamp(file));
    stk_put_little64(bytes + 32, n);
    if (n) memcpy(bytes + HEADER_BYTES, payload, n);
    stk_put_little64(bytes + HEADER_BYTES + n, stk_hash64(bytes, HEADER_BYTES + n, 0));
    find_places(file, places);
    stk_status status = STK_IO;
    /* What somebody else has under that name stays. */
    if (places[0][0] && stk_new_file_may_replace(places[0], magic, sizeof(magic)))
        status = stk_file_write_durably(places[0], bytes, FRAME_BYTES + n);
    if (status != STK_OK && places[1][0]) {
        char folder[PATH_MAX];
        if (stk_cache_folder(folder, sizeof(folder)) == STK_OK && stk_dir_make(folder) == STK_OK)
            (void)stk_file_write_durably(places[1], bytes, FRAME_BYTES + n);
    }
    free(bytes);
}

static atomic_bool keeps_nothing;

void stk_keep_data(bool keep)
{
    atomic_store(&keeps_nothing, !keep);
}

bool stk_keeps_data(void)
{
    return !atomic_load(&keeps_nothing);
}
