/* See data/loader/tune.h. The bounds of 5 % are those of XProf's input pipeline analyser for "not input-bound". */
#include "data/loader/tune.h"

#include <stdio.h>

#include "base/plain_number.h"

enum { LEAST_BATCHES = 3, PATIENCE = 64, IDLE_WINDOWS = 8 };
#define WINDOW_NS INT64_C(250000000)
#define WAITS     0.05 /* of the time: more workers are tried */
#define IDLE      0.01 /* less than that: fewer are */
#define FASTER    1.03 /* what more must bring where others want the cores, too */
#define AS_FAST   0.98 /* what is no slower */

void stk_tuner_start(stk_tuner *t, int64_t now_ns)
{
    t->start_ns = t->from_ns = now_ns;
    t->each = 1;
    t->settles = true;
}

static void say(stk_tuner *t, int64_t now_ns, double rate, double share, const char *what)
{
    char now_text[STK_PLAIN_TEXT], before_text[STK_PLAIN_TEXT];
    if (t->n_texts == STK_TUNE_MOST_TEXTS) return;
    snprintf(t->text[t->n_texts++], STK_TUNE_TEXT,
             "after %.1f s: %d threads, %d slots instead of %d, %d %s: %s samples/s (%s), waiting %.0f %% (%.0f %%)",
             (double)(now_ns - t->start_ns) * 1e-9, t->n_threads, t->n_slots, t->before_threads, t->before_slots, what,
             stk_plain_rate(rate, now_text), stk_plain_rate(t->before_rate, before_text), 100 * share,
             100 * t->before_share);
}

/* Whether the trial stays; if not, things are as before. */
static bool judge(stk_tuner *t, int64_t now_ns, double rate, double share)
{
    bool was_less = t->n_threads < t->before_threads;
    double least = !was_less && t->can_rest ? FASTER : AS_FAST;
    bool good = rate >= least * t->before_rate && !(was_less && share >= WAITS);
    say(t, now_ns, rate, share, good ? "stay" : was_less ? "were too few" : "brought nothing");
    if (!good) {
        t->n_threads = t->before_threads;
        t->n_slots = t->before_slots;
        if (was_less)
            t->no_down = PATIENCE;
        else
            t->no_up = PATIENCE / 4;
    }
    t->before_threads = 0;
    return !good;
}

static int twice(int n, int most)
{
    return 2 * n < most ? 2 * n : most;
}

static bool try_something(stk_tuner *t, double rate, double share)
{
    int threads = t->n_threads, slots = t->n_slots;
    t->n_idle = share < IDLE ? t->n_idle + 1 : 0;
    if (t->no_up > 0) t->no_up--;
    if (t->no_down > 0) t->no_down--;
    if (share > WAITS && t->no_up == 0) {
        /* Both at once: more workers need more slots to work on. */
        threads = twice(threads, t->most_threads);
        slots = twice(slots, t->most_slots);
    } else if (t->can_rest && t->n_idle >= IDLE_WINDOWS && t->no_down == 0 && threads > 1) {
        threads -= threads > 4 ? threads / 4 : 1;
        t->n_idle = 0;
    }
    if (threads == t->n_threads && slots == t->n_slots) return false;
    t->before_threads = t->n_threads;
    t->before_slots = t->n_slots;
    t->before_rate = rate;
    t->before_share = share;
    t->n_threads = threads;
    t->n_slots = slots;
    return true;
}

bool stk_tuner_step(stk_tuner *t, int64_t now_ns, int64_t wait_ns, int64_t n_samples)
{
    t->n_batches++;
    int64_t ns = now_ns - t->from_ns;
    if (t->n_batches < LEAST_BATCHES || ns < (t->settles ? WINDOW_NS / 2 : WINDOW_NS)) return false;
    double rate = (double)(n_samples - t->from_samples) / (double)ns * 1e9;
    double share = (double)(wait_ns - t->from_wait_ns) / (double)ns;
    bool changed = false;
    if (!t->settles) changed = t->before_threads ? judge(t, now_ns, rate, share) : try_something(t, rate, share);
    t->settles = changed;
    t->from_ns = now_ns;
    t->from_wait_ns = wait_ns;
    t->from_samples = n_samples;
    t->n_batches = 0;
    return changed;
}

void stk_tuner_note_ready(stk_tuner *t, int n_ready)
{
    t->ready_sum += n_ready;
    t->n_ready++;
    if (t->n_in_last == 0 && t->n_history == STK_TUNE_HISTORY) {
        for (int i = 0; i < STK_TUNE_HISTORY / 2; i++)
            t->ready[i] = 0.5f * (t->ready[2 * i] + t->ready[2 * i + 1]);
        t->n_history /= 2;
        t->each *= 2;
    }
    if (t->n_in_last == 0) t->ready[t->n_history++] = 0;
    float *last = &t->ready[t->n_history - 1];
    *last += ((float)n_ready - *last) / (float)++t->n_in_last;
    if (t->n_in_last == t->each) t->n_in_last = 0;
}
