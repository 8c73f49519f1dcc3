/* Speed of the loader on folders of images: decode, augment, normalise, in batches of 128. The consumer reads nothing,
 * so that this is what the data plane alone can deliver.
 *
 *     bench_images FOLDER [seconds] [crop|resized]    one sub-folder a class
 *
 * crop: random_crop(32, 4), random_flip, for images of 32 x 32. resized: random_resized_crop(224), random_flip. Without
 * FOLDER it measures generated JPEG files of 32 x 32 in a temporary folder.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/codec/image.h"
#include "stoker/data/loader.h"

enum { SIDE = 32, N_FILES = 2000 };

static stk_status make_folder(const char *folder)
{
    uint8_t pixels[SIDE * SIDE * 3];
    char path[256];
    snprintf(path, sizeof(path), "%s/class", folder);
    stk_status status = stk_dir_make(path);
    for (int i = 0; i < N_FILES && status == STK_OK; i++) {
        uint8_t *encoded;
        size_t n;
        for (int k = 0; k < SIDE * SIDE * 3; k++) /* as noisy as a photograph of that size */
            pixels[k] = (uint8_t)(k / 24 + i + (int)(stk_mix64((uint64_t)(k + i * 4096)) % 48));
        status = stk_jpeg_encode(pixels, SIDE, SIDE, 3, 90, &encoded, &n);
        if (status != STK_OK) break;
        snprintf(path, sizeof(path), "%s/class/%04d.jpg", folder, i);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(encoded, 1, n, f) != n) status = STK_IO;
        if (f) fclose(f);
        free(encoded);
    }
    return status;
}

static stk_dataset *make_dataset(const char *folder, bool resized)
{
    stk_dataset *dataset = stk_dataset_images(folder);
    stk_dataset_shuffle(dataset, 1);
    if (resized)
        stk_dataset_apply(dataset, stk_decode(), stk_random_resized_crop(224, true), stk_random_flip(),
                          stk_normalize_imagenet(), NULL);
    else
        stk_dataset_apply(dataset, stk_decode(), stk_random_crop(SIDE, 4), stk_random_flip(), stk_normalize_cifar10(),
                          NULL);
    stk_dataset_batch(dataset, 128, true);
    return dataset;
}

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
        if (!first_ns && stk_clock_ns() > start_ns + (end_ns - start_ns) / 5) { /* caches and buffers are warm */
            first_ns = stk_clock_ns();
            stk_loader_get_stats(loader, &before);
        }
        stk_batch_release(batch);
    }
    double elapsed_ns = (double)(stk_clock_ns() - first_ns);
    stk_loader_get_stats(loader, &after);
    double n = (double)(after.n_samples - before.n_samples);
    status = stk_loader_status(loader);
    if (status == STK_OK)
        printf("%d threads: %.0f images/s, %.1f us of work each\n", after.n_threads, n / elapsed_ns * 1e9,
               (double)(after.work_ns - before.work_ns) / n / 1e3);
    stk_loader_close(loader);
    return status;
}

int main(int argc, char **argv)
{
    char made[] = "/tmp/stoker-bench-XXXXXX";
    const char *folder = argc > 1 ? argv[1] : mkdtemp(made);
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    bool resized = argc > 3 && !strcmp(argv[3], "resized");
    if (!folder) return 1;
    stk_status status = argc > 1 ? STK_OK : make_folder(folder);
    stk_dataset *dataset = make_dataset(folder, resized);
    if (status == STK_OK) status = stk_dataset_status(dataset);
    for (int n_threads = 1; n_threads <= 2 && status == STK_OK; n_threads++)
        status = measure(dataset, n_threads, seconds);
    if (status != STK_OK) fprintf(stderr, "%s\n", stk_error_text());
    stk_dataset_free(dataset);
    if (argc < 2) (void)stk_tree_remove(folder);
    return status != STK_OK;
}
