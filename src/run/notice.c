/* See run/notice.h. Thresholds: input as XProf has it (20 % is high); a loss whose mean of about fifty steps is twice
 * its least and more than 1 above it has gone wrong; a loss scale that fell by 2^8 is on its way down; gradients
 * explode whose norm is ten times its own running median, or NaN, three times in a row; the data loader starves
 * where half of the last fifty steps' time went to waiting, though it did not before.
 */
#include "run/notice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plain_number.h"

static const int64_t FEWEST_STEPS = 50; /* before anything is said: the first steps warm up */
static const double MOST_INPUT = 0.2, FALLEN = 256, EXPLODED = 10, STARVING = 0.5;
enum { HIGH_IN_A_ROW = 3 };

/* --- what is kept of each step --- */

static void track_loss(stk_notice *n, double loss)
{
    if (!isfinite(loss)) return; /* on_nan looks after those */
    /* One bad batch says nothing, however bad. */
    n->mean_loss = n->n_steps == 1 ? loss : n->mean_loss + 0.02 * fmin(loss - n->mean_loss, 2);
    if (n->n_steps == 1 || n->mean_loss < n->least_loss) n->least_loss = n->mean_loss;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_norm(const stk_notice *n)
{
    double sorted[STK_NOTICE_NORMS];
    int count = n->n_norms < STK_NOTICE_NORMS ? n->n_norms : STK_NOTICE_NORMS;
    memcpy(sorted, n->norm, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare);
    return sorted[count / 2];
}

/* Norms that explode stay out of the window: the median is that of sound steps. It is only taken where a norm is above
 * all of them. */
static void track_norm(stk_notice *n, double norm)
{
    double most = 0;
    if (norm <= 0) return; /* not known */
    bool is_sound = n->n_norms < FEWEST_STEPS && isfinite(norm);
    for (int i = 0; i < n->n_norms && i < STK_NOTICE_NORMS && !is_sound; i++)
        most = fmax(most, n->norm[i]);
    is_sound = is_sound || norm <= most || (isfinite(norm) && norm <= EXPLODED * median_norm(n));
    n->n_high = is_sound || n->n_norms < FEWEST_STEPS ? 0 : n->n_high + 1;
    if (is_sound) n->norm[n->n_norms++ % STK_NOTICE_NORMS] = norm;
}

static void track_waits(stk_notice *n, const stk_train_event *event)
{
    int i = (int)(n->n_steps % STK_NOTICE_WAITS);
    n->waits.step_s += event->step_s - n->wait[i].step_s;
    n->waits.wait_s += event->wait_s - n->wait[i].wait_s;
    n->wait[i].step_s = event->step_s;
    n->wait[i].wait_s = event->wait_s;
}

/* --- what is told of it: the cause before its effects --- */

static bool look_at_norm(stk_notice *n, const stk_train_event *event, char *text)
{
    char a[STK_PLAIN_TEXT], b[STK_PLAIN_TEXT];
    char remedy[160] = "a lower learning rate, a warm-up or 'clip_norm: 1' keeps updates small";
    if (n->told_norm || n->n_high < HIGH_IN_A_ROW) return false;
    n->told_norm = true;
    if (n->clip_norm > 0)
        snprintf(
            remedy, sizeof(remedy),
            "'clip_norm: %s' holds the updates; a lower learning rate or a warm-up helps, or a look at the data of "
            "these steps",
            stk_plain_number(n->clip_norm, a));
    snprintf(text, STK_NOTICE_TEXT, "gradients explode: their norm is %s at step %lld, and was about %s; %s",
             stk_plain_number(event->grad_norm, a), (long long)event->step, stk_plain_number(median_norm(n), b),
             remedy);
    return true;
}

static bool look_at_loss(stk_notice *n, const stk_train_event *event, char *text)
{
    char a[STK_PLAIN_TEXT], b[STK_PLAIN_TEXT];
    if (n->told_loss || n->n_steps < FEWEST_STEPS) return false;
    if (n->mean_loss < n->least_loss + 1 || n->mean_loss < 2 * n->least_loss) return false;
    n->told_loss = true;
    snprintf(text, STK_NOTICE_TEXT,
             "the loss is growing: about %s at step %lld, after %s; a lower learning rate, a warm-up or "
             "'clip_norm: 1' keeps updates small",
             stk_plain_number(n->mean_loss, a), (long long)event->step, stk_plain_number(n->least_loss, b));
    return true;
}

static bool look_at_scale(stk_notice *n, const stk_train_event *event, char *text)
{
    char a[STK_PLAIN_TEXT], b[STK_PLAIN_TEXT];
    if (n->told_scale || n->n_steps < FEWEST_STEPS || !(event->loss_scale > 0)) return false;
    if (event->loss_scale * FALLEN > n->most_scale) return false;
    n->told_scale = true;
    snprintf(
        text, STK_NOTICE_TEXT,
        "the loss scale fell from %s to %s, and %lld steps were skipped: gradients overflow in f16; 'precision: bf16', "
        "'clip_norm: 1' or a lower rate",
        stk_plain_number(n->most_scale, a), stk_plain_number(event->loss_scale, b), (long long)event->n_skipped_steps);
    return true;
}

static bool look_at_input(stk_notice *n, const stk_train_event *event, char *text)
{
    if (n->told_input || n->n_steps < FEWEST_STEPS || event->time.input < MOST_INPUT) return false;
    n->told_input = true;
    snprintf(text, STK_NOTICE_TEXT,
             "input-bound: %.0f %% of the time goes to waiting for batches; 'stoker data bench RECIPE' shows the "
             "slowest stage; a cache, 'stoker pack', fewer pixels or more threads help",
             100 * event->time.input);
    return true;
}

/* Of a run that waited much from the beginning that is told, and no more. */
static bool look_at_waits(stk_notice *n, const stk_train_event *event, char *text)
{
    if (n->told_starving || n->told_input || n->n_steps < 2 * FEWEST_STEPS) return false;
    if (!(n->waits.wait_s > STARVING * n->waits.step_s)) return false;
    n->told_starving = true;
    snprintf(
        text, STK_NOTICE_TEXT,
        "the data loader starves: %.0f %% of the last %d steps' time went to waiting for batches, of the whole run "
        "%.0f %%: something has changed; 'stoker watch --pid %ld' tells whether it is the disk, the network, memory "
        "or other programs",
        100 * n->waits.wait_s / n->waits.step_s, STK_NOTICE_WAITS, 100 * event->time.input, (long)getpid());
    return true;
}

bool stk_notice_look(stk_notice *n, const stk_train_event *event, char text[STK_NOTICE_TEXT])
{
    n->n_steps++;
    track_loss(n, event->loss);
    track_norm(n, event->grad_norm);
    track_waits(n, event);
    if (event->loss_scale > n->most_scale) n->most_scale = event->loss_scale;
    return look_at_norm(n, event, text) || look_at_loss(n, event, text) || look_at_scale(n, event, text) ||
           look_at_waits(n, event, text) || look_at_input(n, event, text);
}
