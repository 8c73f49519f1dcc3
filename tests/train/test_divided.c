/* The optimiser's state in parts (ZeRO-1): the losses of replicas that each have all of it, whatever the optimiser;
 * each rank's memory as planned; state that is whole for who saves it, and goes on with other numbers of replicas.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/rng.h"
#include "engine/program.h"
#include "stoker/data/dataset.h"
#include "stoker/train/trainer.h"
#include "train/trainer_state.h"

/* A weight of 130 x 127 numbers, which 2 ranks divide and 3 and 4 do not, and one of 127 x 256. */
enum { N_IN = 130, N_HIDDEN = 127, N_WIDE = 256, N = 48, BATCH = 24, N_STEPS = 6, MOST_BYTES = 1 << 20 };

typedef struct setting {
    stk_optimizer optimizer;
    stk_shared_state shared;
    int n_replicas;
    double clip_norm;
    int64_t accumulate;
    bool averages, looks_ahead, skips;
    size_t limit;
} setting;

typedef struct seen {
    double loss[N_STEPS];
    size_t variable_bytes, arena_bytes; /* of each rank */
    bool shards;
    char *whole; /* all tensors behind step 3, one after the other; NULL: not wanted */
    size_t n;
    stk_train_state state;
} seen;

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    (void)user;
    uint32_t label = stk_philox(1, 2, (uint64_t)i_sample).v[0] % 7;
    for (int i = 0; i < N_IN; i++)
        ((float *)out[0])[i] = (float)(stk_philox(3, (uint64_t)i_sample, (uint64_t)i).v[0] >> 8) * 0x1p-24f +
                               0.3f * (float)(label == (uint32_t)i % 7);
    *(int32_t *)out[1] = (int32_t)label;
    return STK_OK;
}

static stk_trainer *make_trainer(const setting *s)
{
    static const stk_array_field fields[] = {{.name = "image", .dtype = STK_F32, .sample = STK_SHAPE(N_IN / 10, 10, 1)},
                                             {.name = "label", .dtype = STK_I32}};
    stk_dataset *data = stk_dataset_function(N, fields, 2, make_sample, NULL);
    stk_dataset_batch(data, BATCH, true);
    stk_model *model = stk_model_new("dense");
    stk_value x = stk_flatten(stk_model_input(model, STK_F32, N_IN / 10, 10, 1));
    x = stk_dense(stk_relu(stk_dense(stk_relu(stk_dense(x, N_HIDDEN)), N_WIDE)), 7);
    stk_model_output(model, x);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    return stk_trainer_new(model, data, s->optimizer);
}

/* Of the first rank: reads every tensor behind step 3, as a checkpoint does. */
static bool wants_state(void *user, int64_t step)
{
    return step == 3 && ((seen *)user)->whole;
}

static stk_status after_step(void *user, stk_trainer *trainer, const stk_train_event *event)
{
    seen *s = user;
    const stk_named_tensor *tensor;
    size_t n;
    s->loss[event->step - 1] = event->loss;
    if (!wants_state(s, event->step)) {
        assert_int_equal(stk_trainer_is_settled(trainer), !trainer->shards);
        return STK_OK;
    }
    assert_true(stk_trainer_is_settled(trainer));
    assert_int_equal(stk_trainer_tensors(trainer, &tensor, &n), STK_OK);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = stk_desc_bytes(tensor[i].view.desc);
        assert_true(s->n + bytes <= MOST_BYTES);
        if (tensor[i].source)
            assert_int_equal(tensor[i].source->read(tensor[i].source->user, tensor[i].number, s->whole + s->n), STK_OK);
        else
            memcpy(s->whole + s->n, tensor[i].view.data, bytes);
        s->n += bytes;
    }
    stk_trainer_get_state(trainer, &s->state);
    return STK_OK;
}

/* What the plan says without taking memory, and what was taken. */
static void look_at_memory(stk_trainer *trainer, seen *out)
{
    stk_program *planned;
    const stk_engine *engine = trainer->engine;
    size_t bytes = 0;
    assert_int_equal(
        stk_step_compile_with(trainer, trainer->train.batch, trainer->choice.micro, STK_STEP_PLAN, &planned), STK_OK);
    stk_program_info plan = stk_program_get_info(planned), real = stk_program_get_info(trainer->train.program);
    for (int i = 0; i < engine->variables.n; i++)
        bytes += stk_desc_bytes(engine->variables.variable[i].desc);
    assert_int_equal(bytes, engine->variables.bytes);
    assert_int_equal(plan.variable_bytes, bytes);
    assert_int_equal(plan.arena_bytes, real.arena_bytes);
    assert_true(real.used_bytes <= real.arena_bytes && real.used_bytes >= real.arena_bytes * 98 / 100);
    assert_true(engine->on[0].arena_bytes >= real.arena_bytes + real.spread_bytes);
    *out = (seen){.whole = out->whole,
                  .n = out->n,
                  .state = out->state,
                  .variable_bytes = bytes,
                  .arena_bytes = real.arena_bytes,
                  .shards = trainer->shards};
    stk_engine_discard(trainer->engine, planned);
}

/* from: goes on there. */
static seen train(const setting *s, bool keeps, const seen *from)
{
    seen out = {.whole = keeps ? malloc(MOST_BYTES) : NULL};
    stk_trainer *trainer = make_trainer(s);
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    config.n_replicas = s->n_replicas;
    config.shared = s->shared;
    config.clip_norm = s->clip_norm;
    config.accumulate = s->accumulate;
    config.average.decay = s->averages ? 0.9 : 0;
    if (s->looks_ahead) config.lookahead = (stk_lookahead){2, 0.5, 0};
    config.on_nan = s->skips ? STK_ON_NAN_SKIP : STK_ON_NAN_STOP;
    config.memory_limit_bytes = s->limit;
    stk_trainer_configure(trainer, &config);
    stk_trainer_set_hooks(trainer,
                          &(stk_trainer_hooks){.wants_state = wants_state, .after_step = after_step, .user = &out});
    stk_status status = stk_trainer_prepare(trainer, N_STEPS / 2);
    if (status == STK_OK) look_at_memory(trainer, &out);
    if (from) {
        const stk_named_tensor *tensor;
        size_t n, at = 0;
        assert_int_equal(stk_trainer_make_room(trainer), STK_OK);
        assert_int_equal(stk_trainer_tensors(trainer, &tensor, &n), STK_OK);
        for (size_t i = 0; i < n; at += stk_desc_bytes(tensor[i++].view.desc))
            memcpy(tensor[i].view.data, from->whole + at, stk_desc_bytes(tensor[i].view.desc));
        assert_int_equal(at, from->n);
        assert_int_equal(stk_trainer_put_tensors(trainer), STK_OK);
        assert_int_equal(stk_trainer_set_state(trainer, &from->state), STK_OK);
    }
    if (status == STK_OK) status = stk_trainer_run(trainer, N_STEPS / 2);
    if (status != STK_OK) fail_msg("%d replicas: %s", s->n_replicas, stk_error_text());
    stk_trainer_free(trainer);
    return out;
}

static void expect_same(const char *what, const setting *s, const seen *a, const seen *b, int first, double tolerance)
{
    for (int i = first; i < N_STEPS; i++)
        if (!(fabs(a->loss[i] - b->loss[i]) <= tolerance * fabs(a->loss[i])))
            fail_msg("%s, %d replicas, step %d: %.9g and %.9g", what, s->n_replicas, i + 1, a->loss[i], b->loss[i]);
}

static const struct {
    const char *name;
    stk_optimizer_kind kind;
    double lr;
    int n_states; /* numbers of state for one of a parameter */
    bool by_element;
} optimizers[] = {
    {"adam", STK_OPTIMIZER_ADAM, 0.003, 2, true},       {"adamw", STK_OPTIMIZER_ADAMW, 0.003, 2, true},
    {"rmsprop", STK_OPTIMIZER_RMSPROP, 0.003, 0, true}, {"adagrad", STK_OPTIMIZER_ADAGRAD, 0.01, 0, true},
    {"lamb", STK_OPTIMIZER_LAMB, 0.01, 2, false},       {"lars", STK_OPTIMIZER_LARS, 0.5, 1, false},
    {"muon", STK_OPTIMIZER_MUON, 0.01, 0, false},
};

/* Sums come in the order of the ranks either way, so that element-wise updates give the same bits; norms are added up
 * in another order. */
static void losses_are_the_same(void **state)
{
    static const int counts[] = {2, 3, 4};
    (void)state;
    for (size_t k = 0; k < sizeof(optimizers) / sizeof(optimizers[0]); k++)
        for (int i = 0; i < 3; i++) {
            setting s = {.optimizer = stk_optimizer_default(optimizers[k].kind, false), .n_replicas = counts[i]};
            s.optimizer.lr = optimizers[k].lr;
            s.shared = STK_SHARED_NONE;
            seen whole = train(&s, false, NULL);
            s.shared = STK_SHARED_OPTIMIZER;
            seen parts = train(&s, false, NULL);
            assert_true(whole.loss[N_STEPS - 1] < whole.loss[0]);
            expect_same(optimizers[k].name, &s, &whole, &parts, 0, optimizers[k].by_element ? 0 : 1e-5);
            assert_true(!whole.shards && parts.shards);
        }
}

/* Two matrices of three are large, and their state is divided; parameters stay whole. */
static void each_rank_has_its_part(void **state)
{
    (void)state;
    setting s = {.optimizer = stk_adam(.lr = 0.003), .n_replicas = 2, .shared = STK_SHARED_NONE};
    seen whole = train(&s, false, NULL);
    s.shared = STK_SHARED_OPTIMIZER;
    seen parts = train(&s, false, NULL);
    size_t large = sizeof(float) * (N_IN * N_HIDDEN + N_HIDDEN * N_WIDE);
    assert_int_equal(whole.variable_bytes - parts.variable_bytes, 2 * large / 2);
}

static void what_changes_updates_goes_along(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++)
        for (int n = 2; n < 5; n++) {
            setting s = {.optimizer = stk_adamw(.lr = 0.003, .weight_decay = 0.1), .n_replicas = n};
            s.clip_norm = k == 0 || k == 5 ? 0.5 : 0;
            s.accumulate = k == 1 || k == 5 ? 2 : 0;
            s.averages = k == 2 || k == 5;
            s.looks_ahead = k == 3 || k == 5;
            s.skips = k == 4 || k == 5;
            s.shared = STK_SHARED_NONE;
            seen whole = train(&s, true, NULL);
            s.shared = STK_SHARED_OPTIMIZER;
            seen parts = train(&s, true, NULL);
            expect_same("options", &s, &whole, &parts, 0, s.clip_norm > 0 ? 1e-5 : 0);
            if (parts.variable_bytes >= whole.variable_bytes) fail_msg("nothing is shared out: %d, %d ranks", k, n);
            /* What a checkpoint would have, too. */
            assert_int_equal(whole.n, parts.n);
            if (s.clip_norm == 0) assert_memory_equal(whole.whole, parts.whole, whole.n);
            free(whole.whole);
            free(parts.whole);
        }
}

/* From a state kept by 3 ranks in parts. */
static void a_state_goes_on_with_others(void **state)
{
    (void)state;
    setting s = {.optimizer = stk_adam(.lr = 0.003), .n_replicas = 3, .shared = STK_SHARED_OPTIMIZER};
    seen first = train(&s, true, NULL);
    for (int n = 1; n < 5; n++)
        for (int shared = STK_SHARED_NONE; shared <= STK_SHARED_OPTIMIZER; shared++) {
            s.n_replicas = n;
            s.shared = (stk_shared_state)shared;
            seen second = train(&s, false, &first);
            assert_true(second.loss[2] == 0 && second.shards == (n > 1 && shared == STK_SHARED_OPTIMIZER));
            expect_same("going on", &s, &first, &second, 3, 1e-5);
        }
    free(first.whole);
}

/* Without a word about it, state is divided where nothing fits otherwise, and not where all does. */
static void a_limit_asks_for_it(void **state)
{
    (void)state;
    setting s = {.optimizer = stk_adam(.lr = 0.003), .n_replicas = 4, .shared = STK_SHARED_NONE};
    seen whole = train(&s, false, NULL);
    s.shared = STK_SHARED_AUTO;
    assert_false(train(&s, false, NULL).shards);
    s.limit = (size_t)1 << 30;
    assert_false(train(&s, false, NULL).shards);
    s.shared = STK_SHARED_OPTIMIZER;
    seen parts = train(&s, false, NULL);
    s.shared = STK_SHARED_AUTO;
    s.limit = 2 * (whole.variable_bytes + whole.arena_bytes + parts.variable_bytes + parts.arena_bytes);
    assert_true(train(&s, false, NULL).shards);
}

int main(void)
{
    /* Where a processor's table takes a library for small products, that has memory of its own, beyond these limits. */
    setenv("STOKER_KERNELS", "default", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_the_same),
        cmocka_unit_test(each_rank_has_its_part),
        cmocka_unit_test(what_changes_updates_goes_along),
        cmocka_unit_test(a_state_goes_on_with_others),
        cmocka_unit_test(a_limit_asks_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
