/* The keys of a recipe itself, with batch and checkpoints. All keys together, in keys_*.c, are the one list that
 * parsing, messages and docs/recipe.md share. */
#include "recipe/keys.h"
#include "nn/loss_list.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/measure.h"

static const stk_key boundary_key = {.name = "number", .type = STK_KEY_INT, .least = 1, .most = 2147483647};
static const stk_key pad_field_key = {.name = "field", .type = STK_KEY_TEXT};
static const stk_key pad_batch_keys[] = {
    {.name = "on",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "Whether at all; 'pad: true' is short for it."},
    {.name = "length",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .doc = "Of all batches; a longer sample stops the run. Default: the longest of each batch, found by reading all "
            "records once."},
    {.name = "max_length",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .doc = "Longer samples are cut here. Default: none is cut."},
    {.name = "value", .type = STK_KEY_REAL, .default_value = "0", .doc = "What rows are filled up with."},
    {.name = "tokens",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e12,
     .doc = "Batches are of samples of like length, and of as many as make at most N elements, padding included; "
            "batch does not count then."},
    {.name = "boundaries",
     .type = STK_KEY_LIST,
     .element = &boundary_key,
     .doc = "Batches are of samples whose lengths lie between two of these, as tf.data's bucket_by_sequence_length."},
    {.name = "batches",
     .type = STK_KEY_LIST,
     .element = &boundary_key,
     .doc =
         "With boundaries, the samples of a batch of each bucket, one more than there are boundaries. Default: batch "
         "for each."},
    {.name = "to_boundary",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "With boundaries, whether rows are as long as the boundary - 1; then no sample may be longer."},
    {.name = "by", .type = STK_KEY_TEXT, .doc = "Whose length it is. Default: the only padded field."},
    {.name = "fields",
     .type = STK_KEY_LIST,
     .element = &pad_field_key,
     .one_is_list = true,
     .doc = "Which fields these settings are for. Default: all whose first side is open; the others are filled up "
            "with 0 to the longest."},
    END};

static const char *const precision_words[] = {"auto", "f32", "tf32", "bf16", "f16", NULL};
static const char *const shard_words[] = {"auto", "none", "optimizer", NULL};
static const char *const scaling_words[] = {"none", "linear", "sqrt", NULL};
static const char *const sum_words[] = {"f32", "bf16", NULL};
static const char *const step_words[] = {"steps", NULL};
static const stk_key recompute_part = {.name = "recompute", .type = STK_KEY_TEXT};
static const stk_key freeze_pattern = {.name = "freeze", .type = STK_KEY_TEXT};
static const stk_key no_decay_part = {.name = "no_decay", .type = STK_KEY_TEXT};
static const char *const on_nan_words[] = {"stop", "skip", NULL};
static const stk_key ema_keys[] = {
    {.name = "decay",
     .type = STK_KEY_REAL,
     .least = 0,
     .most = 0.999999,
     .required = true,
     .doc = "The share of the old mean in the new one: 0.999 looks back about 1,000 steps."},
    {.name = "warmup",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "A smaller decay at first: (1 + n) / (10 + n) after n steps, while that is less."},
    END};
static const stk_key checkpoint_keys[] = {
    {.name = "every", .type = STK_KEY_EVERY, .default_value = "1 epoch", .doc = "How often."},
    {.name = "keep",
     .type = STK_KEY_INT,
     .default_value = "2",
     .least = 2,
     .most = 1e6,
     .doc = "How many of the last are kept."},
    {.name = "best",
     .type = STK_KEY_TEXT,
     .default_value = "loss",
     .doc = "By what validation chooses one that is kept too, and tested: loss, accuracy, one of metrics by its name "
            "(iou, "
            "top3), or none. Of losses and errors less is better, of all others more."},
    {.name = "end",
     .type = STK_KEY_BOOL,
     .default_value = "true",
     .doc = "Whether the end of a run is saved, whatever the cause; without it "
            "a run that only measures writes nothing."},
    END};
static const stk_key early_stopping_keys[] = {{.name = "patience",
                                               .type = STK_KEY_INT,
                                               .least = 1,
                                               .most = 1e6,
                                               .required = true,
                                               .doc = "Epochs without a better validation after which the run stops."},
                                              {.name = "metric",
                                               .type = STK_KEY_TEXT,
                                               .default_value = "loss",
                                               .doc = "What gets better, as for checkpoint.best."},
                                              {.name = "min_delta",
                                               .type = STK_KEY_REAL,
                                               .default_value = "0",
                                               .least = 0,
                                               .most = 1e9,
                                               .doc = "Better is by more than this."},
                                              END};
static const stk_key expected_key = {.name = "figure", .type = STK_KEY_TEXT};
static const stk_key log_keys[] = {{.name = "every",
                                    .type = STK_KEY_EVERY,
                                    .words = step_words,
                                    .default_value = "10 steps",
                                    .doc = "Steps between the lines of metrics.jsonl."},
                                   {.name = "grad_norm",
                                    .type = STK_KEY_BOOL,
                                    .default_value = "false",
                                    .doc = "The norm of all gradients too, and a warning when it explodes: a pass over "
                                           "the gradients each step. With clip_norm it is there in any case."},
                                   END};

static const stk_key metric_key = {.name = "metric", .type = STK_KEY_CHOICE, .kinds = stk_measure_kinds};

static const stk_key recipe_keys[] = {
    {.name = "name", .type = STK_KEY_TEXT, .doc = "Of the run's folder, runs/NAME. Default: the recipe's file name."},
    {.name = "data",
     .type = STK_KEY_MAP,
     .keys = stk_data_keys,
     .required = true,
     .no_short = true,
     .doc = "Where samples come from and what is done to them."},
    {.name = "valid",
     .type = STK_KEY_SHARE,
     .least = 0,
     .most = 1,
     .above = true,
     .doc = "Short for data.valid.share."},
    {.name = "batch", .type = STK_KEY_INT, .default_value = "32", .least = 1, .most = 1e6, .doc = "Samples in a step."},
    {.name = "pad",
     .type = STK_KEY_MAP,
     .keys = pad_batch_keys,
     .doc =
         "Samples of different lengths are filled up, as tf.data's padded_batch; their lengths are the fields "
         "NAME.length. bert and gpt2 train on any lengths, other models on one. Default: all samples have one shape."},
    {.name = "model", .type = STK_KEY_CHOICE, .kinds = stk_model_kinds, .doc = "The network; stoker data needs none."},
    {.name = "loss",
     .type = STK_KEY_CHOICE,
     .kinds = stk_loss_kinds,
     .default_value = "cross_entropy",
     .doc = "What is made small."},
    {.name = "metrics",
     .type = STK_KEY_LIST,
     .element = &metric_key,
     .one_is_list = true,
     .may_be_empty = true,
     .doc = "What else is measured, in training and in evaluation: [f1, auc, {top_k: 3}]. See losses.md. Default: "
            "accuracy, and top-5 of more than five classes."},
    {.name = "optimizer",
     .type = STK_KEY_CHOICE,
     .kinds = stk_optimizer_kinds,
     .default_value = "adam",
     .doc = "How parameters are updated."},
    {.name = "schedule",
     .type = STK_KEY_CHOICE,
     .kinds = stk_schedule_kinds,
     .default_value = "constant",
     .doc = "How the learning rate changes."},
    {.name = "epochs",
     .type = STK_KEY_INT,
     .may_change = true,
     .default_value = "10",
     .least = 1,
     .most = 1e9,
     .doc = "Passes over the training data."},
    {.name = "precision",
     .type = STK_KEY_WORD,
     .words = precision_words,
     .default_value = "auto",
     .doc = "The element type of products and activations; auto: bf16 where the device is fast in it, else f32. "
            "Parameters, statistics, losses and the last layer are f32 in any case. tf32: all is f32, but cuBLASLt's "
            "products and cuDNN's convolutions round what they multiply to TF32; an error on devices without it."},
    {.name = "loss_scale",
     .type = STK_KEY_CHOICE,
     .keys = stk_loss_scale_kinds,
     .default_value = "auto",
     .doc = "A factor on the loss that keeps small gradients in f16 from becoming 0; gradients are divided by it."},
    {.name = "ema",
     .type = STK_KEY_MAP,
     .keys = ema_keys,
     .doc = "A running mean of the weights, which evaluation, checkpoints and prediction then take for the weights. "
            "Default: none."},
    {.name = "lookahead",
     .type = STK_KEY_MAP,
     .keys = stk_lookahead_keys,
     .doc = "Slow weights, to which the weights go back every N steps; Zhang et al. 2019. Default: none."},
    {.name = "whiten",
     .type = STK_KEY_MAP,
     .keys = stk_whiten_keys,
     .doc = "A convolution that reads the images begins as the whitening of their patches. Default: none."},
    {.name = "tta",
     .type = STK_KEY_MAP,
     .keys = stk_tta_keys,
     .doc = "Validation, test and stoker eval take the mean of the outputs for several views of an image. Default: "
            "none."},
    {.name = "on_nan",
     .type = STK_KEY_WORD,
     .words = on_nan_words,
     .default_value = "stop",
     .doc = "stop: a loss that is not finite ends the run and says where; skip: a step whose gradients are not finite "
            "changes nothing and is counted, and 20 of them in a row end the run."},
    {.name = "memory",
     .type = STK_KEY_MEMORY,
     .may_change = true,
     .default_value = "auto",
     .doc =
         "What the run's process may take besides its code and libraries: the plan, the input pipeline, a "
         "checkpoint's copy. A run that needs more is refused before its first step. auto: what the machine has free."},
    {.name = "micro_batch",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "The batch goes through the step in parts of N samples, whose gradients are added up: less memory, the "
            "same losses within rounding. Batch norm then takes its statistics from each part. Default: as memory asks "
            "for, and whole where the network has batch norm."},
    {.name = "accumulate",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "The same as N parts: accumulate: 4 is a micro_batch of a quarter of the batch."},
    {.name = "recompute",
     .type = STK_KEY_LIST,
     .may_change = true,
     .element = &recompute_part,
     .one_is_list = true,
     .default_value = "[auto]",
     .doc = "What the backward pass recomputes instead of keeping it: auto, what costs about a hundredth of the time, "
            "and more only where memory asks for it; none; or what is inside of layers, [layer1, layer2.0]. It changes "
            "no result."},
    {.name = "device",
     .type = STK_KEY_TEXT,
     .may_change = true,
     .default_value = "cpu",
     .doc = "Where to compute: cpu, or cpu:1 for another one of that kind; 'stoker devices' lists them."},
    {.name = "seed",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = 9e15,
     .doc = "Of every random choice."},
    {.name = "deterministic",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "Whether all processors with the same instructions give the same bits: kernels are then chosen by rules "
            "for all of them, and not by "
            "what is known of this one or measured on it, which is slower on some. A device that repeats no bits is "
            "refused."},
    {.name = "threads",
     .type = STK_KEY_INT,
     .may_change = true,
     .default_value = "0",
     .least = 0,
     .most = 4096,
     .doc = "For computing and for the data, each; 0: as many as cores."},
    {.name = "sync_batch_norm",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "With replicas, whether batch norm takes its statistics from the whole batch, as one device would, and not "
            "from each share; slower."},
    {.name = "sync",
     .type = STK_KEY_MAP,
     .keys = stk_sync_keys,
     .doc = "For slow links: each replica trains by itself, and all go an outer step together every N steps and at the "
            "end of an epoch; DiLoCo, Douillard et al. 2023. Default: gradients are summed up in each step."},
    {.name = "replicas",
     .type = STK_KEY_INT,
     .may_change = true,
     .default_value = "1",
     .least = 0,
     .most = STK_MOST_REPLICAS,
     .doc = "How many of this process train together, each on a share of every batch, with a share of the threads and "
            "of memory; batch stays the size of all shares together. 0: one for each core, as far as they divide the "
            "batch. Under mpirun or srun processes are replicas, and "
            "this stays 1."},
    {.name = "strict",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = STK_MOST_STRICT,
     .doc = "The same bits for any number of replicas that divides it, a power of two: each batch goes through in that "
            "many parts, whose sums are one binary tree. 'threads' is then each replica's. 0: sums are made as is "
            "fastest, and agree to rounding."},
    {.name = "lr_scaling",
     .type = STK_KEY_WORD,
     .words = scaling_words,
     .default_value = "none",
     .doc = "What the learning rate is multiplied by with N replicas: linear: N, sqrt: its root; for those who give a "
            "larger batch with more of them."},
    {.name = "sum_precision",
     .type = STK_KEY_WORD,
     .words = sum_words,
     .default_value = "f32",
     .doc = "With replicas, in what gradients go from one to the other: bf16 is half as many bytes. Sums are formed in "
            "f32 and rounded once."},
    {.name = "overlap",
     .type = STK_KEY_BOOL,
     .may_change = true,
     .default_value = "true",
     .doc = "With replicas, whether gradients are added up while the backward pass goes on, where memory allows it. It "
            "changes no loss."},
    {.name = "shard",
     .type = STK_KEY_WORD,
     .may_change = true,
     .words = shard_words,
     .default_value = "auto",
     .doc = "With replicas, what each has a part of instead of all. optimizer: the optimiser's state (ZeRO-1); each "
            "updates its part of large parameters. auto: the same where memory asks for it, on one host; none. It "
            "changes no loss, "
            "and checkpoints are whole."},
    {.name = "clip_norm",
     .type = STK_KEY_REAL,
     .least = 0,
     .above = true,
     .doc = "The most that the norm of all gradients together may be. Default: no limit."},
    {.name = "init",
     .type = STK_KEY_MAP,
     .keys = stk_init_keys,
     .doc = "First weights from a file or a run. What does not fit is an error with both sides."},
    {.name = "freeze",
     .type = STK_KEY_LIST,
     .element = &freeze_pattern,
     .one_is_list = true,
     .doc = "Parameters that stay as they are: [conv1, 'layer1.*']; their batch norms go by the running statistics."},
    {.name = "groups",
     .type = STK_KEY_LIST,
     .element = &stk_group_key,
     .doc = "Parameters with a rate or a decay of their own; the first that matches counts."},
    {.name = "no_decay",
     .type = STK_KEY_LIST,
     .element = &no_decay_part,
     .doc = "Parts of parameters' names that get no weight decay: [bias, norm]. Default: none."},
    {.name = "checkpoint",
     .type = STK_KEY_MAP,
     .may_change = true,
     .keys = checkpoint_keys,
     .default_value = "",
     .doc = "When the run is saved."},
    {.name = "early_stopping", .type = STK_KEY_MAP, .keys = early_stopping_keys, .doc = "Needs valid. Default: never."},
    {.name = "expect",
     .type = STK_KEY_LIST,
     .may_change = true,
     .element = &expected_key,
     .one_is_list = true,
     .doc =
         "What the run is to reach: [test_accuracy >= 0.98, test_loss <= 0.1], figures of result.json. Where its end "
         "falls short the program says so, and its exit code is 1. Fewer epochs on the command line than in the file "
         "are not judged by it. Default: nothing."},
    {.name = "log",
     .type = STK_KEY_MAP,
     .may_change = true,
     .keys = log_keys,
     .default_value = "",
     .doc = "What is written to metrics.jsonl."},
    {.name = "prometheus",
     .type = STK_KEY_MAP,
     .may_change = true,
     .keys = stk_prometheus_keys,
     .default_value = "",
     .doc = "The run's numbers for Prometheus."},
    {.name = "tensorboard",
     .type = STK_KEY_MAP,
     .may_change = true,
     .keys = stk_tensorboard_keys,
     .default_value = "",
     .doc = "Event files for TensorBoard, in the run's folder 'events'."},
    END};

const stk_key stk_recipe_key = {.name = "", .type = STK_KEY_MAP, .keys = recipe_keys, .no_short = true};
