/* Caches: the same batches with and without, in memory and on disk; what was cut, damaged or has changed is rebuilt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "data/cache/row_cache.h"
#include "data/codec/jpeg.h"
#include "data/dataset/dataset.h"
#include "stoker/data/combine.h"
#include "stoker/data/loader.h"
#include "stoker/data/sources.h"

#include "faults/kills.h"

enum { N_FILES = 40, N_ROWS = 8, N_BATCHES = 15 };
static const char folder[] = "cache-data", path[] = "cache-rows";

static void write_image(int i, int side)
{
    char name[64];
    uint8_t *bytes, *pixels = malloc((size_t)side * (size_t)side * 3);
    size_t n;
    for (int k = 0; k < side * side * 3; k++)
        pixels[k] = (uint8_t)(k * (i + 3) / 7);
    snprintf(name, sizeof(name), "%s/%02d.jpg", folder, i);
    assert_int_equal(stk_jpeg_encode(pixels, side, side, 3, 90, &bytes, &n), STK_OK);
    assert_int_equal(stk_file_write_durably(name, bytes, n), STK_OK);
    free(pixels);
    free(bytes);
}

static int make_files(void **state)
{
    (void)state;
    (void)stk_tree_remove(folder);
    (void)unlink(path);
    if (stk_dir_make(folder) != STK_OK) return -1;
    for (int i = 0; i < N_FILES; i++)
        write_image(i, 40 + i % 5 * 8); /* rows of different lengths */
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    (void)unlink(path);
    return stk_tree_remove(folder) == STK_OK ? 0 : -1;
}

static stk_dataset *open_data(stk_cache_kind kind, int64_t side)
{
    const char *files = folder;
    stk_dataset *dataset = stk_dataset_files(&files, 1, STK_LABELS_NONE, NULL);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_apply(dataset, stk_decode(), stk_resize_shorter(side, true), stk_random_crop(24, 2), stk_random_flip(),
                      stk_normalize_imagenet(), NULL);
    stk_dataset_batch(dataset, N_ROWS, false);
    stk_dataset_cache(dataset, kind, kind == STK_CACHE_DISK ? path : NULL);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

static void read_batches(const stk_dataset *dataset, int n_threads, size_t limit, uint64_t hash[N_BATCHES])
{
    stk_loader *loader;
    stk_loader_config config = {.n_threads = n_threads, .memory_limit_bytes = limit};
    if (stk_loader_open(dataset, &config, &loader) != STK_OK) fail_msg("%s", stk_error_text());
    for (int i = 0; i < N_BATCHES; i++) {
        const stk_batch *batch = stk_loader_next(loader);
        if (!batch) fail_msg("%s", (stk_loader_status(loader), stk_error_text()));
        hash[i] = stk_batch_hash(batch);
        stk_batch_release(batch);
    }
    stk_loader_stats stats;
    stk_loader_get_stats(loader, &stats);
    assert_true(stats.memory.peak_bytes <= stats.memory.limit_bytes);
    stk_loader_close(loader);
}

static stk_cache_stats stats_of(const stk_dataset *dataset)
{
    stk_cache_stats stats;
    stk_dataset_get_cache(dataset, &stats);
    return stats;
}

static void expect_same(stk_dataset *dataset, const uint64_t wanted[N_BATCHES])
{
    for (int n_threads = 1; n_threads <= 8; n_threads += n_threads == 1 ? 1 : 6) {
        uint64_t hash[N_BATCHES];
        read_batches(dataset, n_threads, 0, hash);
        assert_memory_equal(hash, wanted, sizeof(hash));
    }
}

static void read_plain(uint64_t hash[N_BATCHES], int64_t side)
{
    stk_dataset *dataset = open_data(STK_CACHE_NONE, side);
    read_batches(dataset, 2, 0, hash);
    stk_dataset_free(dataset);
}

/* --- tests --- */

static void memory_gives_the_same_batches(void **state)
{
    (void)state;
    uint64_t wanted[N_BATCHES], hash[N_BATCHES];
    read_plain(wanted, 32);
    stk_dataset *dataset = open_data(STK_CACHE_MEMORY, 32);
    assert_int_equal(stats_of(dataset).kind, STK_CACHE_NONE);
    expect_same(dataset, wanted);
    stk_cache_stats stats = stats_of(dataset);
    assert_int_equal(stats.kind, STK_CACHE_MEMORY);
    assert_int_equal(stats.n_present, N_FILES);
    assert_true(stats.n_bytes >= (size_t)N_FILES * 32 * 32 * 3 && stats.n_bytes <= stats.likely_bytes);
    assert_true(stats.n_hits >= 8 * N_FILES);
    stk_dataset_free(dataset);
    /* Where not all fits, what fits is kept. */
    dataset = open_data(STK_CACHE_MEMORY, 700);
    read_plain(wanted, 700);
    read_batches(dataset, 2, 40 << 20, hash);
    assert_memory_equal(hash, wanted, sizeof(hash));
    stats = stats_of(dataset);
    assert_true(stats.n_present > 2 && stats.n_present < N_FILES);
    assert_true(stats.n_hits > 0 && stats.reserved_bytes < 40 << 20);
    stk_dataset_free(dataset);
}

static void disk_serves_the_next_run(void **state)
{
    (void)state;
    uint64_t wanted[N_BATCHES], hash[N_BATCHES];
    read_plain(wanted, 32);
    stk_dataset *dataset = open_data(STK_CACHE_DISK, 32);
    expect_same(dataset, wanted);
    assert_int_equal(stats_of(dataset).n_present, N_FILES);
    stk_dataset_free(dataset);
    dataset = open_data(STK_CACHE_DISK, 32);
    expect_same(dataset, wanted);
    assert_int_equal(stats_of(dataset).n_misses, 0);
    stk_dataset_free(dataset);
    /* Another parameter: what is there does not serve. */
    read_plain(wanted, 33);
    dataset = open_data(STK_CACHE_DISK, 33);
    read_batches(dataset, 2, 0, hash);
    assert_memory_equal(hash, wanted, sizeof(hash));
    assert_true(stats_of(dataset).n_misses >= N_FILES);
    stk_dataset_free(dataset);
}

static void a_changed_file_is_read_again(void **state)
{
    (void)state;
    uint64_t wanted[N_BATCHES], hash[N_BATCHES];
    stk_dataset *dataset = open_data(STK_CACHE_DISK, 32);
    read_batches(dataset, 2, 0, hash);
    stk_dataset_free(dataset);
    write_image(7, 64);
    write_image(8, 96);
    read_plain(wanted, 32);
    assert_memory_not_equal(hash, wanted, sizeof(hash));
    dataset = open_data(STK_CACHE_DISK, 32);
    read_batches(dataset, 1, 0, hash);
    assert_memory_equal(hash, wanted, sizeof(hash));
    assert_int_equal(stats_of(dataset).n_misses, 2);
    stk_dataset_free(dataset);
}

/* Reads with a file that somebody has spoiled; returns how many records had to be made. */
static int64_t read_spoiled(const uint64_t wanted[N_BATCHES])
{
    uint64_t hash[N_BATCHES];
    stk_dataset *dataset = open_data(STK_CACHE_DISK, 32);
    read_batches(dataset, 1, 0, hash); /* two workers may miss one record at the same time */
    assert_memory_equal(hash, wanted, sizeof(hash));
    int64_t n = stats_of(dataset).n_misses;
    stk_dataset_free(dataset);
    return n;
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    uint64_t wanted[N_BATCHES], hash[N_BATCHES];
    struct rlimit before, least;
    read_plain(wanted, 32);
    unlink(path);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    least = (struct rlimit){.rlim_cur = 8192, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &least), 0);
    stk_dataset *dataset = open_data(STK_CACHE_DISK, 32);
    read_batches(dataset, 2, 0, hash);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_memory_equal(hash, wanted, sizeof(hash));
    assert_true(stats_of(dataset).disk_is_full);
    assert_true(stats_of(dataset).n_present < N_FILES);
    stk_dataset_free(dataset);
}

static void a_spoiled_cache_is_completed(void **state)
{
    (void)state;
    uint64_t wanted[N_BATCHES];
    struct stat info;
    read_plain(wanted, 32);
    (void)read_spoiled(wanted);
    assert_int_equal(read_spoiled(wanted), 0);
    /* Cut short: some rows are gone, and no more than these are made. */
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size / 2), 0);
    int64_t n = read_spoiled(wanted);
    assert_true(n > N_FILES / 4 && n < N_FILES * 3 / 4);
    assert_int_equal(read_spoiled(wanted), 0);
    /* Damaged: a byte in a row, and one in the table. */
    const off_t places[] = {info.st_size / 4, 64 + 5 * 48 + 3};
    for (int i = 0; i < 2; i++) {
        unsigned char byte;
        int fd = open(path, O_RDWR);
        assert_int_equal(pread(fd, &byte, 1, places[i]), 1);
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, places[i]), 1);
        close(fd);
        assert_int_equal(read_spoiled(wanted), 1);
    }
    /* One of nothing. */
    assert_int_equal(truncate(path, 0), 0);
    assert_true(read_spoiled(wanted) >= N_FILES);
    assert_int_equal(read_spoiled(wanted), 0);
}

/* The recipe's path may be a slip: a file, a link to one, or a pipe of somebody's. */
static void only_a_cache_is_replaced_by_a_cache(void **state)
{
    (void)state;
    static const char text[] = "no cache of ours, but as long as its header would be at least";
    char theirs[64], kept[100];
    snprintf(theirs, sizeof(theirs), "%s-theirs", path);
    for (int kind = 0; kind < 3; kind++) {
        unlink(path);
        assert_int_equal(
            stk_file_write_durably(kind == 1 ? theirs : path, kind == 2 ? "x" : text, kind == 2 ? 1 : sizeof(text)),
            STK_OK);
        if (kind == 1) assert_int_equal(symlink(theirs, path), 0);
        stk_dataset *dataset = open_data(STK_CACHE_DISK, 32);
        stk_loader *loader = NULL;
        stk_loader_config config = stk_loader_config_default();
        stk_status status = stk_loader_open(dataset, &config, &loader);
        if (status == STK_OK) {
            assert_null(stk_loader_next(loader));
            status = stk_loader_status(loader);
        }
        assert_int_equal(status, STK_BUSY);
        assert_non_null(strstr(stk_error_text(), path));
        assert_non_null(strstr(stk_error_text(), "no cache is there; name another path"));
        stk_loader_close(loader);
        stk_dataset_free(dataset);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        size_t n = fread(kept, 1, sizeof(kept), file);
        fclose(file);
        assert_int_equal(n, kind == 2 ? 1 : sizeof(text));
        assert_memory_equal(kept, kind == 2 ? "x" : text, n);
    }
    unlink(path);
    unlink(theirs);
}

static void processes_share_and_may_be_killed(void **state)
{
    (void)state;
    uint64_t wanted[N_BATCHES];
    read_plain(wanted, 32);
    for (int round = 0; round < 6; round++) {
        pid_t child[3];
        int code;
        unlink(path);
        for (int i = 0; i < 3; i++) {
            child[i] = fork();
            assert_true(child[i] >= 0);
            if (child[i] == 0) {
                if (i == 0) kills_begin("", 1 << round); /* writes of this folder */
                (void)read_spoiled(wanted);              /* a failed assertion ends it with another code */
                _exit(0);
            }
            /* In every other round it is alone until it is killed. */
            if (i > 0 || round % 2) continue;
            assert_int_equal(waitpid(child[0], &code, 0), child[0]);
            assert_true(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL);
        }
        for (int i = round % 2 ? 0 : 1; i < 3; i++) {
            assert_int_equal(waitpid(child[i], &code, 0), child[i]);
            assert_true(code == 0 || (i == 0 && WIFSIGNALED(code)));
        }
    }
    (void)read_spoiled(wanted); /* Of several that begin a cache at once, one stays. */
    assert_int_equal(read_spoiled(wanted), 0);
}

static void auto_measures(void **state)
{
    (void)state;
    uint64_t wanted[N_BATCHES], hash[N_BATCHES];
    read_plain(wanted, 32);
    stk_dataset *dataset = open_data(STK_CACHE_AUTO, 32);
    read_batches(dataset, 2, 0, hash);
    assert_memory_equal(hash, wanted, sizeof(hash));
    stk_cache_stats stats = stats_of(dataset);
    assert_true(stats.ns_with > 0 && stats.ns_without > 0);
    assert_true(stats.kind == (stats.ns_with <= 0.75 * stats.ns_without ? STK_CACHE_MEMORY : STK_CACHE_NONE));
    stk_dataset_free(dataset);
    /* It does not fit: 40 images of 700 x 700. */
    dataset = open_data(STK_CACHE_AUTO, 700);
    read_batches(dataset, 1, 40 << 20, hash);
    assert_int_equal(stats_of(dataset).kind, STK_CACHE_NONE);
    stk_dataset_free(dataset);
}

static void what_cannot_be_cached_says_so(void **state)
{
    (void)state;
    stk_loader *loader;
    stk_dataset *two[2];
    const char *files = folder;
    for (int i = 0; i < 2; i++) {
        two[i] = stk_dataset_files(&files, 1, STK_LABELS_NONE, NULL);
        stk_dataset_apply(two[i], stk_decode(), stk_resize(8, 8, true), NULL);
    }
    stk_dataset *dataset = stk_dataset_concatenate(two, 2);
    stk_dataset_batch(dataset, 4, true);
    stk_dataset_cache(dataset, STK_CACHE_MEMORY, NULL);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "concatenate"));
    stk_dataset_free(dataset);
    static const unsigned char pixels[4 * 8];
    const stk_array_field field = {.name = "image", .dtype = STK_U8, .sample = {3, {2, 4, 1}}, .data = pixels};
    dataset = stk_dataset_arrays(4, &field, 1);
    stk_dataset_batch(dataset, 2, true);
    stk_dataset_cache(dataset, STK_CACHE_DISK, path);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "'arrays' cannot tell"));
    stk_dataset_free(dataset);
}

/* --- stages that say that their parameters are plain --- */

typedef stk_stage *(*make_stage)(void);
static stk_stage *make_decode(void)
{
    return stk_decode_with(3, true);
}
static stk_stage *make_resize(void)
{
    return stk_resize(20, 30, true);
}
static stk_stage *make_crop(void)
{
    return stk_center_crop(3, 4);
}
static stk_stage *make_cast(void)
{
    return stk_cast(STK_F32);
}
static stk_stage *make_scale(void)
{
    return stk_scale(0.5);
}
static stk_stage *make_one_hot(void)
{
    return stk_one_hot(7);
}
static stk_stage *make_pad(void)
{
    return stk_pad_image(1, 2, 3, 4, 5);
}
static stk_stage *make_clip(void)
{
    return stk_clip_values(1, 2);
}

static stk_stage *make_on(int dirt, make_stage make)
{
    volatile unsigned char stack[4096];
    for (size_t i = 0; i < sizeof(stack); i++)
        stack[i] = (unsigned char)dirt;
    return make();
}

static void plain_parameters_have_no_padding(void **state)
{
    (void)state;
    const make_stage all[] = {make_decode, make_resize, make_crop,
                              make_cast,   make_scale,  make_one_hot,
                              make_pad,    make_clip,   stk_normalize_imagenet};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        stk_stage *a = make_on(0x55, all[i]), *b = make_on(0xAA, all[i]);
        assert_true(a->class->plain);
        assert_memory_equal(a->params, b->params, sizeof(a->params));
        stk_stage_free(a);
        stk_stage_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_gives_the_same_batches, make_files, remove_files),
        cmocka_unit_test_setup_teardown(disk_serves_the_next_run, make_files, remove_files),
        cmocka_unit_test_setup_teardown(a_changed_file_is_read_again, make_files, remove_files),
        cmocka_unit_test_setup_teardown(a_full_disk_is_told, make_files, remove_files),
        cmocka_unit_test_setup_teardown(a_spoiled_cache_is_completed, make_files, remove_files),
        cmocka_unit_test_setup_teardown(only_a_cache_is_replaced_by_a_cache, make_files, remove_files),
        cmocka_unit_test_setup_teardown(processes_share_and_may_be_killed, make_files, remove_files),
        cmocka_unit_test_setup_teardown(auto_measures, make_files, remove_files),
        cmocka_unit_test_setup_teardown(what_cannot_be_cached_says_so, make_files, remove_files),
        cmocka_unit_test(plain_parameters_have_no_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
