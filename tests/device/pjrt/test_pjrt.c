/* Small networks train by a PJRT plug-in to the losses of the cpu device; what is no plug-in, and what a plug-in cannot
 * do, is said. The plug-in is XLA's for the processor, from PyPI: `./dev test` installs it and sets STOKER_PJRT_PATH.
 * Without it what needs one is left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "device/pjrt/pjrt.h"
#include "engine/engine.h"
#include "stoker/data/custom.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/transformer.h"
#include "stoker/train/trainer.h"

enum { N_SAMPLES = 800, SIDE = 8, BATCH = 16, N_CLASSES = 4, N_WORDS = 13, N_STEPS = 100 };

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static bool has_plugin(void)
{
    const char *path = getenv("STOKER_PJRT_PATH");
    return path && *path;
}

static bool is_left_out(void)
{
    if (!has_plugin()) print_message("SKIP: no PJRT plug-in: STOKER_PJRT_PATH is not set\n");
    return !has_plugin();
}

/* --- data: what there is to learn is plain --- */

static stk_status make_image(void *user, int64_t i_sample, void *const *out)
{
    float *image = out[0];
    int32_t class = (int32_t)(i_sample % N_CLASSES);
    (void)user;
    for (int k = 0; k < SIDE * SIDE; k++)
        image[k] = (float)((i_sample * 31 + k * 7) % 101) / 101 + (k % N_CLASSES == class ? 0.3f : 0);
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

static stk_status make_bad_label(void *user, int64_t i_sample, void *const *out)
{
    STK_RETURN_IF_ERROR(make_image(user, i_sample, out));
    if (i_sample == N_SAMPLES / 2) *(int32_t *)out[1] = N_CLASSES + 3;
    return STK_OK;
}

/* The last sample of a batch, and with it of the last micro-batch. */
static stk_status make_bad_last_label(void *user, int64_t i_sample, void *const *out)
{
    STK_RETURN_IF_ERROR(make_image(user, i_sample, out));
    if (i_sample == N_SAMPLES / 2 + BATCH - 1) *(int32_t *)out[1] = N_CLASSES + 3;
    return STK_OK;
}

static stk_dataset *make_dataset(bool is_text, stk_status (*make)(void *, int64_t, void *const *))
{
    static const stk_array_field images[] = {{"image", STK_F32, STK_SHAPE(SIDE, SIDE, 1), NULL},
                                             {"label", STK_I32, {0}, NULL}};
    static const stk_array_field texts[] = {{"tokens", STK_I32, STK_SHAPE(SIDE), NULL},
                                            {"label", STK_I32, STK_SHAPE(SIDE), NULL}};
    stk_dataset *dataset = stk_dataset_function(N_SAMPLES, is_text ? texts : images, 2, make, NULL);
    stk_dataset_batch(dataset, BATCH, true);
    return dataset;
}

/* --- networks --- */

static stk_value build_dense(stk_value x)
{
    return stk_dense(stk_relu(stk_dense(stk_flatten(x), 24)), N_CLASSES);
}

static stk_value build_images(stk_value x)
{
    static const stk_conv2d_config without_bias = {.filters = 4, .no_bias = true};
    static const stk_conv2d_config in_groups = {.filters = 8, .kernel = 3, .stride = 2, .groups = 2};
    stk_value a = stk_relu(stk_batch_norm(stk_conv2d_with(x, &without_bias)));
    stk_value b = stk_relu(stk_add(stk_batch_norm(stk_conv2d_with(a, &without_bias)), a));
    b = stk_relu(stk_conv2d_with(stk_dropout(stk_max_pool_with(b, 3, 1, 1), 0.1), &in_groups));
    return stk_dense(stk_flatten(stk_avg_pool(stk_group_norm(b, 2), 2)), N_CLASSES);
}

typedef struct network {
    const char *name;
    stk_value (*build)(stk_value x); /* NULL: text */
    bool adam;
    int64_t accumulate;
    stk_precision precision;
    double tolerance; /* of a loss, as a share of the first one */
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
    double loss[N_STEPS + 1]; /* of each step, then of an evaluation */
    int n;
} progress;

static void note_step(void *user, const stk_train_event *event)
{
    progress *p = user;
    if (event->kind == STK_EVENT_STEP && p->n < N_STEPS) p->loss[p->n++] = event->loss;
}

static stk_trainer *make_trainer(const network *n, const char *device, stk_dataset *dataset, progress *p)
{
    stk_optimizer optimizer =
        n->adam ? stk_adamw(.lr = 0.003, .weight_decay = 0.01) : stk_sgd(.lr = 0.05, .momentum = 0.9, .nesterov = true);
    stk_trainer *trainer = stk_trainer_new(make_model(n), dataset, optimizer);
    stk_trainer_config config = stk_trainer_config_default();
    config.device = device;
    config.n_threads = 1;
    config.accumulate = n->accumulate;
    config.precision = n->precision;
    config.clip_norm = 1;
    config.on_event = note_step;
    config.event_user = p;
    stk_trainer_configure(trainer, &config);
    return trainer;
}

static void train_on(const network *n, const char *device, progress *p)
{
    stk_metrics metrics;
    stk_trainer *trainer = make_trainer(n, device, make_dataset(!n->build, n->build ? make_image : make_text), p);
    stk_status status = stk_trainer_run(trainer, 2);
    if (status != STK_OK) fail_msg("%s on %s: %s", n->name, device, stk_error_text());
    assert_int_equal(p->n, N_STEPS);
    stk_dataset *valid = make_dataset(!n->build, n->build ? make_image : make_text);
    expect_ok(stk_trainer_evaluate(trainer, valid, &metrics));
    p->loss[N_STEPS] = metrics.loss;
    stk_trainer_free(trainer);
    stk_dataset_free(valid);
}

static void compare(const network *n)
{
    progress here = {.n = 0}, there = {.n = 0};
    train_on(n, "cpu", &here);
    train_on(n, "pjrt", &there);
    double most = 0;
    for (int i = 0; i <= N_STEPS; i++)
        most = fmax(most, fabs(there.loss[i] - here.loss[i]) / here.loss[0]);
    print_message("%s: loss %.4f to %.4f, off by %.1e of the first at most\n", n->name, here.loss[0],
                  here.loss[N_STEPS], most);
    assert_true(here.loss[N_STEPS] < 0.8 * here.loss[0]);
    assert_true(most < n->tolerance);
}

static void networks_follow_the_cpu(void **state)
{
    (void)state;
    if (is_left_out()) return;
    compare(&(network){"dense", build_dense, false, 0, STK_PRECISION_F32, 1e-4});
    compare(&(network){"images", build_images, true, 0, STK_PRECISION_F32, 1e-3});
    compare(&(network){"text", NULL, true, 0, STK_PRECISION_F32, 1e-3});
}

/* Three parts do not divide the batch: the last one goes back, and some of its rows do not count. */
static void networks_follow_in_micro_batches(void **state)
{
    (void)state;
    if (is_left_out()) return;
    compare(&(network){"images in 2 parts", build_images, false, 2, STK_PRECISION_F32, 1e-3});
    compare(&(network){"images in 3 parts", build_images, false, 3, STK_PRECISION_F32, 1e-3});
    compare(&(network){"images in 8 parts", build_images, false, 8, STK_PRECISION_F32, 1e-3});
    compare(&(network){"text in 3 parts", NULL, true, 3, STK_PRECISION_F32, 1e-3});
    compare(&(network){"dense in 3 parts in bf16", build_dense, false, 3, STK_PRECISION_BF16, 0.05});
}

static void networks_follow_in_bf16(void **state)
{
    (void)state;
    if (is_left_out()) return;
    compare(&(network){"dense in bf16", build_dense, false, 0, STK_PRECISION_BF16, 0.05});
    compare(&(network){"text in bf16", NULL, true, 0, STK_PRECISION_BF16, 0.05});
}

/* --- two plug-ins --- */

typedef struct training {
    const network *n;
    const char *device;
    progress p;
    stk_status status;
    char error[512];
} training;

static void *run_training(void *arg)
{
    training *t = arg;
    stk_trainer *trainer =
        make_trainer(t->n, t->device, make_dataset(!t->n->build, t->n->build ? make_image : make_text), &t->p);
    t->status = stk_trainer_run(trainer, 2);
    snprintf(t->error, sizeof(t->error), "%s", stk_error_text());
    stk_trainer_free(trainer);
    return NULL;
}

static void copy_file(const char *from, int to)
{
    char piece[1 << 16];
    FILE *file = fopen(from, "rbe");
    assert_non_null(file);
    for (size_t n; (n = fread(piece, 1, sizeof(piece), file)) > 0;)
        assert_int_equal(write(to, piece, n), (ssize_t)n);
    fclose(file);
}

/* A copy of its file is another plug-in: both are loaded, and train at the same time. */
static void two_plugins_train_at_once(void **state)
{
    (void)state;
    if (is_left_out()) return;
    char path[] = "/tmp/stoker-plugin-XXXXXX", device[64];
    int file = mkstemp(path);
    assert_true(file >= 0);
    copy_file(getenv("STOKER_PJRT_PATH"), file);
    close(file);
    snprintf(device, sizeof(device), "pjrt:%s", path);
    network n = {"images", build_images, true, 0, STK_PRECISION_F32, 0};
    static training of[2];
    of[0] = (training){.n = &n, .device = "pjrt"};
    of[1] = (training){.n = &n, .device = device};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_training, &of[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    unlink(path);
    for (int i = 0; i < 2; i++)
        if (of[i].status != STK_OK) fail_msg("on %s: %s", of[i].device, of[i].error);
    assert_int_equal(of[0].p.n, N_STEPS);
    assert_int_equal(of[1].p.n, N_STEPS);
    for (int i = 0; i < N_STEPS; i++)
        if (fabs(of[0].p.loss[i] - of[1].p.loss[i]) > 1e-5 * of[0].p.loss[0])
            fail_msg("step %d: %.9g and %.9g", i, of[0].p.loss[i], of[1].p.loss[i]);
}

/* --- ranks that are processes --- */

typedef struct rank_part {
    stk_comm *comm;
    uint64_t hash;
    stk_status status;
    char error[256];
} rank_part;

static void *agree(void *arg)
{
    rank_part *part = arg;
    part->status = pjrt_agree(part->comm, part->hash);
    snprintf(part->error, sizeof(part->error), "%s", stk_error_text());
    return NULL;
}

static void ranks_must_have_one_program(void **state)
{
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        stk_comm *comm[2];
        rank_part part[2];
        pthread_t thread[2];
        expect_ok(stk_comm_open_local(2, comm));
        for (int r = 0; r < 2; r++) {
            part[r] = (rank_part){.comm = comm[r], .hash = 7 + (r == 1 ? more : 0)};
            assert_int_equal(pthread_create(&thread[r], NULL, agree, &part[r]), 0);
        }
        for (int r = 0; r < 2; r++) {
            pthread_join(thread[r], NULL);
            assert_int_equal(part[r].status, more ? STK_MISMATCH : STK_OK);
            if (more && !strstr(part[r].error, "have different programs")) fail_msg("%s", part[r].error);
        }
        for (int r = 0; r < 2; r++)
            stk_comm_close(comm[r]);
    }
}

/* --- what goes wrong --- */

static void expect_bad_label(int64_t accumulate, stk_status (*make)(void *, int64_t, void *const *))
{
    network n = {"dense", build_dense, false, accumulate, STK_PRECISION_F32, 0};
    progress p = {.n = 0};
    stk_trainer *trainer = make_trainer(&n, "pjrt", make_dataset(false, make), &p);
    stk_status status = stk_trainer_run(trainer, 1);
    print_message("%s\n", stk_error_text());
    assert_int_not_equal(status, STK_OK);
    assert_non_null(strstr(stk_error_text(), "gather: id 7 is not one of the 4 rows"));
    stk_trainer_free(trainer);
}

static void bad_labels_are_told(void **state)
{
    (void)state;
    if (is_left_out()) return;
    expect_bad_label(0, make_bad_label);
    expect_bad_label(3, make_bad_label);
    expect_bad_label(3, make_bad_last_label);
}

static void expect_refused(const char *name, const char *why)
{
    stk_device *device;
    assert_int_equal(stk_device_open(name, NULL, &device), STK_NO_DEVICE);
    if (!strstr(stk_error_text(), why)) fail_msg("'%s' is not in: %s", why, stk_error_text());
}

static void what_is_no_plugin_is_said(void **state)
{
    (void)state;
    expect_refused("pjrt:/nowhere/plugin.so", "cannot load the PJRT plug-in: /nowhere/plugin.so");
    expect_refused("pjrt:/proc/self/exe", "/proc/self/exe");
    expect_refused("pjrt:no_such_plugin", "no PJRT plug-in 'no_such_plugin'");
    expect_refused("pjrt:no such plugin", "is neither a plug-in's name nor a path");
    expect_refused("pjrt:/lib/x86_64-linux-gnu/libm.so.6", "libm.so.6");
    if (!has_plugin()) expect_refused("pjrt", "STOKER_PJRT_PATH");
    expect_refused("pjrt:" OLD_PLUGIN,
                   OLD_PLUGIN "' has version 0.10 of PJRT's interface, and 0.23 or newer is wanted");
    expect_refused("tpu:v9:1x1", "kinds: v4, v5e, v5p, v6e");
    expect_refused("tpu:v5e:0x1", "v5e:0x1");
    if (access("/dev/accel0", F_OK) != 0 && access("/dev/vfio", F_OK) != 0) expect_refused("tpu", "no TPU is here");
}

/* --- programs come and go --- */

static size_t used_bytes(void)
{
    unsigned long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return 0;
    if (fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
    fclose(file);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void programs_leave_nothing_behind(void **state)
{
    (void)state;
    if (is_left_out()) return;
    stk_device *device;
    const char *wanted = getenv("STOKER_PJRT_CYCLES"); /* ./dev pjrt-cycles */
    int n = wanted ? atoi(wanted) : 20;
    size_t early = 0;
    expect_ok(stk_device_open("pjrt", NULL, &device));
    for (int i = 0; i < n; i++) {
        if (i == n / 2) early = used_bytes();
        stk_engine *engine;
        stk_program *program;
        stk_tensor_desc desc;
        float x[4] = {1, 2, 3, 4};
        expect_ok(stk_engine_open("pjrt", NULL, 0, &engine));
        stk_graph *graph = stk_graph_new();
        stk_value a = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4));
        stk_value sum =
            stk_graph_variable(graph, "sum", STK_F32, STK_SHAPE(4), (stk_init){.kind = STK_INIT_CONSTANT}, false);
        stk_graph_update(graph, sum, stk_add(sum, a));
        stk_graph_output(graph, "y", stk_scale_by(a, i));
        expect_ok(stk_engine_compile(engine, graph, NULL, &program));
        for (int run = 0; run < 5; run++) {
            stk_program_bind(program, stk_program_input(program, "x"), x);
            expect_ok(stk_program_run(program));
        }
        expect_ok(stk_program_wait(program, 0));
        const float *y = stk_program_output(program, "y", &desc);
        float total[4];
        expect_ok(stk_engine_read_variable(engine, 0, total));
        for (int k = 0; k < 4; k++) {
            assert_true(y[k] == x[k] * (float)i);
            assert_true(total[k] == 5 * x[k]);
        }
        stk_engine_close(engine);
    }
    size_t late = used_bytes();
    print_message("%d programs compiled, run and gone: %zu MiB used after half of them, %zu MiB at the end\n", n,
                  early >> 20, late >> 20);
    if (n >= 200) assert_true(late < early + ((size_t)n << 13)); /* 16 KiB for each of them would be a leak. */
    stk_device_close(device);
}

/* test_pjrt [TESTS]   TESTS: a pattern, "programs_*" */
int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_must_have_one_program),      cmocka_unit_test(what_is_no_plugin_is_said),
        cmocka_unit_test(programs_leave_nothing_behind),    cmocka_unit_test(networks_follow_the_cpu),
        cmocka_unit_test(networks_follow_in_micro_batches), cmocka_unit_test(networks_follow_in_bf16),
        cmocka_unit_test(two_plugins_train_at_once),        cmocka_unit_test(bad_labels_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
