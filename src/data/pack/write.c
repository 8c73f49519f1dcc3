/* Writing a pack; see stoker/data/pack.h.
 *
 * Record after record goes into a shard (pack/shard_writer.h). When one is whole, stoker-pack.part says so; with all
 * shards there, it becomes stoker-pack.json.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/temporary.h"
#include "data/codec/image.h"
#include "data/codec/tar_writer.h"
#include "data/dataset/dataset.h"
#include "data/pack/remake.h"
#include "data/pack/shard_writer.h"
#include "data/source/manifest.h"
#include "data/source/reader.h"
#include "stoker/data/pack.h"

enum { REPORT_EVERY = 64 };

typedef struct packer {
    const stk_dataset *dataset;
    const char *folder;
    stk_pack_options options;
    stk_pack_manifest manifest;
    stk_pack_progress progress;
    int i_image, i_label; /* fields; -1: no labels */
    stk_reader reader;
    stk_order_cursor cursor;
    stk_remake_work remake;
    stk_shard_writer writer;
    size_t n_there; /* bytes of folder that were a folder before */
    int lock_fd;    /* of folder; -1: none */
    bool is_begun;  /* the folder holds this pack's beginning */
} packer;

static stk_status end_shard(packer *p)
{
    stk_pack_shard shard;
    STK_RETURN_IF_ERROR(stk_shard_writer_end(&p->writer, p->manifest.n_shards, &shard));
    p->manifest.n_records += shard.n_records;
    p->progress.n_bytes += shard.n_bytes;
    p->progress.n_shards++;
    STK_RETURN_IF_ERROR(stk_pack_manifest_add(&p->manifest, shard));
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

/* Labels may be of any integer type. */
static stk_status read_label(const stk_item *item, int32_t *out)
{
    int64_t value;
    switch (item->type.desc.dtype) {
    case STK_I64: value = *(const int64_t *)item->data; break;
    case STK_U8: value = *(const uint8_t *)item->data; break;
    default: value = *(const int32_t *)item->data;
    }
    *out = (int32_t)value;
    return value == *out ? STK_OK : stk_fail(STK_CORRUPT, "its label %lld is too large", (long long)value);
}

static stk_status make_record(packer *p, const stk_item *item, int32_t *label, stk_packed_record *out)
{
    const stk_item *image = &item[p->i_image];
    stk_span src = {image->data, image->n_bytes};
    if (stk_image_format_of(src) == STK_IMAGE_UNKNOWN) return stk_fail(STK_CORRUPT, "not a JPEG, PNG or WebP file");
    if (p->i_label >= 0) {
        STK_RETURN_IF_ERROR(read_label(&item[p->i_label], label));
        out->label = label;
    }
    STK_RETURN_IF_ERROR(stk_remake(src, &p->options, &p->remake, &out->image));
    stk_image_format format = stk_image_format_of(out->image);
    out->ending = format == STK_IMAGE_PNG ? "png" : format == STK_IMAGE_WEBP ? "webp" : "jpg";
    return stk_remake_entries(out->image, p->options.index_every, &p->remake, &out->entry, &out->n_entries);
}

static stk_status pack_record(packer *p, int64_t i)
{
    const stk_source *source = p->dataset->source;
    stk_item item[STK_MAX_FIELDS];
    char key[STK_TAR_NAME - 8];
    int32_t label;
    stk_order_place place = stk_order_map(&p->dataset->order, &p->cursor, 0, i);
    stk_stage_key no_seed = {.epoch = place.epoch};
    stk_packed_record record = {.key = key};
    stk_status status = stk_reader_read(&p->reader, source, place.i_record, &no_seed, item);
    if (status == STK_OK) status = make_record(p, item, &label, &record);
    if (status != STK_OK) return stk_dataset_fail_record(p->dataset, status, place);
    make_key(p, i, place, key, sizeof(key));
    return stk_shard_writer_add(&p->writer, &record);
}

static bool is_stopped(packer *p, int64_t n_done)
{
    stk_pack_progress now = p->progress;
    now.n_done = n_done;
    now.n_bytes += p->writer.n_bytes;
    return p->options.on_progress && !p->options.on_progress(p->options.user, &now);
}

static stk_status pack_records(packer *p)
{
    int64_t n = p->progress.n_records, limit = p->options.shard_bytes;
    for (int64_t i = p->progress.n_resumed; i < n; i++) {
        if (i % REPORT_EVERY == 0 && is_stopped(p, i))
            return stk_fail(STK_INTERRUPTED, "packing was stopped after %lld whole shards",
                            (long long)p->manifest.n_shards);
        STK_RETURN_IF_ERROR(pack_record(p, i));
        if (p->writer.n_bytes >= limit || i + 1 == n) STK_RETURN_IF_ERROR(end_shard(p));
    }
    p->progress.n_done = n;
    if (p->options.on_progress) (void)p->options.on_progress(p->options.user, &p->progress);
    return STK_OK;
}

/* A record is bounded as in a loader. */
static stk_status pack_all(packer *p)
{
    stk_memory *own;
    STK_RETURN_IF_ERROR(stk_dataset_enter_memory(p->dataset, &own));
    stk_status status = pack_records(p);
    stk_reader_free(&p->reader, p->dataset->source);
    stk_remake_work_free(&p->remake);
    stk_order_cursor_free(&p->cursor);
    stk_dataset_leave_memory(own);
    return status;
}

/* --- beginning and end --- */

static stk_status find_fields(packer *p)
{
    const stk_dataset *d = p->dataset;
    p->i_image = p->i_label = -1;
    for (int i = 0; i < d->source->n_fields; i++) {
        const stk_field_type *type = stk_chain_type(&d->chain[i]);
        stk_dtype dtype = type->desc.dtype;
        bool is_number = type->kind == STK_FIELD_ARRAY && type->desc.shape.rank == 0 &&
                         (dtype == STK_I32 || dtype == STK_I64 || dtype == STK_U8);
        if (!strcmp(d->source->field[i].name, "image") && type->kind == STK_FIELD_ENCODED) p->i_image = i;
        if (!strcmp(d->source->field[i].name, "label") && is_number && d->chain[i].n_stages == 0) p->i_label = i;
    }
    if (p->i_image >= 0) return STK_OK;
    return stk_fail(STK_INVALID,
                    "only encoded images can be packed: source '%s' has no encoded field 'image', or stages "
                    "are applied to it",
                    d->source->class->name);
}

/* Of the names of some records and of what is made of them: another folder, order or selection has another one. */
static uint64_t fingerprint_of(const packer *p)
{
    const stk_dataset *d = p->dataset;
    int64_t n = p->progress.n_records, step = n > 1000 ? n / 1000 : 1;
    const stk_pack_options *o = &p->options;
    uint64_t hash = (uint64_t)n ^ (uint64_t)o->shard_bytes;
    int64_t how[] = {o->tfrecord, o->shorter, o->quality, o->baseline};
    int64_t every = o->index_every;
    /* Packs that were begun before there was a choice go on. */
    if (how[0] || how[1] || how[2] || how[3]) hash = stk_hash64(how, sizeof(how), hash);
    if (every) hash = stk_hash64(&every, sizeof(every), hash);
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
    m->is_tfrecord = p->options.tfrecord;
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

/* Somebody's files are neither mixed with shards nor replaced by one of their name. */
static stk_status check_empty(const char *folder)
{
    stk_names names;
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_dir_list(folder, &names));
    for (size_t i = 0; i < names.n && status == STK_OK; i++)
        if (!stk_temporary_is_name(names.name[i]))
            status =
                stk_fail(STK_BUSY, "folder '%s' holds '%s' and no pack; choose another one", folder, names.name[i]);
    stk_names_free(&names);
    return status;
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
        p->is_begun = true;
        p->progress.n_resumed = p->manifest.n_records;
        p->progress.n_shards = (int)p->manifest.n_shards;
        for (int64_t i = 0; i < p->manifest.n_shards; i++)
            p->progress.n_bytes += p->manifest.shard[i].n_bytes;
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(check_empty(p->folder));
    p->manifest.fingerprint = fingerprint;
    STK_RETURN_IF_ERROR(set_classes(p));
    /* What is written from here on is known for ours, also after a kill. */
    p->is_begun = true;
    return stk_pack_manifest_write(&p->manifest, p->folder, STK_PACK_PART);
}

static stk_status finish(packer *p)
{
    char path[4096];
    STK_RETURN_IF_ERROR(stk_pack_manifest_write(&p->manifest, p->folder, STK_PACK_MANIFEST));
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), p->folder, STK_PACK_PART));
    return stk_tree_remove(path);
}

/* The folder itself is locked, since its files are replaced. A file system without locks is used without. */
static stk_status lock_folder(packer *p)
{
    p->lock_fd = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->lock_fd < 0) return stk_fail(STK_IO, "cannot open folder '%s': %s", p->folder, stk_errno_text(errno));
    if (flock(p->lock_fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return STK_OK;
    close(p->lock_fd);
    p->lock_fd = -1;
    return stk_fail(STK_BUSY, "another process is writing a pack to '%s'", p->folder);
}

/* Whether there is the list of shards alone: a shard next to it may have been renamed and not yet listed. */
static bool has_no_shard(const packer *p)
{
    stk_names names;
    bool has_none = p->manifest.n_shards == 0 && stk_dir_list(p->folder, &names) == STK_OK;
    if (!has_none) return false;
    for (size_t i = 0; i < names.n; i++)
        has_none &= !strcmp(names.name[i], STK_PACK_PART) || stk_temporary_is_name(names.name[i]);
    stk_names_free(&names);
    return has_none;
}

/* A pack that failed before its first shard leaves nothing. */
static void drop_empty(const packer *p)
{
    char path[4096];
    if (p->is_begun && has_no_shard(p) && stk_path_join(path, sizeof(path), p->folder, STK_PACK_PART) == STK_OK)
        (void)unlink(path);
    stk_dir_take_back(p->folder, p->n_there);
}

static stk_status check_options(const stk_pack_options *o)
{
    if (o->quality < 0 || o->quality > 100) return stk_fail(STK_INVALID, "a quality is 1 to 100, not %d", o->quality);
    if (o->shorter < 0 || o->shorter > 65500)
        return stk_fail(STK_INVALID, "a side of %lld pixels is not possible", (long long)o->shorter);
    return STK_OK;
}

stk_status stk_pack_write(const stk_dataset *dataset, const char *folder, const stk_pack_options *options,
                          stk_pack_progress *result)
{
    if (!dataset) return stk_fail(STK_INVALID, "there is no data set");
    STK_NEED(result);
    stk_status status;
    packer *p = calloc(1, sizeof(*p));
    *result = (stk_pack_progress){0};
    if (!p) return stk_fail_memory(sizeof(*p));
    p->dataset = dataset;
    p->folder = folder;
    p->writer.fd = p->lock_fd = -1;
    if (options) p->options = *options;
    if (p->options.shard_bytes <= 0) p->options.shard_bytes = (int64_t)256 << 20;
    STK_TRY(stk_dataset_status(dataset));
    p->progress.n_records = dataset->order.count;
    STK_TRY(check_options(&p->options));
    STK_TRY(stk_shard_writer_init(&p->writer, folder, p->options.tfrecord));
    STK_TRY(find_fields(p));
    STK_TRY(stk_dir_make_new(folder, &p->n_there));
    STK_TRY(lock_folder(p));
    STK_TRY(resume(p));
    STK_TRY(pack_all(p));
    STK_TRY(finish(p));
done:
    stk_shard_writer_free(&p->writer);
    if (p->lock_fd >= 0 && status != STK_OK) drop_empty(p);
    if (p->lock_fd >= 0) close(p->lock_fd);
    stk_remake_work_free(&p->remake);
    *result = p->progress;
    stk_reader_free(&p->reader, dataset->source);
    stk_order_cursor_free(&p->cursor);
    stk_pack_manifest_free(&p->manifest);
    free(p);
    return status;
}
