/* The trainer's struct, shared by the files that are the trainer, and read by those that plan or tell what it did. */
#ifndef STK_TRAIN_TRAINER_STATE_H
#define STK_TRAIN_TRAINER_STATE_H

#include <signal.h>

#include "comm/comm.h"
#include "data/dataset/dataset.h"
#include "elastic/beat.h"
#include "engine/engine.h"
#include "stoker/data/loader.h"
#include "stoker/data/ragged.h"
#include "train/judge.h"
#include "train/measure.h"
#include "train/neighbours.h"
#include "train/timing.h"
#include "train/trainer.h"

enum { MOST_BINDINGS = 8, N_STEP_TIMES = 1 << 14, STK_MOST_KEPT_STAGES = 32 };

/* A program's input that takes a field of the batch. */
typedef struct stk_binding {
    const char *field; /* borrowed from the model's graph */
    int input;
} stk_binding;

typedef struct stk_bound_program {
    stk_program *program;
    stk_binding binding[MOST_BINDINGS];
    int n_bindings;
    int lr, step, seed, sample, weight, stop, wish; /* numbers of these inputs; -1: it has none */
    int64_t batch;
} stk_bound_program;

/* A step whose results have not been read. */
typedef struct stk_begun_step {
    int64_t step, i_batch; /* steps and batches done with it */
    double lr;
} stk_begun_step;

/* How a step is made to fit. */
typedef struct stk_memory_choice {
    int64_t micro, n_micro; /* samples in a part of the batch, and how many parts */
    double slowdown;        /* estimate, compared with a step without a limit */
    int64_t n_fewest;       /* parts that would do, if it took longer; 0: not looked for */
    double fewest_slowdown;
} stk_memory_choice;

/* Programs and models for batches of different shapes; see train/shapes.h. */
typedef struct stk_shaped_program {
    int64_t length;
    stk_bound_program bound; /* its batch: the rows */
} stk_shaped_program;

typedef struct stk_shape_list {
    stk_shaped_program *item;
    int n;
} stk_shape_list;

typedef struct stk_model_of_length {
    int64_t length;
    stk_model *model; /* owned */
} stk_model_of_length;

typedef struct stk_shapes {
    bool varies;
    int64_t own_length; /* of the trainer's model; 0: it has no open side */
    stk_shape_list train, eval;
    stk_model_of_length *model;
    int n_models;
} stk_shapes;

/* Another rank of this process, whose model and data sets are the first one's. */
typedef struct stk_replica {
    stk_trainer *trainer; /* owned; NULL before it is prepared */
    stk_comm *comm;       /* owned */
} stk_replica;

struct stk_trainer {
    stk_model *model;     /* owned */
    stk_dataset *dataset; /* owned */
    stk_optimizer optimizer;
    stk_trainer_config config;
    char *device, *no_decay, *dump_graph, *recompute, *trace, *whiten_layer; /* copies of the config's texts */
    stk_param_group group[STK_MOST_GROUPS];                                  /* their texts are ours */
    int n_groups;
    char *choices; /* owned: of kernels, an earlier run's; NULL: none */
    stk_trainer_hooks hooks;
    volatile sig_atomic_t stop;

    /* Ranks; see replicas.h. */
    stk_beat *beat;       /* borrowed; NULL: nobody listens */
    stk_comm *comm;       /* NULL: this is the only one. Owned where there are replicas of one process */
    stk_replica *replica; /* [n_replicas - 1], of the first of a process */
    int n_replicas;       /* in this process; 0: none but this one */
    bool is_replica;      /* another trainer owns model and data set */
    bool stop_agreed;     /* some rank was stopped, as read from a step */

    bool lost_text;             /* of the configuration, for want of memory */
    bool prepared, has_classes; /* has_classes: labels are class numbers, so accuracy is known */
    bool has_top5;              /* there are more than 5 of them */
    bool is_language_model;     /* so that its loss is a perplexity */
    stk_engine *engine;
    stk_loss_scale loss_scale;
    stk_dtype compute;                      /* F32, or what pass autocast narrows to */
    bool tf32;                              /* products in f32 may be in TF32 */
    stk_bound_program train, eval, predict; /* where shapes vary, train and eval are those of the batch under way */
    stk_shapes shapes;
    int64_t most_rows; /* of a batch */
    int64_t n_rows;    /* that were trained on by this process */
    stk_memory_choice choice;
    stk_program *outer_program;         /* of the engine: outer.h; NULL: none */
    bool is_torn;                       /* a step has ended half-way: some variables are those behind it */
    bool overlaps;                      /* gradients are added up while the backward pass goes on */
    bool shards;                        /* the optimiser's state is shared out among ranks (divided.h) */
    bool shards_are_open, wishes_state; /* wishes_state: the first rank's hooks, of the step under way */
    stk_tensor_source shard_source;
    size_t reserved_bytes, data_bytes; /* of the memory limit: for the input pipeline; see memory_share.c */
    size_t copy_bytes, held_bytes;     /* a checkpoint's copy; what data sets hold that the trainer does not know */
    size_t planned_bytes;              /* by the largest program so far, variables included */
    stk_measure measure[STK_MOST_MEASURES]; /* as configured */
    int n_measures;
    stk_measure_plan measures;
    char best_metric[STK_METRIC_NAME_BYTES], stop_metric[STK_METRIC_NAME_BYTES];
    double *train_sums, *eval_sums; /* [end of the plan], of the epoch under way and of the last evaluation; or NULL */
    float *weight;                  /* [batch of eval] */
    stk_named_tensor *tensor;
    int *variable; /* by tensor: its number in the engine; -1: the sums of metrics, which are the host's */
    size_t n_tensors;
    stk_begun_step begun[STK_RUNS_KEPT]; /* the oldest first */
    int n_begun;
    float lr;         /* of the step read last */
    double last_loss; /* of that step; NAN before */
    int n_bad_losses; /* in a row, as read */

    stk_train_state state;
    int64_t n_epochs, n_batches, n_steps; /* of the whole run */
    stk_pixel_scale pixels;               /* of images that go to the device as u8; n 0: none (pixels.h) */
    stk_dataset *fed_dataset; /* the training data as batches hold them: u8, or a rank's rows; NULL: as they are */
    const stk_dataset *whole; /* another view of the training data, to evaluate on; NULL: none */
    bool eval_is_u8;          /* so the program `eval` takes them */
    stk_memory *data_memory;  /* of all loaders; NULL before the first */
    stk_loader *loader;
    stk_train_result result;
    float *step_s; /* the last N_STEP_TIMES steps of this process, a ring; behind it room to sort them in */
    int64_t n_step_times;
    double smooth_step_s, last_step_s, last_wait_s;
    int64_t step_start_ns; /* of the step under way; behind its results, of the next */
    int64_t run_start_ns, epoch_start_ns, epoch_wait_ns, epoch_run_ns, wait_ns, train_ns;
    stk_timing timing;
    stk_loader_stats loader_stats; /* of the training loader, when it was closed */
    stk_stage_stats stage[STK_MOST_KEPT_STAGES];
    int n_stages;
    stk_skipped skipped; /* from loaders that are closed, and from before the run was resumed */
};

/* Of a batch, all ranks' rows. */
static inline int64_t stk_trainer_step_rows(const stk_trainer *trainer)
{
    return trainer->train.batch * stk_comm_n_ranks(trainer->comm);
}

/* --- measures.c: metrics of runs --- */
/* How many sums of an epoch there are. */
int stk_measures_n_sums(const stk_trainer *trainer);
/* What the config's measures need. Does nothing when called again. */
stk_status stk_measures_plan(stk_trainer *trainer, bool shares);
/* The sums of the epoch under way as a checkpoint has them. */
stk_named_tensor stk_measures_tensor(const stk_trainer *trainer);
/* Adds the sums to a graph made of the model's, whose rows are bound. */
void stk_measures_build(const stk_trainer *trainer, stk_graph *graph, stk_value weight);
/* Adds the sums of the run waited for. */
void stk_measures_add(const stk_trainer *trainer, const stk_bound_program *bound, double *sums);
void stk_measures_reset(const stk_trainer *trainer, double *sums);
/* Of a graph for evaluation: the outputs that stk_measures_keep reads, where a measure needs the rows themselves. */
void stk_measures_show_rows(const stk_trainer *trainer, stk_graph *graph);
/* Keeps the first n rows of the run waited for. */
stk_status stk_measures_keep(const stk_trainer *trainer, const stk_bound_program *bound, int64_t n,
                             stk_neighbours *rows);
/* The measures that need all rows, behind out's values. */
stk_status stk_measures_finish_rows(const stk_trainer *trainer, const stk_neighbours *rows, stk_metrics *out);
/* Sets the values, and accuracy and perplexity where they are among them; out has its loss. */
void stk_measures_finish(const stk_trainer *trainer, const double *sums, stk_metrics *out);

/* --- step_graph.c: the three graphs made of the model's --- */
/* Input and output of a step of several ranks: above 0 where a rank was stopped. */
#define STK_STOP_INPUT "rank.stop"
/* The same, where optimisers' state is shared out: the first rank's hooks will read it behind the step. */
#define STK_WISH_INPUT "rank.wish"

/* On that many rows. The memory choice is made: as many parts as it has. */
stk_status stk_step_compile_train(stk_trainer *trainer, int64_t rows, stk_bound_program *out);
/* What a compiled step is for. A plan and a trial make no variables. A trial, which is compared with others, prints no
 * graphs and keeps no weights packed, which a limit may forbid. */
typedef enum stk_step_use { STK_STEP_RUN, STK_STEP_PLAN, STK_STEP_TRY } stk_step_use;
/* The training step on parts of N samples. */
stk_status stk_step_compile_with(stk_trainer *trainer, int64_t batch, int64_t micro, stk_step_use use,
                                 stk_program **out);
stk_status stk_step_compile_eval(stk_trainer *trainer, int64_t batch, stk_bound_program *out);
stk_status stk_step_compile_predict(stk_trainer *trainer, stk_bound_program *out);
/* Refuses a data set of which it is not known how many batches it has. */
stk_status stk_step_check_count(const stk_dataset *dataset);
/* Refuses a data set whose fields do not match the model's inputs. */
stk_status stk_step_check_dataset(stk_trainer *trainer, const stk_dataset *dataset);
void stk_step_bind(const stk_bound_program *bound, const stk_batch *batch);
/* Sets the program's numbers for the step after N. */
stk_status stk_step_set(const stk_trainer *trainer, const stk_bound_program *bound, int64_t n_steps, double lr);
/* The scalar output of that name as a number, of the run waited for; 0 when there is none. */
double stk_step_scalar(const stk_bound_program *bound, const char *name);

/* --- trainer.c --- */
/* Checks the parts and opens the engine. Does nothing when called again. */
stk_status stk_trainer_open(stk_trainer *trainer);

/* --- evaluate.c --- */
/* This rank's part of an evaluation, and what all found together. All ranks call it. */
stk_status stk_evaluate_rank(stk_trainer *trainer, const stk_dataset *dataset, stk_metrics *out);
/* Compiles the program that evaluates on the data set, unless that is the one that is there. */
stk_status stk_trainer_prepare_eval(stk_trainer *trainer, const stk_dataset *dataset);

/* --- average.c --- */
/* Before the first step: the weights that are trained begin where their mean stands, so that whoever fills a network's
 * weights fills both. Does nothing later, and where no mean is kept. */
stk_status stk_trainer_start_average(stk_trainer *trainer);

/* --- memory_choice.c --- */
/* What the limit asks for, or the user. The engine is open. */
stk_status stk_memory_choose(stk_trainer *trainer, int64_t batch, stk_memory_choice *out);
bool stk_memory_has_batch_norm(const stk_trainer *trainer);

/* --- memory_share.c --- */
/* Makes bytes of a limit that is a share of the device's memory. */
stk_status stk_memory_ask_device(stk_trainer *trainer);
/* Finds what the input pipeline is to have of the memory limit, and the least it can do with: least <= wanted. Both 0
 * where there is no limit. */
stk_status stk_memory_ask_pipeline(stk_trainer *trainer, size_t *least, size_t *wanted);
/* Counts a program among those of which the largest is planned for. */
void stk_memory_note_program(stk_trainer *trainer, const stk_program *program);
/* The account of all loaders: what the programs leave of the limit, or what the user says. */
stk_status stk_memory_open_account(stk_trainer *trainer);

/* --- feed.c --- */
/* Sets how many threads a loader has, and lets it use the device's, and its memory for batches. The trainer is
 * prepared. */
void stk_trainer_lend_threads(const stk_trainer *trainer, stk_loader_config *config);

/* --- loop.c --- */
/* One rank's training: all ranks call it. The trainer is prepared. */
stk_status stk_loop_run(stk_trainer *trainer, int64_t n_epochs);
void stk_trainer_emit(stk_trainer *trainer, stk_train_event *event);
/* Opens a loader on the trainer's account, with its threads and seed. */
stk_status stk_trainer_open_loader(stk_trainer *trainer, const stk_dataset *dataset, stk_loader_config config,
                                   stk_loader **out);
/* Keeps what the training loader knows of its work. */
void stk_trainer_keep_loader(stk_trainer *trainer, const stk_loader *loader);
/* Keeps what a loader skipped before it is closed. */
void stk_trainer_keep_skipped(stk_trainer *trainer, const stk_loader *loader);

#endif
