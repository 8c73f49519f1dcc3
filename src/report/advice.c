/* See report/advice.h. A rule looks at one thing and says what it costs, as a share of the time (Amdahl's bound on what
 * could be gained), and what to do. Thresholds are XProf's: 5 and 20 % for input, 3 and 15 % for host and launch.
 */
#include "report/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_number.h"
#include "report/chart.h"

enum { TEXT_BYTES = 700 };

/* Writes what there is to say and returns its weight; 0: nothing. */
typedef double (*rule)(const stk_run_data *run, char text[TEXT_BYTES]);

static double number(const stk_run_data *run, const char *path)
{
    return stk_json_number(run->profile, path);
}

/* The stage that takes longest; its share of all. */
static const char *slowest_stage(const stk_run_data *run, double *share)
{
    const json_t *stages = stk_json_find(run->profile, "input.stages"), *stage;
    const char *name = "";
    double most = 0, sum = 0;
    size_t i;
    json_array_foreach(stages, i, stage)
    {
        double ns = stk_json_number(stage, "ns");
        sum += ns > 0 ? ns : 0;
        if (ns <= most) continue;
        most = ns;
        name = stk_json_text(stage, "name");
    }
    *share = sum > 0 ? most / sum : 0;
    return name;
}

static double input(const stk_run_data *run, char text[TEXT_BYTES])
{
    double share = number(run, "time.input"), of_stages;
    if (!(share >= 0.05)) return 0;
    const char *stage = slowest_stage(run, &of_stages);
    bool is_full = number(run, "input.active_threads") >= number(run, "machine.cores");
    snprintf(text, TEXT_BYTES,
             "%s input-bound: %.0f %% of the time goes to waiting for batches; without that the run would be up to "
             "%.2fx faster. "
             "The slowest stage is '%.80s' with %.0f %% of a sample's work. %s 'stoker data bench RECIPE' shows what "
             "the pipeline "
             "alone delivers.",
             share >= 0.2 ? "Highly" : "Moderately", 100 * share, 1 / (1 - fmin(share, 0.99)), stage, 100 * of_stages,
             is_full ? "All cores are at it already: 'cache: memory' (or disk) before the first random stage, 'stoker "
                       "index' for "
                       "crops of JPEGs, 'stoker pack' for many small files."
                     : "Raise 'threads', or give it cores.");
    return share;
}

static double host(const stk_run_data *run, char text[TEXT_BYTES])
{
    double share = number(run, "time.host");
    if (!(share >= 0.03)) return 0;
    snprintf(text, TEXT_BYTES,
             "%.0f %% of the time goes to the host's own work around steps: records and copies for checkpoints. Raise "
             "'log.every' "
             "and 'checkpoint.every'; a larger batch makes fewer steps.",
             100 * share);
    return share;
}

static double launch(const stk_run_data *run, char text[TEXT_BYTES])
{
    double share = number(run, "time.launch");
    if (!(share >= 0.03)) return 0;
    snprintf(text, TEXT_BYTES,
             "%.0f %% of the time passes between kernels: they are too short. A larger batch makes them longer; other "
             "processes "
             "on the same cores make gaps, too ('stoker watch' sees them).",
             100 * share);
    return share;
}

static double share_of(const stk_run_data *run, const char *work)
{
    const json_t *list = stk_json_find(run->profile, "work"), *part;
    double s = 0, sum = 0;
    size_t i;
    json_array_foreach(list, i, part)
    {
        double x = stk_json_number(part, "s");
        sum += x;
        if (!strcmp(stk_json_text(part, "work"), work)) s += x;
    }
    return sum > 0 ? s / sum : 0;
}

/* What streams memory takes as long however fast the processor multiplies. */
static double streaming(const stk_run_data *run, char text[TEXT_BYTES])
{
    double share = (share_of(run, "fused") + share_of(run, "normalisation") + share_of(run, "pooling")) *
                   number(run, "time.compute");
    bool is_wide = !strcmp(stk_json_text(run->profile, "precision"), "f32");
    if (!(share >= 0.3)) return 0;
    snprintf(text, TEXT_BYTES,
             "%.0f %% of the time goes to element-wise work, normalisation and pooling, which move memory and hardly "
             "compute. %s",
             100 * share,
             is_wide ? "Half the bytes: 'precision: bf16', where 'stoker devices' shows a processor that is fast in it."
                     : "Wider layers or larger channels compute more for the same memory.");
    return share * 0.4;
}

static double optimiser(const stk_run_data *run, char text[TEXT_BYTES])
{
    double share = share_of(run, "optimiser") * number(run, "time.compute");
    if (!(share >= 0.1)) return 0;
    snprintf(
        text, TEXT_BYTES,
        "%.0f %% of the time goes to the optimiser, which costs the same for a batch of any size: a larger batch, or "
        "'accumulate', makes it rarer.",
        100 * share);
    return share * 0.5;
}

static double far_from_peak(const stk_run_data *run, char text[TEXT_BYTES])
{
    double mfu = number(run, "step.mfu"), compute = number(run, "time.compute");
    if (!(mfu < 0.3) || !(compute > 0.8)) return 0;
    snprintf(text, TEXT_BYTES,
             "The step reaches %.0f %% of the rate that this machine multiplies matrices at, though it computes nearly "
             "all the time: "
             "see which kernels stay below their roof. Layers of few channels, and small batches, leave the vector "
             "units idle.",
             100 * mfu);
    return 0.1;
}

static double memory(const stk_run_data *run, char text[TEXT_BYTES])
{
    double peak = number(run, "memory.arena_bytes") + number(run, "memory.variable_bytes") +
                  number(run, "memory.packed_bytes"),
           limit = number(run, "memory.limit_bytes");
    char a[STK_SHORT_TEXT], b[STK_SHORT_TEXT];
    if (!(limit > 0) || !(peak < 0.1 * limit) || !(number(run, "step.mfu") < 0.5)) return 0;
    snprintf(
        text, TEXT_BYTES,
        "The step uses %s of %s: a larger batch fits, and fills the kernels better. Change the learning rate with it.",
        stk_short_bytes(peak, a), stk_short_bytes(limit, b));
    return 0.02;
}

/* The mean of the last losses compared with the best ten in a row. */
static double diverging(const stk_run_data *run, char text[TEXT_BYTES])
{
    char a[STK_PLAIN_TEXT], b[STK_PLAIN_TEXT];
    double best = INFINITY, last = NAN, sum = 0;
    int n = 0;
    for (int i = 0; i < run->n_points; i++) {
        if (run->point[i].is_epoch) continue;
        if (!isfinite(run->point[i].loss)) {
            snprintf(text, TEXT_BYTES,
                     "The loss was NaN at step %.0f: a lower rate, 'clip_norm: 1', or 'on_nan: skip'.",
                     run->point[i].step);
            return 2;
        }
        sum += run->point[i].loss;
        if (++n % 10) continue;
        last = sum / 10;
        best = fmin(best, last);
        sum = 0;
    }
    if (!(last > 1.5 * best) || !(last > best + 0.2)) return 0;
    snprintf(text, TEXT_BYTES,
             "The loss went up again, from %s to %s: a lower learning rate, a warm-up ('schedule: {cosine: "
             "{warmup: 1}}'), "
             "or 'clip_norm: 1'.",
             stk_plain_number(best, a), stk_plain_number(last, b));
    return 1.5;
}

/* Validation gets worse while training gets better. */
static double overfitting(const stk_run_data *run, char text[TEXT_BYTES])
{
    char a[STK_PLAIN_TEXT], b[STK_PLAIN_TEXT];
    double best = INFINITY, best_epoch = 0, last = NAN, last_epoch = 0;
    for (int i = 0; i < run->n_points; i++) {
        const stk_point *p = &run->point[i];
        if (!p->is_epoch || !isfinite(p->valid_loss)) continue;
        last = p->valid_loss;
        last_epoch = p->epoch;
        if (last >= best) continue;
        best = last;
        best_epoch = p->epoch;
    }
    if (!(last > 1.05 * best) || last_epoch - best_epoch < 2) return 0;
    snprintf(text, TEXT_BYTES,
             "Validation was best in epoch %.0f (loss %s; now %s): the network learns the samples by heart. More "
             "augmentation, "
             "weight decay or 'early_stopping: {patience: 2}'.",
             best_epoch, stk_plain_number(best, a), stk_plain_number(last, b));
    return 1;
}

/* What the recipe wanted and did not get; of several, the first. */
static double short_of(const stk_run_data *run, char text[TEXT_BYTES])
{
    char a[STK_PLAIN_TEXT];
    const json_t *list = stk_json_find(run->result, "expected"), *claim;
    size_t i;
    json_array_foreach(list, i, claim)
    {
        if (!json_is_false(json_object_get(claim, "met"))) continue;
        snprintf(
            text, TEXT_BYTES,
            "The run falls short of its recipe: '%.200s' is expected, and it is %s. While the loss still falls: more "
            "epochs; else other rates, more data or another network.",
            stk_json_text(claim, "what"), stk_plain_number(stk_json_number(claim, "value"), a));
        return 1.2;
    }
    return 0;
}

static const rule rules[] = {diverging, short_of,  overfitting, input,         host,
                             launch,    streaming, optimiser,   far_from_peak, memory};
enum { N_RULES = sizeof(rules) / sizeof(rules[0]) };

void stk_advice_add(stk_text *out, const stk_run_data *run)
{
    char text[N_RULES][TEXT_BYTES];
    double weight[N_RULES];
    int n_said = 0;
    for (int i = 0; i < N_RULES; i++)
        weight[i] = rules[i](run, text[i]);
    for (;;) {
        int best = -1;
        for (int i = 0; i < N_RULES; i++)
            if (weight[i] > 0 && (best < 0 || weight[i] > weight[best])) best = i;
        if (best < 0) break;
        stk_text_add(out, "<li>");
        stk_html_add(out, text[best]);
        stk_text_add(out, "</li>\n");
        weight[best] = 0;
        n_said++;
    }
    if (n_said == 0 && run->profile)
        stk_text_add(
            out, "<li>Nothing stands out: the device computes nearly all the time, and the losses look sound.</li>\n");
    if (n_said == 0 && !run->profile)
        stk_text_add(out, "<li>There is no profile.json yet: it is written when the run ends.</li>\n");
}
