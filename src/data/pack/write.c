/* Writing a pack; see stoker/pack.h.
 *
 * Record after record goes into a shard under a temporary name, which gets its own name when it is whole and on disk.
 * Then stoker-pack.part says so; with all shards there, it becomes stoker-pack.json.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "data/codec/image.h"
#include "data/codec/tar_writer.h"
#include "data/dataset.h"
#include "data/pack/manifest.h"
#include "data/source/reader.h"
#include "stoker/pack.h"

#define TEMPORARY "shard.tmp"

enum { BUFFER_BYTES = 4 << 20, REPORT_EVERY = 256 };

typedef struct packer {
    const stk_dataset *dataset;
    const char *folder;
    stk_pack_options options;
    stk_pack_manifest manifest;
    stk_pack_progress progress;
    int i_image, i_label; /* fields; -1: no labels */
    stk_reader reader;
    stk_order_cursor cursor;

    /* the shard under way */
    int fd;
    char path[4096];
    uint8_t *buffer;
    size_t n_buffer;
    int64_t n_bytes, n_records;
    uint32_t crc;
} packer;

/* --- bytes --- */

static stk_status flush(packer *p)
{
    STK_RETURN_IF_ERROR(stk_write_all(p->fd, p->path, p->buffer, p->n_buffer));
    p->crc = (uint32_t)crc32(p->crc, p->buffer, (uInt)p->n_buffer);
    p->n_buffer = 0;
    return STK_OK;
}

/* data NULL: zeros. */
static stk_status put(packer *p, const void *data, size_t n)
{
    p->n_bytes += (int64_t)n;
    for (size_t done = 0; done < n;) {
        size_t room = BUFFER_BYTES - p->n_buffer, part = n - done < room ? n - done : room;
        if (data)
            memcpy(p->buffer + p->n_buffer, (const uint8_t *)data + done, part);
        else
            memset(p->buffer + p->n_buffer, 0, part);
        p->n_buffer += part;
        done += part;
        if (p->n_buffer == BUFFER_BYTES) STK_RETURN_IF_ERROR(flush(p));
    }
    return STK_OK;
}

static stk_status put_member(packer *p, const char *name, const void *data, size_t n)
{
    uint8_t header[STK_TAR_BLOCK];
    stk_tar_header(name, n, header);
    STK_RETURN_IF_ERROR(put(p, header, sizeof(header)));
    STK_RETURN_IF_ERROR(put(p, data, n));
    return put(p, NULL, stk_tar_padding(n));
}

/* --- shards --- */

static stk_status begin_shard(packer *p)
{
    STK_RETURN_IF_ERROR(stk_path_join(p->path, sizeof(p->path), p->folder, TEMPORARY));
    p->fd = open(p->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (p->fd < 0) return stk_fail(STK_IO, "cannot write '%s': %s", p->path, stk_errno_text(errno));
    p->n_bytes = p->n_records = 0;
    p->crc = (uint32_t)crc32(0, NULL, 0);
    return STK_OK;
}

static stk_status close_file(packer *p)
{
    bool bad = fsync(p->fd) != 0;
    bad = close(p->fd) != 0 || bad;
    p->fd = -1;
    return bad ? stk_fail(STK_IO, "cannot write '%s': %s", p->path, stk_errno_text(errno)) : STK_OK;
}

static stk_status end_shard(packer *p)
{
    char name[64], path[4096];
    snprintf(name, sizeof(name), "shard-%05lld.tar", (long long)p->manifest.n_shards);
    STK_RETURN_IF_ERROR(put(p, NULL, 2 * STK_TAR_BLOCK));
    STK_RETURN_IF_ERROR(flush(p));
    STK_RETURN_IF_ERROR(close_file(p));
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), p->folder, name));
    if (rename(p->path, path) != 0) return stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    STK_RETURN_IF_ERROR(stk_dir_sync(p->folder));
    stk_pack_shard shard = {.n_records = p->n_records, .n_bytes = p->n_bytes, .crc32 = p->crc};
    if (!(shard.file = strdup(name))) return stk_fail_memory(sizeof(name));
    STK_RETURN_IF_ERROR(stk_pack_manifest_add(&p->manifest, shard));
    p->manifest.n_records += p->n_records;
    p->progress.n_bytes += p->n_bytes;
    p->progress.n_shards++;
    return stk_pack_manifest_write(&p->manifest, p->folder, STK_PACK_PART);
}

/* --- records --- */

/* KEY is the number and, for people, the file's own name, without dots, as a key ends at the first one. */
static void make_key(const packer *p, int64_t i, stk_order_place place, char *out, size_t out_bytes)
{
    char name[STK_RECORD_NAME_BYTES];
    stk_source_name(p->dataset->source, place.i_record, place.epoch, name, sizeof(name));
    const char *slash = strrchr(name, '/'), *start = slash ? slash + 1 : "";
    int n = (int)strcspn(start, ".'");
    snprintf(out, out_bytes, "%08lld%s%.*s", (long long)i, n ? "-" : "", n < 60 ? n : 60, start);
}

static stk_status pack_record(packer *p, int64_t i)
{
    const stk_source *source = p->dataset->source;
    stk_item item[STK_MAX_FIELDS];
    char key[STK_TAR_NAME - 8], name[STK_TAR_NAME], number[16];
    stk_order_place place = stk_order_map(&p->dataset->order, &p->cursor, 0, i);
    stk_stage_key no_seed = {.epoch = place.epoch};
    stk_status status = stk_reader_read(&p->reader, source, place.i_record, &no_seed, item);
    if (status != STK_OK) return stk_dataset_fail_record(p->dataset, status, place);
    const stk_item *image = &item[p->i_image];
    stk_image_format format = stk_image_format_of((stk_span){image->data, image->n_bytes});
    if (format == STK_IMAGE_UNKNOWN)
        return stk_dataset_fail_record(p->dataset, stk_fail(STK_CORRUPT, "not a JPEG or PNG file"), place);
    make_key(p, i, place, key, sizeof(key));
    if (p->i_label >= 0) {
        int n = snprintf(number, sizeof(number), "%d", (int)*(const int32_t *)item[p->i_label].data);
        snprintf(name, sizeof(name), "%s.cls", key);
        STK_RETURN_IF_ERROR(put_member(p, name, number, (size_t)n));
    }
    snprintf(name, sizeof(name), "%s.%s", key, format == STK_IMAGE_PNG ? "png" : "jpg");
    STK_RETURN_IF_ERROR(put_member(p, name, image->data, image->n_bytes));
    p->n_records++;
    return STK_OK;
}

static bool is_stopped(packer *p, int64_t n_done)
{
    stk_pack_progress now = p->progress;
    now.n_done = n_done;
    now.n_bytes += p->n_bytes;
    return p->options.on_progress && !p->options.on_progress(p->options.user, &now);
}

static stk_status pack_all(packer *p)
{
    int64_t n = p->progress.n_records, limit = p->options.shard_bytes;
    for (int64_t i = p->progress.n_resumed; i < n; i++) {
        if (i % REPORT_EVERY == 0 && is_stopped(p, i))
            return stk_fail(STK_INTERRUPTED, "packing was stopped after %lld whole shards",
                            (long long)p->manifest.n_shards);
        if (p->fd < 0) STK_RETURN_IF_ERROR(begin_shard(p));
        STK_RETURN_IF_ERROR(pack_record(p, i));
        if (p->n_bytes >= limit || i + 1 == n) {
            STK_RETURN_IF_ERROR(end_shard(p));
            p->n_bytes = 0;
        }
    }
    p->progress.n_done = n;
    if (p->options.on_progress) (void)p->options.on_progress(p->options.user, &p->progress);
    return STK_OK;
}

/* --- beginning and end --- */

static stk_status find_fields(packer *p)
{
    const stk_dataset *d = p->dataset;
    p->i_image = p->i_label = -1;
    for (int i = 0; i < d->source->n_fields; i++) {
        const stk_field_type *type = stk_chain_type(&d->chain[i]);
        bool is_number = type->kind == STK_FIELD_ARRAY && type->desc.dtype == STK_I32 && type->desc.shape.rank == 0;
        if (!strcmp(d->source->field[i].name, "image") && type->kind == STK_FIELD_ENCODED) p->i_image = i;
        if (!strcmp(d->source->field[i].name, "label") && is_number && d->chain[i].n_stages == 0) p->i_label = i;
    }
    if (p->i_image >= 0) return STK_OK;
    return stk_fail(STK_INVALID,
                    "only encoded images can be packed: source '%s' has no encoded field 'image', or stages "
                    "are applied to it",
                    d->source->class->name);
}

/* Of the names of some records: another folder, order or selection has another one. */
static uint64_t fingerprint_of(const packer *p)
{
    const stk_dataset *d = p->dataset;
    int64_t n = p->progress.n_records, step = n > 1000 ? n / 1000 : 1;
    uint64_t hash = (uint64_t)n ^ (uint64_t)p->options.shard_bytes;
    for (int64_t i = 0; i < n; i += step) {
        char name[STK_RECORD_NAME_BYTES];
        stk_order_place place = stk_order_map(&d->order, NULL, 0, i);
        stk_source_name(d->source, place.i_record, place.epoch, name, sizeof(name));
        hash = stk_hash64(name, strlen(name), hash);
    }
    return hash;
}

static stk_status set_classes(packer *p)
{
    const char *const *names;
    int64_t n = stk_dataset_classes(p->dataset, &names);
    stk_pack_manifest *m = &p->manifest;
    m->has_labels = p->i_label >= 0;
    if (n == 0 || !m->has_labels) return STK_OK;
    m->class_name = calloc((size_t)n, sizeof(*m->class_name));
    if (!m->class_name) return stk_fail_memory((size_t)n * sizeof(*m->class_name));
    m->n_classes = n;
    for (int64_t i = 0; i < n; i++)
        if (!(m->class_name[i] = strdup(names[i]))) return stk_fail_memory(strlen(names[i]));
    return STK_OK;
}

static bool has_file(const packer *p, const char *name)
{
    char path[4096];
    return stk_path_join(path, sizeof(path), p->folder, name) == STK_OK && stk_path_exists(path);
}

/* Goes on after the whole shards of an earlier call, or starts. */
static stk_status resume(packer *p)
{
    uint64_t fingerprint = fingerprint_of(p);
    if (has_file(p, STK_PACK_MANIFEST))
        return stk_fail(STK_INVALID, "'%s' holds a pack already; choose another folder or remove it", p->folder);
    if (has_file(p, STK_PACK_PART)) {
        STK_RETURN_IF_ERROR(stk_pack_manifest_read(p->folder, STK_PACK_PART, &p->manifest));
        if (p->manifest.fingerprint != fingerprint || p->manifest.n_records > p->progress.n_records)
            return stk_fail(STK_INVALID, "'%s' holds the beginning of a pack of other data; remove it", p->folder);
        p->progress.n_resumed = p->manifest.n_records;
        p->progress.n_shards = (int)p->manifest.n_shards;
        for (int64_t i = 0; i < p->manifest.n_shards; i++)
            p->progress.n_bytes += p->manifest.shard[i].n_bytes;
        return STK_OK;
    }
    p->manifest.fingerprint = fingerprint;
    return set_classes(p);
}

static stk_status finish(packer *p)
{
    char path[4096];
    STK_RETURN_IF_ERROR(stk_pack_manifest_write(&p->manifest, p->folder, STK_PACK_MANIFEST));
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), p->folder, STK_PACK_PART));
    return stk_tree_remove(path);
}

static void drop_shard(packer *p)
{
    if (p->fd < 0) return;
    close(p->fd);
    unlink(p->path);
}

stk_status stk_pack_write(const stk_dataset *dataset, const char *folder, const stk_pack_options *options,
                          stk_pack_progress *result)
{
    stk_status status;
    packer *p = calloc(1, sizeof(*p));
    *result = (stk_pack_progress){0};
    if (!p) return stk_fail_memory(sizeof(*p));
    p->dataset = dataset;
    p->folder = folder;
    p->fd = -1;
    if (options) p->options = *options;
    if (p->options.shard_bytes <= 0) p->options.shard_bytes = (int64_t)256 << 20;
    STK_TRY(stk_dataset_status(dataset));
    p->progress.n_records = dataset->order.count;
    p->buffer = malloc(BUFFER_BYTES);
    if (!p->buffer) STK_TRY(stk_fail_memory(BUFFER_BYTES));
    STK_TRY(find_fields(p));
    STK_TRY(stk_dir_make(folder));
    STK_TRY(resume(p));
    STK_TRY(pack_all(p));
    STK_TRY(finish(p));
done:
    drop_shard(p);
    *result = p->progress;
    stk_reader_free(&p->reader, dataset->source);
    stk_order_cursor_free(&p->cursor);
    stk_pack_manifest_free(&p->manifest);
    free(p->buffer);
    free(p);
    return status;
}
