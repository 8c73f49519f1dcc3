/* Folders of images from files to batches: equal for any number of threads, corrupt files and mixed sizes named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/codec/image.h"
#include "stoker/data/loader.h"

enum { N_CLASSES = 3, N_FILES = 20, SIDE = 24, N_ROWS = 8, N_BATCHES = 8 };

static char folder[64];

static void write_file(const char *class, int i, const void *data, size_t n)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s/%02d.jpg", folder, class, i);
    if (stk_file_write_durably(path, data, n) != STK_OK) fail_msg("%s", stk_error_text());
}

/* A JPEG of this size whose brightness tells its number. */
static void write_image(const char *class, int i, int64_t height, int64_t width)
{
    uint8_t *pixels = malloc((size_t)(height * width * 3)), *encoded;
    size_t n;
    for (int64_t k = 0; k < height * width * 3; k++)
        pixels[k] = (uint8_t)(i * 10 + k % 7);
    assert_int_equal(stk_jpeg_encode(pixels, height, width, 3, 90, &encoded, &n), STK_OK);
    write_file(class, i, encoded, n);
    free(encoded);
    free(pixels);
}

static int make_images(void **state)
{
    static const char *const names[N_CLASSES] = {"cat", "dog", "Owl"};
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/stoker-images-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    for (int c = 0; c < N_CLASSES; c++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", folder, names[c]);
        if (stk_dir_make(path) != STK_OK) return -1;
        for (int i = 0; i < N_FILES; i++)
            write_image(names[c], i, SIDE, SIDE);
    }
    return 0;
}

static int remove_images(void **state)
{
    (void)state;
    return stk_tree_remove(folder) == STK_OK ? 0 : -1;
}

static stk_dataset *make_dataset(stk_on_error on_error)
{
    stk_dataset *dataset = stk_dataset_images(folder);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_apply(dataset, stk_decode(), stk_random_crop(SIDE, 4), stk_random_flip(), stk_normalize_cifar10(),
                      NULL);
    stk_dataset_on_error(dataset, on_error);
    stk_dataset_batch(dataset, N_ROWS, false);
    if (stk_dataset_status(dataset) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_dataset_n_batches(dataset), N_BATCHES);
    return dataset;
}

static stk_loader *open_loader(const stk_dataset *dataset, int n_threads, int64_t i_batch)
{
    stk_loader *loader;
    stk_loader_config config = stk_loader_config_default();
    config.n_threads = n_threads;
    config.n_epochs = 2;
    config.i_batch = i_batch;
    config.seed = 11;
    if (stk_loader_open(dataset, &config, &loader) != STK_OK) fail_msg("%s", stk_error_text());
    return loader;
}

/* The hashes of all batches, for comparison; they must end well. */
static int read_hashes(stk_loader *loader, uint64_t *hash)
{
    int n = 0;
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); n++) {
        assert_true(n < 2 * N_BATCHES);
        hash[n] = stk_batch_hash(batch);
        stk_batch_release(batch);
    }
    if (stk_loader_status(loader) != STK_OK) fail_msg("%s", stk_error_text());
    return n;
}

static void any_number_of_threads_gives_equal_batches(void **state)
{
    (void)state;
    uint64_t one[2 * N_BATCHES], other[2 * N_BATCHES];
    stk_dataset *dataset = make_dataset(STK_ON_ERROR_STOP);
    stk_loader *loader = open_loader(dataset, 1, 0);
    assert_int_equal(read_hashes(loader, one), 2 * N_BATCHES);
    stk_loader_close(loader);
    for (int n_threads = 2; n_threads <= 8; n_threads++) {
        int i_first = n_threads % N_BATCHES;
        loader = open_loader(dataset, n_threads, i_first);
        assert_int_equal(read_hashes(loader, other), 2 * N_BATCHES - i_first);
        assert_memory_equal(other, one + i_first, (size_t)(2 * N_BATCHES - i_first) * sizeof(one[0]));
        stk_loader_close(loader);
    }
    assert_int_not_equal(one[0], one[N_BATCHES]); /* The second epoch is another one. */
    stk_dataset_free(dataset);
}

/* Reads to the end, which must be an error with all these words. */
static void check_stops(const stk_dataset *dataset, stk_status status, const char *const *words)
{
    stk_loader *loader = open_loader(dataset, 2, 0);
    for (const stk_batch *batch; (batch = stk_loader_next(loader));)
        stk_batch_release(batch);
    assert_int_equal(stk_loader_status(loader), status);
    for (; *words; words++)
        if (!strstr(stk_error_text(), *words)) fail_msg("'%s' does not say '%s'", stk_error_text(), *words);
    stk_loader_close(loader);
}

static void a_corrupt_file_stops_the_run_by_name(void **state)
{
    (void)state;
    char name[128];
    write_file("dog", 7, "\xff\xd8\xff\xe0 no image", 13);
    stk_dataset *dataset = make_dataset(STK_ON_ERROR_STOP);
    snprintf(name, sizeof(name), "'%s/dog/07.jpg'", folder);
    check_stops(dataset, STK_CORRUPT, (const char *const[]){name, "truncated JPEG", NULL});
    stk_dataset_free(dataset);
}

static void corrupt_files_are_skipped_alike_and_listed(void **state)
{
    (void)state;
    uint64_t one[2 * N_BATCHES], other[2 * N_BATCHES];
    stk_loader_stats stats;
    write_file("dog", 7, "no image", 8);
    write_file("cat", 0, "", 0);
    stk_dataset *dataset = make_dataset(STK_ON_ERROR_REPLACE);
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        stk_loader *loader = open_loader(dataset, n_threads, 0);
        assert_int_equal(read_hashes(loader, n_threads == 1 ? one : other), 2 * N_BATCHES);
        if (n_threads > 1) assert_memory_equal(one, other, sizeof(one));
        stk_loader_get_stats(loader, &stats);
        assert_int_equal(stats.n_skipped, 2); /* each once, though there are two epochs */
        int n_dogs = 0, n_cats = 0;
        for (int i = 0; stk_loader_skipped(loader, i); i++) {
            n_dogs += strstr(stk_loader_skipped(loader, i), "dog/07.jpg': not a JPEG, PNG or WebP file") != NULL;
            n_cats += strstr(stk_loader_skipped(loader, i), "cat/00.jpg': an empty file") != NULL;
        }
        assert_int_equal(n_dogs, 1);
        assert_int_equal(n_cats, 1);
        stk_loader_close(loader);
    }
    stk_dataset_free(dataset);
}

static void mixed_sizes_are_named(void **state)
{
    (void)state;
    char name[128];
    write_image("dog", 4, SIDE + 2, SIDE - 5);
    stk_dataset *dataset = stk_dataset_images(folder);
    stk_dataset_apply(dataset, stk_decode(), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE); /* A wrong size is no damage, and not passed over. */
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    snprintf(name, sizeof(name), "'%s/dog/04.jpg'", folder);
    check_stops(dataset, STK_MISMATCH,
                (const char *const[]){name, "[26,19,3]", "[24,24,3]", "add a resize or crop stage", NULL});
    stk_dataset_free(dataset);

    dataset = stk_dataset_images(folder);
    stk_dataset_apply(dataset, stk_decode(), stk_resize(16, 16, true), stk_scale(1 / 255.0), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    uint64_t hash[2 * N_BATCHES];
    stk_loader *loader = open_loader(dataset, 2, 0);
    assert_int_equal(read_hashes(loader, hash), 2 * N_BATCHES);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void too_small_for_a_crop_is_named(void **state)
{
    (void)state;
    char name[128];
    write_image("Owl", 2, SIDE - 4, SIDE);
    stk_dataset *dataset = stk_dataset_images(folder);
    stk_dataset_apply(dataset, stk_decode(), stk_center_crop(SIDE, SIDE), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    snprintf(name, sizeof(name), "'%s/Owl/02.jpg'", folder);
    check_stops(dataset, STK_INVALID, (const char *const[]){name, "20 x 24", "24 x 24", NULL});
    stk_dataset_free(dataset);
}

static void labels_and_pixels_belong_together(void **state)
{
    (void)state;
    stk_dataset *dataset = stk_dataset_images(folder);
    const char *const *classes;
    stk_dataset_apply(dataset, stk_decode_channels(1), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    assert_int_equal(stk_dataset_classes(dataset, &classes), N_CLASSES);
    assert_string_equal(classes[0], "Owl"); /* by bytes */
    assert_string_equal(classes[2], "dog");
    stk_loader *loader = open_loader(dataset, 2, 0);
    int64_t i_sample = 0;
    for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
        const uint8_t *image = stk_batch_data(batch, "image");
        const int32_t *label = stk_batch_data(batch, "label");
        for (int64_t row = 0; row < stk_batch_count(batch); row++, i_sample++) {
            assert_int_equal(label[row], i_sample % (N_CLASSES * N_FILES) / N_FILES);
            assert_in_range(image[row * SIDE * SIDE + 100], i_sample % N_FILES * 10, i_sample % N_FILES * 10 + 10);
        }
        stk_batch_release(batch);
    }
    assert_int_equal(i_sample, 2 * N_CLASSES * N_FILES);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_images, remove_images)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_number_of_threads_gives_equal_batches),
        TEST(a_corrupt_file_stops_the_run_by_name),
        TEST(corrupt_files_are_skipped_alike_and_listed),
        TEST(mixed_sizes_are_named),
        TEST(too_small_for_a_crop_is_named),
        TEST(labels_and_pixels_belong_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
