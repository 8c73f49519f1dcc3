/* Side indexes: the same samples with and without, files that have changed are read without, a stopped build goes on,
 * and nothing that is damaged is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/little.h"
#include "data/source/entries.h"
#include "data/source/files.h"
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
    stk_span file = jpeg_make(&r);
    snprintf(name, sizeof(name), "%s/c%d/%02d.jpg", folder, i % 2, i);
    write_file(name, file.data, file.n);
    free((void *)(uintptr_t)file.data);
}

static const char *make_folder(const char *name)
{
    for (int i = 0; i < N; i++)
        write_photo(name, i, (uint64_t)i);
    return in_folder(name);
}

static uint64_t hash_of(stk_dataset *dataset)
{
    stk_loader *loader;
    uint64_t hash = 0;
    stk_loader_config config = {.n_threads = 2, .n_epochs = 2};
    stk_dataset_shuffle(dataset, 4);
    stk_dataset_apply(dataset, stk_decode(), stk_random_resized_crop(24, true), stk_random_flip(), NULL);
    stk_dataset_batch(dataset, 8, false);
    if (stk_dataset_status(dataset) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch))
        hash = hash * 31 + stk_batch_hash(batch);
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    return hash;
}

static stk_dataset *open_files(const char *folder)
{
    return stk_dataset_files(&folder, 1, STK_LABELS_NONE, NULL);
}

static uint64_t plain_hash(const char *folder, bool by_class)
{
    stk_dataset *dataset = by_class ? stk_dataset_images(folder) : open_files(folder);
    stk_dataset_index(dataset, NULL);
    return hash_of(dataset);
}

static void gives_the_same_samples(void **state)
{
    const char *folder = make_folder("same");
    stk_index_progress p;
    (void)state;
    uint64_t files = plain_hash(folder, false), images = plain_hash(folder, true);
    assert_int_equal(stk_index_folder(folder, &(stk_index_options){.n_threads = 3}, &p), STK_OK);
    assert_int_equal(p.n_files, N);
    assert_int_equal(p.n_without, 1); /* the progressive one */
    assert_string_equal(p.path, in_folder("same/" STK_ENTRIES_NAME));
    assert_true(hash_of(open_files(folder)) == files);
    assert_true(hash_of(stk_dataset_images(folder)) == images);
    stk_dataset *dataset = open_files(folder);
    assert_string_equal(stk_dataset_note(dataset), "");
    stk_dataset_index(dataset, p.path);
    assert_true(hash_of(dataset) == files);
    assert_int_equal(stk_index_folder(folder, NULL, &p), STK_OK);
    assert_int_equal(p.n_kept, N);
}

/* An index with wrong entries gives wrong pixels: so it is the index that is used. */
static void is_used(void **state)
{
    const char *folder = make_folder("used");
    stk_entries entries;
    stk_entries_file files[N];
    uint8_t *bytes;
    size_t n;
    (void)state;
    uint64_t plain = plain_hash(folder, false);
    assert_int_equal(stk_index_folder(folder, NULL, NULL), STK_OK);
    assert_int_equal(stk_entries_open(folder, NULL, &entries), STK_OK);
    assert_int_equal(entries.n_files, N);
    for (int i = 0; i < N; i++)
        files[i] = stk_entries_get(&entries, i);
    for (uint32_t k = 1; k < files[0].n_entries; k++)
        entries.entry[k].dc[0] += 100;
    assert_int_equal(stk_entries_print(files, N, &bytes, &n), STK_OK);
    write_file("used/" STK_ENTRIES_NAME, bytes, n);
    free(bytes);
    stk_entries_close(&entries);
    assert_false(hash_of(open_files(folder)) == plain);
    /* As soon as the file is another, its entries do not count. */
    write_photo("used", 0, 999);
    plain = plain_hash(folder, false);
    stk_dataset *dataset = open_files(folder);
    assert_non_null(strstr(stk_dataset_note(dataset), "out of date"));
    assert_true(hash_of(dataset) == plain);
}

/* The first two as well, although the checksum is right. */
static void names_that_do_not_rise(void **state)
{
    const stk_entries_file files[] = {{.name = "a.jpg"}, {.name = "b.jpg"}, {.name = "c.jpg"}};
    uint8_t *bytes, name_at[4];
    size_t n;
    stk_entries entries;
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stk_entries_print(files, 3, &bytes, &n), STK_OK);
        uint8_t *p = bytes + STK_ENTRIES_HEADER + (i < 2 ? i : 0) * STK_ENTRIES_FILE + 28;
        memcpy(name_at, p, 4);
        memcpy(p, p + STK_ENTRIES_FILE, 4);
        if (i < 2)
            memcpy(p + STK_ENTRIES_FILE, name_at, 4);
        else
            memcpy(p, name_at, 4);
        stk_put_little64(bytes + n - STK_ENTRIES_SUM, stk_hash64(bytes, n - STK_ENTRIES_SUM, 0));
        assert_int_equal(stk_entries_parse((stk_span){bytes, n}, &entries), i < 2 ? STK_CORRUPT : STK_OK);
        if (i == 2) {
            free(entries.entry);
            free(entries.fits);
        }
        free(bytes);
    }
}

static void a_folder_may_be_the_root(void **state)
{
    const stk_entries_file file = {.name = "a.jpg"};
    uint8_t *bytes;
    size_t n;
    stk_entries entries;
    stk_entries_file found;
    (void)state;
    assert_int_equal(stk_entries_print(&file, 1, &bytes, &n), STK_OK);
    const char *path = write_file("root", bytes, n);
    free(bytes);
    for (const char *folder = "///"; *folder; folder++) {
        assert_int_equal(stk_entries_open(folder, path, &entries), STK_OK);
        assert_string_equal(entries.folder, "/");
        assert_true(stk_entries_find(&entries, "/a.jpg", &found));
        stk_entries_close(&entries);
    }
}

/* A photograph in that many bytes, with a comment that says nothing, and of a time that is past. */
static void write_sized(const char *name, uint64_t seed, size_t n)
{
    const struct timespec times[2] = {{1000, 5}, {1000, 5}};
    jpeg_recipe r = {.height = SIDE, .width = SIDE, .channels = 3, .h = 1, .v = 1, .texture = TEXTURE_MIXED};
    r.seed = seed;
    stk_span file = jpeg_make(&r);
    size_t n_more = n - file.n;
    uint8_t *bytes = calloc(n, 1);
    assert_non_null(bytes);
    assert_true(n > file.n + 4 && n_more < 60000);
    memcpy(bytes, file.data, 2);
    memcpy(bytes + 2, (uint8_t[]){0xff, 0xfe, (uint8_t)((n_more - 2) >> 8), (uint8_t)(n_more - 2)}, 4);
    memcpy(bytes + 2 + n_more, file.data + 2, file.n - 2);
    const char *path = write_file(name, bytes, n);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free((void *)(uintptr_t)file.data);
    free(bytes);
}

/* It gave the pixels of neither. */
static void another_content_of_the_same_size_and_time(void **state)
{
    enum { N_OTHER = 12, SIZE = 40000 };
    char folder[512];
    stk_index_progress p;
    (void)state;
    snprintf(folder, sizeof(folder), "%s", in_folder("twins"));
    for (int way = 0; way < 2; way++) {
        char name[64];
        for (int i = 0; i < N_OTHER; i++) {
            snprintf(name, sizeof(name), "twins/%02d.jpg", i);
            write_sized(name, (uint64_t)i, SIZE);
        }
        assert_int_equal(stk_index_folder(folder, NULL, &p), STK_OK);
        uint64_t before = plain_hash(folder, false);
        assert_true(hash_of(open_files(folder)) == before);
        for (int i = 0; i < N_OTHER; i += 2) {
            snprintf(name, sizeof(name), "twins/%02d.jpg", i);
            write_sized(name, (uint64_t)i + 500, SIZE);
        }
        /* Used as it is, and made again, which must see that these files are others. */
        if (way) assert_int_equal(stk_index_folder(folder, NULL, &p), STK_OK);
        if (way) assert_int_equal(p.n_kept, N_OTHER / 2);
        uint64_t plain = plain_hash(folder, false);
        assert_false(plain == before);
        assert_true(hash_of(open_files(folder)) == plain);
        stk_dataset *dataset = open_files(folder);
        stk_dataset_index_auto(dataset);
        assert_true(hash_of(dataset) == plain);
        assert_true(hash_of(open_files(folder)) == plain); /* by what was learned */
        assert_int_equal(stk_tree_remove(in_folder("twins/" STK_ENTRIES_NAME)), STK_OK);
    }
}

static bool stop_at_once(void *user, const stk_index_progress *p)
{
    (void)user;
    return p->n_done < 0;
}

static void goes_on_after_a_stop(void **state)
{
    const char *folder = make_folder("stopped");
    stk_index_progress p;
    stk_index_options options = {.n_threads = 1, .on_progress = stop_at_once};
    (void)state;
    /* It may have been faster than the stop. */
    stk_status status = stk_index_folder(folder, &options, &p);
    assert_true(status == STK_INTERRUPTED || (status == STK_OK && p.n_done == N));
    int64_t n_first = p.n_done;
    assert_int_equal(stk_index_folder(folder, NULL, &p), STK_OK);
    assert_int_equal(p.n_kept, n_first);
    assert_int_equal(p.n_done, N);
    /* Later changes are found. */
    write_photo("stopped", 3, 77);
    write_photo("stopped", N, 78);
    assert_int_equal(stk_index_folder(folder, NULL, &p), STK_OK);
    assert_int_equal(p.n_files, N + 1);
    assert_int_equal(p.n_kept, N - 1);
}

/* Where the folder cannot be written to; root can write anywhere, so a folder stands in the index's place. */
static void goes_to_the_cache_folder(void **state)
{
    const char *folder = make_folder("read-only");
    stk_index_progress p;
    (void)state;
    setenv("STOKER_CACHE", in_folder("cache"), 1);
    assert_int_equal(stk_dir_make(in_folder("read-only/" STK_ENTRIES_NAME "/x")), STK_OK);
    uint64_t plain = plain_hash(folder, false);
    assert_int_equal(stk_index_folder(folder, NULL, &p), STK_OK);
    assert_non_null(strstr(p.path, "/cache/"));
    assert_true(hash_of(open_files(folder)) == plain);
    assert_int_equal(stk_index_folder(folder, NULL, &p), STK_OK);
    assert_int_equal(p.n_kept, N);
    unsetenv("STOKER_CACHE");
}

static void believes_nothing_damaged(void **state)
{
    const char *folder = make_folder("damaged");
    uint8_t *bytes = NULL;
    size_t capacity = 0, n;
    stk_entries entries;
    stk_index_progress p;
    (void)state;
    uint64_t plain = plain_hash(folder, false);
    assert_int_equal(stk_index_folder(folder, NULL, &p), STK_OK);
    assert_int_equal(stk_file_read(p.path, &bytes, &capacity, &n), STK_OK);
    for (size_t i = 0; i < n; i += 7) {
        bytes[i] ^= 4;
        assert_int_equal(stk_entries_parse((stk_span){bytes, n}, &entries), STK_CORRUPT);
        bytes[i] ^= 4;
        assert_int_equal(stk_entries_parse((stk_span){bytes, i}, &entries), STK_CORRUPT);
    }
    write_file("damaged/" STK_ENTRIES_NAME, bytes, n - 1);
    free(bytes);
    stk_dataset *dataset = open_files(folder);
    assert_non_null(strstr(stk_dataset_note(dataset), "damaged"));
    assert_true(hash_of(dataset) == plain);
    dataset = open_files(folder);
    stk_dataset_index(dataset, p.path);
    assert_int_equal(stk_dataset_status(dataset), STK_CORRUPT);
    stk_dataset_free(dataset);
    assert_int_equal(stk_index_folder(folder, NULL, &p), STK_OK);
    assert_int_equal(p.n_kept, 0);
    assert_int_equal(stk_index_folder(in_folder("nowhere"), NULL, &p), STK_NOT_FOUND);
    assert_int_equal(stk_index_folder(folder, &(stk_index_options){.n_threads = -1}, &p), STK_INVALID);
    assert_int_equal(stk_index_folder(folder, &(stk_index_options){.every = -1}, &p), STK_INVALID);
    assert_int_equal(stk_index_folder(NULL, NULL, NULL), STK_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gives_the_same_samples),
                                       cmocka_unit_test(is_used),
                                       cmocka_unit_test(names_that_do_not_rise),
                                       cmocka_unit_test(a_folder_may_be_the_root),
                                       cmocka_unit_test(another_content_of_the_same_size_and_time),
                                       cmocka_unit_test(goes_on_after_a_stop),
                                       cmocka_unit_test(goes_to_the_cache_folder),
                                       cmocka_unit_test(believes_nothing_damaged)};
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
