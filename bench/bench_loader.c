/* Speed of the loader on small records: 60,000 u8 samples of 784 bytes and their labels, shuffled, scaled to f32, in
 * batches of 128. The consumer reads nothing, so that this is what the data plane alone can deliver.
 *
 *     bench_loader [threads] [seconds] [raw]      raw: without the scale stage
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "stoker/data/loader.h"

enum { N_SAMPLES = 60000, SIDE = 28, N_PIXELS = SIDE * SIDE };

static stk_status measure(const stk_dataset *dataset, int n_threads, double seconds)
{
    stk_loader_config config = stk_loader_config_default();
    config.n_threads = n_threads;
    stk_loader *loader = NULL;
    stk_status status = stk_loader_open(dataset, &config, &loader);
    if (status != STK_OK) return status;
    int64_t start_ns = stk_clock_ns(), first_ns = 0, end_ns = start_ns + (int64_t)(seconds * 1e9);
    stk_loader_stats before = {0}, after;
    const stk_batch *batch;
    while ((batch = stk_loader_next(loader)) && stk_clock_ns() < end_ns) {
        /* The first tenth warms caches and buffers. */
        if (!first_ns && stk_clock_ns() > start_ns + (end_ns - start_ns) / 10) {
            first_ns = stk_clock_ns();
            stk_loader_get_stats(loader, &before);
        }
        stk_batch_release(batch);
    }
    double elapsed_ns = (double)(stk_clock_ns() - first_ns);
    stk_loader_get_stats(loader, &after);
    double n = (double)(after.n_samples - before.n_samples);
    printf("%d threads, %d slots: %.2f M samples/s, %.0f ns of work each, consumer waited %.0f %%\n", after.n_threads,
           after.n_slots, n / elapsed_ns * 1e3, (double)(after.work_ns - before.work_ns) / n,
           100 * (double)(after.wait_ns - before.wait_ns) / elapsed_ns);
    status = stk_loader_status(loader);
    stk_loader_close(loader);
    return status;
}

int main(int argc, char **argv)
{
    int n_threads = argc > 1 ? atoi(argv[1]) : 0;
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    bool raw = argc > 3 && !strcmp(argv[3], "raw");
    unsigned char *images = malloc((size_t)N_SAMPLES * N_PIXELS);
    int32_t *labels = malloc(N_SAMPLES * sizeof(*labels));
    if (!images || !labels) return 1;
    for (size_t i = 0; i < (size_t)N_SAMPLES * N_PIXELS; i++)
        images[i] = (unsigned char)stk_mix64(i);
    for (int i = 0; i < N_SAMPLES; i++)
        labels[i] = i % 10;
    stk_array_field fields[] = {{"image", STK_U8, STK_SHAPE(SIDE, SIDE, 1), images},
                                {"label", STK_I32, {.rank = 0}, labels}};
    stk_dataset *dataset = stk_dataset_arrays(N_SAMPLES, fields, 2);
    stk_dataset_shuffle(dataset, 1);
    if (!raw) stk_dataset_apply(dataset, stk_scale(1 / 255.0), NULL);
    stk_dataset_batch(dataset, 128, true);
    stk_status status = stk_dataset_status(dataset);
    if (status == STK_OK) status = measure(dataset, n_threads, seconds);
    if (status != STK_OK) fprintf(stderr, "%s\n", stk_error_text());
    stk_dataset_free(dataset);
    free(images);
    free(labels);
    return status != STK_OK;
}
