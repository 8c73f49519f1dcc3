/* Checkpoints are whole or absent: round trips, every system call failing in turn, damaged files, kills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "weights/checkpoint.h"
#include "weights/checkpoint_io.h"

enum { N_WEIGHTS = 1000, N_TENSORS = 4 };

typedef struct fixture {
    char dir[4096];
    float weight[N_WEIGHTS], velocity[N_WEIGHTS], bias[7];
    int64_t count;
    stk_named_tensor tensor[N_TENSORS];
    bool in_place; /* how it is saved */
} fixture;

static fixture *make_fixture(const char *name)
{
    fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "%s/test-checkpoint-%s-%ld", STK_BINARY_DIR, name, (long)getpid());
    assert_int_equal(stk_tree_remove(f->dir), STK_OK);
    assert_int_equal(stk_dir_make(f->dir), STK_OK);
    f->tensor[0] = (stk_named_tensor){.name = "bias", .view = {stk_desc_make(STK_F32, STK_SHAPE(7)), f->bias}};
    f->tensor[1] = (stk_named_tensor){.name = "count", .view = {stk_desc_make(STK_I64, (stk_shape){0}), &f->count}};
    f->tensor[2] =
        (stk_named_tensor){.name = "weight", .view = {stk_desc_make(STK_F32, STK_SHAPE(10, 100)), f->weight}};
    f->tensor[3] = (stk_named_tensor){.name = "weight.velocity",
                                      .view = {stk_desc_make(STK_F32, STK_SHAPE(10, 100)), f->velocity}};
    return f;
}

static void free_fixture(fixture *f)
{
    assert_int_equal(stk_tree_remove(f->dir), STK_OK);
    free(f);
}

/* Content that tells the step. */
static void fill(fixture *f, int64_t step)
{
    for (int i = 0; i < N_WEIGHTS; i++) {
        f->weight[i] = (float)step + (float)i / 3;
        f->velocity[i] = -(float)step * (float)i;
    }
    for (int i = 0; i < 7; i++)
        f->bias[i] = (float)(step * 7 + i);
    f->count = step;
}

static stk_train_state state_at(int64_t step)
{
    return (stk_train_state){.step = step,
                             .epoch = step / 10,
                             .i_batch = step % 10,
                             .epoch_loss_sum = 1.0 / 3 * (double)step,
                             .epoch_correct = 5,
                             .best_value = INFINITY,
                             .best_epoch = -1,
                             .seed = UINT64_MAX - 1};
}

static void save(fixture *f, stk_checkpoint_writer *writer, int64_t step, bool best, stk_checkpoint_report *report)
{
    stk_train_state state = state_at(step);
    fill(f, step);
    if (f->in_place)
        assert_int_equal(stk_checkpoint_save_in_place(writer, f->tensor, N_TENSORS, &state, "name: x\n", best), STK_OK);
    else
        assert_int_equal(stk_checkpoint_save(writer, f->tensor, N_TENSORS, &state, "name: x\n", best), STK_OK);
    fill(f, -1); /* The snapshot is taken, or written: later steps must not show. */
    stk_checkpoint_wait(writer, report);
    assert_true(report->finished);
}

static stk_checkpoint_writer *open_writer(const fixture *f)
{
    stk_checkpoint_writer *writer = NULL;
    if (stk_checkpoint_writer_open(f->dir, 2, &writer) != STK_OK) fail_msg("%s", stk_error_text());
    return writer;
}

static void save_ok(fixture *f, int64_t step, bool best)
{
    stk_checkpoint_report report;
    stk_checkpoint_writer *writer = open_writer(f);
    save(f, writer, step, best, &report);
    if (report.status != STK_OK) fail_msg("%s", report.error);
    stk_checkpoint_writer_close(writer);
}

/* Finds, loads and compares every byte. Returns the step. */
static int64_t load_newest(fixture *f, bool best)
{
    char path[4096], *recipe = NULL;
    stk_train_state state;
    if (stk_checkpoint_find(f->dir, best, path, sizeof(path), NULL) != STK_OK) fail_msg("%s", stk_error_text());
    if (stk_checkpoint_load(path, f->tensor, N_TENSORS, true, &state, &recipe) != STK_OK)
        fail_msg("%s", stk_error_text());
    fixture *want = calloc(1, sizeof(*want));
    assert_non_null(want);
    fill(want, state.step);
    assert_memory_equal(f->weight, want->weight, sizeof(want->weight));
    assert_memory_equal(f->velocity, want->velocity, sizeof(want->velocity));
    assert_memory_equal(f->bias, want->bias, sizeof(want->bias));
    assert_int_equal(f->count, want->count);
    free(want);
    stk_train_state expected = state_at(state.step);
    assert_true(state.epoch_loss_sum == expected.epoch_loss_sum);
    assert_true(isinf(state.best_value));
    assert_true(state.seed == expected.seed && state.epoch == expected.epoch && state.i_batch == expected.i_batch);
    assert_string_equal(recipe, "name: x\n");
    free(recipe);
    return state.step;
}

static void what_is_saved_is_loaded(void **state)
{
    (void)state;
    fixture *f = make_fixture("round");
    char path[4096];
    assert_int_equal(stk_checkpoint_find(f->dir, false, path, sizeof(path), NULL), STK_NOT_FOUND);
    save_ok(f, 7, false);
    assert_int_equal(load_newest(f, false), 7);
    f->in_place = true;
    save_ok(f, 7, false); /* The same step again replaces it. */
    assert_int_equal(load_newest(f, false), 7);
    f->in_place = false;
    free_fixture(f);
}

static bool has_step(const fixture *f, int64_t step)
{
    char path[5000];
    snprintf(path, sizeof(path), "%s/step-%lld", f->dir, (long long)step);
    return stk_path_is_dir(path);
}

static void the_last_two_and_the_best_stay(void **state)
{
    (void)state;
    fixture *f = make_fixture("keep");
    for (int64_t step = 1; step <= 12; step++)
        save_ok(f, step, step == 3);
    assert_int_equal(load_newest(f, false), 12);
    assert_int_equal(load_newest(f, true), 3);
    for (int64_t step = 1; step <= 12; step++)
        assert_int_equal(has_step(f, step), step == 3 || step >= 11);
    free_fixture(f);
}

/* --- faults --- */

static int n_calls, failing_call, fault_errno;

static int fail_one(const char *call, const char *path)
{
    (void)call;
    (void)path;
    return ++n_calls == failing_call ? fault_errno : 0;
}

static void every_call_may_fail(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO};
    for (int e = 0; e < 2; e++) {
        fixture *f = make_fixture("fault");
        f->in_place = e == 1;
        save_ok(f, 10, false);
        int64_t newest = 10;
        bool failed = true;
        int n_failures = 0;
        stk_checkpoint_writer *writer = open_writer(f);
        for (failing_call = 1; failed; failing_call++) {
            stk_checkpoint_report report;
            int64_t step = 10 + failing_call;
            n_calls = 0;
            fault_errno = errors[e];
            stk_checkpoint_fault = fail_one;
            save(f, writer, step, false, &report);
            stk_checkpoint_fault = NULL;
            failed = report.status != STK_OK;
            n_failures += failed;
            if (failed) assert_non_null(strstr(report.error, f->dir));
            assert_true(report.is_there == has_step(f, step));
            if (failed) assert_non_null(strstr(report.error, report.is_there ? "was saved, but" : "was not saved: "));
            /* Whole or absent: the old one, or, where only the last sync failed, the new one. */
            int64_t loaded = load_newest(f, false);
            assert_true(loaded == newest || loaded == step);
            newest = loaded;
        }
        assert_true(n_failures > 10);
        assert_true(n_calls < failing_call);
        stk_checkpoint_writer_close(writer);
        free_fixture(f);
    }
}

static void a_failure_is_followed_by_success(void **state)
{
    (void)state;
    fixture *f = make_fixture("retry");
    stk_checkpoint_report report;
    stk_checkpoint_writer *writer = open_writer(f);
    failing_call = 5;
    n_calls = 0;
    fault_errno = ENOSPC;
    stk_checkpoint_fault = fail_one;
    save(f, writer, 1, false, &report);
    assert_int_equal(report.status, STK_IO);
    assert_non_null(strstr(report.error, "no space left on device"));
    stk_checkpoint_fault = NULL;
    save(f, writer, 2, false, &report);
    assert_int_equal(report.status, STK_OK);
    assert_int_equal(load_newest(f, false), 2);
    stk_checkpoint_writer_close(writer);
    free_fixture(f);
}

static void what_is_there_is_not_called_lost(void **state)
{
    (void)state;
    fixture *f = make_fixture("best");
    char best[4096];
    stk_checkpoint_report report;
    stk_checkpoint_writer *writer = open_writer(f);
    assert_int_equal(stk_path_join(best, sizeof(best), f->dir, "best"), STK_OK);
    assert_int_equal(mkdir(best, 0777), 0);
    save(f, writer, 1, true, &report);
    assert_int_not_equal(report.status, STK_OK);
    assert_true(report.is_there && has_step(f, 1));
    assert_non_null(strstr(report.error, "step 1 was saved, but it is not noted as the best: "));
    assert_int_equal(rmdir(best), 0);
    stk_checkpoint_writer_close(writer);
    free_fixture(f);
}

/* --- damage --- */

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void assert_passed_over(fixture *f, const char *name)
{
    char path[4096];
    stk_text warnings = {0};
    assert_int_equal(stk_checkpoint_find(f->dir, false, path, sizeof(path), &warnings), STK_OK);
    if (!strstr(path, "step-1")) fail_msg("took '%s' with a damaged %s", path, name);
    /* A wrong number in the manifest makes another file look damaged. */
    bool is_named = strstr(stk_text_get(&warnings), name) || !strcmp(name, "manifest.json");
    if (!is_named || !strstr(stk_text_get(&warnings), "step-2"))
        fail_msg("'%s' does not name %s", stk_text_get(&warnings), name);
    stk_text_free(&warnings);
}

static void damage_is_found_and_named(void **state)
{
    (void)state;
    static const char *const names[] = {"model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"};
    fixture *f = make_fixture("damage");
    save_ok(f, 1, false);
    save_ok(f, 2, false);
    for (int i = 0; i < 4; i++) {
        char path[5000];
        uint8_t *data = NULL;
        size_t capacity = 0, n = 0;
        snprintf(path, sizeof(path), "%s/step-2/%s", f->dir, names[i]);
        assert_int_equal(stk_file_read(path, &data, &capacity, &n), STK_OK);
        for (size_t k = 0; k < 40; k++) {
            size_t at = n * k / 40;
            /* In the manifest white space and the like may change without harm, so only its numbers are hit. */
            if (i == 3 && (data[at] < '0' || data[at] > '9')) continue;
            data[at] ^= 1;
            write_file(path, data, n);
            assert_passed_over(f, names[i]);
            data[at] ^= 1;
            write_file(path, data, at);
            assert_passed_over(f, names[i]);
        }
        assert_int_equal(unlink(path), 0);
        assert_passed_over(f, names[i]);
        write_file(path, data, n);
        free(data);
    }
    assert_int_equal(load_newest(f, false), 2);
    free_fixture(f);
}

static void another_model_is_refused(void **state)
{
    (void)state;
    fixture *f = make_fixture("mismatch");
    char path[4096];
    save_ok(f, 1, false);
    fill(f, 99);
    assert_int_equal(stk_checkpoint_find(f->dir, false, path, sizeof(path), NULL), STK_OK);
    stk_named_tensor other[N_TENSORS];
    memcpy(other, f->tensor, sizeof(other));
    other[2].view.desc.shape = STK_SHAPE(100, 10);
    assert_int_equal(stk_checkpoint_load(path, other, N_TENSORS, true, NULL, NULL), STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "tensor 'weight' is f32[10,100], the model has f32[100,10]"));
    assert_non_null(strstr(stk_error_text(), "model.safetensors"));
    memcpy(other, f->tensor, sizeof(other));
    other[0].name = "scale";
    assert_int_equal(stk_checkpoint_load(path, other, N_TENSORS, true, NULL, NULL), STK_MISMATCH);
    assert_int_equal(stk_checkpoint_load(path, f->tensor, N_TENSORS - 1, true, NULL, NULL), STK_MISMATCH);
    /* Nothing was changed by any of them. */
    assert_true(f->weight[0] == 99 && f->bias[0] == 99 * 7);
    free_fixture(f);
}

/* --- kills --- */

static int64_t fatal_call;

static int die_at_call(const char *call, const char *path)
{
    (void)call;
    (void)path;
    while (++n_calls == fatal_call)
        (void)kill(getpid(), SIGKILL);
    return 0;
}

/* Saves until it is killed: at that call of the system. */
static void save_until(fixture *f, int64_t first, int64_t i_call)
{
    stk_checkpoint_writer *writer = open_writer(f);
    fatal_call = i_call;
    n_calls = 0;
    stk_checkpoint_fault = die_at_call;
    for (int64_t step = first; step < first + 20; step++) {
        stk_checkpoint_report report;
        f->in_place = step % 2;
        save(f, writer, step, step % 3 == 0, &report);
        if (report.status != STK_OK) _exit(1);
        if (step % 4 == 0) save(f, writer, step, false, &report); /* again, which moves the old one away */
        if (report.status != STK_OK) _exit(1);
    }
    _exit(2);
}

static void kills_leave_a_whole_one(void **state)
{
    (void)state;
    fixture *f = make_fixture("kill");
    save_ok(f, 1, false);
    int64_t newest = 1;
    /* Each of a save's calls, and some of later saves. */
    for (int i = 1; i <= 100; i += i < 40 ? 1 : 7) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) save_until(f, newest + 1, i);
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
        int64_t loaded = load_newest(f, false);
        assert_true(loaded >= newest);
        newest = loaded;
    }
    assert_true(newest > 10);
    free_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_leave_a_whole_one), /* first: it forks, and no thread has run yet */
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(the_last_two_and_the_best_stay),
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(a_failure_is_followed_by_success),
        cmocka_unit_test(what_is_there_is_not_called_lost),
        cmocka_unit_test(damage_is_found_and_named),
        cmocka_unit_test(another_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
