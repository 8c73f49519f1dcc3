/* Packs: the same samples as the folder, going on after a stop, damage found, other data refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/temporary.h"
#include "data/codec/image.h"
#include "data/source/files.h"
#include "data/source/manifest.h"
#include "stoker/data/loader.h"
#include "stoker/data/pack.h"
#include "stoker/data/sources.h"

enum { N_CLASSES = 3, N_EACH = 300, SIDE = 16, N = N_CLASSES * N_EACH };

/* Three folders of small JPEG files, each of one colour. */
static int make_photos(void **state)
{
    if (make_test_folder(state) != 0) return -1;
    for (int i = 0; i < N; i++) {
        uint8_t pixels[SIDE * SIDE * 3], *encoded;
        char name[64];
        size_t n;
        memset(pixels, i % 251, sizeof(pixels));
        if (stk_jpeg_encode(pixels, SIDE, SIDE, 3, 90, &encoded, &n) != STK_OK) return -1;
        snprintf(name, sizeof(name), "photos/class-%d/p.%04d.jpg", i % N_CLASSES, i);
        write_file(name, encoded, n);
        free(encoded);
    }
    return 0;
}

static uint64_t hash_of(stk_dataset *dataset)
{
    stk_loader *loader;
    uint64_t hash = 0;
    stk_loader_config config = stk_loader_config_default();
    config.n_threads = 2;
    config.n_epochs = 1;
    stk_dataset_shuffle(dataset, 4);
    stk_dataset_apply(dataset, stk_decode(), stk_random_crop(SIDE, 2), stk_random_flip(), NULL);
    stk_dataset_batch(dataset, 100, false);
    if (stk_dataset_status(dataset) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch))
        hash = hash * 31 + stk_batch_hash(batch);
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    return hash;
}

static stk_status pack(const char *source, const char *folder, const stk_pack_options *options,
                       stk_pack_progress *progress)
{
    stk_dataset *dataset = stk_dataset_images(source);
    stk_status status = stk_pack_write(dataset, folder, options, progress);
    stk_dataset_free(dataset);
    return status;
}

static const char *photos(void)
{
    return in_folder("photos");
}

static void gives_the_folders_samples(void **state)
{
    (void)state;
    stk_pack_progress progress;
    stk_pack_options options = {.shard_bytes = 200000};
    assert_int_equal(pack(photos(), in_folder("pack"), &options, &progress), STK_OK);
    assert_true(progress.n_done == N && progress.n_shards > 2);
    uint64_t hash = hash_of(stk_dataset_images(photos()));
    assert_true(hash == hash_of(stk_dataset_images(in_folder("pack"))));
    const char *path = in_folder("pack");
    assert_true(hash == hash_of(stk_dataset_files(&path, 1, STK_LABELS_BY_FOLDER, NULL)));
    const char *const *names;
    stk_dataset *packed = stk_dataset_images(in_folder("pack"));
    assert_int_equal(stk_dataset_classes(packed, &names), N_CLASSES);
    assert_string_equal(names[2], "class-2");
    stk_dataset_free(packed);
    assert_int_equal(stk_pack_verify(in_folder("pack"), NULL, &progress), STK_OK);
    assert_true(progress.n_done == progress.n_records);
    assert_int_equal(pack(photos(), in_folder("pack"), &options, &progress), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "holds a pack already"));
}

/* on_progress: stops at the second call. */
static bool stop_soon(void *user, const stk_pack_progress *progress)
{
    (void)progress;
    return ++*(int *)user < 4;
}

static int count_temporary(const char *folder)
{
    stk_names names;
    int n = 0;
    if (!stk_path_exists(in_folder(folder))) return 0;
    assert_int_equal(stk_dir_list(in_folder(folder), &names), STK_OK);
    for (size_t i = 0; i < names.n; i++)
        n += stk_temporary_is_name(names.name[i]);
    stk_names_free(&names);
    return n;
}

static void goes_on_after_a_stop(void **state)
{
    (void)state;
    stk_pack_progress progress;
    int n_calls = 0;
    stk_pack_options options = {.shard_bytes = 200000, .on_progress = stop_soon, .user = &n_calls};
    assert_int_equal(pack(photos(), in_folder("parts"), &options, &progress), STK_INTERRUPTED);
    assert_true(progress.n_shards >= 1);
    assert_false(stk_path_exists(in_folder("parts/stoker-pack.json")));
    assert_int_equal(count_temporary("parts"), 0);
    options.on_progress = NULL;
    options.shard_bytes = 100000;
    assert_int_equal(pack(photos(), in_folder("parts"), &options, &progress), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "the beginning of a pack of other data"));
    options.shard_bytes = 200000;
    assert_int_equal(pack(photos(), in_folder("parts"), &options, &progress), STK_OK);
    assert_true(progress.n_resumed > 0 && progress.n_resumed < N);
    assert_true(hash_of(stk_dataset_images(photos())) == hash_of(stk_dataset_images(in_folder("parts"))));
    assert_false(stk_path_exists(in_folder("parts/stoker-pack.part")));
    /* The same bytes as in one go. */
    stk_pack_manifest a, b;
    assert_int_equal(stk_pack_manifest_read(in_folder("pack"), STK_PACK_MANIFEST, &a), STK_OK);
    assert_int_equal(stk_pack_manifest_read(in_folder("parts"), STK_PACK_MANIFEST, &b), STK_OK);
    assert_int_equal(a.n_shards, b.n_shards);
    for (int64_t i = 0; i < a.n_shards; i++)
        assert_int_equal(a.shard[i].crc32, b.shard[i].crc32);
    stk_pack_manifest_free(&a);
    stk_pack_manifest_free(&b);
}

static char said[512];

static void keep_text(void *user, const char *text)
{
    (void)user;
    snprintf(said, sizeof(said), "%s", text);
}

static void damage_is_found(void **state)
{
    (void)state;
    stk_pack_progress progress;
    stk_pack_options options = {.shard_bytes = 200000, .on_bad = keep_text};
    assert_int_equal(pack(photos(), in_folder("bad"), &options, &progress), STK_OK);
    FILE *f = fopen(in_folder("bad/shard-00001.tar"), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 70000, SEEK_SET), 0);
    assert_int_equal(fputc(0x5A, f), 0x5A);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(stk_pack_verify(in_folder("bad"), &options, &progress), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "1 of "));
    assert_non_null(strstr(said, "shard-00001.tar' has the CRC-32"));
    assert_int_equal(truncate(in_folder("bad/shard-00001.tar"), 5000), 0);
    assert_int_equal(stk_pack_verify(in_folder("bad"), &options, &progress), STK_CORRUPT);
    assert_non_null(strstr(said, "has 5000 bytes instead of"));
    assert_int_equal(unlink(in_folder("bad/shard-00001.tar")), 0);
    assert_int_equal(stk_pack_verify(in_folder("bad"), &options, &progress), STK_CORRUPT);
    stk_dataset *dataset = stk_dataset_images(in_folder("bad"));
    assert_int_not_equal(stk_dataset_status(dataset), STK_OK);
    assert_non_null(strstr(stk_error_text(), "shard-00001.tar"));
    stk_dataset_free(dataset);
}

static void what_cannot_be_packed(void **state)
{
    (void)state;
    stk_pack_progress progress;
    float x = 1;
    stk_array_field field = {.name = "image", .dtype = STK_F32, .data = &x};
    stk_dataset *arrays = stk_dataset_arrays(1, &field, 1), *images = stk_dataset_images(photos());
    assert_int_equal(stk_pack_write(arrays, in_folder("no"), NULL, &progress), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "only encoded images can be packed"));
    stk_dataset_apply(images, stk_decode(), NULL);
    assert_int_equal(stk_pack_write(images, in_folder("no"), NULL, &progress), STK_INVALID);
    stk_dataset_free(arrays);
    stk_dataset_free(images);
    const char *path = write_file("mixed/a.jpg", "no picture", 10);
    stk_dataset *files = stk_dataset_files(&path, 1, STK_LABELS_NONE, NULL);
    assert_int_equal(stk_pack_write(files, in_folder("no"), NULL, &progress), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "mixed/a.jpg"));
    assert_false(stk_path_exists(in_folder("no")));
    /* Nor are somebody's files mixed with shards, or replaced by one of their name. */
    path = write_file("theirs/shard-00000.tar", "mine", 4);
    assert_int_equal(pack(photos(), in_folder("theirs"), NULL, &progress), STK_BUSY);
    assert_non_null(strstr(stk_error_text(), "holds 'shard-00000.tar' and no pack"));
    stk_span kept;
    assert_int_equal(stk_file_load(in_folder("theirs/shard-00000.tar"), &kept), STK_OK);
    assert_true(kept.n == 4 && !memcmp(kept.data, "mine", 4));
    stk_file_unload(kept);
    assert_false(stk_path_exists(in_folder("theirs/stoker-pack.part")));
    stk_dataset_free(files);
}

static void refuse(const char *text, const char *why)
{
    stk_pack_manifest m;
    assert_int_not_equal(stk_pack_manifest_parse((stk_span){(const uint8_t *)text, strlen(text)}, &m), STK_OK);
    if (!strstr(stk_error_text(), why)) fail_msg("'%s' instead of '%s'", stk_error_text(), why);
    stk_pack_manifest_free(&m);
}

static void wrong_manifests_are_refused(void **state)
{
    (void)state;
    refuse("", "line 1");
    refuse("[]", "'stoker_pack' is missing");
    refuse("{\"stoker_pack\": 2}", "format 2");
    refuse("{\"stoker_pack\": 1, \"n_records\": -4}", "'n_records'");
    refuse("{\"stoker_pack\": 1, \"n_records\": 4, \"fingerprint\": \"x\"}", "'fingerprint'");
    refuse("{\"stoker_pack\": 1, \"n_records\": 4, \"fingerprint\": \"1\", \"shards\": 5}", "'shards' is no list");
    refuse("{\"stoker_pack\": 1, \"n_records\": 4, \"fingerprint\": \"1\", \"classes\": [7]}", "class 0 has no name");
    refuse("{\"stoker_pack\": 1, \"n_records\": 4, \"fingerprint\": \"1\", \"shards\": [{\"file\": \"../x\"}]}",
           "no file name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_folders_samples),
        cmocka_unit_test(goes_on_after_a_stop),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(what_cannot_be_packed),
        cmocka_unit_test(wrong_manifests_are_refused),
    };
    return cmocka_run_group_tests(tests, make_photos, remove_test_folder);
}
