/* Reading a pack's shards against their checksums; see stoker/data/pack.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <zlib.h>

#include "base/error.h"
#include "base/input.h"
#include "data/remote/remote.h"
#include "data/source/manifest.h"
#include "stoker/data/pack.h"

enum { CHUNK_BYTES = 4 << 20 };

typedef struct verifier {
    stk_pack_options options;
    stk_pack_progress progress;
    uint8_t *buffer;
    int64_t n_bad;
    bool stopped;
} verifier;

static stk_status sum_up(verifier *v, const stk_input *file, uint32_t *crc)
{
    *crc = (uint32_t)crc32(0, NULL, 0);
    for (uint64_t at = 0; at < file->n_bytes && !v->stopped; at += CHUNK_BYTES) {
        uint64_t left = file->n_bytes - at;
        size_t n = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        STK_RETURN_IF_ERROR(stk_input_read(file, at, v->buffer, n));
        *crc = (uint32_t)crc32(*crc, v->buffer, (uInt)n);
        v->progress.n_done += (int64_t)n;
        v->stopped = v->options.on_progress && !v->options.on_progress(v->options.user, &v->progress);
    }
    return STK_OK;
}

static stk_status verify_shard(verifier *v, const char *folder, const stk_pack_shard *shard)
{
    char path[4096];
    stk_input file;
    uint32_t crc;
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, shard->file));
    STK_RETURN_IF_ERROR(stk_open_input(path, true, &file));
    stk_status status = STK_OK;
    if (file.n_bytes != (uint64_t)shard->n_bytes)
        STK_TRY(stk_fail(STK_CORRUPT, "'%s' has %llu bytes instead of %lld", path, (unsigned long long)file.n_bytes,
                         (long long)shard->n_bytes));
    STK_TRY(sum_up(v, &file, &crc));
    if (!v->stopped && crc != shard->crc32)
        status =
            stk_fail(STK_CORRUPT, "'%s' has the CRC-32 %08" PRIx32 " instead of %08" PRIx32, path, crc, shard->crc32);
done:
    stk_input_close(&file);
    return status;
}

stk_status stk_pack_verify(const char *folder, const stk_pack_options *options, stk_pack_progress *result)
{
    STK_NEED(folder);
    STK_NEED(result);
    stk_status status;
    stk_pack_manifest m;
    verifier v = {.buffer = malloc(CHUNK_BYTES)};
    *result = (stk_pack_progress){0};
    if (!v.buffer) return stk_fail_memory(CHUNK_BYTES);
    if (options) v.options = *options;
    status = stk_pack_manifest_read(folder, STK_PACK_MANIFEST, &m);
    if (status == STK_NOT_FOUND) stk_fail_prefix(status, "'%s' is no pack: ", folder);
    STK_TRY(status);
    for (int64_t i = 0; i < m.n_shards; i++)
        v.progress.n_records += m.shard[i].n_bytes;
    for (int64_t i = 0; i < m.n_shards && !v.stopped; i++, v.progress.n_shards++) {
        if (verify_shard(&v, folder, &m.shard[i]) == STK_OK) continue;
        v.n_bad++;
        if (v.options.on_bad) v.options.on_bad(v.options.user, stk_error_text());
    }
    v.progress.n_bytes = v.progress.n_done;
    if (v.stopped)
        status = stk_fail(STK_INTERRUPTED, "verifying was stopped");
    else if (v.n_bad)
        status = stk_fail(STK_CORRUPT, "%lld of %lld shards of '%s' are damaged", (long long)v.n_bad,
                          (long long)m.n_shards, folder);
    *result = v.progress;
done:
    stk_pack_manifest_free(&m);
    free(v.buffer);
    return status;
}
