/* Several data sets as one: which samples come where, with their own order and stages, the same for any number of
 * workers and from any start; and what does not go together is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "data/fake.h"
#include "golden/order_golden.h"
#include "stoker/data/combine.h"
#include "stoker/data/loader.h"

enum { MOST = 4000 };

static int32_t numbers[MOST]; /* 0, 1, 2, ...: borrowed by the data sets of arrays */

/* n samples of one field, the numbers from `first` on. */
static stk_dataset *make_numbers(const char *name, int32_t first, int64_t n)
{
    for (int32_t i = 0; i < MOST; i++)
        numbers[i] = i;
    const stk_array_field field = {.name = name, .dtype = STK_I32, .data = numbers + first};
    return stk_dataset_arrays(n, &field, 1);
}

/* Samples of one epoch by one loader, batched here. Returns how many. Frees the data set when `last`. */
static int64_t read_numbers(stk_dataset *dataset, const char *field, int64_t epoch, bool last, int32_t *out)
{
    int64_t n = 0;
    if (!stk_dataset_batch_size(dataset)) stk_dataset_batch(dataset, 7, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    stk_loader_config config = {.n_threads = 2, .i_epoch = epoch, .n_epochs = 1};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
        memcpy(out + n, stk_batch_data(batch, field), (size_t)stk_batch_count(batch) * sizeof(*out));
        n += stk_batch_count(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    assert_int_equal(n, stk_dataset_count(dataset));
    if (last) stk_dataset_free(dataset);
    return n;
}

static void expect_error(stk_dataset *dataset, stk_status status, const char *text)
{
    assert_int_equal(stk_dataset_status(dataset), status);
    assert_string_equal(stk_error_text(), text);
    stk_dataset_free(dataset);
}

/* --- which samples --- */

static void concatenation_is_one_after_the_other(void **state)
{
    (void)state;
    int32_t out[MOST];
    stk_dataset *parts[] = {make_numbers("x", 0, 10), make_numbers("x", 50, 3), make_numbers("x", 100, 20)};
    stk_dataset_skip(parts[0], 4);
    stk_dataset_repeat(parts[1], 2);
    stk_dataset_take(parts[2], 5);
    static const int32_t expected[] = {4, 5, 6, 7, 8, 9, 50, 51, 52, 50, 51, 52, 100, 101, 102, 103, 104};
    assert_int_equal(read_numbers(stk_dataset_concatenate(parts, 3), "x", 0, true, out), 17);
    assert_memory_equal(out, expected, sizeof(expected));
    /* It is a data set like any other. */
    stk_dataset *again[] = {make_numbers("x", 0, 5), make_numbers("x", 10, 5)};
    stk_dataset *dataset = stk_dataset_concatenate(again, 2);
    stk_dataset_shard(dataset, 3, 1);
    static const int32_t sharded[] = {1, 4, 12};
    assert_int_equal(read_numbers(dataset, "x", 0, true, out), 3);
    assert_memory_equal(out, sharded, sizeof(sharded));
}

static void interleaving_is_in_the_order_of_tf_data(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(golden_interleave) / sizeof(golden_interleave[0]); k++) {
        stk_dataset *parts[6];
        int32_t out[MOST];
        int n = 0;
        /* Data sets without samples do not exist here. */
        for (int i = 0; i < golden_interleave[k].n_children; i++)
            if (golden_interleave[k].n[i]) parts[n++] = make_numbers("x", 100 * i, golden_interleave[k].n[i]);
        if (n < golden_interleave[k].n_children) {
            while (n)
                stk_dataset_free(parts[--n]);
            continue;
        }
        stk_dataset *dataset = stk_dataset_interleave(parts, n, golden_interleave[k].cycle, golden_interleave[k].block);
        assert_int_equal(read_numbers(dataset, "x", 0, true, out), golden_interleave[k].n_samples);
        for (int i = 0; i < golden_interleave[k].n_samples; i++)
            assert_int_equal(out[i], golden_interleave[k].sample[i]);
    }
}

/* Fields go by name, in whatever order the data sets have them. */
static void fields_go_by_name(void **state)
{
    (void)state;
    static const int32_t x[] = {1, 2, 3}, y[] = {10, 20, 30};
    const stk_array_field there[] = {{.name = "x", .dtype = STK_I32, .data = x},
                                     {.name = "y", .dtype = STK_I32, .data = y}};
    const stk_array_field back[] = {there[1], there[0]};
    int32_t out[MOST];
    stk_dataset *parts[] = {stk_dataset_arrays(3, there, 2), stk_dataset_arrays(3, back, 2)};
    static const int32_t expected[] = {10, 20, 30, 10, 20, 30};
    assert_int_equal(read_numbers(stk_dataset_concatenate(parts, 2), "y", 0, true, out), 6);
    assert_memory_equal(out, expected, sizeof(expected));
}

/* tf.data's example: zip of range(1, 4) and range(4, 7), the longer of two cut. */
static void zip_joins_fields(void **state)
{
    (void)state;
    int32_t a[MOST], b[MOST];
    stk_dataset *parts[] = {make_numbers("x", 1, 3), make_numbers("x", 4, 30)};
    stk_dataset_rename(parts[1], "x", "y");
    stk_dataset *dataset = stk_dataset_zip(parts, 2);
    assert_int_equal(read_numbers(dataset, "x", 0, false, a), 3);
    assert_int_equal(read_numbers(dataset, "y", 0, true, b), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a[i], i + 1);
        assert_int_equal(b[i], i + 4);
    }
    /* The same seed and length keep two shuffled data sets together. */
    stk_dataset *pair[] = {make_numbers("x", 0, 50), make_numbers("y", 100, 50)};
    stk_dataset_shuffle(pair[0], 8);
    stk_dataset_shuffle(pair[1], 8);
    dataset = stk_dataset_zip(pair, 2);
    read_numbers(dataset, "x", 3, false, a);
    read_numbers(dataset, "y", 3, true, b);
    int n_moved = 0;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(b[i], a[i] + 100);
        n_moved += a[i] != i;
    }
    assert_true(n_moved > 25);
}

static void mixing_takes_each_in_its_order(void **state)
{
    (void)state;
    int32_t out[MOST], again[MOST], next[2] = {0, 1000};
    const double weights[] = {3, 1};
    stk_dataset *parts[] = {make_numbers("x", 0, 300), make_numbers("x", 1000, 300)};
    stk_dataset *dataset = stk_dataset_mix(parts, weights, 2, true, 5);
    int64_t n = read_numbers(dataset, "x", 0, false, out);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(out[i], next[out[i] >= 1000]++);
    assert_int_equal(next[0], 300);
    assert_in_range(next[1], 1060, 1140);
    /* Its draws are the same in every epoch. */
    assert_int_equal(read_numbers(dataset, "x", 4, true, again), n);
    assert_memory_equal(out, again, (size_t)n * sizeof(*out));
}

/* --- epochs --- */

static void data_sets_inside_are_shuffled_anew(void **state)
{
    (void)state;
    enum { N = 60 };
    int32_t epoch[4][MOST], passes[MOST];
    for (int once = 0; once < 2; once++) {
        stk_dataset *parts[] = {make_numbers("x", 0, N), make_numbers("x", 100, N)};
        stk_dataset_shuffle_with(parts[0], (stk_shuffle){.seed = 1, .window = 20, .once = once});
        stk_dataset_shuffle_with(parts[1], (stk_shuffle){.seed = 2, .once = once});
        stk_dataset *dataset = stk_dataset_interleave(parts, 2, 2, 1);
        for (int e = 0; e < 4; e++) {
            int seen[200] = {0};
            assert_int_equal(read_numbers(dataset, "x", e, e == 3, epoch[e]), 2 * N);
            for (int i = 0; i < 2 * N; i++) {
                assert_int_equal(epoch[e][i] >= 100, i % 2);
                assert_int_equal(seen[epoch[e][i]]++, 0);
            }
            if (e) assert_int_equal(!memcmp(epoch[0], epoch[e], 2 * N * sizeof(int32_t)), once);
        }
    }
    /* Two passes as one epoch: those of two epochs. */
    stk_dataset *parts[] = {make_numbers("x", 0, N), make_numbers("x", 100, N)};
    for (int i = 0; i < 2; i++)
        stk_dataset_shuffle_with(parts[i], (stk_shuffle){.seed = 1 + (uint64_t)i, .window = i ? 0 : 20});
    stk_dataset *one[] = {make_numbers("x", 0, N), make_numbers("x", 100, N)};
    for (int i = 0; i < 2; i++)
        stk_dataset_shuffle_with(one[i], (stk_shuffle){.seed = 1 + (uint64_t)i, .window = i ? 0 : 20});
    stk_dataset *plain = stk_dataset_interleave(one, 2, 2, 1), *repeated = stk_dataset_interleave(parts, 2, 2, 1);
    stk_dataset_repeat(repeated, 2);
    assert_int_equal(read_numbers(repeated, "x", 1, true, passes), 4 * N);
    read_numbers(plain, "x", 2, false, epoch[0]);
    read_numbers(plain, "x", 3, true, epoch[1]);
    assert_memory_equal(passes, epoch[0], 2 * N * sizeof(int32_t));
    assert_memory_equal(passes + 2 * N, epoch[1], 2 * N * sizeof(int32_t));
}

/* --- workers and resuming --- */

/* Encoded images and arrays, random stages inside and outside, windows, a mix within a concatenation: 137 samples. */
static stk_dataset *make_nested(fake_source **bad)
{
    const double weights[] = {1, 2};
    stk_dataset *a[] = {make_fake(30, NULL), make_fake(40, NULL)};
    stk_dataset_shuffle_with(a[0], (stk_shuffle){.seed = 4, .window = 11});
    for (int i = 0; i < 2; i++)
        stk_dataset_apply(a[i], fake_decode(), fake_noise(), NULL);
    stk_dataset *b[] = {stk_dataset_mix(a, weights, 2, false, 6), make_fake(67, bad)};
    stk_dataset_shuffle(b[0], 1);
    stk_dataset_apply(b[1], fake_decode(), fake_fit(), fake_noise(), NULL);
    stk_dataset *dataset = stk_dataset_concatenate(b, 2);
    stk_dataset_shuffle_with(dataset, (stk_shuffle){.seed = 9, .window = 33});
    stk_dataset_apply(dataset, fake_noise(), fake_widen(), NULL);
    return dataset;
}

static int64_t read_hashes(const stk_dataset *dataset, stk_loader_config config, uint64_t *hashes)
{
    stk_loader *loader;
    int64_t n = 0;
    config.seed = 77;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch))
        hashes[n++] = stk_batch_hash(batch);
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    return n;
}

static void any_workers_and_any_start_give_equal_batches(void **state)
{
    (void)state;
    uint64_t expected[64], hashes[64];
    stk_dataset *dataset = make_nested(NULL);
    stk_dataset_batch(dataset, 8, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_count(dataset), 137);
    assert_int_equal(read_hashes(dataset, (stk_loader_config){.n_threads = 1, .n_epochs = 3}, expected), 54);
    for (int n_threads = 2; n_threads <= 8; n_threads *= 2) {
        assert_int_equal(read_hashes(dataset, (stk_loader_config){.n_threads = n_threads, .n_epochs = 3}, hashes), 54);
        assert_memory_equal(hashes, expected, 54 * sizeof(*hashes));
    }
    for (int start = 1; start < 54; start += 5) {
        stk_loader_config config = {
            .n_threads = 3, .i_epoch = start / 18, .i_batch = start % 18, .n_epochs = 3 - start / 18};
        assert_int_equal(read_hashes(dataset, config, hashes), 54 - start);
        assert_memory_equal(hashes, expected + start, (size_t)(54 - start) * sizeof(*hashes));
    }
    for (int i = 0; i < 54; i++)
        for (int k = 0; k < i; k++)
            assert_true(expected[i] != expected[k]);
    stk_dataset_free(dataset);
}

/* Equal records of two data sets get random numbers of their own. */
static void random_stages_inside_differ(void **state)
{
    (void)state;
    stk_dataset *parts[] = {make_fake(8, NULL), make_fake(8, NULL)};
    for (int i = 0; i < 2; i++)
        stk_dataset_apply(parts[i], fake_decode(), fake_fit(), fake_noise(), NULL);
    stk_dataset *dataset = stk_dataset_concatenate(parts, 2);
    stk_dataset_batch(dataset, 16, false);
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    const stk_batch *batch = stk_loader_next(loader);
    const unsigned char *image = stk_batch_data(batch, "image");
    assert_memory_not_equal(image, image + 8 * 16, 8 * 16);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* --- records that fail --- */

static void bad_records_are_named_by_their_own_name(void **state)
{
    (void)state;
    uint64_t expected[64], hashes[64];
    fake_source *bad;
    stk_dataset *dataset = make_nested(&bad);
    bad->bad_every = 20;
    bad->bad_at = 7;
    stk_dataset_batch(dataset, 8, false);
    stk_loader_config config = {.n_threads = 4, .n_epochs = 1};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader));)
        stk_batch_release(batch);
    assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
    const char *text = stk_error_text(), *end = strstr(text, "7.fake': truncated fake");
    assert_non_null(end);
    assert_true(text[0] == '\'' && end - text <= 2);
    stk_loader_close(loader);
    stk_dataset_on_error(dataset, STK_ON_ERROR_REPLACE);
    assert_int_equal(read_hashes(dataset, (stk_loader_config){.n_threads = 1, .n_epochs = 2}, expected), 36);
    assert_int_equal(read_hashes(dataset, (stk_loader_config){.n_threads = 5, .n_epochs = 2}, hashes), 36);
    assert_memory_equal(hashes, expected, 36 * sizeof(*hashes));
    stk_dataset_free(dataset);
}

static void sizes_may_differ_until_the_stages_after(void **state)
{
    (void)state;
    fake_source *varied;
    stk_dataset *parts[] = {make_fake(20, NULL), make_fake(20, &varied)};
    varied->varied = true;
    stk_dataset_apply(parts[0], fake_decode(), fake_fit(), NULL);
    stk_dataset_apply(parts[1], fake_decode(), NULL);
    stk_dataset *dataset = stk_dataset_concatenate(parts, 2);
    stk_shape shape;
    assert_int_equal(stk_dataset_field(dataset, "image", false, NULL, &shape), STK_OK);
    assert_true(stk_shape_equal(shape, STK_SHAPE(STK_ANY, STK_ANY, 1)));
    stk_dataset_apply(dataset, fake_fit(), NULL);
    stk_dataset_batch(dataset, 10, false);
    uint64_t hashes[64];
    assert_int_equal(read_hashes(dataset, (stk_loader_config){.n_epochs = 1}, hashes), 4);
    stk_dataset_free(dataset);
    /* Without them the record that is different is named. */
    stk_dataset *same[] = {make_fake(20, NULL), make_fake(20, &varied)};
    varied->varied = true;
    for (int i = 0; i < 2; i++)
        stk_dataset_apply(same[i], fake_decode(), NULL);
    dataset = stk_dataset_concatenate(same, 2);
    stk_dataset_batch(dataset, 10, false);
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader));)
        stk_batch_release(batch);
    assert_int_equal(stk_loader_status(loader), STK_MISMATCH);
    assert_string_equal(stk_error_text(), "'2.fake' is [5,4,1] in source 'concatenate', the batch needs [4,4,1] as "
                                          "'0.fake' has; add a resize or crop stage");
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* --- what does not go together --- */

static void fields_must_agree(void **state)
{
    (void)state;
    const stk_array_field real = {.name = "x", .dtype = STK_F32, .sample = STK_SHAPE(2), .data = numbers};
    stk_dataset *types[] = {make_numbers("x", 0, 5), stk_dataset_arrays(5, &real, 1)};
    expect_error(stk_dataset_concatenate(types, 2), STK_INVALID,
                 "field 'x' is i32[] in data set 1 of 'concatenate' and f32[2] in data set 2: apply stages that make "
                 "them agree first");
    stk_dataset *kinds[] = {make_fake(5, NULL), make_fake(5, NULL)};
    stk_dataset_apply(kinds[1], fake_decode(), NULL);
    expect_error(stk_dataset_interleave(kinds, 2, 2, 1), STK_INVALID,
                 "field 'image' is encoded in data set 1 of 'interleave' and u8[?,?,1] in data set 2: apply the stage "
                 "'decode' first");
    const double weights[] = {1, 1};
    stk_dataset *names[] = {make_fake(5, NULL), make_numbers("label", 0, 5)};
    expect_error(stk_dataset_mix(names, weights, 2, true, 0), STK_INVALID,
                 "field 'image' is in data set 1 of 'mix' and not in data set 2");
    stk_dataset *others[] = {make_numbers("label", 0, 5), make_fake(5, NULL)};
    expect_error(stk_dataset_mix(others, weights, 2, true, 0), STK_INVALID,
                 "field 'image' is in data set 2 of 'mix' and not in data set 1");
    stk_dataset *twice[] = {make_fake(5, NULL), make_numbers("label", 0, 5)};
    expect_error(stk_dataset_zip(twice, 2), STK_INVALID,
                 "field 'label' is in data sets 1 and 2 of 'zip': give one of them another name with 'rename'");
}

static void classes_must_agree(void **state)
{
    (void)state;
    static const char *const pets[] = {"cat", "dog"}, *const birds[] = {"cat", "crow", "dog"};
    fake_source *a, *b;
    stk_dataset *parts[] = {make_fake(5, &a), make_fake(5, &b)};
    a->base.class_names = b->base.class_names = pets;
    a->base.n_classes = b->base.n_classes = 2;
    stk_dataset *dataset = stk_dataset_concatenate(parts, 2);
    const char *const *names;
    assert_int_equal(stk_dataset_classes(dataset, &names), 2);
    assert_string_equal(names[1], "dog");
    stk_dataset_free(dataset);
    stk_dataset *other[] = {make_fake(5, &a), make_fake(5, &b)};
    a->base.class_names = pets;
    a->base.n_classes = 2;
    b->base.class_names = birds;
    b->base.n_classes = 3;
    expect_error(stk_dataset_concatenate(other, 2), STK_INVALID,
                 "the classes of the data sets of 'concatenate' differ, so that their labels mean other things: 'crow' "
                 "is in data set 2 and not in data set 1");
}

static void wrong_data_sets_are_refused(void **state)
{
    (void)state;
    expect_error(stk_dataset_zip(NULL, 0), STK_INVALID, "'zip' needs at least one data set");
    stk_dataset *batched[] = {make_numbers("x", 0, 5), make_numbers("x", 0, 5)};
    stk_dataset_batch(batched[1], 2, false);
    expect_error(stk_dataset_concatenate(batched, 2), STK_INVALID,
                 "data set 2 of 'concatenate' has batches: batch the result instead");
    stk_dataset *failed[] = {make_numbers("x", 0, 5), make_numbers("x", 0, 5)};
    stk_dataset_take(failed[0], 6);
    expect_error(stk_dataset_interleave(failed, 2, 1, 1), STK_INVALID,
                 "data set 1 of 'interleave': cannot take 6 samples of 5");
    stk_dataset *one = make_numbers("x", 0, 5), *same[] = {one, one}, *missing[] = {make_numbers("x", 0, 5), NULL};
    expect_error(stk_dataset_concatenate(same, 2), STK_INVALID,
                 "data sets 1 and 2 of 'concatenate' are one and the same: make one for each");
    expect_error(stk_dataset_concatenate(missing, 2), STK_INVALID, "data set 2 of 'concatenate' is NULL");
    stk_dataset *cycle[] = {make_numbers("x", 0, 5)};
    expect_error(stk_dataset_interleave(cycle, 1, 0, 1), STK_INVALID,
                 "cannot interleave in cycles of 0 and blocks of 1: at least 1 is needed");
    stk_dataset *weightless[] = {make_numbers("x", 0, 5)};
    expect_error(stk_dataset_mix(weightless, NULL, 1, true, 0), STK_INVALID, "'weights' is NULL");
}

/* Parts of a split must have no sample in common, in any epoch. */
static void splitting_what_is_shuffled_inside_is_refused(void **state)
{
    (void)state;
    stk_dataset *shuffled[] = {make_numbers("x", 0, 50)}, *fixed[] = {make_numbers("x", 0, 50)};
    stk_dataset_shuffle(shuffled[0], 1);
    stk_dataset_shuffle_with(fixed[0], (stk_shuffle){.seed = 1, .once = true});
    stk_dataset *dataset = stk_dataset_concatenate(shuffled, 1);
    stk_dataset_split(dataset, 0.5, false, 3);
    expect_error(
        dataset, STK_INVALID,
        "cannot split what is shuffled again for each epoch inside of 'concatenate': split the data sets first");
    stk_dataset *once = stk_dataset_concatenate(fixed, 1);
    stk_dataset_split(once, 0.5, false, 3);
    assert_int_equal(stk_dataset_status(once), STK_OK);
    stk_dataset_free(once);
}

static void renaming_is_checked(void **state)
{
    (void)state;
    stk_dataset *dataset = make_fake(5, NULL);
    stk_dataset_rename(dataset, "image", "mask");
    stk_dataset_apply_to(dataset, "mask", fake_decode());
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    stk_dataset_rename(dataset, "mask", "label");
    expect_error(dataset, STK_INVALID, "cannot rename 'mask': there is a field 'label' already");
    dataset = make_fake(5, NULL);
    stk_dataset_rename(dataset, "lable", "x");
    expect_error(dataset, STK_NOT_FOUND, "source 'fake' has no field 'lable'; did you mean 'label'?");
    dataset = make_fake(5, NULL);
    stk_dataset_rename(dataset, "image", "a name that is longer than any field may have");
    expect_error(dataset, STK_INVALID, "field 'image' needs a name of 1 to 31 characters");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concatenation_is_one_after_the_other),
        cmocka_unit_test(interleaving_is_in_the_order_of_tf_data),
        cmocka_unit_test(fields_go_by_name),
        cmocka_unit_test(zip_joins_fields),
        cmocka_unit_test(mixing_takes_each_in_its_order),
        cmocka_unit_test(data_sets_inside_are_shuffled_anew),
        cmocka_unit_test(any_workers_and_any_start_give_equal_batches),
        cmocka_unit_test(random_stages_inside_differ),
        cmocka_unit_test(bad_records_are_named_by_their_own_name),
        cmocka_unit_test(sizes_may_differ_until_the_stages_after),
        cmocka_unit_test(fields_must_agree),
        cmocka_unit_test(classes_must_agree),
        cmocka_unit_test(wrong_data_sets_are_refused),
        cmocka_unit_test(splitting_what_is_shuffled_inside_is_refused),
        cmocka_unit_test(renaming_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
