/* Images in object stores, one object a record: what image folders and lists of files are on disk. Which objects there
 * are is asked once, at the start; each is fetched when it is read first and then comes from the cache on disk. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/remote/http.h"
#include "data/remote/objects.h"
#include "data/source/fields.h"
#include "data/source/labels.h"
#include "data/source/paths.h"
#include "data/source/records.h"

typedef struct objects_source {
    stk_source base;
    stk_objects objects; /* by record */
    stk_file_labels labels;
} objects_source;

static stk_status read_some(const stk_source *source, int64_t i_record, unsigned fields, stk_scratch *scratch,
                            stk_item *item)
{
    const objects_source *s = (const objects_source *)source;
    size_t n = (size_t)s->objects.object[i_record].n_bytes;
    if (source->n_fields > 1)
        item[1] = (stk_item){source->field[1].type, &s->labels.label[i_record], sizeof(s->labels.label[0])};
    if (!(fields & 1)) return STK_OK;
    void *bytes = stk_scratch_get(&scratch[0], n + 1);
    if (!bytes) return STK_NO_MEMORY;
    STK_RETURN_IF_ERROR(stk_objects_read(&s->objects, (size_t)i_record, bytes));
    item[0] = (stk_item){source->field[0].type, bytes, n};
    return STK_OK;
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    return read_some(source, i_record, UINT_MAX, scratch, item);
}

static bool fetch(const stk_source *source, int64_t i_record)
{
    return stk_objects_fetch(&((const objects_source *)source)->objects, (size_t)i_record);
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "'%s'", ((const objects_source *)source)->objects.object[i_record].path);
}

static void close_source(stk_source *source)
{
    objects_source *s = (objects_source *)source;
    stk_objects_free(&s->objects);
    stk_labels_free(&s->labels);
    free(s);
}

static const stk_source_class class_objects = {.name = "objects",
                                               .read = read_record,
                                               .read_some = read_some,
                                               .name_record = name_record,
                                               .fetch = fetch,
                                               .close = close_source};

/* --- which records there are --- */

/* Leaves out what is no image, by ending, and what is hidden; depth: where not 0, what lies at another depth below the
 * folder, whose path has n bytes without a slash at its end. */
static void keep_images(stk_objects *objects, size_t from, size_t n_folder, int depth)
{
    size_t n = from;
    for (size_t i = from; i < objects->n; i++) {
        stk_object *o = &objects->object[i];
        int n_slashes = 0;
        for (const char *p = o->path + n_folder; *p; p++)
            n_slashes += *p == '/';
        bool keep = stk_is_image_name(strrchr(o->path, '/') + 1) && !strstr(o->path + n_folder, "/.");
        if (keep && (depth == 0 || n_slashes == depth))
            objects->object[n++] = *o;
        else
            free(o->path);
    }
    objects->n = n;
}

static size_t length_without_slash(const char *path)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    return n;
}

/* By folder, then by name: a slash comes before every other character. */
static int compare_by_folder(const void *a, const void *b)
{
    const unsigned char *p = (const unsigned char *)((const stk_object *)a)->path;
    const unsigned char *q = (const unsigned char *)((const stk_object *)b)->path;
    while (*p && *p == *q) {
        p++;
        q++;
    }
    int x = *p == '/' ? 1 : *p, y = *q == '/' ? 1 : *q;
    return x - y;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const stk_object *)a)->path, ((const stk_object *)b)->path);
}

static stk_status find_one(const char *path, stk_objects *out)
{
    size_t before = out->n;
    if (!path || !stk_is_remote(path))
        return stk_fail(STK_INVALID, "'%s' is no address, and others are: files are all local, or all remote",
                        path ? path : "");
    STK_RETURN_IF_ERROR(stk_objects_find(path, out));
    bool is_folder = out->n > before + 1 || strcmp(out->object[before].path, path) != 0;
    if (is_folder && !stk_objects_is_pattern(path)) keep_images(out, before, length_without_slash(path), 0);
    return out->n > before ? STK_OK : stk_fail(STK_INVALID, "folder '%s' holds no JPEG, PNG or WebP file", path);
}

static void remove_repetitions(stk_objects *objects)
{
    size_t n = 0;
    for (size_t i = 0; i < objects->n; i++) {
        if (n > 0 && !strcmp(objects->object[n - 1].path, objects->object[i].path))
            free(objects->object[i].path);
        else
            objects->object[n++] = objects->object[i];
    }
    objects->n = n;
}

/* --- opening --- */

static stk_status set_labels(objects_source *s, stk_labels labels, const char *labels_path)
{
    stk_names names = {.n = s->objects.n};
    stk_status status = STK_OK;
    if (labels == STK_LABELS_NONE) return STK_OK;
    names.name = calloc(names.n ? names.n : 1, sizeof(*names.name));
    if (!names.name) return stk_fail_memory(names.n * sizeof(*names.name));
    for (size_t i = 0; i < names.n; i++)
        names.name[i] = s->objects.object[i].path;
    status = labels == STK_LABELS_BY_FOLDER ? stk_labels_by_folder(&names, &s->labels)
                                            : stk_labels_from_file(&names, labels_path, &s->labels);
    free(names.name);
    return status;
}

static stk_status finish(objects_source *s, stk_labels labels, const char *labels_path, stk_source **out)
{
    STK_RETURN_IF_ERROR(stk_objects_start(&s->objects));
    STK_RETURN_IF_ERROR(set_labels(s, labels, labels_path));
    s->base = (stk_source){.class = &class_objects,
                           .n_records = (int64_t)s->objects.n,
                           .is_far = true,
                           .n_files = (int64_t)s->objects.n,
                           .n_fields = labels == STK_LABELS_NONE ? 1 : 2,
                           .class_names = (const char *const *)s->labels.class_name,
                           .n_classes = s->labels.n_classes};
    s->base.field[0] = (stk_source_field){"image", {.kind = STK_FIELD_ENCODED}};
    s->base.field[1] = (stk_source_field){"label", {STK_FIELD_ARRAY, stk_desc_make(STK_I32, (stk_shape){0})}};
    *out = &s->base;
    return STK_OK;
}

stk_status stk_source_open_objects(const char *const *paths, int n_paths, stk_labels labels, const char *labels_path,
                                   stk_source **out)
{
    stk_status status = STK_OK;
    if (labels == STK_LABELS_FROM_FILE && !labels_path) return stk_fail(STK_INVALID, "the file of labels is missing");
    objects_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    for (int i = 0; i < n_paths; i++)
        STK_TRY(find_one(paths[i], &s->objects));
    qsort(s->objects.object, s->objects.n, sizeof(*s->objects.object), compare);
    remove_repetitions(&s->objects);
    STK_TRY(finish(s, labels, labels_path, out));
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}

stk_status stk_source_open_object_folder(const char *folder, stk_source **out)
{
    stk_status status;
    objects_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    STK_TRY(stk_objects_below(folder, &s->objects));
    keep_images(&s->objects, 0, length_without_slash(folder), 2);
    if (s->objects.n == 0)
        STK_TRY(stk_fail(STK_NOT_FOUND, "'%s' has no folder of JPEG, PNG or WebP files: each class of images needs one",
                         folder));
    qsort(s->objects.object, s->objects.n, sizeof(*s->objects.object), compare_by_folder);
    STK_TRY(finish(s, STK_LABELS_BY_FOLDER, NULL, out));
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}
