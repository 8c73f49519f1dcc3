/* 100 steps of a ResNet-18, a small BERT and a small GPT-2 from the same first weights and data as PyTorch: losses
 * within 1e-3. Weights and data are made by the formula of tests/golden/make_steps.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "golden/steps_golden.h"
#include "stoker/nn/transformer.h"
#include "train/trainer.h"

/* A sanitizer sees nothing new after a few steps, and makes each many times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { N_STEPS = 10 };
#else
enum { N_STEPS = 100 };
#endif
enum { N_BATCHES = 4, N_ROWS = 8, N_TOKENS = 16, N_WORDS = 100 };
enum { N_IMAGES = 16, SIDE = 8, N_PIXELS = SIDE * SIDE * 3, N_CLASSES = 10 }; /* of the ResNet */

static uint64_t hash_name(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001B3u;
    return h;
}

static uint64_t word(uint64_t hash, uint64_t i)
{
    uint64_t x = hash + i + 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static double uniform(uint64_t hash, uint64_t i)
{
    return (double)(word(hash, i) >> 40) * 0x1p-23 - 1;
}

/* --- data --- */

/* Field number i of a sample; below 0: numbers with a fraction. */
typedef struct field {
    const char *name;
    int64_t n, below;
    bool ignores; /* targets of -100, in some samples many, in others few, by the field before */
} field;

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    const field *fields = user;
    int64_t at = i_sample % (N_BATCHES * N_ROWS);
    for (int f = 0; f < 2; f++) {
        uint64_t hash = hash_name(fields[f].name);
        for (int64_t i = 0; i < fields[f].n; i++) {
            uint64_t place = (uint64_t)(at * fields[f].n + i);
            if (fields[f].below)
                ((int32_t *)out[f])[i] = (int32_t)((word(hash, place) >> 40) % (uint64_t)fields[f].below);
            else
                ((float *)out[f])[i] = (float)uniform(hash, place);
            if (fields[f].ignores && ((const int32_t *)out[0])[i] % 8 < at % N_ROWS) ((int32_t *)out[f])[i] = -100;
        }
    }
    return STK_OK;
}

/* Noise, and the pattern of a class: the label's in odd samples, another's in the others. */
static stk_status make_image(void *user, int64_t i_sample, void *const *out)
{
    uint64_t at = (uint64_t)i_sample, label = (word(hash_name("label"), at) >> 40) % N_CLASSES;
    uint64_t shown = at % 2 ? label : (word(hash_name("shown"), at) >> 40) % N_CLASSES;
    uint64_t image_hash = hash_name("image"), pattern_hash = hash_name("pattern");
    (void)user;
    for (uint64_t i = 0; i < N_PIXELS; i++)
        ((float *)out[0])[i] =
            (float)uniform(image_hash, at * N_PIXELS + i) + 0.5f * (float)uniform(pattern_hash, shown * N_PIXELS + i);
    *(int32_t *)out[1] = (int32_t)label;
    return STK_OK;
}

static stk_dataset *make_images(void)
{
    const stk_array_field arrays[] = {{.name = "image", .dtype = STK_F32, .sample = STK_SHAPE(SIDE, SIDE, 3)},
                                      {.name = "label", .dtype = STK_I32}};
    stk_dataset *dataset = stk_dataset_function(N_STEPS * N_IMAGES, arrays, 2, make_image, NULL);
    stk_dataset_batch(dataset, N_IMAGES, true);
    return dataset;
}

static stk_dataset *make_data(const field *fields, stk_shape a, stk_shape b)
{
    const stk_array_field arrays[] = {
        {.name = fields[0].name, .dtype = fields[0].below ? STK_I32 : STK_F32, .sample = a},
        {.name = fields[1].name, .dtype = STK_I32, .sample = b}};
    stk_dataset *dataset = stk_dataset_function(N_STEPS * N_ROWS, arrays, 2, make_sample, (void *)(uintptr_t)fields);
    stk_dataset_batch(dataset, N_ROWS, true);
    return dataset;
}

/* --- weights --- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static bool is_parameter(const char *name)
{
    return (ends_with(name, ".weight") || ends_with(name, ".bias"));
}

static void fill(const stk_named_tensor *tensor)
{
    stk_shape shape = tensor->view.desc.shape;
    uint64_t hash = hash_name(tensor->name);
    float *out = tensor->view.data;
    for (int64_t i = 0; i < stk_shape_count(shape); i++) {
        double u = uniform(hash, (uint64_t)i);
        if (shape.rank == 4)
            u *= sqrt(6 / (double)stk_shape_product(shape, 1, 4));
        else if (shape.rank > 1)
            u *= 0.08;
        else if (ends_with(tensor->name, "bias"))
            u *= 0.02;
        else
            u = (ends_with(tensor->name, "bn2.weight") ? 0.15 : 1) + 0.1 * u;
        out[i] = (float)u;
    }
}

/* --- runs --- */

typedef struct record {
    double loss[N_STEPS];
} record;

static void on_event(void *user, const stk_train_event *event)
{
    record *r = user;
    if (event->kind == STK_EVENT_STEP && event->step <= N_STEPS) r->loss[event->step - 1] = event->loss;
}

/* Takes model and data. */
static void compare_in_parts(const char *name, stk_model *model, stk_dataset *data, stk_optimizer optimizer,
                             const double *want, int64_t micro_batch)
{
    record got = {{0}};
    const stk_named_tensor *tensors;
    size_t n;
    double most = 0;
    int at = 0;
    stk_trainer *trainer = stk_trainer_new(model, data, optimizer);
    stk_trainer_config config = stk_trainer_config_default();
    config.on_event = on_event;
    config.event_user = &got;
    config.micro_batch = micro_batch;
    stk_trainer_configure(trainer, &config);
    if (stk_trainer_prepare(trainer, 1) != STK_OK) fail_msg("%s: %s", name, stk_error_text());
    assert_int_equal(stk_trainer_tensors(trainer, &tensors, &n), STK_OK);
    for (size_t i = 0; i < n; i++)
        if (is_parameter(tensors[i].name)) fill(&tensors[i]);
    assert_int_equal(stk_trainer_put_tensors(trainer), STK_OK);
    if (stk_trainer_run(trainer, 1) != STK_OK) fail_msg("%s: %s", name, stk_error_text());
    for (int i = 0; i < N_STEPS; i++) {
        double apart = fabs(got.loss[i] - want[i]) / fabs(want[i]);
        if (apart <= most) continue;
        most = apart;
        at = i;
    }
    printf("%s: %.4f to %.4f, at most %.1e apart, at step %d\n", name, got.loss[0], got.loss[N_STEPS - 1], most,
           at + 1);
    if (!(most <= 1e-3)) fail_msg("%s: loss %.7f at step %d, not %.7f", name, got.loss[at], at + 1, want[at]);
    stk_trainer_free(trainer);
}

static void compare(const char *name, stk_model *model, stk_dataset *data, stk_optimizer optimizer, const double *want)
{
    compare_in_parts(name, model, data, optimizer, want, 0);
}

static void resnet18(void **state)
{
    (void)state;
    stk_model *model = stk_model_new("resnet18");
    stk_value x = stk_resnet18(stk_model_input(model, STK_F32, SIDE, SIDE, 3), N_CLASSES, STK_STEM_CIFAR);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    compare("resnet18", model, make_images(), stk_sgd(.lr = resnet18_rate, .momentum = 0.9), resnet18_losses);
}

static stk_transformer_config small(void)
{
    return (stk_transformer_config){.layers = 2, .heads = 4, .width = 64, .vocabulary = N_WORDS, .positions = N_TOKENS};
}

/* Token 0 is padding here. */
static void bert(void **state)
{
    static const field fields[] = {{"tokens", N_TOKENS, N_WORDS, false}, {"label", 1, 4, false}};
    (void)state;
    stk_model *model = stk_model_new("bert");
    stk_transformer_config config = small();
    stk_value tokens = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(N_TOKENS));
    stk_value mask = stk_not_equal(tokens, stk_graph_constant(stk_model_graph(model), STK_I32, (stk_shape){0}, 0));
    stk_value x = stk_bert(tokens, &mask, &config, 4);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    compare("bert", model, make_data(fields, STK_SHAPE(N_TOKENS), (stk_shape){0}), stk_adamw(.lr = bert_rate),
            bert_losses);
}

static stk_model *make_gpt2(void)
{
    stk_model *model = stk_model_new("gpt2");
    stk_transformer_config config = small();
    stk_value tokens = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(N_TOKENS));
    stk_value targets = stk_model_input_named(model, "targets", STK_I32, STK_SHAPE(N_TOKENS));
    stk_model_loss(model, stk_gpt2(tokens, targets, &config));
    stk_model_loss_weight(model, stk_count_targets(targets));
    return model;
}

static void gpt2(void **state)
{
    static const field fields[] = {{"tokens", N_TOKENS, N_WORDS, false}, {"targets", N_TOKENS, N_WORDS, false}};
    (void)state;
    compare("gpt2", make_gpt2(), make_data(fields, STK_SHAPE(N_TOKENS), STK_SHAPE(N_TOKENS)),
            stk_adamw(.lr = gpt2_rate), gpt2_losses);
}

/* Targets that are ignored count nothing, in whatever part of the batch they are: whole, in 4 parts, in uneven ones. */
static void gpt2_with_ignored_targets(void **state)
{
    static const field fields[] = {{"tokens", N_TOKENS, N_WORDS, false}, {"targets", N_TOKENS, N_WORDS, true}};
    (void)state;
    for (int64_t micro = 0; micro < 4; micro += micro ? 1 : 2)
        compare_in_parts("gpt2 with ignored targets", make_gpt2(),
                         make_data(fields, STK_SHAPE(N_TOKENS), STK_SHAPE(N_TOKENS)),
                         stk_adamw(.lr = gpt2_ignored_rate), gpt2_ignored_losses, micro);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(resnet18), cmocka_unit_test(bert), cmocka_unit_test(gpt2),
                                       cmocka_unit_test(gpt2_with_ignored_targets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
