/* What a loader tells about itself: sums over its workers, skipped records, what tuning did. */
#include <stdio.h>

#include "data/loader/inside.h"

void stk_loader_get_stats(const stk_loader *loader, stk_loader_stats *out)
{
    if (!out) return;
    if (!loader) {
        *out = (stk_loader_stats){0};
        return;
    }
    const stk_ring_config *ring = &loader->ring_config;
    *out = (stk_loader_stats){.n_batches = loader->i_next,
                              .n_samples = loader->n_samples,
                              .wait_ns = loader->wait_ns,
                              .n_skipped = loader->skips.n_records,
                              .slot_bytes = (ring->one_memory ? 1 : (size_t)ring->n_slots) * stk_ring_slot_bytes(ring),
                              .n_threads = loader->n_threads,
                              .n_slots = ring->n_slots,
                              .first_batch_s = loader->first_batch_s};
    stk_memory_get_stats(loader->work.memory, &out->memory);
    out->n_active_threads = loader->tuner.n_threads;
    out->n_used_slots = loader->tuner.n_slots;
    out->ready_mean = loader->tuner.n_ready ? loader->tuner.ready_sum / (double)loader->tuner.n_ready : 0;
    out->n_history = loader->tuner.n_history;
    for (int i = 0; i < loader->tuner.n_history; i++)
        out->ready[i] = loader->tuner.ready[i];
    for (int i = 0; i < loader->work.n_workers; i++)
        out->work_ns += stk_counter_get(&loader->worker[i].work_ns);
}

/* Sums of one stage over the workers. */
static void add_stage(const stk_loader *loader, const char *field, int64_t ns, int64_t n_timed, int n_stages,
                      const stk_chain *chain, int i_stage, stk_stage_stats *out)
{
    size_t used = 0;
    *out = (stk_stage_stats){.field = field, .ns_per_sample = n_timed ? (double)ns / (double)n_timed : 0};
    if (!chain) {
        const stk_source_class *source = loader->work.dataset->source->class;
        bool is_made = source->read_keyed && !source->file_of; /* of samples, which have stages of their own */
        snprintf(out->name, sizeof(out->name), "%s (%s%s)", loader->work.cache ? "read or cache" : "read", source->name,
                 is_made ? ", with the stages of what it is made of" : "");
        return;
    }
    for (int i = i_stage; i < i_stage + n_stages && used < sizeof(out->name); i++)
        used += (size_t)snprintf(out->name + used, sizeof(out->name) - used, "%s%s", i > i_stage ? " + " : "",
                                 chain->stage[i]->class->key.name);
}

int stk_loader_get_stages(const stk_loader *loader, stk_stage_stats *out, int n_most)
{
    if (!loader || !out) return 0;
    const stk_dataset *dataset = loader->work.dataset;
    int64_t ns = 0, n_timed = 0;
    int n = 0;
    for (int k = 0; k < loader->work.n_workers; k++) {
        ns += stk_counter_get(&loader->worker[k].read_ns);
        n_timed += stk_counter_get(&loader->worker[k].n_read_timed);
    }
    if (n < n_most) add_stage(loader, "", ns, n_timed, 0, NULL, 0, &out[n]);
    n++;
    for (int f = 0; f < dataset->source->n_fields; f++)
        for (int i = 0; i < loader->work.chain[f]->n_stages; i++) {
            int64_t n_stages = 0;
            ns = n_timed = 0;
            for (int k = 0; k < loader->work.n_workers; k++) {
                const stk_stage_time *t = &loader->worker[k].chain[f].time[i];
                ns += stk_counter_get(&t->ns);
                n_timed += stk_counter_get(&t->n_timed);
                if (stk_counter_get(&t->n_stages) > n_stages) n_stages = stk_counter_get(&t->n_stages);
            }
            if (n_timed == 0) continue;
            if (n < n_most)
                add_stage(loader, dataset->source->field[f].name, ns, n_timed, (int)n_stages, loader->work.chain[f], i,
                          &out[n]);
            n++;
        }
    return n < n_most ? n : n_most;
}

const int64_t *stk_loader_skipped_keys(const stk_loader *loader, int64_t *n)
{
    *n = loader->skips.n_keys;
    return loader->skips.key;
}

const char *stk_loader_skipped(const stk_loader *loader, int64_t i)
{
    if (!loader) return NULL;
    return i >= 0 && i < loader->skips.n_kept ? loader->skips.kept[i].text : NULL;
}

const char *stk_loader_tuning(const stk_loader *loader, int i)
{
    if (!loader) return NULL;
    return i >= 0 && i < loader->tuner.n_texts ? loader->tuner.text[i] : NULL;
}

const char *stk_input_verdict(double wait_share)
{
    return wait_share < 0.05 ? "not input-bound" : wait_share < 0.20 ? "moderately input-bound" : "highly input-bound";
}
