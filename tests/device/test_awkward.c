/* The engine and the trainer on a device that is not on the host: the same bits as on the reference device, whose
 * kernels it has; failures that show later; whole runs with checkpoints, resuming, evaluation and prediction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "device/awkward/awkward.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "run/state.h"
#include "stoker/data/custom.h"
#include "stoker/data/digits.h"
#include "stoker/train/run.h"
#include "stoker/train/trainer.h"
#include "train/trainer_state.h"

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

/* --- the device itself --- */

static void addresses_mean_nothing_to_the_host(void **state)
{
    (void)state;
    stk_device *device;
    void *p;
    int ended;
    expect_ok(stk_device_open("awkward", NULL, &device));
    expect_ok(device->class->alloc(device, 100, STK_MEMORY_ZEROED, &p));
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile char *)p == 0 ? 0 : 1); /* It is zeroed, so that reading it would give 0. */
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    /* A sanitizer's own handler may turn the fault into an exit. */
    assert_true(WIFSIGNALED(ended) || WEXITSTATUS(ended) != 0);
    device->class->free(device, p, 100);
    stk_device_close(device);
}

/* Two queues, of which the second reads what the first writes, many times over. */
static void events_order_queues(void **state)
{
    (void)state;
    enum { N = 1000, ROUNDS = 50 };
    stk_device *device;
    stk_queue *a, *b;
    stk_event *written, *read;
    void *shared;
    static int source[2][N], dst[N];
    expect_ok(stk_device_open("awkward", NULL, &device));
    const stk_queue_class *queues = device->class->queues;
    expect_ok(queues->open(device, &a));
    expect_ok(queues->open(device, &b));
    expect_ok(queues->open_event(device, &written));
    expect_ok(queues->open_event(device, &read));
    expect_ok(device->class->alloc(device, sizeof(dst), STK_MEMORY_SCRATCH, &shared));
    for (int round = 0; round < ROUNDS; round++) {
        int *src = source[round % 2];
        for (int i = 0; i < N; i++)
            src[i] = round * N + i;
        expect_ok(queues->wait(a, read));
        expect_ok(queues->copy(a, shared, src, sizeof(dst), STK_COPY_TO_DEVICE));
        expect_ok(queues->record(a, written));
        expect_ok(queues->wait(b, written));
        expect_ok(queues->copy(b, dst, shared, sizeof(dst), STK_COPY_TO_HOST));
        expect_ok(queues->record(b, read));
        if (round % 2) continue; /* Every other round is not waited for: `shared` is overwritten behind the event. */
        expect_ok(queues->sync(read));
        assert_memory_equal(src, dst, sizeof(dst));
    }
    expect_ok(queues->finish(b));
    device->class->free(device, shared, sizeof(dst));
    queues->close_event(written);
    queues->close_event(read);
    queues->close(a);
    queues->close(b);
    stk_device_close(device);
}

/* What would be right on most days is found each time. */
static void work_in_no_order_is_told(void **state)
{
    (void)state;
    stk_device *device;
    stk_queue *a, *b;
    stk_event *event;
    void *shared;
    static int host[2][16];
    expect_ok(stk_device_open("awkward", NULL, &device));
    const stk_queue_class *queues = device->class->queues;
    expect_ok(queues->open(device, &a));
    expect_ok(queues->open(device, &b));
    expect_ok(queues->open_event(device, &event));
    expect_ok(device->class->alloc(device, sizeof(host), STK_MEMORY_SCRATCH, &shared));
    expect_ok(queues->copy(a, shared, host[0], sizeof(host[0]), STK_COPY_TO_DEVICE));
    expect_ok(queues->record(a, event));
    assert_int_equal(queues->copy(b, host[1], shared, sizeof(host[1]), STK_COPY_TO_HOST), STK_INTERNAL);
    expect_ok(queues->copy(b, (char *)shared + sizeof(host[0]), host[0], sizeof(host[0]), STK_COPY_TO_DEVICE));
    expect_ok(queues->wait(b, event));
    expect_ok(queues->copy(b, host[1], shared, sizeof(host[1]), STK_COPY_TO_HOST));
    assert_int_equal(queues->copy(a, shared, host[0], sizeof(host[0]), STK_COPY_TO_DEVICE), STK_INTERNAL);
    expect_ok(queues->finish(b)); /* The host knows, and so does all that it enqueues from now on. */
    expect_ok(queues->copy(a, shared, host[0], sizeof(host[0]), STK_COPY_TO_DEVICE));
    expect_ok(queues->finish(a));
    device->class->free(device, shared, sizeof(host));
    queues->close_event(event);
    queues->close(a);
    queues->close(b);
    stk_device_close(device);
}

/* --- the engine --- */

static stk_graph *make_counter(void)
{
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(4), (stk_init){STK_INIT_CONSTANT, 3}, false);
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4));
    stk_value by = stk_graph_input(graph, "by", STK_F32, (stk_shape){0});
    stk_value next = stk_add(w, stk_mul(x, by));
    stk_graph_update(graph, w, next);
    stk_graph_output(graph, "next", next);
    return graph;
}

/* Inputs are changed as soon as they may be, and results are read as late as they may be. */
static void runs_stay_apart(void **state)
{
    (void)state;
    enum { N_RUNS = 40 };
    stk_engine *engine;
    stk_program *program;
    float x[4], by, w[4], want = 3, expected[N_RUNS];
    expect_ok(stk_engine_open("awkward", NULL, 0, &engine));
    expect_ok(stk_engine_compile(engine, make_counter(), NULL, &program));
    int i_x = stk_program_input(program, "x"), i_by = stk_program_input(program, "by");
    assert_int_equal(stk_program_run(program), STK_INVALID); /* inputs are not bound */
    assert_null(stk_program_output(program, "next", NULL));
    stk_program_bind(program, i_x, x);
    for (int run = 0; run < N_RUNS; run++) {
        for (int i = 0; i < 4; i++)
            x[i] = (float)(run + i);
        by = (float)(run % 3);
        expected[run] = want += (float)run * by;
        expect_ok(stk_program_set(program, i_by, &by));
        by = -1; /* It was copied. */
        expect_ok(stk_program_run(program));
        expect_ok(stk_program_wait_inputs(program));
        memset(x, AWKWARD_POISON, sizeof(x));
        int n_back = run < STK_RUNS_KEPT - 1 ? run : STK_RUNS_KEPT - 1;
        expect_ok(stk_program_wait(program, n_back));
        assert_true(((const float *)stk_program_output(program, "next", NULL))[0] == expected[run - n_back]);
    }
    assert_int_equal(stk_program_wait(program, STK_RUNS_KEPT), STK_INVALID);
    for (int i = 0; i < 4; i++)
        x[i] = 1;
    by = 0;
    for (int run = 0; run < 3 * STK_RUNS_KEPT; run++) { /* Slots are written again before anybody has waited. */
        expect_ok(stk_program_set(program, i_by, &by));
        expect_ok(stk_program_run(program));
    }
    for (int run = 0; run < STK_RUNS_KEPT; run++) { /* Numbers that are set again at once, and nothing waits. */
        by = (float)(run + 1);
        expected[run] = want += by;
        expect_ok(stk_program_set(program, i_by, &by));
        expect_ok(stk_program_run(program));
    }
    for (int n_back = STK_RUNS_KEPT - 1; n_back >= 0; n_back--) {
        expect_ok(stk_program_wait(program, n_back));
        assert_true(((const float *)stk_program_output(program, "next", NULL))[0] ==
                    expected[STK_RUNS_KEPT - 1 - n_back]);
    }
    assert_null(stk_engine_variable(engine, 0).view.data);
    expect_ok(stk_engine_read_variable(engine, 0, w));
    assert_true(w[0] == want);
    w[0] = 1000;
    expect_ok(stk_engine_write_variable(engine, 0, w));
    memset(w, 0, sizeof(w));
    expect_ok(stk_engine_read_variable(engine, 0, w));
    assert_true(w[0] == 1000);
    stk_engine_close(engine);
}

/* A second program needs a larger arena: the first must find it where it lies now. */
static void arenas_move(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *small, *large;
    float x[4] = {1, 2, 3, 4}, by = 2;
    static float y[100 * 100];
    expect_ok(stk_engine_open("awkward", NULL, 0, &engine));
    expect_ok(stk_engine_compile(engine, make_counter(), NULL, &small));
    stk_program_bind(small, stk_program_input(small, "x"), x);
    expect_ok(stk_program_set(small, stk_program_input(small, "by"), &by));
    expect_ok(stk_program_run(small));
    stk_graph *graph = stk_graph_new();
    stk_value in = stk_graph_input(graph, "y", STK_F32, STK_SHAPE(100, 100));
    stk_graph_output(graph, "product", stk_matmul(in, stk_softmax(stk_matmul(in, in, false, false)), false, false));
    expect_ok(stk_engine_compile(engine, graph, NULL, &large));
    assert_int_equal(stk_program_set(small, stk_program_input(small, "x"), x), STK_OK);
    stk_program_bind(large, stk_program_input(large, "y"), y);
    expect_ok(stk_program_run(large));
    stk_program_profile(small, true);
    expect_ok(stk_program_run(small));
    expect_ok(stk_program_wait(small, 0));
    assert_true(((const float *)stk_program_output(small, "next", NULL))[3] == 3 + 2 * 4 * 2);
    stk_engine_close(engine);
}

/* --- training --- */

enum { N_SAMPLES = 96, SIDE = 8, BATCH = 16, N_CLASSES = 10 };

static int32_t worst_label; /* of one sample: 0 is as good as any */

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    float *image = out[0];
    (void)user;
    for (int k = 0; k < SIDE * SIDE; k++)
        image[k] = (float)((i_sample * 31 + k * 7) % 101) / 101;
    *(int32_t *)out[1] = (int32_t)(i_sample % N_CLASSES) + (i_sample == 40 ? worst_label : 0);
    return STK_OK;
}

static stk_dataset *make_dataset(void)
{
    static const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(SIDE, SIDE, 1), NULL},
                                             {"label", STK_I32, {0}, NULL}};
    stk_dataset *dataset = stk_dataset_function(N_SAMPLES, fields, 2, make_sample, NULL);
    stk_dataset_shuffle(dataset, 0);
    stk_dataset_batch(dataset, BATCH, true);
    return dataset;
}

typedef struct progress {
    double decay; /* of the mean of the weights; 0: none */
    double loss[64];
    int64_t n;
} progress;

static void note_step(void *user, const stk_train_event *event)
{
    progress *p = user;
    if (event->kind != STK_EVENT_STEP) return;
    assert_int_equal(event->step, p->n + 1);
    assert_int_equal(event->i_batch, p->n % (N_SAMPLES / BATCH) + 1);
    p->loss[p->n++] = event->loss;
}

static stk_trainer *make_trainer(const char *device, const stk_dataset *valid, progress *p)
{
    stk_model *model = stk_model_new("small");
    stk_value x = stk_model_input(model, STK_F32, SIDE, SIDE, 1);
    x = stk_dropout(stk_relu(stk_batch_norm(stk_conv2d(x, 4, 3))), 0.1);
    stk_value logits = stk_dense(stk_flatten(stk_max_pool(x, 2)), N_CLASSES);
    stk_model_loss(model, stk_cross_entropy(logits, stk_model_label(model)));
    stk_model_output(model, logits);
    stk_trainer *trainer = stk_trainer_new(model, make_dataset(), stk_adam(.lr = 0.01));
    stk_trainer_config config = stk_trainer_config_default();
    config.device = device;
    config.n_threads = 2;
    config.valid = valid;
    config.average.decay = p->decay;
    config.on_event = note_step;
    config.event_user = p;
    stk_trainer_configure(trainer, &config);
    return trainer;
}

/* What one run of 3 epochs gives: every loss, the validation, a prediction. */
static void train_on(const char *device, progress *p, stk_metrics *metrics, float *prediction)
{
    stk_dataset *valid = make_dataset();
    stk_trainer *trainer = make_trainer(device, valid, p);
    float sample[SIDE * SIDE];
    int32_t label;
    expect_ok(stk_trainer_run(trainer, 3));
    expect_ok(stk_trainer_evaluate(trainer, valid, metrics));
    expect_ok(make_sample(NULL, 5, (void *[]){sample, &label}));
    expect_ok(stk_trainer_predict(trainer, sample, prediction, N_CLASSES));
    stk_trainer_free(trainer);
    stk_dataset_free(valid);
}

static void train_on_both(double decay)
{
    progress here = {.decay = decay}, there = {.decay = decay};
    stk_metrics metrics_here, metrics_there;
    float prediction_here[N_CLASSES], prediction_there[N_CLASSES];
    train_on("reference", &here, &metrics_here, prediction_here);
    train_on("awkward", &there, &metrics_there, prediction_there);
    assert_int_equal(here.n, 3 * N_SAMPLES / BATCH);
    assert_int_equal(there.n, here.n);
    assert_memory_equal(here.loss, there.loss, sizeof(here.loss));
    assert_true(here.loss[here.n - 1] < here.loss[0]);
    assert_memory_equal(&metrics_here, &metrics_there, sizeof(metrics_here));
    assert_memory_equal(prediction_here, prediction_there, sizeof(prediction_here));
}

static void training_has_the_same_bits(void **state)
{
    (void)state;
    train_on_both(0);
    train_on_both(0.9);
}

/* The kernel that finds the label runs long after the call that enqueued it. */
static void failures_show_later(void **state)
{
    (void)state;
    progress p = {.n = 0};
    stk_trainer *trainer = make_trainer("awkward", NULL, &p);
    worst_label = 1000;
    assert_int_equal(stk_trainer_run(trainer, 1), STK_CORRUPT);
    worst_label = 0;
    assert_non_null(strstr(stk_error_text(), "1000"));
    stk_trainer_free(trainer);
}

/* --- runs with a folder --- */

enum { N_STEPS = 18, PATH_BYTES = 1024 };

static const char recipe_text[] = "name: awkward\n"
                                  "seed: 5\n"
                                  "data:\n"
                                  "  train:\n"
                                  "    source: {images: digits/train}\n"
                                  "    shuffle: true\n"
                                  "    stages: [{decode: {channels: 1}}, {random_crop: {size: 16, pad: 1}}, "
                                  "{normalize: mnist}]\n"
                                  "  test:\n"
                                  "    source: {images: digits/test}\n"
                                  "    stages: [{decode: {channels: 1}}, {normalize: mnist}]\n"
                                  "batch: 16\n"
                                  "model: {cnn: {widths: [4]}}\n"
                                  "optimizer: {adam: {lr: 0.01}}\n"
                                  "epochs: 3\n"
                                  "checkpoint: {every: 4 steps, keep: 100}\n"
                                  "log: {every: 1 steps}\n";

static const char *in_folder(const char *name)
{
    static char path[4][PATH_BYTES];
    static int i;
    char *out = path[i++ % 4];
    snprintf(out, PATH_BYTES, "%s/test-awkward-%ld/%s", STK_BINARY_DIR, (long)getpid(), name);
    return out;
}

static void make_run_data(void)
{
    const stk_digits_config digits = {.n_train = 96, .n_test = 40, .seed = 3, .size = 16, .quality = 90};
    expect_ok(stk_dir_make(in_folder("")));
    expect_ok(stk_digits_generate(in_folder("digits"), &digits, NULL, NULL));
    FILE *f = fopen(in_folder("recipe.yaml"), "w");
    assert_non_null(f);
    fputs(recipe_text, f);
    assert_int_equal(fclose(f), 0);
}

/* Trains in the folder; max_steps 0: to the end. */
static void run_on(const char *device, const char *folder, int64_t max_steps, bool resume)
{
    char set_device[64];
    snprintf(set_device, sizeof(set_device), "device=%s", device);
    const char *set[] = {set_device, "threads=2"};
    char out[PATH_BYTES];
    snprintf(out, sizeof(out), "%s", in_folder(folder));
    stk_run_options options = {.set = set, .n_set = 2, .out = out, .resume = resume, .max_steps = max_steps};
    stk_run *run;
    stk_run_result result;
    expect_ok(stk_run_open(in_folder("recipe.yaml"), &options, &run));
    expect_ok(stk_run_train(run, &result));
    assert_int_equal(result.train.n_steps, max_steps ? max_steps : N_STEPS);
    /* Images go to a device with memory of its own as u8, and are normalised there. */
    assert_int_equal(run->trainer->pixels.n, strcmp(device, "awkward") ? 0 : 1);
    stk_run_close(run);
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("no file '%s'", path);
    char *data = malloc(1 << 20);
    assert_non_null(data);
    *n = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}

static void expect_same_file(const char *folder, int step, const char *name)
{
    char a[PATH_BYTES], b[PATH_BYTES];
    size_t n_a, n_b;
    snprintf(a, sizeof(a), "%s/step-%d/%s", in_folder("reference"), step, name);
    snprintf(b, sizeof(b), "%s/step-%d/%s", in_folder(folder), step, name);
    char *x = read_all(a, &n_a), *y = read_all(b, &n_b);
    if (n_a != n_b || memcmp(x, y, n_a)) fail_msg("'%s' and '%s' differ", a, b);
    free(x);
    free(y);
}

typedef struct judgement {
    stk_metrics test;
    stk_prediction best[3];
    int n;
} judgement;

static judgement judge(const char *device, const char *folder)
{
    char set_device[64], file[PATH_BYTES];
    snprintf(set_device, sizeof(set_device), "device=%s", device);
    const char *set[] = {set_device};
    judgement j;
    memset(&j, 0, sizeof(j));
    stk_run *run;
    expect_ok(stk_run_load(in_folder(folder), &(stk_run_options){.set = set, .n_set = 1}, &run));
    expect_ok(stk_run_evaluate(run, "test", &j.test));
    snprintf(file, sizeof(file), "%s", in_folder("digits/test/3/00003.jpg"));
    expect_ok(stk_run_predict(run, file, j.best, 3, &j.n));
    for (int i = 0; i < j.n; i++)
        j.best[i].class_name = NULL; /* It is the run's. */
    stk_run_close(run);
    return j;
}

static void runs_have_the_same_bits(void **state)
{
    (void)state;
    make_run_data();
    run_on("reference", "reference", 0, false);
    run_on("awkward", "whole", 0, false);
    run_on("awkward", "parts", 7, false);
    run_on("awkward", "parts", 10, true);
    run_on("awkward", "parts", 0, true);
    static const int steps[] = {4, 8, 12, 16, N_STEPS};
    for (int i = 0; i < 5; i++) {
        expect_same_file("whole", steps[i], "model.safetensors");
        expect_same_file("whole", steps[i], "optimizer.safetensors");
        expect_same_file("parts", steps[i], "model.safetensors");
        expect_same_file("parts", steps[i], "optimizer.safetensors");
    }
    judgement here = judge("reference", "reference"), there = judge("awkward", "parts");
    assert_memory_equal(&here, &there, sizeof(here));
    assert_true(here.test.n_samples == 40 && here.n == 3);
    expect_ok(stk_tree_remove(in_folder("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_mean_nothing_to_the_host),
        cmocka_unit_test(events_order_queues),
        cmocka_unit_test(work_in_no_order_is_told),
        cmocka_unit_test(runs_stay_apart),
        cmocka_unit_test(arenas_move),
        cmocka_unit_test(training_has_the_same_bits),
        cmocka_unit_test(failures_show_later),
        cmocka_unit_test(runs_have_the_same_bits),
    };
    return cmocka_run_group_tests(tests, add_device, NULL);
}
