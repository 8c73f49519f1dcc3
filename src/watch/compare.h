/* Did a change help? Two recordings side by side, with confidence intervals by batch means: a run is cut into 20 parts,
 * whose means are nearly independent (Law and Kelton, "Simulation Modeling and Analysis", ch. 9.5), and the difference
 * of two runs gets Welch's interval. Threads: any. */
#ifndef STK_WATCH_COMPARE_H
#define STK_WATCH_COMPARE_H

#include "base/text.h"
#include "watch/report.h"

typedef struct stk_watch_difference {
    const char *name;
    double a, b;      /* means */
    double low, high; /* the 95 % interval of b - a; NaN: too short to tell */
} stk_watch_difference;

enum { STK_WATCH_DIFFERENCES = 8 };

/* Of what both runs know; returns how many. */
int stk_watch_compare(const stk_watch_report *a, const stk_watch_report *b,
                      stk_watch_difference out[STK_WATCH_DIFFERENCES]);
void stk_watch_compare_text(const stk_watch_report *a, const stk_watch_report *b, stk_text *out);
void stk_watch_compare_json(const stk_watch_report *a, const stk_watch_report *b, stk_text *out);

#endif
