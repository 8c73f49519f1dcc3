/* See data/cache/row_cache.h. A row is, for each field,
 *
 *     i64 bytes   8 x i64 sides        all in one block, to a multiple of 64
 *
 * and then the fields' bytes, each to a multiple of 64.
 */
#include "data/cache/row_cache.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/common/side_file.h"

enum { FIELD_NUMBERS = 1 + STK_MAX_RANK, ALIGNMENT = 64, FORMAT = 1 };

/* --- the object --- */

stk_status stk_row_cache_new(stk_cache_kind kind, const char *path, stk_row_cache **out)
{
    *out = NULL;
    stk_row_cache *cache = calloc(1, sizeof(*cache));
    if (!cache) return stk_fail_memory(sizeof(*cache));
    stk_status status = stk_mutex_init(&cache->lock);
    if (status != STK_OK) {
        free(cache);
        return status;
    }
    cache->wanted = kind;
    if (path && !(cache->path = strdup(path))) {
        stk_row_cache_free(cache);
        return stk_fail_memory(strlen(path));
    }
    *out = cache;
    return STK_OK;
}

void stk_row_cache_free(stk_row_cache *cache)
{
    if (!cache) return;
    stk_row_store_close(cache->store);
    stk_mutex_destroy(&cache->lock);
    free(cache->path);
    free(cache);
}

/* --- the file --- */

/* What a file of rows depends on, besides the records' own files. */
static stk_status make_key(const stk_row_cache *cache, const stk_source *source, uint64_t *out)
{
    uint64_t key = stk_hash64(source->class->name, strlen(source->class->name), FORMAT);
    for (int f = 0; f < source->n_fields; f++) {
        const stk_chain *head = &cache->head[f];
        char text[STK_SHAPE_TEXT_BYTES];
        int64_t kind = head->type[0].kind;
        key = stk_hash64(source->field[f].name, strlen(source->field[f].name), key);
        key = stk_hash64(&kind, sizeof(kind), key);
        if (kind == STK_FIELD_ARRAY) stk_desc_text(head->type[0].desc, text);
        if (kind == STK_FIELD_ARRAY) key = stk_hash64(text, strlen(text), key);
        for (int i = 0; i < head->n_stages; i++) {
            const stk_stage *stage = head->stage[i];
            if (!stage->class->plain)
                return stk_fail(STK_UNSUPPORTED,
                                "a cache on disk cannot tell whether stage '%s' does what it did: cache in memory",
                                stage->class->key.name);
            key = stk_hash64(stage->class->key.name, strlen(stage->class->key.name), key);
            key = stk_hash64(stage->params, stage->class->params_bytes, key);
        }
    }
    *out = key;
    return STK_OK;
}

static bool make_stamp(const stk_source *source, int64_t i_record, stk_row_stamp *out)
{
    char name[STK_RECORD_NAME_BYTES];
    if (!source->class->stamp || !source->class->stamp(source, i_record, &out->n_bytes, &out->mtime_ns)) return false;
    stk_source_name(source, i_record, 0, name, sizeof(name));
    out->name = stk_hash64(name, strlen(name), 0);
    return true;
}

stk_status stk_row_cache_open_file(stk_row_cache *cache, const stk_source *source)
{
    char *path = cache->stats.path, folder[PATH_MAX];
    size_t n = sizeof(cache->stats.path);
    uint64_t key = 0;
    stk_row_stamp stamp;
    if (!make_stamp(source, 0, &stamp))
        return stk_fail(STK_UNSUPPORTED,
                        "source '%s' cannot tell whether its records have changed, which a cache on disk must know: "
                        "cache in memory",
                        source->class->name);
    STK_RETURN_IF_ERROR(make_key(cache, source, &key));
    if (cache->path) {
        if (snprintf(path, n, "%s", cache->path) >= (int)n)
            return stk_fail(STK_INVALID, "the cache's path is too long");
    } else {
        STK_RETURN_IF_ERROR(stk_cache_folder(folder, sizeof(folder)));
        if (stk_keeps_data()) STK_RETURN_IF_ERROR(stk_dir_make(folder));
        /* One file for each data: records of the same names share one, and others do not drive each other out. */
        if (snprintf(path, n, "%s/rows-%016llx", folder, (unsigned long long)stk_hash64(&stamp.name, 8, key)) >= (int)n)
            return stk_fail(STK_INVALID, "the path of the cache folder is too long");
    }
    return stk_row_store_in_file(path, key, source->n_records, &cache->store);
}

/* --- rows --- */

static size_t numbers_bytes(const stk_source *source)
{
    return stk_round_up((size_t)source->n_fields * FIELD_NUMBERS * sizeof(int64_t), ALIGNMENT);
}

stk_status stk_row_cache_pack(const stk_source *source, const stk_item *item, stk_row_cache_work *work, stk_span *out)
{
    size_t n = numbers_bytes(source);
    for (int f = 0; f < source->n_fields; f++)
        n += stk_round_up(item[f].n_bytes, ALIGNMENT);
    unsigned char *row = stk_scratch_get(&work->row, n), *p = row + numbers_bytes(source);
    if (!row) return STK_NO_MEMORY;
    memset(row, 0, n);
    for (int f = 0; f < source->n_fields; f++) {
        int64_t *number = (int64_t *)(void *)row + f * FIELD_NUMBERS;
        number[0] = (int64_t)item[f].n_bytes;
        if (item[f].type.kind == STK_FIELD_ARRAY)
            memcpy(number + 1, item[f].type.desc.shape.dim, sizeof(item[f].type.desc.shape.dim));
        if (item[f].n_bytes) memcpy(p, item[f].data, item[f].n_bytes);
        p += stk_round_up(item[f].n_bytes, ALIGNMENT);
    }
    *out = (stk_span){row, n};
    return STK_OK;
}

/* False for a row that does not fit the types: nothing is taken on trust that lay on a disk. */
static bool unpack(const stk_row_cache *cache, const stk_source *source, stk_span row, stk_item *item)
{
    size_t at = numbers_bytes(source);
    if (row.n < at) return false;
    for (int f = 0; f < source->n_fields; f++) {
        const int64_t *number = (const int64_t *)(const void *)row.data + f * FIELD_NUMBERS;
        const stk_field_type *type = stk_chain_type(&cache->head[f]);
        item[f] = (stk_item){.type = *type, .data = (void *)(uintptr_t)(row.data + at), .n_bytes = (size_t)number[0]};
        if (number[0] < 0 || item[f].n_bytes > row.n - at) return false;
        if (type->kind == STK_FIELD_ARRAY) {
            stk_shape *shape = &item[f].type.desc.shape;
            for (int d = 0; d < shape->rank; d++) {
                if (number[1 + d] < 0 || (shape->dim[d] != STK_ANY && shape->dim[d] != number[1 + d])) return false;
                shape->dim[d] = number[1 + d];
            }
            if (stk_desc_check(item[f].type.desc) != STK_OK || stk_desc_bytes(item[f].type.desc) != item[f].n_bytes)
                return false;
        }
        at += stk_round_up(item[f].n_bytes, ALIGNMENT);
        if (at > row.n) return false;
    }
    return true;
}

stk_status stk_row_cache_make(const stk_row_cache *cache, const stk_source *source, int64_t i_record,
                              const stk_stage_key *key, stk_reader *reader, stk_row_cache_work *work, stk_item *item)
{
    STK_RETURN_IF_ERROR(stk_reader_read(reader, source, i_record, key, item));
    for (int f = 0; f < source->n_fields; f++) {
        const stk_chain *head = &cache->head[f];
        stk_item made = {.type = *stk_chain_type(head)};
        bool wrong_size;
        if (head->n_stages == 0) continue;
        STK_RETURN_IF_ERROR(stk_chain_measure(head, key, &item[f], &made.type));
        made.n_bytes = stk_desc_bytes(made.type.desc);
        made.data = stk_scratch_get(&work->made[f], made.n_bytes ? made.n_bytes : 1);
        if (!made.data) return STK_NO_MEMORY;
        work->head[f].rows.hint = reader->scratch[f].jpeg;
        STK_RETURN_IF_ERROR(stk_chain_run(head, key, &item[f], &made.type, made.data, &work->head[f], &wrong_size));
        item[f] = made;
    }
    return STK_OK;
}

stk_status stk_row_cache_read(stk_row_cache *cache, const stk_source *source, int64_t i_record,
                              const stk_stage_key *key, stk_reader *reader, stk_row_cache_work *work, stk_item *item)
{
    stk_row_stamp stamp = {0};
    stk_span row;
    bool can_store = cache->kind == STK_CACHE_MEMORY || make_stamp(source, i_record, &stamp);
    if (can_store && stk_row_store_get(cache->store, i_record, &stamp, &work->row, &row) &&
        unpack(cache, source, row, item)) {
        atomic_fetch_add_explicit(&cache->n_hits, 1, memory_order_relaxed);
        return STK_OK;
    }
    atomic_fetch_add_explicit(&cache->n_misses, 1, memory_order_relaxed);
    STK_RETURN_IF_ERROR(stk_row_cache_make(cache, source, i_record, key, reader, work, item));
    if (can_store && stk_row_cache_pack(source, item, work, &row) == STK_OK)
        stk_row_store_put(cache->store, i_record, &stamp, row);
    return STK_OK;
}

void stk_row_cache_trim(stk_row_cache_work *work)
{
    stk_scratch_free(&work->row);
    for (int f = 0; f < STK_MAX_FIELDS; f++) {
        stk_scratch_free(&work->made[f]);
        stk_chain_work_trim(&work->head[f]);
    }
}
