/* Measuring: commands in rounds, interleaved in an order that is drawn anew for each, after a warm-up that ends when it
 * helps no more, until the intervals are narrow enough or the time is over.
 *
 *   warm-up   rounds until no command's newest run is its best one: in numbers without a trend the chance of k records
 *             in a row is 1/k!, and a command that still warms up sets one after the other
 *   round     every command once. One with a mark (conditions.h) is not counted, and made up for by another; where more
 *             than half of the rounds would be marked, all count, and the result says that it was disturbed
 *   looks     intervals are asked for at 10, 13, 17, ... rounds only: whoever looks after each round stops when chance
 *             makes an interval narrow
 *
 * Threads: one at a time.
 */
#ifndef STK_BENCH_MEASURE_H
#define STK_BENCH_MEASURE_H

#include "bench/command.h"
#include "bench/statistics.h"

/* X(name, what is said) why measuring ended. */
#define STK_BENCH_ENDS(X)                                                                                              \
    X(precision, "the intervals were narrow enough")                                                                   \
    X(entropy, "more runs told little that was new (entropy)")                                                         \
    X(time, "the time was over")                                                                                       \
    X(runs, "all runs that are allowed were done")                                                                     \
    X(stopped, "it was interrupted")                                                                                   \
    X(failed, "a command failed")

typedef enum stk_bench_end {
#define X(name, text) STK_BENCH_END_##name,
    STK_BENCH_ENDS(X)
#undef X
        STK_BENCH_N_ENDS
} stk_bench_end;
const char *stk_bench_end_name(stk_bench_end end);
const char *stk_bench_end_text(stk_bench_end end);

/* What the counted runs of a case say. */
typedef struct stk_bench_summary {
    int n, n_warmup, n_marked, n_outliers;
    stk_bench_interval median; /* 95 % */
    double mean, deviation, least, most, first_quartile, third_quartile, low_fence, high_fence;
    double trend_chance, trend_share;   /* over all counted runs */
    bool has_trend;                     /* by chance in one of a hundred, and more than half a per cent */
    int block;                          /* stk_bench_block_length */
    int64_t n_further;                  /* runs until the interval is as narrow as was asked for */
    double first_s;                     /* the very first run's time: with everything cold */
    double wall_s, user_s, system_s;    /* medians */
    double joules, gpu_joules;          /* medians; NaN: not measured */
    double resident_kb;                 /* the most */
    double metric[STK_BENCH_N_METRICS]; /* medians; NaN: not told */
    unsigned marks;                     /* of all runs but the warm-up's */
    int n_marks[STK_BENCH_N_MARKS];
} stk_bench_summary;

typedef struct stk_bench_case {
    /* What is asked for; texts are borrowed. */
    const char *name, *unit, *pattern, *file, *key;
    const char *about;     /* what it measures, for a reader; may be NULL */
    const char *precision; /* "bf16", of products; NULL: does not matter, or is not known before */
    const char *scaling;   /* "strong", "weak"; NULL: none */
    int n_replicas;        /* with scaling */
    char *const *argv;
    bool less_is_better;
    bool is_by_link; /* bytes by the link of the measured GPU to its host, which are no faster than that */
    double peak;     /* what no run can exceed, in the unit; 0: not known */
    /* What came of it. */
    stk_bench_run *run; /* [n_runs] */
    int n_runs, capacity;
    stk_bench_summary summary;
    regex_t compiled;
    bool is_compiled;
} stk_bench_case;

typedef struct stk_bench_plan {
    double precision; /* half of the 95 % interval's width as a share of the value */
    double most_s;    /* of all together */
    double least_s;   /* measured, without warm-up */
    int least_rounds, most_rounds, least_warmups, most_warmups;
    uint64_t seed;
    bool by_entropy; /* ends when stk_bench_entropy_is_steady says so, and not by intervals */
    bool shows_output, may_fail, counts_marked;
} stk_bench_plan;
stk_bench_plan stk_bench_plan_default(void);

typedef struct stk_bench_comparison {
    int a, b; /* cases */
    bool is_paired;
    stk_bench_interval change;   /* of the figure, b / a - 1; 95 % */
    stk_bench_interval decision; /* the same at 99 %, by which it is decided */
    double share_better;         /* how often a run of b is better than one of a */
    int n;                       /* pairs, or runs of the smaller case */
    int64_t n_further;           /* runs until a difference like this one would be told; -1: cannot be told */
    int verdict;                 /* 1: b is better; -1: worse; 0: no difference shown */
} stk_bench_comparison;
/* "worse", "no difference shown", "better" */
const char *stk_bench_verdict_name(int verdict);

typedef struct stk_bench {
    stk_bench_plan plan;
    stk_bench_case *cases; /* [n_cases], borrowed */
    int n_cases, n_rounds;
    bool is_disturbed; /* most rounds were marked: all are counted */
    stk_bench_end end;
    double seconds;
    stk_bench_reading before, after;
    double joules_s; /* NaN: energy is not measured */
    const char *no_energy;
    void (*progress)(void *user, const struct stk_bench *bench); /* after each run; may be NULL */
    void *user;
    bool (*is_stopped)(void); /* may be NULL */
} stk_bench;

/* Runs all. After an error or an interruption cases hold what there is until then. */
stk_status stk_bench_measure(stk_bench *bench, stk_bench_machine *machine);
/* Marks, counts and summaries of the runs that there are. */
stk_status stk_bench_summarise(stk_bench *bench);
/* Frees the cases' runs. */
void stk_bench_free(stk_bench *bench);

/* Of two cases of one measuring, in pairs. */
stk_status stk_bench_compare_pairs(const stk_bench *bench, int a, int b, stk_bench_comparison *out);
/* Of counted figures that were measured apart. allowance: the share by which a machine may change in between; nothing
 * less is told from that. */
stk_status stk_bench_compare_apart(const double *a, int n_a, const double *b, int n_b, bool less_is_better,
                                   double allowance, stk_bench_comparison *out);

#endif
