/* What a pack may do to images: baseline JPEGs keep pixels and markers, smaller and re-encoded ones are what they say,
 * both kinds of shards give the same samples, and entry points are used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/codec/exif.h"
#include "data/codec/image.h"
#include "data/codec/jpeg.h"
#include "data/codec/jpeg_transcode.h"
#include "data/dataset/dataset.h"
#include "data/pack/remake.h"
#include "data/source/entries.h"
#include "data/source/files.h"
#include "stoker/data/index.h"
#include "stoker/data/loader.h"
#include "stoker/data/pack.h"
#include "stoker/data/sources.h"

#include "data/jpeg_make.h"

enum { N = 24, SIDE = 160 };

static stk_span make_photo(int i)
{
    jpeg_recipe r = {.height = SIDE + i % 7, .width = SIDE + i % 3, .channels = i % 6 == 5 ? 1 : 3, .quality = 90};
    r.h = r.channels == 3 ? 1 + i % 2 : 1;
    r.v = r.channels == 3 ? 1 + i / 2 % 2 : 1;
    r.texture = TEXTURE_MIXED;
    r.seed = (uint64_t)i;
    r.progressive = i % 4 == 1;
    r.separate_scans = i % 4 == 2 && r.channels == 3;
    r.interval = i % 8 == 3 ? 5 : 0;
    return jpeg_make(&r);
}

static void free_span(stk_span span)
{
    free((void *)(uintptr_t)span.data);
}

/* With an EXIF segment that says "turned", and a comment. */
static stk_span with_markers(stk_span jpeg)
{
    static const uint8_t exif[] = {0xFF, 0xE1, 0,    34, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', '*', 0, 8, 0, 0, 0,
                                   1,    0,    0x12, 1,  3,   0,   1,   0,   0, 0, 6,   0,   0,   0, 0, 0, 0, 0};
    static const uint8_t comment[] = {0xFF, 0xFE, 0, 6, 'n', 'o', 't', 'e'};
    uint8_t *out = malloc(jpeg.n + sizeof(exif) + sizeof(comment));
    assert_non_null(out);
    memcpy(out, jpeg.data, 2);
    memcpy(out + 2, exif, sizeof(exif));
    memcpy(out + 2 + sizeof(exif), comment, sizeof(comment));
    memcpy(out + 2 + sizeof(exif) + sizeof(comment), jpeg.data + 2, jpeg.n - 2);
    stk_span all = {out, jpeg.n + sizeof(exif) + sizeof(comment)};
    free_span(jpeg);
    return all;
}

static int make_photos(void **state)
{
    if (make_test_folder(state) != 0) return -1;
    for (int i = 0; i < N; i++) {
        char name[64];
        stk_span photo = with_markers(make_photo(i));
        snprintf(name, sizeof(name), "photos/class-%d/%02d.jpg", i % 2, i);
        write_file(name, photo.data, photo.n);
        free_span(photo);
    }
    return 0;
}

static uint64_t hash_of(const char *folder, bool with_entries)
{
    stk_loader *loader;
    uint64_t hash = 0;
    stk_loader_config config = {.n_threads = 2, .n_epochs = 2};
    stk_dataset *dataset = stk_dataset_images(folder);
    if (!with_entries) stk_dataset_index(dataset, NULL);
    stk_dataset_shuffle(dataset, 4);
    stk_dataset_apply(dataset, stk_decode(), stk_random_resized_crop(32, true), stk_random_flip(), NULL);
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

static void pack(const char *folder, stk_pack_options options)
{
    stk_pack_progress progress;
    options.shard_bytes = 300000; /* a few shards */
    stk_dataset *dataset = stk_dataset_images(in_folder("photos"));
    if (stk_pack_write(dataset, folder, &options, &progress) != STK_OK) fail_msg("%s", stk_error_text());
    assert_true(progress.n_shards > 1);
    stk_dataset_free(dataset);
    assert_int_equal(stk_pack_verify(folder, NULL, &progress), STK_OK);
}

static bool same_pixels(stk_span a, stk_span b)
{
    int64_t height, width, height_b, width_b;
    if (stk_image_size(a, &height, &width) != STK_OK || stk_image_size(b, &height_b, &width_b) != STK_OK) return false;
    if (height != height_b || width != width_b) return false;
    size_t n = (size_t)height * (size_t)width * 3;
    uint8_t *x = malloc(n), *y = malloc(n);
    bool same = x && y && stk_image_decode(a, 3, x) == STK_OK && stk_image_decode(b, 3, y) == STK_OK;
    same = same && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

static void baseline_is_lossless(void **state)
{
    stk_jpeg_reader *reader;
    (void)state;
    assert_int_equal(stk_jpeg_reader_open(&reader), STK_OK);
    for (int i = 0; i < N; i++) {
        stk_span src = with_markers(make_photo(i)), again;
        uint8_t *made;
        size_t n;
        bool taken = stk_jpeg_reader_index_size(reader, src, 0) > 0;
        assert_true(taken == !(i % 4 == 1 || (i % 4 == 2 && i % 6 != 5)));
        assert_int_equal(stk_jpeg_transcode(src, &made, &n), STK_OK);
        again = (stk_span){made, n};
        assert_true(stk_jpeg_reader_index_size(reader, again, 0) > 0);
        assert_true(same_pixels(src, again));
        assert_int_equal(stk_exif_orientation(again), 6);
        assert_non_null(memmem(made, n, "note", 4));
        /* Damage is told, and half a file is not taken for a whole one. */
        free(made);
        assert_int_equal(stk_jpeg_transcode((stk_span){src.data, src.n / 2}, &made, &n), STK_CORRUPT);
        free_span(src);
    }
    stk_jpeg_reader_close(reader);
}

static void all_kinds_give_the_same_samples(void **state)
{
    static const stk_pack_options kinds[] = {
        {0}, {.tfrecord = true}, {.baseline = true}, {.tfrecord = true, .baseline = true}};
    (void)state;
    uint64_t plain = hash_of(in_folder("photos"), false);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char name[16], first[64];
        snprintf(name, sizeof(name), "kind-%zu", i);
        pack(in_folder(name), kinds[i]);
        assert_true(hash_of(in_folder(name), true) == plain);
        assert_true(hash_of(in_folder(name), false) == plain);
        snprintf(first, sizeof(first), "%s/shard-00001.%s.entries", name, kinds[i].tfrecord ? "tfrecord" : "tar");
        assert_true(stk_path_exists(in_folder(first)));
    }
}

/* Wrong entries give wrong pixels, so they are used; damaged ones are not, and that is said. */
static void entry_points_are_used(void **state)
{
    const char *path;
    uint8_t *bytes = NULL, *wrong;
    size_t capacity = 0, n, n_wrong;
    stk_entries entries;
    (void)state;
    uint64_t plain = hash_of(in_folder("kind-0"), true);
    path = in_folder("kind-0/shard-00000.tar.entries");
    assert_int_equal(stk_file_read(path, &bytes, &capacity, &n), STK_OK);
    assert_int_equal(stk_entries_parse((stk_span){bytes, n}, &entries), STK_OK);
    stk_entries_file *files = calloc((size_t)entries.n_files, sizeof(*files));
    assert_non_null(files);
    for (int64_t i = 0; i < entries.n_files; i++) {
        files[i] = stk_entries_get(&entries, i);
        for (uint32_t k = 1; k < files[i].n_entries; k++)
            ((stk_jpeg_entry *)(uintptr_t)files[i].entry)[k].dc[0] += 100;
    }
    assert_int_equal(stk_entries_print(files, entries.n_files, &wrong, &n_wrong), STK_OK);
    write_file("kind-0/shard-00000.tar.entries", wrong, n_wrong);
    assert_false(hash_of(in_folder("kind-0"), true) == plain);
    assert_true(hash_of(in_folder("kind-0"), false) == plain);
    wrong[n_wrong / 2] ^= 1;
    write_file("kind-0/shard-00000.tar.entries", wrong, n_wrong);
    stk_dataset *dataset = stk_dataset_images(in_folder("kind-0"));
    assert_non_null(strstr(stk_dataset_note(dataset), "entries' is not there or damaged"));
    stk_dataset_free(dataset);
    assert_true(hash_of(in_folder("kind-0"), true) == plain);
    free(wrong);
    free(files);
    free(bytes);
    stk_entries_close(&entries);
}

static void smaller_images(void **state)
{
    stk_remake_work work = {0};
    stk_pack_options how = {.shorter = 64, .quality = 80};
    (void)state;
    for (int i = 0; i < N; i++) {
        int64_t height, width;
        stk_span src = with_markers(make_photo(i)), out;
        assert_int_equal(stk_remake(src, &how, &work, &out), STK_OK);
        assert_int_equal(stk_image_size(out, &height, &width), STK_OK);
        assert_int_equal(height < width ? height : width, 64);
        assert_int_equal(stk_jpeg_components(out), stk_jpeg_components(src));
        assert_int_equal(stk_exif_orientation(out), 6); /* turned by whoever reads it, as before */
        assert_true(out.n < src.n);
        /* What is small enough stays as it is, unless a quality is asked for. */
        stk_pack_options large = {.shorter = SIDE};
        assert_int_equal(stk_remake(src, &large, &work, &out), STK_OK);
        assert_true(out.data == src.data || height > SIDE || i % 7 > 0);
        large = (stk_pack_options){.shorter = 2 * SIDE};
        assert_int_equal(stk_remake(src, &large, &work, &out), STK_OK);
        assert_ptr_equal(out.data, src.data);
        assert_int_equal(stk_remake((stk_span){src.data, src.n / 2}, &how, &work, &out), STK_CORRUPT);
        free_span(src);
    }
    stk_remake_work_free(&work);
}

/* Of an image that is too large for the account of the thread. */
static void a_memory_limit_is_told(void **state)
{
    stk_remake_work work = {0};
    stk_memory *memory;
    stk_span src = make_photo(0), out;
    (void)state;
    assert_int_equal(stk_memory_new(1000, &memory), STK_OK);
    (void)stk_memory_use(memory);
    assert_int_equal(stk_remake(src, &(stk_pack_options){.shorter = 64}, &work, &out), STK_NO_MEMORY);
    if (!strstr(stk_error_text(), "limit of 1000 B")) fail_msg("'%s' does not name the limit", stk_error_text());
    (void)stk_memory_use(NULL);
    stk_remake_work_free(&work);
    stk_memory_free(memory);
    free_span(src);
}

static void png_stays_png(void **state)
{
    uint8_t pixels[40 * 50], *png;
    size_t n;
    int64_t height, width;
    stk_remake_work work = {0};
    stk_span out;
    (void)state;
    memset(pixels, 7, sizeof(pixels));
    assert_int_equal(stk_png_encode(pixels, 40, 50, 1, &png, &n), STK_OK);
    assert_int_equal(stk_remake((stk_span){png, n}, &(stk_pack_options){.shorter = 20}, &work, &out), STK_OK);
    assert_int_equal(stk_image_format_of(out), STK_IMAGE_PNG);
    assert_int_equal(stk_image_size(out, &height, &width), STK_OK);
    assert_true(height == 20 && width == 25);
    assert_int_equal(stk_remake((stk_span){png, n}, &(stk_pack_options){.quality = 50}, &work, &out), STK_OK);
    assert_int_equal(stk_image_format_of(out), STK_IMAGE_JPEG);
    free(png);
    stk_remake_work_free(&work);
}

static void wrong_options_are_refused(void **state)
{
    static const stk_pack_options wrong[] = {{.quality = 101}, {.quality = -1}, {.shorter = -1}, {.shorter = 70000}};
    stk_pack_progress progress;
    (void)state;
    stk_dataset *dataset = stk_dataset_images(in_folder("photos"));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(stk_pack_write(dataset, in_folder("wrong"), &wrong[i], &progress), STK_INVALID);
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(baseline_is_lossless),
                                       cmocka_unit_test(all_kinds_give_the_same_samples),
                                       cmocka_unit_test(entry_points_are_used),
                                       cmocka_unit_test(smaller_images),
                                       cmocka_unit_test(png_stays_png),
                                       cmocka_unit_test(a_memory_limit_is_told),
                                       cmocka_unit_test(wrong_options_are_refused)};
    return cmocka_run_group_tests(tests, make_photos, remove_test_folder);
}
