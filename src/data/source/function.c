/* Samples made by a C function of their index. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "data/source/fields.h"

typedef struct function_source {
    stk_source base;
    stk_sample_fn fn;
    void *user;
} function_source;

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const function_source *s = (const function_source *)source;
    void *out[STK_MAX_FIELDS];
    for (int i = 0; i < source->n_fields; i++) {
        size_t n = stk_desc_bytes(source->field[i].type.desc);
        out[i] = stk_scratch_get(&scratch[i], n);
        if (!out[i]) return STK_NO_MEMORY;
        item[i] = (stk_item){source->field[i].type, out[i], n};
    }
    stk_error_clear();
    stk_status status = s->fn(s->user, i_record, out);
    return status == STK_OK ? STK_OK : stk_fail_user(status, "the sample function");
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

static const stk_source_class class_function = {
    .name = "function", .read = read_record, .name_record = name_record, .close = close_source};

stk_status stk_source_open_function(int64_t n_samples, const stk_array_field *fields, int n_fields, stk_sample_fn fn,
                                    void *user, stk_source **out)
{
    if (!fn) return stk_fail(STK_INVALID, "the sample function is missing");
    function_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    stk_status status = stk_source_set_fields(&s->base, n_samples, fields, n_fields);
    if (status != STK_OK) {
        free(s);
        return status;
    }
    s->base.class = &class_function;
    s->fn = fn;
    s->user = user;
    *out = &s->base;
    return STK_OK;
}
