/* Each state that a save may be killed in is put in order, and none costs a whole checkpoint; nor do damaged ones, a
 * full disk, or what somebody put into a checkpoint's folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "weights/checkpoint.h"
#include "weights/checkpoint_inside.h"
#include "weights/checkpoint_io.h"

enum { N_WEIGHTS = 100 };

static char run_dir[3000];
static float weight[N_WEIGHTS];
static stk_named_tensor tensor[1];

static const char *in_run(const char *format, ...)
{
    static char path[4][4096];
    static int i;
    va_list list;
    i = (i + 1) % 4;
    int n = snprintf(path[i], sizeof(path[i]), "%s/", run_dir);
    va_start(list, format);
    vsnprintf(path[i] + n, sizeof(path[i]) - (size_t)n, format, list);
    va_end(list);
    return path[i];
}

/* seed tells apart two saves of one step. */
static stk_status save_with(int64_t step, uint64_t seed, char error[512])
{
    stk_checkpoint_writer *writer;
    stk_checkpoint_report report;
    stk_train_state state = {.step = step, .best_value = INFINITY, .best_epoch = -1, .seed = seed};
    if (stk_checkpoint_writer_open(run_dir, 2, &writer) != STK_OK) fail_msg("%s", stk_error_text());
    for (int i = 0; i < N_WEIGHTS; i++)
        weight[i] = (float)step;
    assert_int_equal(stk_checkpoint_save(writer, tensor, 1, &state, "name: x\n", false), STK_OK);
    stk_checkpoint_wait(writer, &report);
    stk_checkpoint_writer_close(writer);
    if (error) snprintf(error, 512, "%s", report.error);
    return report.status;
}

static void save(int64_t step)
{
    assert_int_equal(save_with(step, 0, NULL), STK_OK);
}

/* The step that a run goes on with; its content is that of the step. */
static int64_t newest(uint64_t *seed)
{
    char path[4096];
    stk_train_state state;
    if (stk_checkpoint_find(run_dir, false, path, sizeof(path), NULL) != STK_OK) fail_msg("%s", stk_error_text());
    if (stk_checkpoint_load(path, tensor, 1, true, &state, NULL) != STK_OK) fail_msg("%s", stk_error_text());
    assert_true(weight[0] == (float)state.step && weight[N_WEIGHTS - 1] == (float)state.step);
    if (seed) *seed = state.seed;
    return state.step;
}

static bool has(const char *name)
{
    return stk_path_exists(in_run("%s", name));
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void damage(int64_t step)
{
    assert_int_equal(truncate(in_run("step-%lld/model.safetensors", (long long)step), 20), 0);
}

static void move(const char *from, const char *to)
{
    assert_int_equal(rename(in_run("%s", from), in_run("%s", to)), 0);
}

static void copy_folder(const char *from, const char *to)
{
    char command[9000];
    snprintf(command, sizeof(command), "cp -r '%s' '%s'", in_run("%s", from), in_run("%s", to));
    assert_int_equal(system(command), 0);
}

static int begin(void **state)
{
    (void)state;
    snprintf(run_dir, sizeof(run_dir), "%s/test-checkpoint-states-%ld", STK_BINARY_DIR, (long)getpid());
    tensor[0] = (stk_named_tensor){.name = "weight", .view = {stk_desc_make(STK_F32, STK_SHAPE(N_WEIGHTS)), weight}};
    return stk_tree_remove(run_dir) != STK_OK || stk_dir_make(run_dir) != STK_OK;
}

static int end(void **state)
{
    (void)state;
    stk_checkpoint_fault = NULL;
    return stk_tree_remove(run_dir) == STK_OK ? 0 : -1;
}

/* A run that passed over damaged ones saves behind an earlier step. */
static void a_new_checkpoint_stays_beside_damaged_ones_of_later_steps(void **state)
{
    (void)state;
    save(10);
    copy_folder("step-10", "step-20");
    copy_folder("step-10", "step-30");
    copy_folder("step-10", "step-40");
    for (int64_t step = 20; step <= 40; step += 10)
        damage(step);
    assert_int_equal(newest(NULL), 10);
    save(15);
    assert_true(has("step-15"));
    assert_int_equal(newest(NULL), 15);
    assert_true(has("step-10"));
    save(18);
    assert_int_equal(newest(NULL), 18);
    assert_true(has("step-15") && !has("step-10"));
}

/* Damaged ones do not count among those that are kept. */
static void damaged_ones_take_nobodys_place(void **state)
{
    (void)state;
    save(10);
    save(20);
    damage(20);
    save(30);
    assert_true(has("step-10") && has("step-20") && has("step-30"));
    damage(30);
    assert_int_equal(newest(NULL), 10);
    save(40);
    save(50);
    assert_int_equal(newest(NULL), 50);
    assert_true(has("step-40") && !has("step-10") && !has("step-20") && !has("step-30"));
}

/* Where there is room for fewer, the newest are listed. */
static void the_newest_are_listed(void **state)
{
    (void)state;
    int64_t steps[3] = {-1, -1, -1};
    save(10);
    copy_folder("step-10", "step-20");
    copy_folder("step-10", "step-30");
    assert_int_equal(stk_checkpoint_list(run_dir, steps, 2), 2);
    assert_true(steps[0] == 20 && steps[1] == 30 && steps[2] == -1);
    assert_int_equal(stk_checkpoint_list(run_dir, steps, 3), 3);
    assert_true(steps[0] == 10 && steps[1] == 20 && steps[2] == 30);
}

static void a_step_that_was_being_saved_again_is_found_as_old(void **state)
{
    (void)state;
    char path[4096];
    int64_t steps[4];
    save(10);
    move("step-10", ".old");
    /* Who only reads finds it as it lies. */
    assert_int_equal(newest(NULL), 10);
    assert_int_equal(stk_checkpoint_list(run_dir, steps, 4), 1);
    assert_int_equal(stk_checkpoint_pick(run_dir, "10", path, sizeof(path), NULL), STK_OK);
    assert_int_equal(stk_checkpoint_pick(run_dir, "11", path, sizeof(path), NULL), STK_NOT_FOUND);
    /* Who has the lock gives it its name again. */
    assert_int_equal(stk_checkpoint_restore_renamed(run_dir), STK_OK);
    assert_true(has("step-10") && !has(".old"));
    assert_int_equal(newest(NULL), 10);
}

/* The folder as a kill at each phase of saving step 20 again leaves it; the step that it goes on with. */
static void every_state_of_a_killed_save_is_put_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool saving, part, renamed, placed, doomed;
    } cases[] = {{.name = "nothing done"},
                 {.name = "an empty folder", .saving = true},
                 {.name = "some files", .saving = true, .part = true},
                 {.name = "all files", .saving = true},
                 {.name = "between the renames", .saving = true, .renamed = true},
                 {.name = "after the renames", .renamed = true, .placed = true},
                 {.name = "half removed", .renamed = true, .placed = true, .part = true},
                 {.name = "retired", .doomed = true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t seed;
        begin(NULL);
        save(10);
        save(20);
        if (cases[i].saving && i == 1) assert_int_equal(stk_dir_make(in_run(".saving")), STK_OK);
        if (cases[i].saving && i > 1) copy_folder("step-20", ".saving");
        if (cases[i].saving && cases[i].part) assert_int_equal(unlink(in_run(".saving/manifest.json")), 0);
        if (cases[i].renamed) move("step-20", ".old");
        if (cases[i].placed) copy_folder(".old", "step-20");
        if (cases[i].placed && cases[i].part) assert_int_equal(unlink(in_run(".old/manifest.json")), 0);
        if (cases[i].doomed) move("step-10", ".old-10");
        if (newest(NULL) != 20) fail_msg("%s: goes on with step %d", cases[i].name, (int)newest(NULL));
        /* The step once more, and it is the newer of the two. */
        assert_int_equal(save_with(20, 7, NULL), STK_OK);
        if (newest(&seed) != 20 || seed != 7) fail_msg("%s: the step is not saved again", cases[i].name);
        assert_false(has(".saving") || has(".old") || has(".old-10"));
        assert_true(has("step-10") == !cases[i].doomed);
        save(30);
        assert_int_equal(newest(NULL), 30);
        assert_true(has("step-20"));
    }
}

static int no_room(const char *call, const char *path)
{
    (void)path;
    return !strcmp(call, "write") ? ENOSPC : 0;
}

static void a_full_disk_keeps_what_was_saved(void **state)
{
    (void)state;
    char error[512];
    save(10);
    save(20);
    stk_checkpoint_fault = no_room;
    for (int64_t step = 30; step <= 50; step += 10) {
        assert_int_equal(save_with(step, 0, error), STK_IO);
        assert_non_null(strstr(error, "was not saved"));
        assert_non_null(strstr(error, "no space left on device"));
        assert_true(has("step-10") && has("step-20") && !has(".saving"));
    }
    stk_checkpoint_fault = NULL;
    assert_int_equal(newest(NULL), 20);
    save(60);
    assert_int_equal(newest(NULL), 60);
}

static void what_somebody_put_into_a_checkpoint_stays(void **state)
{
    (void)state;
    save(10);
    put(in_run("step-10/notes.txt"), "mine");
    assert_int_equal(stk_dir_make(in_run(".old-plans")), STK_OK);
    put(in_run(".old-plans/x"), "mine");
    save(20);
    save(30);
    save(40);
    assert_true(has("step-10/notes.txt") && has("step-10/model.safetensors") && !has("step-20"));
    assert_true(has(".old-plans/x"));
    /* A step that is saved again. */
    put(in_run("step-40/notes.txt"), "mine");
    save(40);
    assert_true(has("step-40/notes.txt") && !has(".old"));
    assert_int_equal(newest(NULL), 40);
}

static void nothing_is_written_through_a_link(void **state)
{
    (void)state;
    save(10);
    assert_int_equal(stk_dir_make(in_run("elsewhere")), STK_OK);
    put(in_run("elsewhere/model.safetensors"), "mine");
    assert_int_equal(symlink(in_run("elsewhere"), in_run(".saving")), 0);
    stk_checkpoint_writer *writer = NULL;
    assert_int_equal(stk_checkpoint_writer_open(run_dir, 2, &writer), STK_BUSY);
    assert_true(has("elsewhere/model.safetensors"));
    assert_int_equal(newest(NULL), 10);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_new_checkpoint_stays_beside_damaged_ones_of_later_steps),
        CASE(damaged_ones_take_nobodys_place),
        CASE(the_newest_are_listed),
        CASE(a_step_that_was_being_saved_again_is_found_as_old),
        CASE(every_state_of_a_killed_save_is_put_in_order),
        CASE(a_full_disk_keeps_what_was_saved),
        CASE(what_somebody_put_into_a_checkpoint_stays),
        CASE(nothing_is_written_through_a_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
