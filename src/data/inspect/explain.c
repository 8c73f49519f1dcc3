/* See stoker/data/explain.h. Facts come from the data set's own parts, and from a loader that is opened and closed
 * again, so that they are what a run would have. */
#include "stoker/data/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "data/inspect/padding.h"
#include "data/inspect/sample.h"
#include "data/loader/masked.h"

enum { MOST_MEASURED = 64 };

/* --- source --- */

static void describe_type(const stk_field_type *type, char out[STK_EXPLAIN_TEXT])
{
    char text[STK_SHAPE_TEXT_BYTES] = "encoded";
    if (type->kind == STK_FIELD_ARRAY) stk_desc_text(type->desc, text);
    snprintf(out, STK_EXPLAIN_TEXT, "%.*s", STK_EXPLAIN_TEXT - 1, text);
}

/* Stages that run as one pass over rows are numbered; only those of the field "image" can. */
static void mark_pass(const stk_dataset *dataset, int n_pass, stk_explanation *e)
{
    int i_stage = 0;
    for (int f = 0; f < dataset->source->n_fields; f++)
        for (int i = 0; i < dataset->chain[f].n_stages && i_stage < STK_EXPLAIN_MOST; i++, i_stage++)
            e->stage[i_stage].i_pass = i < n_pass && !strcmp(dataset->chain[f].field, "image");
}

static stk_status measure(const stk_dataset *dataset, stk_explanation *e)
{
    stk_record_sample sample;
    STK_RETURN_IF_ERROR(stk_sample_records(dataset, MOST_MEASURED, false, &sample));
    e->n_measured = sample.n - sample.n_corrupt;
    e->n_corrupt = sample.n_corrupt;
    snprintf(e->corrupt, sizeof(e->corrupt), "%.*s", (int)sizeof(e->corrupt) - 1,
             sample.n_corrupt ? sample.corrupt : "");
    e->record_bytes = sample.record_bytes;
    mark_pass(dataset, sample.n_pass, e);
    return STK_OK;
}

static void explain_source(const stk_dataset *dataset, stk_explanation *e)
{
    const stk_source *source = dataset->source;
    snprintf(e->source, sizeof(e->source), "%s", source->class->name);
    snprintf(e->note, sizeof(e->note), "%s", source->note);
    e->n_records = source->is_open ? -1 : source->n_records;
    e->n_files = source->n_files;
    e->n_classes = source->n_classes;
    e->in_memory = source->n_bytes > 0;
    e->file_bytes = source->file_bytes;
    e->window_bytes = source->window_bytes;
}

/* --- order --- */

static const char *epochs_text(const stk_order_op *op)
{
    return op->fixed ? "the same in every epoch" : "another for each epoch";
}

static void describe_op(const stk_order *order, int i, char out[STK_EXPLAIN_TEXT])
{
    const stk_order_op *op = &order->op[i];
    char all[STK_COUNT_TEXT], some[STK_COUNT_TEXT];
    int64_t n_out = i + 1 < order->n_ops ? order->op[i + 1].n_in : order->count;
    switch (op->kind) {
    case STK_ORDER_SHUFFLE:
        snprintf(out, STK_EXPLAIN_TEXT, "shuffle of all %s samples, %s", stk_count_text(op->n_in, all),
                 epochs_text(op));
        break;
    case STK_ORDER_WINDOW:
        snprintf(out, STK_EXPLAIN_TEXT, "shuffle with a window of %s of %s samples, %s",
                 stk_count_text(op->window.size, some), stk_count_text(op->n_in, all), epochs_text(op));
        break;
    case STK_ORDER_SKIP:
        if (op->a)
            snprintf(out, STK_EXPLAIN_TEXT, "without the first %s samples", stk_count_text(op->a, some));
        else
            snprintf(out, STK_EXPLAIN_TEXT, "the first %s of %s samples", stk_count_text(n_out, some),
                     stk_count_text(op->n_in, all));
        break;
    case STK_ORDER_REPEAT: snprintf(out, STK_EXPLAIN_TEXT, "%" PRId64 " passes as one epoch", op->a); break;
    case STK_ORDER_SHARD:
        if (op->is_hint)
            snprintf(out, STK_EXPLAIN_TEXT, "a place for shards");
        else
            snprintf(out, STK_EXPLAIN_TEXT, "shard %" PRId64 " of %" PRId64, op->b, op->a);
        break;
    default: snprintf(out, STK_EXPLAIN_TEXT, "another operation"); break;
    }
}

static void describe_mixup(const stk_mixup *mixup, char out[STK_EXPLAIN_TEXT])
{
    if (mixup->mixup_alpha > 0 && mixup->cutmix_alpha > 0)
        snprintf(out, STK_EXPLAIN_TEXT, "mixup (alpha %g) or cutmix (alpha %g) of each whole batch", mixup->mixup_alpha,
                 mixup->cutmix_alpha);
    else
        snprintf(out, STK_EXPLAIN_TEXT, "%s (alpha %g) of each whole batch",
                 mixup->mixup_alpha > 0 ? "mixup" : "cutmix",
                 mixup->mixup_alpha > 0 ? mixup->mixup_alpha : mixup->cutmix_alpha);
}

/* What each bucket's batches have. */
static void explain_batches(const stk_dataset *dataset, stk_explanation *e)
{
    const stk_buckets_plan *buckets = &dataset->buckets;
    char n[STK_COUNT_TEXT];
    for (int b = 0; b < buckets->n && e->n_orders < STK_EXPLAIN_MOST; b++) {
        const stk_bucket *bucket = &buckets->bucket[b];
        if (bucket->n_samples == 0) continue;
        snprintf(e->order[e->n_orders++], STK_EXPLAIN_TEXT,
                 "batches of %" PRId64 " where '%s' is at most %" PRId64 " long: %s samples", bucket->size,
                 dataset->source->field[buckets->i_field].name, bucket->longest[buckets->i_field],
                 stk_count_text(bucket->n_samples, n));
    }
}

static void explain_order(const stk_dataset *dataset, stk_explanation *e)
{
    const stk_order *order = &dataset->order;
    char n[STK_COUNT_TEXT];
    e->indexable = !dataset->source->in_order;
    if (order->kept)
        snprintf(e->order[e->n_orders++], STK_EXPLAIN_TEXT, "%s of the records, chosen by split, filter or file",
                 stk_count_text(stk_order_n_met(order), n));
    for (int i = 0; i < order->n_ops && e->n_orders < STK_EXPLAIN_MOST; i++) {
        describe_op(order, i, e->order[e->n_orders++]);
        if (order->op[i].kind == STK_ORDER_WINDOW) e->indexable = false;
    }
    if ((dataset->mixup.mixup_alpha > 0 || dataset->mixup.cutmix_alpha > 0) && e->n_orders < STK_EXPLAIN_MOST)
        describe_mixup(&dataset->mixup, e->order[e->n_orders++]);
    if (dataset->masked && e->n_orders < STK_EXPLAIN_MOST)
        snprintf(e->order[e->n_orders++], STK_EXPLAIN_TEXT, "%g %% of the tokens hidden, to be guessed",
                 100 * dataset->masked->share);
    explain_batches(dataset, e);
    for (e->n_scans = 0; e->n_scans < dataset->n_scans; e->n_scans++)
        memcpy(e->scan[e->n_scans], dataset->scan[e->n_scans], STK_SCAN_TEXT);
    /* Both follow from records and keys alone; nothing depends on when a thread ran. */
    e->same_batches = e->exact_resume = true;
    e->on_error = dataset->on_error;
}

static void explain_epoch(const stk_dataset *dataset, stk_explanation *e)
{
    int64_t left = dataset->order.count % dataset->n_rows;
    e->n_samples = stk_dataset_count(dataset);
    e->n_batches = stk_dataset_n_batches(dataset);
    e->batch = dataset->n_rows;
    e->n_dropped = dataset->drop_remainder ? left : 0;
    e->n_last = left && !dataset->drop_remainder ? left : e->batch;
    e->varies = dataset->buckets.n > 0;
    if (e->varies) e->n_dropped = dataset->order.count - dataset->buckets.n_batched;
    if (e->varies) e->n_last = e->batch;
    if (dataset->source->is_open) e->n_dropped = e->n_last = 0;
    e->padding = stk_padding_share(dataset);
    double bytes = e->window_bytes > 0 ? (double)e->window_bytes : e->record_bytes;
    e->bytes_per_epoch = e->in_memory ? 0 : e->window_bytes < 0 ? -1 : bytes * (double)(e->n_samples - e->n_dropped);
}

/* --- stages --- */

static void explain_stages(const stk_dataset *dataset, stk_explanation *e)
{
    for (int f = 0; f < dataset->source->n_fields; f++) {
        const stk_chain *chain = &dataset->chain[f];
        stk_explained_field *field = &e->field[e->n_fields++];
        memcpy(field->name, dataset->source->field[f].name, sizeof(field->name));
        describe_type(&chain->type[0], field->input);
        for (int i = 0; i < chain->n_stages && e->n_stages < STK_EXPLAIN_MOST; i++) {
            stk_explained_stage *stage = &e->stage[e->n_stages++];
            memcpy(stage->field, field->name, sizeof(stage->field));
            snprintf(stage->name, sizeof(stage->name), "%s", chain->stage[i]->class->key.name);
            describe_type(&chain->type[i + 1], stage->output);
            stage->random = chain->stage[i]->class->random;
        }
    }
}

static stk_status explain_loader(const stk_dataset *dataset, const stk_loader_config *config, stk_explanation *e)
{
    stk_loader *loader;
    stk_loader_stats stats;
    stk_field_type types[STK_MAX_FIELDS];
    char name[STK_RECORD_NAME_BYTES];
    STK_RETURN_IF_ERROR(stk_dataset_probe(dataset, types, name));
    for (int f = 0; f < e->n_fields; f++) {
        describe_type(&types[f], e->field[f].output);
        e->field[f].row_bytes = stk_desc_bytes(types[f].desc);
    }
    STK_RETURN_IF_ERROR(stk_loader_open(dataset, config, &loader));
    stk_loader_get_stats(loader, &stats);
    stk_loader_close(loader);
    e->n_threads = stats.n_threads;
    e->n_slots = stats.n_slots;
    stk_dataset_get_cache(dataset, &e->cache);
    for (int f = 0; f < e->n_fields && e->cache.kind != STK_CACHE_NONE; f++)
        e->n_cached += dataset->cache->head[f].n_stages;
    e->memory_limit_bytes = stats.memory.limit_bytes;
    e->slot_bytes = stats.slot_bytes / (size_t)stats.n_slots;
    return STK_OK;
}

stk_status stk_dataset_explain(const stk_dataset *dataset, const stk_loader_config *config, stk_explanation *out)
{
    if (!dataset) return stk_fail(STK_INVALID, "there is no data set");
    STK_NEED(out);
    *out = (stk_explanation){0};
    STK_RETURN_IF_ERROR(stk_dataset_status(dataset));
    if (dataset->n_rows == 0) return stk_fail(STK_INVALID, "the data set has no batches: call 'batch' last of all");
    explain_source(dataset, out);
    explain_order(dataset, out);
    explain_stages(dataset, out);
    STK_RETURN_IF_ERROR(explain_loader(dataset, config, out));
    STK_RETURN_IF_ERROR(measure(dataset, out));
    explain_epoch(dataset, out);
    return STK_OK;
}
