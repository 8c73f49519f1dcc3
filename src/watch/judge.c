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
    if (out->n_agree < 2) return false;
    double agreeing = (double)out->n_agree / n_clauses;
    out->confidence = fmin(0.99, 0.35 + 0.3 * agreeing + 0.2 * margins / out->n_agree + 0.07 * (out->n_agree - 2));
    out->cost = rule->cost == STK_WATCH_SIGNALS ? NAN : fmax(0, fmin(1, told->value[rule->cost]));
    return true;
}

int stk_watch_judge(const stk_watch_signals *seen, const stk_watch_signals *told,
                    stk_watch_verdict out[STK_WATCH_VERDICTS])
{
    size_t n_rules;
    int n = 0;
    const stk_watch_rule *rules = stk_watch_rules(&n_rules);
    for (size_t i = 0; i < n_rules && n < STK_WATCH_VERDICTS; i++) {
        if (!apply(&rules[i], seen, told, &out[n])) continue;
        /* What is well is only said where nothing is wrong. */
        if (rules[i].is_healthy && n > 0) continue;
        n++;
    }
    return n;
}

double stk_watch_gain(const stk_watch_verdict *verdict, const stk_watch_remedy *remedy)
{
    if (isnan(verdict->cost) || !(remedy->wins > 0)) return 1;
    return 1 / (1 - fmin(0.95, verdict->cost * remedy->wins));
}

int stk_watch_remedies(const stk_watch_verdict *verdict, const char *framework, int out[STK_WATCH_REMEDIES])
{
    int n = 0;
    for (int own = 1; own >= 0; own--) {
        for (int i = 0; i < STK_WATCH_REMEDIES && verdict->rule->remedy[i].text; i++) {
            const char *of = verdict->rule->remedy[i].framework;
            if (own ? of && framework && !strcmp(of, framework) : !of) out[n++] = i;
        }
    }
    /* Stable, by gain. */
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && verdict->rule->remedy[out[k]].wins > verdict->rule->remedy[out[k - 1]].wins; k--) {
            int other = out[k];
            out[k] = out[k - 1];
            out[k - 1] = other;
        }
    return n;
}

const char *stk_watch_confidence_word(double confidence)
{
    return confidence >= 0.8 ? "high" : confidence >= 0.6 ? "medium" : "low";
}
