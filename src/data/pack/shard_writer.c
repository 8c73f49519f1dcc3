#include "data/pack/shard_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/temporary.h"
#include "data/codec/example.h"
#include "data/codec/tar_writer.h"
#include "data/codec/tfrecord.h"
#include "data/source/shards.h"
#include "data/source/tar_samples.h"

enum { BUFFER_BYTES = 4 << 20 };

/* --- bytes --- */

static stk_status flush(stk_shard_writer *w)
{
    STK_RETURN_IF_ERROR(stk_write_all(w->fd, w->path, w->buffer, w->n_buffer));
    w->crc = (uint32_t)crc32(w->crc, w->buffer, (uInt)w->n_buffer);
    w->n_buffer = 0;
    return STK_OK;
}

/* data NULL: zeros. */
static stk_status put(stk_shard_writer *w, const void *data, size_t n)
{
    w->n_bytes += (int64_t)n;
    for (size_t done = 0; done < n;) {
        size_t room = BUFFER_BYTES - w->n_buffer, part = n - done < room ? n - done : room;
        if (data)
            memcpy(w->buffer + w->n_buffer, (const uint8_t *)data + done, part);
        else
            memset(w->buffer + w->n_buffer, 0, part);
        w->n_buffer += part;
        done += part;
        if (w->n_buffer == BUFFER_BYTES) STK_RETURN_IF_ERROR(flush(w));
    }
    return STK_OK;
}

/* --- records --- */

static stk_status put_member(stk_shard_writer *w, const char *key, const char *extension, stk_span data)
{
    uint8_t header[STK_TAR_BLOCK];
    char name[STK_TAR_NAME];
    snprintf(name, sizeof(name), "%s.%s", key, extension);
    stk_tar_header(name, data.n, header);
    STK_RETURN_IF_ERROR(put(w, header, sizeof(header)));
    STK_RETURN_IF_ERROR(put(w, data.data, data.n));
    return put(w, NULL, stk_tar_padding(data.n));
}

static stk_status put_members(stk_shard_writer *w, const stk_packed_record *r)
{
    char number[16];
    if (r->label) {
        int n = snprintf(number, sizeof(number), "%d", (int)*r->label);
        STK_RETURN_IF_ERROR(put_member(w, r->key, "cls", (stk_span){(const uint8_t *)number, (size_t)n}));
    }
    return put_member(w, r->key, r->ending, r->image);
}

static stk_status put_example(stk_shard_writer *w, const stk_packed_record *r)
{
    uint8_t header[STK_TFRECORD_HEADER_BYTES], footer[4];
    stk_text features = {0}, example = {0};
    stk_status status;
    stk_example_add_bytes(&features, "image", r->image.data, r->image.n);
    stk_example_add_bytes(&features, "key", r->key, strlen(r->key));
    if (r->label) stk_example_add_ints(&features, "label", &(int64_t){*r->label}, 1);
    stk_example_finish(&features, &example);
    STK_TRY(stk_text_status(&features));
    STK_TRY(stk_text_status(&example));
    stk_span data = {(const uint8_t *)stk_text_get(&example), example.n};
    stk_tfrecord_frame(data, header, footer);
    STK_TRY(put(w, header, sizeof(header)));
    STK_TRY(put(w, data.data, data.n));
    STK_TRY(put(w, footer, sizeof(footer)));
done:
    stk_text_free(&features);
    stk_text_free(&example);
    return status;
}

/* Takes the record's entries, after an error too. */
static stk_status note_entries(stk_shard_writer *w, const stk_packed_record *r)
{
    stk_entries_file file = {.n_bytes = r->image.n,
                             .content = stk_content_hash(r->image.data, r->image.n),
                             .entry = r->entry,
                             .n_entries = (uint32_t)r->n_entries};
    if (w->n_records == w->room) {
        int64_t room = 2 * w->room + 1024;
        stk_entries_file *grown = realloc(w->file, (size_t)room * sizeof(*grown));
        if (!grown) {
            free(r->entry);
            return stk_fail_memory((size_t)room * sizeof(*grown));
        }
        w->file = grown;
        w->room = room;
    }
    if (!(file.name = strdup(r->key))) {
        free(r->entry);
        return stk_fail_memory(strlen(r->key));
    }
    w->has_entries |= r->n_entries > 0;
    w->file[w->n_records++] = file;
    return STK_OK;
}

static void free_entries(stk_shard_writer *w)
{
    for (int64_t i = 0; i < w->n_records; i++) {
        free((void *)(uintptr_t)w->file[i].name);
        free((void *)(uintptr_t)w->file[i].entry);
    }
    w->n_records = 0;
    w->has_entries = false;
}

/* --- shards --- */

static stk_status begin_shard(stk_shard_writer *w)
{
    char path[4096];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), w->folder, "shard"));
    STK_RETURN_IF_ERROR(stk_temporary_file(path, w->path, &w->fd));
    w->n_bytes = 0;
    w->crc = (uint32_t)crc32(0, NULL, 0);
    return STK_OK;
}

stk_status stk_shard_writer_add(stk_shard_writer *w, const stk_packed_record *record)
{
    stk_status status = w->fd < 0 ? begin_shard(w) : STK_OK;
    if (status != STK_OK) {
        free(record->entry);
        return status;
    }
    STK_RETURN_IF_ERROR(note_entries(w, record));
    return w->is_tfrecord ? put_example(w, record) : put_members(w, record);
}

/* On the disk, and under its own name. */
static stk_status name_file(stk_shard_writer *w, const char *path)
{
    bool good = fsync(w->fd) == 0 && rename(w->path, path) == 0;
    if (!good) return stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    close(w->fd);
    w->fd = -1;
    return STK_OK;
}

/* NAME.entries next to the shard, where there are any. */
static stk_status write_entries(stk_shard_writer *w, const char *shard, stk_pack_shard *out)
{
    uint8_t *bytes = NULL;
    size_t n;
    char name[64], path[4096];
    stk_status status;
    if (!w->has_entries) return STK_OK;
    snprintf(name, sizeof(name), "%s.entries", shard);
    STK_TRY(stk_path_join(path, sizeof(path), w->folder, name));
    STK_TRY(stk_entries_print(w->file, w->n_records, &bytes, &n));
    STK_TRY(stk_file_write_durably(path, bytes, n));
    if (!(out->entries = strdup(name))) status = stk_fail_memory(sizeof(name));
done:
    free(bytes);
    return status;
}

/* Where records begin is found now rather than by the first run; its side file is a help and no part of the pack. */
static void index_shard(const stk_shard_writer *w, const char *path)
{
    stk_shards shards;
    stk_tar_samples samples = {0};
    stk_input file;
    bool stale;
    if (w->is_tfrecord) {
        (void)stk_shards_open_tfrecord(&path, 1, false, &shards);
        stk_shards_close(&shards);
    } else if (stk_input_open(path, true, &file) == STK_OK) {
        (void)stk_tar_samples_open(&file, &samples, &stale);
        stk_tar_samples_free(&samples);
        stk_input_close(&file);
    }
}

stk_status stk_shard_writer_end(stk_shard_writer *w, int64_t i_shard, stk_pack_shard *out)
{
    char name[32], path[4096];
    stk_status status = STK_OK;
    *out = (stk_pack_shard){0};
    snprintf(name, sizeof(name), "shard-%05lld.%s", (long long)i_shard, w->is_tfrecord ? "tfrecord" : "tar");
    if (!w->is_tfrecord) STK_TRY(put(w, NULL, 2 * STK_TAR_BLOCK));
    STK_TRY(flush(w));
    STK_TRY(stk_path_join(path, sizeof(path), w->folder, name));
    STK_TRY(write_entries(w, name, out));
    STK_TRY(name_file(w, path));
    STK_TRY(stk_dir_sync(w->folder));
    index_shard(w, path);
    out->n_records = w->n_records;
    out->n_bytes = w->n_bytes;
    out->crc32 = w->crc;
    if (!(out->file = strdup(name))) STK_TRY(stk_fail_memory(sizeof(name)));
    free_entries(w);
    w->n_bytes = 0;
    return STK_OK;
done:
    free(out->entries);
    *out = (stk_pack_shard){0};
    return status;
}

stk_status stk_shard_writer_init(stk_shard_writer *w, const char *folder, bool is_tfrecord)
{
    *w = (stk_shard_writer){.folder = folder, .is_tfrecord = is_tfrecord, .fd = -1, .buffer = malloc(BUFFER_BYTES)};
    return w->buffer ? STK_OK : stk_fail_memory(BUFFER_BYTES);
}

void stk_shard_writer_free(stk_shard_writer *w)
{
    if (w->fd >= 0) {
        close(w->fd);
        unlink(w->path);
    }
    free_entries(w);
    free(w->file);
    free(w->buffer);
    *w = (stk_shard_writer){.fd = -1};
}
