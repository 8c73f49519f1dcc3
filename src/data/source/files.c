/* Image files by list, pattern or plain folder, sorted by their whole paths. Files are opened only when a record is
 * read. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/remote/http.h"
#include "data/source/fields.h"
#include "data/source/keys.h"
#include "data/source/labels.h"
#include "data/source/mcu_index.h"
#include "data/source/paths.h"
#include "data/source/records.h"
#include "data/source/source_list.h"

enum { MOST_DEPTH = 32 }; /* of folders: links may go in circles */

typedef struct files_source {
    stk_source base;
    stk_names files;
    stk_file_labels labels;
    stk_entry_points points;
} files_source;

/* True for a folder. Most file systems tell with the name, which saves asking for each file. */
static bool is_folder(const struct dirent *entry, const char *path)
{
    if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) return stk_path_is_dir(path);
    return entry->d_type == DT_DIR;
}

/* All images of a folder, at any depth, in no order. */
static stk_status add_folder(const char *folder, int depth, stk_names *out, size_t *capacity)
{
    char path[4096];
    stk_status status = STK_OK;
    if (depth > MOST_DEPTH) return stk_fail(STK_INVALID, "folder '%s' is nested too deep", folder);
    DIR *dir = opendir(folder);
    if (!dir) return stk_fail(STK_IO, "cannot read folder '%s': %s", folder, stk_errno_text(errno));
    for (struct dirent *entry; (errno = 0, entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        STK_TRY(stk_path_join(path, sizeof(path), folder, entry->d_name));
        if (is_folder(entry, path))
            STK_TRY(add_folder(path, depth + 1, out, capacity));
        else if (stk_is_image_name(entry->d_name))
            STK_TRY(stk_names_add(out, capacity, path));
    }
    if (errno) status = stk_fail(STK_IO, "cannot read folder '%s': %s", folder, stk_errno_text(errno));
done:
    closedir(dir);
    return status;
}

stk_status stk_folder_images(const char *folder, stk_names *out)
{
    size_t capacity = 0;
    STK_RETURN_IF_ERROR(add_folder(folder, 1, out, &capacity));
    if (out->n == 0) return stk_fail(STK_INVALID, "folder '%s' holds no JPEG, PNG or WebP file", folder);
    return STK_OK;
}

static stk_status find_files(const char *const *paths, int n_paths, stk_names *out)
{
    stk_names given;
    stk_status status = STK_OK;
    size_t capacity = 0;
    STK_RETURN_IF_ERROR(stk_paths_expand(paths, n_paths, true, &given));
    for (size_t i = 0; i < given.n; i++) {
        size_t before = out->n;
        if (!stk_path_is_dir(given.name[i])) {
            if (!stk_path_exists(given.name[i]))
                STK_TRY(stk_fail(STK_NOT_FOUND, "there is no file or folder '%s'", given.name[i]));
            STK_TRY(stk_names_add(out, &capacity, given.name[i]));
            continue;
        }
        STK_TRY(add_folder(given.name[i], 1, out, &capacity));
        if (out->n == before)
            STK_TRY(stk_fail(STK_INVALID, "folder '%s' holds no JPEG, PNG or WebP file", given.name[i]));
    }
    stk_names_sort(out);
done:
    stk_names_free(&given);
    return status;
}

/* Without the image no file is read. */
static stk_status read_some(const stk_source *source, int64_t i_record, unsigned fields, stk_scratch *scratch,
                            stk_item *item)
{
    const files_source *s = (const files_source *)source;
    size_t n;
    stk_file_times times;
    if (source->n_fields > 1)
        item[1] = (stk_item){source->field[1].type, &s->labels.label[i_record], sizeof(s->labels.label[0])};
    if (!(fields & 1)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_file_read_stamped(s->files.name[i_record], &scratch[0], &n, &times));
    item[0] = (stk_item){source->field[0].type, scratch[0].data, n};
    stk_entry_points_give(&s->points, i_record, s->files.name[i_record], (stk_span){scratch[0].data, n}, times,
                          &scratch[0].jpeg);
    return STK_OK;
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    return read_some(source, i_record, UINT_MAX, scratch, item);
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "'%s'", ((const files_source *)source)->files.name[i_record]);
}

static bool fetch(const stk_source *source, int64_t i_record)
{
    stk_file_fetch(((const files_source *)source)->files.name[i_record]);
    return true;
}

static void close_source(stk_source *source)
{
    files_source *s = (files_source *)source;
    stk_entry_points_close(&s->points); /* first: it may have to write names */
    stk_names_free(&s->files);
    stk_labels_free(&s->labels);
    free(s);
}

static stk_entry_points *get_points(stk_source *source)
{
    return &((files_source *)source)->points;
}

static stk_status find_index(files_source *s, const char *const *paths, int n_paths)
{
    if (n_paths != 1 || !stk_path_is_dir(paths[0])) return STK_OK;
    return stk_entry_points_open(paths[0], &s->points, s->base.note, sizeof(s->base.note));
}

static size_t held_bytes(const stk_source *source)
{
    const files_source *s = (const files_source *)source;
    size_t n = stk_entry_points_bytes(&s->points);
    for (size_t i = 0; i < s->files.n; i++)
        n += strlen(s->files.name[i]) + 1 + sizeof(s->files.name[i]) + 2 * sizeof(size_t);
    return n;
}

static bool stamp_of(const stk_source *source, int64_t i_record, uint64_t *n_bytes, int64_t *stamp)
{
    return stk_file_stamp(((const files_source *)source)->files.name[i_record], n_bytes, stamp);
}

static const stk_source_class class_files = {.name = "files",
                                             .read = read_record,
                                             .read_some = read_some,
                                             .name_record = name_record,
                                             .fetch = fetch,
                                             .close = close_source,
                                             .points = get_points,
                                             .held_bytes = held_bytes,
                                             .stamp = stamp_of};

stk_status stk_source_open_files(const char *const *paths, int n_paths, stk_labels labels, const char *labels_path,
                                 stk_source **out)
{
    stk_status status = STK_OK;
    if (labels == STK_LABELS_FROM_FILE && !labels_path) return stk_fail(STK_INVALID, "the file of labels is missing");
    files_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    STK_TRY(find_files(paths, n_paths, &s->files));
    if (labels == STK_LABELS_BY_FOLDER) STK_TRY(stk_labels_by_folder(&s->files, &s->labels));
    if (labels == STK_LABELS_FROM_FILE) STK_TRY(stk_labels_from_file(&s->files, labels_path, &s->labels));
    s->base = (stk_source){.class = &class_files,
                           .n_records = (int64_t)s->files.n,
                           .n_files = (int64_t)s->files.n,
                           .n_fields = labels == STK_LABELS_NONE ? 1 : 2,
                           .class_names = (const char *const *)s->labels.class_name,
                           .n_classes = s->labels.n_classes};
    s->base.field[0] = (stk_source_field){"image", {.kind = STK_FIELD_ENCODED}};
    s->base.field[1] = (stk_source_field){"label", {STK_FIELD_ARRAY, stk_desc_make(STK_I32, (stk_shape){0})}};
    STK_TRY(find_index(s, paths, n_paths));
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}

stk_status stk_source_open_paths(const char *const *paths, int n_paths, stk_labels labels, const char *labels_path,
                                 stk_source **out)
{
    bool is_remote = false;
    if (n_paths == 1 && labels != STK_LABELS_FROM_FILE && paths && paths[0] && stk_is_pack(paths[0]))
        return stk_source_open_pack(paths[0], out);
    for (int i = 0; paths && i < n_paths; i++)
        is_remote = is_remote || (paths[i] && stk_is_remote(paths[i]));
    if (is_remote) return stk_source_open_objects(paths, n_paths, labels, labels_path, out);
    return stk_source_open_files(paths, n_paths, labels, labels_path, out);
}

/* --- settings --- */

static const stk_key keys[] = {
    STK_SOURCE_PATHS("paths",
                     "Files, folders (all their images, at any depth) and patterns like photos/*.jpg; sorted by name."),
    STK_SOURCE_BY_FOLDER, STK_SOURCE_LABELS, STK_KEY_END};

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    const char **paths, *labels_path;
    stk_labels labels;
    int n;
    STK_RETURN_IF_ERROR(stk_source_read_labels(settings, &labels, &labels_path));
    STK_RETURN_IF_ERROR(stk_yaml_texts(stk_yaml_get(settings, "paths"), &paths, &n));
    stk_status status = stk_yaml_locate(settings, stk_source_open_paths(paths, n, labels, labels_path, out));
    free(paths);
    return status;
}

static bool is_by_class(const stk_yaml_node *settings)
{
    return stk_yaml_get(settings, "by") != NULL;
}

const stk_source_kind stk_source_kind_files = {.key = {.name = "files",
                                                       .type = STK_KEY_MAP,
                                                       .keys = keys,
                                                       .doc = "JPEG, PNG and WebP files by list, pattern or folder."},
                                               .open = open_settings,
                                               .is_by_class = is_by_class};
