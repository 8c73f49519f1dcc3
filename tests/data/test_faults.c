/* Faults under a loader: input errors, short reads, files that go in mid-epoch. No hang, no leak, no sample lost or met
 * twice. The program's own read() stands before the system's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "data/codec/jpeg.h"
#include "stoker/data/loader.h"
#include "stoker/data/sources.h"

enum { N_FILES = 60, SIDE = 24, N_ROWS = 8 };
static const char folder[] = "faults-data", gone[] = "faults-gone";

/* --- faults --- */

static _Atomic int fault; /* errno to give, or -1: one byte at a time */
static _Atomic int n_reads, fault_from = -1, n_faults;

ssize_t read(int fd, void *dst, size_t n);
ssize_t read(int fd, void *dst, size_t n)
{
    static ssize_t (*system_read)(int, void *, size_t);
    if (!system_read) system_read = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    int what = atomic_load(&fault), from = atomic_load(&fault_from);
    if (what == 0 || from < 0 || atomic_fetch_add(&n_reads, 1) < from) return system_read(fd, dst, n);
    if (what == -1) return system_read(fd, dst, n > 100 ? 100 : n);
    if (what == EINTR && atomic_fetch_add(&n_faults, 1) % 2) return system_read(fd, dst, n);
    errno = what;
    return -1;
}

static void set_fault(int what, int from)
{
    atomic_store(&n_reads, 0);
    atomic_store(&fault_from, from);
    atomic_store(&fault, what);
}

/* --- data --- */

static void path_of(int i, char path[64])
{
    snprintf(path, 64, "%s/%02d.jpg", folder, i);
}

static int make_files(void **state)
{
    (void)state;
    unsigned char pixels[SIDE * SIDE];
    (void)stk_tree_remove(folder);
    if (stk_dir_make(folder) != STK_OK) return -1;
    for (int i = 0; i < N_FILES; i++) {
        char path[64];
        uint8_t *bytes;
        size_t n;
        memset(pixels, 4 * i, sizeof(pixels));
        path_of(i, path);
        if (stk_jpeg_encode(pixels, SIDE, SIDE, 1, 90, &bytes, &n) != STK_OK) return -1;
        if (stk_file_write_durably(path, bytes, n) != STK_OK) return -1;
        free(bytes);
    }
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    set_fault(0, -1);
    return stk_tree_remove(folder) == STK_OK ? 0 : -1;
}

static void spoil(int i)
{
    char path[64];
    path_of(i, path);
    assert_int_equal(truncate(path, 300), 0);
}

static stk_dataset *open_data(stk_error_policy policy)
{
    const char *path = folder;
    stk_dataset *dataset = stk_dataset_files(&path, 1, STK_LABELS_NONE, NULL);
    stk_dataset_on_error_with(dataset, policy);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_apply(dataset, stk_decode_channels(1), stk_random_crop(16, 2), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

static stk_loader *open_loader(const stk_dataset *dataset, int n_threads, int64_t i_batch, int64_t n_epochs)
{
    stk_loader *loader;
    stk_loader_config config = {.n_threads = n_threads, .i_batch = i_batch, .n_epochs = n_epochs};
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    return loader;
}

/* Hashes until the end; returns how many samples there were. A sample's grey is its file's number, nearly. */
static int64_t read_epoch(const stk_dataset *dataset, int n_threads, uint64_t hash[8], int met[N_FILES])
{
    stk_loader *loader = open_loader(dataset, n_threads, 0, 1);
    int64_t n = 0;
    memset(hash, 0, 8 * sizeof(*hash));
    for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
        const unsigned char *image = stk_batch_data(batch, "image");
        assert_true(stk_batch_count(batch) > 0 && stk_batch_count(batch) <= N_ROWS);
        for (int64_t row = 0; row < stk_batch_count(batch); row++)
            met[(image[row * 256 + 8 * 16 + 8] + 2) / 4]++;
        for (int64_t row = stk_batch_count(batch) * 256; row < (int64_t)N_ROWS * 256; row++)
            assert_int_equal(image[row], 0);
        hash[stk_batch_index(batch)] = stk_batch_hash(batch);
        n += stk_batch_count(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    return n;
}

static int count_open_files(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* --- tests --- */

static void short_and_interrupted_reads_change_nothing(void **state)
{
    (void)state;
    uint64_t whole[8], hash[8];
    int met[N_FILES] = {0};
    stk_dataset *dataset = open_data((stk_error_policy){0});
    assert_int_equal(read_epoch(dataset, 2, whole, met), N_FILES);
    const int faults[] = {-1, EINTR};
    for (int i = 0; i < 2; i++) {
        set_fault(faults[i], 0);
        assert_int_equal(read_epoch(dataset, 3, hash, met), N_FILES);
        assert_memory_equal(hash, whole, sizeof(whole));
    }
    set_fault(0, -1);
    for (int i = 0; i < N_FILES; i++)
        assert_int_equal(met[i], 3);
    stk_dataset_free(dataset);
}

static void an_input_error_is_reported_and_the_rest_is_exact(void **state)
{
    (void)state;
    uint64_t whole[8], hash[8] = {0};
    int met[N_FILES] = {0};
    stk_dataset *dataset = open_data((stk_error_policy){0});
    assert_int_equal(read_epoch(dataset, 2, whole, met), N_FILES);
    int n_files = count_open_files(), n_failed = 0;
    for (int from = 1; from < 50; from += 7) {
        int64_t i_next = 0;
        set_fault(EIO, from); /* before workers run ahead */
        stk_loader *loader = open_loader(dataset, 3, 0, 1);
        for (const stk_batch *batch; (batch = stk_loader_next(loader)); i_next++) {
            assert_true(stk_batch_hash(batch) == whole[i_next]);
            stk_batch_release(batch);
        }
        if (stk_loader_status(loader) != STK_OK) {
            n_failed++;
            assert_int_equal(stk_loader_status(loader), STK_IO);
            assert_non_null(strstr(stk_error_text(), ".jpg': "));
            assert_non_null(strstr(stk_error_text(), "input/output error"));
        }
        set_fault(0, -1);
        stk_loader_close(loader);
        /* It goes on where it stopped. */
        loader = open_loader(dataset, 2, i_next, 1);
        for (const stk_batch *batch; (batch = stk_loader_next(loader)); i_next++) {
            hash[i_next] = stk_batch_hash(batch);
            assert_true(hash[i_next] == whole[i_next]);
            stk_batch_release(batch);
        }
        assert_int_equal(i_next, 8);
        stk_loader_close(loader);
    }
    assert_true(n_failed >= 5);
    assert_int_equal(count_open_files(), n_files);
    stk_dataset_free(dataset);
}

static void skip_leaves_out_and_moves_up(void **state)
{
    (void)state;
    uint64_t expected[8], hash[8];
    int met[N_FILES] = {0};
    stk_dataset *dataset = open_data((stk_error_policy){STK_ON_ERROR_SKIP, 5});
    for (int i = 10; i < 14; i++)
        spoil(i);
    assert_int_equal(read_epoch(dataset, 1, expected, met), N_FILES - 4);
    for (int n_threads = 2; n_threads <= 8; n_threads += 3) {
        assert_int_equal(read_epoch(dataset, n_threads, hash, met), N_FILES - 4);
        assert_memory_equal(hash, expected, sizeof(hash));
    }
    for (int i = 0; i < N_FILES; i++)
        assert_int_equal(met[i], i >= 10 && i < 14 ? 0 : 4);
    /* From the middle of the epoch on, the same. */
    stk_loader *loader = open_loader(dataset, 2, 3, 1);
    const stk_batch *batch = stk_loader_next(loader);
    assert_true(stk_batch_hash(batch) == expected[3]);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void a_batch_of_which_nothing_is_left_is_passed_over(void **state)
{
    (void)state;
    uint64_t hash[8];
    int met[N_FILES] = {0};
    const char *path = folder;
    stk_dataset *dataset = stk_dataset_files(&path, 1, STK_LABELS_NONE, NULL);
    for (int i = 8; i < 17; i++)
        spoil(i);
    stk_dataset_on_error(dataset, STK_ON_ERROR_SKIP);
    stk_dataset_apply(dataset, stk_decode_channels(1), stk_center_crop(16, 16), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    assert_int_equal(read_epoch(dataset, 2, hash, met), N_FILES - 9);
    assert_true(hash[0] && !hash[1] && hash[2] && hash[7]);
    stk_dataset_free(dataset);
}

static void an_epoch_of_which_nothing_is_left_ends_it(void **state)
{
    (void)state;
    for (int i = 0; i < N_FILES; i++)
        spoil(i);
    stk_dataset *dataset = open_data((stk_error_policy){STK_ON_ERROR_SKIP, -1});
    stk_loader *loader = open_loader(dataset, 2, 0, 0); /* epochs without end */
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "no sample is left of a whole epoch"));
    assert_non_null(strstr(stk_error_text(), ".jpg"));
    assert_null(stk_loader_next(loader));
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void one_more_than_the_most_stops(void **state)
{
    (void)state;
    const stk_on_error policies[] = {STK_ON_ERROR_SKIP, STK_ON_ERROR_REPLACE};
    for (int i = 10; i < 14; i++)
        spoil(i);
    for (int i = 0; i < 2; i++)
        for (int64_t most = 3; most <= 4; most++) {
            stk_dataset *dataset = open_data((stk_error_policy){policies[i], most});
            stk_loader *loader = open_loader(dataset, 3, 0, 3);
            for (const stk_batch *batch; (batch = stk_loader_next(loader));)
                stk_batch_release(batch);
            /* Four bad ones, met again in each epoch, remain four. */
            assert_int_equal(stk_loader_status(loader), most == 3 ? STK_CORRUPT : STK_OK);
            if (most == 3) {
                assert_non_null(strstr(stk_error_text(), "4 records cannot be read, one more than 'on_error' allows"));
                assert_non_null(strstr(stk_error_text(), ".jpg"));
            }
            for (int k = 0; k < 4; k++)
                assert_non_null(stk_loader_skipped(loader, k));
            stk_loader_close(loader);
            stk_dataset_free(dataset);
        }
}

static void an_input_error_stops_every_policy(void **state)
{
    (void)state;
    for (int what = STK_ON_ERROR_STOP; what <= STK_ON_ERROR_REPLACE; what++) {
        stk_dataset *dataset = open_data((stk_error_policy){(stk_on_error)what, -1});
        set_fault(EIO, 9);
        stk_loader *loader = open_loader(dataset, 2, 0, 1);
        for (const stk_batch *batch; (batch = stk_loader_next(loader));)
            stk_batch_release(batch);
        set_fault(0, -1);
        assert_int_equal(stk_loader_status(loader), STK_IO);
        assert_non_null(strstr(stk_error_text(), ".jpg': "));
        assert_null(stk_loader_skipped(loader, 0));
        stk_loader_close(loader);
        stk_dataset_free(dataset);
    }
}

static void a_folder_that_goes_in_mid_epoch_stops_every_policy(void **state)
{
    (void)state;
    for (int what = STK_ON_ERROR_STOP; what <= STK_ON_ERROR_REPLACE; what++) {
        assert_int_equal(make_files(NULL), 0);
        /* Even where any number of corrupt records may be passed over. */
        stk_dataset *dataset = open_data((stk_error_policy){(stk_on_error)what, -1});
        stk_loader *loader = open_loader(dataset, 3, 0, 50);
        for (int i = 0; i < 3; i++)
            stk_batch_release(stk_loader_next(loader));
        assert_int_equal(rename(folder, gone), 0);
        const stk_batch *batch;
        while ((batch = stk_loader_next(loader)))
            stk_batch_release(batch);
        assert_int_equal(stk_loader_status(loader), STK_IO);
        assert_non_null(strstr(stk_error_text(), folder));
        assert_non_null(strstr(stk_error_text(), "its folder is not there"));
        assert_null(stk_loader_skipped(loader, 0));
        assert_int_equal(stk_tree_remove(gone), STK_OK);
        stk_loader_close(loader);
        stk_dataset_free(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(short_and_interrupted_reads_change_nothing, make_files, remove_files),
        cmocka_unit_test_setup_teardown(an_input_error_is_reported_and_the_rest_is_exact, make_files, remove_files),
        cmocka_unit_test_setup_teardown(an_input_error_stops_every_policy, make_files, remove_files),
        cmocka_unit_test_setup_teardown(skip_leaves_out_and_moves_up, make_files, remove_files),
        cmocka_unit_test_setup_teardown(a_batch_of_which_nothing_is_left_is_passed_over, make_files, remove_files),
        cmocka_unit_test_setup_teardown(an_epoch_of_which_nothing_is_left_ends_it, make_files, remove_files),
        cmocka_unit_test_setup_teardown(one_more_than_the_most_stops, make_files, remove_files),
        cmocka_unit_test_setup_teardown(a_folder_that_goes_in_mid_epoch_stops_every_policy, make_files, remove_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
