/* Arrays in memory, borrowed: tf.data's from_tensor_slices. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "data/source/fields.h"
#include "data/source/source.h"

typedef struct arrays_source {
    stk_source base;
    const char *data[STK_MAX_FIELDS];
    size_t bytes[STK_MAX_FIELDS]; /* of one sample */
} arrays_source;

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const arrays_source *s = (const arrays_source *)source;
    (void)scratch;
    for (int i = 0; i < source->n_fields; i++)
        item[i] = (stk_item){source->field[i].type, (char *)s->data[i] + (size_t)i_record * s->bytes[i], s->bytes[i]};
    return STK_OK;
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    (void)source;
    snprintf(out, out_bytes, "sample %lld", (long long)i_record);
}

static void close_source(stk_source *source)
{
    free(source);
}

static void prefetch(const stk_source *source, int64_t i_record)
{
    const arrays_source *s = (const arrays_source *)source;
    for (int i = 0; i < source->n_fields; i++)
        stk_prefetch_bytes(s->data[i] + (size_t)i_record * s->bytes[i], s->bytes[i]);
}

static const stk_source_class class_arrays = {
    .name = "arrays", .read = read_record, .name_record = name_record, .close = close_source, .prefetch = prefetch};

stk_status stk_source_open_arrays(int64_t n_samples, const stk_array_field *fields, int n_fields, stk_source **out)
{
    arrays_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    stk_status status;
    STK_TRY(stk_source_set_fields(&s->base, n_samples, fields, n_fields));
    for (int i = 0; i < n_fields; i++) {
        if (!fields[i].data) STK_TRY(stk_fail(STK_INVALID, "field '%s' has no data", fields[i].name));
        s->data[i] = fields[i].data;
        s->bytes[i] = stk_desc_bytes(s->base.field[i].type.desc);
        int64_t n;
        if (__builtin_mul_overflow(n_samples, (int64_t)s->bytes[i], &n) ||
            __builtin_add_overflow(s->base.n_bytes, n, &s->base.n_bytes))
            STK_TRY(
                stk_fail(STK_INVALID, "field '%s' of %lld samples is too large", fields[i].name, (long long)n_samples));
    }
    s->base.class = &class_arrays;
    *out = &s->base;
    return STK_OK;
done:
    free(s);
    return status;
}
