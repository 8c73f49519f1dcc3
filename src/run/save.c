/* The saves of a run. One is asked for between steps and written by a thread; what became of it is seen at a later
 * step. A failed one is a warning, the ones behind it are counted; it is tried again at the next step that is due, and
 * at the end, where it fails the run.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "run/beats.h"
#include "run/state.h"

static void warn_failed(stk_run *run)
{
    char text[sizeof(run->save_error) + 160];
    run->n_failed_saves++;
    if (run->failing_told || run->is_last_try) return;
    run->failing_told = true;
    bool is_full = strstr(run->save_error, stk_errno_text(ENOSPC)) || strstr(run->save_error, stk_errno_text(EDQUOT));
    snprintf(text, sizeof(text), "%s; the run goes on and tries again: failures from now on are counted, not told%s",
             run->save_error, is_full ? "; free some room" : "");
    stk_run_warn(run, text);
}

static void take_report(stk_run *run, const stk_checkpoint_report *report)
{
    if (!report->finished) return;
    run->is_saving = false;
    run->save_status = report->status;
    if (report->is_there) snprintf(run->saved, sizeof(run->saved), "%s", report->path);
    if (report->status != STK_OK) {
        snprintf(run->save_error, sizeof(run->save_error), "%s", report->error);
        run->saved_state.step = -1; /* Whatever was to be saved is not, or not wholly. */
        warn_failed(run);
        return;
    }
    run->failing_told = false;
    stk_train_event event = {.kind = STK_EVENT_SAVED, .text = run->saved, .step = report->step};
    stk_run_emit(run, &event);
}

static void wait_for_save(stk_run *run)
{
    stk_checkpoint_report report;
    if (!run->is_saving) return;
    stk_checkpoint_wait(run->writer, &report);
    take_report(run, &report);
}

void stk_run_save_look(stk_run *run)
{
    stk_checkpoint_report report;
    if (!run->is_saving) return;
    stk_checkpoint_poll(run->writer, &report);
    take_report(run, &report);
}

/* Failing to take the snapshot counts as a save that failed. */
void stk_run_save(stk_run *run, bool best, bool steps_follow)
{
    const stk_named_tensor *tensors;
    size_t n_tensors;
    stk_train_state state;
    stk_beat_phase(run->beat, STK_PHASE_saving); /* The next batch or evaluation sets another. */
    wait_for_save(run);
    stk_trainer_get_state(run->trainer, &state);
    stk_status status = stk_trainer_tensors(run->trainer, &tensors, &n_tensors);
    if (status == STK_OK)
        status = (steps_follow && run->copy_bytes ? stk_checkpoint_save : stk_checkpoint_save_in_place)(
            run->writer, tensors, n_tensors, &state, run->recipe_text.data, best);
    run->is_saving = status == STK_OK;
    if (status == STK_OK) {
        run->saved_state = state;
        return;
    }
    run->save_status = status;
    snprintf(run->save_error, sizeof(run->save_error), "%s", stk_error_text());
    warn_failed(run);
}

/* --- at the end --- */

static bool is_saved(const stk_run *run)
{
    stk_train_state state;
    stk_trainer_get_state(run->trainer, &state);
    return run->saved_state.step == state.step && run->saved_state.epoch == state.epoch;
}

/* True where the parameters are sound, so that saving them is worth while although the run ends here. */
static bool is_worth_saving(stk_status status)
{
    return status == STK_OK || status == STK_INTERRUPTED || status == STK_IO || status == STK_CORRUPT ||
           status == STK_NOT_FOUND || status == STK_NO_ROW || status == STK_LOST;
}

void stk_run_save_end(stk_run *run, stk_status status)
{
    stk_train_state state;
    stk_beat_phase(run->beat, STK_PHASE_saving);
    wait_for_save(run);
    stk_trainer_get_state(run->trainer, &state);
    if (state.step == 0 || !run->recipe->checkpoint_end || !is_worth_saving(status) || is_saved(run)) return;
    /* A step has failed half-way, or ranks that share the state out are there no more: it was tried before, or one of
     * them failed. */
    if (!stk_trainer_is_settled(run->trainer)) return;
    if (status == STK_LOST && stk_run_keep_last(run)) {
        run->saved_state = state;
        return;
    }
    run->is_last_try = true;
    stk_run_save(run, false, false);
    wait_for_save(run);
}

static void add_count(stk_text *out, int64_t n)
{
    if (n > 0) stk_text_add(out, " (%lld save%s before it failed, too)", (long long)n, n == 1 ? "" : "s");
}

/* What is not on the disk; nothing where all is. */
static void list_lost(stk_run *run, stk_status *status, stk_text *out)
{
    if (*status != STK_OK) stk_text_add(out, "%s", stk_error_text());
    if (run->save_status != STK_OK) {
        *status = run->save_status;
        stk_text_free(out); /* A disk that takes no checkpoint takes no result either. */
        stk_text_add(out, "%s", run->save_error);
        add_count(out, run->n_failed_saves - 1);
    }
    if (*status == STK_OK && run->metrics.n_lost > 0) {
        *status = STK_IO;
        stk_text_add(out, "%lld lines of '%s' could not be written", (long long)run->metrics.n_lost, run->metrics.path);
    }
    if (out->n == 0) return;
    if (run->saved[0])
        stk_text_add(out, "; the last checkpoint is '%s'", run->saved);
    else
        stk_text_add(out, "; there is no checkpoint");
}

stk_status stk_run_save_judge(stk_run *run, stk_status status)
{
    stk_text lost = {0};
    if (!stk_path_is_dir(run->folder)) {
        run->saved[0] = 0;
        return stk_fail(STK_NOT_FOUND,
                        "the run's folder '%s' is gone, and its checkpoints with it: it was removed or "
                        "renamed while the run trained",
                        run->folder);
    }
    if (run->saved[0] && !stk_path_is_dir(run->saved)) {
        status = stk_fail(STK_NOT_FOUND, "checkpoint '%s' is gone: it was removed or renamed while the run trained",
                          run->saved);
        run->saved[0] = 0;
        return status;
    }
    list_lost(run, &status, &lost);
    if (status != STK_OK) status = stk_fail(status, "%s", stk_text_get(&lost));
    stk_text_free(&lost);
    if (status == STK_OK && run->n_failed_saves > 0) {
        char text[160];
        snprintf(text, sizeof(text), "%lld save%s failed on the way; the last one is whole",
                 (long long)run->n_failed_saves, run->n_failed_saves == 1 ? "" : "s");
        stk_run_warn(run, text);
    }
    return status;
}
