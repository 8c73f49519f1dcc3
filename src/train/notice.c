/* See train/notice.h. Thresholds: input as XProf has it (20 % is high); a loss whose mean of about fifty steps is twice
 * its least and more than 1 above it has gone wrong; a loss scale that fell by 2^8 is on its way down.
 */
#include "train/notice.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "events/prometheus.h"

static const int64_t FEWEST_STEPS = 50; /* before anything is said: the first steps warm up */
static const double MOST_INPUT = 0.2, FALLEN = 256;
static const int64_t WRITE_NS = 1000000000;

static bool look_at_input(stk_notice *n, const stk_train_event *event, char *text)
{
    if (n->told_input || event->time.input < MOST_INPUT) return false;
    n->told_input = true;
    snprintf(text, STK_NOTICE_TEXT,
             "input-bound: %.0f %% of the time goes to waiting for batches; 'stoker data bench RECIPE' shows the "
             "slowest stage; "
             "a cache, 'stoker pack', fewer pixels or more threads help",
             100 * event->time.input);
    return true;
}

static bool look_at_loss(stk_notice *n, const stk_train_event *event, char *text)
{
    if (!isfinite(event->loss)) return false; /* on_nan looks after those */
    /* One bad batch says nothing, however bad. */
    n->mean_loss = n->n_steps == 1 ? event->loss : n->mean_loss + 0.02 * fmin(event->loss - n->mean_loss, 2);
    if (n->n_steps == 1 || n->mean_loss < n->least_loss) n->least_loss = n->mean_loss;
    if (n->told_loss || n->n_steps < FEWEST_STEPS) return false;
    if (n->mean_loss < n->least_loss + 1 || n->mean_loss < 2 * n->least_loss) return false;
    n->told_loss = true;
    snprintf(text, STK_NOTICE_TEXT,
             "the loss is growing: about %.3g at step %lld, after %.3g; a lower learning rate, a warm-up or "
             "'clip_norm: 1' keeps "
             "updates small",
             n->mean_loss, (long long)event->step, n->least_loss);
    return true;
}

static bool look_at_scale(stk_notice *n, const stk_train_event *event, char *text)
{
    if (event->loss_scale > n->most_scale) n->most_scale = event->loss_scale;
    if (n->told_scale || !(event->loss_scale > 0) || event->loss_scale * FALLEN > n->most_scale) return false;
    n->told_scale = true;
    snprintf(
        text, STK_NOTICE_TEXT,
        "the loss scale fell from %g to %g, and %lld steps were skipped: gradients overflow in f16; 'precision: bf16', "
        "'clip_norm: 1' or a lower rate",
        n->most_scale, event->loss_scale, (long long)event->n_skipped_steps);
    return true;
}

bool stk_notice_look(stk_notice *n, const stk_train_event *event, char text[STK_NOTICE_TEXT])
{
    n->n_steps++;
    bool found = look_at_loss(n, event, text);
    if (n->n_steps < FEWEST_STEPS) return found;
    return found || look_at_scale(n, event, text) || look_at_input(n, event, text);
}

stk_status stk_notice_write(stk_notice *n, const char *folder, const char *run, const stk_train_event *event)
{
    char path[4096];
    int64_t now = stk_clock_ns();
    const stk_time_shares *time = &event->time;
    static const char share[] = "Share of the training loop's time.";
    if (n->gave_up || (event->kind == STK_EVENT_STEP && n->written_ns > 0 && now - n->written_ns < WRITE_NS))
        return STK_OK;
    n->written_ns = now;
    const stk_gauge gauges[] = {
        {"stoker_steps_total", "Training steps done, resumed ones included.", "", (double)event->step},
        {"stoker_skipped_steps_total", "Steps that changed nothing: gradients were not finite.", "",
         (double)event->n_skipped_steps},
        {"stoker_epoch", "Epoch under way, from 1.", "", (double)event->epoch},
        {"stoker_train_loss", "Loss of the last step.", "", event->loss},
        {"stoker_train_accuracy_ratio", "Accuracy of the epoch so far.", "",
         event->train.accuracy >= 0 ? event->train.accuracy : NAN},
        {"stoker_learning_rate", "Learning rate of the last step.", "", event->lr},
        {"stoker_samples_per_second", "Samples trained on a second, smoothed.", "", event->samples_per_s},
        {"stoker_time_ratio", share, "part=\"input\"", time->input},
        {"stoker_time_ratio", share, "part=\"host\"", time->host},
        {"stoker_time_ratio", share, "part=\"launch\"", time->launch},
        {"stoker_time_ratio", share, "part=\"compute\"", time->compute},
        {"stoker_planned_memory_bytes", "Memory that the step was planned to need.", "",
         (double)event->peak_planned_bytes},
        {"stoker_remaining_seconds", "Estimate of the time that the run still takes.", "", event->left_s},
    };
    stk_status status = stk_path_join(path, sizeof(path), folder, "metrics.prom");
    if (status == STK_OK) status = stk_prometheus_write(path, run, gauges, sizeof(gauges) / sizeof(gauges[0]));
    n->gave_up = status != STK_OK;
    return status;
}
