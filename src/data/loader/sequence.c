/* See data/loader/sequence.h. */
#include "data/loader/sequence.h"

#include <stdio.h>
#include <string.h>

#include "base/align.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/loader/mixup_batch.h"
#include "data/loader/worker.h"
#include "data/source/generator.h"

enum { ALIGNMENT = 64 };

size_t stk_sequence_bytes(const stk_source *source)
{
    size_t n = 0;
    for (int f = 0; f < source->n_fields && source->in_order; f++)
        n += stk_round_up(stk_desc_bytes(source->field[f].type.desc), ALIGNMENT);
    return n;
}

stk_status stk_sequence_check(const stk_dataset *dataset, const stk_loader_config *config)
{
    if (!dataset->source->is_open) return STK_OK;
    if (config->n_epochs != 1)
        return stk_fail(STK_INVALID, "it is not known how many samples the generator has: open a loader for each epoch "
                                     "(n_epochs 1, i_epoch), or say how many (n_samples)");
    if (config->n_shards > 1)
        return stk_fail(STK_INVALID, "loaders cannot share an epoch of a generator that does not say how many samples "
                                     "it has: give 'n_samples', or shard the data set");
    if (stk_mixup_wanted(dataset))
        return stk_fail(STK_INVALID, "samples of a generator that does not say how many it has cannot be mixed: give "
                                     "'n_samples'");
    if (dataset->masked)
        return stk_fail(STK_INVALID, "samples of a generator that does not say how many it has cannot be masked: give "
                                     "'n_samples'");
    return STK_OK;
}

stk_status stk_sequence_open(const stk_work *work, stk_sequence *out)
{
    const stk_source *source = work->dataset->source;
    if (!source->in_order) return STK_OK;
    STK_RETURN_IF_ERROR(stk_generator_attach(source));
    *out = (stk_sequence){.source = source, .memory = work->memory, .sample_bytes = stk_sequence_bytes(source)};
    for (int f = 0; f + 1 < source->n_fields; f++)
        out->at[f + 1] = out->at[f] + stk_round_up(stk_desc_bytes(source->field[f].type.desc), ALIGNMENT);
    STK_RETURN_IF_ERROR(stk_mutex_init(&out->turn));
    out->has_turn = true;
    size_t n = out->sample_bytes * (size_t)work->n_workers;
    stk_status status = stk_memory_charge_lasting(work->memory, n);
    if (status != STK_OK) return stk_fail_prefix(status, "samples of the generator: ");
    out->charged = n;
    out->place = stk_pages_get(n, ALIGNMENT);
    return out->place ? STK_OK : stk_fail_memory(n);
}

void stk_sequence_close(stk_sequence *sequence)
{
    if (!sequence->source) return;
    stk_pages_free(sequence->place, sequence->charged);
    stk_memory_release(sequence->memory, sequence->charged);
    if (sequence->has_turn) stk_mutex_destroy(&sequence->turn);
    stk_generator_detach(sequence->source);
}

/* Reads the sample of the claimed row. False: there is none. */
static bool read_sample(stk_worker *worker, const stk_claim *claim)
{
    const stk_work *work = worker->work;
    const stk_sequence *s = work->sequence;
    stk_sequence_sample *sample = &worker->sample;
    void *place[STK_MAX_FIELDS];
    int64_t i_epoch, i_in_part, start_ns = stk_clock_ns();
    bool ended;
    stk_share_locate(&work->share, claim->i_batch, &i_epoch, &i_in_part);
    const stk_share_rows rows = stk_share_find_rows(&work->share, claim->i_batch);
    stk_order_place at =
        stk_order_map(&work->dataset->order, NULL, (uint64_t)i_epoch, stk_share_position(&rows, claim->from));
    for (int f = 0; f < s->source->n_fields; f++) {
        const stk_field_type *type = &s->source->field[f].type;
        place[f] = s->place + s->sample_bytes * (size_t)worker->i_worker + s->at[f];
        sample->item[f] = (stk_item){.type = *type, .data = place[f], .n_bytes = stk_desc_bytes(type->desc)};
    }
    sample->status = stk_generator_read(s->source, at.epoch, at.i_record, place, &ended, &sample->fatal);
    if (sample->status != STK_OK) snprintf(sample->error, sizeof(sample->error), "%s", stk_error_text());
    sample->is_there = true;
    int64_t ns = stk_clock_ns() - start_ns;
    stk_counter_add(&worker->read_ns, ns);
    stk_counter_add(&worker->n_read_timed, 1);
    stk_counter_add(&worker->work_ns, ns);
    if (ended) stk_ring_end(work->ring, claim, work->dataset->drop_remainder);
    return !ended;
}

bool stk_sequence_claim(stk_worker *worker, stk_claim *out)
{
    const stk_work *work = worker->work;
    stk_mutex_lock(&work->sequence->turn);
    bool is_there = stk_ring_claim(work->ring, 1, out) && stk_ring_needs(work->ring, out->i_batch, out->from) &&
                    read_sample(worker, out);
    stk_mutex_unlock(&work->sequence->turn);
    return is_there;
}

stk_status stk_sequence_give(const stk_sequence_sample *sample, stk_item *item, bool *fatal)
{
    *fatal = sample->fatal;
    if (sample->status != STK_OK) return stk_fail(sample->status, "%s", sample->error);
    memcpy(item, sample->item, sizeof(sample->item));
    return STK_OK;
}
