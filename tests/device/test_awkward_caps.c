/* Devices that can do less: small networks train on the awkward device with all capabilities to the reference device's
 * bits, and with none, so that all is decomposed into primitives, to losses close to those. What cannot be decomposed
 * is refused; memory limits are the device's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/awkward/awkward.h"
#include "engine/engine.h"
#include "stoker/data/custom.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/transformer.h"
#include "stoker/train/trainer.h"

enum { N_SAMPLES = 96, SIDE = 8, BATCH = 16, N_CLASSES = 4, N_WORDS = 13, N_STEPS = 12 };

static const stk_device_caps no_caps = {.deterministic = true};

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static int add_device(void **state)
{
    (void)state;
    awkward_add();
    return 0;
}

/* --- data: what there is to learn is plain --- */

static stk_status make_image(void *user, int64_t i_sample, void *const *out)
{
    float *image = out[0];
    int32_t class = (int32_t)(i_sample % N_CLASSES);
    (void)user;
    for (int k = 0; k < SIDE * SIDE; k++)
        image[k] = (float)((i_sample * 31 + k * 7) % 101) / 101 + (k % N_CLASSES == class ? 1 : 0);
    *(int32_t *)out[1] = class;
    return STK_OK;
}

static stk_status make_text(void *user, int64_t i_sample, void *const *out)
{
    int32_t *tokens = out[0], *targets = out[1];
    (void)user;
    for (int k = 0; k < SIDE; k++) {
        tokens[k] = (int32_t)((i_sample + 2 * k) % N_WORDS);
        targets[k] = k == 2 ? -100 : (int32_t)((i_sample + 2 * k + 2) % N_WORDS);
    }
    return STK_OK;
}

static stk_dataset *make_dataset(bool is_text)
{
    static const stk_array_field images[] = {{"image", STK_F32, STK_SHAPE(SIDE, SIDE, 1), NULL},
                                             {"label", STK_I32, {0}, NULL}};
    static const stk_array_field texts[] = {{"tokens", STK_I32, STK_SHAPE(SIDE), NULL},
                                            {"label", STK_I32, STK_SHAPE(SIDE), NULL}};
    stk_dataset *dataset =
        stk_dataset_function(N_SAMPLES, is_text ? texts : images, 2, is_text ? make_text : make_image, NULL);
    stk_dataset_batch(dataset, BATCH, true);
    return dataset;
}

/* --- networks --- */

/* A bias that batch norm takes away again would have rounding errors for a gradient, of which Adam makes whole steps.
 */
static const stk_conv2d_config without_bias = {.filters = 4, .no_bias = true};

static stk_value build_images(stk_value x)
{
    stk_value a = stk_relu(stk_batch_norm(stk_conv2d_with(x, &without_bias)));
    stk_value b = stk_relu(stk_add(stk_batch_norm(stk_conv2d_with(a, &without_bias)), a));
    b = stk_relu(stk_conv2d(stk_dropout(stk_max_pool_with(b, 3, 2, 1), 0.1), 6, 3));
    return stk_dense(stk_flatten(stk_avg_pool(stk_group_norm(b, 2), 2)), N_CLASSES);
}

static stk_value build_volumes(stk_value x)
{
    x = stk_reshape(x, STK_SHAPE(STK_ANY, 4, 4, 4, 1));
    x = stk_max_pool3d(stk_relu(stk_batch_norm(stk_conv3d_with(x, &without_bias))), 2);
    return stk_dense(stk_flatten(stk_avg_pool3d(stk_relu(stk_conv3d(x, 4, 3)), 2)), N_CLASSES);
}

static stk_value build_blocks(stk_value x)
{
    stk_block_config block = {.attend = {.heads = 2, .dropout = 0.1}, .hidden = 24, .dropout = 0.1};
    x = stk_dense(stk_reshape(x, STK_SHAPE(STK_ANY, SIDE, SIDE)), 12);
    x = stk_encoder_block(x, &block);
    block.attend.causal = true;
    x = stk_decoder_block(x, &block);
    return stk_dense(stk_reduce_mean(stk_softmax(x), 1 << 1), N_CLASSES);
}

typedef struct network {
    const char *name;
    stk_value (*build)(stk_value x); /* NULL: text */
    bool adam;
    int64_t accumulate;
    stk_precision precision;
    double tolerance;
} network;

static stk_model *make_model(const network *n)
{
    stk_model *model = stk_model_new(n->name);
    if (!n->build) {
        stk_transformer_config config = {
            .layers = 1, .heads = 2, .width = 12, .vocabulary = N_WORDS, .positions = SIDE, .dropout = 0.1};
        stk_value tokens = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(SIDE));
        stk_value targets = stk_model_label_shape(model, STK_I32, STK_SHAPE(SIDE));
        stk_model_loss(model, stk_gpt2(tokens, targets, &config));
        stk_model_loss_weight(model, stk_count_targets(targets));
        return model;
    }
    stk_value logits = n->build(stk_model_input(model, STK_F32, SIDE, SIDE, 1));
    stk_model_loss(model, stk_cross_entropy_smooth(logits, stk_model_label(model), 0.1));
    stk_model_output(model, logits);
    return model;
}

typedef struct progress {
    double loss[N_STEPS + 1];
    int n;
} progress;

static void note_step(void *user, const stk_train_event *event)
{
    progress *p = user;
    if (event->kind == STK_EVENT_STEP && p->n < N_STEPS) p->loss[p->n++] = event->loss;
}

static stk_trainer *make_trainer(const network *n, const char *device, double memory_share, progress *p)
{
    stk_optimizer optimizer =
        n->adam ? stk_adamw(.lr = 0.01, .weight_decay = 0.01) : stk_sgd(.lr = 0.05, .momentum = 0.9, .nesterov = true);
    stk_trainer *trainer = stk_trainer_new(make_model(n), make_dataset(!n->build), optimizer);
    stk_trainer_config config = stk_trainer_config_default();
    config.device = device;
    config.n_threads = 1;
    config.accumulate = n->accumulate;
    config.precision = n->precision;
    config.memory_share = memory_share;
    config.on_event = note_step;
    config.event_user = p;
    stk_trainer_configure(trainer, &config);
    return trainer;
}

static void train_on(const network *n, const char *device, const stk_device_caps *caps, progress *p)
{
    stk_metrics metrics;
    awkward_set_caps(caps);
    stk_trainer *trainer = make_trainer(n, device, 0, p);
    stk_status status = stk_trainer_run(trainer, 2);
    if (status != STK_OK) fail_msg("%s on %s: %s", n->name, device, stk_error_text());
    assert_int_equal(p->n, N_STEPS);
    stk_dataset *valid = make_dataset(!n->build);
    expect_ok(stk_trainer_evaluate(trainer, valid, &metrics));
    p->loss[N_STEPS] = metrics.loss;
    stk_trainer_free(trainer);
    stk_dataset_free(valid);
    awkward_set_caps(NULL);
}

static void compare(const network *n, const stk_device_caps *less)
{
    progress here = {.n = 0}, all = {.n = 0}, none = {.n = 0};
    train_on(n, "reference", NULL, &here);
    train_on(n, "awkward", NULL, &all);
    train_on(n, "awkward", less, &none);
    assert_memory_equal(here.loss, all.loss, sizeof(here.loss));
    double most = 0;
    for (int i = 0; i <= N_STEPS; i++)
        most = fmax(most, fabs(none.loss[i] - here.loss[i]) / here.loss[i]);
    print_message("%s: loss %.4f to %.4f, off by %.1e at most\n", n->name, here.loss[0], here.loss[N_STEPS], most);
    assert_true(here.loss[N_STEPS] < here.loss[0]);
    assert_true(most < n->tolerance);
}

static void primitives_train_images(void **state)
{
    (void)state;
    compare(&(network){"images", build_images, true, 0, STK_PRECISION_F32, 1e-5}, &no_caps);
    compare(&(network){"images by sgd", build_images, false, 0, STK_PRECISION_F32, 1e-5}, &no_caps);
    stk_device_caps groups = no_caps;
    groups.has[STK_OP_fused] = true;
    compare(&(network){"images by sgd, in groups", build_images, false, 0, STK_PRECISION_F32, 1e-5}, &groups);
    compare(&(network){"volumes", build_volumes, true, 0, STK_PRECISION_F32, 1e-5}, &no_caps);
}

static void primitives_train_attention(void **state)
{
    (void)state;
    compare(&(network){"blocks", build_blocks, true, 0, STK_PRECISION_F32, 1e-5}, &no_caps);
    compare(&(network){"blocks in parts", build_blocks, true, 4, STK_PRECISION_F32, 1e-5}, &no_caps);
    compare(&(network){"text", NULL, true, 0, STK_PRECISION_F32, 1e-5}, &no_caps);
    compare(&(network){"text in parts", NULL, false, 2, STK_PRECISION_F32, 1e-5}, &no_caps);
}

/* Sums over parts of a batch that do not go on in place: what has its kernel otherwise. */
static void sums_need_not_be_in_place(void **state)
{
    (void)state;
    stk_device_caps caps = stk_device_caps_all;
    caps.sums_in_place = false;
    compare(&(network){"text in parts", NULL, false, 2, STK_PRECISION_F32, 1e-5}, &caps);
}

static void primitives_train_in_16_bits(void **state)
{
    (void)state;
    stk_device_caps caps = no_caps;
    progress p = {.n = 0};
    network n = {"images in bf16", build_images, true, 0, STK_PRECISION_BF16, 0.1};
    awkward_set_caps(&no_caps);
    stk_trainer *trainer = make_trainer(&n, "awkward", 0, &p);
    assert_int_equal(stk_trainer_run(trainer, 1), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "bf16"));
    stk_trainer_free(trainer);
    caps.bf16 = true;
    compare(&n, &caps);
}

/* --- what is refused --- */

static void refusals_name_what_is_lacking(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    awkward_set_caps(&no_caps);
    expect_ok(stk_engine_open("awkward", NULL, 0, &engine));
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "pixels", STK_U8, STK_SHAPE(4));
    stk_graph_output(graph, "y", stk_cast_to(x, STK_F32));
    assert_int_equal(stk_engine_compile(engine, graph, NULL, &program), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "pixels"));
    /* A window of more taps than a composition may have. */
    graph = stk_graph_new();
    x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(1, 40, 40, 1));
    stk_graph_output(graph, "y", stk_max_pool2d_raw(x, stk_window_make(20, 20)));
    assert_int_equal(stk_engine_compile(engine, graph, NULL, &program), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "max_pool2d"));
    stk_engine_close(engine);
    awkward_set_caps(NULL);
}

/* --- memory --- */

static void limits_are_the_devices(void **state)
{
    (void)state;
    network n = {"images", build_images, true, 0, STK_PRECISION_F32, 1e-5};
    progress p = {.n = 0};
    awkward_set_free(20000);
    stk_trainer *trainer = make_trainer(&n, "awkward", STK_MEMORY_FREE, &p);
    assert_int_equal(stk_trainer_run(trainer, 1), STK_NO_MEMORY);
    stk_trainer_free(trainer);
    awkward_set_free(0);
    trainer = make_trainer(&n, "awkward", STK_MEMORY_FREE, &p);
    expect_ok(stk_trainer_run(trainer, 1));
    stk_trainer_free(trainer);
    trainer = make_trainer(&n, "awkward", 0.5, &p);
    expect_ok(stk_trainer_run(trainer, 1));
    stk_trainer_free(trainer);
    trainer = make_trainer(&n, "awkward", 2, &p);
    assert_int_equal(stk_trainer_run(trainer, 1), STK_INVALID);
    stk_trainer_free(trainer);
}

static void devices_tell_about_themselves(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "reference", "awkward"};
    for (int i = 0; i < 3; i++) {
        stk_device *device;
        stk_device_memory memory;
        stk_text chip = {0};
        expect_ok(stk_device_open(names[i], NULL, &device));
        expect_ok(stk_device_get_memory(device, &memory));
        assert_true(memory.free > 0 && memory.free <= memory.total && memory.others <= memory.total);
        assert_int_equal(stk_device_count(device->class), 1);
        stk_device_add_chip(device, &chip);
        assert_true(strlen(stk_text_get(&chip)) > 0);
        assert_true(device->caps->has[STK_OP_softmax] && device->caps->deterministic);
        stk_text_free(&chip);
        stk_device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(primitives_train_images),       cmocka_unit_test(primitives_train_attention),
        cmocka_unit_test(sums_need_not_be_in_place),     cmocka_unit_test(primitives_train_in_16_bits),
        cmocka_unit_test(refusals_name_what_is_lacking), cmocka_unit_test(limits_are_the_devices),
        cmocka_unit_test(devices_tell_about_themselves),
    };
    return cmocka_run_group_tests(tests, add_device, NULL);
}
