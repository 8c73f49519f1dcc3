/* Tuning: trials on a model of a pipeline, and loaders that park and wake workers while batches stay the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "data/fake.h"
#include "data/loader/tune.h"
#include "stoker/data/loader.h"

/* --- a model: each thread makes a batch of 10 samples in 40 ms, on that many cores; a step takes step_ms --- */

typedef struct model {
    stk_tuner tuner;
    int n_cores;
    double step_ms;
    int64_t now_ns, wait_ns, n_samples;
} model;

static void run_model(model *m, double seconds)
{
    int64_t end_ns = m->now_ns + (int64_t)(seconds * 1e9);
    while (m->now_ns < end_ns) {
        int n = m->tuner.n_threads < m->n_cores ? m->tuner.n_threads : m->n_cores;
        if (m->tuner.n_slots < 3 && n > 1) n = 1; /* nobody works ahead with two slots */
        double batch_ms = 40.0 / n, wait_ms = batch_ms > m->step_ms ? batch_ms - m->step_ms : 0;
        m->now_ns += (int64_t)((m->step_ms + wait_ms) * 1e6);
        m->wait_ns += (int64_t)(wait_ms * 1e6);
        m->n_samples += 10;
        (void)stk_tuner_step(&m->tuner, m->now_ns, m->wait_ns, m->n_samples);
    }
}

static model make_model(int most, int first, int n_cores, double step_ms, bool can_rest)
{
    model m = {.n_cores = n_cores, .step_ms = step_ms};
    m.tuner =
        (stk_tuner){.most_threads = most, .most_slots = 16, .n_threads = first, .n_slots = 2, .can_rest = can_rest};
    stk_tuner_start(&m.tuner, 0);
    return m;
}

static void the_worst_becomes_the_best_in_time(void **state)
{
    (void)state;
    for (int n_cores = 1; n_cores <= 64; n_cores *= 2) {
        model m = make_model(n_cores, 1, n_cores, 0, false);
        run_model(&m, 10);
        assert_int_equal(m.tuner.n_threads, n_cores);
    }
    /* Where others want the cores, threads that bring nothing go back. */
    model m = make_model(16, 1, 4, 0.1, true);
    run_model(&m, 10);
    assert_int_equal(m.tuner.n_threads, 4);
    assert_true(m.tuner.n_texts > 0);
    assert_non_null(strstr(m.tuner.text[0], "threads"));
}

static void a_slow_consumer_gets_the_cores(void **state)
{
    (void)state;
    /* A step of 30 ms needs 2 of 8 threads. */
    model m = make_model(8, 8, 8, 30, true);
    m.tuner.n_slots = 16;
    run_model(&m, 60);
    assert_int_equal(m.tuner.n_threads, 2);
    assert_true((double)m.wait_ns < 0.05 * (double)m.now_ns);
    /* Elsewhere nobody rests. */
    m = make_model(8, 8, 8, 30, false);
    run_model(&m, 60);
    assert_int_equal(m.tuner.n_threads, 8);
}

static void occupancy_is_kept_in_equal_parts(void **state)
{
    (void)state;
    stk_tuner t = {.most_threads = 1};
    stk_tuner_start(&t, 0);
    for (int i = 0; i < 4096; i++)
        stk_tuner_note_ready(&t, i < 2048 ? 1 : 3);
    assert_true(t.n_history > 8 && t.n_history <= STK_TUNE_HISTORY);
    assert_true(t.ready_sum / (double)t.n_ready == 2);
    assert_true(t.ready[0] == 1 && t.ready[t.n_history - 1] == 3);
}

/* --- loaders --- */

static void wait_a_little(int64_t i_record)
{
    (void)i_record;
    int64_t end_ns = stk_clock_ns() + 20000;
    while (stk_clock_ns() < end_ns) {
    }
}

static stk_dataset *make_data(fake_source **fake)
{
    stk_dataset *dataset = make_fake(1000, fake);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_apply(dataset, fake_decode(), fake_noise(), NULL);
    stk_dataset_batch(dataset, 16, false);
    (*fake)->before_read = wait_a_little;
    return dataset;
}

static uint64_t hash_batches(const stk_dataset *dataset, stk_loader_config config, int n, stk_loader_stats *stats)
{
    stk_loader *loader;
    uint64_t hash = 0;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (int i = 0; i < n; i++) {
        const stk_batch *batch = stk_loader_next(loader);
        assert_non_null(batch);
        hash = hash * 31 + stk_batch_hash(batch);
        stk_batch_release(batch);
    }
    stk_loader_get_stats(loader, stats);
    stk_loader_close(loader);
    return hash;
}

static void parked_workers_change_no_batch(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make_data(&fake);
    stk_loader_stats stats;
    enum { N = 2500 };
    uint64_t wanted = hash_batches(dataset, (stk_loader_config){.n_threads = 4, .no_tuning = true}, N, &stats);
    assert_int_equal(stats.n_active_threads, 4);
    assert_true(stats.n_history > 0);
    uint64_t hash =
        hash_batches(dataset, (stk_loader_config){.n_threads = 4, .n_first_threads = 1, .n_first_slots = 2}, N, &stats);
    assert_int_equal(hash, wanted);
    hash = hash_batches(dataset, (stk_loader_config){.n_threads = 4, .low_priority = true, .n_first_threads = 2}, N,
                        &stats);
    assert_int_equal(hash, wanted);
    stk_dataset_free(dataset);
}

static void a_loader_tries_more_while_it_is_waited_for(void **state)
{
    (void)state;
    fake_source *fake;
    stk_loader *loader;
    stk_dataset *dataset = make_data(&fake);
    const stk_loader_config config = {.n_threads = 4, .n_first_threads = 1, .n_first_slots = 2};
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    /* What comes of it depends on the machine's other work; that it is tried does not. */
    int64_t end_ns = stk_clock_ns() + INT64_C(60000000000);
    while (!stk_loader_tuning(loader, 0) && stk_clock_ns() < end_ns)
        stk_batch_release(stk_loader_next(loader));
    assert_non_null(stk_loader_tuning(loader, 0));
    assert_non_null(strstr(stk_loader_tuning(loader, 0), "2 threads, 4 slots instead of 1, 2"));
    assert_null(stk_loader_tuning(loader, STK_TUNE_MOST_TEXTS));
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void parked_workers_hold_nothing_up(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make_data(&fake);
    fake->before_read = NULL;
    const stk_loader_config config = {.n_threads = 4, .n_first_threads = 1, .n_first_slots = 2, .n_epochs = 1};
    stk_loader *loader;
    /* Two batches held, which are all slots in use: one more is taken. */
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    const stk_batch *held[2] = {stk_loader_next(loader), stk_loader_next(loader)};
    stk_batch_release(held[1]);
    held[1] = stk_loader_next(loader);
    assert_non_null(held[1]);
    stk_loader_close(loader);
    /* To the end, and to an error. */
    for (int round = 0; round < 2; round++) {
        fake->bad_every = round ? 700 : 0;
        fake->bad_at = 650;
        assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
        for (const stk_batch *batch; (batch = stk_loader_next(loader));)
            stk_batch_release(batch);
        assert_int_equal(stk_loader_status(loader), round ? STK_CORRUPT : STK_OK);
        stk_loader_close(loader);
    }
    stk_dataset_free(dataset);
}

static void verdicts(void **state)
{
    (void)state;
    assert_string_equal(stk_input_verdict(0.049), "not input-bound");
    assert_string_equal(stk_input_verdict(0.05), "moderately input-bound");
    assert_string_equal(stk_input_verdict(0.2), "highly input-bound");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worst_becomes_the_best_in_time),
        cmocka_unit_test(a_slow_consumer_gets_the_cores),
        cmocka_unit_test(occupancy_is_kept_in_equal_parts),
        cmocka_unit_test(parked_workers_change_no_batch),
        cmocka_unit_test(a_loader_tries_more_while_it_is_waited_for),
        cmocka_unit_test(parked_workers_hold_nothing_up),
        cmocka_unit_test(verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
