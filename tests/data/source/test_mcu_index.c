/* Learning an index while reading: the same samples, the same index file as `stoker index` makes, whatever was there
 * before and wherever it was cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "data/source/entries.h"
#include "data/source/files.h"
#include "stoker/data/combine.h"
#include "stoker/data/index.h"
#include "stoker/data/loader.h"
#include "stoker/data/sources.h"

#include "data/jpeg_make.h"

enum { N = 40, SIDE = 96 };

static void write_photo(const char *folder, int i, uint64_t seed)
{
    char name[64];
    jpeg_recipe r = {.height = SIDE + i % 5, .width = SIDE, .channels = 3, .h = 1 + i % 2, .v = 1 + i % 2};
    r.texture = TEXTURE_MIXED;
    r.seed = seed;
    r.progressive = i == 7;
    r.interval = i == 8 ? 3 : 0;
    stk_span file = jpeg_make(&r);
    snprintf(name, sizeof(name), "%s/c%s/%02d.jpg", folder, i % 2 ? "" : "-0", i);
    write_file(name, file.data, file.n);
    free((void *)(uintptr_t)file.data);
}

static const char *make_folder(const char *name)
{
    for (int i = 0; i < N; i++)
        write_photo(name, i, (uint64_t)i);
    return in_folder(name);
}

typedef enum index_use { PLAIN, LEARN } index_use;
typedef enum stage_set { CROPS, WHOLE, TURNED } stage_set;

static void add_stages(stk_dataset *dataset, stage_set what)
{
    if (what == CROPS)
        stk_dataset_apply(dataset, stk_decode(), stk_random_resized_crop(24, true), stk_random_flip(), NULL);
    else if (what == WHOLE)
        stk_dataset_apply(dataset, stk_decode(), stk_resize(24, 24, true), NULL);
    else /* no pass over rows */
        stk_dataset_apply(dataset, stk_decode(), stk_random_flip_vertical(), stk_resize(24, 24, true), NULL);
}

/* Reads n_batches batches, 0: two epochs. */
static uint64_t read_batches(stk_dataset *dataset, int n_batches)
{
    stk_loader *loader;
    uint64_t hash = 0;
    stk_loader_config config = {.n_threads = 3, .n_epochs = 2, .n_slots = n_batches ? 2 : 0};
    stk_dataset_batch(dataset, 8, false);
    if (stk_dataset_status(dataset) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (int i = 0; n_batches == 0 || i < n_batches; i++) {
        const stk_batch *batch = stk_loader_next(loader);
        if (!batch) break;
        hash = hash * 31 + stk_batch_hash(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    return hash;
}

static stk_dataset *open_folder(const char *folder, bool by_class, index_use how)
{
    stk_dataset *dataset = by_class ? stk_dataset_images(folder) : stk_dataset_files(&folder, 1, STK_LABELS_NONE, NULL);
    if (how == LEARN)
        stk_dataset_index_auto(dataset);
    else
        stk_dataset_index(dataset, NULL);
    return dataset;
}

static uint64_t read_folder(const char *folder, bool by_class, index_use how, stage_set what, stk_index_progress *p)
{
    stk_dataset *dataset = open_folder(folder, by_class, how);
    stk_dataset_shuffle(dataset, 4);
    add_stages(dataset, what);
    uint64_t hash = read_batches(dataset, 0);
    if (p) assert_true(stk_dataset_index_progress(dataset, p));
    stk_dataset_free(dataset);
    return hash;
}

/* The index that lies in the folder is what making it gives. */
static void check_index(const char *folder)
{
    char path[STK_ENTRIES_PATH];
    uint8_t *learned = NULL, *made = NULL;
    size_t capacity = 0, n_learned, n_made;
    snprintf(path, sizeof(path), "%s/%s", folder, STK_ENTRIES_NAME);
    assert_int_equal(stk_file_read(path, &learned, &capacity, &n_learned), STK_OK);
    assert_int_equal(stk_tree_remove(path), STK_OK);
    assert_int_equal(stk_index_folder(folder, NULL, NULL), STK_OK);
    capacity = 0;
    assert_int_equal(stk_file_read(path, &made, &capacity, &n_made), STK_OK);
    assert_int_equal(n_learned, n_made);
    assert_memory_equal(learned, made, n_made);
    free(learned);
    free(made);
}

static void learns_in_one_epoch(void **state)
{
    static const char *const names[] = {"crops", "whole", "turned"};
    (void)state;
    for (int w = CROPS; w <= TURNED; w++) {
        const char *folder = make_folder(names[w]);
        stk_index_progress p;
        bool by_class = w != WHOLE;
        uint64_t plain = read_folder(folder, by_class, PLAIN, (stage_set)w, NULL);
        assert_true(read_folder(folder, by_class, LEARN, (stage_set)w, &p) == plain);
        assert_int_equal(p.n_files, N);
        assert_int_equal(p.n_done, N);
        assert_int_equal(p.n_kept, 0);
        assert_int_equal(p.n_without, 1);
        assert_string_equal(strrchr(p.path, '/') + 1, STK_ENTRIES_NAME); /* written as soon as it was complete */
        check_index(folder);
        assert_true(read_folder(folder, by_class, LEARN, (stage_set)w, &p) == plain);
        assert_int_equal(p.n_kept, N);
        assert_string_equal(p.path, ""); /* nothing new */
    }
}

static void goes_on_where_it_was_cut_short(void **state)
{
    const char *folder = make_folder("cut");
    stk_index_progress p;
    stk_entries entries;
    (void)state;
    uint64_t plain = read_folder(folder, true, PLAIN, CROPS, NULL);
    stk_dataset *dataset = open_folder(folder, true, LEARN);
    add_stages(dataset, CROPS);
    read_batches(dataset, 2);
    stk_dataset_free(dataset);
    assert_int_equal(stk_entries_open(folder, NULL, &entries), STK_OK);
    int64_t n = entries.n_files;
    assert_in_range(n, 16, N - 8);
    stk_entries_close(&entries);
    assert_true(read_folder(folder, true, LEARN, CROPS, &p) == plain);
    assert_int_equal(p.n_kept, n);
    assert_int_equal(p.n_done, N);
    check_index(folder);
}

/* What has changed is learned again; an index that is damaged is replaced. */
static void renews_what_is_stale(void **state)
{
    const char *folder = make_folder("stale");
    stk_index_progress p;
    (void)state;
    assert_int_equal(stk_index_folder(folder, NULL, NULL), STK_OK);
    write_photo("stale", 3, 300);
    write_photo("stale", 4, 400);
    uint64_t plain = read_folder(folder, true, PLAIN, CROPS, NULL);
    assert_true(read_folder(folder, true, LEARN, CROPS, &p) == plain);
    assert_int_equal(p.n_kept, N - 2);
    check_index(folder);
    write_file("stale/" STK_ENTRIES_NAME, "stkjpg1\n and so on", 18);
    assert_true(read_folder(folder, true, LEARN, CROPS, &p) == plain);
    assert_int_equal(p.n_kept, 0);
    check_index(folder);
}

/* Two halves, at the same time: what the one has written stays when the other writes. */
static void shares_with_others(void **state)
{
    const char *folder = make_folder("shared");
    stk_dataset *half[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        half[i] = open_folder(folder, true, LEARN);
        stk_dataset_shard(half[i], 2, i);
        add_stages(half[i], CROPS);
        read_batches(half[i], 0);
    }
    stk_dataset_free(half[1]);
    stk_dataset_free(half[0]);
    check_index(folder);
}

static void learns_inside_of_others(void **state)
{
    const char *folder = make_folder("inside");
    uint64_t hash[2];
    (void)state;
    for (int h = PLAIN; h <= LEARN; h++) {
        stk_dataset *both[2];
        for (int i = 0; i < 2; i++) {
            both[i] = open_folder(folder, true, (index_use)h);
            add_stages(both[i], CROPS);
        }
        stk_dataset *all = stk_dataset_concatenate(both, 2);
        hash[h] = read_batches(all, 0);
        stk_dataset_free(all);
    }
    assert_true(hash[PLAIN] == hash[LEARN]);
    check_index(folder);
}

static void goes_to_the_cache_folder(void **state)
{
    const char *folder = make_folder("read-only");
    stk_index_progress p;
    (void)state;
    setenv("STOKER_CACHE", in_folder("cache"), 1);
    /* Root can write anywhere, so a folder stands in the index's place. */
    assert_int_equal(stk_dir_make(in_folder("read-only/" STK_ENTRIES_NAME "/x")), STK_OK);
    uint64_t plain = read_folder(folder, true, PLAIN, CROPS, NULL);
    assert_true(read_folder(folder, true, LEARN, CROPS, &p) == plain);
    assert_non_null(strstr(p.path, "/cache/"));
    assert_true(read_folder(folder, true, LEARN, CROPS, &p) == plain);
    assert_int_equal(p.n_kept, N);
    unsetenv("STOKER_CACHE");
}

static void says_where_it_cannot(void **state)
{
    const char *files[] = {in_folder("two/a/1.jpg"), in_folder("two/b/1.jpg")};
    char kept[2][4096];
    static const uint8_t pixels[4];
    const stk_array_field field = {.name = "image", .dtype = STK_U8, .sample = STK_SHAPE(1), .data = pixels};
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(kept[i], sizeof(kept[i]), "%s", in_folder(i ? "two/b/1.jpg" : "two/a/1.jpg"));
        files[i] = kept[i];
        write_file(i ? "two/b/1.jpg" : "two/a/1.jpg", "x", 1);
    }
    stk_dataset *dataset = stk_dataset_files(files, 2, STK_LABELS_NONE, NULL);
    stk_dataset_index_auto(dataset);
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    stk_dataset_free(dataset);
    dataset = stk_dataset_arrays(4, &field, 1);
    stk_dataset_index_auto(dataset);
    assert_int_equal(stk_dataset_status(dataset), STK_UNSUPPORTED);
    assert_false(stk_dataset_index_progress(dataset, &(stk_index_progress){0}));
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_in_one_epoch),     cmocka_unit_test(goes_on_where_it_was_cut_short),
        cmocka_unit_test(renews_what_is_stale),    cmocka_unit_test(shares_with_others),
        cmocka_unit_test(learns_inside_of_others), cmocka_unit_test(goes_to_the_cache_folder),
        cmocka_unit_test(says_where_it_cannot)};
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
