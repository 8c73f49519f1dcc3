/* See train/judge.h. */
#include "train/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "train/trainer_state.h"

double stk_metric_get(const stk_metrics *metrics, const char *name)
{
    if (!strcmp(name, "loss")) return metrics->loss;
    if (!strcmp(name, "accuracy")) return metrics->accuracy >= 0 ? metrics->accuracy : (double)NAN;
    if (!strcmp(name, "top5") && metrics->top5 >= 0) return metrics->top5;
    if (!strcmp(name, "perplexity")) return metrics->perplexity > 0 ? metrics->perplexity : (double)NAN;
    for (int i = 0; i < metrics->n_values; i++)
        if (!strcmp(name, metrics->value[i].name)) return metrics->value[i].value;
    return NAN;
}

bool stk_metric_wants_less(const char *name)
{
    for (int kind = 0; kind < STK_N_MEASURES; kind++) {
        const stk_measure_class *class = stk_measure_class_of((stk_measure_kind)kind);
        if (class->less_is_better && !strcmp(name, class->key.name)) return true;
    }
    return !strcmp(name, "loss");
}

/* Adds a name to the list of what there is, and says whether it is the one that is looked for. */
static bool add_name(stk_text *names, const char *there, const char *wanted)
{
    stk_text_add(names, "%s%s", names->n ? ", " : "", there);
    return !strcmp(there, wanted);
}

stk_status stk_metric_check(const stk_trainer *trainer, const char *name)
{
    stk_text names = {0};
    bool found = add_name(&names, "loss", name);
    if (trainer->has_classes) found |= add_name(&names, "accuracy", name);
    if (trainer->has_top5) found |= add_name(&names, "top5", name);
    if (trainer->is_language_model) found |= add_name(&names, "perplexity", name);
    for (int i = 0; i < trainer->n_measures; i++) {
        char text[STK_METRIC_NAME_BYTES];
        const stk_measure_class *class = stk_measure_class_of(trainer->measure[i].kind);
        if (!class || (!class->finish && !class->of_rows)) continue;
        stk_measure_text(&trainer->measure[i], text);
        found |= add_name(&names, text, name);
    }
    stk_status status = STK_OK;
    if (!found)
        status = stk_fail(STK_INVALID, "no '%.20s' is measured, only %s; add it to 'metrics', or name one of these",
                          name, stk_text_get(&names));
    stk_text_free(&names);
    return status;
}

/* Less is better; what has no value is worse than all. */
static double value_of(const stk_metrics *valid, const char *name)
{
    double value = stk_metric_get(valid, name);
    if (isnan(value)) return INFINITY;
    return stk_metric_wants_less(name) ? value : -value;
}

/* For the checkpoint, so that a run which goes on with another measure is told from one with the same. */
static int64_t number_of(const char *name)
{
    if (!strcmp(name, "loss")) return 0;
    if (!strcmp(name, "accuracy")) return 1;
    return (int64_t)(stk_hash64(name, strlen(name), 0) >> 16);
}

bool stk_judge(stk_trainer *trainer, const stk_metrics *valid)
{
    stk_train_state *state = &trainer->state;
    double value = value_of(valid, trainer->best_metric), stop_value = value_of(valid, trainer->stop_metric);
    /* Of another measure the old best says nothing. */
    if (state->best_metric != number_of(trainer->best_metric)) state->best_value = INFINITY;
    state->best_metric = number_of(trainer->best_metric);
    bool improved = value < state->best_value, goes_on = stop_value < state->stop_value - trainer->config.min_delta;
    if (improved) {
        state->best_value = value;
        state->best_epoch = state->epoch;
    }
    if (goes_on) state->stop_value = stop_value;
    state->n_bad_epochs = goes_on ? 0 : state->n_bad_epochs + 1;
    return improved;
}
