/* In which order a save reaches the disk: every file is synced, then the folder that names them, then it gets its name,
 * then the run's folder. And what an earlier process left is taken away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "faults/log_calls.h"

#include "base/file.h"
#include "weights/checkpoint.h"

static char run_dir[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(run_dir, sizeof(run_dir), "/tmp/stoker-order-XXXXXX");
    return mkdtemp(run_dir) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return stk_tree_remove(run_dir) == STK_OK ? 0 : -1;
}

static const char *in_run(const char *name)
{
    static char path[4][128];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof(path[i]), "%s/%s", run_dir, name);
    return path[i];
}

static stk_checkpoint_writer *open_writer(void)
{
    stk_checkpoint_writer *writer;
    if (stk_checkpoint_writer_open(run_dir, 2, &writer) != STK_OK) fail_msg("%s", stk_error_text());
    return writer;
}

static void save(stk_checkpoint_writer *writer, int64_t step, bool best)
{
    static float w[8];
    stk_named_tensor tensor = {.name = "w", .view = {stk_desc_make(STK_F32, STK_SHAPE(8)), w}};
    stk_train_state state = {.step = step, .best_epoch = -1};
    stk_checkpoint_report report;
    assert_int_equal(stk_checkpoint_save(writer, &tensor, 1, &state, "name: x\n", best), STK_OK);
    stk_checkpoint_wait(writer, &report);
    if (report.status != STK_OK) fail_msg("%s", report.error);
}

#define FILES                                                                                                          \
    "fsync .saving/model.safetensors\nfsync .saving/optimizer.safetensors\nfsync .saving/state.json\n"                 \
    "fsync .saving/manifest.json\nfsync .saving\n"

static void a_save_is_on_the_disk_before_it_has_its_name(void **state)
{
    (void)state;
    stk_checkpoint_writer *writer = open_writer();
    log_begin(run_dir);
    save(writer, 1, false);
    assert_string_equal(logged.text, FILES "rename .saving step-1\nfsync .\n");
    log_begin(run_dir);
    save(writer, 1, false); /* again: the old one is moved away, and taken away behind the new one */
    assert_string_equal(logged.text, FILES "rename step-1 .old\nrename .saving step-1\nfsync .\n");
    assert_false(stk_path_exists(in_run(".old")));
    log_begin(run_dir);
    save(writer, 2, true); /* whose name is written durably, too */
    char *best = strstr(logged.text, "rename .saving step-2\nfsync .\nfsync .stoker-tmp-");
    assert_non_null(best);
    char *named = strstr(best, "\nrename .stoker-tmp-");
    assert_non_null(named);
    assert_non_null(strstr(named, " best\n"));
    stk_checkpoint_writer_close(writer);
}

/* What was killed leaves a folder without a name; one that was left while this process lives is no obstacle either. */
static void leftovers_are_taken_away(void **state)
{
    (void)state;
    static const char *const names[] = {".saving", ".old", ".old-3"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stk_dir_make(in_run(names[i])), STK_OK);
        char file[32];
        snprintf(file, sizeof(file), "%s/model.safetensors", names[i]);
        assert_int_equal(stk_file_write_durably(in_run(file), "half", 4), STK_OK);
    }
    stk_checkpoint_writer *writer = open_writer();
    for (int i = 0; i < 3; i++)
        assert_false(stk_path_exists(in_run(names[i])));
    for (int i = 0; i < 2; i++)
        assert_int_equal(stk_dir_make(in_run(names[i])), STK_OK);
    save(writer, 7, false);
    for (int i = 0; i < 2; i++)
        assert_false(stk_path_exists(in_run(names[i])));
    assert_int_equal(stk_dir_make(in_run(".old")), STK_OK);
    assert_int_equal(stk_file_write_durably(in_run(".old/model.safetensors"), "half", 4), STK_OK);
    save(writer, 7, false); /* which moves the old one there */
    assert_false(stk_path_exists(in_run(".old")));
    stk_checkpoint_writer_close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_save_is_on_the_disk_before_it_has_its_name, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(leftovers_are_taken_away, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
