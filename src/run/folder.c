/* The run's folder: whose it is, who may use it now, and where its last checkpoint is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"
#include "recipe/build.h"
#include "recipe/data_record.h"
#include "run/state.h"
#include "weights/checkpoint_inside.h"

static const char CHOICES[] = "kernels.txt";

static bool is_same_file(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

static stk_status lock_folder(stk_run *run)
{
    char path[STK_PATH_BYTES];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), run->folder, "lock"));
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return stk_fail(STK_IO, "cannot write to run folder '%s': %s", run->folder, stk_errno_text(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int error = errno;
        close(fd);
        if (error == EWOULDBLOCK)
            return stk_fail(STK_BUSY, "run folder '%s' is in use by another process", run->folder);
        return stk_fail(STK_IO, "cannot lock '%s': %s; name an --out on a file system that has locks", path,
                        stk_errno_text(error));
    }
    /* Of one that another process removed as it ended, a lock is worth nothing. */
    if (!is_same_file(fd, path)) {
        close(fd);
        return stk_fail(STK_BUSY, "run folder '%s' is in use by another process", run->folder);
    }
    if (run->lock_fd >= 0) close(run->lock_fd);
    run->lock_fd = fd;
    return STK_OK;
}

void stk_folder_close(stk_run *run)
{
    char path[STK_PATH_BYTES];
    if (run->lock_fd < 0) return;
    bool has_recipe = stk_path_join(path, sizeof(path), run->folder, "recipe.yaml") != STK_OK || stk_path_exists(path);
    /* The lock file goes where it is ours; folders go as far as this run made them and nothing is in them. */
    if (!has_recipe && stk_path_join(path, sizeof(path), run->folder, "lock") == STK_OK &&
        is_same_file(run->lock_fd, path) && unlink(path) == 0)
        stk_dir_take_back(run->folder, run->folder_there);
    close(run->lock_fd);
    run->lock_fd = -1;
}

/* What a run that was killed before it had a recipe may leave. */
static bool is_leftover(const char *name)
{
    return !strcmp(name, "lock") || stk_temporary_is_name(name);
}

/* A folder without a recipe must be empty, so that nobody's files are taken for a run's. */
static stk_status check_empty(const stk_run *run)
{
    stk_names names;
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_dir_list(run->folder, &names));
    for (size_t i = 0; i < names.n && status == STK_OK; i++)
        if (!is_leftover(names.name[i]))
            status = stk_fail(STK_INVALID, "folder '%s' holds '%s' but no run; choose another --out", run->folder,
                              names.name[i]);
    stk_names_free(&names);
    return status;
}

static bool has_work(const stk_run *run)
{
    char path[STK_PATH_BYTES];
    int64_t step;
    if (stk_path_join(path, sizeof(path), run->folder, "result.json") == STK_OK && stk_path_exists(path)) return true;
    return stk_checkpoint_list(run->folder, &step, 1) > 0;
}

/* Whether a run wrote the recipe that lies there: the lock comes before it. */
static bool is_run(const stk_run *run)
{
    char recipe[STK_PATH_BYTES], lock[STK_PATH_BYTES];
    if (stk_path_join(recipe, sizeof(recipe), run->folder, "recipe.yaml") != STK_OK || !stk_path_exists(recipe))
        return false;
    return (stk_path_join(lock, sizeof(lock), run->folder, "lock") == STK_OK && stk_path_exists(lock)) || has_work(run);
}

static stk_status check_recipe(stk_run *run, const char *path)
{
    stk_recipe *before = NULL;
    stk_text differences = {0};
    stk_status status = STK_OK;
    STK_TRY(stk_recipe_read(path, NULL, 0, &before));
    STK_TRY(stk_build_fill_vocabulary(before, false));
    if (strcmp(before->name, run->recipe->name))
        STK_TRY(stk_fail(STK_MISMATCH, "folder '%s' belongs to another run, '%s'; choose another --out", run->folder,
                         before->name));
    if (run->options.resume) run->epochs_before = before->epochs;
    if (stk_recipe_compare(before, run->recipe, &differences) == 0) goto done;
    if (run->options.resume)
        STK_TRY(stk_fail(
            STK_MISMATCH,
            "cannot resume '%s', the recipe has changed: %s; take that back, or train again with another --out",
            run->folder, stk_text_get(&differences)));
    STK_TRY(stk_fail(STK_MISMATCH,
                     "folder '%s' belongs to a run with another recipe: %s; choose another --out, or remove it",
                     run->folder, stk_text_get(&differences)));
done:
    stk_text_free(&differences);
    stk_recipe_free(before);
    return status;
}

stk_status stk_folder_move_aside(stk_run *run, char previous[STK_PATH_BYTES])
{
    char name[STK_PATH_BYTES];
    if (snprintf(name, sizeof(name), "%s.previous", run->folder) >= STK_PATH_BYTES)
        return stk_fail(STK_INVALID, "path '%.60s...' is too long", run->folder);
    STK_RETURN_IF_ERROR(stk_rename_aside(run->folder, name, previous));
    STK_RETURN_IF_ERROR(stk_dir_make_new(run->folder, &run->folder_there));
    return lock_folder(run);
}

bool stk_folder_find_previous(const stk_run *run, char previous[STK_PATH_BYTES])
{
    char next[STK_PATH_BYTES];
    previous[0] = 0;
    int n = snprintf(next, sizeof(next), "%s.previous", run->folder);
    for (int i = 2; n > 0 && n < STK_PATH_BYTES && stk_path_exists(next); i++) {
        if (stk_path_is_dir(next)) memcpy(previous, next, (size_t)n + 1);
        n = snprintf(next, sizeof(next), "%s.previous-%d", run->folder, i);
    }
    return previous[0] != 0;
}

stk_status stk_folder_open(stk_run *run, char checkpoint[STK_PATH_BYTES], bool *has_earlier, stk_text *warnings)
{
    char path[STK_PATH_BYTES];
    size_t n = strlen(run->folder);
    checkpoint[0] = 0;
    *has_earlier = false;
    while (n > 1 && run->folder[n - 1] == '/')
        run->folder[--n] = 0;
    STK_RETURN_IF_ERROR(stk_dir_make_new(run->folder, &run->folder_there));
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), run->folder, "recipe.yaml"));
    /* Somebody's folder gets not even a lock file, and a recipe that somebody wrote there is not replaced. */
    if (!is_run(run)) STK_RETURN_IF_ERROR(check_empty(run));
    stk_status status = lock_folder(run);
    if (status != STK_OK) stk_dir_take_back(run->folder, run->folder_there);
    STK_RETURN_IF_ERROR(status);
    STK_RETURN_IF_ERROR(stk_checkpoint_restore_renamed(run->folder));
    if (!stk_path_exists(path)) return STK_OK;
    /* A run that failed before its first checkpoint is no reason to refuse the recipe that mends it. */
    if (!has_work(run)) return STK_OK;
    STK_RETURN_IF_ERROR(check_recipe(run, path));
    *has_earlier = !run->options.resume;
    if (*has_earlier) return STK_OK;
    status = stk_checkpoint_find(run->folder, false, checkpoint, STK_PATH_BYTES, warnings);
    if (status == STK_OK) return STK_OK;
    checkpoint[0] = 0;
    /* Checkpoints that are all damaged are no reason to throw them away in silence. */
    if (status == STK_CORRUPT)
        return stk_fail(STK_CORRUPT, "cannot resume '%s', no checkpoint is whole: %s", run->folder,
                        stk_text_get(warnings));
    return status == STK_NOT_FOUND ? STK_OK : status;
}

stk_status stk_folder_check_data(const stk_run *run)
{
    stk_data_record *record = NULL;
    char now[STK_COUNT_TEXT], before[STK_COUNT_TEXT];
    stk_status status = stk_data_record_read(run->folder, &record);
    if (status == STK_NO_MEMORY) return status;
    int64_t n = stk_dataset_count(run->train), n_before = record ? stk_data_record_count(record, STK_PART_TRAIN) : 0;
    stk_data_record_free(record);
    if (n_before == 0 || n == n_before) return STK_OK;
    return stk_fail(
        STK_MISMATCH,
        "cannot resume '%s', the data have changed: %s samples to train on, where the run has had %s; bring "
        "them back, or train again with another --out",
        run->folder, stk_count_text(n, now), stk_count_text(n_before, before));
}

/* data.json; none where the recipe's data cannot be recorded. */
static stk_status write_record(const stk_run *run)
{
    char path[STK_PATH_BYTES];
    const stk_dataset *const part[STK_N_PARTS] = {run->train, run->valid, run->test};
    stk_text text = {0};
    stk_status status;
    STK_TRY(stk_path_join(path, sizeof(path), run->folder, STK_DATA_RECORD_NAME));
    STK_TRY(stk_data_record_print(run->recipe, part, &text));
    if (text.n > 0)
        STK_TRY(stk_file_write_durably(path, text.data, text.n));
    else
        (void)unlink(path);
done:
    stk_text_free(&text);
    return status;
}

/* kernels.txt; none where no kernel was chosen by timing. */
static stk_status write_choices(const stk_run *run)
{
    char path[STK_PATH_BYTES];
    stk_text text = {0};
    stk_status status;
    STK_TRY(stk_path_join(path, sizeof(path), run->folder, CHOICES));
    stk_trainer_print_choices(run->trainer, &text);
    STK_TRY(stk_text_status(&text));
    if (text.n > 0)
        STK_TRY(stk_file_write_durably(path, text.data, text.n));
    else
        (void)unlink(path);
done:
    stk_text_free(&text);
    return status;
}

stk_status stk_folder_read_choices(const stk_run *run)
{
    char path[STK_PATH_BYTES];
    stk_text text = {0};
    uint8_t *file = NULL;
    size_t capacity = 0, n = 0;
    stk_status status;
    STK_TRY(stk_path_join(path, sizeof(path), run->folder, CHOICES));
    if (!stk_path_exists(path)) goto done;
    STK_TRY(stk_file_read(path, &file, &capacity, &n));
    stk_text_add_bytes(&text, file, n);
    STK_TRY(stk_text_status(&text));
    status = stk_trainer_keep_choices(run->trainer, stk_text_get(&text));
done:
    free(file);
    stk_text_free(&text);
    return status;
}

stk_status stk_folder_write_recipe(const stk_run *run)
{
    char path[STK_PATH_BYTES];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), run->folder, "recipe.yaml"));
    STK_RETURN_IF_ERROR(stk_file_write_durably(path, run->recipe_text.data, run->recipe_text.n));
    STK_RETURN_IF_ERROR(write_choices(run));
    return write_record(run);
}

void stk_folder_remove_recipe(const stk_run *run)
{
    static const char *const names[] = {"recipe.yaml", STK_DATA_RECORD_NAME, CHOICES};
    char path[STK_PATH_BYTES];
    for (int i = 0; i < 3; i++)
        if (stk_path_join(path, sizeof(path), run->folder, names[i]) == STK_OK) (void)unlink(path);
}
