/* Arrays in memory whose samples have different lengths, borrowed. See stoker/data/ragged.h. */
#include "data/source/ragged.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "data/source/fields.h"

typedef struct ragged_source {
    stk_source base;
    const char *values[STK_MAX_FIELDS];
    const int64_t *offsets[STK_MAX_FIELDS];
    size_t bytes[STK_MAX_FIELDS]; /* of one element */
} ragged_source;

/* Where a sample's elements begin, and how many there are. */
static const char *find_elements(const ragged_source *s, int f, int64_t i_record, int64_t *n)
{
    const int64_t *offsets = s->offsets[f];
    *n = offsets ? offsets[i_record + 1] - offsets[i_record] : 1;
    return s->values[f] + (size_t)(offsets ? offsets[i_record] : i_record) * s->bytes[f];
}

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const ragged_source *s = (const ragged_source *)source;
    (void)scratch;
    for (int f = 0; f < source->n_fields; f++) {
        int64_t n;
        const char *data = find_elements(s, f, i_record, &n);
        item[f] = (stk_item){source->field[f].type, (char *)data, (size_t)n * s->bytes[f]};
        if (s->offsets[f]) item[f].type.desc.shape.dim[0] = n;
    }
    return STK_OK;
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    (void)source;
    snprintf(out, out_bytes, "sample %lld", (long long)i_record);
}

static void prefetch(const stk_source *source, int64_t i_record)
{
    const ragged_source *s = (const ragged_source *)source;
    for (int f = 0; f < source->n_fields; f++) {
        int64_t n;
        const char *data = find_elements(s, f, i_record, &n);
        stk_prefetch_bytes(data, (size_t)n * s->bytes[f]);
    }
}

static void close_source(stk_source *source)
{
    free(source);
}

static const stk_source_class class_ragged = {
    .name = "ragged", .read = read_record, .name_record = name_record, .close = close_source, .prefetch = prefetch};

static stk_status check_offsets(const stk_ragged_field *field, int64_t n_samples, size_t element_bytes)
{
    if (field->offsets[0] < 0) return stk_fail(STK_INVALID, "the offsets of field '%s' begin below 0", field->name);
    for (int64_t i = 0; i < n_samples; i++)
        if (field->offsets[i + 1] < field->offsets[i])
            return stk_fail(STK_INVALID, "the offsets of field '%s' descend at sample %lld", field->name, (long long)i);
    if (field->offsets[n_samples] > INT64_MAX / (int64_t)(element_bytes ? element_bytes : 1))
        return stk_fail(STK_INVALID, "field '%s' is too large", field->name);
    return STK_OK;
}

/* Puts the open side before the others. */
static stk_status open_side(stk_source_field *field)
{
    stk_shape *shape = &field->type.desc.shape;
    if (shape->rank == STK_MAX_RANK)
        return stk_fail(STK_INVALID, "field '%s' has too many sides: %d with the open one are possible", field->name,
                        STK_MAX_RANK);
    for (int i = shape->rank++; i > 0; i--)
        shape->dim[i] = shape->dim[i - 1];
    shape->dim[0] = STK_ANY;
    return STK_OK;
}

static stk_status set_field(ragged_source *s, int f, const stk_ragged_field *from, int64_t n_samples)
{
    stk_source *base = &s->base;
    s->bytes[f] = stk_desc_bytes(base->field[f].type.desc);
    s->values[f] = from->values;
    s->offsets[f] = from->offsets;
    if (!from->values) return stk_fail(STK_INVALID, "field '%s' has no values", from->name);
    if (from->offsets) STK_RETURN_IF_ERROR(check_offsets(from, n_samples, s->bytes[f]));
    if (from->offsets) STK_RETURN_IF_ERROR(open_side(&base->field[f]));
    int64_t n = from->offsets ? from->offsets[n_samples] : n_samples, bytes;
    if (__builtin_mul_overflow(n, (int64_t)s->bytes[f], &bytes) ||
        __builtin_add_overflow(base->n_bytes, bytes, &base->n_bytes))
        return stk_fail(STK_INVALID, "field '%s' is too large", from->name);
    return STK_OK;
}

stk_status stk_source_open_ragged(int64_t n_samples, const stk_ragged_field *fields, int n_fields, stk_source **out)
{
    stk_array_field plain[STK_MAX_FIELDS] = {{0}};
    stk_status status;
    for (int f = 0; fields && f < n_fields && f < STK_MAX_FIELDS; f++)
        plain[f] = (stk_array_field){.name = fields[f].name, .dtype = fields[f].dtype, .sample = fields[f].element};
    ragged_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    STK_TRY(stk_source_set_fields(&s->base, n_samples, fields ? plain : NULL, n_fields));
    for (int f = 0; f < n_fields; f++)
        STK_TRY(set_field(s, f, &fields[f], n_samples));
    s->base.class = &class_ragged;
    *out = &s->base;
    s = NULL;
done:
    free(s);
    return status;
}
