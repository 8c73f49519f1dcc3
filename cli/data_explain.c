/* stoker data explain: what a pipeline is made of, what it promises and what it needs. */
#include <time.h>

#include "data.h"
#include "stoker/data/explain.h"

/* --- as text --- */

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* Windows of a file may share its bytes or leave some out, and decoded ones are not as they lie there. */
static void print_sizes(const stk_explanation *e)
{
    char bytes[CLI_TEXT], all[CLI_TEXT], files[CLI_TEXT];
    if (e->window_bytes > 0)
        cli_printf(", %s; windows of %s each, %s in all", cli_bytes((double)e->file_bytes, files),
                   cli_bytes((double)e->window_bytes, bytes),
                   cli_bytes((double)e->window_bytes * (double)e->n_records, all));
    else if (e->n_measured && e->window_bytes < 0)
        cli_printf(", about %s each, decoded", cli_bytes(e->record_bytes, bytes));
    else if (e->n_measured)
        cli_printf(", about %s each, %s in all%s", cli_bytes(e->record_bytes, bytes),
                   cli_bytes(e->record_bytes * (double)e->n_records, all), e->in_memory ? ", in memory" : "");
}

static void print_source(const stk_explanation *e)
{
    char n[CLI_TEXT], files[CLI_TEXT], classes[CLI_TEXT], all[CLI_TEXT];
    cli_printf("source   %s: %s record%s", cli_shown(e->source), cli_count(e->n_records, n), plural(e->n_records));
    if (e->n_files && e->n_files != e->n_records)
        cli_printf(" in %s file%s", cli_count(e->n_files, files), plural(e->n_files));
    if (e->n_classes) cli_printf(", %s class%s", cli_count(e->n_classes, classes), e->n_classes == 1 ? "" : "es");
    print_sizes(e);
    cli_printf("\n");
    if (e->n_corrupt)
        cli_printf("         %s of %s records looked at cannot be read, as %s\n", cli_count(e->n_corrupt, n),
                   cli_count(e->n_measured + e->n_corrupt, all), cli_shown(e->corrupt));
}

static void print_order(const stk_explanation *e)
{
    char n[CLI_TEXT], batches[CLI_TEXT], batch[CLI_TEXT], rest[CLI_TEXT];
    for (int i = 0; i < e->n_orders; i++)
        cli_printf("%s %s\n", i ? "        " : "order   ", cli_shown(e->order[i]));
    if (e->n_orders == 0) cli_printf("order    as the source has them\n");
    for (int i = 0; i < e->n_scans; i++)
        cli_printf("         scan of %s\n", cli_shown(e->scan[i]));
    cli_printf("         %s\n", e->indexable
                                    ? "indexable: which record is sample n of an epoch is arithmetic, without a buffer"
                                    : "sequential: a position in a window is found by going back over draws, exactly");
    cli_printf("epoch    %s sample%s, %s batch%s of %s%s", cli_count(e->n_samples, n), plural(e->n_samples),
               cli_count(e->n_batches, batches), e->n_batches == 1 ? "" : "es", e->varies ? "up to " : "",
               cli_count(e->batch, batch));
    if (e->n_last != e->batch) cli_printf(", the last of %s", cli_count(e->n_last, rest));
    if (e->n_dropped) cli_printf(", %s sample%s left out", cli_count(e->n_dropped, rest), plural(e->n_dropped));
    if (e->padding >= 0) cli_printf(", %.1f %% of them padding", 100 * e->padding);
    if (e->in_memory)
        cli_printf(", nothing read\n");
    else if (e->n_measured && e->bytes_per_epoch >= 0)
        cli_printf(", about %s read\n", cli_bytes(e->bytes_per_epoch, rest));
    else
        cli_printf("\n");
}

/* "decode + random_flip -> u8[?,?,3]", one line for each pass. */
static void print_stages(const stk_explanation *e)
{
    bool first = true;
    for (int i = 0; i < e->n_stages; first = false) {
        const stk_explained_stage *s = &e->stage[i];
        int last = i;
        while (s->i_pass && last + 1 < e->n_stages && e->stage[last + 1].i_pass == s->i_pass)
            last++;
        cli_printf("%s %s: ", first ? "stages  " : "        ", cli_shown(s->field));
        for (int k = i; k <= last; k++)
            cli_printf("%s%s%s", k > i ? " + " : "", e->stage[k].name, e->stage[k].random ? " (random)" : "");
        cli_printf(" -> %s%s\n", e->stage[last].output, last > i ? ", as one pass over rows" : "");
        i = last + 1;
    }
    for (int i = 0; i < e->n_fields; i++)
        cli_printf("%s %s: %s -> %s\n", i ? "        " : "fields  ", cli_shown(e->field[i].name), e->field[i].input,
                   e->field[i].output);
}

static void print_cache(const stk_explanation *e)
{
    static const char *const kinds[] = {"none", "memory", "disk", "auto"};
    char all[CLI_TEXT], reserved[CLI_TEXT], present[CLI_TEXT];
    const stk_cache_stats *c = &e->cache;
    if (c->ns_without > 0)
        cli_printf("cache    measured: %.0f us a sample without, %.0f us with it in memory\n", c->ns_without / 1e3,
                   c->ns_with / 1e3);
    if (c->kind == STK_CACHE_NONE) {
        if (c->likely_bytes)
            cli_printf("cache    none: %s would be needed, and must fit and pay\n",
                       cli_bytes((double)c->likely_bytes, all));
        return;
    }
    cli_printf("cache    %s, after %d stage%s: about %s for all records", kinds[c->kind], e->n_cached,
               e->n_cached == 1 ? "" : "s", cli_bytes((double)c->likely_bytes, all));
    if (c->kind == STK_CACHE_MEMORY)
        cli_printf(", of which %s may be kept", cli_bytes((double)c->reserved_bytes, reserved));
    else
        cli_printf("; '%s' has %.0f %% of them", cli_shown(c->path), 100 * (double)c->n_present / (double)c->n_records);
    cli_printf(" (%s now)\n", cli_bytes((double)c->n_bytes, present));
}

static void print_text(const stk_explanation *e)
{
    char slot[CLI_TEXT], all[CLI_TEXT], limit[CLI_TEXT];
    print_source(e);
    print_order(e);
    print_stages(e);
    cli_printf("memory   %d slots of one batch, %s each, %s in all; %d threads; the limit is %s for all buffers\n",
               e->n_slots, cli_bytes((double)e->slot_bytes, slot),
               cli_bytes((double)e->slot_bytes * (double)e->n_slots, all), e->n_threads,
               cli_bytes((double)e->memory_limit_bytes, limit));
    print_cache(e);
    cli_printf("promise  the same batches for any number of threads: %s; exact resume at any batch: %s\n",
               e->same_batches ? "yes" : "no", e->exact_resume ? "yes" : "no");
    static const char *const policy[] = {[STK_ON_ERROR_STOP] = "stops the run and is named",
                                         [STK_ON_ERROR_SKIP] = "is left out, counted and listed",
                                         [STK_ON_ERROR_REPLACE] =
                                             "is replaced by another, drawn by key, counted and listed"};
    cli_printf("         a corrupt record %s\n", policy[e->on_error]);
}

/* --- as JSON --- */

static void put_text(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    cli_json_place(stdout, text);
}

static void put_bool(const char *key, bool value)
{
    printf(", \"%s\": %s", key, value ? "true" : "false");
}

static void print_json_stages(const stk_explanation *e)
{
    printf(", \"stages\": [");
    for (int i = 0; i < e->n_stages; i++) {
        const stk_explained_stage *s = &e->stage[i];
        printf("%s{\"pass\": %d", i ? ", " : "", s->i_pass);
        put_text("field", s->field);
        put_text("name", s->name);
        put_text("output", s->output);
        put_bool("random", s->random);
        printf("}");
    }
    printf("], \"fields\": [");
    for (int i = 0; i < e->n_fields; i++) {
        printf("%s{\"row_bytes\": %zu", i ? ", " : "", e->field[i].row_bytes);
        put_text("name", e->field[i].name);
        put_text("input", e->field[i].input);
        put_text("output", e->field[i].output);
        printf("}");
    }
    printf("]");
}

static void print_json(const data_job *job, const stk_explanation *e)
{
    printf("{\"recipe\": ");
    cli_json_place(stdout, job->recipe);
    put_text("split", job->split);
    put_text("source", e->source);
    printf(", \"records\": %lld, \"files\": %lld, \"classes\": %lld, \"record_bytes\": %.1f, \"corrupt\": %lld",
           (long long)e->n_records, (long long)e->n_files, (long long)e->n_classes, e->record_bytes,
           (long long)e->n_corrupt);
    put_bool("in_memory", e->in_memory);
    printf(", \"order\": [");
    for (int i = 0; i < e->n_orders; i++) {
        printf("%s", i ? ", " : "");
        cli_json_place(stdout, e->order[i]);
    }
    printf("], \"surveys\": [");
    for (int i = 0; i < e->n_scans; i++) {
        printf("%s", i ? ", " : "");
        cli_json_place(stdout, e->scan[i]);
    }
    printf("]");
    put_text("class", e->indexable ? "indexable" : "sequential");
    put_bool("same_batches", e->same_batches);
    put_bool("exact_resume", e->exact_resume);
    static const char *const policy[] = {"fail", "skip", "replace"};
    put_text("on_error", policy[e->on_error]);
    printf(", \"samples\": %lld, \"batches\": %lld, \"batch\": %lld, \"last\": %lld, \"dropped\": %lld",
           (long long)e->n_samples, (long long)e->n_batches, (long long)e->batch, (long long)e->n_last,
           (long long)e->n_dropped);
    if (e->padding >= 0) printf(", \"padding\": %.4f", e->padding);
    if (e->file_bytes > 0)
        printf(", \"file_bytes\": %lld, \"window_bytes\": %lld", (long long)e->file_bytes, (long long)e->window_bytes);
    if (e->bytes_per_epoch >= 0) printf(", \"bytes_per_epoch\": %.0f", e->bytes_per_epoch);
    print_json_stages(e);
    printf(", \"threads\": %d, \"slots\": %d, \"slot_bytes\": %zu, \"memory_bytes\": %zu", e->n_threads, e->n_slots,
           e->slot_bytes, e->slot_bytes * (size_t)e->n_slots);
    printf(", \"memory_limit_bytes\": %zu", e->memory_limit_bytes);
    static const char *const kinds[] = {"none", "memory", "disk", "auto"};
    printf(", \"cache\": {\"bytes\": %zu, \"likely_bytes\": %zu, \"records\": %lld", e->cache.n_bytes,
           e->cache.likely_bytes, (long long)e->cache.n_present);
    put_text("kind", kinds[e->cache.kind]);
    put_text("path", e->cache.path);
    printf("}");
    put_text("note", e->note);
    printf("}\n");
}

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Runs for a while from the least that is possible, and says what tuning made of it. */
static int explain_tuning(const data_job *job)
{
    stk_loader *loader;
    stk_loader_stats stats;
    const stk_batch *batch;
    stk_loader_config config = job->config;
    config.n_first_threads = 1;
    config.n_first_slots = 2;
    if (stk_loader_open(job->dataset, &config, &loader) != STK_OK) return cli_fail();
    int64_t end_ns = job->seconds * INT64_C(1000000000), start_ns = clock_ns();
    while (clock_ns() - start_ns < end_ns && (batch = stk_loader_next(loader)))
        stk_batch_release(batch);
    int code = stk_loader_status(loader) == STK_OK ? CLI_OK : cli_fail();
    stk_loader_get_stats(loader, &stats);
    cli_printf("tuned    %d of %d threads, %d of %d slots, from 1 and 2, with a consumer that does nothing\n",
               stats.n_active_threads, stats.n_threads, stats.n_used_slots, stats.n_slots);
    for (int i = 0; stk_loader_tuning(loader, i); i++)
        cli_printf("         %s\n", stk_loader_tuning(loader, i));
    cli_printf("         ");
    data_print_ring(&stats);
    stk_loader_close(loader);
    return code;
}

int data_explain(data_job *job)
{
    static stk_explanation e;
    if (stk_dataset_explain(job->dataset, &job->config, &e) != STK_OK) return cli_fail();
    if (cli_has(job->args, "--json"))
        print_json(job, &e);
    else
        print_text(&e);
    if (cli_has(job->args, "--seconds") && !cli_has(job->args, "--json")) return explain_tuning(job);
    return CLI_OK;
}
