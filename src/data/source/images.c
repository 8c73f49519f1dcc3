/* A folder of images with one sub-folder a class. Classes are sorted by name, files within a class too, both by bytes;
 * JPEG, PNG and WebP by ending, in any case; hidden and other files are left out. Names are kept in one block, since a
 * folder may hold millions. Files are opened only when a record is read.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/remote/http.h"
#include "data/source/fields.h"
#include "data/source/keys.h"
#include "data/source/mcu_index.h"
#include "data/source/paths.h"
#include "data/source/records.h"
#include "data/source/source_list.h"

typedef struct images_source {
    stk_source base;
    char *folder;
    char **class_name;
    char *names; /* file names, each ended by 0 */
    size_t names_n, names_capacity;
    size_t *name_at; /* by record: offset into names */
    int64_t records_capacity;
    int64_t *class_end; /* by class: one past its last record */
    stk_entry_points points;
} images_source;

static stk_status add_name(images_source *s, const char *name)
{
    size_t n = strlen(name) + 1;
    if (s->names_n + n > s->names_capacity) {
        size_t grown = 2 * s->names_capacity + n + 65536;
        char *p = realloc(s->names, grown);
        if (!p) return stk_fail_memory(grown);
        s->names = p;
        s->names_capacity = grown;
    }
    if (s->base.n_records == s->records_capacity) {
        int64_t grown = 2 * s->records_capacity + 4096;
        size_t *p = realloc(s->name_at, (size_t)grown * sizeof(*p));
        if (!p) return stk_fail_memory((size_t)grown * sizeof(*p));
        s->name_at = p;
        s->records_capacity = grown;
    }
    s->name_at[s->base.n_records++] = s->names_n;
    memcpy(s->names + s->names_n, name, n);
    s->names_n += n;
    return STK_OK;
}

/* The files of class i. */
static stk_status scan_class(images_source *s, int64_t i)
{
    char path[4096];
    stk_names names;
    stk_status status;
    int64_t before = s->base.n_records;
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), s->folder, s->class_name[i]));
    STK_RETURN_IF_ERROR(stk_dir_list(path, &names));
    status = STK_OK;
    for (size_t k = 0; k < names.n; k++)
        if (stk_is_image_name(names.name[k])) STK_TRY(add_name(s, names.name[k]));
    if (s->base.n_records == before)
        STK_TRY(stk_fail(STK_INVALID, "class folder '%s' holds no JPEG, PNG or WebP file", path));
    s->class_end[i] = s->base.n_records;
done:
    stk_names_free(&names);
    return status;
}

/* The sub-folders, sorted. */
static stk_status scan_classes(images_source *s)
{
    stk_names names;
    stk_status status;
    STK_RETURN_IF_ERROR(stk_dir_list(s->folder, &names));
    s->class_name = calloc(names.n + 1, sizeof(*s->class_name));
    s->class_end = calloc(names.n + 1, sizeof(*s->class_end));
    if (!s->class_name || !s->class_end) STK_TRY(stk_fail_memory(names.n * sizeof(*s->class_name)));
    status = STK_OK;
    for (size_t k = 0; k < names.n; k++) {
        char path[4096];
        if (names.name[k][0] == '.') continue;
        STK_TRY(stk_path_join(path, sizeof(path), s->folder, names.name[k]));
        if (!stk_path_is_dir(path)) continue;
        s->class_name[s->base.n_classes++] = names.name[k];
        names.name[k] = NULL; /* taken */
    }
    if (s->base.n_classes == 0)
        STK_TRY(stk_fail(STK_INVALID, "folder '%s' has no sub-folder: each class of images needs one", s->folder));
    for (int64_t i = 0; i < s->base.n_classes; i++)
        STK_TRY(scan_class(s, i));
done:
    stk_names_free(&names);
    return status;
}

static int64_t class_of(const images_source *s, int64_t i_record)
{
    int64_t low = 0, high = s->base.n_classes - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (i_record < s->class_end[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void make_path(const images_source *s, int64_t i_record, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s/%s/%s", s->folder, s->class_name[class_of(s, i_record)],
             s->names + s->name_at[i_record]);
}

/* Without the image no file is read. */
static stk_status read_some(const stk_source *source, int64_t i_record, unsigned fields, stk_scratch *scratch,
                            stk_item *item)
{
    const images_source *s = (const images_source *)source;
    char path[4096];
    int32_t *label = stk_scratch_get(&scratch[1], sizeof(*label));
    size_t n;
    if (!label) return STK_NO_MEMORY;
    *label = (int32_t)class_of(s, i_record);
    item[1] = (stk_item){source->field[1].type, label, sizeof(*label)};
    if (!(fields & 1)) return STK_OK;
    make_path(s, i_record, path, sizeof(path));
    stk_file_times times;
    STK_RETURN_IF_ERROR(stk_file_read_stamped(path, &scratch[0], &n, &times));
    item[0] = (stk_item){source->field[0].type, scratch[0].data, n};
    stk_entry_points_give(&s->points, i_record, path, (stk_span){scratch[0].data, n}, times, &scratch[0].jpeg);
    return STK_OK;
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    return read_some(source, i_record, UINT_MAX, scratch, item);
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    char path[4096];
    make_path((const images_source *)source, i_record, path, sizeof(path));
    snprintf(out, out_bytes, "'%s'", path);
}

static bool fetch(const stk_source *source, int64_t i_record)
{
    char path[4096];
    make_path((const images_source *)source, i_record, path, sizeof(path));
    stk_file_fetch(path);
    return true;
}

static void close_source(stk_source *source)
{
    images_source *s = (images_source *)source;
    stk_entry_points_close(&s->points); /* first: it may have to write names */
    for (int64_t i = 0; s->class_name && i < source->n_classes; i++)
        free(s->class_name[i]);
    free(s->class_name);
    free(s->class_end);
    free(s->names);
    free(s->name_at);
    free(s->folder);
    free(s);
}

static stk_entry_points *get_points(stk_source *source)
{
    return &((images_source *)source)->points;
}

static size_t held_bytes(const stk_source *source)
{
    const images_source *s = (const images_source *)source;
    return s->names_capacity + (size_t)s->records_capacity * sizeof(*s->name_at) + stk_entry_points_bytes(&s->points);
}

static bool stamp_of(const stk_source *source, int64_t i_record, uint64_t *n_bytes, int64_t *stamp)
{
    char path[4096];
    make_path((const images_source *)source, i_record, path, sizeof(path));
    return stk_file_stamp(path, n_bytes, stamp);
}

static const stk_source_class class_images = {.name = "images",
                                              .read = read_record,
                                              .read_some = read_some,
                                              .name_record = name_record,
                                              .fetch = fetch,
                                              .close = close_source,
                                              .points = get_points,
                                              .held_bytes = held_bytes,
                                              .stamp = stamp_of};

stk_status stk_source_open_images(const char *folder, stk_source **out)
{
    images_source *s = calloc(1, sizeof(*s));
    stk_status status;
    if (!s) return stk_fail_memory(sizeof(*s));
    s->base.class = &class_images;
    s->folder = strdup(folder);
    if (!s->folder) STK_TRY(stk_fail_memory(strlen(folder)));
    STK_TRY(scan_classes(s));
    s->base.n_files = s->base.n_records;
    s->base.class_names = (const char *const *)s->class_name;
    s->base.n_fields = 2;
    s->base.field[0] = (stk_source_field){"image", {.kind = STK_FIELD_ENCODED}};
    s->base.field[1] = (stk_source_field){"label", {STK_FIELD_ARRAY, stk_desc_make(STK_I32, (stk_shape){0})}};
    STK_TRY(stk_entry_points_open(s->folder, &s->points, s->base.note, sizeof(s->base.note)));
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}

stk_status stk_source_open_image_folder(const char *folder, stk_source **out)
{
    return stk_is_pack(folder)     ? stk_source_open_pack(folder, out)
           : stk_is_remote(folder) ? stk_source_open_object_folder(folder, out)
                                   : stk_source_open_images(folder, out);
}

/* --- settings --- */

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    return stk_yaml_locate(settings, stk_source_open_image_folder(settings->text, out));
}

static bool is_by_class(const stk_yaml_node *settings)
{
    (void)settings;
    return true;
}

const stk_source_kind stk_source_kind_images = {
    .key = {.name = "images",
            .type = STK_KEY_TEXT,
            .is_path = true,
            .doc = "A folder with one sub-folder for each class, of JPEG, PNG and WebP files."},
    .open = open_settings,
    .is_by_class = is_by_class};
