/* Stages made of a function: the declared shape, errors as errors of the record, random numbers by key, scratch, and
 * the same batches for any number of workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/fake.h"
#include "stoker/data/custom.h"
#include "stoker/data/loader.h"

/* --- functions as a user writes them --- */

/* u8 [H,W,1] -> f32 [W,H]: turned, with a random number added that is one for the sample. */
static stk_status turned_shape(void *user, const stk_map_array *src, stk_dtype *dtype, stk_shape *shape)
{
    (void)user;
    if (src->dtype != STK_U8 || src->shape.rank != 3) return stk_fail(STK_INVALID, "needs u8 images");
    *dtype = STK_F32;
    *shape = (stk_shape){.rank = 2, .dim = {src->shape.dim[1], src->shape.dim[0]}};
    return STK_OK;
}

static stk_status turn(void *user, const stk_map_call *call)
{
    (void)user;
    const uint8_t *src = call->src.data;
    float *dst = call->dst.data, *row = call->scratch, more = stk_rng_uniform(call->rng);
    int64_t h = call->src.shape.dim[0], w = call->src.shape.dim[1];
    for (int64_t y = 0; y < h; y++) {
        for (int64_t x = 0; x < w; x++)
            row[x] = src[y * w + x] + more;
        for (int64_t x = 0; x < w; x++)
            dst[x * h + y] = row[x];
    }
    return STK_OK;
}

static const stk_map_config turning = {
    .name = "turn", .shape = turned_shape, .run = turn, .scratch_bytes = 4 * 256, .random = true};

/* Decodes the fake's bytes by itself: its first two are height and width. */
static stk_status decoded_shape(void *user, const stk_map_array *src, stk_dtype *dtype, stk_shape *shape)
{
    const uint8_t *p = src->data;
    (void)user, (void)dtype;
    *shape = (stk_shape){.rank = 3, .dim = {p ? p[0] : STK_ANY, p ? p[1] : STK_ANY, 1}};
    return STK_OK;
}

static stk_status decode(void *user, const stk_map_call *call)
{
    (void)user;
    if (call->src.n_bytes != call->dst.n_bytes + 2) return stk_fail(STK_CORRUPT, "has %zu bytes", call->src.n_bytes);
    memcpy(call->dst.data, (const char *)call->src.data + 2, call->dst.n_bytes);
    return STK_OK;
}

static stk_status fail_mutely(void *user, const stk_map_call *call)
{
    (void)user;
    const int32_t *label = call->src.data;
    if (*label % 10 == 3) return STK_CORRUPT;
    if (*label % 10 == 7) return (stk_status)77;
    *(int32_t *)call->dst.data = *label + 1;
    return STK_OK;
}

/* --- tests --- */

static stk_dataset *make_turned(fake_source **fake)
{
    stk_dataset *dataset = make_fake(41, fake);
    const stk_map_config decoding = {.name = "own_decode", .shape = decoded_shape, .run = decode};
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_apply(dataset, stk_map(&decoding), stk_map(&turning), NULL);
    stk_dataset_batch(dataset, 8, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

static uint64_t hash_epochs(const stk_dataset *dataset, int n_threads)
{
    stk_loader_config config = {.n_threads = n_threads, .n_epochs = 2, .seed = 4};
    stk_loader *loader;
    uint64_t hash = 0;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch))
        hash = hash * 31 + stk_batch_hash(batch);
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    return hash;
}

static void workers_change_nothing(void **state)
{
    (void)state;
    stk_dataset *dataset = make_turned(NULL);
    uint64_t expected = hash_epochs(dataset, 1);
    assert_true(hash_epochs(dataset, 2) == expected);
    assert_true(hash_epochs(dataset, 8) == expected);
    stk_dataset_free(dataset);
}

static void values_are_the_functions(void **state)
{
    (void)state;
    stk_dataset *dataset = make_turned(NULL);
    stk_loader *loader;
    stk_dtype dtype;
    stk_shape shape;
    assert_int_equal(stk_dataset_field(dataset, "image", true, &dtype, &shape), STK_OK);
    assert_int_equal(dtype, STK_F32);
    assert_true(shape.rank == 2 && shape.dim[0] == 4 && shape.dim[1] == 4);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    const stk_batch *batch = stk_loader_next(loader);
    const float *image = stk_batch_data(batch, "image");
    const int32_t *label = stk_batch_data(batch, "label");
    float first = 0, last = 0;
    for (int row = 0; row < 8; row++) {
        last = image[row * 16] - (float)((label[row] * 31 + 2) % 256);
        if (row == 0) first = last;
        assert_true(last >= 0 && last < 1);
        for (int i = 0; i < 16; i++) { /* dst[x][y] = src[y][x] + last */
            int from = 2 + i % 4 * 4 + i / 4;
            float want = (float)((label[row] * 31 + from) % 256) + last;
            assert_true(image[row * 16 + i] > want - 1e-4f && image[row * 16 + i] < want + 1e-4f);
        }
    }
    assert_true(first != last);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* The first error in order, with the record's name before it. */
static void errors_name_the_record(void **state)
{
    (void)state;
    const stk_map_config failing = {.name = "plus_one", .run = fail_mutely};
    stk_dataset *dataset = make_fake(9, NULL);
    stk_loader *loader;
    stk_dataset_apply(dataset, fake_decode(), fake_fit(), NULL);
    stk_dataset_apply_to(dataset, "label", stk_map(&failing));
    stk_dataset_batch(dataset, 1, false);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_OK);
    for (int i = 0; i < 3; i++) {
        const stk_batch *batch = stk_loader_next(loader);
        assert_int_equal(*(const int32_t *)stk_batch_data(batch, "label"), i + 1);
        stk_batch_release(batch);
    }
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_CORRUPT);
    assert_string_equal(stk_error_text(), "'3.fake': stage 'plus_one' failed: corrupt data");
    stk_loader_close(loader);
    stk_loader_config config = {.i_batch = 4};
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (int i = 4; i < 7; i++)
        stk_batch_release(stk_loader_next(loader));
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_INTERNAL);
    assert_string_equal(stk_error_text(), "'7.fake': stage 'plus_one' returned 77, which is no status");
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static stk_status shape_that_lies(void *user, const stk_map_array *src, stk_dtype *dtype, stk_shape *shape)
{
    (void)user;
    *dtype = src->data ? STK_F64 : STK_U8;
    *shape = (stk_shape){.rank = 1, .dim = {STK_ANY}};
    if (src->data) shape->dim[0] = 100;
    return STK_OK;
}

static void what_was_planned_is_held_to(void **state)
{
    (void)state;
    const stk_map_config lying = {.name = "liar", .shape = shape_that_lies, .run = decode};
    stk_dataset *dataset = make_fake(9, NULL);
    stk_loader *loader;
    stk_dataset_apply(dataset, stk_map(&lying), NULL);
    stk_dataset_batch(dataset, 1, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_loader_open(dataset, NULL, &loader), STK_MISMATCH);
    assert_string_equal(stk_error_text(), "'0.fake': stage 'liar' was planned to give u8[?] and gives f64[100]");
    stk_dataset_free(dataset);
}

static void refusals(void **state)
{
    (void)state;
    stk_dataset *dataset = make_fake(9, NULL);
    stk_dataset_apply_to(dataset, "label", stk_map(&turning));
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    assert_string_equal(stk_error_text(),
                        "stage 'turn' does not fit after source 'fake' on field 'label': needs u8 images");
    stk_dataset_free(dataset);
    stk_stage *stage = stk_map(&(stk_map_config){.name = "nothing"});
    assert_int_equal(stage->status, STK_INVALID);
    assert_string_equal(stage->error, "map: the function 'run' is missing");
    stk_stage_free(stage);
    stage = stk_map(&(stk_map_config){.run = decode});
    assert_string_equal(stage->error, "map: a name of 1 to 63 characters is needed");
    stk_stage_free(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_change_nothing),
        cmocka_unit_test(values_are_the_functions),
        cmocka_unit_test(errors_name_the_record),
        cmocka_unit_test(what_was_planned_is_held_to),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
