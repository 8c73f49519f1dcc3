/* See source/shards.h. */
#include "data/source/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/little.h"
#include "base/memory.h"
#include "data/codec/tfrecord.h"
#include "data/common/side_file.h"
#include "data/remote/http.h"
#include "data/remote/remote.h"
#include "data/source/fields.h"
#include "data/source/open_many.h"
#include "data/source/paths.h"

enum { LEAST_INDEXED_BYTES = 64 << 10 };

/* What a shard holds. */
typedef struct record_format {
    const stk_cells *cells; /* of rows; NULL: plain lines */
    bool lines;             /* else TFRecords */
    bool whole;             /* a file is one record, without an index */
    int64_t n_skip;         /* records at the start that do not count */
} record_format;

static stk_index_kind kind_of(const record_format *format)
{
    if (!format->lines) return STK_INDEX_TFRECORD;
    if (!format->cells) return STK_INDEX_LINES;
    /* Rows depend on the signs. */
    return STK_INDEX_LINES |
           (stk_index_kind)((uint8_t)format->cells->delimiter << 8 | (uint8_t)format->cells->quote << 16);
}

/* --- the index: offsets as u64, then nothing --- */

/* False for an index that no run of ours has written. */
static bool take_index(stk_shard *shard, const record_format *format, uint8_t *payload, size_t n)
{
    uint64_t least = format->lines ? 1 : STK_TFRECORD_FRAME_BYTES;
    bool may_start_late = format->cells != NULL; /* behind empty lines */
    int64_t n_records = (int64_t)(n / 8);
    uint64_t before = 0;
    if (n % 8) return false;
    uint64_t *start = (uint64_t *)(void *)payload; /* from malloc, so aligned */
    for (int64_t i = 0; i < n_records; i++) {
        uint64_t at = stk_little64(payload + 8 * i);
        if (i == 0 ? at != 0 && !may_start_late : at < before + least) return false;
        if (shard->file.n_bytes < least || at > shard->file.n_bytes - least) return false;
        start[i] = before = at;
    }
    if (n_records == 0 && shard->file.n_bytes > 0 && !may_start_late) return false;
    shard->start = start;
    shard->n_records = n_records;
    return true;
}

static void write_index(const stk_shard *shard, stk_index_kind kind)
{
    size_t n = (size_t)shard->n_records * 8;
    uint8_t *payload = malloc(n ? n : 1);
    if (!payload) return;
    for (int64_t i = 0; i < shard->n_records; i++)
        stk_put_little64(payload + 8 * i, shard->start[i]);
    stk_index_write(&shard->file, kind, payload, n);
    free(payload);
}

static stk_status find_records(stk_shard *shard, const record_format *format)
{
    if (format->lines) return stk_lines_find(&shard->file, format->cells, &shard->start, &shard->n_records);
    return stk_tfrecord_find(&shard->file, &shard->start, &shard->n_records);
}

static stk_status index_shard(stk_shard *shard, const record_format *format)
{
    uint8_t *payload;
    size_t n;
    bool stale;
    STK_RETURN_IF_ERROR(stk_index_read(&shard->file, kind_of(format), &payload, &n, &stale));
    if (payload && take_index(shard, format, payload, n)) return STK_OK;
    shard->was_stale = payload || stale;
    free(payload);
    STK_RETURN_IF_ERROR(find_records(shard, format));
    /* Small files are read through sooner than a side file is written. */
    if (!format->lines || shard->file.n_bytes > LEAST_INDEXED_BYTES) write_index(shard, kind_of(format));
    return STK_OK;
}

/* One record from the first byte on, even of an empty file. */
static stk_status take_whole(stk_shard *shard)
{
    if (!(shard->start = calloc(1, sizeof(*shard->start)))) return stk_fail_memory(sizeof(*shard->start));
    shard->n_records = 1;
    return STK_OK;
}

static void skip_records(stk_shard *shard, int64_t n)
{
    if (n > shard->n_records) n = shard->n_records;
    shard->n_records -= n;
    shard->n_skipped = n;
    if (n > 0) memmove(shard->start, shard->start + n, (size_t)shard->n_records * sizeof(*shard->start));
}

/* --- shards --- */

static stk_status unpack(stk_shard *shard, bool keep_open, bool lines)
{
    uint8_t start[STK_TFRECORD_HEADER_BYTES];
    size_t n = shard->file.n_bytes < sizeof(start) ? (size_t)shard->file.n_bytes : sizeof(start);
    char *unpacked;
    STK_RETURN_IF_ERROR(stk_input_read(&shard->file, 0, start, n));
    stk_tfrecord_packing packing = stk_tfrecord_packing_of((stk_span){start, n});
    /* A text may begin as ZLIB's do. */
    if (packing == STK_TFRECORD_PLAIN || (lines && packing == STK_TFRECORD_ZLIB)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_unpack_to_cache(&shard->file, &unpacked));
    stk_input_close(&shard->file);
    stk_status status = stk_open_input(unpacked, keep_open, &shard->file);
    free(unpacked);
    return status;
}

static stk_status open_shard(const char *path, bool keep_open, const record_format *format, stk_shard *shard)
{
    stk_status status;
    if (!(shard->path = strdup(path))) return stk_fail_memory(strlen(path));
    STK_RETURN_IF_ERROR(stk_open_input(path, keep_open, &shard->file));
    STK_TRY(unpack(shard, keep_open, format->lines));
    STK_TRY(format->whole ? take_whole(shard) : index_shard(shard, format));
    skip_records(shard, format->n_skip);
done:
    return status == STK_OK || strstr(stk_error_text(), path) ? status : stk_fail_prefix(status, "'%s': ", path);
}

static stk_status read_shard(stk_shard *shard)
{
    uint64_t n = shard->file.n_bytes;
    stk_status status = stk_memory_hold(n);
    if (status != STK_OK) return stk_fail_prefix(status, "'%s' is kept in memory: ", shard->path);
    shard->bytes = stk_array_get(n);
    if (!shard->bytes) return stk_fail_memory(n);
    status = stk_input_read(&shard->file, 0, shard->bytes, n);
    if (status != STK_OK) return stk_fail_prefix(status, "'%s': ", shard->path);
    stk_input_close(&shard->file);
    shard->file = stk_input_of_memory((stk_span){shard->bytes, n});
    return STK_OK;
}

typedef struct opening {
    const stk_names *names;
    const record_format *format;
    bool in_memory;
    stk_shard *shard;
    stk_memory *memory; /* of the thread that opens the source; others may help it */
} opening;

static stk_status hold_index(const stk_shard *shard)
{
    stk_status status = stk_memory_hold((size_t)shard->n_records * sizeof(*shard->start));
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "the index of '%s': ", shard->path);
}

static stk_status open_one(void *user, size_t i)
{
    const opening *o = user;
    stk_shard *shard = &o->shard[i];
    stk_memory *before = stk_memory_use(o->memory);
    stk_status status = open_shard(o->names->name[i], i < STK_MOST_OPEN_SHARDS, o->format, shard);
    if (status == STK_OK) status = hold_index(shard);
    if (status == STK_OK && o->in_memory) status = read_shard(shard);
    (void)stk_memory_use(before);
    return status;
}

static stk_status open_shards(const stk_names *names, const record_format *format, bool in_memory, stk_shards *out)
{
    *out = (stk_shards){0};
    out->shard = calloc(names->n ? names->n : 1, sizeof(*out->shard));
    if (!out->shard) return stk_fail_memory(names->n * sizeof(*out->shard));
    out->n_shards = (int)names->n;
    for (int i = 0; i < out->n_shards; i++)
        out->shard[i].file.fd = -1;
    opening o = {names, format, in_memory, out->shard, stk_memory_in_use()};
    STK_RETURN_IF_ERROR(stk_open_many(names->n, names->n && stk_is_remote(names->name[0]), open_one, &o));
    for (int i = 0; i < out->n_shards; i++) {
        stk_shard *shard = &out->shard[i];
        shard->i_first = out->n_records;
        out->n_records += shard->n_records;
        if (shard->was_stale && out->n_stale++ == 0) out->stale = shard->path;
    }
    if (out->n_records > 0) return STK_OK;
    return stk_fail(STK_INVALID, "'%s'%s holds no record", names->n ? names->name[0] : "",
                    names->n > 1 ? " and what follows" : "");
}

stk_status stk_shards_open_tfrecord(const char *const *paths, int n_paths, bool in_memory, stk_shards *out)
{
    stk_names names;
    *out = (stk_shards){0};
    STK_RETURN_IF_ERROR(stk_paths_expand(paths, n_paths, false, &names));
    stk_status status = open_shards(&names, &(record_format){0}, in_memory, out);
    stk_names_free(&names);
    return status;
}

stk_status stk_shards_open_lines(const stk_names *names, const stk_cells *cells, bool whole, int64_t n_skip,
                                 bool in_memory, stk_shards *out)
{
    return open_shards(names, &(record_format){cells, true, whole, n_skip}, in_memory, out);
}

void stk_shards_close(stk_shards *shards)
{
    for (int i = 0; i < shards->n_shards; i++) {
        stk_input_close(&shards->shard[i].file);
        free(shards->shard[i].start);
        free(shards->shard[i].bytes);
        free(shards->shard[i].path);
    }
    free(shards->shard);
    *shards = (stk_shards){0};
}

size_t stk_shards_bytes(const stk_shards *shards)
{
    size_t n = (size_t)shards->n_records * sizeof(*shards->shard->start);
    for (int i = 0; i < shards->n_shards; i++)
        if (shards->shard[i].bytes) n += shards->shard[i].file.n_bytes;
    return n;
}

static const stk_shard *find_shard(const stk_shards *shards, int64_t i_record)
{
    int low = 0, high = shards->n_shards - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (i_record >= shards->shard[middle].i_first)
            low = middle;
        else
            high = middle - 1;
    }
    /* Of several that begin at one number all but the last are empty. */
    return &shards->shard[low];
}

stk_shard_place stk_shards_find(const stk_shards *shards, int64_t i_record)
{
    const stk_shard *shard = find_shard(shards, i_record);
    int64_t i = i_record - shard->i_first;
    uint64_t at = shard->start[i], end = i + 1 < shard->n_records ? shard->start[i + 1] : shard->file.n_bytes;
    return (stk_shard_place){shard, i, at, end - at};
}

void stk_shards_prefetch(const stk_shards *shards, int64_t i_record)
{
    const stk_shard *shard = find_shard(shards, i_record);
    const uint64_t *start = &shard->start[i_record - shard->i_first];
    __builtin_prefetch(start);
    if (!shard->bytes) return;
    uint64_t n = shard->file.n_bytes - *start; /* its own length is likely less, but asking takes as long */
    stk_prefetch_bytes(shard->bytes + *start, n < 1024 ? n : 1024);
}
