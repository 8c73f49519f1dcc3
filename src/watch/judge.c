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
static double find_cost(const stk_watch_rule *rule, const stk_watch_signals *signals)
{
    const double *x = signals->value;
    if (rule->cost == STK_WATCH_SIGNALS || isnan(x[rule->cost])) return NAN;
    double cost = x[rule->cost], length_s = signals->end_s - signals->begin_s;
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

/* How far a share of the time may be off that was seen N times a second, of which looks next to each other are alike:
 * one standard error. */
static double error_of(double share, const stk_watch_signals *signals)
{
    return sqrt(share * (1 - share) / (3 * fmax(1, signals->end_s - signals->begin_s)));
}

/* By how much a part of an account is larger than the next one that is no computing, beyond what the two may be off. */
static double find_lead(stk_watch_signal part, const stk_watch_signals *signals)
{
    double next = 0, own = fmax(0, fmin(1, signals->value[part]));
    for (int i = STK_WATCH_by_host; i <= STK_WATCH_by_unknown; i++)
        if (i != (int)part) next = fmax(next, signals->value[i]);
    return fmax(0, fmin(1, own - next - error_of(own, signals)));
}

/* How far the cost may be off. A sleeping thread is looked at ten times a second, and neighbouring looks are alike;
 * what a GPU does meanwhile is told in coarser steps. */
static void find_range(stk_watch_verdict *v, const stk_watch_signals *signals)
{
    const double *x = signals->value;
    double cost = v->cost;
    v->least = 0.5 * cost;
    v->most = cost;
    if (isnan(cost)) return;
    if (v->rule->cost == STK_WATCH_unused || v->rule->cost == STK_WATCH_spare) {
        v->least = 0;
    } else if (v->rule->cost == STK_WATCH_by_compiling) {
        v->most =
            fmin(0.95, cost + fmax(0, x[x[STK_WATCH_gpu_used] > 0.5 ? STK_WATCH_by_thread : STK_WATCH_by_compute]));
    } else if (is_of_account(v->rule)) {
        double off = 0.05 + 1.6 * error_of(cost, signals) + (x[STK_WATCH_gpu_used] > 0.5 ? 0.05 : 0);
        v->least = fmax(0, cost - off);
        v->most = fmin(0.5 + 0.5 * cost, cost + off); /* what is left of a step does not vanish with its cause */
    }
}

static double find_room(const stk_watch_signals *signals)
{
    const double *x = signals->value;
    double room = x[STK_WATCH_allowed_share] * x[STK_WATCH_machine_cores] / fmax(0.1, x[STK_WATCH_cores]);
    return isnan(room) || isnan(x[STK_WATCH_cores]) ? INFINITY : fmax(1, room);
}

/* True where the rule holds; fills the verdict. */
static bool apply(const stk_watch_rule *rule, const stk_watch_signals *signals, stk_watch_verdict *out)
{
    int n_clauses = 0;
    double margins = 0;
    memset(out, 0, sizeof(*out));
    out->rule = rule;
    for (const stk_watch_clause *c = rule->clause; c < rule->clause + STK_WATCH_CLAUSES && c->part; c++) {
        bool is_signal = c->part == STK_WATCH_NEED || c->part == STK_WATCH_AGREE;
        bool is_part = c->signal >= STK_WATCH_by_device && c->signal <= STK_WATCH_by_unknown;
        bool good = c->part == STK_WATCH_TELL
                        ? !isnan(signals->value[c->signal]) && !(is_part && signals->value[c->signal] < 0.005) &&
                              !(c->signal == STK_WATCH_net_mbs && signals->value[c->signal] < 0.05)
                        : holds(c, signals);
        if (!good && (c->part == STK_WATCH_GATE || c->part == STK_WATCH_NEED)) return false;
        n_clauses += is_signal && !isnan(signals->value[c->signal]);
        if (!good || c->part == STK_WATCH_GATE) continue;
        if (is_signal) {
            out->n_agree++;
            margins += margin(c, signals);
        }
        if (out->n_evidence < STK_WATCH_EVIDENCE)
            stk_watch_signal_tell(signals, c->signal, out->evidence[out->n_evidence++]);
    }
    /* Parts of an account exclude each other: one is enough. */
    if (out->n_agree < (is_of_account(rule) ? 1 : 2)) return false;
    out->cost = find_cost(rule, signals);
    out->room = find_room(signals);
    find_range(out, signals);
    double agreeing = (double)out->n_agree / n_clauses;
    double score = 0.5 * agreeing + 0.5 * margins / out->n_agree;
    out->kind = is_of_account(rule) ? STK_WATCH_OF_ACCOUNT
                : rule->is_healthy  ? STK_WATCH_OF_HEALTHY
                                    : STK_WATCH_OF_OTHER;
    out->strength = is_of_account(rule) ? find_lead(rule->cost, signals) : score;
    out->confidence = stk_watch_trust(out->kind, out->strength);
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

/* Rules of one name are for one cause, the first of them for a case of it. */
static bool is_said(const stk_watch_rule *rule, const stk_watch_verdict *list, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i].rule->name, rule->name)) return true;
    return false;
}

/* Time is lost once, whatever takes part in that. Parts of the account are of one whole; any other cost may be of the
 * same time. */
static void share_out(stk_watch_verdict *list, int n)
{
    double of_account = 0, of_others = 0;
    for (int i = 0; i < n; i++) {
        stk_watch_verdict *v = &list[i];
        double before = fmax(of_account, of_others);
        bool is_counted = false;
        for (int k = 0; k < i; k++)
            is_counted = is_counted || list[k].rule->cost == v->rule->cost;
        v->beyond = NAN;
        if (isnan(v->cost)) continue;
        if (is_of_account(v->rule))
            of_account = fmin(1, of_account + (is_counted ? 0 : v->cost));
        else
            of_others = fmax(of_others, v->cost);
        v->beyond = fmax(of_account, of_others) - before;
    }
}

int stk_watch_judge(const stk_watch_signals *signals, stk_watch_verdict out[STK_WATCH_VERDICTS])
{
    size_t n_rules;
    int n = 0;
    const stk_watch_rule *rules = stk_watch_rules(&n_rules);
    for (size_t i = 0; i < n_rules && n < STK_WATCH_VERDICTS; i++) {
        if (signals->end_s - signals->begin_s < STK_WATCH_LEAST_S - 0.3 && !rules[i].is_plain_at_once) continue;
        if (is_said(&rules[i], out, n) || !apply(&rules[i], signals, &out[n])) continue;
        /* What is well is only said where nothing is wrong. */
        if (rules[i].is_healthy && n > 0) continue;
        n++;
    }
    sort_accounts(out, n);
    share_out(out, n);
    return n;
}

void stk_watch_gain_range(const stk_watch_verdict *verdict, double *least, double *most)
{
    /* What a job that stands would do else nobody knows. */
    bool is_known = !isnan(verdict->cost) && verdict->rule->cost != STK_WATCH_stuck;
    double bound = verdict->rule->is_of_cores ? verdict->room : INFINITY;
    *least = is_known ? 1 / (1 - fmin(0.98, verdict->least)) : 1;
    *most = is_known ? fmin(bound, 1 / (1 - fmin(0.98, verdict->most))) : 1;
    if (*least > *most) *least = 1;
}

double stk_watch_gain(const stk_watch_verdict *verdict, const stk_watch_remedy *remedy)
{
    if (isnan(verdict->cost) || !(remedy->wins > 0)) return 1;
    double gain = 1 / (1 - fmin(0.95, verdict->most * remedy->wins));
    /* More workers or threads want more cores. */
    bool wants_cores = verdict->rule->is_of_cores || (remedy->topic && !strcmp(remedy->topic, "workers"));
    return wants_cores ? fmin(verdict->room, gain) : gain;
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
    if (remedy->fact) {
        bool is_absent = remedy->fact[0] == '!';
        if ((stk_watch_facts_get(facts, remedy->fact + is_absent, 0) == NULL) != is_absent) return false;
    }
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
