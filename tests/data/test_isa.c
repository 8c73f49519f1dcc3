/* The same bits on every processor: each stage, alone and in one pass with decoding, gives the recorded hashes with
 * plain C and with the best instruction set there is (STOKER_ISA), and so on any other machine that runs this. The
 * hashes were recorded with STOKER_RECORD=1, which prints them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/source/files.h"
#include "stoker/data/loader.h"
#include "stoker/data/sources.h"

#include "data/jpeg_make.h"

enum { N = 24, SIDE = 61, MOST_STAGES = 6 };

typedef stk_stage *(*make_stage)(void);

#define STAGE(name, call)                                                                                              \
    static stk_stage *name(void)                                                                                       \
    {                                                                                                                  \
        return call;                                                                                                   \
    }
#define RESIZE(name, ...) STAGE(name, stk_resize_with(&(stk_resize_config){.height = 40, .width = 33, __VA_ARGS__}))

STAGE(grey, stk_decode_channels(1))
STAGE(upright, stk_decode_with(3, true))
STAGE(resize, stk_resize(40, 33, true))
STAGE(resize_plain, stk_resize(90, 77, false))
STAGE(shorter, stk_resize_shorter(35, true))
STAGE(center35, stk_center_crop(35, 35))
RESIZE(cubic, .filter = STK_FILTER_BICUBIC, .antialias = true)
RESIZE(nearest, .filter = STK_FILTER_NEAREST)
RESIZE(like_tf, .like = STK_LIKE_TF, .antialias = true)
RESIZE(like_tf_cubic, .like = STK_LIKE_TF, .filter = STK_FILTER_BICUBIC)
RESIZE(like_opencv, .like = STK_LIKE_OPENCV)
RESIZE(like_opencv_cubic, .like = STK_LIKE_OPENCV, .filter = STK_FILTER_BICUBIC)
STAGE(center_crop, stk_center_crop(37, 41))
STAGE(random_crop, stk_random_crop(48, 4))
STAGE(random_resized_crop, stk_random_resized_crop(32, true))
STAGE(random_resized_crop_cubic, stk_random_resized_crop_with(32, STK_FILTER_BICUBIC, true))
STAGE(color_jitter, stk_color_jitter(0.4, 0.4, 0.4, 0.2))
STAGE(grayscale, stk_random_grayscale(0.5))
STAGE(blur, stk_gaussian_blur(7, 0.1, 2))
STAGE(erasing,
      stk_random_erasing(&(stk_random_erasing_config){.chance = 0.5, .scale = {0.02, 0.33}, .ratio = {0.3, 3.3}}))
STAGE(rotation, stk_random_rotation(-40, 40, STK_FILTER_BILINEAR, 7))
STAGE(rotation_nearest, stk_random_rotation(-40, 40, STK_FILTER_NEAREST, 0))
STAGE(affine, stk_random_affine(&(stk_random_affine_config){.degrees = {-20, 20},
                                                            .move_x = 0.2,
                                                            .move_y = 0.1,
                                                            .scale = {0.7, 1.3},
                                                            .shear_x = {-9, 9},
                                                            .shear_y = {-5, 5},
                                                            .filter = STK_FILTER_BILINEAR}))
STAGE(randaugment, stk_randaugment(3, 12))
STAGE(pad, stk_pad_image(1, 2, 3, 4, 9))
STAGE(clip, stk_clip_values(0.2, 0.7))
STAGE(scale, stk_scale(1 / 255.0))
STAGE(half, stk_cast(STK_F16))
STAGE(bfloat, stk_cast(STK_BF16))
STAGE(f32, stk_cast(STK_F32))

typedef struct chain {
    const char *name;
    make_stage stage[MOST_STAGES];
    uint64_t hash;
} chain;

static chain chains[] = {
#include "golden/isa_golden.h" /* {name, {stages}, hash}, ... */
};

/* Samplings, grey, restarts, progressive, odd sides. */
static int make_photos(void **state)
{
    if (make_test_folder(state) != 0) return -1;
    for (int i = 0; i < N; i++) {
        jpeg_recipe r = {.height = SIDE + i % 7, .width = SIDE + i % 5, .channels = i % 8 == 7 ? 1 : 3};
        r.h = r.channels == 3 ? 1 + i % 2 : 1;
        r.v = r.channels == 3 ? 1 + i / 2 % 2 : 1;
        r.quality = 50 + 2 * i;
        r.texture = i % 3 ? TEXTURE_MIXED : TEXTURE_NOISE;
        r.progressive = i % 6 == 5;
        r.interval = i % 5 == 4 ? 3 : 0;
        r.seed = (uint64_t)i;
        stk_span file = jpeg_make(&r);
        char name[32];
        snprintf(name, sizeof(name), "photos/%02d.jpg", i);
        write_file(name, file.data, file.n);
        free((void *)(uintptr_t)file.data);
    }
    return 0;
}

static uint64_t hash_of(const chain *c)
{
    const char *folder = in_folder("photos");
    stk_loader_config config = {.n_threads = 2, .n_epochs = 2, .seed = 3};
    stk_loader *loader;
    uint64_t hash = 0;
    stk_dataset *dataset = stk_dataset_files(&folder, 1, STK_LABELS_NONE, NULL);
    for (int i = 0; i < MOST_STAGES && c->stage[i]; i++)
        stk_dataset_apply_to(dataset, "image", c->stage[i]());
    stk_dataset_batch(dataset, 8, false);
    if (stk_loader_open(dataset, &config, &loader) != STK_OK) fail_msg("chain '%s': %s", c->name, stk_error_text());
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch))
        hash = hash * 31 + stk_batch_hash(batch);
    if (stk_loader_status(loader) != STK_OK) fail_msg("chain '%s': %s", c->name, stk_error_text());
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    return hash;
}

static void same_bits_everywhere(void **state)
{
    static const char *const isas[] = {"baseline", "avx2", "best"};
    int n_bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++)
        for (int k = 0; k < 3; k++) {
            setenv("STOKER_ISA", isas[k], 1);
            uint64_t hash = hash_of(&chains[i]);
            if (getenv("STOKER_RECORD") && k == 0) chains[i].hash = hash;
            if (hash == chains[i].hash) continue;
            print_error("chain '%s' with %s: 0x%016llx\n", chains[i].name, isas[k], (unsigned long long)hash);
            n_bad++;
        }
    for (size_t i = 0; getenv("STOKER_RECORD") && i < sizeof(chains) / sizeof(chains[0]); i++)
        print_message("%s 0x%016llx\n", chains[i].name, (unsigned long long)chains[i].hash);
    unsetenv("STOKER_ISA");
    assert_int_equal(n_bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_everywhere)};
    return cmocka_run_group_tests(tests, make_photos, remove_test_folder);
}
