/* See recipe/recipe.h. Tree to struct, and the checks that take more than one key. */
#include "recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "recipe/build.h"
#include "recipe/data_record.h"
#include "recipe/expect.h"
#include "train/measure.h"
#include "train/precision.h"

/* --- getters for a tree that the schema has checked --- */

static const stk_yaml_node *get(const stk_yaml_node *node, const char *key)
{
    return stk_yaml_get(node, key);
}

/* --- data --- */

static stk_shard_policy take_policy(const stk_yaml_node *shard)
{
    return stk_yaml_is(shard, "policy", "file")   ? STK_SHARD_FILE
           : stk_yaml_is(shard, "policy", "auto") ? STK_SHARD_AUTO
           : stk_yaml_is(shard, "policy", "off")  ? STK_SHARD_OFF
                                                  : STK_SHARD_DATA;
}

stk_status stk_recipe_take_order(const stk_yaml_node *node, stk_recipe_part *part)
{
    const stk_yaml_node *shard = get(node, "shard"), *shuffle = get(node, "shuffle");
    part->filter = get(node, "filter");
    part->pack = get(node, "pack");
    part->windows = get(node, "windows");
    part->unbatch = stk_yaml_bool(node, "unbatch");
    part->shuffle = stk_yaml_bool(shuffle, "on");
    part->window = stk_yaml_int(shuffle, "window", 0);
    part->shuffle_once = shuffle && !stk_yaml_bool(shuffle, "reshuffle");
    part->take = stk_yaml_int(node, "take", -1);
    part->skip = stk_yaml_int(node, "skip", 0);
    part->repeat = stk_yaml_int(node, "repeat", 1);
    part->n_shards = stk_yaml_int(shard, "count", 1);
    part->i_shard = stk_yaml_int(shard, "index", 0);
    part->shard_policy = take_policy(shard);
    if (part->i_shard < part->n_shards) return STK_OK;
    return stk_yaml_fail(get(shard, "index"), "'index' is %lld, but there are %lld shards, from 0",
                         (long long)part->i_shard, (long long)part->n_shards);
}

static void take_on_error(const stk_yaml_node *node, bool is_train, stk_error_policy *out)
{
    *out = (stk_error_policy){.most = stk_yaml_int(node, "most", 0)};
    if (!node) return;
    if (stk_yaml_is(node, "policy", "skip")) out->what = is_train ? STK_ON_ERROR_REPLACE : STK_ON_ERROR_SKIP;
    if (stk_yaml_is(node, "policy", "replace")) out->what = STK_ON_ERROR_REPLACE;
}

static stk_status take_part(const stk_yaml_node *node, int i_part, stk_recipe_part *part)
{
    *part = (stk_recipe_part){.node = node, .take = -1, .repeat = 1, .n_shards = 1};
    if (!node) return STK_OK;
    bool is_train = i_part == STK_PART_TRAIN;
    const stk_yaml_node *remainder = get(node, "remainder");
    part->share = stk_yaml_real(node, "share", 0);
    part->stages = get(node, "stages");
    STK_RETURN_IF_ERROR(stk_recipe_take_order(node, part));
    part->cache = get(node, "cache");
    take_on_error(get(node, "on_error"), is_train, &part->on_error);
    take_on_error(get(node, "on_error"), false, &part->eval_on_error);
    part->drop_remainder = remainder ? stk_yaml_is(node, "remainder", "drop") : is_train;
    if (is_train && remainder && !part->drop_remainder)
        return stk_yaml_fail(remainder, "training cannot keep the remainder: a step is compiled for full batches; with "
                                        "shuffle each epoch leaves out other samples");
    if (i_part == STK_PART_VALID && part->share > 0 && get(node, "source"))
        return stk_yaml_fail_key(get(node, "source"), "'valid' has a share of train already, so no source of its own");
    if (i_part == STK_PART_VALID && part->share == 0 && !get(node, "source"))
        return stk_yaml_fail(node, "'valid' needs a share of train like 10%%, or a source of its own");
    if (part->share == 1) return stk_yaml_fail(get(node, "share"), "100 %% for validation leaves nothing to train on");
    part->source = get(node, "source") ? get(node, "source")->child : NULL;
    part->mixup = get(node, "mixup");
    part->cutmix = get(node, "cutmix");
    part->masked = get(node, "masked");
    part->index = stk_yaml_get(node, "index");
    return STK_OK;
}

/* --- training --- */

/* "a,b" of a sequence; NULL where there is none. */
static stk_status join_words(const stk_yaml_node *node, char **out)
{
    stk_text text = {0};
    for (const stk_yaml_node *part = node ? node->child : NULL; part; part = part->next)
        stk_text_add(&text, "%s%s", text.n ? "," : "", part->text);
    STK_RETURN_IF_ERROR(stk_text_status(&text));
    *out = text.data;
    return STK_OK;
}

static stk_loss_scale take_loss_scale(const stk_yaml_node *kind)
{
    stk_loss_scale s = stk_loss_scale_default();
    if (stk_yaml_is(kind, "like", "keras")) s.initial = 0x1p15;
    s.initial = stk_yaml_real(kind, !strcmp(kind->key, "fixed") ? "scale" : "initial", s.initial);
    s.growth = stk_yaml_real(kind, "growth", s.growth);
    s.backoff = stk_yaml_real(kind, "backoff", s.backoff);
    s.every = stk_yaml_int(kind, "every", s.every);
    if (!strcmp(kind->key, "none")) s.kind = STK_LOSS_SCALE_NONE;
    if (!strcmp(kind->key, "fixed")) s.kind = STK_LOSS_SCALE_FIXED;
    if (!strcmp(kind->key, "dynamic")) s.kind = STK_LOSS_SCALE_DYNAMIC;
    return s;
}

static stk_precision get_precision(const stk_yaml_node *root)
{
    const char *text = stk_yaml_text(root, "precision");
    for (int i = STK_PRECISION_F32; i <= STK_PRECISION_TF32; i++)
        if (!strcmp(text, stk_precision_name((stk_precision)i))) return (stk_precision)i;
    return STK_PRECISION_AUTO;
}

/* A name becomes a folder's name. */
static stk_status check_name(const stk_yaml_node *node)
{
    if (node->text[0] == '.' || strchr(node->text, '/') || strlen(node->text) > 200)
        return stk_yaml_fail(node, "'%.60s' cannot be a folder's name: no '/', no '.' at its start, at most 200 bytes",
                             node->text);
    return STK_OK;
}

/* What the run tells about itself. */
static void take_observe(const stk_yaml_node *root, stk_recipe *recipe)
{
    const stk_yaml_node *tensorboard = get(root, "tensorboard"), *prometheus = get(root, "prometheus");
    recipe->log_every = stk_yaml_int(get(root, "log"), "every", 10);
    recipe->config.grad_norm = stk_yaml_bool(get(root, "log"), "grad_norm");
    recipe->prometheus.file = stk_yaml_bool(prometheus, "file");
    recipe->prometheus.port = (int)stk_yaml_int(prometheus, "port", -1);
    recipe->tensorboard.on = stk_yaml_bool(tensorboard, "on");
    recipe->tensorboard.histograms = stk_yaml_is(tensorboard, "histograms", "epoch");
    recipe->tensorboard.gradients = stk_yaml_is(tensorboard, "gradients", "epoch");
    recipe->tensorboard.n_images = stk_yaml_int(tensorboard, "images", 0);
}

/* Frozen ones first: what is frozen has no rate. */
static stk_status take_groups(const stk_yaml_node *root, stk_recipe *recipe)
{
    const stk_yaml_node *freeze = get(root, "freeze"), *groups = get(root, "groups"), *init = get(root, "init");
    char *match;
    recipe->config.groups = recipe->group;
    if (freeze && freeze->child) {
        STK_RETURN_IF_ERROR(join_words(freeze, &match));
        recipe->group[recipe->config.n_groups++] = (stk_param_group){.match = match, .frozen = true};
    }
    for (const stk_yaml_node *group = groups ? groups->child : NULL; group; group = group->next) {
        if (recipe->config.n_groups == STK_MOST_GROUPS)
            return stk_yaml_fail(groups, "there may be %d groups at most", STK_MOST_GROUPS - 1);
        STK_RETURN_IF_ERROR(join_words(get(group, "match"), &match));
        recipe->group[recipe->config.n_groups++] =
            (stk_param_group){.match = match,
                              .lr_factor = stk_yaml_real(group, "lr", 1),
                              .weight_decay = stk_yaml_real(group, "weight_decay", -1),
                              .until_epochs = stk_yaml_real(group, "until", 0)};
    }
    recipe->init_weights = stk_yaml_text(init, "weights");
    return join_words(get(init, "leave"), &recipe->init_leave);
}

/* What training does besides the optimiser's steps. */
static void take_extras(const stk_yaml_node *root, stk_recipe *recipe)
{
    const stk_yaml_node *lookahead = get(root, "lookahead"), *whiten = get(root, "whiten"), *tta = get(root, "tta");
    recipe->config.average =
        (stk_average){stk_yaml_real(get(root, "ema"), "decay", 0), stk_yaml_bool(get(root, "ema"), "warmup")};
    recipe->config.lookahead =
        (stk_lookahead){stk_yaml_int(lookahead, "every", 0), stk_yaml_real(lookahead, "alpha", 0.5),
                        stk_yaml_real(lookahead, "power", 0)};
    const stk_yaml_node *sync = get(root, "sync");
    recipe->config.outer = (stk_outer){stk_yaml_int(sync, "every", 0), stk_yaml_real(sync, "outer_lr", 0.7),
                                       stk_yaml_real(sync, "outer_momentum", 0.9)};
    stk_whiten whiten_default = stk_whiten_default();
    recipe->config.whiten =
        (stk_whiten){stk_yaml_text(whiten, "layer"), stk_yaml_int(whiten, "samples", whiten_default.n_samples),
                     stk_yaml_real(whiten, "eps", whiten_default.eps)};
    recipe->config.views = (stk_views){stk_yaml_bool(tta, "flip"), (int)stk_yaml_int(tta, "shift", 0)};
}

static stk_status take_run(const stk_yaml_node *root, stk_recipe *recipe)
{
    const stk_yaml_node *memory = get(root, "memory"), *data_memory = get(get(root, "data"), "memory");
    const stk_yaml_node *checkpoint = get(root, "checkpoint");
    const stk_yaml_node *stopping = get(root, "early_stopping"), *patience = get(stopping, "patience");
    recipe->name = stk_yaml_text(root, "name");
    STK_RETURN_IF_ERROR(check_name(get(root, "name")));
    recipe->batch = stk_yaml_int(root, "batch", 0);
    recipe->pad = stk_yaml_bool(get(root, "pad"), "on") ? get(root, "pad") : NULL;
    recipe->epochs = stk_yaml_int(root, "epochs", 0);
    recipe->max_threads = stk_yaml_int(root, "threads", 0);
    recipe->config.lr_scaling = stk_yaml_is(root, "lr_scaling", "linear") ? STK_LR_SCALING_LINEAR
                                : stk_yaml_is(root, "lr_scaling", "sqrt") ? STK_LR_SCALING_SQRT
                                                                          : STK_LR_SCALING_NONE;
    recipe->config.narrow_sums = stk_yaml_is(root, "sum_precision", "bf16");
    recipe->config.no_overlap = !stk_yaml_bool(root, "overlap");
    recipe->config.deterministic = stk_yaml_bool(root, "deterministic");
    recipe->config.sync_batch_norm = stk_yaml_bool(root, "sync_batch_norm");
    recipe->config.strict = (int)stk_yaml_int(root, "strict", 0);
    recipe->config.shared = stk_yaml_is(root, "shard", "optimizer") ? STK_SHARED_OPTIMIZER
                            : stk_yaml_is(root, "shard", "none")    ? STK_SHARED_NONE
                                                                    : STK_SHARED_AUTO;
    recipe->replicas = stk_yaml_int(root, "replicas", 1);
    recipe->device = stk_yaml_text(root, "device");
    recipe->seed = (uint64_t)stk_yaml_int(root, "seed", 0);
    recipe->config.clip_norm = stk_yaml_real(root, "clip_norm", 0);
    recipe->memory_bytes = memory->integer;
    recipe->memory_share = memory->real;
    recipe->data_memory_bytes = data_memory->integer;
    recipe->data_memory_share = data_memory->real;
    recipe->checkpoint_every = stk_yaml_int(checkpoint, "every", 1);
    recipe->checkpoint_by_epoch = stk_yaml_bool(checkpoint, "every");
    recipe->checkpoint_keep = stk_yaml_int(checkpoint, "keep", 2);
    recipe->checkpoint_best = !stk_yaml_is(checkpoint, "best", "none");
    recipe->config.best_metric = recipe->checkpoint_best ? stk_yaml_text(checkpoint, "best") : NULL;
    recipe->checkpoint_end = stk_yaml_bool(checkpoint, "end");
    take_observe(root, recipe);
    recipe->config.patience = patience ? patience->integer : 0;
    recipe->config.stop_metric = stk_yaml_text(stopping, "metric");
    recipe->config.min_delta = stk_yaml_real(stopping, "min_delta", 0);
    recipe->expect = get(root, "expect");
    STK_RETURN_IF_ERROR(stk_expect_read(recipe->expect, recipe->expected, &recipe->n_expected));
    if (recipe->n_expected > 0 && !recipe->part[STK_PART_TEST].node)
        return stk_yaml_fail_key(recipe->expect, "'expect' is about the test part: add 'test' to 'data'");
    if (patience && !recipe->part[STK_PART_VALID].node)
        return stk_yaml_fail_key(get(root, "early_stopping"), "'early_stopping' needs validation: add 'valid: 10%%'");
    recipe->config.micro_batch = stk_yaml_int(root, "micro_batch", 0);
    recipe->config.accumulate = stk_yaml_int(root, "accumulate", 0);
    if (recipe->config.micro_batch > 0 && recipe->config.accumulate > 0)
        return stk_yaml_fail_key(get(root, "accumulate"), "'accumulate' and 'micro_batch' say the same twice");
    STK_RETURN_IF_ERROR(join_words(get(root, "recompute"), &recipe->recompute));
    STK_RETURN_IF_ERROR(join_words(get(root, "no_decay"), &recipe->no_decay));
    STK_RETURN_IF_ERROR(take_groups(root, recipe));
    recipe->precision = get_precision(root);
    recipe->config.loss_scale = take_loss_scale(get(root, "loss_scale")->child);
    recipe->config.on_nan = stk_yaml_is(root, "on_nan", "skip") ? STK_ON_NAN_SKIP : STK_ON_NAN_STOP;
    take_extras(root, recipe);
    return STK_OK;
}

static stk_status take_metrics(const stk_yaml_node *list, stk_recipe *recipe)
{
    recipe->config.measures = recipe->measure;
    for (const stk_yaml_node *node = list ? list->child : NULL; node; node = node->next) {
        if (recipe->config.n_measures == STK_MOST_MEASURES)
            return stk_yaml_fail(list, "there may be %d metrics at most", STK_MOST_MEASURES);
        STK_RETURN_IF_ERROR(stk_measure_read(node->child, &recipe->measure[recipe->config.n_measures++]));
    }
    return STK_OK;
}

static stk_status take_model(const stk_yaml_node *root, stk_recipe *recipe)
{
    const stk_yaml_node *loss = get(root, "loss")->child;
    const stk_yaml_node *model = get(root, "model");
    recipe->model = model ? model->child : NULL;
    recipe->model_kind = model ? recipe->model->key : NULL;
    recipe->model_class = model ? stk_model_class_find(recipe->model_kind) : NULL;
    recipe->loss = loss;
    STK_RETURN_IF_ERROR(take_metrics(get(root, "metrics"), recipe));
    recipe->smoothing = stk_yaml_real(loss, "smoothing", 0);
    STK_RETURN_IF_ERROR(stk_optimizer_read(get(root, "optimizer")->child, &recipe->optimizer));
    return stk_schedule_read(get(root, "schedule")->child, &recipe->config.schedule);
}

/* --- reading --- */

/* "valid: 10%" at the top is data.valid's. */
static stk_status move_valid(stk_yaml_node *root)
{
    stk_yaml_node *valid = stk_yaml_get(root, "valid"), *data = stk_yaml_get(root, "data");
    if (!valid || stk_yaml_is_null(valid) || !data || data->kind != STK_YAML_MAP) return STK_OK;
    stk_yaml_node *other = stk_yaml_get(data, "valid");
    if (other && !stk_yaml_is_null(other))
        return stk_yaml_fail_key(valid, "'valid' is given twice, here and in 'data'");
    if (other) stk_yaml_remove(data, other);
    stk_yaml_remove(root, valid);
    valid->next = data->child;
    data->child = valid;
    data->n_children++;
    return STK_OK;
}

/* The file's name without folders and ".yaml". */
static stk_status add_name(stk_yaml *yaml, const char *path)
{
    const stk_yaml_node *name = stk_yaml_get(yaml->root, "name");
    if (yaml->root->kind != STK_YAML_MAP || (name && !stk_yaml_is_null(name))) return STK_OK;
    if (name) stk_yaml_remove(yaml->root, name);
    const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path, *dot = strrchr(start, '.');
    stk_text text = {0};
    stk_text_add_bytes(&text, start, dot && dot > start ? (size_t)(dot - start) : strlen(start));
    stk_yaml_node *node = text.n ? stk_yaml_add(yaml, yaml->root, "name", text.data) : NULL;
    if (node) node->quoted = true; /* "123.yaml" has a text for a name. */
    stk_text_free(&text);
    return node ? STK_OK : stk_fail_memory(64);
}

static stk_status understand(stk_recipe *recipe)
{
    stk_yaml *yaml = recipe->yaml;
    STK_RETURN_IF_ERROR(move_valid(yaml->root));
    STK_RETURN_IF_ERROR(add_name(yaml, recipe->path));
    STK_RETURN_IF_ERROR(stk_schema_check(yaml, yaml->root, &stk_recipe_key));
    const stk_yaml_node *data = get(yaml->root, "data");
    static const char *const parts[STK_N_PARTS] = {"train", "valid", "test"};
    for (int i = 0; i < STK_N_PARTS; i++)
        STK_RETURN_IF_ERROR(take_part(get(data, parts[i]), i, &recipe->part[i]));
    /* What is cut from train has its files, and so its policy, unless it says otherwise. */
    stk_recipe_part *valid = &recipe->part[STK_PART_VALID];
    if (valid->share > 0 && !get(valid->node, "on_error"))
        valid->on_error = valid->eval_on_error = recipe->part[STK_PART_TRAIN].eval_on_error;
    STK_RETURN_IF_ERROR(take_model(yaml->root, recipe));
    return take_run(yaml->root, recipe);
}

static bool sets_key(const char *const *set, int n_set, const char *key)
{
    size_t n = strlen(key);
    for (int i = 0; i < n_set; i++)
        if (!strncmp(set[i], key, n) && (set[i][n] == '=' || set[i][n] == '.')) return true;
    return false;
}

static const char *find_default(const char *name)
{
    return stk_key_find(&stk_recipe_key, name)->default_value;
}

/* What is expected is expected of the epochs that stand next to it. Of fewer it says nothing, and the recipe in full
 * then lacks it; its figures are still looked for. file_epochs: NULL where the file gives none. */
static void leave_expected(stk_recipe *recipe, const char *file_epochs, const char *const *set, int n_set)
{
    stk_yaml_node *root = recipe->yaml->root;
    int64_t epochs = strtoll(file_epochs ? file_epochs : find_default("epochs"), NULL, 10);
    if (recipe->n_expected == 0 || recipe->epochs >= epochs || sets_key(set, n_set, "expect")) return;
    recipe->unjudged_epochs = epochs;
    stk_yaml_remove(root, recipe->expect);
}

/* Takes yaml. */
static stk_status make_recipe(const char *path, stk_yaml *yaml, const char *const *set, int n_set, stk_recipe **out)
{
    stk_status status = STK_OK;
    stk_recipe *recipe = calloc(1, sizeof(*recipe));
    *out = NULL;
    if (!recipe || !(recipe->path = strdup(path))) {
        stk_yaml_free(yaml);
        free(recipe);
        return stk_fail_memory(sizeof(*recipe));
    }
    recipe->yaml = yaml;
    recipe->config = stk_trainer_config_default();
    if (yaml->root->kind != STK_YAML_MAP) STK_TRY(stk_yaml_fail(yaml->root, "a recipe is a map of keys"));
    const char *file_epochs = stk_yaml_text(yaml->root, "epochs");
    for (int i = 0; i < n_set; i++)
        STK_TRY(stk_yaml_set(yaml, set[i]));
    STK_TRY(understand(recipe));
    leave_expected(recipe, file_epochs, set, n_set);
    *out = recipe;
    return STK_OK;
done:
    stk_recipe_free(recipe);
    return status;
}

stk_status stk_recipe_parse(const char *path, const void *data, size_t n, const char *const *set, int n_set,
                            stk_recipe **out)
{
    stk_yaml *yaml;
    *out = NULL;
    STK_RETURN_IF_ERROR(stk_yaml_parse(path, data, n, &yaml));
    return make_recipe(path, yaml, set, n_set, out);
}

stk_status stk_recipe_read(const char *path, const char *const *set, int n_set, stk_recipe **out)
{
    stk_yaml *yaml;
    *out = NULL;
    STK_RETURN_IF_ERROR(stk_yaml_read(path, &yaml));
    return make_recipe(path, yaml, set, n_set, out);
}

void stk_recipe_free(stk_recipe *recipe)
{
    if (!recipe) return;
    stk_data_record_free(recipe->record);
    stk_yaml_free(recipe->yaml);
    free(recipe->path);
    free(recipe->no_decay);
    free(recipe->init_leave);
    for (int i = 0; i < recipe->config.n_groups; i++)
        free((char *)(uintptr_t)recipe->group[i].match);
    free(recipe->recompute);
    free(recipe);
}

void stk_recipe_print(const stk_recipe *recipe, stk_text *out)
{
    stk_yaml_print(recipe->yaml->root, out);
}

stk_status stk_recipe_want_model(const stk_recipe *recipe)
{
    if (recipe->model) return STK_OK;
    return stk_yaml_fail(recipe->yaml->root, "the key 'model' is missing: the network to train");
}
