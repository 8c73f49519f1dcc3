/* Tuning and statistics of the loader, on a recipe's own data.
 *
 *     bench_tune [RECIPE [KEY=VALUE...]]      without: P1 to P3, whose data must be there
 *
 * Tuning: a loader that starts with one thread and two slots tunes itself for 10 s; then its speed is measured in turn
 * with loaders of fixed settings, over a grid, so that other work on the machine is shared by all. Wanted: at least
 * 0.95 of the best. Statistics: CPU time for a sample with stages timed and not, in turn. Wanted: less than 1 %.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "stoker/data/loader.h"
#include "stoker/train/run.h"

enum { MOST_GRID = 32, N_ROUNDS = 5, TUNING_S = 10 };
#define WINDOW_NS INT64_C(1500000000) /* slots that rested long come back page by page */

typedef struct subject {
    stk_loader_config config;
    stk_loader *loader;
    double rate[N_ROUNDS], cpu_us[N_ROUNDS]; /* samples/s; of all threads, for a sample */
} subject;

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Takes batches for so long; the number of samples. 0: there are none, or an error. */
static int64_t take(stk_loader *loader, int64_t ns)
{
    int64_t n = 0, end_ns = stk_clock_ns() + ns;
    do {
        const stk_batch *batch = stk_loader_next(loader);
        if (!batch) return 0;
        n += stk_batch_count(batch);
        stk_batch_release(batch);
    } while (stk_clock_ns() < end_ns);
    return n;
}

/* Until its slots are full, so that it takes nothing from the next one's time. */
static void let_rest(stk_loader *loader)
{
    stk_loader_stats before, now;
    stk_loader_get_stats(loader, &now);
    do {
        before = now;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        stk_loader_get_stats(loader, &now);
    } while (now.work_ns != before.work_ns);
}

/* One window of each in turn; others rest meanwhile, their slots full. Those are used up first. */
static stk_status measure(subject *subjects, int n)
{
    for (int r = 0; r < N_ROUNDS; r++)
        for (int i = 0; i < n; i++) {
            subject *s = &subjects[i];
            stk_loader_stats stats;
            stk_loader_get_stats(s->loader, &stats);
            for (int k = 0; k < stats.n_used_slots + 1; k++)
                if (!take(s->loader, 0)) return stk_loader_status(s->loader);
            int64_t start_ns = stk_clock_ns(), start_cpu_ns = cpu_ns(), n_samples = take(s->loader, WINDOW_NS);
            if (!n_samples) return stk_loader_status(s->loader);
            s->cpu_us[r] = (double)(cpu_ns() - start_cpu_ns) / (double)n_samples * 1e-3;
            s->rate[r] = (double)n_samples / (double)(stk_clock_ns() - start_ns) * 1e9;
            let_rest(s->loader);
        }
    return STK_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(double *values)
{
    qsort(values, N_ROUNDS, sizeof(*values), compare);
}

static stk_status open_all(const stk_dataset *dataset, subject *subjects, int n)
{
    for (int i = 0; i < n; i++) {
        stk_status status = stk_loader_open(dataset, &subjects[i].config, &subjects[i].loader);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}

static void close_all(subject *subjects, int n)
{
    for (int i = 0; i < n; i++)
        stk_loader_close(subjects[i].loader);
}

static stk_status bench_tuning(const stk_dataset *dataset, stk_loader_config config)
{
    subject s[MOST_GRID + 1] = {0};
    int n = 1, n_cores = config.n_threads ? config.n_threads : stk_n_cores(), best = 1;
    s[0].config = config;
    s[0].config.n_first_threads = 1;
    s[0].config.n_first_slots = 2;
    for (int threads = 1; threads <= n_cores; threads *= 2)
        for (int slots = 2; slots <= 8 && n <= MOST_GRID; slots *= 2, n++) {
            s[n].config = config;
            s[n].config.no_tuning = true;
            s[n].config.n_threads = threads;
            s[n].config.n_slots = slots;
        }
    stk_status status = open_all(dataset, s, n);
    if (status == STK_OK && !take(s[0].loader, TUNING_S * INT64_C(1000000000))) status = stk_loader_status(s[0].loader);
    if (status == STK_OK) status = measure(s, n);
    if (status == STK_OK) {
        stk_loader_stats stats;
        double rate[MOST_GRID + 1];
        for (int i = 0; i < n; i++) {
            sort(s[i].rate);
            rate[i] = s[i].rate[N_ROUNDS / 2];
        }
        for (int i = 1; i < n; i++) {
            printf("%2d threads, %2d slots: %12.0f samples/s\n", s[i].config.n_threads, s[i].config.n_slots, rate[i]);
            if (rate[i] > rate[best]) best = i;
        }
        stk_loader_get_stats(s[0].loader, &stats);
        printf("tuned from 1 thread, 2 slots for %d s to %d, %d: %.0f samples/s, %.2f of the best (0.95 wanted)\n",
               TUNING_S, stats.n_active_threads, stats.n_used_slots, rate[0], rate[0] / rate[best]);
    }
    close_all(s, n);
    return status;
}

/* One thread, and the least of all windows: other work on the machine only adds to it. Two loaders that do the same
 * differ by some per cent, by where their memory lies; so each way is measured in several. */
static stk_status bench_statistics(const stk_dataset *dataset, stk_loader_config config)
{
    enum { N_TIMES = 4 };
    double least[2] = {1e300, 1e300};
    config.no_tuning = true;
    config.n_threads = 1;
    for (int k = 0; k < N_TIMES; k++) {
        subject s[2] = {{.config = config}, {.config = config}};
        s[k & 1].config.no_stage_times = true;
        stk_status status = open_all(dataset, s, 2);
        if (status == STK_OK) status = measure(s, 2);
        close_all(s, 2);
        if (status != STK_OK) return status;
        for (int i = 0; i < 2; i++)
            for (int r = 0; r < N_ROUNDS; r++) {
                double *to = &least[i == (k & 1)];
                if (s[i].cpu_us[r] < *to) *to = s[i].cpu_us[r];
            }
    }
    printf("statistics: %.3f us of CPU for a sample with, %.3f without: %.2f %% (less than 1 %% wanted)\n", least[0],
           least[1], 100 * (least[0] / least[1] - 1));
    return STK_OK;
}

static stk_status bench(const char *recipe, const char *const *sets, int n_sets)
{
    stk_dataset *dataset = NULL;
    stk_loader_config config;
    printf("%s\n", recipe);
    stk_status status = stk_recipe_dataset(recipe, sets, n_sets, "train", &dataset, &config);
    if (status == STK_OK) status = bench_statistics(dataset, config);
    if (status == STK_OK) status = bench_tuning(dataset, config);
    if (status != STK_OK) printf("%s\n", stk_error_text());
    stk_dataset_free(dataset);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const recipes[] = {"recipes/photos.yaml", "recipes/bench-cifar-jpeg.yaml",
                                          "recipes/bench-tfrecord.yaml"};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) return bench(argv[1], (const char *const *)(argv + 2), argc - 2) != STK_OK;
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++)
        bench(recipes[i], NULL, 0);
    return 0;
}
