/* See run/beats.h. */
#include "run/beats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "elastic/lookout.h"
#include "elastic/supervise.h"
#include "run/ranks.h"
#include "train/divided.h"
#include "train/trainer.h"

/* A state takes at most this part of the writing thread's time, and none comes sooner than after EVERY_NS. */
enum { PART = 50, KEPT = 2 };
static const int64_t EVERY_NS = 2000000000;

static void be_heard(stk_run *run, stk_beat *beat)
{
    run->beat = beat;
    if (run->comm) stk_comm_set_beat(run->comm, beat);
    stk_beat_say(beat, "process %lld has started", (long long)getpid());
}

/* --- listening --- */

/* From the lookout's thread, or at the end. The second rank has no other voice. */
static void alarm_all(void *user, const char *text)
{
    stk_run *run = user;
    stk_train_event event = {.kind = STK_EVENT_WARNING, .text = text};
    stk_mutex_lock(&run->event_lock);
    if (run->alarm) run->alarm(run->options.user, &event);
    stk_mutex_unlock(&run->event_lock);
}

/* What keeps a rank from listening is no failure. */
static void listen_to_ranks(stk_run *run, char address[STK_BEAT_ADDRESS])
{
    const stk_comm *comm = run->comm;
    address[0] = 0;
    if (comm->rank >= STK_LOOKOUT_LISTENERS || !run->alarm || stk_mutex_init(&run->event_lock) != STK_OK) return;
    if (stk_lookout_open(comm->n_here < comm->n_ranks, comm->rank, comm->n_ranks, alarm_all, run, &run->lookout) ==
        STK_OK)
        stk_lookout_address(run->lookout, address);
    else
        stk_mutex_destroy(&run->event_lock);
}

/* Collective. */
static stk_status be_heard_by_ranks(stk_run *run)
{
    char text[STK_LOOKOUT_LISTENERS * STK_BEAT_ADDRESS] = "", own[STK_BEAT_ADDRESS];
    size_t n = 0;
    stk_beat *beat;
    listen_to_ranks(run, own);
    for (int r = 0; r < STK_LOOKOUT_LISTENERS; r++) {
        char address[STK_BEAT_ADDRESS];
        stk_comm_call call = {.kind = STK_COLLECTIVE_broadcast,
                              .dtype = STK_U8,
                              .n = STK_BEAT_ADDRESS,
                              .src = r == run->comm->rank ? own : address,
                              .dst = address,
                              .root = r};
        STK_RETURN_IF_ERROR(stk_comm_run(run->comm, &call, STK_RUN_TIMEOUT_MS));
        address[STK_BEAT_ADDRESS - 1] = 0;
        if (address[0]) n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "," : "", address);
    }
    if (n && stk_beat_open(text, stk_run_rank(run), run->comm->n_ranks, &beat) == STK_OK) be_heard(run, beat);
    return STK_OK;
}

stk_status stk_run_open_beats(stk_run *run)
{
    const char *address = getenv(STK_ELASTIC_BEATS);
    stk_beat *beat;
    if (!run->options.ranks) return STK_OK;
    if (!address || !address[0]) return run->comm ? be_heard_by_ranks(run) : STK_OK;
    STK_RETURN_IF_ERROR(stk_beat_open(address, stk_run_rank(run), stk_comm_n_ranks(run->comm), &beat));
    be_heard(run, beat);
    return STK_OK;
}

/* A rank that did not come in time: the collective knows its number at most, and the beats what it did. */
static void explain_loss(stk_run *run, char text[STK_LOOKOUT_TEXT])
{
    char found[STK_LOOKOUT_TEXT];
    int rank;
    stk_lookout_ask(run->lookout, found, &rank);
    if (!found[0]) return;
    size_t n = strlen(text);
    snprintf(text + n, STK_LOOKOUT_TEXT - n, "; %.2000s", found);
    if (stk_run_rank(run) > 0) alarm_all(run, text); /* The first rank cannot say it. */
}

stk_status stk_run_end_beats(stk_run *run, stk_status status)
{
    char text[STK_LOOKOUT_TEXT];
    if (!run->beat || status == STK_OK) return status;
    snprintf(text, sizeof(text), "%s", stk_error_text());
    if (status == STK_LOST) explain_loss(run, text);
    stk_beat_end(run->beat, status, text);
    return stk_fail(status, "%s", text);
}

void stk_run_close_beats(stk_run *run)
{
    stk_lookout_close(run->lookout);
    if (run->lookout) stk_mutex_destroy(&run->event_lock);
    run->lookout = NULL;
    if (run->comm) stk_comm_set_beat(run->comm, NULL);
    stk_beat_close(run->beat);
    run->beat = NULL;
}

void stk_run_tell_beats(stk_run *run)
{
    char here[STK_PATH_BYTES], path[STK_PATH_BYTES] = "";
    stk_train_state state;
    if (!run->beat) return;
    if (run->folder[0] && getcwd(here, sizeof(here))) (void)stk_path_join(path, sizeof(path), here, run->folder);
    stk_beat_tell_run(run->beat, stk_run_is_first(run) ? path : NULL, run->recipe->device,
                      run->recipe->config.strict ? run->recipe->config.strict : run->recipe->batch);
    stk_trainer_get_state(run->trainer, &state);
    if (!stk_run_is_first(run)) return; /* The first one's state is to come. */
    stk_beat_tell_start(run->beat, state.step, run->is_from_memory);
    stk_beat_say(run->beat, "begins behind step %lld%s", (long long)state.step,
                 run->is_from_memory ? ", from memory" : "");
}

/* --- states in memory --- */

static const char *states_folder(void)
{
    const char *folder = getenv(STK_ELASTIC_STATES);
    return folder && folder[0] ? folder : NULL;
}

/* Launchers count the processes of a host. */
static bool is_first_here(const stk_run *run)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; run->comm && i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i])) return atoi(getenv(names[i])) == 0;
    return stk_run_is_first(run);
}

/* What is kept, what is being written, and the copy that it is written of. */
static stk_status check_room(const stk_run *run, const char *folder)
{
    const stk_named_tensor *tensors;
    size_t n, bytes = 0;
    struct statvfs there;
    STK_RETURN_IF_ERROR(stk_trainer_tensors(run->trainer, &tensors, &n));
    for (size_t i = 0; i < n; i++)
        bytes += stk_desc_bytes(tensors[i].view.desc);
    if (statvfs(folder, &there) != 0) return STK_OK;
    double is_free = (double)there.f_bavail * (double)there.f_frsize, wants = (double)(bytes + 65536) * (KEPT + 1);
    if (wants <= is_free) return STK_OK;
    return stk_fail(STK_NO_MEMORY, "%.1f MiB are wanted in '%s', and %.1f are free", wants / 1048576, folder,
                    is_free / 1048576);
}

static void warn_states(stk_run *run)
{
    char text[700];
    snprintf(text, sizeof(text),
             "no states are kept in memory: %.500s; after a failure the run goes on from its last "
             "checkpoint",
             stk_error_text());
    stk_run_close_states(run);
    stk_beat_say(run->beat, "%s", text);
    if (stk_run_is_first(run)) stk_run_warn(run, text);
}

void stk_run_open_states(stk_run *run)
{
    const char *folder = states_folder();
    if (!run->beat || !folder || !is_first_here(run)) return;
    /* The first rank alone may ask the others for their parts. */
    if (!stk_run_is_first(run) && stk_divided_exist(run->trainer)) return;
    stk_status status = stk_dir_make(folder);
    if (status == STK_OK) status = check_room(run, folder);
    if (status == STK_OK) status = stk_checkpoint_writer_open(folder, KEPT, &run->states);
    if (status != STK_OK) warn_states(run);
    run->state_ns = stk_clock_ns();
}

static void look_at_state(stk_run *run)
{
    stk_checkpoint_report report;
    if (!run->state_is_written) return;
    stk_checkpoint_poll(run->states, &report);
    if (!report.finished) return;
    run->state_is_written = false;
    run->state_took_ns = stk_clock_ns() - run->state_ns;
    if (report.status == STK_OK) return;
    stk_fail(report.status, "%s", report.error);
    warn_states(run);
}

bool stk_run_state_is_due(stk_run *run)
{
    if (!run->states) return false;
    look_at_state(run);
    int64_t wait = PART * run->state_took_ns > EVERY_NS ? PART * run->state_took_ns : EVERY_NS;
    return run->states && !run->state_is_written && stk_clock_ns() - run->state_ns >= wait;
}

void stk_run_keep_state(stk_run *run)
{
    const stk_named_tensor *tensors;
    size_t n;
    stk_train_state state;
    if (!stk_run_state_is_due(run) || !stk_trainer_is_settled(run->trainer)) return;
    run->state_ns = stk_clock_ns();
    stk_trainer_get_state(run->trainer, &state);
    stk_status status = stk_trainer_tensors(run->trainer, &tensors, &n);
    if (status == STK_OK) status = stk_checkpoint_save(run->states, tensors, n, &state, run->recipe_text.data, false);
    run->state_is_written = status == STK_OK;
    if (status != STK_OK) warn_states(run);
}

bool stk_run_keep_last(stk_run *run)
{
    const stk_named_tensor *tensors;
    size_t n;
    stk_train_state state;
    stk_checkpoint_report report;
    if (!run->states) return false;
    if (run->state_is_written) stk_checkpoint_wait(run->states, &report);
    run->state_is_written = false;
    stk_trainer_get_state(run->trainer, &state);
    if (stk_trainer_tensors(run->trainer, &tensors, &n) != STK_OK ||
        stk_checkpoint_save_in_place(run->states, tensors, n, &state, run->recipe_text.data, false) != STK_OK)
        return false;
    stk_checkpoint_wait(run->states, &report);
    return report.status == STK_OK;
}

void stk_run_close_states(stk_run *run)
{
    stk_checkpoint_writer_close(run->states);
    run->states = NULL;
    run->state_is_written = false;
}

static int64_t step_of(const char *path)
{
    const char *name = strrchr(path, '-');
    return path[0] && name ? strtoll(name + 1, NULL, 10) : -1;
}

bool stk_run_find_state(const stk_run *run, char checkpoint[STK_PATH_BYTES])
{
    char path[STK_PATH_BYTES];
    const char *folder = states_folder();
    if (!run->beat || !folder || !run->options.resume || !stk_path_is_dir(folder)) return false;
    if (stk_checkpoint_find(folder, false, path, sizeof(path), NULL) != STK_OK) return false;
    if (step_of(path) <= step_of(checkpoint)) return false;
    snprintf(checkpoint, STK_PATH_BYTES, "%s", path);
    return true;
}
