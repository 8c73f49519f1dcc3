/* The run's struct, and what its files call of each other. */
#ifndef STK_RUN_STATE_H
#define STK_RUN_STATE_H

#include "base/thread.h"
#include "comm/comm.h"
#include "elastic/beat.h"
#include "recipe/recipe.h"
#include "run/chip.h"
#include "run/energy.h"
#include "run/metrics.h"
#include "run/notice.h"
#include "run/observe.h"
#include "run/publish.h"
#include "run/throttle.h"
#include "stoker/train/run.h"
#include "weights/checkpoint.h"

enum { STK_PATH_BYTES = 4096 };

struct stk_run {
    stk_run_options options; /* texts borrowed from the caller until close, but out */
    stk_recipe *recipe;
    stk_text recipe_text;        /* in full, with absolute paths */
    const stk_dataset *train;    /* the trainer's */
    const stk_model *model;      /* the trainer's */
    stk_dataset *valid, *test;   /* owned; NULL: none */
    stk_trainer *trainer;        /* owned */
    stk_comm *comm;              /* owned; NULL: this process trains alone. ranks.h */
    stk_beat *beat;              /* owned; NULL: nobody listens. beats.h */
    struct stk_lookout *lookout; /* owned; NULL: this rank does not listen */
    stk_train_event_fn alarm;    /* the caller's on_event, of a rank that listens; events come under event_lock then */
    stk_mutex event_lock;
    stk_run_info info;
    char folder[STK_PATH_BYTES];
    size_t folder_there; /* bytes of folder that were a folder before */
    int lock_fd;         /* -1: not locked */

    /* while training */
    stk_metrics_file metrics;
    stk_observer observer;
    stk_notice notice;
    stk_publisher publisher;
    stk_throttle throttle;
    int64_t throttle_ns; /* when it was looked at last */
    stk_energy energy;
    int64_t counted_ns; /* when energy was counted last */
    stk_chip chip;
    int64_t looked_ns; /* when the chip was looked at last */
    stk_checkpoint_writer *writer;
    size_t copy_bytes;      /* stk_run_copy_bytes */
    bool is_saving;         /* a report of the writer is to come */
    stk_status save_status; /* of the last save that ended */
    char save_error[512];
    int64_t n_failed_saves;
    bool failing_told;           /* of the failures since the last save that was whole */
    char saved[STK_PATH_BYTES];  /* the last checkpoint on disk, "" for none */
    stk_train_state saved_state; /* what was given to the writer last; step -1 for nothing yet */
    double last_loss;            /* of the last step; NAN before */
    bool metrics_warned, cache_warned, trace_warned;
    stk_checkpoint_writer *states;   /* in memory; NULL: none. beats.h */
    int64_t state_ns, state_took_ns; /* when the last one was begun, and how long writing it took */
    bool state_is_written;           /* a report of the writer is to come */
    bool is_from_memory;             /* the run goes on from such a state */
    int64_t epochs_before;           /* of the recipe that is resumed; 0: a new run */
    bool is_last_try;                /* a save that fails now fails the run, so no warning is needed */

    /* after stk_run_load */
    int64_t loaded_step;
    float *probability; /* room for predictions */
    void *sample;
    size_t sample_bytes;
    bool fitting_told; /* that images of other sizes are resized */
};

/* --- schedule_notice.c --- */
/* step: the first to be done. */
void stk_run_warn_schedule(stk_run *run, int64_t step);

/* --- run.c --- */
/* A copy of the variables, which saving takes while steps go on. 0: none, since no step follows the run's only save, or
 * since it does not fit besides the step (limit 0: none); saving then takes the step's time. */
size_t stk_run_copy_bytes(const stk_recipe *recipe, size_t limit, size_t peak_bytes, size_t variable_bytes);

/* --- save.c --- */
/* Sees what became of a save under way. */
void stk_run_save_look(stk_run *run);
/* steps_follow: they are not to wait for the disk, if memory allows. */
void stk_run_save(stk_run *run, bool best, bool steps_follow);
/* The last state, unless it is saved or was spoilt by what ended the run with that status. */
void stk_run_save_end(stk_run *run, stk_status status);
/* At the end of a run: STK_OK, or one line of what could not be written, by saves, metrics or, with its status and
 * text, whoever came before, and of the last checkpoint; one that is gone is no longer `saved`. */
stk_status stk_run_save_judge(stk_run *run, stk_status status);

/* --- folder.c --- */
/* Makes and locks the folder, and refuses one that belongs to another run. With resume *checkpoint is the path of the
 * newest whole one, "" where there is none; warnings tell of damaged ones. *has_earlier: an earlier run of the same
 * recipe is there, which this one does not go on with. */
stk_status stk_folder_open(stk_run *run, char checkpoint[STK_PATH_BYTES], bool *has_earlier, stk_text *warnings);
/* Keeps the earlier run next to the new one, in *previous: to forget --resume must not cost its work, how often ever.
 * It is FOLDER.previous, or where that is taken .previous-2 and so on. */
stk_status stk_folder_move_aside(stk_run *run, char previous[STK_PATH_BYTES]);
/* The last of those; false: there is none. */
bool stk_folder_find_previous(const stk_run *run, char previous[STK_PATH_BYTES]);
/* Unlocks it. A folder in which nothing was written but the lock goes away. */
void stk_folder_close(stk_run *run);
/* For a run that goes on: STK_MISMATCH where there are not as many samples to train on as before, which would be others
 * in another order. */
stk_status stk_folder_check_data(const stk_run *run);
/* For a run that goes on: kernels.txt, which kernels were chosen by timing, to the trainer before it is prepared. */
stk_status stk_folder_read_choices(const stk_run *run);
/* recipe.yaml, written whole, data.json, see recipe/data_record.h, and kernels.txt. */
stk_status stk_folder_write_recipe(const stk_run *run);
void stk_folder_remove_recipe(const stk_run *run);

/* --- init.c --- */
/* Does what the recipe's `init` says, and tells what was loaded and what was not. The trainer is prepared. */
stk_status stk_run_init_weights(stk_run *run);

/* --- result.c --- */
/* Whether the run in that folder is finished, so that nothing of that many epochs is left to do. */
bool stk_result_is_finished(const char *folder, int64_t n_epochs);
stk_status stk_result_write(const stk_run *run, const stk_run_result *result);
/* Where the file is a finished run's: says so in result, with what the recipe expects now by its figures; the file then
 * has that, too. A part of a run (--steps) leaves a file that says that it is not finished; result then stays. */
stk_status stk_result_judge(const stk_run *run, const char *path, stk_run_result *result);

/* --- profile.c --- */
/* profile.json at the end of a run; failing to write it is a warning. Takes result's time for how long the run took. */
void stk_run_write_profile(stk_run *run, const stk_train_result *result);

/* --- run.c --- */
/* Reads the folder's recipe and builds data sets and model; nothing is compiled and no checkpoint is read. */
stk_status stk_run_open_folder(const char *folder, const stk_run_options *options, stk_run **out);
/* The same of a recipe and a record of its data, both as text; the folder is options->out or runs/NAME. */
stk_status stk_run_open_text(const char *recipe, const char *record, const stk_run_options *options, stk_run **out);
void stk_run_warn(stk_run *run, const char *text);
/* To the caller, as each of the run's events; one at a time. */
void stk_run_emit(stk_run *run, const stk_train_event *event);
/* The trainer's configuration by the recipe, with what makes models for other lengths. */
stk_trainer_config stk_run_config(stk_run *run);
/* Has the graphs that the run's options name dumped. */
void stk_run_dump(stk_run *run, stk_trainer_config *config);

#endif
