/* A pack as a source: its shards, read by the source for their kind, with the classes of the folder that they were made
 * of and the entry points that lie next to them. See stoker/data/pack.h. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/remote/http.h"
#include "data/remote/objects.h"
#include "data/remote/remote.h"
#include "data/remote/store.h"
#include "data/source/entries.h"
#include "data/source/manifest.h"
#include "data/source/paths.h"
#include "data/source/reader.h"
#include "data/source/records.h"

typedef struct pack_shard {
    int64_t i_end;  /* one past its last record */
    uint8_t *bytes; /* [capacity] of the file of entries */
    size_t capacity;
    stk_entries entries; /* of its records in their order */
} pack_shard;

typedef struct pack_source {
    stk_source base;
    stk_source *inner; /* owned */
    stk_pack_manifest manifest;
    pack_shard *shard; /* [manifest.n_shards] */
} pack_source;

bool stk_is_pack(const char *folder)
{
    char path[4096];
    stk_http_file file;
    if (stk_path_join(path, sizeof(path), folder, STK_PACK_MANIFEST) != STK_OK) return false;
    if (!stk_is_remote(folder)) return stk_path_exists(path);
    if (stk_objects_is_pattern(folder) || stk_is_image_name(strrchr(folder, '/') + 1)) return false;
    /* Of the folders of web servers packs are the only ones that can be read, since such a server does not list its
     * files; and what is wrong with a store is said best where the pack is opened. */
    return stk_store_of(folder) == STK_STORE_NONE || stk_http_stat(path, &file) != STK_NOT_FOUND;
}

/* --- reading --- */

static stk_jpeg_hint find_entries(const pack_source *s, int64_t i_record, stk_span encoded)
{
    stk_jpeg_hint hint = {0};
    int64_t low = 0, high = s->manifest.n_shards - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (i_record < s->shard[middle].i_end)
            high = middle;
        else
            low = middle + 1;
    }
    const pack_shard *shard = &s->shard[low];
    if (shard->entries.n_files == 0) return hint;
    int64_t i = i_record - (shard->i_end - shard->entries.n_files);
    enum { IN_THIS_PROCESS = 1 }; /* instead of a file's time: hashed once, when it is first read */
    stk_entries_give_at(&shard->entries, i, encoded, IN_THIS_PROCESS, &hint);
    return hint;
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const pack_source *s = (const pack_source *)source;
    STK_RETURN_IF_ERROR(s->inner->class->read(s->inner, i_record, scratch, item));
    scratch[0].jpeg = find_entries(s, i_record, (stk_span){item[0].data, item[0].n_bytes});
    return STK_OK;
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    const stk_source *inner = ((const pack_source *)source)->inner;
    inner->class->name_record(inner, i_record, out, out_bytes);
}

static void prefetch(const stk_source *source, int64_t i_record)
{
    const stk_source *inner = ((const pack_source *)source)->inner;
    if (inner->class->prefetch) inner->class->prefetch(inner, i_record);
}

static bool fetch(const stk_source *source, int64_t i_record)
{
    const stk_source *inner = ((const pack_source *)source)->inner;
    return !inner->class->fetch || inner->class->fetch(inner, i_record);
}

static int64_t file_of(const stk_source *source, int64_t i_record)
{
    const stk_source *inner = ((const pack_source *)source)->inner;
    return inner->class->file_of(inner, i_record);
}

static size_t held_bytes(const stk_source *source)
{
    const pack_source *s = (const pack_source *)source;
    size_t n = stk_source_held_bytes(s->inner);
    for (int64_t i = 0; i < s->manifest.n_shards; i++)
        n += 2 * s->shard[i].capacity; /* the file, and entries that take about as much */
    return n;
}

static void drop_entries(stk_source *source)
{
    pack_source *s = (pack_source *)source;
    for (int64_t i = 0; s->shard && i < s->manifest.n_shards; i++) {
        stk_entries_close(&s->shard[i].entries);
        free(s->shard[i].bytes);
        s->shard[i].bytes = NULL;
    }
}

static void close_source(stk_source *source)
{
    pack_source *s = (pack_source *)source;
    if (s->inner) s->inner->class->close(s->inner);
    drop_entries(source);
    free(s->shard);
    stk_pack_manifest_free(&s->manifest);
    free(s);
}

static const stk_source_class class_pack = {.name = "pack",
                                            .read = read_record,
                                            .name_record = name_record,
                                            .close = close_source,
                                            .prefetch = prefetch,
                                            .fetch = fetch,
                                            .file_of = file_of,
                                            .drop_entries = drop_entries,
                                            .held_bytes = held_bytes};

/* --- opening --- */

static stk_status open_inner(pack_source *s, const char *folder)
{
    const stk_pack_manifest *m = &s->manifest;
    stk_names shards = {0};
    size_t capacity = 0;
    char path[4096];
    stk_status status = STK_OK;
    int n_fields = m->has_labels ? 2 : 1;
    for (int64_t i = 0; i < m->n_shards; i++) {
        STK_TRY(stk_path_join(path, sizeof(path), folder, m->shard[i].file));
        STK_TRY(stk_names_add(&shards, &capacity, path));
    }
    const char *const *names = (const char *const *)shards.name;
    const stk_tar_field fields[] = {{"image", "jpg;png;webp"}, {"label", "cls"}};
    const stk_feature features[] = {{.name = "image", .encoded = true}, {.name = "label", .dtype = STK_I32}};
    status = m->is_tfrecord ? stk_source_open_tfrecord(names, (int)shards.n, features, n_fields, false, &s->inner)
                            : stk_source_open_tar(names, (int)shards.n, fields, n_fields, &s->inner);
    STK_TRY(status);
    if (s->inner->n_records != m->n_records)
        status =
            stk_fail(STK_CORRUPT, "pack '%s' holds %lld records where '%s' says %lld; stoker pack --verify says more",
                     folder, (long long)s->inner->n_records, STK_PACK_MANIFEST, (long long)m->n_records);
done:
    stk_names_free(&shards);
    return status;
}

/* Entries that are damaged are not used, and the note says so. */
static stk_status open_entries(pack_source *s, const char *folder)
{
    int64_t i_end = 0;
    s->shard = calloc((size_t)s->manifest.n_shards, sizeof(*s->shard));
    if (!s->shard) return stk_fail_memory((size_t)s->manifest.n_shards * sizeof(*s->shard));
    for (int64_t i = 0; i < s->manifest.n_shards; i++) {
        const stk_pack_shard *said = &s->manifest.shard[i];
        pack_shard *shard = &s->shard[i];
        char path[4096];
        size_t n;
        shard->i_end = i_end += said->n_records;
        if (!said->entries) continue;
        STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, said->entries));
        stk_status status = stk_read_input(path, &shard->bytes, &shard->capacity, &n);
        if (status == STK_OK) status = stk_entries_parse((stk_span){shard->bytes, n}, &shard->entries);
        if (status == STK_NO_MEMORY) return status;
        if (status == STK_OK && shard->entries.n_files == said->n_records) continue;
        stk_entries_close(&shard->entries);
        snprintf(s->base.note, sizeof(s->base.note),
                 "'%.160s' is not there or damaged: the pack is read without it, and slower", path);
    }
    return STK_OK;
}

static stk_status read_manifest(const char *folder, stk_pack_manifest *manifest)
{
    stk_status status = stk_pack_manifest_read(folder, STK_PACK_MANIFEST, manifest);
    if (status != STK_NOT_FOUND || !stk_is_remote(folder) || stk_store_of(folder) != STK_STORE_NONE) return status;
    char missing[512];
    snprintf(missing, sizeof(missing), "%s", stk_error_text());
    return stk_fail(status,
                    "%s; of web servers only packs are read, as other folders cannot be listed: make one (stoker pack "
                    "FOLDER --out DIR) and serve it, or name the files' addresses in 'files'",
                    missing);
}

stk_status stk_source_open_pack(const char *folder, stk_source **out)
{
    stk_status status;
    *out = NULL;
    pack_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    STK_TRY(read_manifest(folder, &s->manifest));
    if (s->manifest.n_shards == 0) STK_TRY(stk_fail(STK_INVALID, "pack '%s' holds no shard", folder));
    STK_TRY(open_inner(s, folder));
    s->base = *s->inner;
    s->base.class = &class_pack;
    s->base.class_names = (const char *const *)s->manifest.class_name;
    s->base.n_classes = s->manifest.n_classes;
    STK_TRY(open_entries(s, folder));
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}
