/* stoker data bench: what the input pipeline alone delivers, and what its stages take. */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "data.h"
#include "stoker/data/cache.h"
#include "stoker/data/keep.h"

enum { MOST_STAGES = 64 };

typedef struct bench {
    double samples_per_s;
    double cpu_us; /* of all threads, for a sample */
    int64_t n_samples, n_skipped;
    stk_loader_stats stats;
    stk_cache_stats cache;
    int64_t batch;
    stk_stage_stats stage[MOST_STAGES];
    int n_stages;
    double least, most; /* samples/s of the parts that are measured */
} bench;

enum { N_PARTS = 5 };

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double peak_rss_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 : 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef enum taken { TAKEN, LATE, ENDED } taken;

/* The next batch, unless it does not come before `end`. ENDED: of the data, or an error. */
static taken next_batch(stk_loader *loader, double end, const stk_batch **out)
{
    double left = end - seconds_now();
    if (!stk_loader_wait(loader, left > 0 ? (int)(left * 1000) + 1 : 0)) return LATE;
    return (*out = stk_loader_next(loader)) ? TAKEN : ENDED;
}

/* Takes batches for so long; each is touched once, as the peers' are. Sets *samples_per_s unless it is ENDED. */
static taken take(stk_loader *loader, double seconds, double *samples_per_s, int64_t *n_out)
{
    double start = seconds_now(), now = start;
    int64_t n = 0;
    volatile unsigned char touched;
    taken result = TAKEN;
    while (now - start < seconds && result == TAKEN) {
        const stk_batch *batch;
        result = next_batch(loader, start + seconds, &batch);
        if (result == ENDED) return ENDED;
        if (result == TAKEN) {
            n += stk_batch_count(batch);
            const unsigned char *data = stk_batch_data(batch, "image");
            if (data) touched = data[0];
            (void)touched;
            stk_batch_release(batch);
        }
        now = seconds_now();
    }
    *samples_per_s = (double)n / (now - start);
    *n_out += n;
    return result;
}

/* No part of the measurement is one, where batches take longer than it: then all that came counts, over all the time.
 */
static void count_all(bench *b, int64_t n, double seconds)
{
    b->n_samples = n;
    b->samples_per_s = b->least = b->most = (double)n / seconds;
}

/* A fifth of the time warms caches and buffers up; the rest is measured in five parts, of which the median counts. The
 * first batch may take all of the time, which then goes on for half as long again. */
static bool measure(const data_job *job, stk_loader *loader, bench *b)
{
    double rate[N_PARTS], warm, start = seconds_now(), start_cpu = cpu_seconds();
    const stk_batch *batch;
    taken result = next_batch(loader, start + (double)job->seconds, &batch);
    if (result == LATE)
        (void)stk_fail(STK_IO, "no batch came within %lld s: the source is slow or does not answer (--seconds)",
                       (long long)job->seconds);
    if (result != TAKEN) return false;
    int64_t n_all = stk_batch_count(batch);
    stk_batch_release(batch);
    stk_addresses_give_up_after(0);
    double left = (double)job->seconds - (seconds_now() - start), part;
    if (left < 0.5 * (double)job->seconds) left = 0.5 * (double)job->seconds;
    part = 0.8 * left / N_PARTS;
    result = take(loader, 0.2 * left, &warm, &n_all);
    double cpu = cpu_seconds();
    bool is_late = result == LATE;
    for (int i = 0; i < N_PARTS && result != ENDED; i++) {
        result = take(loader, part, &rate[i], &b->n_samples);
        is_late = is_late || result == LATE;
    }
    if (result == ENDED) return false;
    qsort(rate, N_PARTS, sizeof(rate[0]), compare);
    b->samples_per_s = rate[N_PARTS / 2];
    b->least = rate[0];
    b->most = rate[N_PARTS - 1];
    if (is_late && b->least <= 0) {
        count_all(b, b->n_samples + n_all, seconds_now() - start);
        cpu = start_cpu;
    }
    b->cpu_us = (cpu_seconds() - cpu) / (double)b->n_samples * 1e6;
    stk_loader_get_stats(loader, &b->stats);
    b->n_stages = stk_loader_get_stages(loader, b->stage, MOST_STAGES);
    return true;
}

static double stages_ns(const bench *b)
{
    double sum = 0;
    for (int i = 0; i < b->n_stages; i++)
        sum += b->stage[i].ns_per_sample;
    return sum;
}

static void print_json(const data_job *job, const bench *b)
{
    printf("{\"recipe\": ");
    cli_json_text(stdout, job->recipe);
    printf(", \"split\": \"%s\", \"threads\": %d, \"samples_per_s\": %.1f, \"least\": %.1f, \"most\": %.1f", job->split,
           b->stats.n_threads, b->samples_per_s, b->least, b->most);
    printf(", \"first_batch_s\": %.3f, \"peak_rss_bytes\": %.0f, \"cpu_us_per_sample\": %.2f, \"slot_bytes\": %zu",
           b->stats.first_batch_s, peak_rss_bytes(), b->cpu_us, b->stats.slot_bytes);
    printf(", \"memory_limit_bytes\": %zu, \"memory_peak_bytes\": %zu", b->stats.memory.limit_bytes,
           b->stats.memory.peak_bytes);
    printf(", \"cache_hits\": %lld, \"cache_misses\": %lld, \"cache_bytes\": %zu", (long long)b->cache.n_hits,
           (long long)b->cache.n_misses, b->cache.n_bytes);
    printf(", \"active_threads\": %d, \"used_slots\": %d, \"ready_mean\": %.2f, \"wait_ns\": %lld",
           b->stats.n_active_threads, b->stats.n_used_slots, b->stats.ready_mean, (long long)b->stats.wait_ns);
    printf(", \"skipped\": %lld, \"stages\": [", (long long)b->stats.n_skipped);
    for (int i = 0; i < b->n_stages; i++) {
        printf("%s{\"field\": ", i ? ", " : "");
        cli_json_text(stdout, b->stage[i].field);
        printf(", \"name\": ");
        cli_json_text(stdout, b->stage[i].name);
        printf(", \"us\": %.3f}", b->stage[i].ns_per_sample / 1e3);
    }
    printf("]}\n");
}

void data_print_ring(const stk_loader_stats *stats)
{
    cli_printf("ready when asked for: %.1f of %d batches; over time", stats->ready_mean, stats->n_used_slots);
    /* Eight parts say enough. */
    int n = stats->n_history, n_parts = n < 8 ? n : 8;
    for (int i = 0; i < n_parts; i++)
        cli_printf(" %.0f", (double)stats->ready[i * n / n_parts]);
    cli_printf("\n");
}

static void print_table(const bench *b)
{
    char count[CLI_TEXT], least[CLI_TEXT], most[CLI_TEXT], rss[CLI_TEXT], slots[CLI_TEXT];
    double sum = stages_ns(b);
    cli_printf("%s samples/s (%s to %s), %d threads, %.1f us of CPU each\n", cli_rate(b->samples_per_s, count),
               cli_rate(b->least, least), cli_rate(b->most, most), b->stats.n_threads, b->cpu_us);
    cli_printf("first batch %.2f s after the start; peak memory %s, of which %s are %d batches\n",
               b->stats.first_batch_s, cli_bytes(peak_rss_bytes(), rss), cli_bytes((double)b->stats.slot_bytes, slots),
               b->stats.n_slots);
    cli_printf("buffers took %s of the %s that they may\n", cli_bytes((double)b->stats.memory.peak_bytes, rss),
               cli_bytes((double)b->stats.memory.limit_bytes, slots));
    data_print_ring(&b->stats);
    double batch_s = (double)b->batch / b->samples_per_s;
    cli_printf("a step is never kept waiting if it takes %s or more for %lld samples; at less than %s it is %s\n",
               cli_time(batch_s, most), (long long)b->batch, cli_time(0.8 * batch_s, least), stk_input_verdict(1));
    if (b->cache.kind != STK_CACHE_NONE && b->cache.n_hits + b->cache.n_misses > 0)
        cli_printf("cache: %s, %.0f %% of the records came from it\n", cli_bytes((double)b->cache.n_bytes, rss),
                   100 * (double)b->cache.n_hits / (double)(b->cache.n_hits + b->cache.n_misses));
    if (b->cache.disk_is_full)
        cli_printf("cache: the disk of '%s' is full: only %lld records are kept\n", b->cache.path,
                   (long long)b->cache.n_present);
    for (int i = 0; i < b->n_stages; i++)
        cli_printf("  %8.1f us  %4.1f %%  %s%s%s\n", b->stage[i].ns_per_sample / 1e3,
                   sum > 0 ? 100 * b->stage[i].ns_per_sample / sum : 0, b->stage[i].field,
                   b->stage[i].field[0] ? ": " : "", b->stage[i].name);
    if (b->stats.n_skipped) cli_printf("%s records skipped\n", cli_count(b->stats.n_skipped, count));
}

int data_bench(data_job *job)
{
    static bench b;
    stk_loader *loader;
    stk_loader_config config = job->config;
    config.n_epochs = 0;
    if (stk_loader_open(job->dataset, &config, &loader) != STK_OK) return cli_fail();
    bool ok = measure(job, loader, &b);
    if (!ok) (void)stk_loader_status(loader); /* its text; that of one who was late stays */
    b.batch = stk_dataset_batch_size(job->dataset);
    stk_dataset_get_cache(job->dataset, &b.cache);
    if (ok && cli_has(job->args, "--json"))
        print_json(job, &b);
    else if (ok)
        print_table(&b);
    int code = ok ? CLI_OK : cli_fail();
    for (int64_t i = 0; !ok && stk_loader_skipped(loader, i); i++)
        fprintf(stderr, "        skipped %s\n", cli_shown(stk_loader_skipped(loader, i)));
    stk_loader_close(loader);
    return code;
}
