/* Samples of several images: the same draws for all, masks that keep their numbers, folders that belong together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "data/codec/image.h"
#include "golden/masks_golden.h"
#include "stoker/data/combine.h"
#include "stoker/data/fields.h"
#include "stoker/data/loader.h"

enum { N = 12, H = 20, W = 24 };
static uint8_t images[N][H][W][1], masks[N][H][W][1], small[N][H - 1][W][1];

/* The image's chain begins with a stage of its own, so that the two fields number their stages differently. */
static stk_dataset *make(void)
{
    for (int i = 0; i < N * H * W; i++)
        ((uint8_t *)images)[i] = ((uint8_t *)masks)[i] = (uint8_t)(i * 7 % 241 + 1);
    const stk_array_field fields[] = {{"mask", STK_U8, STK_SHAPE(H, W, 1), masks},
                                      {"image", STK_U8, STK_SHAPE(H, W, 1), images},
                                      {"small", STK_U8, STK_SHAPE(H - 1, W, 1), small}};
    stk_dataset *dataset = stk_dataset_arrays(N, fields, 3);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_apply(dataset, stk_pad_image(0, 0, 0, 0, 0), NULL);
    return dataset;
}

static const char *const pair[] = {"image", "mask", "small"};

/* Batches of a whole epoch; counts pixels that differ between image and mask, and hashes. */
static int64_t count_unequal(stk_dataset *dataset, int n_threads, uint64_t *hash)
{
    stk_loader *loader;
    stk_shape shape;
    int64_t n = 0;
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_field(dataset, "image", true, NULL, &shape), STK_OK);
    assert_int_equal(
        stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 3, .n_threads = n_threads, .seed = 3}, &loader),
        STK_OK);
    *hash = 0;
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch)) {
        const uint8_t *image = stk_batch_data(batch, "image"), *mask = stk_batch_data(batch, "mask");
        for (int64_t i = 0; i < 4 * shape.dim[0] * shape.dim[1]; i++)
            n += image[i] != mask[i];
        *hash = *hash * 31 + stk_batch_hash(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    return n;
}

static void draws_are_shared(void **state)
{
    (void)state;
    uint64_t first, hash;
    stk_random_affine_config affine = stk_random_affine_config_default();
    affine.degrees[0] = -30;
    affine.degrees[1] = 30;
    affine.move_x = affine.move_y = 0.2;
    stk_stage *(*const flips[])(void) = {stk_random_flip, stk_random_flip_vertical};
    stk_dataset *dataset = make();
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_random_affine(&affine));
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_random_crop(16, 3));
    for (int i = 0; i < 2; i++)
        stk_dataset_apply_together(dataset, pair, 1, 1, flips[i]());
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_random_resized_crop_with(13, STK_FILTER_NEAREST, false));
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_random_rotation(-90, 90, STK_FILTER_NEAREST, 0));
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_center_crop(11, 12));
    stk_dataset_batch(dataset, 4, true);
    assert_int_equal(count_unequal(dataset, 1, &first), 0);
    assert_int_equal(count_unequal(dataset, 3, &hash), 0);
    assert_true(hash == first);
    stk_dataset_free(dataset);
    /* Apart they differ. */
    dataset = make();
    stk_dataset_apply(dataset, stk_random_crop(16, 3), NULL);
    stk_dataset_apply_to(dataset, "mask", stk_random_crop(16, 3));
    stk_dataset_batch(dataset, 4, true);
    assert_true(count_unequal(dataset, 1, &hash) > 1000);
    stk_dataset_free(dataset);
}

/* Bilinear and antialiased for the image; the mask has nothing but numbers that it had, and 0 outside. */
static void masks_are_not_mixed(void **state)
{
    (void)state;
    stk_dataset *dataset = make();
    stk_loader *loader;
    for (int i = 0; i < N * H * W; i++)
        ((uint8_t *)masks)[i] = i / 5 % 2 ? 200 : 9;
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_pad_image(2, 2, 2, 2, 50));
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_random_rotation(-45, 45, STK_FILTER_BILINEAR, 77));
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_random_resized_crop(10, true));
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_resize(15, 9, true));
    stk_dataset_batch(dataset, 4, true);
    assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 1}, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch)) {
        const uint8_t *mask = stk_batch_data(batch, "mask");
        for (int i = 0; i < 4 * 15 * 9; i++)
            assert_true(mask[i] == 0 || mask[i] == 9 || mask[i] == 200);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void refuse(stk_dataset *dataset, const char *text)
{
    assert_true(stk_dataset_status(dataset) != STK_OK);
    assert_string_equal(stk_error_text(), text);
    stk_dataset_free(dataset);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    stk_loader *loader;
    stk_dataset *dataset = make();
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_normalize_mnist());
    refuse(dataset, "stage 'normalize' changes values, not places: apply it to one field at a time, not to several");
    dataset = make();
    stk_dataset_apply_together(dataset, (const char *[]){"image", "masks"}, 1, 1, stk_random_flip());
    refuse(dataset, "source 'arrays' has no field 'masks'; did you mean 'mask'?");
    dataset = make();
    stk_dataset_apply_together(dataset, pair, 1, 2, stk_random_crop(8, 0));
    stk_dataset_batch(dataset, 4, true);
    assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.n_threads = 1}, &loader), STK_OK);
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
    const char *text = strchr(stk_error_text(), ':');
    assert_string_equal(text, ": field 'small' is 19 x 24 before 'random_crop', which the fields with it meet at 20 x "
                              "24: they must be equally large");
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* --- folders --- */

static char folder[64];

static void write_file(const char *name, const void *data, size_t n)
{
    char path[256], dir[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_int_equal(stk_dir_make(dir), STK_OK);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_grey(const char *name, int value)
{
    uint8_t pixels[MASK_HEIGHT * MASK_WIDTH], *png;
    size_t n;
    memset(pixels, value, sizeof(pixels));
    assert_int_equal(stk_png_encode(pixels, MASK_HEIGHT, MASK_WIDTH, 1, &png, &n), STK_OK);
    write_file(name, png, n);
    free(png);
}

static stk_dataset *open_pairs(void)
{
    char a[128], b[128];
    snprintf(a, sizeof(a), "%s/photos/", folder);
    snprintf(b, sizeof(b), "%s/masks", folder);
    return stk_dataset_pairs((const char *[]){"image", "mask"}, (const char *[]){a, b}, 2);
}

static void folders_are_paired_by_name(void **state)
{
    (void)state;
    stk_loader *loader;
    snprintf(folder, sizeof(folder), "/tmp/stk-test-joint-%d", (int)getpid());
    /* Sorted by their whole names, '1.png' and '1-b.png' would change places. */
    write_grey("photos/x/1.png", 1);
    write_grey("photos/x/1-b.png", 2);
    write_grey("photos/2.png", 3);
    write_grey("masks/x/1-b.PNG", 12);
    write_grey("masks/x/1.PNG", 11);
    write_grey("masks/2.png", 13);
    stk_dataset *dataset = open_pairs();
    stk_dataset_apply(dataset, stk_decode_channels(1), NULL);
    stk_dataset_apply_to(dataset, "mask", stk_decode_mask());
    stk_dataset_apply_together(dataset, pair, 1, 1, stk_random_flip());
    stk_dataset_batch(dataset, 3, true);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    const stk_batch *batch = stk_loader_next(loader);
    const uint8_t *image = stk_batch_data(batch, "image"), *mask = stk_batch_data(batch, "mask");
    for (int i = 0; i < 3; i++)
        assert_int_equal(mask[i * MASK_HEIGHT * MASK_WIDTH], image[i * MASK_HEIGHT * MASK_WIDTH] + 10);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    char text[512], last[128];
    /* The last by name, without a partner behind it. */
    write_grey("photos/y.png", 3);
    snprintf(last, sizeof(last), "%s/photos/y.png", folder);
    snprintf(text, sizeof(text), "'%s' has no partner in '%s/masks'", last, folder);
    refuse(open_pairs(), text);
    assert_int_equal(unlink(last), 0);
    write_grey("photos/3.png", 3);
    snprintf(text, sizeof(text), "'%s/photos/3.png' has no partner in '%s/masks'", folder, folder);
    refuse(open_pairs(), text);
    write_grey("masks/3.jpg", 3);
    write_grey("masks/3.png", 3);
    dataset = open_pairs();
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    stk_dataset_free(dataset);
    assert_int_equal(stk_tree_remove(folder), STK_OK);
}

static void masks_keep_their_numbers(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(golden_masks) / sizeof(golden_masks[0]); k++) {
        const golden_mask *m = &golden_masks[k];
        stk_loader *loader;
        snprintf(folder, sizeof(folder), "/tmp/stk-test-masks-%d", (int)getpid());
        write_file("masks/a.png", m->data, (size_t)m->n);
        char path[128];
        snprintf(path, sizeof(path), "%s/masks", folder);
        stk_dataset *dataset = stk_dataset_pairs((const char *[]){"mask"}, (const char *[]){path}, 1);
        stk_dataset_apply_to(dataset, "mask", stk_decode_mask());
        stk_dataset_batch(dataset, 1, true);
        assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
        const stk_batch *batch = stk_loader_next(loader);
        assert_int_equal(batch != NULL, m->n_classes > 0);
        if (!batch) assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
        for (int i = 0; batch && i < MASK_HEIGHT * MASK_WIDTH; i++)
            assert_int_equal(((const uint8_t *)stk_batch_data(batch, "mask"))[i],
                             (i * 5 + i / MASK_WIDTH) % m->n_classes);
        stk_loader_close(loader);
        stk_dataset_free(dataset);
        assert_int_equal(stk_tree_remove(folder), STK_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_shared),
        cmocka_unit_test(masks_are_not_mixed),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(folders_are_paired_by_name),
        cmocka_unit_test(masks_keep_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
