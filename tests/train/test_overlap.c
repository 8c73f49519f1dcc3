/* Gradients that are added up while the backward pass goes on: the bits of gradients that are waited for at once,
 * whatever else ranks do together, and sums that begin before the backward pass has ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/rng.h"
#include "base/text.h"
#include "engine/engine.h"
#include "stoker/data/dataset.h"
#include "stoker/train/trainer.h"
#include "train/trainer_state.h"

enum { WIDTH = 259, N_LAYERS = 12, N = 32, BATCH = 16, N_EPOCHS = 2, N_STEPS = N / BATCH * N_EPOCHS, N_CLASSES = 5 };

typedef struct setting {
    bool no_overlap, divided, clips, norm, narrow;
    int64_t accumulate;
    int n_replicas;
} setting;

typedef struct seen {
    double loss[N_STEPS];
    char *graph, *entries; /* after the pass; of the first replica's step, those of a first micro-batch */
    int n_calls;           /* in which ranks meet, in a step */
} seen;

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    (void)user;
    for (int i = 0; i < WIDTH; i++)
        ((float *)out[0])[i] = (float)(stk_philox(3, (uint64_t)i_sample, (uint64_t)i).v[0] >> 8) * 0x1p-24f;
    *(int32_t *)out[1] = (int32_t)(stk_philox(1, 2, (uint64_t)i_sample).v[0] % N_CLASSES);
    return STK_OK;
}

static stk_trainer *make_trainer(const setting *s)
{
    static const stk_array_field fields[] = {{.name = "features", .dtype = STK_F32, .sample = STK_SHAPE(WIDTH)},
                                             {.name = "label", .dtype = STK_I32}};
    stk_dataset *data = stk_dataset_function(N, fields, 2, make_sample, NULL);
    stk_dataset_batch(data, BATCH, true);
    stk_model *model = stk_model_new("deep");
    stk_value x = stk_graph_input(stk_model_graph(model), "features", STK_F32, STK_SHAPE(STK_ANY, WIDTH));
    for (int i = 0; i < N_LAYERS; i++) {
        x = stk_dense(x, WIDTH);
        x = stk_relu(s->norm ? stk_layer_norm(x) : x);
    }
    x = stk_dense(x, N_CLASSES);
    stk_model_output(model, x);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    return stk_trainer_new(model, data, stk_adamw(.lr = 0.01f));
}

static void on_event(void *user, const stk_train_event *event)
{
    seen *s = user;
    if (event->kind == STK_EVENT_STEP) s->loss[event->step - 1] = event->loss;
}

static void on_dump(void *user, const char *pass, const char *text)
{
    seen *s = user;
    assert_string_equal(pass, "overlap");
    free(s->graph);
    s->graph = strdup(text);
}

static seen train(setting s)
{
    seen out = {.graph = NULL, .entries = NULL};
    stk_trainer *trainer = make_trainer(&s);
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    config.n_replicas = s.n_replicas;
    config.no_overlap = s.no_overlap;
    config.narrow_sums = s.narrow;
    config.accumulate = s.accumulate;
    config.clip_norm = s.clips ? 0.5 : 0;
    config.shared = s.divided ? STK_SHARED_OPTIMIZER : STK_SHARED_NONE;
    config.dump_graph = s.no_overlap ? NULL : "overlap";
    config.dump = on_dump;
    config.event_user = &out;
    config.on_event = on_event;
    stk_trainer_configure(trainer, &config);
    if (stk_trainer_run(trainer, N_EPOCHS) != STK_OK) fail_msg("%s", stk_error_text());
    stk_text entries = {0};
    stk_program_print(trainer->train.program, &entries);
    out.entries = strdup(stk_text_get(&entries));
    stk_text_free(&entries);
    out.n_calls = stk_program_rank_calls(trainer->train.program).n_calls;
    stk_trainer_free(trainer);
    return out;
}

static void free_seen(seen *s)
{
    free(s->graph);
    free(s->entries);
}

/* Sums are begun, not more than 8 are under way, and products of the backward pass follow the first. */
static void check_graph(const char *graph, bool has_parts)
{
    int n_begun = 0, n_open = 0, n_products = 0, most = 0;
    assert_non_null(graph);
    for (const char *line = graph; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t n = strcspn(line, "\n");
        char text[400];
        snprintf(text, sizeof(text), "%.*s", (int)n, line);
        if (strstr(text, " = rank_begin ")) {
            n_begun++;
            n_open++;
        }
        if (strstr(text, " = rank_await ")) n_open--;
        if (n_begun == 1 && strstr(text, " = matmul ")) n_products++;
        if (n_open > most) most = n_open;
    }
    assert_in_range(n_begun, N_LAYERS, N_LAYERS + 4);
    assert_int_equal(n_open, 0);
    assert_in_range(most, 2, 8);
    if (!has_parts) assert_true(n_products > 0);
}

static void bits_stay(void **state)
{
    (void)state;
    for (int k = 0; k < 16; k++) {
        setting s = {.divided = k & 1, .clips = k & 2, .norm = k & 4, .accumulate = k & 8 ? 2 : 0};
        s.n_replicas = k % 3 ? 2 : 4;
        seen meanwhile = train(s);
        check_graph(meanwhile.graph, s.accumulate > 0);
        s.no_overlap = true;
        seen at_once = train(s);
        for (int i = 0; i < N_STEPS; i++)
            if (meanwhile.loss[i] != at_once.loss[i])
                fail_msg("case %d, step %d: %.17g and %.17g", k, i + 1, meanwhile.loss[i], at_once.loss[i]);
        free_seen(&meanwhile);
        free_seen(&at_once);
    }
}

/* Sums in bf16 are others, but not by much; and they are the same whenever they are waited for. */
static void sums_in_bf16_are_near(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        setting s = {.divided = k & 1, .accumulate = k & 2, .n_replicas = 2};
        seen wide = train(s);
        s.narrow = true;
        seen narrow = train(s);
        s.no_overlap = true;
        seen at_once = train(s);
        assert_memory_equal(narrow.loss, at_once.loss, sizeof(narrow.loss));
        assert_true(narrow.loss[0] == wide.loss[0]);
        assert_true(memcmp(narrow.loss, wide.loss, sizeof(narrow.loss)) != 0);
        for (int i = 0; i < N_STEPS; i++)
            if (!(fabs(narrow.loss[i] - wide.loss[i]) <= 0.05 * fabs(wide.loss[i])))
                fail_msg("case %d, step %d: %.9g in bf16, %.9g in f32", k, i + 1, narrow.loss[i], wide.loss[i]);
        free_seen(&wide);
        free_seen(&narrow);
        free_seen(&at_once);
    }
}

/* Entries of the last micro-batch, which are not printed, between the first sum that begins and the last. */
static int count_between(const char *entries)
{
    int n_begun = 0, n_printed = 0, first = 0, last = 0, until = 0;
    for (const char *line = entries; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        int number = 0;
        char op[32] = "";
        assert_int_equal(sscanf(line, "%d %31s", &number, op), 2);
        if (n_begun > 0) n_printed++;
        if (strcmp(op, "rank_begin") != 0) continue;
        if (n_begun++ == 0) first = number;
        last = number;
        until = n_printed;
    }
    assert_in_range(n_begun, 2, N_LAYERS + 4); /* In bf16 more go together. */
    return last - first - until;
}

/* Ranks meet as often as without micro-batches, and begin in the last one, whose backward pass goes on. */
static void sums_begin_in_the_last_micro_batch(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) {
        setting s = {.divided = k & 1, .narrow = k & 2, .accumulate = 2 + k / 4 * 2, .n_replicas = 2};
        seen micro = train(s);
        s.accumulate = 0;
        seen whole = train(s);
        assert_int_equal(micro.n_calls, whole.n_calls);
        assert_int_equal(count_between(whole.entries), 0);
        assert_in_range(count_between(micro.entries), N_LAYERS / 2, 10 * N_LAYERS);
        free_seen(&micro);
        free_seen(&whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_stay), cmocka_unit_test(sums_in_bf16_are_near),
                                       cmocka_unit_test(sums_begin_in_the_last_micro_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
