/* The rules of the doctor: one table (rules.c), one rule for each verdict. One whose cost is a part of the account
 * holds where that part is large; of these the largest comes first. Another one holds where all of its conditions do
 * that are needed, and at least two signals agree. The first one that holds is the first verdict: causes come before
 * what they cause. Threads: any. */
#ifndef STK_WATCH_RULES_H
#define STK_WATCH_RULES_H

#include "watch/signals.h"
#include "watch/trust.h"

enum { STK_WATCH_CLAUSES = 12, STK_WATCH_REMEDIES = 9, STK_WATCH_VERDICTS = 6, STK_WATCH_EVIDENCE = 12 };

enum { STK_WATCH_LEAST_S = 5 };

typedef enum stk_watch_part {
    STK_WATCH_GATE = 1, /* must hold, and is no evidence */
    STK_WATCH_NEED,     /* must hold */
    STK_WATCH_AGREE,    /* may hold */
    STK_WATCH_TELL,     /* says more in the evidence, where it is known */
} stk_watch_part;

typedef struct stk_watch_clause {
    stk_watch_part part;
    stk_watch_signal signal;
    char is; /* '>' or '<' */
    double threshold;
} stk_watch_clause;

typedef struct stk_watch_remedy {
    const char *framework; /* whose words they are; NULL: anybody's; "!stoker": anybody's but Stoker's */
    const char *text;
    double wins;       /* share of the cost that it may win back at best; 0: not a matter of time */
    const char *topic; /* a report gives one remedy of each, a framework's own first; NULL: there is no other */
    const char *fact;  /* given only where this fact is noted, or with '!' before it where it is not; NULL: always */
} stk_watch_remedy;

typedef struct stk_watch_rule {
    const char *name, *title;
    bool is_healthy;       /* nothing to do */
    bool is_plain_at_once; /* holds however short the time is that was judged; others want STK_WATCH_LEAST_S */
    bool is_of_cores;      /* without it the job has more cores, as many as there are */
    stk_watch_signal cost; /* the share of the time that it costs */
    stk_watch_clause clause[STK_WATCH_CLAUSES];
    stk_watch_remedy remedy[STK_WATCH_REMEDIES];
    const char *source; /* of the thresholds */
} stk_watch_rule;

/* The table, in order; n of them. */
const stk_watch_rule *stk_watch_rules(size_t *n);

typedef struct stk_watch_verdict {
    const stk_watch_rule *rule;
    stk_watch_trust_kind kind;
    double strength;    /* 0 to 1: how far it leads, or how clearly its signals agree */
    double confidence;  /* 0 to 1: how often such a verdict is right */
    double cost;        /* share of the time that was judged, were it the only cause; NaN: not a matter of time */
    double least, most; /* what it may be instead; most is NaN where cost is */
    double room;        /* how many times the cores that it uses it may use; what wants more of them wins no more */
    double beyond;      /* the part of it that no earlier verdict has counted: those of a report sum up to 1 at most */
    int n_agree;
    char evidence[STK_WATCH_EVIDENCE][STK_WATCH_SENTENCE];
    int n_evidence;
} stk_watch_verdict;

/* The rules that hold, first verdict first. Returns how many, at most STK_WATCH_VERDICTS. */
int stk_watch_judge(const stk_watch_signals *signals, stk_watch_verdict out[STK_WATCH_VERDICTS]);
/* How many times as fast the job may be without the cause: at least, and at most (Amdahl, and the cores where it is a
 * matter of these); 1 and 1 where it is no matter of time. */
void stk_watch_gain_range(const stk_watch_verdict *verdict, double *least, double *most);

/* The remedies of verdict number i for the job of these facts, best first, as indices into rule->remedy; without what
 * the verdicts before it have said. */
int stk_watch_remedies(const stk_watch_verdict *verdicts, int i, const stk_watch_facts *facts,
                       int out[STK_WATCH_REMEDIES]);
/* How many times faster the job may get at best (Amdahl); 1 where it is no matter of time. */
double stk_watch_gain(const stk_watch_verdict *verdict, const stk_watch_remedy *remedy);
/* "high", "medium" or "low". */
const char *stk_watch_confidence_word(double confidence);

#endif
