/* Samples made of several samples or of parts of one: packed rows, windows, unbatch, flat_map. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/fake.h"
#include "data/ragged_make.h"
#include "golden/scan_golden.h"
#include "stoker/data/cache.h"
#include "stoker/data/combine.h"
#include "stoker/data/regroup.h"

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
    assert_non_null(strstr(dataset->scan[0], "packing: 7 samples in 4 rows of 8, 9.38 % padding"));
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

/* --- windows --- */

static int32_t numbers[N_SAMPLES];

static stk_dataset *make_numbers(int64_t n)
{
    const stk_array_field field = {.name = "x", .dtype = STK_I32, .data = numbers};
    for (int32_t i = 0; i < n; i++)
        numbers[i] = i;
    return stk_dataset_arrays(n, &field, 1);
}

static void windows_agree_with_tensorflow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(golden_windows) / sizeof(golden_windows[0]); i++) {
        const stk_windows how = {.size = golden_windows[i].size,
                                 .shift = golden_windows[i].shift,
                                 .stride = golden_windows[i].stride,
                                 .drop_remainder = golden_windows[i].drop};
        const int *sample = golden_windows[i].sample;
        bool all_full = true;
        for (int w = 0; w < golden_windows[i].n_windows; w++)
            all_full = all_full && golden_windows[i].length[w] == golden_windows[i].size;
        stk_dataset *dataset = make_numbers(golden_windows[i].n);
        stk_dataset_window(dataset, how);
        if (all_full)
            stk_dataset_batch(dataset, 1, false);
        else
            stk_dataset_padded_batch(dataset, 1, false, NULL, 0);
        assert_int_equal(stk_dataset_count(dataset), golden_windows[i].n_windows);
        stk_loader *loader = open_with(dataset, &(stk_loader_config){.n_epochs = 1});
        for (int w = 0; w < golden_windows[i].n_windows; w++) {
            const stk_batch *batch = stk_loader_next(loader);
            const int32_t *x = stk_batch_data(batch, "x");
            stk_shape shape;
            assert_int_equal(stk_batch_shape(batch, "x", &shape), STK_OK);
            assert_int_equal(shape.rank, 2);
            assert_int_equal(shape.dim[1], golden_windows[i].length[w]);
            for (int k = 0; k < golden_windows[i].length[w]; k++)
                assert_int_equal(x[k], *sample++);
            stk_batch_release(batch);
        }
        assert_null(stk_loader_next(loader));
        stk_loader_close(loader);
        stk_dataset_free(dataset);
    }
}

/* Windows over a shuffle are other ones in every epoch, and windows may be shuffled and taken apart again. */
static void windows_next_to_other_operations(void **state)
{
    (void)state;
    stk_dataset *dataset = make_numbers(N_SAMPLES);
    stk_dataset_shuffle_with(dataset, (stk_shuffle){.seed = 1, .window = 30});
    stk_dataset_window(dataset, (stk_windows){.size = 4, .shift = 3, .drop_remainder = true});
    stk_dataset_shuffle(dataset, 2);
    stk_dataset_batch(dataset, 5, false);
    check_repeats(dataset);

    int seen[N_SAMPLES] = {0};
    dataset = make_numbers(N_SAMPLES);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_window(dataset, (stk_windows){.size = 8, .drop_remainder = true});
    stk_dataset_unbatch(dataset);
    stk_dataset_batch(dataset, 10, false);
    assert_int_equal(stk_dataset_count(dataset), N_SAMPLES);
    stk_loader *loader = open_with(dataset, &(stk_loader_config){.n_epochs = 1});
    for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
        for (int i = 0; i < 10; i++)
            seen[((const int32_t *)stk_batch_data(batch, "x"))[i]]++;
        stk_batch_release(batch);
    }
    for (int i = 0; i < N_SAMPLES; i++)
        assert_int_equal(seen[i], 1);
    stk_loader_close(loader);
    check_repeats(dataset);
}

static void wrong_windows(void **state)
{
    (void)state;
    stk_dataset *dataset = make_numbers(5);
    stk_dataset_window(dataset, (stk_windows){.size = 0});
    fails(dataset, "a window cannot have 0 samples");
    dataset = make_numbers(5);
    stk_dataset_window(dataset, (stk_windows){.size = 6, .drop_remainder = true});
    fails(dataset, "5 samples do not fill one window of 6");
    dataset = make_fake(5, NULL);
    stk_dataset_window(dataset, (stk_windows){.size = 2});
    fails(dataset, "still encoded");
    /* A cache asked for before is asked for of the windows, which it cannot have. */
    dataset = make_numbers(5);
    stk_dataset_cache(dataset, STK_CACHE_MEMORY, NULL);
    stk_dataset_window(dataset, (stk_windows){.size = 2, .drop_remainder = true});
    stk_dataset_batch(dataset, 1, false);
    stk_loader *cached = NULL;
    assert_int_equal(stk_loader_open(dataset, NULL, &cached), STK_UNSUPPORTED);
    stk_dataset_free(dataset);
    /* Samples of one window that differ. */
    dataset = make_samples(5);
    stk_dataset_window(dataset, (stk_windows){.size = 2});
    stk_dataset_batch(dataset, 1, false);
    stk_loader *loader = NULL;
    assert_int_not_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    if (!strstr(stk_error_text(), "in one window with")) fail_msg("%s", stk_error_text());
    stk_dataset_free(dataset);
}

/* --- parts --- */

static void rows_of_samples(void **state)
{
    (void)state;
    stk_dataset *dataset = make_ragged(golden_lengths, 6);
    const stk_ragged_field field = {.name = "x", .dtype = STK_I32, .values = ragged_values, .offsets = ragged_offsets};
    stk_dataset_unbatch(dataset);
    fails(dataset, "cannot unbatch: field 'id' is i32[] and has no rows");
    dataset = stk_dataset_ragged(6, &field, 1);
    stk_dataset_unbatch(dataset);
    stk_dataset_batch(dataset, 11, false);
    assert_int_equal(stk_dataset_count(dataset), 11);
    assert_non_null(strstr(dataset->scan[0], "unbatch: 11 samples of 6"));
    stk_loader *loader = open_with(dataset, NULL);
    const stk_batch *batch = stk_loader_next(loader);
    for (int i = 0; i < 11; i++)
        assert_int_equal(((const int32_t *)stk_batch_data(batch, "x"))[i], golden_unbatched[i]);
    stk_loader_close(loader);
    stk_dataset_free(dataset);

    dataset = make_samples(N_SAMPLES);
    const stk_ragged_field many = {.name = "x", .dtype = STK_I32, .values = ragged_values, .offsets = ragged_offsets};
    stk_dataset_free(dataset);
    dataset = stk_dataset_ragged(N_SAMPLES, &many, 1);
    stk_dataset_unbatch(dataset);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_batch(dataset, 100, true);
    check_repeats(dataset);

    dataset = stk_dataset_ragged(N_SAMPLES, &many, 1);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_unbatch(dataset);
    fails(dataset, "cannot unbatch: not after a shuffle");
}

/* user: the lengths. */
static int64_t count_parts(void *user, const stk_record_field *fields, int n_fields)
{
    assert_int_equal(n_fields, 1);
    return ((const int64_t *)user)[*(const int32_t *)fields[0].data];
}

static stk_status make_part(void *user, const stk_record_field *fields, int n_fields, int64_t i_part, void *const *out)
{
    (void)user, (void)n_fields;
    int32_t i = *(const int32_t *)fields[0].data;
    *(int32_t *)out[0] = 100 * i + 7 * (int32_t)i_part;
    *(float *)out[1] = (float)i;
    return i == 77 ? STK_CORRUPT : STK_OK;
}

static const stk_array_field made[] = {{.name = "y", .dtype = STK_I32}, {.name = "of", .dtype = STK_F32}};

static void maps_to_several(void **state)
{
    (void)state;
    stk_dataset *dataset = make_numbers(6);
    const stk_flat_map map = {
        .fields = made, .n_fields = 2, .count = count_parts, .make = make_part, .user = (void *)golden_lengths};
    stk_dataset_flat_map(dataset, &map);
    assert_int_equal(stk_dataset_count(dataset), 11);
    stk_dataset_skip(dataset, 2);
    stk_dataset_shard(dataset, 2, 1);
    int n = (int)(sizeof(golden_mapped) / sizeof(golden_mapped[0]));
    stk_dataset_batch(dataset, n, false);
    assert_int_equal(stk_dataset_count(dataset), n);
    stk_loader *loader = open_with(dataset, NULL);
    const stk_batch *batch = stk_loader_next(loader);
    for (int i = 0; i < n; i++) {
        assert_int_equal(((const int32_t *)stk_batch_data(batch, "y"))[i], golden_mapped[i]);
        assert_true(((const float *)stk_batch_data(batch, "of"))[i] == (float)(golden_mapped[i] / 100));
    }
    stk_loader_close(loader);
    stk_dataset_free(dataset);

    static int64_t lengths[N_SAMPLES];
    for (int64_t i = 0; i < 70; i++)
        lengths[i] = length_of(i) % 13;
    const stk_flat_map many = {.fields = made, .n_fields = 2, .count = count_parts, .make = make_part, .user = lengths};
    dataset = make_numbers(70);
    stk_dataset_flat_map(dataset, &many);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_batch(dataset, 7, false);
    check_repeats(dataset);

    /* The same number of each may come after a shuffle. */
    const stk_flat_map four = {.fields = made, .n_fields = 2, .n_parts = 4, .make = make_part};
    dataset = make_numbers(70);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_flat_map(dataset, &four);
    stk_dataset_batch(dataset, 7, false);
    assert_int_equal(stk_dataset_count(dataset), 280);
    check_repeats(dataset);
}

static int64_t count_badly(void *user, const stk_record_field *fields, int n_fields)
{
    (void)user, (void)n_fields;
    return *(const int32_t *)fields[0].data == 3 ? -1 : 0;
}

static void wrong_maps(void **state)
{
    (void)state;
    stk_flat_map map = {.fields = made, .n_fields = 2, .count = count_badly, .make = make_part};
    stk_dataset *dataset = make_numbers(10);
    stk_dataset_flat_map(dataset, &map);
    fails(dataset, "sample 3: the count is -1");
    dataset = make_numbers(3);
    stk_dataset_flat_map(dataset, &map);
    fails(dataset, "nothing is made of any sample");
    map.n_parts = 2;
    dataset = make_numbers(3);
    stk_dataset_flat_map(dataset, &map);
    fails(dataset, "'n_parts' is 2, and 'count' says");
    map.count = NULL, map.n_fields = 0;
    dataset = make_numbers(3);
    stk_dataset_flat_map(dataset, &map);
    fails(dataset, "0 fields");
    dataset = make_numbers(3);
    stk_dataset_flat_map(dataset, NULL);
    fails(dataset, "a function of flat_map is missing");
    /* A part that fails names its record. */
    map.n_fields = 2;
    dataset = make_numbers(100);
    stk_dataset_skip(dataset, 77);
    stk_dataset_flat_map(dataset, &map);
    stk_dataset_batch(dataset, 1, false);
    stk_loader *loader = open_with(dataset, NULL);
    assert_null(stk_loader_next(loader));
    assert_string_equal(stk_error_text(), "sample 77: the function of flat_map failed");
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_by_first_fit),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(what_cannot_be_packed),
        cmocka_unit_test(windows_agree_with_tensorflow),
        cmocka_unit_test(windows_next_to_other_operations),
        cmocka_unit_test(wrong_windows),
        cmocka_unit_test(rows_of_samples),
        cmocka_unit_test(maps_to_several),
        cmocka_unit_test(wrong_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
