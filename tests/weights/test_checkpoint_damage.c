/* Small checkpoints of every dtype with every bit flipped and every cut made, and the rarer ways for a save to fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "weights/checkpoint.h"
#include "weights/checkpoint_io.h"

enum { N_TENSORS = 5 };

typedef struct model {
    double d[2];
    uint8_t mask[3];
    int64_t n;
    float weight[6], velocity[6];
    stk_named_tensor tensor[N_TENSORS];
} model;

/* A negative step leaves all elements 0. */
static void init_model(model *m, int64_t step)
{
    memset(m, 0, sizeof(*m));
    m->tensor[0] = (stk_named_tensor){.name = "d", .view = {stk_desc_make(STK_F64, STK_SHAPE(2)), m->d}};
    m->tensor[1] = (stk_named_tensor){.name = "mask", .view = {stk_desc_make(STK_U8, STK_SHAPE(3)), m->mask}};
    m->tensor[2] = (stk_named_tensor){.name = "n", .view = {stk_desc_make(STK_I64, (stk_shape){0}), &m->n}};
    m->tensor[3] = (stk_named_tensor){.name = "w", .view = {stk_desc_make(STK_F32, STK_SHAPE(2, 3)), m->weight}};
    m->tensor[4] =
        (stk_named_tensor){.name = "w.velocity", .view = {stk_desc_make(STK_F32, STK_SHAPE(2, 3)), m->velocity}};
    if (step < 0) return;
    for (int i = 0; i < 6; i++)
        m->velocity[i] = -(m->weight[i] = (float)(step * 6 + i) / 3);
    m->weight[0] = -0.0f;
    m->weight[1] = NAN;
    m->weight[2] = 1e-42f; /* subnormal */
    m->d[0] = (double)step / 3;
    m->d[1] = -INFINITY;
    m->n = INT64_MIN + step;
    memcpy(m->mask, "\0\xff\x80", 3);
}

static stk_train_state make_state(int64_t step)
{
    return (stk_train_state){.step = step,
                             .i_batch = 17,
                             .epoch_loss_sum = 1.0 / 3,
                             .epoch_correct = 4503599627370497.0,
                             .epoch_top5 = 5e-324,
                             .best_value = INFINITY,
                             .best_epoch = -1,
                             .seed = UINT64_MAX - 4};
}

static char run_dir[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(run_dir, sizeof(run_dir), "/tmp/stoker-checkpoint-XXXXXX");
    return mkdtemp(run_dir) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    stk_checkpoint_fault = NULL;
    return stk_tree_remove(run_dir) == STK_OK ? 0 : -1;
}

static void in_run_dir(char out[4096], const char *name)
{
    assert_int_equal(stk_path_join(out, 4096, run_dir, name), STK_OK);
}

static stk_checkpoint_writer *open_writer(void)
{
    stk_checkpoint_writer *writer;
    if (stk_checkpoint_writer_open(run_dir, 2, &writer) != STK_OK) fail_msg("%s", stk_error_text());
    return writer;
}

static stk_status save(stk_checkpoint_writer *writer, int64_t step, stk_checkpoint_report *report)
{
    model m;
    stk_train_state state = make_state(step);
    init_model(&m, step);
    assert_int_equal(stk_checkpoint_save(writer, m.tensor, N_TENSORS, &state, "batch: 4\n\"\xc3\xa9\"", false), STK_OK);
    stk_checkpoint_wait(writer, report);
    return report->status;
}

static void save_well(stk_checkpoint_writer *writer, int64_t step)
{
    stk_checkpoint_report report;
    if (save(writer, step, &report) != STK_OK) fail_msg("%s", report.error);
}

/* Loads and compares every bit, so that a damaged one that loads is a failure here too. Returns the step, or -1. */
static int64_t load(const char *path)
{
    model m, expected;
    stk_train_state state, expected_state;
    init_model(&m, -1);
    if (stk_checkpoint_load(path, m.tensor, N_TENSORS, true, &state, NULL) != STK_OK) return -1;
    init_model(&expected, state.step);
    expected_state = make_state(state.step);
    assert_memory_equal(&m, &expected, offsetof(model, tensor));
    assert_memory_equal(&state, &expected_state, sizeof(state));
    return state.step;
}

static int64_t load_newest(void)
{
    char path[4096];
    if (stk_checkpoint_find(run_dir, false, path, sizeof(path), NULL) != STK_OK) return -1;
    return load(path);
}

/* --- damage --- */

static bool loads_with(const char *path, const uint8_t *data, size_t n)
{
    char dir[4096];
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    close(fd);
    in_run_dir(dir, "step-1");
    return load(dir) == 1;
}

/* may_load: a flip may leave the meaning alone, as in the spaces of the manifest, which has no checksum itself. */
static void damage_file(const char *name, bool may_load)
{
    char path[4096];
    uint8_t *data = NULL;
    size_t capacity = 0, n;
    in_run_dir(path, name);
    assert_int_equal(stk_file_read(path, &data, &capacity, &n), STK_OK);
    for (size_t i = 0; i < 8 * n; i++) {
        data[i / 8] ^= (uint8_t)(1 << i % 8);
        if (loads_with(path, data, n) && !may_load) fail_msg("'%s' loads with bit %zu flipped", name, i);
        data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t cut = 0; cut < n; cut++)
        if (loads_with(path, data, cut)) fail_msg("'%s' loads when cut to %zu bytes", name, cut);
    assert_true(loads_with(path, data, n));
    free(data);
}

static void every_damage_is_noticed(void **state)
{
    (void)state;
    stk_checkpoint_writer *writer = open_writer();
    save_well(writer, 1);
    stk_checkpoint_writer_close(writer);
    damage_file("step-1/model.safetensors", false);
    damage_file("step-1/optimizer.safetensors", false);
    damage_file("step-1/state.json", false);
    damage_file("step-1/manifest.json", true);
}

/* --- saving the same step again --- */

static int n_calls, fail_at, fail_with;

static int fail_one_call(const char *call, const char *path)
{
    (void)call;
    (void)path;
    return n_calls++ == fail_at ? fail_with : 0;
}

static void saving_a_step_again_may_fail(void **state)
{
    (void)state;
    stk_checkpoint_report report;
    stk_checkpoint_writer *writer = open_writer();
    save_well(writer, 3); /* the only one, which goes to the side while the new one takes its place */
    stk_status status = STK_IO;
    for (fail_at = 0, fail_with = EIO; status != STK_OK; fail_at++) {
        n_calls = 0;
        stk_checkpoint_fault = fail_one_call;
        status = save(writer, 3, &report);
        stk_checkpoint_fault = NULL;
        assert_int_equal(load_newest(), 3);
    }
    assert_true(fail_at > 20);
    stk_checkpoint_writer_close(writer);
}

static void interrupted_writes_are_repeated(void **state)
{
    (void)state;
    stk_checkpoint_writer *writer = open_writer();
    fail_at = 2; /* mkdir, open, write */
    fail_with = EINTR;
    n_calls = 0;
    stk_checkpoint_fault = fail_one_call;
    save_well(writer, 1);
    assert_int_equal(load_newest(), 1);
    stk_checkpoint_writer_close(writer);
}

static void a_step_put_aside_comes_back(void **state)
{
    (void)state;
    char path[4096], old[4096];
    stk_checkpoint_writer *writer = open_writer();
    save_well(writer, 5);
    stk_checkpoint_writer_close(writer);
    in_run_dir(path, "step-5");
    in_run_dir(old, ".old");
    assert_int_equal(rename(path, old), 0); /* as a kill between the two renames leaves it */
    assert_int_equal(load_newest(), 5);
    stk_checkpoint_writer_close(open_writer());
    assert_int_equal(load_newest(), 5);
    assert_false(stk_path_exists(old));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_damage_is_noticed),
        TEST(saving_a_step_again_may_fail),
        TEST(interrupted_writes_are_repeated),
        TEST(a_step_put_aside_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
