/* Samples made of several samples or of parts of one: packed rows, windows, unbatch, flat_map. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/fake.h"
#include "data/ragged_make.h"
#include "stoker/combine.h"
#include "stoker/regroup.h"

enum { N_SAMPLES = 1000, MOST_BATCHES = 2000 };

static int64_t length_of(int64_t i)
{
    return i * 37 % 89;
}

static stk_dataset *make_samples(int64_t n)
{
    int64_t lengths[N_SAMPLES];
    for (int64_t i = 0; i < n; i++)
        lengths[i] = length_of(i);
    return make_ragged(lengths, n);
}

static stk_loader *open_with(const stk_dataset *dataset, const stk_loader_config *config)
{
    stk_loader *loader;
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_loader_open(dataset, config, &loader), STK_OK);
    return loader;
}

/* Two epochs are the same for any number of workers and from any start. Takes the data set. */
static void check_repeats(stk_dataset *dataset)
{
    static uint64_t hash[MOST_BATCHES];
    int64_t n = 2 * stk_dataset_n_batches(dataset);
    assert_in_range(n, 2, MOST_BATCHES);
    for (int n_threads = 1; n_threads <= 8; n_threads *= 2) {
        stk_loader *loader = open_with(dataset, &(stk_loader_config){.n_threads = n_threads, .n_epochs = 2});
        for (int64_t i = 0; i < n; i++) {
            const stk_batch *batch = stk_loader_next(loader);
            assert_non_null(batch);
            if (n_threads == 1) hash[i] = stk_batch_hash(batch);
            assert_int_equal(stk_batch_hash(batch), hash[i]);
            stk_batch_release(batch);
        }
        assert_null(stk_loader_next(loader));
        assert_int_equal(stk_loader_status(loader), STK_OK);
        stk_loader_close(loader);
    }
    for (int64_t start = 1; start < n / 2; start += n / 7 + 1) {
        stk_loader *loader = open_with(dataset, &(stk_loader_config){.n_threads = 3, .i_batch = start, .n_epochs = 2});
        for (int64_t i = start; i < n; i++) {
            const stk_batch *batch = stk_loader_next(loader);
            assert_int_equal(stk_batch_hash(batch), hash[i]);
            stk_batch_release(batch);
        }
        stk_loader_close(loader);
    }
    stk_dataset_free(dataset);
}

static void fails(stk_dataset *dataset, const char *why)
{
    assert_int_not_equal(stk_dataset_status(dataset), STK_OK);
    if (!strstr(stk_error_text(), why)) fail_msg("%s", stk_error_text());
    stk_dataset_free(dataset);
}

/* --- packing --- */

static const char *const tokens_only[] = {"tokens"};

static void packs_by_first_fit(void **state)
{
    (void)state;
    static const int64_t lengths[] = {3, 6, 4, 0, 2, 5, 1, 8};
    stk_dataset *dataset = make_ragged(lengths, 8);
    stk_dataset_pack_sequences(dataset, &(stk_packing){.length = 8, .fields = tokens_only, .n_fields = 1, .value = -1});
    stk_dataset_batch(dataset, 2, false);
    assert_int_equal(stk_dataset_count(dataset), 4);
    assert_non_null(strstr(dataset->survey[0], "packing: 7 samples in 4 rows of 8, 9.38 % padding"));
    /* 3 4 1 | 6 2 | 5 | 8 */
    static const int32_t rows[4][8] = {{0, 1, 2, 200, 201, 202, 203, 600},
                                       {100, 101, 102, 103, 104, 105, 400, 401},
                                       {500, 501, 502, 503, 504, -1, -1, -1},
                                       {700, 701, 702, 703, 704, 705, 706, 707}};
    static const int32_t segments[4][8] = {
        {1, 1, 1, 2, 2, 2, 2, 3}, {1, 1, 1, 1, 1, 1, 2, 2}, {1, 1, 1, 1, 1, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1}};
    static const int32_t positions[4][8] = {
        {0, 1, 2, 0, 1, 2, 3, 0}, {0, 1, 2, 3, 4, 5, 0, 1}, {0, 1, 2, 3, 4, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6, 7}};
    stk_loader *loader = open_with(dataset, NULL);
    for (int b = 0; b < 2; b++) {
        const stk_batch *batch = stk_loader_next(loader);
        assert_memory_equal(stk_batch_data(batch, "tokens"), rows[2 * b], sizeof(rows) / 2);
        assert_memory_equal(stk_batch_data(batch, "segment"), segments[2 * b], sizeof(rows) / 2);
        assert_memory_equal(stk_batch_data(batch, "position"), positions[2 * b], sizeof(rows) / 2);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* First fit as its definition says, row by row. */
static int64_t fit_slowly(int64_t n, int64_t room, int64_t *row_of)
{
    static int64_t left[N_SAMPLES];
    int64_t n_rows = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = 0;
        row_of[i] = -1;
        if (length_of(i) == 0) continue;
        while (row < n_rows && left[row] < length_of(i))
            row++;
        if (row == n_rows) left[n_rows++] = room;
        left[row] -= length_of(i);
        row_of[i] = row;
    }
    return n_rows;
}

static void nothing_is_lost(void **state)
{
    (void)state;
    int64_t row_of[N_SAMPLES], room = 128;
    int seen[N_SAMPLES] = {0};
    int64_t n_rows = fit_slowly(N_SAMPLES, room, row_of);
    stk_dataset *dataset = make_samples(N_SAMPLES);
    stk_dataset_pack_sequences(dataset, &(stk_packing){.length = room, .fields = tokens_only, .n_fields = 1});
    stk_dataset_batch(dataset, 1, false);
    assert_int_equal(stk_dataset_count(dataset), n_rows);
    stk_loader *loader = open_with(dataset, &(stk_loader_config){.n_epochs = 1});
    for (int64_t row = 0; row < n_rows; row++) {
        const stk_batch *batch = stk_loader_next(loader);
        const int32_t *tokens = stk_batch_data(batch, "tokens"), *segment = stk_batch_data(batch, "segment"),
                      *position = stk_batch_data(batch, "position");
        for (int64_t k = 0, at = 0; k < room && segment[k]; k++, at++) {
            if (k == 0 || segment[k] != segment[k - 1]) at = 0;
            int64_t i = (tokens[k] - at) / 100;
            assert_int_equal(tokens[k], 100 * i + at);
            assert_int_equal(position[k], at);
            assert_int_equal(row_of[i], row);
            seen[i]++;
        }
        stk_batch_release(batch);
    }
    for (int64_t i = 0; i < N_SAMPLES; i++)
        assert_int_equal(seen[i], length_of(i));
    stk_loader_close(loader);
    stk_dataset_free(dataset);

    dataset = make_samples(N_SAMPLES);
    stk_dataset_repeat(dataset, 2);
    stk_dataset_pack_sequences(dataset, &(stk_packing){.length = room, .fields = tokens_only, .n_fields = 1});
    stk_dataset_shuffle(dataset, 4);
    stk_dataset_batch(dataset, 8, false);
    check_repeats(dataset);
}

static void what_cannot_be_packed(void **state)
{
    (void)state;
    const stk_packing packing = {.length = 64, .fields = tokens_only, .n_fields = 1};
    stk_dataset *dataset = make_samples(100);
    stk_dataset_pack_sequences(dataset, &packing);
    fails(dataset, "cannot pack: sample 2 has 74 elements, more than a row of 64: make rows longer, or cut");
    dataset = make_samples(100);
    stk_dataset_pack_sequences(dataset, &(stk_packing){.length = 100});
    fails(dataset, "field 'id' is i32[], and only fields whose first side is open are packed");
    dataset = make_samples(100);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_pack_sequences(dataset, &packing);
    fails(dataset, "not after a shuffle");
    dataset = make_samples(100);
    stk_dataset_rename(dataset, "tokens", "segment");
    stk_dataset_pack_sequences(dataset,
                               &(stk_packing){.length = 100, .fields = (const char *[]){"segment"}, .n_fields = 1});
    fails(dataset, "rename it");
    dataset = make_samples(100);
    stk_dataset_pack_sequences(dataset, &(stk_packing){.length = 0});
    fails(dataset, "rows cannot have 0 elements");
    dataset = make_fake(10, NULL);
    stk_dataset_pack_sequences(dataset, &packing);
    fails(dataset, "still encoded");
    /* Cut, every row has one sample of more than half of it, and others. */
    dataset = make_samples(100);
    stk_dataset_pack_sequences(dataset,
                               &(stk_packing){.length = 64, .fields = tokens_only, .n_fields = 1, .cut = true});
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_by_first_fit),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(what_cannot_be_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
