/* Training: a model, a data set and an optimiser become one compiled step, run until done.
 *
 *   stk_trainer *trainer = stk_trainer_new(model, train, stk_sgd(.lr = 0.1, .momentum = 0.9));
 *   stk_status status = stk_trainer_run(trainer, 10);
 *
 * The step (forward, backward, clipping, update, metrics) is one program in one arena whose size is known before the
 * first step. Threads: one at a time for each trainer, but stk_trainer_stop may be called from a signal handler.
 */
#ifndef STOKER_TRAIN_TRAINER_H
#define STOKER_TRAIN_TRAINER_H

#include "stoker/data/dataset.h"
#include "stoker/nn/nn.h"
#include "stoker/train/metric.h"
#include "stoker/train/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_trainer stk_trainer;

/* Means over samples. accuracy and top5 are -1 where the labels are no class numbers; top5 also where there are no more
 * than 5 classes. */
typedef struct stk_metrics {
    double loss, accuracy, top5;
    double perplexity; /* exp of the loss, of a language model; 0: it is none */
    int64_t n_samples;
    int n_values; /* of the config's measures, in their order; accuracy and perplexity are above */
    stk_measured value[STK_MOST_MEASURES];
} stk_metrics;

/* Where the time of the training loop went, without validation: shares of it that add up to 1. Names and thresholds are
 * those of XProf's input pipeline analyser and overview page. On the host's own devices kernels are timed in one step
 * of sixteen, and the others are taken to be alike. */
typedef struct stk_time_shares {
    double input;         /* waiting for a batch, or making it: moderate from 5 %, high from 20 % */
    double host;          /* around the step: results, records, copies for checkpoints; 3 % and 15 %, as the next two */
    double launch;        /* to set kernels going, and between them */
    double communication; /* sums over replicas, and waiting for them; 0: there is one */
    double compute;       /* in kernels */
    double idle;          /* of the device, for no reason that is known */
} stk_time_shares;

/* What is reported as it happens. Texts and numbers are borrowed until the callback returns. */
typedef enum stk_train_event_kind {
    STK_EVENT_PLAN,   /* compiled: sizes are known, nothing has run */
    STK_EVENT_BUILT,  /* the device's kernels are built, in step_s seconds; only where it is not on the host */
    STK_EVENT_STEP,   /* after each step */
    STK_EVENT_EVAL,   /* while evaluating: i_batch of n_batches */
    STK_EVENT_EPOCH,  /* an epoch has ended, validation included */
    STK_EVENT_SAVED,  /* a checkpoint is on disk */
    STK_EVENT_TRACED, /* a trace is on disk */
    STK_EVENT_SERVED, /* of a run: its numbers are served from now on */
    STK_EVENT_WARNING,
    STK_EVENT_END
} stk_train_event_kind;

typedef struct stk_train_event {
    stk_train_event_kind kind;
    int64_t step, n_steps;   /* steps done; of the whole run */
    int64_t epoch, n_epochs; /* epoch under way, from 1 */
    int64_t i_batch, n_batches;
    double loss; /* of this very step */
    double lr;
    stk_metrics train;        /* running means of this epoch */
    stk_metrics valid;        /* EPOCH: n_samples 0 where there is no validation */
    double loss_scale;        /* of this step; 0: none */
    int64_t n_skipped_steps;  /* by loss scale or on_nan, in the whole run */
    double grad_norm;         /* STEP: of all gradients together, before clipping; below 0: not known */
    double step_s, wait_s;    /* STEP: this step's time, and the part of it that went to waiting for the batch */
    double samples_per_s;     /* smoothed */
    double input_wait_share;  /* of this epoch's time */
    double device_busy_share; /* of this epoch's time, at the training step; below 0: not known */
    double left_s;            /* estimate for the whole run */
    stk_time_shares time;     /* STEP, EPOCH: of this process's steps so far */
    double epoch_s;
    const char *text; /* SAVED: the folder; TRACED: the file; SERVED: the address; WARNING: what; PLAN: the device,
                         "2 threads, avx2" */
    int64_t n_parameters;
    const char *precision; /* PLAN: as chosen, "bf16" */
    double forward_flops;  /* PLAN: for one sample */
    size_t peak_planned_bytes,
        variable_bytes;           /* PLAN: all that is planned; variables alone, all ranks' parts of them */
    size_t program_bytes;         /* PLAN: besides: of large graphs, of kernels in many micro-batches, of libraries */
    size_t checkpoint_copy_bytes; /* PLAN, of a run: besides, to save while steps go on; 0: saved from the variables */
    int64_t n_kept, n_recomputed; /* PLAN: activations that the backward pass reads; those recomputed for it */
    int n_replicas;               /* PLAN: that share a batch; 1: this is the only one */
    int64_t n_micro, micro_batch; /* PLAN: parts of a batch, and samples in each; 1 and the batch: undivided */
    double
        expected_slowdown; /* PLAN: the step's time over that without a memory limit, by a rough model; 1: the same */
    double step_flops, recompute_flops; /* PLAN: of one step; the part of it that makes activations again */
    size_t memory_limit_bytes;          /* PLAN: of the device, where it is not on the host; 0: none */
    bool builds_kernels; /* PLAN: the device has its kernels built before the first step, where no earlier run did */
    bool compiles_steps; /* PLAN: ... or its steps, as one that is given programs whole */
} stk_train_event;
typedef void (*stk_train_event_fn)(void *user, const stk_train_event *event);

/* The element type of products and activations. Parameters, statistics, losses, gradients of parameters and the last
 * layer are f32 in any case. AUTO: bf16 where the device is fast in it, else f32. TF32: all is f32, and a library's
 * products round what they multiply to 10 bits of mantissa; an error where the device has none such. */
typedef enum stk_precision {
    STK_PRECISION_F32,
    STK_PRECISION_BF16,
    STK_PRECISION_F16,
    STK_PRECISION_AUTO,
    STK_PRECISION_TF32
} stk_precision;

/* A loss or gradients that are not finite. STOP: a loss that is not ends the run, with the step and the parameter
 * nearest the loss that is lost. SKIP: a step whose gradients are not changes nothing and is counted; after 20 in a row
 * the run ends. It costs a pass over the gradients, and updates that work next to the parameters, not in them. A
 * dynamic loss scale skips in any case. */
typedef enum stk_on_nan { STK_ON_NAN_STOP, STK_ON_NAN_SKIP } stk_on_nan;

/* Coates & Ng 2012, Page 2018: a convolution that reads the data begins as the whitening of its patches. Before the
 * first step the eigenvectors of the patches' second moments, over the first n_samples training samples as the network
 * gets them, each divided by the root of its eigenvalue + eps, the largest first, become its filters; twice as many
 * filters are these and their negatives. The weight may be frozen. */
typedef struct stk_whiten {
    const char *layer; /* "conv2d"; NULL: none */
    int64_t n_samples; /* above 0 */
    double eps;        /* above 0 */
} stk_whiten;
/* No layer, 5,000 samples, eps 5e-4: as in a trainer's configuration. */
STK_API stk_whiten stk_whiten_default(void);

/* Test-time augmentation, Krizhevsky et al. 2012: evaluation takes the mean of the outputs for several views of each
 * image. A shifted image is reflected where it ends. The views moved by shift pixels up and left, and down and right,
 * count half of all, the others the other half. */
typedef struct stk_views {
    bool flip; /* each view also flipped left-right */
    int shift; /* pixels; 0: no shifted views */
} stk_views;

/* What each of several replicas has a part of instead of all: the optimiser's state (ZeRO-1, Rajbhandari et al. 2020).
 * The losses are the same. A replica then updates its part of each large parameter, and gets the others' parts from
 * them. AUTO: where the memory limit would make the step slower otherwise. */
typedef enum stk_shard { STK_SHARED_AUTO, STK_SHARED_NONE, STK_SHARED_OPTIMIZER } stk_shared_state;

/* What the rate is multiplied by with N replicas: 1, N (Goyal et al. 2017) or its root. */
typedef enum stk_lr_scaling { STK_LR_SCALING_NONE, STK_LR_SCALING_LINEAR, STK_LR_SCALING_SQRT } stk_lr_scaling;

#define STK_MEMORY_FREE (-1.0)
enum { STK_MOST_REPLICAS = 256, STK_MOST_STRICT = 64 };

typedef struct stk_trainer_config {
    const char *device; /* NULL: "cpu" */
    int n_threads;      /* 0: as many as cores */
    /* Data parallelism in this process: N replicas of the network, each with its share of the threads and of the memory
     * limit, train on a share of each batch, whose size stays. The losses are those of one within rounding, but batch
     * norm takes its statistics from a replica's share. 0, 1: none. At most STK_MOST_REPLICAS */
    int n_replicas;
    stk_lr_scaling lr_scaling;
    bool no_overlap;      /* gradients are not added up while the backward pass goes on */
    bool narrow_sums;     /* gradients go from replica to replica in bf16; the sums are formed in f32 */
    stk_outer outer;      /* replicas take local steps, and one together every so many (DiLoCo); every 0: none */
    bool sync_batch_norm; /* from the shares of all replicas together, as Peng et al. 2018 have it; slower */
    /* The same bits for any number of replicas that divides it: each batch goes through in that many parts, a power of
     * two up to 64, and their sums are one binary tree. n_threads is then each replica's, and has to be given. Batch
     * norm takes its statistics from each part. On the processor only; evaluations agree to rounding. 0: not */
    int strict;
    stk_shared_state shared; /* with replicas, or in several processes */
    /* The same recipe has the same bits on processors with the same instructions: kernels are chosen by rules for all
     * of them, and not by what is known of this one or measured on it. A device that repeats no bits is refused. */
    bool deterministic;
    uint64_t seed;
    stk_precision precision;
    stk_loss_scale loss_scale;
    stk_on_nan on_nan;
    stk_average average; /* of the weights; decay 0: none */
    double clip_norm;    /* of all gradients together; 0: none */
    bool grad_norm;      /* whether events tell it; with clip_norm they do. Else it costs a pass over the gradients */
    bool keep_gradients; /* until the step's end, as large as the parameters: for histograms of them, in runs */
    stk_lookahead lookahead; /* every 0: none. Not with batch norm in parts of a batch */
    stk_whiten whiten;       /* of the first layer; layer NULL: none */
    stk_views views;         /* of an image, in evaluation; all 0: one, as it comes */
    stk_schedule schedule;
    const stk_param_group *groups; /* [n_groups], STK_MOST_GROUPS at most: frozen parameters, rates of their own */
    int n_groups;
    const char *no_decay; /* parts of parameter names without weight decay, comma-separated: "bias,norm" */
    /* Of programs, input pipelines and a checkpoint's copy together; 0: none. What needs more is refused before the
     * first step, naming the largest buffers. */
    size_t memory_limit_bytes;
    /* Instead: that share of the memory of the device (0.6), or STK_MEMORY_FREE, what is free there as training begins.
     * 0: neither. A device on the host has the host's memory, within the limits of control groups; on others programs
     * alone count, since input pipelines stay on the host. */
    double memory_share;
    /* What is recomputed in the backward pass instead of being kept. NULL, "auto": what costs about a hundredth of the
     * step's time, and more where memory_limit_bytes asks for it; "none"; or layers and scopes by name,
     * comma-separated: "layer1,layer2.0"; what is only used inside of one is recomputed, what it gives to the rest is
     * kept. No bit of any result changes. */
    const char *recompute;
    /* A batch may go through the step in parts, whose gradients are added up: the same losses within rounding, less
     * memory. Parts of micro_batch samples, or accumulate parts; both 0: as memory_limit_bytes asks for, and none where
     * the network has batch norm, whose statistics would be those of each part. */
    int64_t micro_batch, accumulate;
    /* Of all loaders together, see stoker/memory.h; 0: what the programs leave of memory_limit_bytes, or without that a
     * quarter of what is free. */
    size_t data_memory_bytes;
    const stk_dataset *valid; /* evaluated after each epoch; may be freed before the trainer */
    int64_t max_steps;        /* stop there, though the schedule goes by the whole run; 0: none */
    int64_t patience;         /* stop after N epochs without a better validation; 0: never */
    /* What says which of two validations is better, for stopping (by more than min_delta) and for the best checkpoint:
     * "loss" (NULL), "accuracy", "top5", "perplexity", or one of measures by its name: "iou", "top3". Of losses and
     * errors less is better, of all others more. */
    const char *stop_metric, *best_metric;
    double min_delta;
    const stk_measure *measures; /* [n_measures], what else is measured; borrowed until stk_trainer_configure returns */
    int n_measures;
    /* Steps trace_first to trace_last are written to the file `trace`, for ui.perfetto.dev: docs/observing.md. */
    const char *trace; /* NULL: none */
    int64_t trace_first, trace_last;
    stk_train_event_fn on_event;
    void *event_user;
    /* Where batches differ in length or in rows, the model of stk_trainer_new is for the longest samples, and this
     * makes it for others, with the same variables; it is called once for each length that comes, and for each shape
     * the step is compiled once. Returned in *out: taken. NULL: all batches have one shape. */
    stk_status (*make_model)(void *user, int64_t length, stk_model **out);
    void *model_user;
    const char *dump_graph; /* a pass's name, or "all": the graph after it goes to dump */
    void (*dump)(void *user, const char *pass, const char *text);
} stk_trainer_config;
STK_API stk_trainer_config stk_trainer_config_default(void);

/* Takes model and train. Never NULL; the first error of any part shows in stk_trainer_run. */
STK_API stk_trainer *stk_trainer_new(stk_model *model, stk_dataset *train, stk_optimizer optimizer);
STK_API void stk_trainer_configure(stk_trainer *trainer, const stk_trainer_config *config);
STK_API void stk_trainer_free(stk_trainer *trainer); /* accepts NULL */
/* Compiles at the first call; trains until that many epochs are done in all. STK_INTERRUPTED after stk_trainer_stop. */
STK_API stk_status stk_trainer_run(stk_trainer *trainer, int64_t n_epochs);
/* Finishes the step under way and returns from stk_trainer_run. Async-signal-safe. */
STK_API void stk_trainer_stop(stk_trainer *trainer);
/* Over the whole data set, in order, with the parameters as they are now. Borrows dataset. */
STK_API stk_status stk_trainer_evaluate(stk_trainer *trainer, const stk_dataset *dataset, stk_metrics *out);
/* One sample [...] as the input wants it -> probabilities (softmax of the output) [classes], or the plain output. */
STK_API stk_status stk_trainer_predict(stk_trainer *trainer, const void *sample, float *out, int64_t n_out);

/* The confusion matrix of the last evaluation, where it is among the measures: counts [classes,classes], a row for each
 * label, a column for each class given. NULL: there is none. Borrowed until the next evaluation. */
STK_API const double *stk_trainer_confusion(const stk_trainer *trainer, int64_t *n_classes);

typedef struct stk_train_result {
    int64_t n_steps, n_epochs;                  /* done in all, resumed ones included */
    stk_metrics train, valid;                   /* of the last epoch */
    double wall_s;                              /* this process's time in stk_trainer_run */
    double step_ms_median;                      /* of the steps after the first three; 0: none was timed */
    double samples_per_s;                       /* batch over that step */
    double samples_per_s_overall;               /* all that were trained on, over the time of training */
    double tokens_per_s;                        /* where a sample is a text: samples_per_s times its tokens; else 0 */
    double input_wait_share, first_step_s;      /* the latter from process start */
    stk_time_shares time;                       /* of this process's steps */
    size_t peak_planned_bytes, peak_used_bytes; /* all that is planned; used: as handed to the kernels */
    size_t peak_rss_bytes;                      /* of the process */
    const char *precision;                      /* as chosen, "f32"; a constant. NULL before stk_trainer_run */
    double loss_scale;                          /* of the last step; 0: none */
    int64_t n_skipped_steps;                    /* by loss scale or on_nan, in the whole run, resumed parts included */
    int64_t n_skipped;                          /* different records left out or replaced */
    int n_shapes;                               /* of training batches, for each of which the step was compiled */
    double compile_s;                           /* what that and the like for evaluation took */
    int n_data_threads;                         /* that tuning had the last loader use */
    bool early_stopped;
} stk_train_result;
STK_API void stk_trainer_get_result(const stk_trainer *trainer, stk_train_result *out);
/* The i-th skipped record as text; NULL past the end. Borrowed. */
STK_API const char *stk_trainer_skipped(const stk_trainer *trainer, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
