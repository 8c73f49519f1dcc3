/* Metrics: their part of a graph, and what the sums come to. See stoker/train/metric.h.
 *
 * A metric is one descriptor, named in STK_MEASURE_LIST; those that are made of the same sums lie in one file,
 * src/train/metric_*.c. The sums that the measures need lie one after the other in one vector of f64 (f32 where the
 * device has no other), which is an output of the graph, in the order of the list. Threads: one at a time.
 */
#ifndef STK_TRAIN_MEASURE_H
#define STK_TRAIN_MEASURE_H

#include "graph/graph.h"
#include "settings/schema.h"
#include "stoker/train/metric.h"

enum { STK_AUC_BINS = 8192, STK_MOST_AUC = 64, STK_MOST_NEIGHBOURS = 99999 };

typedef struct stk_measure_plan {
    stk_measure list[STK_MOST_MEASURES];
    int n;
    bool are_classes;              /* the target holds class numbers; else it is like the output */
    bool is_row;                   /* the output is one row of numbers a sample, with one target each */
    int64_t n_classes;             /* K: the last side of the output */
    int64_t start[STK_N_MEASURES]; /* of the sums of each kind that is in the list */
    int64_t n_sums;
} stk_measure_plan;

/* What is counted: all positions of all rows as lists. */
typedef struct stk_counted {
    stk_graph *graph;
    int64_t n, n_classes;
    stk_value x;      /* [n,K] f32 */
    stk_value y;      /* i32 [n], or f32 [n,K] */
    stk_value weight; /* f64 [n]: 1, or 0 where a position does not count */
} stk_counted;

/* Numbers that several metrics may be made of. */
typedef struct stk_measure_sums {
    int64_t (*count)(const stk_measure_plan *plan);
    stk_value (*build)(const stk_measure_plan *plan, const stk_counted *c); /* f64 [count] over a batch */
} stk_measure_sums;

typedef struct stk_measure_class {
    stk_key key;        /* its name and settings in a recipe: k, average */
    const char *prefix; /* "top": with k behind it the name of its number; NULL: that is key.name */
    bool of_classes, of_labels, of_numbers;
    bool less_is_better;
    bool of_rows;                 /* of all rows of a data set; measures.c keeps them */
    const stk_measure_sums *sums; /* NULL: of rows, or of the mean loss alone */
    stk_status (*check)(const stk_measure_plan *plan, const stk_measure *m); /* NULL: nothing */
    /* The number; sums: its own. m is in plan->list. NULL: it has none, as a confusion matrix. */
    double (*finish)(const stk_measure_plan *plan, const stk_measure *m, const double *sums, double loss);
} stk_measure_class;

#define X(KIND, name) extern const stk_measure_class stk_measure_class_##name;
STK_MEASURE_LIST(X)
#undef X

/* NULL: there is no such kind. */
const stk_measure_class *stk_measure_class_of(stk_measure_kind kind);
/* All keys, for a choice; NULL at the end. */
extern const stk_key *const stk_measure_kinds[];
/* node: the chosen kind with its settings, {top_k: {k: 3}}'s child. */
stk_status stk_measure_read(const stk_yaml_node *node, stk_measure *out);

/* Its name with its number, as in metrics.jsonl: "f1", "top3". */
void stk_measure_text(const stk_measure *measure, char out[16]);
/* What the measures need for a model with that output and target; says which of them does not fit. shares: the target
 * holds shares of classes. n 0: nothing. */
stk_status stk_measure_plan_make(const stk_measure *list, int n, stk_value output, stk_value target, bool shares,
                                 stk_measure_plan *out);
/* Whether the list has a metric that is made of them. */
bool stk_measure_needs(const stk_measure_plan *plan, const stk_measure_sums *sums);
/* The sums over the rows of a bound graph as one value f64 [n_sums]. weight f32 [N] is 0 for rows that do not count, or
 * none; with `ignores`, labels of ignore_index do not count. */
stk_value stk_measure_build(const stk_measure_plan *plan, stk_value output, stk_value target, stk_value weight,
                            bool ignores, int64_t ignore_index);
/* The values by sums and the mean loss; accuracy goes to *accuracy where it is among them, and confusion is no value.
 * Returns how many there are in out [STK_MOST_MEASURES]. */
int stk_measure_finish(const stk_measure_plan *plan, const double *sums, double loss, stk_measured *out,
                       double *accuracy);

/* --- for metric_*.c --- */

#define STK_METRIC_END                                                                                                 \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }
/* a / b, or 0. */
double stk_measure_divide(double a, double b);
stk_value stk_counted_constant(const stk_counted *c, stk_dtype dtype, double value);
/* f64 [n]: zeros with `what` added at `ids`. */
stk_value stk_counted_add_by(const stk_counted *c, stk_value ids, stk_value what, int64_t n);
/* [n,K] times the weights [n], summed over n: f64 [K]. */
stk_value stk_counted_columns(const stk_counted *c, stk_value x);
/* How many positions count, as the first of n numbers. */
stk_value stk_counted_all(const stk_counted *c, int64_t n);

#endif
