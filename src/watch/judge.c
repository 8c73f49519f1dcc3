/* Applies the table of rules to signals. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "watch/rules.h"

static bool holds(const stk_watch_clause *clause, const stk_watch_signals *signals)
{
    double x = signals->value[clause->signal];
    return clause->is == '>' ? x > clause->threshold : x < clause->threshold; /* NaN: neither */
}

/* How far beyond its threshold a signal is: 0 at it, 1 far from it. */
static double margin(const stk_watch_clause *clause, const stk_watch_signals *signals)
{
    double x = signals->value[clause->signal], t = clause->threshold;
    double scale = clause->is == '<' ? (t > 0 ? t : 1) : (t > 0 && t < 1 ? 1 - t : t > 0 ? t : 1);
    return fmin(1, fabs(x - t) / scale);
}

/* What the rule costs, as a share of the time judged. Some signals are shares of another whole. */
static double find_cost(const stk_watch_rule *rule, const stk_watch_signals *told)
{
    const double *x = told->value;
    if (rule->cost == STK_WATCH_SIGNALS || isnan(x[rule->cost])) return NAN;
    double cost = x[rule->cost], length_s = told->end_s - told->begin_s;
    if (rule->cost == STK_WATCH_stuck && length_s > 0) cost = x[STK_WATCH_stuck_s] / length_s;
    if (rule->cost == STK_WATCH_clock_low) cost *= x[STK_WATCH_gpu_busy];
    /* Of the time in which threads were ready. */
    if (rule->cost == STK_WATCH_waited) cost *= fmin(1, x[STK_WATCH_cores] + x[STK_WATCH_waiting]);
    /* In a period in which it is stopped the job still runs for its quota. */
    if (rule->cost == STK_WATCH_throttled)
        cost *= 1 - fmin(1, x[STK_WATCH_quota] / (x[STK_WATCH_allowed_share] * x[STK_WATCH_machine_cores]));
    /* What happens on cores next to a GPU that works costs nothing. */
    bool on_cores = rule->cost == STK_WATCH_waited || rule->cost == STK_WATCH_throttled;
    if (on_cores && x[STK_WATCH_gpu_used] > 0.5) cost = fmin(cost, x[STK_WATCH_idle]);
    return isnan(cost) ? NAN : fmax(0, fmin(1, cost));
}

static bool is_of_account(const stk_watch_rule *rule)
{
    return rule->cost >= STK_WATCH_by_compute && rule->cost <= STK_WATCH_by_unknown;
}

/* How sure a part of an account is: by how much it is larger than the next one that is no computing. The line, 0.8 for
 * parts that are equal to 0.98 from 0.4 of the time apart on, is chosen by hand: it ranks verdicts, and how often one
 * of such a confidence is right has not been measured. */
static double trust_account(stk_watch_signal part, const stk_watch_signals *seen)
{
    double next = 0;
    for (int i = STK_WATCH_by_compute + 1; i <= STK_WATCH_by_unknown; i++)
        if (i != (int)part) next = fmax(next, seen->value[i]);
    return 0.8 + 0.18 * fmax(0, fmin(1, (seen->value[part] - next) / 0.4));
}

/* True where the rule holds; fills the verdict. */
static bool apply(const stk_watch_rule *rule, const stk_watch_signals *seen, const stk_watch_signals *told,
                  stk_watch_verdict *out)
{
    const stk_watch_signals *signals = rule->cost == STK_WATCH_idle ? told : seen;
    int n_clauses = 0;
    double margins = 0;
    memset(out, 0, sizeof(*out));
    out->rule = rule;
    for (const stk_watch_clause *c = rule->clause; c < rule->clause + STK_WATCH_CLAUSES && c->part; c++) {
        bool is_signal = c->part == STK_WATCH_NEED || c->part == STK_WATCH_AGREE;
        bool good = c->part == STK_WATCH_TELL ? !isnan(signals->value[c->signal]) : holds(c, signals);
        if (!good && (c->part == STK_WATCH_GATE || c->part == STK_WATCH_NEED)) return false;
        n_clauses += is_signal && !isnan(signals->value[c->signal]);
        if (!good || c->part == STK_WATCH_GATE) continue;
        if (is_signal) {
            out->n_agree++;
            margins += margin(c, signals);
        }
        if (out->n_evidence < STK_WATCH_EVIDENCE)
            stk_watch_signal_tell(told, c->signal, out->evidence[out->n_evidence++]);
    }
    /* Parts of an account exclude each other: one is enough. */
    if (out->n_agree < (is_of_account(rule) ? 1 : 2)) return false;
    double agreeing = (double)out->n_agree / n_clauses;
    out->confidence = fmin(0.99, 0.35 + 0.3 * agreeing + 0.2 * margins / out->n_agree + 0.07 * (out->n_agree - 2));
    if (is_of_account(rule)) out->confidence = trust_account(rule->cost, seen);
    out->cost = find_cost(rule, told);
    return true;
}

/* Parts of one account, which stand next to each other in the table: the largest first. */
static void sort_accounts(stk_watch_verdict *list, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i;
             k > 0 && is_of_account(list[k].rule) && is_of_account(list[k - 1].rule) && list[k].cost > list[k - 1].cost;
             k--) {
            stk_watch_verdict other = list[k];
            list[k] = list[k - 1];
            list[k - 1] = other;
        }
}

int stk_watch_judge(const stk_watch_signals *seen, const stk_watch_signals *told,
                    stk_watch_verdict out[STK_WATCH_VERDICTS])
{
    size_t n_rules;
    int n = 0;
    const stk_watch_rule *rules = stk_watch_rules(&n_rules);
    for (size_t i = 0; i < n_rules && n < STK_WATCH_VERDICTS; i++) {
        if (told->end_s - told->begin_s < STK_WATCH_LEAST_S - 0.3 && !rules[i].is_plain_at_once) continue;
        if (!apply(&rules[i], seen, told, &out[n])) continue;
        /* What is well is only said where nothing is wrong. */
        if (rules[i].is_healthy && n > 0) continue;
        n++;
    }
    sort_accounts(out, n);
    /* Time is lost once, whatever takes part in that. */
    double counted = 0;
    for (int i = 0; i < n; i++) {
        out[i].beyond = isnan(out[i].cost) ? NAN : fmax(0, out[i].cost - counted);
        counted = fmax(counted, out[i].cost);
    }
    return n;
}

double stk_watch_gain(const stk_watch_verdict *verdict, const stk_watch_remedy *remedy)
{
    if (isnan(verdict->cost) || !(remedy->wins > 0)) return 1;
    return 1 / (1 - fmin(0.95, verdict->cost * remedy->wins));
}

/* --- remedies --- */

typedef struct said_topics {
    const char *topic[STK_WATCH_VERDICTS * STK_WATCH_REMEDIES];
    int n;
} said_topics;

/* False where it was there before. */
static bool say(said_topics *said, const stk_watch_remedy *remedy)
{
    const char *topic = remedy->topic ? remedy->topic : remedy->text;
    for (int i = 0; i < said->n; i++)
        if (!strcmp(said->topic[i], topic)) return false;
    said->topic[said->n++] = topic;
    return true;
}

static bool is_own(const stk_watch_remedy *remedy)
{
    return remedy->framework && remedy->framework[0] != '!';
}

static bool is_for(const stk_watch_remedy *remedy, const stk_watch_facts *facts)
{
    const char *framework = stk_watch_facts_get(facts, "framework", 0), *of = remedy->framework;
    if (remedy->fact && !stk_watch_facts_get(facts, remedy->fact, 0)) return false;
    if (is_own(remedy)) return framework && !strcmp(of, framework);
    return !of || !framework || strcmp(of + 1, framework) != 0;
}

static int choose(const stk_watch_remedy *remedy, const stk_watch_facts *facts, said_topics *said,
                  int out[STK_WATCH_REMEDIES])
{
    int n = 0;
    for (int own = 1; own >= 0; own--)
        for (int i = 0; i < STK_WATCH_REMEDIES && remedy[i].text; i++)
            if (is_own(&remedy[i]) == own && is_for(&remedy[i], facts) && say(said, &remedy[i])) out[n++] = i;
    /* Stable, by gain. */
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && remedy[out[k]].wins > remedy[out[k - 1]].wins; k--) {
            int other = out[k];
            out[k] = out[k - 1];
            out[k - 1] = other;
        }
    return n;
}

int stk_watch_remedies(const stk_watch_verdict *verdicts, int i, const stk_watch_facts *facts,
                       int out[STK_WATCH_REMEDIES])
{
    said_topics said = {.n = 0};
    int n = 0;
    for (int k = 0; k <= i; k++)
        n = choose(verdicts[k].rule->remedy, facts, &said, out);
    return n;
}

const char *stk_watch_confidence_word(double confidence)
{
    return confidence >= 0.8 ? "high" : confidence >= 0.6 ? "medium" : "low";
}
