/* See recipe/data_record.h. */
#include "recipe/data_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_size.h"
#include "data/codec/image.h"
#include "data/source/blank.h"
#include "data/source/reader.h"

enum { MOST_CLASSES = 1000000, VERSION = 1, MOST_TREE_BYTES = 512 << 20 };
/* A record of one sample; larger ones are damage, and would be asked for as memory. */
static const size_t MOST_BYTES = (size_t)1 << 32;

static const char *const part_name[STK_N_PARTS] = {"train", "valid", "test"};

typedef struct recorded_part {
    int64_t n_records;
    bool is_staged;
    int n_fields;
    stk_blank_field field[STK_MAX_FIELDS];
    const char **class_names; /* [n_classes], borrowed from the JSON; NULL: none */
    int64_t n_classes;
} recorded_part;

struct stk_data_record {
    json_t *root;
    recorded_part part[STK_N_PARTS];
};

/* --- writing --- */

static bool has_image(const stk_dataset *dataset)
{
    for (int i = 0; i < dataset->source->n_fields; i++)
        if (!strcmp(dataset->source->field[i].name, "image")) return true;
    return false;
}

static bool can_record(const stk_recipe *recipe, int i_part, const stk_dataset *dataset)
{
    const stk_recipe_part *part = &recipe->part[i_part];
    return !recipe->pad && (!has_image(dataset) || !(part->pack || part->windows || part->unbatch));
}

/* The size of the first record's image; 0 where it cannot be told, which harms nobody who needs no size. */
static stk_status measure_first(const stk_dataset *dataset, int i_field, int64_t *height, int64_t *width)
{
    stk_reader reader = {0};
    stk_item item[STK_MAX_FIELDS];
    stk_stage_key key = {.epoch = 0};
    stk_memory *own;
    *height = *width = 0;
    STK_RETURN_IF_ERROR(stk_dataset_enter_memory(dataset, &own));
    stk_status status = stk_reader_read(&reader, dataset->source, 0, &key, item);
    if (status == STK_OK) status = stk_image_size((stk_span){item[i_field].data, item[i_field].n_bytes}, height, width);
    if (status != STK_OK) *height = *width = 0;
    stk_reader_free(&reader, dataset->source);
    stk_dataset_leave_memory(own);
    return status;
}

static json_t *print_field(const char *name, stk_dtype dtype, stk_shape shape)
{
    json_t *sides = json_array();
    for (int d = 0; sides && d < shape.rank; d++)
        if (json_array_append_new(sides, json_integer(shape.dim[d]))) {
            json_decref(sides);
            return NULL;
        }
    return json_pack("{s:s, s:s, s:o}", "name", name, "dtype", stk_dtype_name(dtype), "shape", sides);
}

/* NULL: not to be told, or out of memory, which is then in *lost. */
static json_t *print_source_field(const stk_dataset *dataset, int i, bool *lost)
{
    const stk_source_field *field = &dataset->source->field[i];
    int64_t height = 0, width = 0;
    if (field->type.kind == STK_FIELD_ARRAY)
        return stk_shape_known(field->type.desc.shape)
                   ? print_field(field->name, field->type.desc.dtype, field->type.desc.shape)
                   : NULL;
    const stk_field_type *last = stk_chain_type(&dataset->chain[i]);
    if (last->kind != STK_FIELD_ARRAY || !stk_shape_known(last->desc.shape))
        *lost |= measure_first(dataset, i, &height, &width) == STK_NO_MEMORY;
    return json_pack("{s:s, s:s, s:I, s:I}", "name", field->name, "dtype", "encoded", "height", (json_int_t)height,
                     "width", (json_int_t)width);
}

/* NULL: out of memory, or there is a field that cannot be told. */
static json_t *print_fields(const stk_dataset *dataset, bool is_staged, bool *lost)
{
    json_t *fields = json_array();
    for (int i = 0; fields && i < dataset->source->n_fields; i++) {
        const char *name = dataset->source->field[i].name;
        stk_tensor_desc desc;
        json_t *field = NULL;
        stk_status status = STK_OK;
        if (is_staged) status = stk_dataset_field(dataset, name, true, &desc.dtype, &desc.shape);
        *lost |= status == STK_NO_MEMORY;
        if (!is_staged)
            field = print_source_field(dataset, i, lost);
        else if (status == STK_OK && stk_shape_known(desc.shape))
            field = print_field(name, desc.dtype, desc.shape);
        /* Where memory was short the text says of what; nothing comes after it. */
        if (*lost) json_decref(field);
        if (*lost || !field || json_array_append_new(fields, field)) {
            json_decref(fields);
            return NULL;
        }
    }
    return fields;
}

static json_t *print_part(const stk_dataset *dataset, bool *lost)
{
    const char *const *names = NULL;
    bool is_staged = !has_image(dataset);
    int64_t n = stk_dataset_classes(dataset, &names);
    json_t *fields = print_fields(dataset, is_staged, lost), *classes = names ? json_array() : NULL;
    int bad = 0;
    for (int64_t i = 0; classes && i < n; i++)
        bad |= json_array_append_new(classes, json_string(names[i]));
    json_t *part = fields ? json_pack("{s:I, s:b, s:o}", "records", (json_int_t)stk_dataset_count(dataset), "staged",
                                      is_staged, "fields", fields)
                          : NULL;
    if (classes && part) bad |= json_object_set(part, "classes", classes);
    if (names && !classes) bad = 1;
    json_decref(classes);
    if (bad) json_decref(part);
    return bad ? NULL : part;
}

stk_status stk_data_record_print(const stk_recipe *recipe, const stk_dataset *const part[STK_N_PARTS], stk_text *out)
{
    unsigned mark = stk_json_mark();
    json_t *root = json_pack("{s:i}", "stoker_data", VERSION);
    bool ok = root != NULL, lost = false;
    for (int i = 0; i < STK_N_PARTS && ok; i++) {
        if (!part[i]) continue;
        json_t *object = can_record(recipe, i, part[i]) ? print_part(part[i], &lost) : NULL;
        ok = object && !json_object_set_new(root, part_name[i], object);
    }
    char *text = ok ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    if (text) stk_text_add(out, "%s", text);
    free(text);
    json_decref(root);
    if (lost) return STK_NO_MEMORY;
    if (stk_json_lost(mark)) return stk_fail_memory(1024);
    stk_error_clear(); /* What could not be told is no error. */
    return stk_text_status(out);
}

/* --- reading --- */

static stk_status fail_record(const char *name, const char *what)
{
    return stk_fail(STK_CORRUPT, "'%s' is damaged: %s; without it the data themselves are opened", name, what);
}

static stk_status parse_array(const char *name, json_t *field, stk_blank_field *out)
{
    const char *dtype = json_string_value(json_object_get(field, "dtype"));
    json_t *sides = json_object_get(field, "shape");
    stk_shape shape = {0};
    if (!json_is_array(sides) || json_array_size(sides) > STK_MAX_RANK) return fail_record(name, "a field's shape");
    for (size_t d = 0; d < json_array_size(sides); d++) {
        json_int_t side = json_integer_value(json_array_get(sides, d));
        if (side < 1) return fail_record(name, "a field's shape");
        shape.dim[shape.rank++] = side;
    }
    stk_dtype type;
    if (!dtype || !stk_dtype_from_name(dtype, &type)) return fail_record(name, "a field's dtype");
    out->type = (stk_field_type){.kind = STK_FIELD_ARRAY, .desc = stk_desc_make(type, shape)};
    bool can_be = stk_desc_check(out->type.desc) == STK_OK && stk_desc_bytes(out->type.desc) <= MOST_BYTES;
    return can_be ? STK_OK : fail_record(name, "a field's shape");
}

static stk_status parse_field(const char *name, json_t *field, stk_blank_field *out)
{
    const char *field_name = json_string_value(json_object_get(field, "name"));
    const char *dtype = json_string_value(json_object_get(field, "dtype"));
    if (!field_name || !field_name[0] || strlen(field_name) >= sizeof(out->name))
        return fail_record(name, "a field's name");
    strcpy(out->name, field_name);
    if (!dtype || strcmp(dtype, "encoded")) return parse_array(name, field, out);
    out->type = (stk_field_type){.kind = STK_FIELD_ENCODED};
    out->height = json_integer_value(json_object_get(field, "height"));
    out->width = json_integer_value(json_object_get(field, "width"));
    bool is_unknown = out->height == 0 && out->width == 0;
    if (!is_unknown && !stk_image_can_be(out->height, out->width)) return fail_record(name, "an image's size");
    return STK_OK;
}

static stk_status parse_classes(const char *name, json_t *classes, recorded_part *out)
{
    size_t n = json_array_size(classes);
    if (!classes) return STK_OK;
    if (n < 1 || n > MOST_CLASSES) return fail_record(name, "its classes");
    out->class_names = calloc(n, sizeof(*out->class_names));
    if (!out->class_names) return stk_fail_memory(n * sizeof(*out->class_names));
    for (size_t i = 0; i < n; i++)
        if (!(out->class_names[i] = json_string_value(json_array_get(classes, i))))
            return fail_record(name, "its classes");
    out->n_classes = (int64_t)n;
    return STK_OK;
}

/* Fields are asked for by their names. */
static bool is_twice(const recorded_part *part)
{
    for (int i = 0; i + 1 < part->n_fields; i++)
        if (!strcmp(part->field[i].name, part->field[part->n_fields - 1].name)) return true;
    return false;
}

static stk_status parse_part(const char *name, json_t *part, recorded_part *out)
{
    json_t *fields = json_object_get(part, "fields");
    out->n_records = json_integer_value(json_object_get(part, "records"));
    out->is_staged = json_is_true(json_object_get(part, "staged"));
    if (out->n_records < 1) return fail_record(name, "its number of records");
    if (json_array_size(fields) < 1 || json_array_size(fields) > STK_MAX_FIELDS)
        return fail_record(name, "its number of fields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        STK_RETURN_IF_ERROR(parse_field(name, json_array_get(fields, i), &out->field[out->n_fields++]));
        if (is_twice(out)) return fail_record(name, "two fields of one name");
    }
    return parse_classes(name, json_object_get(part, "classes"), out);
}

stk_status stk_data_record_parse(const char *name, const char *text, size_t n, stk_data_record **out)
{
    stk_status status = STK_OK;
    json_error_t error;
    *out = NULL;
    stk_data_record *record = calloc(1, sizeof(*record));
    if (!record) return stk_fail_memory(sizeof(*record));
    status = stk_json_check((stk_span){(const uint8_t *)text, n}, MOST_TREE_BYTES);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", name));
    status = stk_json_parse(text, n, JSON_REJECT_DUPLICATES, &record->root, &error);
    if (status == STK_NO_MEMORY) goto done;
    status = STK_OK;
    if (json_integer_value(json_object_get(record->root, "stoker_data")) != VERSION)
        STK_TRY(fail_record(name, record->root ? "it is no record of data, or a newer one" : error.text));
    for (int i = 0; i < STK_N_PARTS; i++) {
        json_t *part = json_object_get(record->root, part_name[i]);
        if (part) STK_TRY(parse_part(name, part, &record->part[i]));
    }
    *out = record;
    return STK_OK;
done:
    stk_data_record_free(record);
    return status;
}

int64_t stk_data_record_count(const stk_data_record *record, int i_part)
{
    return record->part[i_part].n_records;
}

stk_status stk_data_record_read(const char *folder, stk_data_record **out)
{
    char path[4096];
    uint8_t *bytes = NULL;
    size_t capacity = 0, n = 0;
    *out = NULL;
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, STK_DATA_RECORD_NAME));
    if (!stk_path_exists(path)) return STK_OK;
    stk_status status = stk_file_read(path, &bytes, &capacity, &n);
    if (status == STK_OK) status = stk_data_record_parse(path, (const char *)bytes, n, out);
    free(bytes);
    return status;
}

void stk_data_record_free(stk_data_record *record)
{
    if (!record) return;
    for (int i = 0; i < STK_N_PARTS; i++)
        free(record->part[i].class_names);
    json_decref(record->root);
    free(record);
}

stk_status stk_data_record_open(const stk_data_record *record, int i_part, stk_dataset **out, bool *is_staged)
{
    const recorded_part *part = &record->part[i_part];
    stk_source *source = NULL;
    *out = NULL;
    *is_staged = part->is_staged;
    if (part->n_fields == 0)
        return stk_fail(STK_NOT_FOUND, "the record of the data has no part '%s'", part_name[i_part]);
    stk_status status = stk_source_open_blank(part->n_records, part->field, part->n_fields, part->class_names,
                                              part->n_classes, &source);
    *out = stk_dataset_make(status, source);
    return status;
}
