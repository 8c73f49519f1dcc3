/* Filters: a scan says which records are kept, and the order meets only those. See stoker/data/filter.h. */
#include "stoker/data/filter.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "data/dataset/scan_file.h"

/* --- keeping --- */

static stk_status check_source(const stk_dataset *dataset)
{
    if (!dataset->source->varies) return STK_OK;
    return stk_fail(STK_INVALID, "not what is shuffled again for each epoch inside of '%s': filter its data sets",
                    dataset->source->class->name);
}

static void report(stk_dataset *dataset, const stk_scan_result *result)
{
    long long n_kept = (long long)stk_order_n_met(&dataset->order), n_asked = (long long)result->n_asked;
    char cost[STK_SCAN_COST];
    stk_scan_cost(result, cost);
    if (result->n_unreadable)
        stk_scan_report(dataset, "filter: %lld of %lld records are kept, %lld cannot be read; %s", n_kept, n_asked,
                        (long long)result->n_unreadable, cost);
    else
        stk_scan_report(dataset, "filter: %lld of %lld records are kept; %s", n_kept, n_asked, cost);
}

/* Keeps the records that the scan answers by 1. */
static stk_status keep_scanned(stk_dataset *dataset, const stk_scan *scan)
{
    stk_order *order = &dataset->order;
    stk_scan_result result;
    stk_status status;
    int32_t *answers = NULL;
    STK_TRY(check_source(dataset));
    STK_TRY(stk_order_fold(order));
    int64_t n = stk_order_n_met(order);
    answers = malloc((size_t)n * sizeof(*answers));
    if (!answers) STK_TRY(stk_fail_memory((size_t)n * sizeof(*answers)));
    STK_TRY(stk_scan_run(dataset, scan, order->kept, n, answers, &result));
    STK_TRY(stk_order_keep(order, answers));
    report(dataset, &result);
done:
    free(answers);
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "cannot filter: ");
}

/* --- by a function --- */

typedef struct caller {
    stk_filter_fn fn;
    void *user;
} caller;

static stk_status ask_function(void *user, const stk_dataset *dataset, const stk_stage_key *key, const stk_item *item,
                               int32_t *answer)
{
    const caller *c = user;
    const stk_source *source = dataset->source;
    stk_record_field field[STK_MAX_FIELDS];
    (void)key;
    for (int f = 0; f < source->n_fields; f++)
        field[f] = (stk_record_field){.name = source->field[f].name,
                                      .encoded = item[f].type.kind == STK_FIELD_ENCODED,
                                      .dtype = item[f].type.desc.dtype,
                                      .shape = item[f].type.desc.shape,
                                      .data = item[f].data,
                                      .n_bytes = item[f].n_bytes};
    *answer = c->fn(c->user, field, source->n_fields);
    return STK_OK;
}

void stk_dataset_filter(stk_dataset *dataset, stk_filter_fn fn, void *user)
{
    if (!dataset) return;
    if (!stk_dataset_can_order(dataset, "filter")) return;
    caller c = {fn, user};
    const stk_scan scan = {.ask = ask_function, .user = &c, .fields = UINT32_MAX};
    stk_dataset_keep_error(dataset, fn ? keep_scanned(dataset, &scan) : stk_fail(STK_INVALID, "the filter is missing"));
}

/* --- by rule --- */

typedef struct rule {
    const stk_filter_rule *filter;
    int i_field;
} rule;

stk_filter_rule stk_filter_rule_default(void)
{
    return (stk_filter_rule){.least = -INFINITY, .most = INFINITY, .most_bytes = INT64_MAX, .most_length = INT64_MAX};
}

static bool asks_number(const stk_filter_rule *filter)
{
    return filter->values || filter->least > -INFINITY || filter->most < INFINITY;
}

static bool asks_length(const stk_filter_rule *filter)
{
    return filter->least_length > 0 || filter->most_length < INT64_MAX;
}

/* Whole numbers are exact in *whole; *real is right for all. */
static bool read_number(const stk_item *item, int64_t *whole, double *real)
{
    const void *p = item->data;
    bool is_whole = true;
    switch (item->type.desc.dtype) {
    case STK_U8: *whole = *(const uint8_t *)p; break;
    case STK_BOOL: *whole = *(const uint8_t *)p; break;
    case STK_I8: *whole = *(const int8_t *)p; break;
    case STK_I32: *whole = *(const int32_t *)p; break;
    case STK_I64: *whole = *(const int64_t *)p; break;
    case STK_F32: is_whole = false, *real = (double)*(const float *)p; break;
    case STK_F64: is_whole = false, *real = *(const double *)p; break;
    default: is_whole = false, *real = NAN; break;
    }
    if (is_whole) *real = (double)*whole;
    return is_whole;
}

static bool is_number_kept(const stk_filter_rule *filter, const stk_item *item)
{
    int64_t whole = 0;
    double real = 0;
    bool is_whole = read_number(item, &whole, &real), found = false;
    if (!(real >= filter->least && real <= filter->most)) return false;
    if (!filter->values) return true;
    for (int i = 0; i < filter->n_values && !found; i++)
        found = is_whole && whole == filter->values[i];
    return found != filter->drop;
}

static stk_status ask_rule(void *user, const stk_dataset *dataset, const stk_stage_key *key, const stk_item *item,
                           int32_t *answer)
{
    const rule *r = user;
    const stk_filter_rule *filter = r->filter;
    item += r->i_field;
    int64_t n_bytes = (int64_t)item->n_bytes;
    bool kept = n_bytes >= filter->least_bytes && n_bytes <= filter->most_bytes;
    if (kept && asks_number(filter)) kept = is_number_kept(filter, item);
    if (kept && asks_length(filter)) {
        stk_field_type type;
        STK_RETURN_IF_ERROR(stk_chain_measure(&dataset->chain[r->i_field], key, item, &type));
        int64_t length = type.desc.shape.dim[0];
        kept = length >= filter->least_length && length <= filter->most_length;
    }
    *answer = kept;
    return STK_OK;
}

/* Whether the field is what the rule asks of it. */
static stk_status check_field(const stk_dataset *dataset, int i, const stk_filter_rule *filter)
{
    char text[STK_SHAPE_TEXT_BYTES];
    const char *name = dataset->source->field[i].name;
    const stk_field_type *first = &dataset->chain[i].type[0], *last = stk_chain_type(&dataset->chain[i]);
    stk_dtype dtype = first->desc.dtype;
    bool encoded = first->kind == STK_FIELD_ENCODED;
    bool is_real = dtype == STK_F32 || dtype == STK_F64;
    bool is_number =
        is_real || dtype == STK_U8 || dtype == STK_BOOL || dtype == STK_I8 || dtype == STK_I32 || dtype == STK_I64;
    if (asks_number(filter) && (encoded || !is_number || stk_shape_count(first->desc.shape) != 1))
        return stk_fail(STK_INVALID, "field '%s' is %s, not one number", name,
                        encoded ? "encoded" : stk_desc_text(first->desc, text));
    if (filter->values && is_real)
        return stk_fail(STK_INVALID, "field '%s' is %s, not a whole number", name, stk_desc_text(first->desc, text));
    if (asks_length(filter) && (last->kind == STK_FIELD_ENCODED || last->desc.shape.rank == 0))
        return stk_fail(STK_INVALID, "field '%s' is %s, which has no length", name,
                        last->kind == STK_FIELD_ENCODED ? "encoded" : stk_desc_text(last->desc, text));
    return STK_OK;
}

/* Labels alone take no reading, and nothing has to be kept of them. */
static uint64_t rule_key(const stk_dataset *dataset, const rule *r)
{
    const stk_filter_rule *filter = r->filter;
    const int64_t whole[] = {filter->n_values,   filter->drop,         filter->least_bytes,
                             filter->most_bytes, filter->least_length, filter->most_length};
    const double real[] = {filter->least, filter->most};
    if (filter->least_bytes <= 0 && filter->most_bytes == INT64_MAX && !asks_length(filter)) return 0;
    uint64_t key = stk_hash64(whole, sizeof(whole), stk_hash64(real, sizeof(real), 1));
    if (filter->n_values > 0) key = stk_hash64(filter->values, (size_t)filter->n_values * sizeof(*filter->values), key);
    return stk_scan_key_stages(dataset, r->i_field, key);
}

void stk_dataset_filter_by(stk_dataset *dataset, const stk_filter_rule *filter)
{
    if (!dataset) return;
    if (!stk_dataset_can_order(dataset, "filter")) return;
    rule r = {.filter = filter};
    stk_status status = filter ? STK_OK : stk_fail(STK_INVALID, "'filter' is NULL");
    if (status == STK_OK) {
        r.i_field = stk_dataset_find_field(dataset, filter->field ? filter->field : "label");
        status = r.i_field < 0 ? STK_NOT_FOUND : check_field(dataset, r.i_field, filter);
    }
    stk_scan scan = {.ask = ask_rule, .user = &r, .fields = 1u << (r.i_field > 0 ? r.i_field : 0)};
    if (status == STK_OK) scan.key = rule_key(dataset, &r);
    if (status == STK_OK) status = keep_scanned(dataset, &scan);
    stk_dataset_keep_error(dataset, status);
}
