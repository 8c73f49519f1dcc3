/* Files cold on disk: 1,500 TFRecord Examples of 150,528 bytes, shuffled, batches of 32, nothing done to them. Before
 * each epoch the file's pages are dropped from memory (POSIX_FADV_DONTNEED). Epochs take turns with and without looking
 * ahead (data/loader/ahead.h), and both must give the same batches.
 *
 *     bench_cold [threads] [rounds] [file]
 *
 * file: made when it is not there (default /var/tmp/stoker-bench-cold.tfrecord; /tmp may be memory).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/codec/example.h"
#include "data/codec/tfrecord_writer.h"
#include "data/dataset/dataset.h"
#include "stoker/data/loader.h"
#include "stoker/data/sources.h"

enum { N_RECORDS = 1500, N_PIXELS = 224 * 224 * 3, MOST_ROUNDS = 100 };

static stk_status write_file(const char *path)
{
    static uint64_t image[N_PIXELS / 8];
    stk_tfrecord_writer *writer;
    stk_text list = {0}, example = {0};
    stk_status status = stk_tfrecord_writer_open(path, STK_TFRECORD_PLAIN, &writer);
    for (int64_t i = 0; i < N_RECORDS && status == STK_OK; i++) {
        for (int64_t k = 0; k < N_PIXELS / 8; k++)
            image[k] = stk_mix64((uint64_t)(i * N_PIXELS + k));
        list.n = example.n = 0;
        stk_example_add_bytes(&list, "image", image, N_PIXELS);
        stk_example_finish(&list, &example);
        status = stk_tfrecord_writer_add(writer, (stk_span){(unsigned char *)example.data, example.n});
    }
    if (status == STK_OK) status = stk_tfrecord_writer_finish(writer);
    stk_tfrecord_writer_free(writer);
    stk_text_free(&list);
    stk_text_free(&example);
    return status;
}

/* Only pages that are on disk can be dropped. */
static bool drop_pages(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
    if (fd >= 0) close(fd);
    return ok;
}

/* One epoch in MB/s; 0: it failed. */
static double run(const stk_dataset *dataset, int n_threads, uint64_t *hash)
{
    stk_loader_config config = stk_loader_config_default();
    stk_loader *loader;
    config.n_threads = n_threads;
    config.n_epochs = 1;
    int64_t start_ns = stk_clock_ns();
    if (stk_loader_open(dataset, &config, &loader) != STK_OK) return 0;
    *hash = 0;
    for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
        const uint64_t *data = stk_batch_data(batch, "image");
        for (int64_t i = 0; i < stk_batch_count(batch); i++)
            *hash = stk_mix64(*hash ^ data[i * (N_PIXELS / 8)]);
        stk_batch_release(batch);
    }
    bool ok = stk_loader_status(loader) == STK_OK;
    double seconds = (double)(stk_clock_ns() - start_ns) * 1e-9;
    stk_loader_close(loader);
    return ok ? (double)N_RECORDS * N_PIXELS / seconds * 1e-6 : 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int n_threads = argc > 1 ? atoi(argv[1]) : 2, n_rounds = argc > 2 ? atoi(argv[2]) : 7;
    const char *path = argc > 3 ? argv[3] : "/var/tmp/stoker-bench-cold.tfrecord";
    double rate[3][MOST_ROUNDS]; /* plain, ahead, warm */
    uint64_t hash[3];
    if (n_rounds < 1 || n_rounds > MOST_ROUNDS) n_rounds = 7;
    if (access(path, R_OK) != 0 && write_file(path) != STK_OK) {
        fprintf(stderr, "bench_cold: %s\n", stk_error_text());
        return 1;
    }
    stk_feature feature = {.name = "image", .dtype = STK_U8, .shape = STK_SHAPE(224, 224, 3)};
    stk_dataset *dataset = stk_dataset_tfrecord(&path, 1, &feature, 1, false);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_batch(dataset, 32, false);
    if (stk_dataset_status(dataset) != STK_OK) {
        fprintf(stderr, "bench_cold: %s\n", stk_error_text());
        return 1;
    }
    const stk_source_class *ahead = dataset->source->class;
    stk_source_class plain = *ahead;
    plain.fetch = NULL;
    for (int i = 0; i < n_rounds; i++)
        for (int k = 0; k < 3; k++) {
            dataset->source->class = k == 0 ? &plain : ahead;
            if (k < 2 && !drop_pages(path)) fprintf(stderr, "bench_cold: '%s' cannot be dropped from memory\n", path);
            rate[k][i] = run(dataset, n_threads, &hash[k]);
            if (rate[k][i] == 0 || hash[k] != hash[0]) {
                fprintf(stderr, "bench_cold: the batches differ, or failed: %s\n", stk_error_text());
                return 1;
            }
        }
    static const char *const name[] = {"cold, plain", "cold, ahead", "warm"};
    for (int k = 0; k < 3; k++) {
        qsort(rate[k], (size_t)n_rounds, sizeof(rate[k][0]), compare);
        printf("%-12s %6.0f MB/s (%.0f to %.0f), %.2fx\n", name[k], rate[k][n_rounds / 2], rate[k][0],
               rate[k][n_rounds - 1], rate[k][n_rounds / 2] / rate[0][n_rounds / 2]);
    }
    dataset->source->class = ahead;
    stk_dataset_free(dataset);
    return 0;
}
