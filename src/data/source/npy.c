/* Arrays of NumPy: .npy files and the members of .npz files. A sample is a row of each. Arrays of moderate size are
 * read into memory; of larger ones each row is read when it is needed. Nothing is mapped: a mapped file that somebody
 * cuts short while it is in use would end the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/codec/npy.h"
#include "data/codec/zip.h"
#include "data/remote/remote.h"
#include "data/source/fields.h"
#include "data/source/keys.h"
#include "data/source/records.h"
#include "data/source/source_list.h"

enum { MOST_INFLATED_GIB = 16 };

typedef struct npy_array {
    char *field; /* its name in a sample */
    stk_input file;
    char *title;    /* "'x.npz', array 'a'" */
    uint8_t *bytes; /* the elements in memory; NULL: they are read from the file */
    uint8_t *whole; /* what was allocated for bytes */
    uint64_t data_at;
    stk_tensor_desc desc; /* of the whole array, as it is read */
    stk_npy_stored stored;
    size_t row_bytes, stored_bytes; /* of a row, as it is read and in the file */
} npy_array;

typedef struct npy_source {
    stk_source base;
    npy_array array[STK_MAX_FIELDS];
    int n_arrays;
} npy_source;

/* --- opening one array --- */

/* Reads the header that lies at byte `at` of the file, in a member of n bytes. */
static stk_status read_header(npy_array *a, uint64_t at, uint64_t n)
{
    uint8_t *start = malloc(STK_NPY_MOST_HEADER);
    stk_status status;
    if (!start) return stk_fail_memory(STK_NPY_MOST_HEADER);
    size_t n_start = n < STK_NPY_MOST_HEADER ? (size_t)n : STK_NPY_MOST_HEADER;
    STK_TRY(stk_input_read(&a->file, at, start, n_start));
    STK_TRY(stk_npy_parse((stk_span){start, n_start}, n, &a->desc, &a->data_at, &a->stored));
    a->data_at += at;
done:
    free(start);
    return status;
}

/* Elements that lie as they are in the file. */
static stk_status open_plain(npy_array *a, uint64_t at, uint64_t n)
{
    STK_RETURN_IF_ERROR(read_header(a, at, n));
    uint64_t n_data = n - (a->data_at - at);
    /* What does not fit is read row by row, too. */
    if (n_data > STK_IN_MEMORY_BYTES || stk_memory_hold(n_data) != STK_OK) return STK_OK;
    a->bytes = a->whole = stk_array_get(n_data);
    if (!a->bytes) return stk_fail_memory(n_data);
    return stk_input_read(&a->file, a->data_at, a->bytes, n_data);
}

static stk_status open_member(npy_array *a, const stk_zip_member *member)
{
    bool is_large = member->n > STK_IN_MEMORY_BYTES || member->n > stk_memory_left(stk_memory_in_use());
    if (!member->deflated && is_large) {
        uint64_t at;
        STK_RETURN_IF_ERROR(stk_zip_locate(&a->file, member, &at));
        return open_plain(a, at, member->n);
    }
    if (member->n > (uint64_t)MOST_INFLATED_GIB << 30)
        return stk_fail(STK_UNSUPPORTED, "it inflates to more than %d GiB: save it uncompressed", MOST_INFLATED_GIB);
    STK_RETURN_IF_ERROR(stk_memory_hold(member->n));
    a->whole = stk_array_get(member->n);
    if (!a->whole) return stk_fail_memory(member->n);
    STK_RETURN_IF_ERROR(stk_zip_read(&a->file, member, a->whole));
    size_t n_start = member->n < STK_NPY_MOST_HEADER ? (size_t)member->n : STK_NPY_MOST_HEADER;
    STK_RETURN_IF_ERROR(stk_npy_parse((stk_span){a->whole, n_start}, member->n, &a->desc, &a->data_at, &a->stored));
    a->bytes = a->whole + a->data_at;
    return STK_OK;
}

static stk_status check_rows(npy_array *a)
{
    if (a->desc.shape.rank == 0) return stk_fail(STK_INVALID, "it is a single number, not an array of samples");
    if (a->desc.shape.dim[0] == 0) return stk_fail(STK_INVALID, "it has no rows");
    if (a->bytes) stk_input_close(&a->file);
    return STK_OK;
}

/* member NULL: a plain .npy file. name: of the array in its .npz file. */
static stk_status open_array(const char *path, const stk_zip_member *member, const char *name, npy_array *a)
{
    stk_status status;
    size_t n = strlen(path) + (name ? strlen(name) : 0) + 16;
    STK_RETURN_IF_ERROR(stk_open_input(path, true, &a->file));
    if (!(a->title = malloc(n))) return stk_fail_memory(n);
    if (name)
        snprintf(a->title, n, "'%s', array '%s'", path, name);
    else
        snprintf(a->title, n, "'%s'", path);
    STK_TRY(member ? open_member(a, member) : open_plain(a, 0, a->file.n_bytes));
    STK_TRY(check_rows(a));
done:
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "%s: ", a->title);
}

/* --- the source --- */

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const npy_source *s = (const npy_source *)source;
    for (int i = 0; i < source->n_fields; i++) {
        const npy_array *a = &s->array[i];
        uint64_t at = (uint64_t)i_record * a->stored_bytes;
        bool is_wide = a->stored != STK_NPY_AS_IS;
        size_t n_read = a->bytes ? 0 : a->stored_bytes, n_wide = is_wide ? a->row_bytes : 0;
        uint8_t *place = n_read + n_wide ? stk_scratch_get(&scratch[i], n_wide + n_read + 1) : NULL;
        if (n_read + n_wide && !place) return STK_NO_MEMORY;
        uint8_t *row = a->bytes ? a->bytes + at : place + n_wide;
        stk_status status = a->bytes ? STK_OK : stk_input_read(&a->file, a->data_at + at, row, a->stored_bytes);
        if (status == STK_OK && is_wide)
            status = stk_npy_widen(a->stored, row, stk_shape_count(source->field[i].type.desc.shape), place);
        if (status != STK_OK) return stk_fail_prefix(status, "%s, row %lld: ", a->title, (long long)i_record);
        item[i] = (stk_item){source->field[i].type, is_wide ? place : row, a->row_bytes};
    }
    return STK_OK;
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s, row %lld", ((const npy_source *)source)->array[0].title, (long long)i_record);
}

static void close_source(stk_source *source)
{
    npy_source *s = (npy_source *)source;
    for (int i = 0; i < STK_MAX_FIELDS; i++) {
        stk_input_close(&s->array[i].file);
        free(s->array[i].whole);
        free(s->array[i].title);
        free(s->array[i].field);
    }
    free(s);
}

static void prefetch(const stk_source *source, int64_t i_record)
{
    const npy_source *s = (const npy_source *)source;
    for (int i = 0; i < source->n_fields; i++)
        if (s->array[i].bytes)
            stk_prefetch_bytes(s->array[i].bytes + (size_t)i_record * s->array[i].stored_bytes,
                               s->array[i].stored_bytes);
}

static size_t held_bytes(const stk_source *source)
{
    return (size_t)source->n_bytes;
}

static const stk_source_class class_npy = {.name = "npy",
                                           .read = read_record,
                                           .name_record = name_record,
                                           .close = close_source,
                                           .prefetch = prefetch,
                                           .held_bytes = held_bytes};

/* The name of an array is its member's without ".npy". */
static bool is_member(const stk_zip_member *member, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(member->name, name, n) && (!member->name[n] || !strcmp(member->name + n, ".npy"));
}

static stk_status fail_no_array(const char *path, const stk_zip *zip, const char *name)
{
    char list[256] = "";
    size_t n = 0;
    for (size_t i = 0; i < zip->n_members && n + 1 < sizeof(list); i++)
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s'%.*s'", i ? ", " : "",
                              (int)strcspn(zip->member[i].name, "."), zip->member[i].name);
    if (!name) return stk_fail(STK_INVALID, "'%s' holds no array", path);
    return stk_fail(STK_NOT_FOUND, "'%s' has no array '%s'; it has %s", path, name, n ? list : "none");
}

/* "x.npz:name": the length of the path before the colon; 0 where there is none. */
static size_t find_colon(const char *path)
{
    const char *colon = strstr(path, ".npz:");
    return colon ? (size_t)(colon - path) + 4 : 0;
}

/* Adds one array under the name of its field, which is copied. */
static stk_status add_array(npy_source *s, const char *path, const stk_zip_member *member, const char *name,
                            const char *field)
{
    if (s->n_arrays == STK_MAX_FIELDS)
        return stk_fail(STK_INVALID, "'%s' has more than %d arrays: name those to use", path, STK_MAX_FIELDS);
    npy_array *a = &s->array[s->n_arrays++];
    if (!(a->field = strdup(field))) return stk_fail_memory(strlen(field));
    return open_array(path, member, name, a);
}

/* One array of a .npz file under the name `field`, or with name NULL all of them under their own. */
static stk_status open_npz(npy_source *s, const char *path, const char *name, const char *field)
{
    stk_input input;
    stk_zip zip = {0};
    stk_status status;
    STK_RETURN_IF_ERROR(stk_open_input(path, true, &input));
    status = stk_zip_open(&input, &zip);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
    int n_before = s->n_arrays;
    for (size_t i = 0; i < zip.n_members && (!name || s->n_arrays == n_before); i++) {
        stk_zip_member *member = &zip.member[i];
        size_t n = strlen(member->name);
        if (name && !is_member(member, name)) continue;
        if (n > 4 && !strcmp(member->name + n - 4, ".npy")) member->name[n - 4] = 0;
        STK_TRY(add_array(s, path, member, member->name, field ? field : member->name));
    }
    if (s->n_arrays == n_before) STK_TRY(fail_no_array(path, &zip, name));
    if (field && s->n_arrays > n_before + 1)
        STK_TRY(
            stk_fail(STK_INVALID, "'%s' has several arrays: say which, as in '%s:%s'", path, path, zip.member[0].name));
done:
    stk_zip_free(&zip);
    stk_input_close(&input);
    return status;
}

static bool is_npz(const char *path)
{
    size_t n = strlen(path);
    return n >= 4 && !strcmp(path + n - 4, ".npz");
}

static stk_status open_field(npy_source *s, const stk_npy_field *field)
{
    const char *path = field->path;
    size_t n = find_colon(path);
    if (n == 0 && is_npz(path)) return open_npz(s, path, NULL, field->name);
    if (n == 0) return add_array(s, path, NULL, NULL, field->name ? field->name : "image");
    char *file = strndup(path, n);
    if (!file) return stk_fail_memory(n);
    stk_status status = open_npz(s, file, path + n + 1, field->name ? field->name : path + n + 1);
    free(file);
    return status;
}

static stk_status set_fields(npy_source *s)
{
    stk_array_field fields[STK_MAX_FIELDS];
    int64_t n_rows = s->array[0].desc.shape.dim[0];
    for (int i = 0; i < s->n_arrays; i++) {
        npy_array *a = &s->array[i];
        stk_shape *shape = &a->desc.shape, row = {.rank = shape->rank - 1};
        memcpy(row.dim, shape->dim + 1, sizeof(row.dim) - sizeof(row.dim[0]));
        fields[i] = (stk_array_field){.name = a->field, .dtype = a->desc.dtype, .sample = row};
        if (shape->dim[0] != n_rows)
            return stk_fail(STK_MISMATCH, "%s has %lld rows, %s has %lld", a->title, (long long)shape->dim[0],
                            s->array[0].title, (long long)n_rows);
    }
    STK_RETURN_IF_ERROR(stk_source_set_fields(&s->base, n_rows, fields, s->n_arrays));
    for (int i = 0; i < s->n_arrays; i++) {
        npy_array *a = &s->array[i];
        a->row_bytes = stk_desc_bytes(s->base.field[i].type.desc);
        a->stored_bytes =
            a->row_bytes / stk_dtype_bytes(a->desc.dtype) * stk_npy_stored_bytes(a->stored, a->desc.dtype);
        if (a->bytes) s->base.n_bytes += n_rows * (int64_t)a->stored_bytes;
    }
    return STK_OK;
}

stk_status stk_source_open_npy(const stk_npy_field *fields, int n_fields, stk_source **out)
{
    stk_status status = STK_OK;
    if (n_fields < 1 || n_fields > STK_MAX_FIELDS || !fields)
        return stk_fail(STK_INVALID, "%d fields: 1 to %d are possible", n_fields, STK_MAX_FIELDS);
    npy_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    for (int i = 0; i < STK_MAX_FIELDS; i++)
        s->array[i].file.fd = -1;
    for (int i = 0; i < n_fields; i++) {
        if (!fields[i].path) STK_TRY(stk_fail(STK_INVALID, "the path of field %d is missing", i));
        if (!fields[i].name && n_fields > 1) STK_TRY(stk_fail(STK_INVALID, "the name of field %d is missing", i));
        STK_TRY(open_field(s, &fields[i]));
    }
    STK_TRY(set_fields(s));
    s->base.class = &class_npy;
    *out = &s->base;
    return STK_OK;
done:
    close_source(&s->base);
    return status;
}

/* --- settings --- */

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    stk_npy_field fields[STK_SOURCE_MOST_NAMES];
    int n = 0;
    STK_RETURN_IF_ERROR(stk_source_check_names(settings));
    for (const stk_yaml_node *child = settings->child; child; child = child->next)
        fields[n++] = (stk_npy_field){child->key, child->text};
    if (n == 1 && !strcmp(fields[0].name, "all")) fields[0].name = NULL;
    return stk_yaml_locate(settings, stk_source_open_npy(fields, n, out));
}

const stk_source_kind stk_source_kind_npy = {
    .key =
        {.name = "npy",
         .type = STK_KEY_NAMED,
         .element = &stk_source_path_key,
         .alone = "all",
         .doc =
             "Arrays of NumPy, a sample being a row: {image: x.npy, label: y.npy}, {image: a.npz:x, label: a.npz:y}; a "
             "path alone is one .npy, the image, or all arrays of a .npz under their own names."},
    .open = open_settings};
