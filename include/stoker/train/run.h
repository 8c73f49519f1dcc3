/* Runs: a recipe becomes a folder with a trained network. What the program `stoker` does, as calls.
 *
 * A run folder holds recipe.yaml (in full), data.json (what the data were like), metrics.jsonl, result.json,
 * checkpoints step-N and a lock file. One process at a time uses it for training. Threads: one at a time for each run,
 * but stk_run_stop may be called from a signal handler.
 */
#ifndef STOKER_TRAIN_RUN_H
#define STOKER_TRAIN_RUN_H

#include "stoker/data/loader.h"
#include "stoker/train/classify.h"
#include "stoker/train/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_run stk_run;

/* What is known when data and model stand, before anything is compiled. Texts are borrowed from the run. */
typedef struct stk_run_info {
    const char *name, *folder;        /* folder: NULL before stk_run_train has made it */
    const char *model;                /* "resnet18" */
    const char *sample;               /* what a sample is: "image", "clip", "volume", "sequence", "text", "sample" */
    const char *device, *precision;   /* as the recipe has them */
    int64_t n_train, n_valid, n_test; /* samples; 0: there is no such part */
    int64_t n_classes;                /* of the data; 0: not known */
    int64_t source_bytes;             /* of all parts, as stk_dataset_source_bytes; 0: not known */
    int64_t batch, n_epochs;
    int64_t resumed_step;      /* of the checkpoint that training goes on from; 0: from the start */
    size_t memory_limit_bytes; /* 0: none */
} stk_run_info;

typedef struct stk_run_options {
    const char *const *set; /* n_set texts like "optimizer.sgd.lr=0.1" */
    int n_set;
    const char *out;                                       /* the run's folder; NULL: runs/NAME */
    bool resume;                                           /* go on from the last checkpoint, where there is one */
    const char *checkpoint;                                /* of stk_run_load and exports: "best", "last" or a step's
                                                              number; NULL: the best, or else the last */
    int64_t trace_first, trace_last;                       /* these steps are written to RUN/trace.json; 0: none */
    int64_t max_steps;                                     /* stop after step number max_steps; 0: no */
    void (*on_info)(void *user, const stk_run_info *info); /* once, before the plan; may be NULL */
    stk_train_event_fn on_event;                           /* may be NULL */
    bool without_data; /* stk_run_load: where the run's data.json tells what its data were like they are not opened, and
                        * may be gone; there is then nothing to evaluate on */
    /* This process may be one of several that mpirun, mpiexec or srun has started: they train together, each on a share
     * of every batch. The first one alone writes and tells; docs/distributed.md. Of stk_run_open. */
    bool ranks;
    const char *dump_graph; /* as in stk_trainer_config, of stk_run_train; of stk_run_plan where that asks for it */
    void (*dump)(void *user, const char *pass, const char *text);
    void *user;
} stk_run_options;

/* A figure that the recipe expects of the finished run. */
enum { STK_MOST_EXPECTED = 8 };
typedef struct stk_expected {
    const char *text; /* "test_iou >= 0.9", borrowed from the run */
    char name[24];    /* "iou" */
    bool at_least;    /* else at most */
    double bound, value;
    bool is_met;
} stk_expected;

typedef struct stk_run_result {
    stk_train_result train;
    stk_metrics test;       /* n_samples 0: not evaluated */
    int64_t evaluated_step; /* whose parameters the test saw */
    stk_expected expected[STK_MOST_EXPECTED];
    size_t checkpoint_copy_bytes; /* as planned: see stk_train_event */
    int n_expected;               /* 0 before the run is finished, too */
    int64_t unjudged_epochs;      /* those of the recipe's file, where `set` asks for fewer and says nothing of what is
                                     expected: that is then not judged, and n_expected is 0. Otherwise 0 */
    bool was_finished;            /* resumed when there was nothing left to do, of the whole run or up to max_steps */
    bool has_ended;               /* all the rest stands: where stk_run_train failed all the same, something was not
                                     written, and its text says what */
    bool is_finished;             /* all epochs are done, or the run stopped early on purpose */
} stk_run_result;

/* Reads the recipe, finds its data and builds data sets and model. Nothing is written. */
STK_API stk_status stk_run_open(const char *recipe, const stk_run_options *options, stk_run **out);
/* Trains, saving as it goes; evaluates the test set at the end. STK_INTERRUPTED after stk_run_stop: the run is saved,
 * and stk_run_saved names the checkpoint. */
STK_API stk_status stk_run_train(stk_run *run, stk_run_result *out);
/* The process's number among those that train together, from 0; 0 where there is one. */
STK_API int stk_run_rank(const stk_run *run);
/* How many processes train together; 1: this one alone; 0 for NULL. */
STK_API int stk_run_n_ranks(const stk_run *run);
/* Finishes the step under way and saves. Async-signal-safe. */
STK_API void stk_run_stop(stk_run *run);
STK_API void stk_run_close(stk_run *run); /* accepts NULL */

/* How many different records were skipped so far, in training and evaluation. */
STK_API int64_t stk_run_n_skipped(const stk_run *run);
/* The i-th of them as text, at most the first 100; NULL past the end. Borrowed. */
STK_API const char *stk_run_skipped(const stk_run *run, int64_t i);
/* The folder of the last checkpoint that this run has written or gone on from; NULL when there is none, or it is gone.
 * Borrowed until the next save. */
STK_API const char *stk_run_saved(const stk_run *run);

/* Opens a run folder for evaluation and prediction, with the checkpoint that options name. options: checkpoint, set
 * (device, threads and batch make sense) and the callbacks. */
STK_API stk_status stk_run_load(const char *folder, const stk_run_options *options, stk_run **out);
/* part: "test", "valid" or "train". */
STK_API stk_status stk_run_evaluate(stk_run *run, const char *part, stk_metrics *out);
/* The step of the checkpoint that stk_run_load took. */
STK_API int64_t stk_run_step(const stk_run *run);

/* Whether the run predicts from image files; where it does not, the error says what it does, and what does that. */
STK_API stk_status stk_run_check_predict(const stk_run *run);
/* The n_top likeliest classes of one image file, likeliest first, or its first n_top numbers in their order; *n_out may
 * be less where there are fewer. The stages of evaluation are done to it; where they do not make the network's input of
 * an image of its size, its shorter side is resized before them (bilinear, with antialiasing) and the middle taken,
 * which a warning says once. */
STK_API stk_status stk_run_predict(stk_run *run, const char *file, stk_prediction *out, int n_top, int *n_out);

/* What the network takes of a sample, after all stages, and how many numbers it gives; of runs that predict from
 * images. */
STK_API stk_status stk_run_input(const stk_run *run, stk_dtype *dtype, stk_shape *shape, int64_t *n_out);
/* One such sample -> probabilities, or numbers, as stk_run_predict gives them, in the order of the classes: out
 * [n_out]. */
STK_API stk_status stk_run_predict_sample(stk_run *run, const void *sample, float *out, int64_t n_out);

/* An image of a folder. status other than STK_OK: the file cannot be predicted, stk_error_text() says why and n is 0.
 * False ends it. */
typedef bool (*stk_prediction_fn)(void *user, const char *file, stk_status status, const stk_prediction *out, int n);
/* The same for all JPEG, PNG and WebP files of a folder, at any depth, by their paths. A file that cannot be predicted
 * does not keep the others from it, and is no failure of this call. */
STK_API stk_status stk_run_predict_folder(stk_run *run, const char *folder, int n_top, stk_prediction_fn fn,
                                          void *user);

/* The input pipeline of a recipe alone: the data set of a part ("train", "valid" or "test"), batched, and what its
 * loader is to be opened with. The recipe needs no model. set: as in stk_run_options. Returned: stk_dataset_free. */
STK_API stk_status stk_recipe_dataset(const char *recipe, const char *const *set, int n_set, const char *part,
                                      stk_dataset **out, stk_loader_config *config);
/* The same part's source alone, as it lies there: no order, no stages, no batches. */
STK_API stk_status stk_recipe_source(const char *recipe, const char *const *set, int n_set, const char *part,
                                     stk_dataset **out);
/* Reads a recipe and refuses what every run of it would; no data are looked for. */
STK_API stk_status stk_recipe_check(const char *recipe, const char *const *set, int n_set);
/* A recipe to start from, with comments. Returned: free(). */
STK_API stk_status stk_recipe_starter(const char *name, char **out);
/* The reference of all keys as Markdown. Returned: free(). */
STK_API stk_status stk_recipe_reference(char **out);

#ifdef __cplusplus
}
#endif
#endif
