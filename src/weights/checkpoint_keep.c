/* Which checkpoints stay, and removing the others: of a folder only the files that are a checkpoint's, and no folder
 * that somebody put something else into.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "weights/checkpoint_inside.h"
#include "weights/checkpoint_io.h"
#include "weights/checkpoint_state.h"

enum { SURE = 2 }; /* how many of those that stay are known for whole */
static const char manifest_name[] = "manifest.json";

static bool is_part(const char *name)
{
    for (int i = 0; i < STK_MANIFEST_FILES; i++)
        if (!strcmp(name, stk_manifest_names[i])) return true;
    return !strcmp(name, manifest_name);
}

/* The first name in a checkpoint's folder that is none of its files; "": there is none. */
static stk_status find_foreign(const char *dir, char out[256])
{
    stk_names names;
    out[0] = 0;
    STK_RETURN_IF_ERROR(stk_dir_list(dir, &names));
    for (size_t i = 0; i < names.n && !out[0]; i++)
        if (!is_part(names.name[i])) snprintf(out, 256, "%s", names.name[i]);
    stk_names_free(&names);
    return STK_OK;
}

static stk_status remove_part(const char *dir, const char *name)
{
    char path[4096];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), dir, name));
    if (unlink(path) == 0 || errno == ENOENT) return STK_OK;
    return stk_fail(STK_IO, "cannot remove '%s': %s", path, stk_errno_text(errno));
}

stk_status stk_checkpoint_remove(const char *dir)
{
    char foreign[256];
    struct stat info;
    if (lstat(dir, &info) < 0)
        return errno == ENOENT ? STK_OK : stk_fail(STK_IO, "cannot look at '%s': %s", dir, stk_errno_text(errno));
    if (!S_ISDIR(info.st_mode)) return stk_fail(STK_BUSY, "'%s' is no folder of a checkpoint; move it away", dir);
    STK_RETURN_IF_ERROR(find_foreign(dir, foreign));
    if (foreign[0])
        return stk_fail(STK_BUSY, "cannot remove '%s': it holds '%s', which is no part of a checkpoint; move that away",
                        dir, foreign);
    /* First, so that a half-removed folder never looks like a checkpoint. */
    STK_RETURN_IF_ERROR(remove_part(dir, manifest_name));
    for (int i = 0; i < STK_MANIFEST_FILES; i++)
        STK_RETURN_IF_ERROR(remove_part(dir, stk_manifest_names[i]));
    if (rmdir(dir) < 0) return stk_fail(STK_IO, "cannot remove '%s': %s", dir, stk_errno_text(errno));
    return STK_OK;
}

stk_status stk_checkpoint_move_foreign(const char *from, const char *to)
{
    char name[256], old[4096], new[4096];
    for (;;) {
        STK_RETURN_IF_ERROR(find_foreign(from, name));
        if (!name[0]) return STK_OK;
        STK_RETURN_IF_ERROR(stk_path_join(old, sizeof(old), from, name));
        STK_RETURN_IF_ERROR(stk_path_join(new, sizeof(new), to, name));
        if (rename(old, new) < 0)
            return stk_fail(STK_IO, "cannot move '%s' to '%s': %s", old, new, stk_errno_text(errno));
    }
}

stk_status stk_checkpoint_remove_leftovers(const char *run_dir)
{
    stk_names names;
    stk_status status;
    STK_RETURN_IF_ERROR(stk_dir_list(run_dir, &names));
    status = STK_OK;
    for (size_t i = 0; i < names.n; i++) {
        char path[4096];
        const char *name = names.name[i];
        bool numbered = !strncmp(name, ".old-", 5) && name[5] && name[5 + strspn(name + 5, "0123456789")] == 0;
        if (!numbered && strcmp(name, ".saving") && strcmp(name, ".old")) continue;
        STK_TRY(stk_path_join(path, sizeof(path), run_dir, name));
        status = stk_checkpoint_remove(path);
        /* Nobody needs the name of a retired one: it may stay while somebody still reads it, or put a file there. */
        if (numbered && status == STK_BUSY) status = STK_OK;
        STK_TRY(status);
    }
done:
    stk_names_free(&names);
    return status;
}

/* --- a step that was saved again --- */

bool stk_checkpoint_renamed(const char *run_dir, int64_t *step)
{
    char path[4096], name[64];
    stk_span text = {0};
    stk_train_state state;
    if (stk_path_join(path, sizeof(path), run_dir, ".old/manifest.json") != STK_OK || !stk_path_exists(path))
        return false;
    if (stk_path_join(path, sizeof(path), run_dir, ".old/state.json") != STK_OK) return false;
    bool found = stk_file_load(path, &text) == STK_OK && stk_state_from_json(text, &state, NULL) == STK_OK;
    stk_file_unload(text);
    if (!found) return false;
    *step = state.step;
    snprintf(name, sizeof(name), "step-%lld", (long long)state.step);
    return stk_path_join(path, sizeof(path), run_dir, name) == STK_OK && !stk_path_exists(path);
}

stk_status stk_checkpoint_path(const char *run_dir, int64_t step, char *path, size_t path_bytes)
{
    char name[64];
    int64_t renamed;
    snprintf(name, sizeof(name), "step-%lld", (long long)step);
    STK_RETURN_IF_ERROR(stk_path_join(path, path_bytes, run_dir, name));
    if (stk_path_exists(path) || !stk_checkpoint_renamed(run_dir, &renamed) || renamed != step) return STK_OK;
    return stk_path_join(path, path_bytes, run_dir, ".old");
}

stk_status stk_checkpoint_restore_renamed(const char *run_dir)
{
    char old[4096], path[4096], name[64];
    int64_t step;
    if (!stk_checkpoint_renamed(run_dir, &step)) return STK_OK;
    snprintf(name, sizeof(name), "step-%lld", (long long)step);
    STK_RETURN_IF_ERROR(stk_path_join(old, sizeof(old), run_dir, ".old"));
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), run_dir, name));
    return stk_io_rename(old, path);
}

/* --- the newest ones stay --- */

static bool is_whole(const char *run_dir, int64_t step, stk_checkpoint_known *known)
{
    char path[4096];
    for (int i = 0; i < known->n; i++)
        if (known->step[i] == step) return true;
    if (stk_checkpoint_path(run_dir, step, path, sizeof(path)) != STK_OK || stk_checkpoint_check(path) != STK_OK)
        return false;
    stk_checkpoint_note(known, step);
    return true;
}

void stk_checkpoint_note(stk_checkpoint_known *known, int64_t step)
{
    if (known->n == known->room) {
        int room = 2 * known->room + 16;
        int64_t *grown = realloc(known->step, (size_t)room * sizeof(*grown));
        if (!grown) return; /* It is looked at again. */
        known->step = grown;
        known->room = room;
    }
    known->step[known->n++] = step;
}

static void retire(const char *run_dir, int64_t step)
{
    char path[4096], doomed[4096], foreign[256];
    if (snprintf(path, sizeof(path), "%s/step-%lld", run_dir, (long long)step) >= (int)sizeof(path)) return;
    if (snprintf(doomed, sizeof(doomed), "%s/.old-%lld", run_dir, (long long)step) >= (int)sizeof(doomed)) return;
    if (find_foreign(path, foreign) != STK_OK || foreign[0]) return;
    if (rename(path, doomed) == 0) (void)stk_checkpoint_remove(doomed);
}

void stk_checkpoint_retire(const char *run_dir, int keep, int64_t saved, stk_checkpoint_known *known)
{
    int64_t steps[1024], best = stk_checkpoint_best_step(run_dir);
    int n = stk_checkpoint_list(run_dir, steps, 1024), n_kept = 0;
    /* One of a later step is of a run that this one did not go on with, damaged as a rule. */
    while (n > 0 && steps[n - 1] > saved)
        n--;
    for (int i = n - 1; n > keep && i >= 0; i--) {
        /* Files are read whole for this, so two must do where many are kept. */
        if (n_kept < keep)
            n_kept += n_kept >= SURE || is_whole(run_dir, steps[i], known);
        else if (steps[i] != best)
            retire(run_dir, steps[i]);
    }
}
