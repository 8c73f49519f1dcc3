/* Speed of TFRecord: 200,000 Examples of a u8 image 28 x 28 x 1 and an i64 label -> parse, / 255 to f32, shuffled,
 * batches of 128; the workload that other input systems call P3 here. Every epoch reads and checks every record. The
 * consumer touches one value of each batch. Figures are of whole epochs: the median, and the slowest and fastest.
 *
 *     bench_tfrecord [threads] [seconds] [file] [memory]
 *
 * file: made when it is not there (default /tmp/stoker-bench.tfrecord). memory: it is read once, before the first
 * epoch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/codec/example.h"
#include "data/codec/tfrecord_writer.h"
#include "stoker/data/loader.h"
#include "stoker/data/sources.h"

enum { N_RECORDS = 200000, SIDE = 28, N_PIXELS = SIDE * SIDE, MOST_EPOCHS = 1000 };

static stk_status write_file(const char *path)
{
    stk_tfrecord_writer *writer;
    stk_text list = {0}, example = {0};
    unsigned char image[N_PIXELS];
    stk_status status = stk_tfrecord_writer_open(path, STK_TFRECORD_PLAIN, &writer);
    for (int64_t i = 0; i < N_RECORDS && status == STK_OK; i++) {
        for (int k = 0; k < N_PIXELS; k++)
            image[k] = (unsigned char)stk_mix64((uint64_t)(i * N_PIXELS + k));
        int64_t label = i % 10;
        list.n = example.n = 0;
        stk_example_add_bytes(&list, "image", image, sizeof(image));
        stk_example_add_ints(&list, "label", &label, 1);
        stk_example_finish(&list, &example);
        status = stk_tfrecord_writer_add(writer, (stk_span){(unsigned char *)example.data, example.n});
    }
    if (status == STK_OK) status = stk_tfrecord_writer_finish(writer);
    stk_tfrecord_writer_free(writer);
    stk_text_free(&list);
    stk_text_free(&example);
    return status;
}

/* CPU time of this process, which says more than the clock where others share the cores. */
static double cpu_ns(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return 1e9 * (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e3 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static stk_status measure(const stk_dataset *dataset, int n_threads, double seconds, int64_t start_ns)
{
    stk_loader_config config = stk_loader_config_default();
    config.n_threads = n_threads;
    stk_loader *loader = NULL;
    stk_status status = stk_loader_open(dataset, &config, &loader);
    if (status != STK_OK) return status;
    double rate[MOST_EPOCHS], touched = 0;
    int n_epochs = -1; /* the first only warms up */
    int64_t epoch_ns = stk_clock_ns(), first_ns = 0, end_ns = 0, n = 0;
    double start_cpu_ns = cpu_ns();
    const stk_batch *batch;
    while (n_epochs < MOST_EPOCHS && (batch = stk_loader_next(loader))) {
        touched += (double)*(const float *)stk_batch_data(batch, "image");
        n += stk_batch_count(batch);
        bool is_last = stk_batch_index(batch) == stk_dataset_n_batches(dataset) - 1;
        stk_batch_release(batch);
        int64_t now = stk_clock_ns();
        if (!first_ns) first_ns = now - start_ns;
        if (!is_last) continue;
        if (n_epochs >= 0) rate[n_epochs] = (double)n / (double)(now - epoch_ns) * 1e9;
        if (!end_ns) end_ns = now + (int64_t)(seconds * 1e9);
        n_epochs++;
        epoch_ns = now;
        n = 0;
        if (n_epochs >= 3 && now > end_ns) break;
    }
    stk_loader_stats stats;
    stk_loader_get_stats(loader, &stats);
    status = stk_loader_status(loader);
    stk_loader_close(loader);
    if (status != STK_OK || n_epochs < 1) return status;
    qsort(rate, (size_t)n_epochs, sizeof(*rate), compare);
    printf("%d threads: %.0f records/s (%.0f to %.0f, %d epochs), %.0f ns of CPU each, first batch after %.0f ms "
           "(touched %g)\n",
           stats.n_threads, rate[n_epochs / 2], rate[0], rate[n_epochs - 1], n_epochs,
           (cpu_ns() - start_cpu_ns) / (double)stats.n_samples, (double)first_ns / 1e6, touched);
    return STK_OK;
}

int main(int argc, char **argv)
{
    int n_threads = argc > 1 ? atoi(argv[1]) : 0;
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    const char *path = argc > 3 ? argv[3] : "/tmp/stoker-bench.tfrecord";
    stk_status status = stk_path_exists(path) ? STK_OK : write_file(path);
    int64_t start_ns = stk_clock_ns();
    stk_feature features[] = {{.name = "image", .dtype = STK_U8, .shape = {3, {SIDE, SIDE, 1}}},
                              {.name = "label", .dtype = STK_I64}};
    stk_dataset *dataset = NULL;
    if (status == STK_OK) {
        dataset = stk_dataset_tfrecord(&path, 1, features, 2, argc > 4);
        stk_dataset_shuffle(dataset, 1);
        stk_dataset_apply(dataset, stk_scale(1 / 255.0), NULL);
        stk_dataset_batch(dataset, 128, false);
        status = stk_dataset_status(dataset);
    }
    if (status == STK_OK) status = measure(dataset, n_threads, seconds, start_ns);
    if (status != STK_OK) fprintf(stderr, "%s\n", stk_error_text());
    stk_dataset_free(dataset);
    return status != STK_OK;
}
