/* Volumes: what nibabel reads from NIfTI files, windows of them and of NumPy files, grids that miss no voxel, damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <zlib.h>

#include "data/source/files.h"
#include "golden/nifti_golden.h"
#include "stoker/data/fields.h"
#include "stoker/data/loader.h"
#include "stoker/data/verify.h"
#include "stoker/data/volumes.h"

enum { N_GOLDEN = sizeof(golden_niftis) / sizeof(golden_niftis[0]) };

static stk_dataset *open_one(const char *path, stk_dtype dtype, stk_volumes_config config)
{
    const char *paths[] = {path};
    stk_volume_field field = {"image", paths, 1, dtype};
    config.fields = &field;
    config.n_fields = 1;
    return stk_dataset_volumes(&config);
}

static void close_to(const float *got, const float *want, int n)
{
    for (int i = 0; i < n; i++)
        assert_true(fabsf(got[i] - want[i]) <= 1e-6f * fabsf(want[i]));
}

static void values_are_nibabels(void **state)
{
    (void)state;
    for (int k = 0; k < N_GOLDEN; k++)
        for (int canonical = 0; canonical < 2; canonical++) {
            const golden_nifti *g = &golden_niftis[k];
            const int *side = canonical ? g->turned_side : g->side;
            const char *path = write_file("a.nii", g->raw, (size_t)g->n);
            stk_dataset *dataset = open_one(path, STK_F32, (stk_volumes_config){.canonical = canonical});
            stk_shape shape;
            stk_loader *loader;
            stk_volume_info info;
            stk_dataset_batch(dataset, 1, true);
            assert_int_equal(stk_dataset_field(dataset, "image", false, NULL, &shape), STK_OK);
            assert_true(shape.rank == 4 && shape.dim[3] == g->side[3]);
            for (int i = 0; i < 3; i++)
                assert_int_equal(shape.dim[i], side[i]);
            assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
            const stk_batch *batch = stk_loader_next(loader);
            assert_non_null(batch);
            close_to(stk_batch_data(batch, "image"), canonical ? g->turned : g->values,
                     side[0] * side[1] * side[2] * g->side[3]);
            assert_int_equal(stk_volume_get_info(path, &info), STK_OK);
            for (int i = 0; i < 12; i++)
                assert_true(fabs(info.affine[i / 4][i % 4] - g->affine[i]) < 1e-5);
            stk_loader_close(loader);
            stk_dataset_free(dataset);
        }
}

/* Where a file has neither map, only its voxels' sides are known, and all else is 0, not nearly. */
static void sides_alone_are_a_map(void **state)
{
    (void)state;
    enum { QFORM_CODE = 252, SFORM_CODE = 254 };
    golden_nifti g = golden_niftis[0];
    stk_volume_info info;
    memset(g.raw + QFORM_CODE, 0, 2);
    memset(g.raw + SFORM_CODE, 0, 2);
    const double side[3] = {2, 2, 3};
    assert_int_equal(stk_volume_get_info(write_file("d.nii", g.raw, (size_t)g.n), &info), STK_OK);
    for (int i = 0; i < 12; i++) {
        double want = i / 4 == i % 4 ? side[i / 4] : 0;
        assert_true(info.affine[i / 4][i % 4] == want);
    }
}

/* --- windows --- */

enum { D = 7, H = 9, W = 11 };

/* f32 [D,H,W], or with two channels: 100 z + 10 y + x, and its negative. */
static const char *write_npy(const char *name, int n_channels)
{
    char header[128], whole[128 + D * H * W * 2 * 4];
    int n = snprintf(header, sizeof(header), "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d%s), }", D,
                     H, W, n_channels == 2 ? ", 2" : "");
    memset(whole, ' ', 128);
    memcpy(whole, "\x93NUMPY\x01\0\x76\0", 10);
    memcpy(whole + 10, header, (size_t)n);
    whole[127] = '\n';
    for (int i = 0; i < D * H * W; i++)
        for (int c = 0; c < n_channels; c++) {
            float x = (float)(i / (H * W) * 100 + i / W % H * 10 + i % W) * (c ? -1 : 1);
            memcpy(whole + 128 + 4 * (i * n_channels + c), &x, 4);
        }
    return write_file(name, whole, 128 + (size_t)(D * H * W * n_channels) * 4);
}

static void windows_are_parts(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 2; channels++)
        for (int kind = 0; kind < 3; kind++) {
            const char *path = write_npy("a.npy", channels);
            stk_dataset *dataset = open_one(
                path, STK_F32,
                (stk_volumes_config){.window = {3, 4, 5}, .windows = (stk_volume_windows)kind, .n_windows = 40});
            stk_loader *loader;
            bool seen[D][H][W] = {0};
            float first[2] = {-1, -1};
            int64_t n = stk_dataset_count(dataset), n_seen = 0, n_moved = 0;
            assert_int_equal(n, kind == 0 ? 40 : kind == 1 ? 1 : 3 * 3 * 3);
            stk_dataset_batch(dataset, 1, true);
            assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 1, .n_threads = 2}, &loader),
                             STK_OK);
            for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch)) {
                const float *x = stk_batch_data(batch, "image");
                int z = (int)x[0] / 100, y = (int)x[0] % 100 / 10, left = (int)x[0] % 10;
                n_moved += x[0] != first[0];
                first[0] = x[0];
                for (int i = 0; i < 3 * 4 * 5; i++) {
                    int at[3] = {z + i / 20, y + i / 5 % 4, left + i % 5};
                    float want = (float)(at[0] * 100 + at[1] * 10 + at[2]);
                    assert_true(x[i * channels] == want &&
                                x[i * channels + channels - 1] == (channels == 2 ? -want : want));
                    n_seen += !seen[at[0]][at[1]][at[2]];
                    seen[at[0]][at[1]][at[2]] = true;
                }
            }
            assert_int_equal(stk_loader_status(loader), STK_OK);
            if (kind == STK_WINDOWS_GRID) assert_int_equal(n_seen, D * H * W);
            if (kind == STK_WINDOWS_RANDOM) assert_true(n_moved > 30);
            if (kind == STK_WINDOWS_MIDDLE) assert_true(first[0] == 100 * 2 + 10 * 2 + 3);
            stk_loader_close(loader);
            stk_dataset_free(dataset);
        }
}

static uint64_t hash_of(const stk_dataset *dataset, int n_threads)
{
    stk_loader *loader;
    uint64_t hash = 0;
    assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 2, .n_threads = n_threads}, &loader),
                     STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch)) {
        const float *image = stk_batch_data(batch, "image");
        const uint8_t *mask = stk_batch_data(batch, "mask");
        for (int i = 0; i < 4 * 3 * 3 * 3; i++)
            assert_true(image[i] == mask[i]); /* one window, and flipped alike */
        hash = hash * 31 + stk_batch_hash(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    return hash;
}

/* Compressed and plain, f32 and u8, slices flipped together. */
static void fields_share_windows(void **state)
{
    (void)state;
    const golden_nifti *g = &golden_niftis[0]; /* u8 [3,4,5] */
    setenv("STOKER_CACHE", in_folder("cache"), 1);
    gzFile gz = gzopen(in_folder("b.nii.gz"), "wb");
    assert_int_equal(gzwrite(gz, g->raw, (unsigned)g->n), g->n);
    gzclose(gz);
    const char *plain = write_file("b.nii", g->raw, (size_t)g->n), *packed = in_folder("b.nii.gz");
    const stk_volume_field fields[] = {{"image", &packed, 1, STK_F32}, {"mask", &plain, 1, STK_U8}};
    const stk_volumes_config config = {.fields = fields, .n_fields = 2, .window = {3, 3, 3}, .n_windows = 20};
    stk_dataset *dataset = stk_dataset_volumes(&config);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_apply_together(dataset, (const char *[]){"image", "mask"}, 1, 1, stk_random_flip());
    stk_dataset_apply_together(dataset, (const char *[]){"image", "mask"}, 1, 1, stk_random_flip_vertical());
    stk_dataset_batch(dataset, 4, true);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    uint64_t hash = hash_of(dataset, 1);
    assert_true(hash_of(dataset, 3) == hash);
    stk_dataset_free(dataset);
}

static void refuse(stk_dataset *dataset, stk_status status, const char *text)
{
    assert_int_equal(stk_dataset_status(dataset), status);
    if (!strstr(stk_error_text(), text)) fail_msg("'%s' lacks '%s'", stk_error_text(), text);
    stk_dataset_free(dataset);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    const golden_nifti *g = &golden_niftis[1]; /* scaled by 0.5: no whole numbers */
    const char *path = write_file("c.nii", g->raw, (size_t)g->n - 1);
    refuse(open_one(path, STK_F32, (stk_volumes_config){0}), STK_CORRUPT, "c.nii': it has ");
    path = write_file("c.nii", g->raw, (size_t)g->n);
    refuse(open_one(path, STK_F32, (stk_volumes_config){.window = {3, 3, 3}}), STK_INVALID, "make the window smaller");
    refuse(open_one(path, STK_F64, (stk_volumes_config){0}), STK_INVALID, "can be f32, u8 or i32");
    stk_dataset *dataset = open_one(path, STK_U8, (stk_volumes_config){0});
    stk_loader *loader;
    stk_dataset_batch(dataset, 1, true);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "which is no u8"));
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    refuse(open_one(write_file("c.txt", "x", 1), STK_F32, (stk_volumes_config){0}), STK_UNSUPPORTED,
           "volumes are .nii, .nii.gz or .npy");
}

static void count_corrupt(void *user, const stk_corrupt_record *record)
{
    if (strstr(record->file, "v.nii")) ++*(int *)user;
}

/* To the last slice, although the one window lies in the middle. */
static void verifying_reads_whole_files(void **state)
{
    (void)state;
    const golden_nifti *g = &golden_niftis[0];
    const char *path = write_file("v.nii", g->raw, (size_t)g->n);
    int n_corrupt = 0;
    stk_verify_options options = {.on_corrupt = count_corrupt, .user = &n_corrupt};
    stk_verify_progress p;
    stk_dataset *dataset =
        open_one(path, STK_F32, (stk_volumes_config){.window = {1, 1, 1}, .windows = STK_WINDOWS_MIDDLE});
    assert_int_equal(stk_dataset_verify(dataset, &options, &p), STK_OK);
    assert_int_equal(p.n_done, 1);
    assert_int_equal(truncate(path, (off_t)g->n - 1), 0);
    assert_int_equal(stk_dataset_verify(dataset, &options, &p), STK_CORRUPT);
    assert_int_equal(n_corrupt, 1);
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_nibabels),         cmocka_unit_test(windows_are_parts),
        cmocka_unit_test(fields_share_windows),        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(verifying_reads_whole_files), cmocka_unit_test(sides_alone_are_a_map),
    };
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
