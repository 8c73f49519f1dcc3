/* One pass over rows gives what the stages give one after the other, to the bit, with each instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "data/codec/jpeg.h"
#include "data/jpeg_make.h"
#include "data/stage/chain.h"
#include "data/stage/stage_list.h"

enum { MOST_BYTES = 1 << 22, N_KEYS = 12, MOST_STAGES_OF_CASE = 7 };

static const char *const isas[] = {"baseline", "best"};

/* --- files --- */

typedef struct file {
    stk_span encoded;
    const char *name;
} file;

static file files[8];
static int n_files;

static int make_files(void **state)
{
    (void)state;
    const jpeg_recipe recipes[] = {
        {.height = 61, .width = 83, .channels = 3, .h = 2, .v = 2, .texture = TEXTURE_MIXED, .seed = 1},
        {.height = 97, .width = 40, .channels = 3, .texture = TEXTURE_SMOOTH, .seed = 2, .quality = 92},
        {.height = 32, .width = 32, .channels = 3, .h = 2, .v = 2, .texture = TEXTURE_MIXED, .seed = 3},
        {.height = 50, .width = 300, .channels = 3, .h = 2, .v = 1, .texture = TEXTURE_NOISE, .seed = 4},
        {.height = 70, .width = 64, .channels = 1, .texture = TEXTURE_MIXED, .seed = 5},
        {.height = 64, .width = 90, .channels = 3, .progressive = true, .texture = TEXTURE_MIXED, .seed = 6},
    };
    static const char *const names[] = {"4:2:0", "4:4:4", "small", "4:2:2", "grey", "progressive"};
    for (int i = 0; i < (int)(sizeof(recipes) / sizeof(recipes[0])); i++)
        files[n_files++] = (file){jpeg_make(&recipes[i]), names[i]};
    return 0;
}

static int free_files(void **state)
{
    (void)state;
    for (int i = 0; i < n_files; i++)
        free((void *)(uintptr_t)files[i].encoded.data);
    return 0;
}

/* --- chains --- */

typedef struct chain_case {
    const char *name;
    stk_stage *stage[MOST_STAGES_OF_CASE];
} chain_case;

/* One after the other, each into memory of its own. */
static stk_status run_apart(const stk_chain *chain, const stk_stage_key *key, const stk_item *in, stk_item *out,
                            char *memory[2])
{
    stk_item item = *in;
    stk_stage_key stage_key = *key;
    for (int i = 0; i < chain->n_stages; i++) {
        const stk_stage *stage = chain->stage[i];
        stk_scratch scratch = {0};
        stage_key.i_stage = (uint64_t)i;
        STK_RETURN_IF_ERROR(stage->class->measure ? stage->class->measure(stage->params, &stage_key, &item, &out->type)
                                                  : stage->class->plan(stage->params, &item.type, &out->type));
        out->data = memory[i & 1];
        out->n_bytes = stk_desc_bytes(out->type.desc);
        assert_true(out->n_bytes <= MOST_BYTES);
        stk_status status = stage->class->run(stage->params, &stage_key, &item, out, &scratch);
        stk_scratch_free(&scratch);
        if (status != STK_OK) return status;
        item = *out;
    }
    return STK_OK;
}

static void check_chain(const chain_case *c, stk_chain *chain)
{
    char *memory[3];
    stk_chain_work work = {0};
    for (int i = 0; i < 3; i++)
        assert_non_null(memory[i] = malloc(MOST_BYTES));
    for (int i = 0; i < n_files; i++)
        for (uint64_t k = 0; k < N_KEYS; k++) {
            stk_stage_key key = {.seed = 3, .epoch = k, .i_sample = (uint64_t)i};
            stk_item in = {chain->type[0], (void *)(uintptr_t)files[i].encoded.data, files[i].encoded.n}, want;
            stk_status apart = run_apart(chain, &key, &in, &want, memory);
            for (int isa = 0; isa < 2; isa++) {
                bool wrong_size = false;
                setenv("STOKER_ISA", isas[isa], 1);
                memset(memory[2], 0xA5, MOST_BYTES);
                stk_status status = stk_chain_run(chain, &key, &in, &want.type, memory[2], &work, &wrong_size);
                if (status != apart) fail_msg("%s of %s: %s", c->name, files[i].name, stk_error_text());
                if (status != STK_OK) continue;
                size_t n = 0;
                while (n < want.n_bytes && memory[2][n] == ((char *)want.data)[n])
                    n++;
                if (n < want.n_bytes)
                    fail_msg("%s of %s with %s, key %d: byte %zu of %zu differs", c->name, files[i].name, isas[isa],
                             (int)k, n, want.n_bytes);
                for (size_t after = 0; after < 64; after++)
                    assert_int_equal((unsigned char)memory[2][want.n_bytes + after], 0xA5);
            }
        }
    unsetenv("STOKER_ISA");
    stk_chain_work_trim(&work);
    for (int i = 0; i < 3; i++)
        free(memory[i]);
}

static void check(chain_case c)
{
    stk_chain chain;
    const stk_field_type encoded = {.kind = STK_FIELD_ENCODED};
    stk_chain_init(&chain, "image", "test", &encoded);
    for (int i = 0; i < MOST_STAGES_OF_CASE && c.stage[i]; i++)
        if (stk_chain_add(&chain, c.stage[i]) != STK_OK) fail_msg("%s: %s", c.name, stk_error_text());
    check_chain(&c, &chain);
    stk_chain_free(&chain);
}

static void random_resized_crops(void **state)
{
    (void)state;
    check((chain_case){"photos",
                       {stk_decode(), stk_random_resized_crop(24, true), stk_random_flip(), stk_normalize_imagenet()}});
    check((chain_case){"as u8", {stk_decode(), stk_random_resized_crop(33, true), stk_random_flip()}});
    check((chain_case){"two nearest", {stk_decode(), stk_random_resized_crop(7, false), stk_scale(1 / 255.0)}});
    check((chain_case){"one row", {stk_decode(), stk_random_resized_crop(1, true), stk_cast(STK_F32)}});
    check((chain_case){"grey", {stk_decode_channels(1), stk_random_resized_crop(20, true), stk_random_flip()}});
}

static void resized_and_cut(void **state)
{
    (void)state;
    check((chain_case){
        "centre", {stk_decode(), stk_resize_shorter(40, true), stk_center_crop(32, 28), stk_normalize_imagenet()}});
    check((chain_case){"grown", {stk_decode(), stk_resize(130, 141, true), stk_random_flip(), stk_center_crop(99, 3)}});
    check((chain_case){"plain", {stk_decode(), stk_resize(19, 23, false), stk_cast(STK_F32), stk_random_flip()}});
    check((chain_case){"cut first", {stk_decode(), stk_center_crop(20, 30), stk_resize(8, 40, true)}});
    check((chain_case){"same size", {stk_decode(), stk_center_crop(32, 32), stk_resize(32, 32, true)}});
}

static stk_stage *resize_as(stk_filter filter, stk_resize_like like, bool antialias)
{
    return stk_resize_with(
        &(stk_resize_config){.height = 40, .width = 37, .filter = filter, .like = like, .antialias = antialias});
}

static void other_filters(void **state)
{
    (void)state;
    check((chain_case){"bicubic",
                       {stk_decode(), stk_random_resized_crop_with(24, STK_FILTER_BICUBIC, true), stk_random_flip(),
                        stk_normalize_imagenet()}});
    check((chain_case){"bicubic, four", {stk_decode(), stk_random_resized_crop_with(33, STK_FILTER_BICUBIC, false)}});
    check((chain_case){"nearest",
                       {stk_decode(), stk_random_resized_crop_with(24, STK_FILTER_NEAREST, true), stk_random_flip()}});
    check((chain_case){"opencv", {stk_decode(), resize_as(STK_FILTER_BICUBIC, STK_LIKE_OPENCV, false), stk_scale(2)}});
    check((chain_case){
        "tf", {stk_decode(), resize_as(STK_FILTER_BICUBIC, STK_LIKE_TF, false), stk_random_flip(), stk_scale(2)}});
    check((chain_case){"tf, nearest", {stk_decode(), resize_as(STK_FILTER_NEAREST, STK_LIKE_TF, false)}});
}

static void only_cut(void **state)
{
    (void)state;
    check((chain_case){"cifar", {stk_decode(), stk_random_crop(32, 4), stk_random_flip(), stk_normalize_cifar10()}});
    check((chain_case){"cifar, mirrored",
                       {stk_decode(), stk_random_crop_with(32, 4, STK_BORDER_REFLECT),
                        stk_random_flip_with(false, true), stk_normalize_cifar10()}});
    check((chain_case){"far out", {stk_decode(), stk_random_crop(5, 60), stk_random_flip()}});
    check((chain_case){"flips", {stk_decode(), stk_random_flip(), stk_center_crop(31, 17), stk_random_flip()}});
    check((chain_case){"whole", {stk_decode(), stk_normalize_imagenet()}});
    check((chain_case){"alone", {stk_decode()}});
    check((chain_case){"grey", {stk_decode_channels(1), stk_random_crop(32, 4), stk_normalize_mnist()}});
}

/* A border of zeros is a cut that sticks out; others, and what is turned upside down, run by themselves. */
static void borders_and_rows_swapped(void **state)
{
    (void)state;
    check((chain_case){"zeros",
                       {stk_decode(), stk_pad_image(3, 0, 5, 9, 0), stk_random_flip(), stk_normalize_imagenet()}});
    check((chain_case){"grey border", {stk_decode(), stk_pad_image(3, 1, 5, 9, 128), stk_random_crop(20, 0)}});
    check((chain_case){"zeros of resized", {stk_decode(), stk_resize(20, 20, true), stk_pad_image(2, 2, 2, 2, 0)}});
    check(
        (chain_case){"upside down", {stk_decode(), stk_random_crop(30, 4), stk_random_flip_vertical(), stk_scale(2)}});
    check((chain_case){"augmented",
                       {stk_decode(), stk_random_resized_crop(24, true), stk_randaugment(2, 9), stk_random_flip(),
                        stk_normalize_imagenet()}});
}

/* The pass ends where the next stage would see other values, and the rest runs by itself. */
static void what_does_not_fit(void **state)
{
    (void)state;
    check((chain_case){"twice resized", {stk_decode(), stk_resize(40, 44, true), stk_resize(20, 20, true)}});
    check((chain_case){"zeros resized", {stk_decode(), stk_random_crop(40, 9), stk_resize(20, 20, true)}});
    check((chain_case){"zeros of floats", {stk_decode(), stk_normalize_imagenet(), stk_random_crop(40, 9)}});
    check(
        (chain_case){"zeros twice", {stk_decode(), stk_random_crop(34, 8), stk_random_crop(36, 3), stk_random_flip()}});
    check((chain_case){"zeros in a cut", {stk_decode(), stk_center_crop(30, 30), stk_random_crop(34, 8)}});
    check((chain_case){"mirrored, resized", {stk_decode(), stk_random_flip(), stk_resize(20, 20, false)}});
    check((chain_case){"floats resized", {stk_decode(), stk_cast(STK_F32), stk_resize(20, 20, true), stk_scale(2)}});
    check((chain_case){"scaled twice", {stk_decode(), stk_center_crop(8, 8), stk_scale(0.5), stk_scale(-3)}});
    check((chain_case){"other types", {stk_decode(), stk_center_crop(8, 8), stk_cast(STK_I32)}});
    check((chain_case){"too large", {stk_decode(), stk_center_crop(60, 8), stk_random_flip()}});
}

static void damage_is_an_error(void **state)
{
    (void)state;
    stk_chain chain;
    const stk_field_type encoded = {.kind = STK_FIELD_ENCODED};
    stk_chain_work work = {0};
    uint8_t dst[20 * 20 * 3];
    bool wrong_size = false;
    stk_chain_init(&chain, "image", "test", &encoded);
    assert_int_equal(stk_chain_add(&chain, stk_decode()), STK_OK);
    assert_int_equal(stk_chain_add(&chain, stk_resize(20, 20, true)), STK_OK);
    for (int i = 0; i < n_files; i++) {
        stk_stage_key key = {.seed = 3};
        stk_item in = {chain.type[0], (void *)(uintptr_t)files[i].encoded.data, files[i].encoded.n / 2};
        assert_int_equal(stk_chain_run(&chain, &key, &in, &chain.type[2], dst, &work, &wrong_size), STK_CORRUPT);
    }
    stk_chain_work_trim(&work);
    stk_chain_free(&chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_resized_crops),
        cmocka_unit_test(resized_and_cut),
        cmocka_unit_test(other_filters),
        cmocka_unit_test(borders_and_rows_swapped),
        cmocka_unit_test(only_cut),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(damage_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_files, free_files);
}
