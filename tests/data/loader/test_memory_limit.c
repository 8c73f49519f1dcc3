/* Memory limits of loaders: the account is never exceeded and ends empty, tight limits mean fewer slots and workers
 * and the same batches, a record larger than the rest waits for its turn, and the process's own memory agrees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/fake.h"
#include "data/loader/inside.h"
#include "stoker/data/cache.h"
#include "stoker/data/loader.h"
#include "stoker/data/sources.h"

enum { WIDE = 1 << 20, EVERY = 5 };

static stk_memory_stats stats_of(const stk_memory *memory)
{
    stk_memory_stats stats;
    stk_memory_get_stats(memory, &stats);
    return stats;
}

/* --- a stage that takes scratch memory: much of it for every n-th record --- */

static stk_status plan_greedy(const void *params, const stk_field_type *in, stk_field_type *out)
{
    (void)params;
    *out = *in;
    return STK_OK;
}

static stk_status run_greedy(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                             stk_scratch *scratch)
{
    const int64_t *every = params;
    size_t n = key->i_sample % (uint64_t)*every == 0 ? 4 * (size_t)WIDE : WIDE / 4;
    unsigned char *p = stk_scratch_get(scratch, n);
    if (!p) return stk_fail_memory(n);
    memset(p, 1, n);
    memcpy(out->data, in->data, out->n_bytes);
    return STK_OK;
}

static const stk_stage_class greedy_class = {.key = {.name = "greedy"},
                                             .params_bytes = sizeof(int64_t),
                                             .plan = plan_greedy,
                                             .run = run_greedy,
                                             .in_place = true};

static stk_dataset *make_greedy(int64_t every)
{
    stk_dataset *dataset = make_fake(64, NULL);
    stk_dataset_apply(dataset, fake_decode(), fake_noise(), stk_stage_new(&greedy_class, &every), NULL);
    if (every == EVERY) stk_dataset_batch(dataset, 8, true);
    return dataset;
}

static uint64_t hash_batches(stk_loader *loader, int n)
{
    uint64_t hash = 0;
    for (int i = 0; i < n; i++) {
        const stk_batch *batch = stk_loader_next(loader);
        if (!batch) fail_msg("%s", (stk_loader_status(loader), stk_error_text()));
        hash = hash * 31 + stk_batch_hash(batch);
        stk_batch_release(batch);
    }
    return hash;
}

static void tight_limits_give_the_same_batches(void **state)
{
    (void)state;
    stk_dataset *dataset = make_greedy(EVERY);
    uint64_t wanted = 0;
    /* The least that does, by the message. */
    stk_loader_config config = {.n_threads = 4, .memory_limit_bytes = 100000};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_NO_MEMORY);
    const char *need = strstr(stk_error_text(), "need ");
    assert_non_null(need);
    size_t least = strtoul(need + 5, NULL, 10) << 20;
    const size_t limits[] = {(size_t)1 << 30, 64 << 20, 20 << 20, 12 << 20, least};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        stk_memory *memory;
        assert_int_equal(stk_memory_new(limits[i], &memory), STK_OK);
        config = (stk_loader_config){.n_threads = 4, .memory = memory};
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        uint64_t hash = hash_batches(loader, 24);
        if (i == 0) wanted = hash;
        assert_int_equal(hash, wanted);
        stk_loader_close(loader);
        assert_true(stats_of(memory).peak_bytes <= limits[i]);
        assert_int_equal(stats_of(memory).used_bytes, 0);
        stk_memory_free(memory);
    }
    stk_dataset_free(dataset);
}

static void a_large_record_waits_for_its_turn(void **state)
{
    (void)state;
    stk_dataset *dataset = make_greedy(EVERY);
    stk_memory *memory;
    stk_loader *loader;
    assert_int_equal(stk_memory_new(11 << 20, &memory), STK_OK);
    /* Two loaders on one account, neither of which may keep the other from a large record for ever. */
    stk_loader_config config = {.n_threads = 2, .memory = memory}, other = {.n_threads = 1, .memory = memory};
    stk_loader *second;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    assert_int_equal(stk_loader_open(dataset, &other, &second), STK_OK);
    assert_int_equal(hash_batches(loader, 40), hash_batches(second, 40));
    assert_true(stats_of(memory).peak_bytes <= 11 << 20);
    stk_loader_close(second);
    stk_loader_close(loader);
    assert_int_equal(stats_of(memory).used_bytes, 0);
    stk_memory_free(memory);
    stk_dataset_free(dataset);
}

static void a_record_too_large_for_all_is_an_error(void **state)
{
    (void)state;
    stk_dataset *dataset = make_greedy(20);
    stk_loader *loader;
    stk_loader_config config = {.n_threads = 2, .memory_limit_bytes = 4 << 20};
    /* The large one is not among the first records, which tell what a worker needs. */
    stk_dataset_skip(dataset, 1);
    stk_dataset_batch(dataset, 8, true);
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    const stk_batch *batch;
    while ((batch = stk_loader_next(loader)))
        stk_batch_release(batch);
    assert_int_equal(stk_loader_status(loader), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "is too small for it"));
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* --- finding out what a pipeline needs --- */

enum { HUNGRY_BYTES = 64 << 20 };
static _Atomic size_t most_granted; /* to one record */

/* Takes much for key 0, which is the first sample's, and that of all that are looked at for a cache. */
static stk_status run_hungry(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                             stk_scratch *scratch)
{
    (void)params;
    size_t n = key->i_sample == 0 ? HUNGRY_BYTES : 4096;
    unsigned char *p = stk_scratch_get(scratch, n);
    if (!p) return stk_fail_memory(n);
    memset(p, 1, n);
    if (n > atomic_load(&most_granted)) atomic_store(&most_granted, n);
    memcpy(out->data, in->data, out->n_bytes);
    return STK_OK;
}

static const stk_stage_class hungry_class = {
    .key = {.name = "hungry"}, .plan = plan_greedy, .run = run_hungry, .in_place = true};

static stk_dataset *make_hungry(int64_t n_skipped, stk_cache_kind kind)
{
    stk_dataset *dataset = make_fake(64, NULL);
    stk_dataset_skip(dataset, n_skipped);
    stk_dataset_apply(dataset, fake_decode(), stk_stage_new(&hungry_class, NULL), fake_noise(), NULL);
    stk_dataset_batch(dataset, 8, true);
    stk_dataset_cache(dataset, kind, NULL);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

static void measuring_keeps_the_limit(void **state)
{
    (void)state;
    const stk_cache_kind kinds[] = {STK_CACHE_NONE, STK_CACHE_MEMORY, STK_CACHE_AUTO};
    for (int64_t n_skipped = 0; n_skipped < 2; n_skipped++)
        for (int i = 0; i < 3; i++) {
            stk_dataset *dataset = make_hungry(n_skipped, kinds[i]);
            stk_loader *loader;
            stk_loader_memory need;
            stk_loader_config config = {.n_threads = 2, .memory_limit_bytes = 32 << 20};
            atomic_store(&most_granted, 0);
            stk_status status = stk_loader_open(dataset, &config, &loader);
            assert_int_equal(status, n_skipped == 0 ? STK_NO_MEMORY : STK_OK);
            stk_loader_close(loader);
            assert_int_equal(stk_loader_need(dataset, &config, &need), status);
            assert_true(atomic_load(&most_granted) <= 4096);
            stk_dataset_free(dataset);
        }
}

/* What a cache looks at is charged to the loader's account, and all of it is given back. */
static void looking_for_a_cache_is_in_the_account(void **state)
{
    (void)state;
    stk_memory *memory;
    stk_dataset *dataset = make_hungry(1, STK_CACHE_AUTO);
    stk_loader *loader;
    assert_int_equal(stk_memory_new(256 << 20, &memory), STK_OK);
    stk_loader_config config = {.n_threads = 1, .memory = memory};
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    assert_true(stats_of(memory).peak_bytes >= HUNGRY_BYTES);
    stk_loader_close(loader);
    assert_int_equal(stats_of(memory).used_bytes, 0);
    stk_memory_free(memory);
    stk_dataset_free(dataset);
}

/* --- the process's own view --- */

/* Of anonymous memory: mapped files do not count. */
static double resident_bytes(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, "RssAnon:", 8)) kib = strtoul(line + 8, NULL, 10);
    fclose(file);
    return (double)kib * 1024;
}

static int count_threads(void)
{
    char line[256];
    int n = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, "Threads:", 8)) n = atoi(line + 8);
    fclose(file);
    return n;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OWN_MEMORY = 0 }; /* sanitizers keep what is freed */
#else
enum { OWN_MEMORY = 1 };
#endif

static void a_thousand_epochs_with_early_stops_are_flat(void **state)
{
    (void)state;
    stk_dataset *dataset = make_greedy(64);
    stk_dataset_skip(dataset, 1);
    stk_dataset_batch(dataset, 8, true);
    double first = 0;
    int n_threads = count_threads(); /* the thread sanitizer has one of its own */
    for (int i = 0; i < 1000; i++) {
        stk_loader *loader;
        stk_loader_config config = {.n_threads = 3, .i_epoch = i, .memory_limit_bytes = (16 + i % 3) << 20};
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        (void)hash_batches(loader, i % 5);
        if (i % 2) (void)stk_loader_next(loader); /* held until the end */
        stk_loader_close(loader);
        if (i == 50) first = resident_bytes();
    }
    if (OWN_MEMORY) assert_true(resident_bytes() - first < 1 << 20);
    assert_int_equal(count_threads(), n_threads);
    stk_dataset_free(dataset);
}

static stk_dataset *open_photos(void)
{
    const char *folder = STK_SOURCE_DIR "/../shared/data/photos";
    stk_dataset *dataset = stk_dataset_files(&folder, 1, STK_LABELS_NONE, NULL);
    stk_dataset_repeat(dataset, 4);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_apply(dataset, stk_decode(), stk_random_resized_crop(224, true), stk_random_flip(),
                      stk_normalize_imagenet(), NULL);
    stk_dataset_batch(dataset, 64, true);
    return dataset;
}

static void photos_keep_within_the_limit(void **state)
{
    (void)state;
    const char *folder = STK_SOURCE_DIR "/../shared/data/photos";
    if (!OWN_MEMORY || access(folder, R_OK)) {
        print_message("SKIP: %s\n", OWN_MEMORY ? "no photographs" : "sanitizers have memory of their own");
        skip();
    }
    const size_t limits[] = {128 << 20, 160 << 20, 256 << 20};
    stk_dataset *dataset = open_photos();
    for (int i = 0; i < 3; i++) {
        stk_loader *loader;
        stk_loader_config config = {.n_threads = 4, .memory_limit_bytes = limits[i]};
        double before = resident_bytes(), peak = 0;
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        for (int k = 0; k < 20; k++) {
            stk_batch_release(stk_loader_next(loader));
            for (int n = 0; n < 10; n++) {
                double now = resident_bytes();
                if (now > peak) peak = now;
                usleep(1000);
            }
        }
        stk_loader_stats stats;
        stk_loader_get_stats(loader, &stats);
        stk_loader_close(loader);
        print_message("limit %zu MiB: %d threads, %d slots, account %.1f MiB, process %.1f MiB\n", limits[i] >> 20,
                      stats.n_threads, stats.n_slots, (double)stats.memory.peak_bytes / (1 << 20),
                      (peak - before) / (1 << 20));
        assert_true(peak - before <= (double)limits[i]);
        assert_true(resident_bytes() - before < 4 << 20);
    }
    stk_loader *loader;
    stk_loader_config config = {.memory_limit_bytes = 70 << 20};
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "need "));
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tight_limits_give_the_same_batches),
        cmocka_unit_test(a_large_record_waits_for_its_turn),
        cmocka_unit_test(a_record_too_large_for_all_is_an_error),
        cmocka_unit_test(measuring_keeps_the_limit),
        cmocka_unit_test(looking_for_a_cache_is_in_the_account),
        cmocka_unit_test(a_thousand_epochs_with_early_stops_are_flat),
        cmocka_unit_test(photos_keep_within_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
