/* SIGKILL at a counted sample, or in the middle of a counted write while an index is learned: a process that reads an
 * epoch with 4, 3 or 8 loaders is killed, and another one, with another number of loaders and threads, goes on after
 * the last whole round of batches. In the end every sample of every epoch has been met exactly once, and each had the
 * bytes that a run without kills gives it. For images in folders, with an index that is being learned, for packs of
 * both kinds, and for windows.
 *
 * STOKER_KILLS: how many, 48 by default.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "data/source/entries.h"
#include "data/source/files.h"
#include "stoker/data/combine.h"
#include "stoker/data/index.h"
#include "stoker/data/loader.h"
#include "stoker/data/pack.h"
#include "stoker/data/sources.h"

#include "data/jpeg_make.h"
#include "faults/kills.h"

enum { N = 120, SIDE = 72, OUT = 24, ROWS = 3, N_EPOCHS = 12, MOST_ROUNDS = N_EPOCHS * N, MOST_LOADERS = 8 };

typedef enum kind { FOLDER, LEARNED, PACK, TFRECORD, WINDOW, N_KINDS } kind_of_data;

/* A round that was read and is done with: samples [from, to) of an epoch. */
typedef struct round_done {
    int64_t i_epoch, from, to;
} round_done;

/* Shared with the processes that are killed. */
typedef struct log_of_run {
    atomic_int n_rounds; /* what lies beyond does not count */
    round_done done[MOST_ROUNDS];
    uint64_t hash[MOST_ROUNDS][MOST_LOADERS * ROWS]; /* of each sample of the round */
    uint64_t want[N_EPOCHS][N];                      /* of a run without kills */
    char error[256];                                 /* of a process that failed */
} log_of_run;

static log_of_run *shared;

static int64_t n_samples(kind_of_data kind)
{
    return kind == WINDOW ? N - 7 : N;
}

static stk_dataset *open_dataset(kind_of_data kind)
{
    static const char *const folders[] = {"photos", "learned", "pack", "tfrecord", "photos"};
    stk_dataset *dataset = stk_dataset_images(in_folder(folders[kind]));
    if (kind == LEARNED) stk_dataset_index_auto(dataset);
    if (kind == WINDOW) {
        stk_dataset_skip(dataset, 7);
        stk_dataset_shuffle_with(dataset, (stk_shuffle){.seed = 9, .window = 20});
    } else {
        stk_dataset_shuffle(dataset, 9);
    }
    stk_dataset_apply(dataset, stk_decode(), stk_random_resized_crop(OUT, true), stk_random_flip(), NULL);
    stk_dataset_batch(dataset, ROWS, false);
    return dataset;
}

static uint64_t hash_of_row(const stk_batch *batch, int64_t row)
{
    const uint8_t *image = stk_batch_data(batch, "image");
    const int32_t *label = stk_batch_data(batch, "label");
    return stk_hash64(image + row * OUT * OUT * 3, OUT * OUT * 3, (uint64_t)label[row]);
}

/* --- in the processes that are killed --- */

static int64_t n_left; /* samples until the end; 0: none */

static void give_up(const char *what)
{
    snprintf(shared->error, sizeof(shared->error), "%s: %.200s", what, stk_error_text());
    _exit(1);
}

/* One batch of each loader. False: the epoch is over. */
static bool read_round(stk_loader **loader, int n, int64_t i_epoch, int64_t from, int64_t *to)
{
    int i_round = atomic_load(&shared->n_rounds);
    *to = from;
    for (int k = 0; k < n; k++) {
        const stk_batch *batch = stk_loader_next(loader[k]);
        if (!batch && stk_loader_status(loader[k]) != STK_OK) give_up("next");
        if (!batch) continue;
        for (int64_t row = 0; row < stk_batch_count(batch); row++) {
            if (n_left && --n_left == 0) kills_now();
            shared->hash[i_round][row * n + k] = hash_of_row(batch, row);
        }
        *to += stk_batch_count(batch);
        stk_batch_release(batch);
    }
    if (*to == from) return false;
    shared->done[i_round] = (round_done){i_epoch, from, *to};
    atomic_store(&shared->n_rounds, i_round + 1);
    return true;
}

static void read_epoch(const stk_dataset *dataset, int n_loaders, int n_threads, int64_t i_epoch, int64_t from)
{
    stk_loader *loader[MOST_LOADERS];
    int64_t to;
    for (int k = 0; k < n_loaders; k++) {
        stk_loader_config config = stk_loader_config_default();
        config.n_threads = n_threads;
        config.n_epochs = 1;
        config.seed = 5;
        config.n_shards = n_loaders;
        config.i_shard = k;
        config.i_epoch = i_epoch;
        config.i_sample = from;
        if (stk_loader_open(dataset, &config, &loader[k]) != STK_OK) give_up("open");
    }
    for (; read_round(loader, n_loaders, i_epoch, from, &to); from = to) {
    }
    for (int k = 0; k < n_loaders; k++)
        stk_loader_close(loader[k]);
}

/* Where the rounds so far end. */
static void find_place(kind_of_data kind, int64_t *i_epoch, int64_t *from)
{
    int n = atomic_load(&shared->n_rounds);
    *i_epoch = n ? shared->done[n - 1].i_epoch : 0;
    *from = n ? shared->done[n - 1].to : 0;
    if (*from < n_samples(kind)) return;
    ++*i_epoch;
    *from = 0;
}

static void go_on(kind_of_data kind, int n_loaders, int n_threads)
{
    int64_t i_epoch, from;
    stk_dataset *dataset = open_dataset(kind);
    if (stk_dataset_status(dataset) != STK_OK) give_up("data set");
    if (stk_dataset_note(dataset)[0]) give_up(stk_dataset_note(dataset));
    find_place(kind, &i_epoch, &from);
    for (; i_epoch < N_EPOCHS; i_epoch++, from = 0)
        read_epoch(dataset, n_loaders, n_threads, i_epoch, from);
    stk_dataset_free(dataset);
    _exit(0);
}

/* --- in the process that kills --- */

/* True when the process has come to the end by itself. at: the sample that it does not finish, or the write; 0: none.
 */
static bool live_and_die(kind_of_data kind, int i_life, int64_t at)
{
    static const int counts[] = {4, 3, 8};
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (at && kind == LEARNED && i_life % 2)
            kills_begin(in_folder("learned"), 1 + at % 8);
        else
            n_left = at;
        go_on(kind, counts[i_life % 3], 1 + i_life % 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) fail_msg("%s", shared->error);
    return WIFEXITED(status);
}

static void want_samples(kind_of_data kind)
{
    stk_dataset *dataset = open_dataset(kind);
    stk_loader_config config = {.n_threads = 2, .n_epochs = N_EPOCHS, .seed = 5};
    stk_loader *loader;
    stk_dataset_index(dataset, NULL);
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch))
        for (int64_t row = 0; row < stk_batch_count(batch); row++)
            shared->want[stk_batch_epoch(batch)][stk_batch_index(batch) * ROWS + row] = hash_of_row(batch, row);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* Every sample once, in order, as it is without kills. */
static void check_log(kind_of_data kind)
{
    int64_t i_epoch = 0, at = 0;
    for (int i = 0; i < atomic_load(&shared->n_rounds); i++) {
        const round_done *round = &shared->done[i];
        if (at == n_samples(kind)) {
            i_epoch++;
            at = 0;
        }
        assert_int_equal(round->i_epoch, i_epoch);
        assert_int_equal(round->from, at);
        for (int64_t k = 0; at < round->to; at++, k++)
            assert_true(shared->hash[i][k] == shared->want[i_epoch][at]);
    }
    assert_int_equal(i_epoch, N_EPOCHS - 1);
    assert_int_equal(at, n_samples(kind));
}

static void run_kind(kind_of_data kind)
{
    const char *text = getenv("STOKER_KILLS");
    int n_kills = ((text ? atoi(text) : 48) + N_KINDS - 1) / N_KINDS;
    uint64_t random = 17;
    int n_killed = 0;
    want_samples(kind);
    for (int i = 0; i < n_kills;) {
        atomic_store(&shared->n_rounds, 0);
        bool ended = false;
        for (; i < n_kills && !ended; i++) {
            random = stk_mix64(random + 1);
            ended = live_and_die(kind, i, 1 + (int64_t)(random % (N_EPOCHS * N / 3)));
            n_killed += !ended;
        }
        if (!ended) assert_true(live_and_die(kind, i, 0));
        check_log(kind);
    }
    print_message("%d of %d processes were killed\n", n_killed, n_kills);
    assert_true(n_killed > n_kills / 4);
}

static void images_in_folders(void **state)
{
    (void)state;
    run_kind(FOLDER);
}

static void with_an_index_being_learned(void **state)
{
    stk_entries entries;
    (void)state;
    run_kind(LEARNED);
    /* Whole or absent, at any time; after the last run whole. */
    assert_int_equal(stk_entries_open(in_folder("learned"), NULL, &entries), STK_OK);
    assert_int_equal(entries.n_files, N);
    stk_entries_close(&entries);
}

static void packs(void **state)
{
    (void)state;
    run_kind(PACK);
}

static void packs_of_tfrecord(void **state)
{
    (void)state;
    run_kind(TFRECORD);
}

static void windows(void **state)
{
    (void)state;
    run_kind(WINDOW);
}

static int make_data(void **state)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || make_test_folder(state) != 0) return -1;
    for (int i = 0; i < N; i++) {
        jpeg_recipe r = {.height = SIDE + i % 5, .width = SIDE, .channels = 3, .h = 1 + i % 2, .v = 1 + i % 2};
        r.texture = TEXTURE_NOISE; /* so that files are large enough for entry points in packs */
        r.quality = 95;
        r.seed = (uint64_t)i;
        stk_span file = jpeg_make(&r);
        for (int k = 0; k < 2; k++) {
            char name[64];
            snprintf(name, sizeof(name), "%s/%c/%03d.jpg", k ? "learned" : "photos", 'a' + i % 3, i);
            write_file(name, file.data, file.n);
        }
        free((void *)(uintptr_t)file.data);
    }
    for (int k = 0; k < 2; k++) {
        stk_pack_options options = {.shard_bytes = 300000, .tfrecord = k};
        stk_pack_progress progress;
        stk_dataset *dataset = stk_dataset_images(in_folder("photos"));
        stk_status status = stk_pack_write(dataset, in_folder(k ? "tfrecord" : "pack"), &options, &progress);
        stk_dataset_free(dataset);
        if (status != STK_OK) return -1;
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(images_in_folders),
                                       cmocka_unit_test(with_an_index_being_learned), cmocka_unit_test(packs),
                                       cmocka_unit_test(packs_of_tfrecord), cmocka_unit_test(windows)};
    return cmocka_run_group_tests(tests, make_data, remove_test_folder);
}
