/* Recipes: what to train, on what, how. A recipe is a checked tree, and a struct of what is no list of layers or
 * stages.
 *
 * Reading one opens no data: stk_recipe_find_data looks for the files, and recipe/build.h makes the objects.
 * Threads: one at a time for each recipe.
 */
#ifndef STK_RECIPE_RECIPE_H
#define STK_RECIPE_RECIPE_H

#include "settings/schema.h"
#include "stoker/data/combine.h"
#include "stoker/train/run.h"
#include "stoker/train/trainer.h"

typedef struct stk_recipe_part {
    const stk_yaml_node *node;           /* NULL: this part is not in the recipe */
    double share;                        /* valid only: cut from train; 0: a source of its own */
    stk_yaml_node *source;               /* its kind is the key; NULL: none of its own */
    const stk_yaml_node *stages;         /* a sequence of one-key maps; NULL: none given */
    const stk_yaml_node *pack, *windows; /* NULL: none */
    bool unbatch;
    const stk_yaml_node *filter; /* a sequence of maps; NULL: none */
    bool shuffle, drop_remainder;
    int64_t take, skip, repeat; /* -1, 0, 1: not given */
    int64_t n_shards, i_shard;  /* 1, 0 */
    stk_shard_policy shard_policy;
    int64_t window; /* of the shuffle; 0: everything */
    bool shuffle_once;
    stk_error_policy on_error, eval_on_error;     /* eval_on_error: where the part is evaluated */
    const stk_yaml_node *cache;                   /* NULL: none */
    const stk_yaml_node *mixup, *cutmix, *masked; /* train only; NULL: not given */
    stk_yaml_node *index;                         /* its text: "auto", "none" or a path; NULL: not given */
} stk_recipe_part;

enum { STK_PART_TRAIN, STK_PART_VALID, STK_PART_TEST, STK_N_PARTS };

struct stk_data_record; /* recipe/data_record.h */
struct stk_model_class; /* nn/model_class.h */

typedef struct stk_recipe {
    struct stk_data_record
        *record;    /* owned; what the data were like, where they are not to be opened; NULL: they are */
    stk_yaml *yaml; /* owned; normal, see settings/schema.h */
    char *path;     /* of the file; owned */
    const char *name;
    stk_recipe_part part[STK_N_PARTS];
    int64_t batch;
    const stk_yaml_node *pad; /* NULL: samples have one shape */
    int64_t open_length;      /* for which a model is made where samples differ in length; 0: the longest */
    const struct stk_model_class *model_class; /* NULL: there is no model */
    const char *model_kind;                    /* "mlp" */
    const stk_yaml_node *model;                /* its settings, or the sequence of layers */
    const stk_yaml_node *loss;                 /* its settings; its key is the kind */
    double smoothing;
    stk_optimizer optimizer;
    stk_trainer_config
        config; /* what the recipe says of it; stk_build_config adds the rest. Its texts are the recipe's */
    int64_t epochs, max_threads; /* max_threads 0: as many as cores */
    int64_t replicas;
    stk_precision precision;
    const char *device;
    int64_t memory_bytes; /* -1: auto; -2: memory_share of all */
    double memory_share;
    int64_t data_memory_bytes; /* as memory_bytes and memory_share, of data.memory */
    double data_memory_share;
    uint64_t seed;
    stk_param_group group[STK_MOST_GROUPS]; /* config.groups; their texts are owned */
    const char *init_weights;               /* a file or a run; NULL: none */
    char *init_leave;                       /* "fc,head"; owned; NULL: none */
    char *no_decay;                         /* "bias,norm"; owned; NULL: none */
    char *recompute;                        /* "auto", "none", or layers: "layer1,layer2"; owned */
    int64_t checkpoint_every, checkpoint_keep;
    bool checkpoint_by_epoch, checkpoint_best, checkpoint_end;
    stk_measure measure[STK_MOST_MEASURES]; /* config.measures */
    const stk_yaml_node *expect;            /* NULL: not given */
    stk_expected expected[STK_MOST_EXPECTED];
    int n_expected;
    int64_t unjudged_epochs; /* see stk_run_result */
    int64_t log_every;       /* steps */
    struct {
        bool file;
        int port; /* -1: none */
    } prometheus;
    struct {
        bool on, histograms, gradients;
        int64_t n_images;
    } tensorboard;
} stk_recipe;

/* Reads path and applies n_set texts like "optimizer.sgd.lr=0.1". Free with stk_recipe_free. */
stk_status stk_recipe_read(const char *path, const char *const *set, int n_set, stk_recipe **out);
/* The same from memory. */
stk_status stk_recipe_parse(const char *path, const void *data, size_t n, const char *const *set, int n_set,
                            stk_recipe **out);
void stk_recipe_free(stk_recipe *recipe); /* accepts NULL */

/* Sets what a part, or one data set of several, says of its order. */
stk_status stk_recipe_take_order(const stk_yaml_node *node, stk_recipe_part *part);

/* Looks for each source: from the recipe's folder, the working folder, then $STOKER_DATA; paths become absolute. */
stk_status stk_recipe_find_data(stk_recipe *recipe);

/* Trainings need a model, which a recipe of data alone has not. */
stk_status stk_recipe_want_model(const stk_recipe *recipe);

/* The recipe in full, defaults included, as YAML. */
void stk_recipe_print(const stk_recipe *recipe, stk_text *out);
/* The keys whose values differ, "batch (128 -> 64), epochs (5 -> 6)", but those that may change between two parts of
 * one run. Returns how many there are. */
int stk_recipe_compare(const stk_recipe *before, const stk_recipe *now, stk_text *out);

extern const stk_key stk_recipe_key;

#endif
