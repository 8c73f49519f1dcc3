/* IDX files as MNIST comes, plain or gzip, told apart by their first bytes. Both are read into memory once: a mapped
 * file that somebody cuts short while it is in use would end the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/codec/idx.h"
#include "data/source/fields.h"
#include "data/source/keys.h"
#include "data/source/source_list.h"

enum { MOST_GIB = 16 };

typedef struct idx_file {
    char *path;
    uint8_t *bytes; /* header and data */
    stk_shape shape;
    const uint8_t *data; /* in bytes */
} idx_file;

typedef struct idx_source {
    stk_source base;
    idx_file images, labels;
    size_t image_bytes;
} idx_source;

static void close_file(idx_file *file)
{
    free(file->bytes);
    free(file->path);
}

static stk_status open_file(const char *path, idx_file *out)
{
    stk_status status;
    size_t capacity = 0, n;
    *out = (idx_file){.path = strdup(path)};
    if (!out->path) return stk_fail_memory(strlen(path));
    STK_RETURN_IF_ERROR(stk_file_read(path, &out->bytes, &capacity, &n));
    if (stk_is_gzip((stk_span){out->bytes, n})) {
        uint8_t *packed = out->bytes;
        out->bytes = NULL;
        size_t left = stk_memory_left(stk_memory_in_use()), most = (size_t)MOST_GIB << 30;
        status = stk_gunzip((stk_span){packed, n}, left < most ? left : most, &out->bytes, &n);
        free(packed);
        STK_TRY(status);
    }
    STK_TRY(stk_memory_hold(n));
    STK_TRY(stk_idx_parse((stk_span){out->bytes, n}, &out->shape, &out->data));
done:
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "'%s': ", path);
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const idx_source *s = (const idx_source *)source;
    item[0] = (stk_item){source->field[0].type, (uint8_t *)s->images.data + (size_t)i_record * s->image_bytes,
                         s->image_bytes};
    if (source->n_fields == 1) return STK_OK;
    int32_t *label = stk_scratch_get(&scratch[1], sizeof(*label));
    if (!label) return STK_NO_MEMORY;
    *label = s->labels.data[i_record];
    item[1] = (stk_item){source->field[1].type, label, sizeof(*label)};
    return STK_OK;
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "record %lld of '%s'", (long long)i_record, ((const idx_source *)source)->images.path);
}

static void close_source(stk_source *source)
{
    idx_source *s = (idx_source *)source;
    close_file(&s->images);
    close_file(&s->labels);
    free(s);
}

static void prefetch(const stk_source *source, int64_t i_record)
{
    const idx_source *s = (const idx_source *)source;
    stk_prefetch_bytes(s->images.data + (size_t)i_record * s->image_bytes, s->image_bytes);
}

static size_t held_bytes(const stk_source *source)
{
    return (size_t)source->n_bytes;
}

static const stk_source_class class_idx = {.name = "idx",
                                           .read = read_record,
                                           .name_record = name_record,
                                           .close = close_source,
                                           .prefetch = prefetch,
                                           .held_bytes = held_bytes};

static stk_status check_images(const idx_source *s, const char *path)
{
    char text[STK_SHAPE_TEXT_BYTES];
    const stk_shape *shape = &s->images.shape;
    if (shape->rank == 3 || shape->rank == 4) return STK_OK;
    return stk_fail(STK_INVALID, "'%s' is no file of images: its shape is %s", path, stk_shape_text(*shape, text));
}

static stk_status check_labels(const idx_source *s, const char *path)
{
    if (s->labels.shape.rank != 1) return stk_fail(STK_INVALID, "'%s' is no file of labels", path);
    if (s->labels.shape.dim[0] == s->images.shape.dim[0]) return STK_OK;
    return stk_fail(STK_MISMATCH, "'%s' has %lld labels for the %lld images of '%s'", path,
                    (long long)s->labels.shape.dim[0], (long long)s->images.shape.dim[0], s->images.path);
}

stk_status stk_source_open_idx(const char *images, const char *labels, stk_source **out)
{
    idx_source *s = calloc(1, sizeof(*s));
    stk_status status;
    if (!s) return stk_fail_memory(sizeof(*s));
    STK_TRY(open_file(images, &s->images));
    STK_TRY(check_images(s, images));
    if (labels) {
        STK_TRY(open_file(labels, &s->labels));
        STK_TRY(check_labels(s, labels));
    }
    const stk_shape *shape = &s->images.shape;
    stk_array_field fields[2] = {{.name = "image", .dtype = STK_U8}, {.name = "label", .dtype = STK_I32}};
    fields[0].sample = (stk_shape){3, {shape->dim[1], shape->dim[2], shape->rank == 4 ? shape->dim[3] : 1}};
    STK_TRY(stk_source_set_fields(&s->base, shape->dim[0], fields, labels ? 2 : 1));
    s->image_bytes = stk_desc_bytes(s->base.field[0].type.desc);
    s->base.n_bytes = shape->dim[0] * (int64_t)s->image_bytes;
    s->base.class = &class_idx;
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}

/* --- settings --- */

static const stk_key keys[] = {{.name = "images",
                                .type = STK_KEY_TEXT,
                                .is_path = true,
                                .required = true,
                                .doc = "The IDX file of images, plain or .gz."},
                               {.name = "labels",
                                .type = STK_KEY_TEXT,
                                .is_path = true,
                                .required = true,
                                .doc = "The IDX file of labels, plain or .gz."},
                               STK_KEY_END};

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    return stk_yaml_locate(
        settings, stk_source_open_idx(stk_yaml_text(settings, "images"), stk_yaml_text(settings, "labels"), out));
}

const stk_source_kind stk_source_kind_idx = {
    .key = {.name = "idx", .type = STK_KEY_MAP, .keys = keys, .no_short = true, .doc = "IDX files, as MNIST comes."},
    .open = open_settings};
