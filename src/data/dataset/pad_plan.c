/* Planning padded batches: which fields, what they are filled with, and the lengths of all records, which a scan asks
 * for. See stoker/data/ragged.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/dataset/scan_file.h"
#include "data/source/ragged.h"
#include "stoker/data/ragged.h"

stk_dataset *stk_dataset_ragged(int64_t n_samples, const stk_ragged_field *fields, int n_fields)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_ragged(n_samples, fields, n_fields, &source);
    return stk_dataset_make(status, source);
}

/* --- values --- */

static stk_status fail_value(double value, stk_dtype dtype, const char *field)
{
    char text[STK_SHAPE_TEXT_BYTES];
    return stk_fail(STK_INVALID, "field '%s' is %s and cannot be padded with %g", field,
                    stk_desc_text(stk_desc_make(dtype, (stk_shape){0}), text), value);
}

#define SET_WHOLE(type, least, most)                                                                                   \
    do {                                                                                                               \
        if (!(value >= (least) && value <= (most) && value == floor(value))) return fail_value(value, dtype, field);   \
        type number = (type)value;                                                                                     \
        memcpy(pad->value, &number, sizeof(number));                                                                   \
        return STK_OK;                                                                                                 \
    } while (0)

stk_status stk_pad_plan_set_value(stk_pad_plan *pad, double value, stk_dtype dtype, const char *field)
{
    float real = (float)value;
    pad->value_bytes = stk_desc_bytes(stk_desc_make(dtype, (stk_shape){0}));
    switch (dtype) {
    case STK_U8: SET_WHOLE(uint8_t, 0, UINT8_MAX);
    case STK_BOOL: SET_WHOLE(uint8_t, 0, 1);
    case STK_I8: SET_WHOLE(int8_t, INT8_MIN, INT8_MAX);
    case STK_I32: SET_WHOLE(int32_t, INT32_MIN, INT32_MAX);
    case STK_I64: SET_WHOLE(int64_t, -0x1p53, 0x1p53);
    case STK_F32: memcpy(pad->value, &real, sizeof(real)); return STK_OK;
    case STK_F64: memcpy(pad->value, &value, sizeof(value)); return STK_OK;
    default: return value == 0 ? STK_OK : fail_value(value, dtype, field);
    }
}

/* --- fields --- */

/* Plans one field; a padding that names it says how. */
static stk_status plan_field(stk_dataset *dataset, int f, const stk_padding *how)
{
    const stk_field_type *type = stk_chain_type(&dataset->chain[f]);
    const char *name = dataset->source->field[f].name;
    stk_pad_plan *pad = &dataset->pad[f];
    char text[STK_SHAPE_TEXT_BYTES];
    stk_shape element = type->desc.shape;
    if (type->kind == STK_FIELD_ENCODED) return stk_chain_check_end(&dataset->chain[f]);
    if (element.rank == 0 || element.dim[0] != STK_ANY)
        return stk_fail(STK_INVALID, "field '%s' is %s: its first side is not open, so it cannot be padded", name,
                        stk_desc_text(type->desc, text));
    element.dim[0] = 1;
    if (!stk_shape_known(element))
        return stk_fail(STK_INVALID, "field '%s' is %s: only its first side may be open", name,
                        stk_desc_text(type->desc, text));
    if (how->length < 0 || how->length > INT32_MAX || how->max_length < 0 || how->max_length > INT32_MAX)
        return stk_fail(STK_INVALID, "field '%s' cannot be padded to %lld or cut at %lld", name, (long long)how->length,
                        (long long)how->max_length);
    stk_tensor_desc one = stk_desc_make(type->desc.dtype, element);
    *pad = (stk_pad_plan){.on = true,
                          .fixed = how->length,
                          .most = how->max_length ? how->max_length : INT64_MAX,
                          .longest = how->length,
                          .element_bytes = stk_desc_bytes(one)};
    return stk_pad_plan_set_value(pad, how->value, type->desc.dtype, name);
}

static stk_status plan_fields(stk_dataset *dataset, const stk_padding *paddings, int n)
{
    static const stk_padding default_value = {0};
    const stk_padding *how[STK_MAX_FIELDS] = {NULL}, *rest = &default_value;
    const stk_source *source = dataset->source;
    for (int i = 0; i < n; i++) {
        if (!paddings[i].field) {
            rest = &paddings[i];
            continue;
        }
        int f = stk_dataset_find_field(dataset, paddings[i].field);
        if (f < 0) return STK_NOT_FOUND;
        how[f] = &paddings[i];
    }
    dataset->n_padded = 0;
    for (int f = 0; f < source->n_fields; f++) {
        const stk_field_type *type = stk_chain_type(&dataset->chain[f]);
        bool open = type->kind == STK_FIELD_ARRAY && !stk_shape_known(type->desc.shape);
        if (!open && !how[f]) continue;
        STK_RETURN_IF_ERROR(plan_field(dataset, f, how[f] ? how[f] : rest));
        dataset->pad[f].i_length = source->n_fields + dataset->n_padded++;
    }
    if (dataset->n_padded) return STK_OK;
    return stk_fail(STK_INVALID, "no field of source '%s' has an open first side: use 'batch'", source->class->name);
}

/* --- lengths --- */

/* The one field whose lengths are asked for; -1: there are several, whose lengths are not kept for the next time. */
static int only_field(const stk_dataset *dataset)
{
    int found = -1, n = 0;
    for (int f = 0; f < dataset->source->n_fields; f++) {
        if (!dataset->pad[f].lengths) continue;
        found = f;
        n++;
    }
    return n == 1 ? found : -1;
}

static stk_status ask_lengths(void *user, const stk_dataset *dataset, const stk_stage_key *key, const stk_item *item,
                              int32_t *answer)
{
    int only = only_field(dataset);
    (void)user;
    *answer = 1;
    for (int f = 0; f < dataset->source->n_fields; f++) {
        if (!dataset->pad[f].lengths) continue;
        stk_field_type type;
        STK_RETURN_IF_ERROR(stk_chain_measure(&dataset->chain[f], key, &item[f], &type));
        int64_t length = type.desc.shape.dim[0];
        if (length < 0 || length > INT32_MAX)
            return stk_fail(STK_INVALID, "field '%s' is %lld long", dataset->source->field[f].name, (long long)length);
        dataset->pad[f].lengths[key->i_sample] = (int32_t)length;
        if (only >= 0) *answer = (int32_t)length;
    }
    return STK_OK;
}

static void report_lengths(stk_dataset *dataset, int f, const int32_t *answers, const stk_scan_result *result)
{
    const stk_pad_plan *pad = &dataset->pad[f];
    const uint32_t *list = dataset->order.kept;
    int64_t n = 0, least = INT64_MAX, most = 0;
    double sum = 0;
    char cost[STK_SCAN_COST];
    for (int64_t i = 0; i < result->n_asked; i++) {
        int64_t length = pad->lengths[list ? list[i] : i];
        if (answers[i] < 0) continue;
        least = length < least ? length : least;
        most = length > most ? length : most;
        sum += (double)length;
        n++;
    }
    stk_scan_report(dataset, "lengths of '%s': %lld to %lld, on average %.1f, of %lld records; %s",
                    dataset->source->field[f].name, (long long)(n ? least : 0), (long long)most,
                    n ? sum / (double)n : 0, (long long)n, stk_scan_cost(result, cost));
}

/* T can be no more than this. */
static void find_longest(const stk_dataset *dataset, stk_pad_plan *pad, int64_t n)
{
    const uint32_t *list = dataset->order.kept;
    pad->longest = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = stk_pad_plan_length(pad, list ? (int64_t)list[i] : i);
        if (length > pad->longest) pad->longest = length;
    }
}

static uint64_t lengths_key(const stk_dataset *dataset)
{
    int f = only_field(dataset);
    return f < 0 ? 0 : stk_scan_key_stages(dataset, f, 2);
}

/* Answers are lengths of the only field; they become 1 for every record that can be read. */
static void take_lengths(const stk_dataset *dataset, int32_t *answers, int64_t n)
{
    const uint32_t *list = dataset->order.kept;
    int32_t *lengths = dataset->pad[only_field(dataset)].lengths;
    for (int64_t i = 0; i < n; i++) {
        if (answers[i] < 0) continue;
        lengths[list ? (int64_t)list[i] : i] = answers[i];
        answers[i] = 1;
    }
}

static stk_status scan_lengths(stk_dataset *dataset)
{
    const stk_scan scan = {.ask = ask_lengths, .fields = UINT32_MAX, .key = lengths_key(dataset)};
    stk_order *order = &dataset->order;
    /* Best where only what will be met is asked; a choice that changes with the epochs may meet any record. */
    bool folded = stk_order_fold(order) == STK_OK;
    int64_t n = stk_order_n_met(order);
    stk_scan_result result;
    stk_status status;
    int32_t *answers = malloc((size_t)n * sizeof(*answers));
    if (!answers) return stk_fail_memory((size_t)n * sizeof(*answers));
    STK_TRY(stk_scan_run(dataset, &scan, order->kept, n, answers, &result));
    if (only_field(dataset) >= 0) take_lengths(dataset, answers, n);
    for (int f = 0; f < dataset->source->n_fields; f++) {
        if (!dataset->pad[f].lengths) continue;
        report_lengths(dataset, f, answers, &result);
        find_longest(dataset, &dataset->pad[f], n);
    }
    if (result.n_unreadable && folded) STK_TRY(stk_order_keep(order, answers));
    if (result.n_unreadable)
        stk_scan_report(dataset, "lengths: %lld of %lld records cannot be read%s", (long long)result.n_unreadable,
                        (long long)n, folded ? " and are left out" : "");
done:
    free(answers);
    return status;
}

static stk_status find_lengths(stk_dataset *dataset)
{
    const stk_source *source = dataset->source;
    bool any = false;
    for (int f = 0; f < source->n_fields; f++) {
        stk_pad_plan *pad = &dataset->pad[f];
        if (!pad->on || pad->fixed) continue;
        if (source->varies)
            return stk_fail(STK_INVALID,
                            "the lengths of field '%s' change with the epochs, as '%s' shuffles its data "
                            "sets: pad to one 'length'",
                            source->field[f].name, source->class->name);
        pad->lengths = calloc((size_t)source->n_records, sizeof(*pad->lengths));
        if (!pad->lengths) return stk_fail_memory((size_t)source->n_records * sizeof(*pad->lengths));
        dataset->has_lengths = any = true;
    }
    return any ? scan_lengths(dataset) : STK_OK;
}

/* The fields "NAME.length" must be free. */
static stk_status check_names(const stk_dataset *dataset)
{
    const stk_source *source = dataset->source;
    for (int f = 0; f < source->n_fields; f++)
        for (int k = 0; k < source->n_fields; k++) {
            char name[64];
            snprintf(name, sizeof(name), "%s.length", source->field[f].name);
            if (dataset->pad[f].on && !strcmp(source->field[k].name, name))
                return stk_fail(STK_INVALID, "there is a field '%s' already, the name of padded lengths: rename it",
                                name);
        }
    return STK_OK;
}

stk_status stk_pad_plan_make(stk_dataset *dataset, const stk_padding *paddings, int n_paddings)
{
    if (n_paddings < 0 || (n_paddings && !paddings)) return stk_fail(STK_INVALID, "'paddings' is missing");
    STK_RETURN_IF_ERROR(plan_fields(dataset, paddings, n_paddings));
    STK_RETURN_IF_ERROR(check_names(dataset));
    return find_lengths(dataset);
}

void stk_dataset_padded_batch(stk_dataset *dataset, int64_t n, bool drop_remainder, const stk_padding *paddings,
                              int n_paddings)
{
    if (!dataset) return;
    if (!stk_dataset_can_order(dataset, "padded_batch")) return;
    stk_dataset_keep_error(dataset, stk_pad_plan_make(dataset, paddings, n_paddings));
    stk_dataset_batch(dataset, n, drop_remainder);
}
