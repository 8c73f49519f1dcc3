/* Padded batches: as TensorFlow has them, for any number of workers and from any start; lengths, cuts, values; what
 * does not fit; and records that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>

#include "data/fake.h"
#include "data/ragged_make.h"
#include "golden/scan_golden.h"
#include "stoker/data/cache.h"
#include "stoker/data/combine.h"

static stk_loader *open_at(const stk_dataset *dataset, int64_t i_batch, int n_threads, int64_t n_epochs)
{
    stk_loader_config config = {.n_threads = n_threads, .i_batch = i_batch, .n_epochs = n_epochs};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    return loader;
}

static int64_t width_of(const stk_batch *batch, const char *field)
{
    stk_shape shape;
    assert_int_equal(stk_batch_shape(batch, field, &shape), STK_OK);
    assert_true(shape.rank >= 2);
    return shape.dim[1];
}

/* --- as TensorFlow --- */

static void check_golden(size_t i)
{
    stk_dataset *dataset = make_ragged(golden_padded[i].length, golden_padded[i].n_samples);
    const stk_padding padding = {.length = golden_padded[i].to, .value = golden_padded[i].value};
    stk_dataset_padded_batch(dataset, golden_padded[i].n, golden_padded[i].drop, &padding, 1);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    stk_loader *loader = open_at(dataset, 0, 2, 1);
    const int32_t *values = golden_padded[i].values;
    int64_t i_sample = 0;
    for (int b = 0; b < golden_padded[i].n_batches; b++) {
        const stk_batch *batch = stk_loader_next(loader);
        const int *shape = golden_padded[i].shape + 2 * (ptrdiff_t)b;
        assert_non_null(batch);
        assert_int_equal(stk_batch_count(batch), shape[0]);
        assert_int_equal(width_of(batch, "tokens"), shape[1]);
        int64_t n = (int64_t)shape[0] * shape[1];
        assert_memory_equal(stk_batch_data(batch, "tokens"), values, (size_t)n * sizeof(*values));
        const int32_t *length = stk_batch_data(batch, "tokens.length");
        for (int row = 0; row < shape[0]; row++)
            assert_int_equal(length[row], golden_padded[i].length[i_sample++]);
        values += n;
        stk_batch_release(batch);
    }
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), golden_padded[i].failed ? STK_MISMATCH : STK_OK);
    if (golden_padded[i].failed)
        assert_string_equal(stk_error_text(), "sample 4: field 'tokens' is 5 long, and batches are padded to 4: pad to "
                                              "more, or cut it with 'max_length'");
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void agrees_with_tensorflow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(golden_padded) / sizeof(golden_padded[0]); i++)
        check_golden(i);
}

/* --- any workers, any start --- */

enum { N_SAMPLES = 1000, N_BATCHES = 63 };

static stk_dataset *make_shuffled(void)
{
    int64_t lengths[N_SAMPLES];
    for (int i = 0; i < N_SAMPLES; i++)
        lengths[i] = i * 37 % 89;
    stk_dataset *dataset = make_ragged(lengths, N_SAMPLES);
    stk_dataset_shuffle_with(dataset, (stk_shuffle){.seed = 4, .window = 100});
    stk_dataset_padded_batch(dataset, 16, false, NULL, 0);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_n_batches(dataset), N_BATCHES);
    return dataset;
}

static void check_rows(const stk_batch *batch)
{
    int64_t width = width_of(batch, "tokens"), longest = 0;
    const int32_t *tokens = stk_batch_data(batch, "tokens"), *length = stk_batch_data(batch, "tokens.length"),
                  *id = stk_batch_data(batch, "id");
    for (int64_t row = 0; row < 16; row++) {
        bool real = row < stk_batch_count(batch);
        int64_t n = real ? id[row] * 37 % 89 : 0;
        assert_int_equal(length[row], n);
        longest = n > longest ? n : longest;
        for (int64_t k = 0; k < width; k++)
            assert_int_equal(tokens[row * width + k], k < n ? 100 * id[row] + k : 0);
    }
    assert_int_equal(width, longest);
}

static void any_workers_and_any_start(void **state)
{
    (void)state;
    static uint64_t hash[2 * N_BATCHES];
    stk_dataset *dataset = make_shuffled();
    for (int n_threads = 1; n_threads <= 8; n_threads *= 2) {
        stk_loader *loader = open_at(dataset, 0, n_threads, 2);
        for (int i = 0; i < 2 * N_BATCHES; i++) {
            const stk_batch *batch = stk_loader_next(loader);
            assert_non_null(batch);
            check_rows(batch);
            if (n_threads == 1) hash[i] = stk_batch_hash(batch);
            assert_int_equal(stk_batch_hash(batch), hash[i]);
            stk_batch_release(batch);
        }
        assert_null(stk_loader_next(loader));
        stk_loader_close(loader);
    }
    for (int start = 1; start < N_BATCHES; start += 13) {
        stk_loader *loader = open_at(dataset, start, 3, 2);
        for (int i = start; i < 2 * N_BATCHES; i++) {
            const stk_batch *batch = stk_loader_next(loader);
            assert_int_equal(stk_batch_hash(batch), hash[i]);
            stk_batch_release(batch);
        }
        stk_loader_close(loader);
    }
    stk_dataset_free(dataset);
}

/* Rows out of a cache are the same, in the epoch that fills it and in those after. */
static void cached_rows_are_the_same(void **state)
{
    (void)state;
    stk_dataset *plain = make_shuffled(), *cached = make_shuffled();
    stk_dataset_cache(cached, STK_CACHE_MEMORY, NULL);
    stk_loader *a = open_at(plain, 0, 2, 3), *b = open_at(cached, 0, 2, 3);
    for (int i = 0; i < 3 * N_BATCHES; i++) {
        const stk_batch *x = stk_loader_next(a), *y = stk_loader_next(b);
        assert_non_null(y);
        assert_int_equal(stk_batch_hash(x), stk_batch_hash(y));
        stk_batch_release(x);
        stk_batch_release(y);
    }
    stk_cache_stats stats;
    stk_dataset_get_cache(cached, &stats);
    assert_int_equal(stats.n_hits, 2 * N_SAMPLES);
    stk_loader_close(a);
    stk_loader_close(b);
    stk_dataset_free(plain);
    stk_dataset_free(cached);
}

/* --- settings --- */

static const int64_t few[] = {3, 1, 4, 1, 5, 0};

static void cuts_and_fields(void **state)
{
    (void)state;
    stk_dtype dtype;
    stk_shape shape;
    stk_dataset *dataset = make_ragged(few, 6);
    stk_dataset_apply_to(dataset, "tokens", stk_cast(STK_F32));
    const stk_padding padding = {.field = "tokens", .max_length = 3, .value = -0.5};
    stk_dataset_padded_batch(dataset, 3, false, &padding, 1);
    assert_int_equal(stk_dataset_field(dataset, "tokens", true, &dtype, &shape), STK_OK);
    assert_int_equal(dtype, STK_F32);
    assert_int_equal(shape.dim[0], STK_ANY);
    stk_loader *loader = open_at(dataset, 0, 1, 1);
    const stk_batch *a = stk_loader_next(loader), *b = stk_loader_next(loader);
    static const float first[] = {0, 1, 2, 100, -0.5f, -0.5f, 200, 201, 202};
    static const float second[] = {300, -0.5f, -0.5f, 400, 401, 402, -0.5f, -0.5f, -0.5f};
    static const int32_t lengths[] = {1, 3, 0};
    assert_memory_equal(stk_batch_data(a, "tokens"), first, sizeof(first));
    assert_memory_equal(stk_batch_data(b, "tokens"), second, sizeof(second));
    assert_memory_equal(stk_batch_data(b, "tokens.length"), lengths, sizeof(lengths));
    assert_int_equal(stk_batch_shape(a, "id", &shape), STK_OK);
    assert_int_equal(shape.rank, 1);
    assert_int_equal(shape.dim[0], 3);
    assert_int_equal(stk_batch_shape(a, "id.length", &shape), STK_NOT_FOUND);
    assert_null(stk_batch_data(a, "id.length"));
    stk_loader_close(loader);
    stk_dataset_free(dataset);

    /* A length that was given is the field's. */
    dataset = make_ragged(few, 6);
    const stk_padding given = {.length = 7};
    stk_dataset_padded_batch(dataset, 3, false, &given, 1);
    assert_int_equal(stk_dataset_field(dataset, "tokens", false, &dtype, &shape), STK_OK);
    assert_int_equal(shape.dim[0], 7);
    assert_int_equal(dataset->n_scans, 0);
    stk_dataset_free(dataset);
}

/* Elements of several numbers, and two padded fields, each with a length of its own. */
static void wide_elements(void **state)
{
    (void)state;
    static const float boxes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t box_offsets[] = {0, 1, 1, 3}, class_offsets[] = {0, 2, 3, 4};
    static const uint8_t classes[] = {1, 2, 3, 4};
    const stk_ragged_field fields[] = {
        {.name = "boxes", .dtype = STK_F32, .element = STK_SHAPE(2, 2), .values = boxes, .offsets = box_offsets},
        {.name = "classes", .dtype = STK_U8, .values = classes, .offsets = class_offsets}};
    const stk_padding paddings[] = {{.value = -1}, {.field = "classes", .value = 255}};
    stk_dataset *dataset = stk_dataset_ragged(3, fields, 2);
    stk_dataset_padded_batch(dataset, 3, false, paddings, 2);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    stk_loader *loader = open_at(dataset, 0, 1, 1);
    const stk_batch *batch = stk_loader_next(loader);
    static const float wanted[] = {1,  2,  3,  4,  -1, -1, -1, -1, -1, -1, -1, -1,
                                   -1, -1, -1, -1, 5,  6,  7,  8,  9,  10, 11, 12};
    static const uint8_t wanted_classes[] = {1, 2, 3, 255, 4, 255};
    assert_memory_equal(stk_batch_data(batch, "boxes"), wanted, sizeof(wanted));
    assert_memory_equal(stk_batch_data(batch, "classes"), wanted_classes, sizeof(wanted_classes));
    stk_shape shape;
    assert_int_equal(stk_batch_shape(batch, "boxes", &shape), STK_OK);
    assert_true(shape.rank == 4 && shape.dim[1] == 2 && shape.dim[2] == 2 && shape.dim[3] == 2);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* --- errors --- */

static void refused(stk_dataset *dataset, const stk_padding *padding, const char *why)
{
    stk_dataset_padded_batch(dataset, 2, false, padding, padding ? 1 : 0);
    assert_int_not_equal(stk_dataset_status(dataset), STK_OK);
    if (!strstr(stk_error_text(), why)) fail_msg("%s", stk_error_text());
    stk_dataset_free(dataset);
}

static void what_cannot_be_padded(void **state)
{
    (void)state;
    refused(make_ragged(few, 6), &(stk_padding){.value = 0.5}, "field 'tokens' is i32[] and cannot be padded with 0.5");
    refused(make_ragged(few, 6), &(stk_padding){.field = "id"}, "its first side is not open");
    refused(make_ragged(few, 6), &(stk_padding){.field = "token"}, "did you mean 'tokens'?");
    refused(make_ragged(few, 6), &(stk_padding){.length = -1}, "cannot be padded to -1");
    stk_dataset *dataset = make_fake(6, NULL);
    stk_dataset_apply(dataset, fake_decode(), NULL);
    refused(dataset, NULL, "only its first side may be open");
    dataset = make_fake(6, NULL);
    stk_dataset_apply(dataset, fake_decode(), fake_fit(), NULL);
    refused(dataset, NULL, "no field of source 'fake' has an open first side: use 'batch'");
    refused(make_fake(6, NULL), &(stk_padding){.field = "image"}, "still encoded");
    dataset = make_ragged(few, 6);
    stk_dataset_shuffle(dataset, 1);
    refused(stk_dataset_concatenate(&dataset, 1), NULL, "the lengths of field 'tokens' change with the epochs");
    dataset = make_ragged(few, 6);
    stk_dataset_rename(dataset, "id", "tokens.length");
    refused(dataset, NULL, "there is a field 'tokens.length' already");

    dataset = make_ragged(few, 6);
    stk_dataset_padded_batch(dataset, 2, false, NULL, 0);
    stk_dataset_apply_to(dataset, "tokens", stk_cast(STK_F32));
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    assert_string_equal(stk_error_text(), "stage 'cast' comes after 'padded_batch': batch last of all");
    stk_dataset_free(dataset);

    /* Without padding the error says what to do. */
    dataset = make_ragged(few, 6);
    stk_dataset_batch(dataset, 2, false);
    stk_loader *loader = open_at(dataset, 0, 1, 1);
    assert_null(stk_loader_next(loader));
    assert_string_equal(stk_error_text(),
                        "sample 1 is [1] in source 'ragged', the batch needs [3] as sample 0 has; pad the batches");
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void wrong_arrays(void **state)
{
    (void)state;
    static const int64_t wrong[] = {0, 3, 2};
    stk_ragged_field field = {.name = "x", .dtype = STK_I32, .values = ragged_values, .offsets = wrong};
    stk_dataset *dataset = stk_dataset_ragged(2, &field, 1);
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    assert_string_equal(stk_error_text(), "the offsets of field 'x' descend at sample 1");
    stk_dataset_free(dataset);
    field.values = NULL;
    dataset = stk_dataset_ragged(1, &field, 1);
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    stk_dataset_free(dataset);
    dataset = stk_dataset_ragged(1, NULL, 1);
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    stk_dataset_free(dataset);
}

/* --- records that cannot be read --- */

typedef struct half_read {
    stk_source base;
    int64_t n_reads_until_bad;
} half_read;

static _Atomic int64_t n_reads;

/* [i % 7] of u8; every tenth cannot be read in the scan already, record 25 only after it. */
static stk_status read_half(const stk_source *source, int64_t i, stk_scratch *scratch, stk_item *item)
{
    int64_t n = i % 7;
    unsigned char *p = stk_scratch_get(scratch, 8);
    if (!p) return stk_fail_memory(8);
    if (i % 10 == 3) return stk_fail(STK_CORRUPT, "bad from the start");
    if (++n_reads > 90 && i == 25) return stk_fail(STK_CORRUPT, "bad since");
    memset(p, (int)i, 8);
    item[0] = (stk_item){.type = source->field[0].type, .data = p, .n_bytes = (size_t)n};
    item[0].type.desc.shape.dim[0] = n;
    return STK_OK;
}

static const stk_source_class class_half = {
    .name = "half", .read = read_half, .name_record = name_fake, .close = close_fake};

static void read_around(stk_on_error what)
{
    half_read *half = calloc(1, sizeof(*half));
    half->base = (stk_source){.class = &class_half, .n_records = 100, .n_fields = 1};
    half->base.field[0] = (stk_source_field){"bytes", {.desc = {STK_U8, {1, {STK_ANY}}}}};
    stk_dataset *dataset = stk_dataset_make(STK_OK, &half->base);
    stk_dataset_on_error(dataset, what);
    atomic_store(&n_reads, 0);
    stk_dataset_padded_batch(dataset, 9, false, NULL, 0);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_count(dataset), 90);
    stk_loader *loader = open_at(dataset, 0, 2, 1);
    int n_seen[100] = {0}, n_rows = 0;
    for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
        const unsigned char *bytes = stk_batch_data(batch, "bytes");
        const int32_t *length = stk_batch_data(batch, "bytes.length");
        int64_t width = width_of(batch, "bytes");
        n_rows += (int)stk_batch_count(batch);
        for (int64_t row = 0; row < stk_batch_count(batch); row++) {
            if (length[row]) assert_int_equal(length[row], bytes[row * width] % 7);
            if (length[row]) n_seen[bytes[row * width]]++;
        }
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_stats stats;
    stk_loader_get_stats(loader, &stats);
    assert_int_equal(stats.n_skipped, 1);
    assert_int_equal(n_rows, what == STK_ON_ERROR_SKIP ? 89 : 90);
    for (int i = 0; i < 100; i++)
        if (i % 10 == 3 || i == 25) assert_int_equal(n_seen[i], 0);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void corrupt_records(void **state)
{
    (void)state;
    read_around(STK_ON_ERROR_SKIP);
    read_around(STK_ON_ERROR_REPLACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_tensorflow),
        cmocka_unit_test(any_workers_and_any_start),
        cmocka_unit_test(cached_rows_are_the_same),
        cmocka_unit_test(cuts_and_fields),
        cmocka_unit_test(wide_elements),
        cmocka_unit_test(what_cannot_be_padded),
        cmocka_unit_test(wrong_arrays),
        cmocka_unit_test(corrupt_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
