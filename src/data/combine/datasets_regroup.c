/* Data sets of regrouped samples: what was built so far becomes the inside of a new source. See stoker/data/regroup.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/combine/regroup.h"
#include "data/dataset/scan.h"

/* --- inside and outside --- */

/* Opens a source over what was built so far, which moves into *child. encoded: fields may still be so. */
static stk_status begin(stk_dataset *dataset, const char *name, bool encoded, stk_dataset **child, stk_regroup **out)
{
    *out = NULL;
    *child = NULL;
    if (!stk_dataset_can_change(dataset, name)) return STK_BUSY;
    STK_RETURN_IF_ERROR(stk_dataset_check_hint(dataset));
    for (int f = 0; f < dataset->source->n_fields && !encoded; f++)
        STK_RETURN_IF_ERROR(stk_chain_check_end(&dataset->chain[f]));
    *child = malloc(sizeof(**child));
    if (!*child) return stk_fail_memory(sizeof(**child));
    **child = *dataset;
    (*child)->cache = NULL; /* which stays outside */
    return stk_regroup_open(name, *child, out);
}

/* The data set has the new source from now on; or all stays as it was, but for the error. */
static void end(stk_dataset *dataset, stk_dataset *child, stk_regroup *s, stk_status status)
{
    stk_order order = {0};
    if (status == STK_OK) status = stk_order_init(&order, s->base.n_records);
    if (stk_dataset_keep_error(dataset, status) != STK_OK) {
        if (s) s->child = NULL;
        if (s) s->base.class->close(&s->base);
        free(child);
        return;
    }
    dataset->source = &s->base;
    dataset->order = order;
    dataset->n_joints = 0;
    for (int f = 0; f < STK_MAX_FIELDS; f++)
        dataset->chain[f] = (stk_chain){0};
    for (int f = 0; f < s->base.n_fields; f++)
        stk_chain_init(&dataset->chain[f], s->base.field[f].name, s->base.class->name, &s->base.field[f].type);
}

/* Asks the samples, [n_samples], which must be the same in every epoch. */
static stk_status scan_samples(stk_dataset *dataset, stk_regroup *s, const stk_scan *scan, int32_t *answers,
                               stk_scan_result *result)
{
    if (s->base.varies)
        return stk_fail(STK_INVALID, "not after a shuffle, which gives other samples in every epoch: shuffle "
                                     "afterwards, or with reshuffle off");
    stk_dataset *asked = calloc(1, sizeof(*asked));
    if (!asked) return stk_fail_memory(sizeof(*asked));
    asked->source = &s->base;
    asked->on_error = dataset->on_error;
    stk_status status = stk_scan_run(asked, scan, NULL, s->n_samples, answers, result);
    free(asked);
    return status;
}

static int32_t *new_answers(const stk_regroup *s)
{
    return malloc((size_t)s->n_samples * sizeof(int32_t));
}

/* --- packing --- */

static stk_status ask_length(void *user, const stk_dataset *dataset, const stk_stage_key *key, const stk_item *item,
                             int32_t *answer)
{
    const stk_regroup *s = user;
    int64_t n = 0;
    (void)dataset, (void)key;
    STK_RETURN_IF_ERROR(stk_regroup_measure_packed(s, item, &n));
    *answer = n < INT32_MAX ? (int32_t)n : INT32_MAX;
    return STK_OK;
}

/* Cuts what is too long, or names the first of it. */
static stk_status limit_lengths(const stk_regroup *s, const stk_packing *how, int32_t *lengths)
{
    char name[STK_RECORD_NAME_BYTES];
    for (int64_t i = 0; i < s->n_samples; i++) {
        if (lengths[i] <= how->length) continue;
        if (!how->cut) {
            stk_child_name(s->child, i, 0, name, sizeof(name));
            return stk_fail(STK_INVALID, "%s has %d elements, more than a row of %lld: make rows longer, or cut", name,
                            lengths[i], (long long)how->length);
        }
        lengths[i] = (int32_t)how->length;
    }
    return STK_OK;
}

static void report_packing(stk_dataset *dataset, const stk_regroup *s, const int32_t *lengths,
                           const stk_scan_result *result)
{
    double used = 0, all = (double)s->rows.n * (double)s->length;
    int64_t n_empty = 0;
    for (int64_t i = 0; i < s->n_samples; i++) {
        used += lengths[i] > 0 ? lengths[i] : 0;
        n_empty += lengths[i] == 0;
    }
    stk_scan_report(dataset, "packing: %lld samples in %lld rows of %lld, %.2f %% padding; %.3g s",
                    (long long)(s->n_samples - n_empty - result->n_unreadable), (long long)s->rows.n,
                    (long long)s->length, 100 * (1 - used / all), result->seconds);
    if (n_empty || result->n_unreadable)
        stk_scan_report(dataset, "packing: %lld samples without elements and %lld that cannot be read are left out",
                        (long long)n_empty, (long long)result->n_unreadable);
}

void stk_dataset_pack_sequences(stk_dataset *dataset, const stk_packing *packing)
{
    if (!dataset) return;
    stk_dataset *child = NULL;
    stk_regroup *s = NULL;
    int32_t *lengths = NULL;
    stk_scan_result result;
    stk_status status;
    if (!stk_dataset_can_order(dataset, "pack_sequences")) return;
    STK_TRY(packing ? STK_OK : stk_fail(STK_INVALID, "'packing' is NULL"));
    STK_TRY(begin(dataset, "pack_sequences", false, &child, &s));
    STK_TRY(stk_regroup_plan_pack(s, packing));
    lengths = new_answers(s);
    if (!lengths) STK_TRY(stk_fail_memory((size_t)s->n_samples * sizeof(*lengths)));
    const stk_scan scan = {.ask = ask_length, .user = s, .fields = UINT32_MAX};
    STK_TRY(scan_samples(dataset, s, &scan, lengths, &result));
    STK_TRY(limit_lengths(s, packing, lengths));
    STK_TRY(stk_regroup_pack(s, packing, lengths));
    report_packing(dataset, s, lengths, &result);
done:
    if (status != STK_OK && status != STK_NO_MEMORY) stk_fail_prefix(status, "cannot pack: ");
    free(lengths);
    end(dataset, child, s, status);
}

/* --- windows --- */

void stk_dataset_window(stk_dataset *dataset, stk_windows windows)
{
    if (!dataset) return;
    stk_dataset *child = NULL;
    stk_regroup *s = NULL;
    stk_status status;
    if (!stk_dataset_can_order(dataset, "window")) return;
    STK_TRY(begin(dataset, "window", false, &child, &s));
    STK_TRY(stk_regroup_window(s, windows));
done:
    end(dataset, child, s, status);
}

/* --- parts --- */

typedef struct counter {
    const stk_regroup *s;
    stk_status (*count)(const stk_regroup *s, const stk_item *item, int64_t *out);
} counter;

static stk_status ask_count(void *user, const stk_dataset *dataset, const stk_stage_key *key, const stk_item *item,
                            int32_t *answer)
{
    const counter *c = user;
    int64_t n = 0;
    (void)dataset, (void)key;
    STK_RETURN_IF_ERROR(c->count(c->s, item, &n));
    if (n > INT32_MAX) return stk_fail(STK_CORRUPT, "%lld parts are too many", (long long)n);
    *answer = (int32_t)n;
    return STK_OK;
}

/* Splits the samples into parts, counting them where each sample has its own number. */
static stk_status split(stk_dataset *dataset, stk_regroup *s, counter *c)
{
    stk_scan_result result;
    stk_status status;
    if (s->n_parts) return stk_regroup_split(s, NULL);
    int32_t *counts = new_answers(s);
    if (!counts) return stk_fail_memory((size_t)s->n_samples * sizeof(*counts));
    const stk_scan scan = {.ask = ask_count, .user = c, .fields = UINT32_MAX};
    STK_TRY(scan_samples(dataset, s, &scan, counts, &result));
    STK_TRY(stk_regroup_split(s, counts));
    stk_scan_report(dataset, "%s: %lld samples of %lld; %.3g s", s->base.class->name, (long long)s->base.n_records,
                    (long long)(s->n_samples - result.n_unreadable), result.seconds);
done:
    free(counts);
    return status;
}

void stk_dataset_unbatch(stk_dataset *dataset)
{
    if (!dataset) return;
    stk_dataset *child = NULL;
    stk_regroup *s = NULL;
    stk_status status;
    if (!stk_dataset_can_order(dataset, "unbatch")) return;
    STK_TRY(begin(dataset, "unbatch", false, &child, &s));
    STK_TRY(stk_regroup_plan_rows(s));
    STK_TRY(split(dataset, s, &(counter){s, stk_regroup_count_rows}));
done:
    if (status == STK_INVALID) stk_fail_prefix(status, "cannot unbatch: ");
    end(dataset, child, s, status);
}

void stk_dataset_flat_map(stk_dataset *dataset, const stk_flat_map *flat_map)
{
    if (!dataset) return;
    stk_dataset *child = NULL;
    stk_regroup *s = NULL;
    stk_status status;
    if (!stk_dataset_can_order(dataset, "flat_map")) return;
    STK_TRY(begin(dataset, "flat_map", true, &child, &s));
    STK_TRY(stk_regroup_plan_map(s, flat_map));
    STK_TRY(split(dataset, s, &(counter){s, stk_regroup_count_made}));
done:
    end(dataset, child, s, status);
}
