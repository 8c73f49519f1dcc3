/* What the learning rate's schedule does in this run that one would hardly mean. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/plain_number.h"
#include "optim/schedule.h"
#include "run/state.h"
#include "train/trainer_state.h"

/* The share of the full rate that a step of a run of so many epochs takes. */
static double share(const stk_run *run, int64_t step, int64_t n_epochs)
{
    int64_t n = run->trainer->n_batches;
    return stk_schedule_rate(&run->recipe->config.schedule, 1, step, n * n_epochs, n);
}

void stk_run_warn_schedule(stk_run *run, int64_t step)
{
    static const double least_jump = 0.05;
    char text[320], a[STK_PLAIN_TEXT], b[STK_PLAIN_TEXT];
    int64_t epochs = run->recipe->epochs, before = run->epochs_before;
    double warmup = run->recipe->config.schedule.warmup_epochs;
    if (warmup > (double)epochs) {
        snprintf(text, sizeof(text),
                 "the schedule's 'warmup' of %s epochs is longer than the run of %" PRId64
                 ": the rate grows to %.3g %% of its full value, and ends there",
                 stk_plain_number(warmup, a), epochs, 100 * share(run, run->trainer->n_steps - 1, epochs));
        stk_run_warn(run, text);
    }
    if (before == 0 || before == epochs || step == 0 || step >= run->trainer->n_steps) return;
    double was = share(run, step - 1, before), is = share(run, step, epochs);
    if (!(fabs(is - was) > least_jump)) return;
    snprintf(
        text, sizeof(text),
        "the schedule was for a run of %" PRId64 ", and is for one of %" PRId64
        " epochs now: the rate, which had come to %s %% of its full value, goes on at %s %%; a run with another --out "
        "has the longer schedule from its start",
        before, epochs, stk_plain_number(round(1000 * was) / 10, a), stk_plain_number(round(1000 * is) / 10, b));
    stk_run_warn(run, text);
}
