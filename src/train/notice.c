/* See train/notice.h. Thresholds: input as XProf has it (20 % is high); a loss whose mean of about fifty steps is twice
 * its least and more than 1 above it has gone wrong; a loss scale that fell by 2^8 is on its way down.
 */
#include "train/notice.h"

#include <math.h>
#include <stdio.h>

static const int64_t FEWEST_STEPS = 50; /* before anything is said: the first steps warm up */
static const double MOST_INPUT = 0.2, FALLEN = 256;

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
