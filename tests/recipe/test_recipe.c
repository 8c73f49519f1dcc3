/* Recipes: defaults, short forms, ranges, messages with the nearest key, comparison, and the written reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "optim/optimizer.h"
#include "recipe/keys.h"
#include "recipe/recipe.h"
#include "settings/schema_scalar.h"
#include "stoker/train/run.h"

#define DATA  "data: {train: {source: {images: some/where}}}\n"
#define LEAST DATA "model: mlp\n"

static stk_recipe *parse(const char *text, const char *set)
{
    stk_recipe *recipe = NULL;
    if (stk_recipe_parse("folder/r.yaml", text, strlen(text), &set, set != NULL, &recipe) != STK_OK)
        fail_msg("%s", stk_error_text());
    return recipe;
}

static void assert_refused(const char *text, const char *set, const char *message)
{
    stk_recipe *recipe = NULL;
    stk_status status = stk_recipe_parse("r.yaml", text, strlen(text), &set, set != NULL, &recipe);
    if (status == STK_OK) fail_msg("accepted: %s %s", text, set ? set : "");
    assert_null(recipe);
    if (!strstr(stk_error_text(), message)) fail_msg("'%s' lacks '%s'", stk_error_text(), message);
}

static stk_optimizer optimizer_of(const char *text)
{
    char recipe[400];
    snprintf(recipe, sizeof(recipe), "%soptimizer: %s\n", LEAST, text);
    stk_recipe *r = parse(recipe, NULL);
    stk_optimizer optimizer = r->optimizer;
    stk_recipe_free(r);
    return optimizer;
}

static void optimizers_by_name(void **state)
{
    (void)state;
    stk_optimizer o = optimizer_of("rmsprop");
    assert_true(o.kind == STK_OPTIMIZER_RMSPROP && o.lr == 0.01 && o.beta2 == 0.99 && o.eps == 1e-8 && !o.centered);
    o = optimizer_of("{rmsprop: {like: keras, centered: true}}");
    assert_true(o.beta2 == 0.9 && o.eps == 1e-7 && o.centered);
    o = optimizer_of("{adagrad: {lr: 0.3}}");
    assert_true(o.kind == STK_OPTIMIZER_ADAGRAD && o.lr == 0.3 && o.eps == 1e-10);
    o = optimizer_of("lamb");
    assert_true(o.kind == STK_OPTIMIZER_LAMB && o.weight_decay == 0.01 && o.eps == 1e-6);
    o = optimizer_of("{lars: {trust: 0.02}}");
    assert_true(o.kind == STK_OPTIMIZER_LARS && o.momentum == 0.9 && o.trust == 0.02);
    o = optimizer_of("{muon: {lr: 0.02, nesterov: true, weight_decay: 0}}");
    assert_true(o.kind == STK_OPTIMIZER_MUON && o.momentum == 0.95 && o.rest_lr == 3e-4 && o.weight_decay == 0);
    o = optimizer_of("{lars: {momentum: 0, weight_decay: 0}}");
    assert_true(o.momentum == 0 && o.weight_decay == 0);
    o = optimizer_of("{adamw: {beta1: 0, beta2: 0, eps: 0, weight_decay: 0, like: keras}}");
    assert_true(o.beta1 == 0 && o.beta2 == 0 && o.eps == 0 && o.weight_decay == 0 && o.like_keras);
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    stk_recipe *r = parse(LEAST, NULL);
    assert_string_equal(r->name, "r");
    assert_int_equal(r->batch, 32);
    assert_int_equal(r->epochs, 10);
    assert_string_equal(r->model_kind, "mlp");
    assert_string_equal(r->device, "cpu");
    assert_int_equal(r->precision, STK_PRECISION_AUTO);
    assert_int_equal(r->optimizer.kind, STK_OPTIMIZER_ADAM);
    assert_true(r->optimizer.lr == 0.001 && r->optimizer.beta2 == 0.999 && r->optimizer.eps == 1e-8);
    assert_int_equal(r->config.schedule.kind, STK_SCHEDULE_CONSTANT);
    assert_string_equal(r->loss->key, "cross_entropy");
    assert_int_equal(r->memory_bytes, -1);
    assert_true(r->checkpoint_by_epoch);
    assert_int_equal(r->checkpoint_every, 1);
    assert_int_equal(r->checkpoint_keep, 2);
    assert_int_equal(r->log_every, 10);
    assert_null(r->no_decay);
    assert_true(r->part[STK_PART_TRAIN].drop_remainder);
    assert_null(r->part[STK_PART_VALID].node);
    assert_null(r->part[STK_PART_TEST].node);
    stk_recipe_free(r);
}

static void everything_is_taken(void **state)
{
    (void)state;
    stk_recipe *r =
        parse("name: all\n"
              "data:\n"
              "  train:\n"
              "    source: {idx: {images: a.gz, labels: b.gz}}\n"
              "    shuffle: yes\n"
              "    stages: [{scale: 1/255}]\n"
              "    take: 1_000\n"
              "    skip: 5\n"
              "    repeat: 2\n"
              "    shard: {count: 4, index: 3}\n"
              "    on_error: skip\n"
              "  test: {source: {images: d}, stages: [decode]}\n"
              "valid: 10%\n"
              "batch: 64\n"
              "model: {cnn: {widths: [8, 16]}}\n"
              "loss: {cross_entropy: {smoothing: 0.1}}\n"
              "optimizer: {sgd: {lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 5e-4, like: keras}}\n"
              "schedule: {cosine: {warmup: 2, final: 0.01}}\n"
              "epochs: 30\nprecision: f32\nmemory: 60%\nseed: 7\nthreads: 2\nclip_norm: 1\n"
              "no_decay: [bias, norm]\n"
              "checkpoint: {every: 50 steps, keep: 3, best: none}\n"
              "early_stopping: 4\n"
              "log: {every: 1 step}\n",
              "memory=8GiB");
    const stk_recipe_part *train = &r->part[STK_PART_TRAIN];
    assert_string_equal(stk_yaml_get(train->source, "labels")->text, "b.gz");
    assert_true(train->shuffle);
    assert_int_equal(train->take, 1000);
    assert_int_equal(train->skip, 5);
    assert_int_equal(train->repeat, 2);
    assert_int_equal(train->n_shards, 4);
    assert_int_equal(train->i_shard, 3);
    assert_int_equal(train->on_error.what, STK_ON_ERROR_REPLACE);
    assert_true(fabs(train->stages->child->child->child->real - 1 / 255.0) < 1e-18);
    assert_true(r->part[STK_PART_VALID].share == 0.1);
    assert_false(r->part[STK_PART_TEST].drop_remainder);
    assert_true(r->smoothing == 0.1);
    assert_true(r->optimizer.nesterov && r->optimizer.like_keras && r->optimizer.weight_decay == 5e-4);
    assert_int_equal(r->config.schedule.kind, STK_SCHEDULE_COSINE);
    assert_true(r->config.schedule.warmup_epochs == 2 && r->config.schedule.final_share == 0.01);
    assert_int_equal(r->memory_bytes, INT64_C(8) << 30);
    assert_string_equal(r->no_decay, "bias,norm");
    assert_false(r->checkpoint_by_epoch);
    assert_int_equal(r->checkpoint_every, 50);
    assert_int_equal(r->config.patience, 4);
    assert_int_equal(r->log_every, 1);
    stk_recipe_free(r);
}

static void orders_are_taken(void **state)
{
    (void)state;
    stk_recipe *r = parse("data:\n"
                          "  train:\n"
                          "    source: {images: d}\n"
                          "    shuffle: {window: 500, reshuffle: false}\n"
                          "    shard: {count: 4, index: 1, policy: auto}\n"
                          "  test: {source: {images: d}, shuffle: false}\n",
                          "batch=8");
    const stk_recipe_part *train = &r->part[STK_PART_TRAIN], *test = &r->part[STK_PART_TEST];
    assert_true(train->shuffle && train->shuffle_once);
    assert_int_equal(train->window, 500);
    assert_int_equal(train->shard_policy, STK_SHARD_AUTO);
    assert_false(test->shuffle || test->shuffle_once);
    assert_int_equal(test->shard_policy, STK_SHARD_DATA);
    stk_recipe_free(r);
}

static void messages_help(void **state)
{
    (void)state;
    assert_refused(LEAST "optimzer: sgd\n", NULL, "r.yaml:3:1: no key 'optimzer' (did you mean 'optimizer'?)");
    assert_refused(LEAST, "optimzer.sgd.lr=0.2",
                   "--set optimzer.sgd.lr: no key 'optimzer' (did you mean 'optimizer'?)");
    assert_refused(LEAST "optimizer: {sgd: {lrr: 1}}\n", NULL,
                   "r.yaml:3:19: no key 'lrr' in 'sgd' (did you mean 'lr'?)");
    assert_refused(LEAST "optimizer: {sdg: {lr: 1}}\n", NULL, "r.yaml:3:13: no optimizer 'sdg' (did you mean 'sgd'?)");
    assert_refused(LEAST "optimizer: frobnicate\n", NULL, "no optimizer 'frobnicate'; there are: sgd, adam, adamw");
    assert_refused(LEAST "batch: many\n", NULL,
                   "r.yaml:3:8: 'batch' must be a whole number from 1 to 1000000, not 'many'");
    assert_refused(LEAST "batch: [1]\n", NULL, "not a list");
    assert_refused(LEAST "optimizer: {sgd: {lr: -1}}\n", NULL, "'lr' must be a number above 0, not '-1'");
    assert_refused(LEAST "precision: f8\n", NULL, "precision");
    assert_refused(LEAST "precision: f33\n", NULL, "no precision 'f33' (did you mean 'f32'?)");
    assert_refused(LEAST "memory: lots\n", NULL, "auto, a size like 8GiB");
    assert_refused("model: mlp\n", NULL, "the key 'data' is missing");
    assert_refused("data: {train: {}}\nmodel: mlp\n", NULL, "r.yaml:1:15: 'train' needs the key 'source'");
    assert_refused(LEAST, "model.cnn.widths=[3]",
                   "--set model.cnn.widths: 'model' is 'mlp', which has no keys; where that is short for a map, give "
                   "all of it: --set 'model={...}'");
    assert_refused(DATA "model: {mlp: {}}\n", "model.cnn.widths=[3]", "can be only one of 'mlp' and 'cnn'");
    assert_refused(LEAST "early_stopping: 3\n", NULL, "needs validation");
    assert_refused(LEAST "valid: 120%\n", NULL, "must be a share");
    assert_refused(LEAST "valid: 100%\n", NULL, "leaves nothing to train on");
    assert_refused(LEAST "name: a/b\n", NULL, "cannot be a folder's name");
    assert_refused("data: {train: {source: {images: a}, remainder: keep}}\nmodel: mlp\n", NULL,
                   "training cannot keep the remainder");
    assert_refused("data: {train: {source: {images: a}, shard: {count: 2, index: 2}}}\nmodel: mlp\n", NULL,
                   "there are 2 shards, from 0");
    assert_refused(LEAST "optimizer: {sgd: {nesterov: true}}\n", NULL, "needs a momentum");
    assert_refused(LEAST "checkpoint: {keep: 1}\n", NULL, "'keep' must be a whole number from 2");
    assert_refused(LEAST "checkpoint: {every: 2 days}\n", NULL, "epochs or steps");
    assert_refused(DATA "model: {layers: [relu, {residual: [{dense: x}]}]}\n", NULL, "'units' must be a whole number");
    assert_refused("[1, 2]\n", NULL, "a recipe is a map of keys");
    assert_refused("data: {train: {source: {idx: {images: a}}}}\nmodel: mlp\n", NULL, "'idx' needs the key 'labels'");
}

static void scalars_are_read(void **state)
{
    (void)state;
    double x;
    int64_t n;
    assert_true(stk_parse_real("5e-4", &x) && x == 5e-4);
    assert_true(stk_parse_real("1/255", &x) && x == 1 / 255.0);
    assert_false(stk_parse_real("1/0", &x));
    assert_false(stk_parse_real("inf", &x));
    assert_false(stk_parse_real("0x10", &x));
    assert_false(stk_parse_real("", &x));
    assert_true(stk_parse_int("60_000", &n) && n == 60000);
    assert_false(stk_parse_int("1_", &n));
    assert_false(stk_parse_int("99999999999999999999", &n));
    assert_true(stk_parse_bytes("8GiB", &n) && n == INT64_C(8) << 30);
    assert_true(stk_parse_bytes("512 MiB", &n) && n == 512 << 20);
    assert_true(stk_parse_bytes("1.5kb", &n) && n == 1500);
    assert_true(stk_parse_bytes("1000", &n) && n == 1000);
    assert_false(stk_parse_bytes("GiB", &n));
    assert_false(stk_parse_bytes("8GiBs", &n));
    char text[STK_NUMBER_BYTES];
    stk_number_text(0.1, text);
    assert_string_equal(text, "0.1");
    stk_number_text(1 / 3.0, text);
    assert_true(strtod(text, NULL) == 1 / 3.0);
}

static void the_full_recipe_is_the_same_recipe(void **state)
{
    (void)state;
    stk_recipe *r = parse(LEAST "optimizer: {sgd: {lr: 1e-1}}\nvalid: 10%\n", NULL);
    stk_text first = {0}, second = {0}, differences = {0};
    stk_recipe_print(r, &first);
    stk_recipe *again = parse(stk_text_get(&first), NULL);
    stk_recipe_print(again, &second);
    assert_string_equal(stk_text_get(&first), stk_text_get(&second));
    assert_int_equal(stk_recipe_compare(r, again, &differences), 0);
    stk_recipe_free(r);
    stk_recipe_free(again);
    stk_text_free(&first);
    stk_text_free(&second);
}

static void comparison_names_what_differs(void **state)
{
    (void)state;
    stk_text text = {0};
    stk_recipe *a = parse(LEAST "optimizer: {sgd: {lr: 0.1}}\n", NULL);
    /* Another spelling, another order and an explicit default change nothing. */
    stk_recipe *same = parse("model: {mlp: {}}\noptimizer: {sgd: {momentum: 0, lr: 1e-1}}\nseed: 0\n" DATA, NULL);
    assert_int_equal(stk_recipe_compare(a, same, &text), 0);
    stk_recipe *other = parse(LEAST "optimizer: {sgd: {lr: 0.2}}\nclip_norm: 2\nepochs: 99\n", NULL);
    assert_int_equal(stk_recipe_compare(a, other, &text), 2);
    assert_string_equal(stk_text_get(&text), "optimizer.sgd.lr (0.1 -> 0.2), clip_norm (none -> 2)");
    stk_text_free(&text);
    stk_recipe_free(a);
    stk_recipe_free(same);
    stk_recipe_free(other);
}

static void missing_data_says_where_it_looked(void **state)
{
    (void)state;
    stk_recipe *r = parse("data: {train: {source: {images: no/such/digits}}}\nmodel: mlp\n", NULL);
    setenv("STOKER_DATA", "/no/data", 1);
    assert_int_equal(stk_recipe_find_data(r), STK_NOT_FOUND);
    const char *text = stk_error_text();
    assert_non_null(strstr(text, "folder/r.yaml:1:33: no such data"));
    assert_non_null(strstr(text, "'folder/no/such/digits', 'no/such/digits', '/no/data/no/such/digits'"));
    assert_non_null(strstr(text, "stoker get digits"));
    unsetenv("STOKER_DATA");
    stk_recipe_free(r);
}

static void recipes_of_the_project_are_right(void **state)
{
    (void)state;
    stk_names names;
    assert_int_equal(stk_dir_list(STK_SOURCE_DIR "/recipes", &names), STK_OK);
    assert_true(names.n >= 4);
    for (size_t i = 0; i < names.n; i++) {
        char path[4096];
        stk_recipe *recipe;
        snprintf(path, sizeof(path), "%s/recipes/%s", STK_SOURCE_DIR, names.name[i]);
        if (stk_recipe_read(path, NULL, 0, &recipe) != STK_OK) fail_msg("%s", stk_error_text());
        stk_recipe_free(recipe);
    }
    stk_names_free(&names);
    char *starter;
    assert_int_equal(stk_recipe_starter("first", &starter), STK_OK);
    stk_recipe *recipe = parse(starter, NULL);
    assert_string_equal(recipe->name, "first");
    stk_recipe_free(recipe);
    free(starter);
}

static double field_of(const stk_optimizer *o, const char *name)
{
    const struct {
        const char *name;
        double value;
    } fields[] = {{"lr", o->lr},
                  {"weight_decay", o->weight_decay},
                  {"momentum", o->momentum},
                  {"beta1", o->beta1},
                  {"beta2", o->beta2},
                  {"eps", o->eps},
                  {"trust", o->trust},
                  {"rest_lr", o->rest_lr},
                  {"nesterov", o->nesterov},
                  {"centered", o->centered}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (!strcmp(fields[i].name, name)) return fields[i].value;
    fail_msg("no field '%s'", name);
    return 0;
}

static void check_default(const char *kind, const stk_key *key, const stk_optimizer *torch, const stk_optimizer *keras)
{
    const char *text = key->default_value ? key->default_value : strstr(key->doc, "Default: ");
    const char *other = strstr(key->doc, ", or ");
    if (!text || !strcmp(key->name, "like")) return;
    double said = key->type == STK_KEY_BOOL ? !strcmp(text, "true") : strtod(text + (key->default_value ? 0 : 9), NULL);
    double said_like_keras = other && strstr(other, "like Keras") ? strtod(other + 5, NULL) : said;
    double is = field_of(torch, key->name), is_like_keras = field_of(keras, key->name);
    if (said != is || said_like_keras != is_like_keras)
        fail_msg("the reference says that %s's %s is %g, like Keras %g, and it is %g and %g", kind, key->name, said,
                 said_like_keras, is, is_like_keras);
}

/* Those of the reference are those that a recipe has, and a program in C. */
static void optimizers_have_the_defaults_that_are_written(void **state)
{
    (void)state;
    for (int i = 0; i < STK_N_OPTIMIZERS; i++) {
        const stk_key *kind = stk_optimizer_kinds[i], *key = kind->keys;
        char text[80];
        bool has_keras = false;
        for (; key->name; key++)
            has_keras = has_keras || !strcmp(key->name, "like");
        snprintf(text, sizeof(text), has_keras ? "{%s: {like: keras}}" : "%s", kind->name);
        stk_optimizer torch = optimizer_of(kind->name), keras = optimizer_of(text);
        stk_optimizer torch_in_c = stk_optimizer_fill(torch.kind, (stk_optimizer){STK_OPTIMIZER_NOT_SET});
        stk_optimizer keras_in_c = stk_optimizer_default(torch.kind, has_keras);
        assert_int_equal(torch.kind, i);
        assert_int_equal(keras_in_c.like_keras, has_keras);
        for (key = kind->keys; key->name; key++) {
            check_default(kind->name, key, &torch, &keras);
            check_default(kind->name, key, &torch_in_c, &keras_in_c);
        }
    }
}

static stk_schedule schedule_of(const char *text)
{
    char recipe[400];
    snprintf(recipe, sizeof(recipe), "%sschedule: %s\n", LEAST, text);
    stk_recipe *r = parse(recipe, NULL);
    stk_schedule schedule = r->config.schedule;
    stk_recipe_free(r);
    return schedule;
}

static void schedules_have_the_defaults_that_are_written(void **state)
{
    (void)state;
    const stk_schedule want[] = {stk_constant_schedule(), stk_step_schedule(.every_epochs = 3), stk_cosine_schedule(),
                                 stk_triangle_schedule()};
    const char *const text[] = {"constant", "{step: {every: 3}}", "cosine", "triangle"};
    assert_int_equal(sizeof(want) / sizeof(want[0]), STK_N_SCHEDULES);
    for (int i = 0; i < STK_N_SCHEDULES; i++) {
        stk_schedule is = schedule_of(text[i]);
        assert_int_equal(is.kind, i);
        assert_true(is.warmup_epochs == want[i].warmup_epochs && is.every_epochs == want[i].every_epochs &&
                    is.gamma == want[i].gamma && is.final_share == want[i].final_share &&
                    is.first_share == want[i].first_share && is.peak == want[i].peak);
    }
    assert_true(schedule_of("{step: {every: 1, gamma: 0}}").gamma == 0);
}

static void the_written_reference_is_in_step(void **state)
{
    (void)state;
    char *text;
    uint8_t *file = NULL;
    size_t capacity = 0, n = 0;
    assert_int_equal(stk_recipe_reference(&text), STK_OK);
    assert_int_equal(stk_file_read(STK_SOURCE_DIR "/docs/recipe.md", &file, &capacity, &n), STK_OK);
    if (n != strlen(text) || memcmp(file, text, n))
        fail_msg("docs/recipe.md is out of step: stoker new --keys > docs/recipe.md");
    free(file);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(optimizers_by_name),
        cmocka_unit_test(everything_is_taken),
        cmocka_unit_test(orders_are_taken),
        cmocka_unit_test(messages_help),
        cmocka_unit_test(scalars_are_read),
        cmocka_unit_test(the_full_recipe_is_the_same_recipe),
        cmocka_unit_test(comparison_names_what_differs),
        cmocka_unit_test(missing_data_says_where_it_looked),
        cmocka_unit_test(recipes_of_the_project_are_right),
        cmocka_unit_test(optimizers_have_the_defaults_that_are_written),
        cmocka_unit_test(schedules_have_the_defaults_that_are_written),
        cmocka_unit_test(the_written_reference_is_in_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
