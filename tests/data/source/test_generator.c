/* Generators: samples that come one after the other. Equal batches for any number of workers, resuming by replay and by
 * seeking, epochs whose length nobody knows, errors, and closing in the middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "stoker/data/cache.h"
#include "stoker/data/combine.h"
#include "stoker/data/custom.h"
#include "stoker/data/explain.h"
#include "stoker/data/loader.h"
#include "stoker/data/sheet.h"
#include "stoker/data/verify.h"

enum { N_SAMPLES = 43, N_ROWS = 8, N_BATCHES = 6, N_EPOCHS = 3, MOST = 64 };

typedef struct maker {
    int64_t epoch, next, n; /* n: where it ends; -1: never */
    int64_t bad_at;         /* is corrupt; -1: none */
    int64_t n_begun, n_sought, n_made;
    bool begin_fails, slow;
    atomic_int n_inside; /* threads that are in a call: one at most */
} maker;

static void enter(maker *m)
{
    assert_int_equal(atomic_fetch_add(&m->n_inside, 1), 0);
}

static stk_status leave(maker *m, stk_status status)
{
    atomic_fetch_sub(&m->n_inside, 1);
    return status;
}

static stk_status begin(void *user, int64_t i_epoch)
{
    maker *m = user;
    enter(m);
    m->epoch = i_epoch;
    m->next = 0;
    m->n_begun++;
    return leave(m, m->begin_fails ? stk_fail(STK_IO, "the pipe is closed") : STK_OK);
}

static stk_status seek(void *user, int64_t i_epoch, int64_t i_sample)
{
    maker *m = user;
    enter(m);
    m->epoch = i_epoch;
    m->next = i_sample;
    m->n_sought++;
    return leave(m, STK_OK);
}

static stk_status next(void *user, void *const *out, bool *ended)
{
    maker *m = user;
    enter(m);
    if (m->slow) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    assert_false(*ended);
    *ended = m->n >= 0 && m->next >= m->n;
    if (*ended) return leave(m, STK_OK);
    int64_t i = m->next++;
    m->n_made++;
    unsigned char *image = out[1];
    *(int32_t *)out[0] = (int32_t)i;
    for (int k = 0; k < 16; k++)
        image[k] = (unsigned char)(i * 7 + k + 100 * m->epoch);
    return leave(m, i == m->bad_at ? stk_fail(STK_CORRUPT, "is torn") : STK_OK);
}

static const stk_array_field fields[] = {{.name = "label", .dtype = STK_I32},
                                         {.name = "image", .dtype = STK_U8, .sample = STK_SHAPE(4, 4, 1)}};

static maker new_maker(int64_t n)
{
    return (maker){.n = n, .bad_at = -1};
}

static stk_dataset *open_generator(maker *m, int64_t n_samples, bool seeks)
{
    stk_dataset *dataset = stk_dataset_generator(
        fields, 2,
        &(stk_sample_generator){
            .n_samples = n_samples, .begin = begin, .next = next, .seek = seeks ? seek : NULL, .user = m});
    stk_dataset_apply(dataset, stk_random_flip(), stk_random_crop(4, 1), stk_scale(1 / 255.0), NULL);
    return dataset;
}

static stk_dataset *make_dataset(maker *m, int64_t n_samples, bool seeks)
{
    stk_dataset *dataset = open_generator(m, n_samples, seeks);
    stk_dataset_batch(dataset, N_ROWS, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

/* Hashes and rows of all batches until the end. */
static int64_t read_hashes(const stk_dataset *dataset, stk_loader_config config, uint64_t *hashes, int64_t *n_rows)
{
    stk_loader *loader;
    int64_t n = 0;
    *n_rows = 0;
    if (stk_loader_open(dataset, &config, &loader) != STK_OK) fail_msg("%s", stk_error_text());
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); n++) {
        assert_true(n < MOST);
        hashes[n] = stk_batch_hash(batch);
        *n_rows += stk_batch_count(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    assert_null(stk_loader_next(loader));
    stk_loader_close(loader);
    return n;
}

static void any_number_of_workers_gives_equal_batches(void **state)
{
    (void)state;
    uint64_t expected[MOST], hashes[MOST];
    int64_t n_rows;
    maker m = new_maker(-1);
    stk_dataset *dataset = make_dataset(&m, N_SAMPLES, false);
    assert_int_equal(stk_dataset_count(dataset), N_SAMPLES);
    stk_loader_config config = {.n_epochs = N_EPOCHS, .n_threads = 1, .seed = 3};
    assert_int_equal(read_hashes(dataset, config, expected, &n_rows), N_EPOCHS * N_BATCHES);
    assert_int_equal(n_rows, N_EPOCHS * N_SAMPLES);
    assert_int_equal(m.n_made, N_EPOCHS * N_SAMPLES);
    assert_int_equal(m.n_begun, N_EPOCHS);
    for (int k = 0; k < 20; k++) {
        config.n_threads = k % 2 ? 2 : 8;
        config.n_slots = 2 + k % 3;
        assert_int_equal(read_hashes(dataset, config, hashes, &n_rows), N_EPOCHS * N_BATCHES);
        assert_memory_equal(hashes, expected, N_EPOCHS * N_BATCHES * sizeof(*hashes));
    }
    stk_dataset_free(dataset);
}

static void samples_keep_their_order(void **state)
{
    (void)state;
    maker m = new_maker(-1);
    stk_dataset *dataset = make_dataset(&m, N_SAMPLES, false);
    stk_loader *loader;
    int32_t i = 0;
    assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 1, .n_threads = 4}, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch))
        for (int64_t row = 0; row < stk_batch_count(batch); row++)
            assert_int_equal(((const int32_t *)stk_batch_data(batch, "label"))[row], i++);
    assert_int_equal(i, N_SAMPLES);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void resuming_replays_or_seeks(void **state)
{
    (void)state;
    uint64_t expected[MOST], hashes[MOST];
    int64_t n_rows;
    for (int seeks = 0; seeks < 2; seeks++) {
        maker m = new_maker(-1);
        stk_dataset *dataset = make_dataset(&m, N_SAMPLES, seeks);
        stk_loader_config config = {.n_epochs = 2, .n_threads = 3};
        read_hashes(dataset, config, expected, &n_rows);
        for (int start = 1; start < 2 * N_BATCHES; start++) {
            m.n_made = m.n_sought = 0;
            config.i_epoch = start / N_BATCHES;
            config.i_batch = start % N_BATCHES;
            config.n_epochs = 2 - config.i_epoch;
            int64_t n = read_hashes(dataset, config, hashes, &n_rows);
            assert_int_equal(n, 2 * N_BATCHES - start);
            assert_memory_equal(hashes, expected + start, (size_t)n * sizeof(*hashes));
            assert_int_equal(m.n_sought, seeks && config.i_batch > 0);
            assert_int_equal(m.n_made, n_rows + (seeks ? 0 : config.i_batch * N_ROWS));
        }
        stk_dataset_free(dataset);
    }
}

static void an_unknown_count_ends_with_the_function(void **state)
{
    (void)state;
    uint64_t expected[MOST], hashes[MOST];
    int64_t n_rows, n_known;
    for (int64_t n = 0; n <= 2 * N_ROWS + 1; n++) {
        maker m = new_maker(n), known = new_maker(-1);
        stk_dataset *of_known = n ? make_dataset(&known, n, false) : NULL;
        n_known = n ? read_hashes(of_known, (stk_loader_config){.n_epochs = 1}, expected, &n_rows) : 0;
        stk_dataset_free(of_known);
        stk_dataset *dataset = make_dataset(&m, 0, false);
        assert_int_equal(stk_dataset_count(dataset), -1);
        assert_int_equal(stk_dataset_n_batches(dataset), -1);
        for (int n_threads = 1; n_threads <= 8; n_threads *= 2) {
            stk_loader_config config = {.n_epochs = 1, .n_threads = n_threads, .n_first_threads = 1};
            assert_int_equal(read_hashes(dataset, config, hashes, &n_rows), n_known);
            assert_int_equal(n_rows, n);
            assert_memory_equal(hashes, expected, (size_t)n_known * sizeof(*hashes));
        }
        stk_dataset_free(dataset);
        dataset = open_generator(&m, 0, false);
        stk_dataset_batch(dataset, N_ROWS, true);
        assert_int_equal(read_hashes(dataset, (stk_loader_config){.n_epochs = 1}, hashes, &n_rows), n / N_ROWS);
        assert_memory_equal(hashes, expected, (size_t)(n / N_ROWS) * sizeof(*hashes));
        stk_dataset_free(dataset);
    }
}

static void moving_forward_takes_skips_shards_and_repeats(void **state)
{
    (void)state;
    maker m = new_maker(-1);
    stk_dataset *dataset = open_generator(&m, N_SAMPLES, false);
    stk_dataset_skip(dataset, 3);
    stk_dataset_take(dataset, 20);
    stk_dataset_repeat(dataset, 2);
    stk_dataset_shard(dataset, 3, 1);
    stk_dataset_batch(dataset, 14, false);
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 1, .n_threads = 3}, &loader), STK_OK);
    const stk_batch *batch = stk_loader_next(loader);
    assert_non_null(batch);
    assert_int_equal(stk_batch_count(batch), 13);
    for (int i = 0; i < 13; i++)
        assert_int_equal(((const int32_t *)stk_batch_data(batch, "label"))[i], 3 + (1 + 3 * i) % 20);
    assert_int_equal(m.n_begun, 2);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* Reads to the end, which is an error. */
static void expect_error(const stk_dataset *dataset, stk_loader_config config, stk_status status, const char *text)
{
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader));)
        stk_batch_release(batch);
    assert_int_equal(stk_loader_status(loader), status);
    if (!strstr(stk_error_text(), text)) fail_msg("'%s' is not in: %s", text, stk_error_text());
    stk_loader_close(loader);
}

static void errors_name_the_sample_or_are_left_out(void **state)
{
    (void)state;
    uint64_t hashes[MOST];
    int64_t n_rows;
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        const stk_loader_config config = {.n_epochs = 1, .n_threads = n_threads};
        maker m = new_maker(-1);
        stk_dataset *dataset = make_dataset(&m, N_SAMPLES, false);
        m.bad_at = 21;
        expect_error(dataset, config, STK_CORRUPT, "sample 21: is torn");
        /* What is passed over does not matter. */
        expect_error(dataset, (stk_loader_config){.n_epochs = 1, .i_batch = 2}, STK_CORRUPT, "sample 21");
        read_hashes(dataset, (stk_loader_config){.n_epochs = 1, .i_batch = 3}, hashes, &n_rows);
        stk_dataset_on_error(dataset, STK_ON_ERROR_SKIP);
        assert_int_equal(read_hashes(dataset, config, hashes, &n_rows), N_BATCHES);
        assert_int_equal(n_rows, N_SAMPLES - 1);
        m.n = 30;
        expect_error(dataset, config, STK_MISMATCH, "ended after 30 samples of epoch 0, and has promised 43");
        m.begin_fails = true;
        expect_error(dataset, config, STK_IO, "cannot begin epoch 0 of the generator: the pipe is closed");
        stk_dataset_free(dataset);
    }
}

static void closing_early_leaves_nothing(void **state)
{
    (void)state;
    maker m = new_maker(-1);
    m.slow = true;
    stk_dataset *dataset = make_dataset(&m, N_SAMPLES, false);
    for (int i = 0; i < 12; i++) {
        stk_loader *loader, *second;
        stk_loader_config config = {.n_threads = 1 + i % 4, .n_slots = 2};
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        assert_int_equal(stk_loader_open(dataset, &config, &second), STK_BUSY);
        assert_null(second);
        for (int k = 0; k < i % 3; k++)
            assert_non_null(stk_loader_next(loader));
        stk_loader_close(loader);
        assert_int_equal(m.n_inside, 0);
    }
    /* No more was asked for than slots hold. */
    m.slow = false;
    m.n_made = 0;
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.n_threads = 4, .n_slots = 3}, &loader), STK_OK);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    stk_loader_close(loader);
    assert_true(m.n_made <= 3 * N_ROWS);
    stk_dataset_free(dataset);
}

/* As many workers as fit next to their samples; then none. */
static void samples_are_charged_to_the_account(void **state)
{
    (void)state;
    enum { N_BYTES = 1 << 20 };
    maker m = new_maker(-1);
    const stk_array_field large[] = {{.name = "label", .dtype = STK_I32},
                                     {.name = "image", .dtype = STK_U8, .sample = STK_SHAPE(N_BYTES)}};
    stk_dataset *dataset = stk_dataset_generator(
        large, 2, &(stk_sample_generator){.n_samples = N_SAMPLES, .begin = begin, .next = next, .user = &m});
    stk_dataset_batch(dataset, 2, false);
    stk_loader *loader;
    stk_loader_stats stats;
    stk_loader_config config = {.n_epochs = 1, .n_threads = 8, .n_slots = 4, .memory_limit_bytes = 12 << 20};
    if (stk_loader_open(dataset, &config, &loader) != STK_OK) fail_msg("%s", stk_error_text());
    for (const stk_batch *batch; (batch = stk_loader_next(loader));)
        stk_batch_release(batch);
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_get_stats(loader, &stats);
    assert_true(stats.n_threads < 8);
    assert_true(stats.memory.peak_bytes <= config.memory_limit_bytes);
    assert_true(stats.memory.used_bytes >= stats.slot_bytes + (size_t)stats.n_threads * N_BYTES);
    stk_loader_close(loader);
    config.memory_limit_bytes = 4 << 20;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_NO_MEMORY);
    stk_dataset_free(dataset);
}

static void explaining_names_the_weaker_promises(void **state)
{
    (void)state;
    maker m = new_maker(N_SAMPLES);
    stk_explanation e;
    stk_dataset *dataset = make_dataset(&m, N_SAMPLES, false);
    if (stk_dataset_explain(dataset, NULL, &e) != STK_OK) fail_msg("%s", stk_error_text());
    assert_true(!e.indexable && e.same_batches && e.exact_resume);
    assert_string_equal(e.source, "generator");
    stk_dataset_free(dataset);
    dataset = make_dataset(&m, 0, false);
    assert_int_equal(stk_dataset_explain(dataset, &(stk_loader_config){.n_epochs = 1}, &e), STK_OK);
    assert_int_equal(e.n_samples, -1);
    assert_int_equal(e.n_batches, -1);
    assert_int_equal(e.n_records, -1);
    assert_int_equal(m.n_inside, 0);
    assert_int_equal(stk_dataset_verify(dataset, NULL, NULL), STK_UNSUPPORTED);
    assert_int_equal(stk_dataset_sheet(dataset, NULL, NULL, "never.png", NULL), STK_UNSUPPORTED);
    stk_dataset_free(dataset);
}

static void expect_refused(stk_dataset *dataset, const char *text)
{
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    if (!strstr(stk_error_text(), text)) fail_msg("'%s' is not in: %s", text, stk_error_text());
    stk_dataset_free(dataset);
}

static void what_needs_numbers_is_refused(void **state)
{
    (void)state;
    maker m = new_maker(-1);
    stk_dataset *dataset = open_generator(&m, N_SAMPLES, false);
    stk_dataset_shuffle(dataset, 1);
    expect_refused(dataset, "'shuffle' asks for samples by number");
    dataset = open_generator(&m, N_SAMPLES, false);
    stk_dataset_split(dataset, 0.5, false, 1);
    expect_refused(dataset, "stk_dataset_function");
    dataset = open_generator(&m, N_SAMPLES, false);
    stk_dataset_cache(dataset, STK_CACHE_MEMORY, NULL);
    expect_refused(dataset, "'cache'");
    dataset = open_generator(&m, N_SAMPLES, false);
    stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE);
    expect_refused(dataset, "'replace' asks for samples by number");
    stk_dataset *two[] = {open_generator(&m, N_SAMPLES, false), open_generator(&m, N_SAMPLES, false)};
    expect_refused(stk_dataset_concatenate(two, 2), "'concatenate'");
    dataset = open_generator(&m, 0, false);
    stk_dataset_repeat(dataset, 2);
    expect_refused(dataset, "'n_samples'");
    expect_refused(stk_dataset_generator(fields, 2, &(stk_sample_generator){.next = next}), "'begin'");
    expect_refused(open_generator(&m, -2, false), "-2");
    dataset = make_dataset(&m, 0, false);
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_INVALID);
    assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 1, .n_shards = 2}, &loader),
                     STK_INVALID);
    stk_dataset_free(dataset);
    assert_int_equal(m.n_begun, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_workers_gives_equal_batches),
        cmocka_unit_test(samples_keep_their_order),
        cmocka_unit_test(resuming_replays_or_seeks),
        cmocka_unit_test(an_unknown_count_ends_with_the_function),
        cmocka_unit_test(moving_forward_takes_skips_shards_and_repeats),
        cmocka_unit_test(errors_name_the_sample_or_are_left_out),
        cmocka_unit_test(closing_early_leaves_nothing),
        cmocka_unit_test(samples_are_charged_to_the_account),
        cmocka_unit_test(explaining_names_the_weaker_promises),
        cmocka_unit_test(what_needs_numbers_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
