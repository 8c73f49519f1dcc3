/* The critical path of a traced step: the chain of pieces of work that its length was decided by.
 *
 * It is walked backwards, from the step's end to its begin, along the thread of the training loop. Where that waited
 * for a batch the path goes over to the thread that was the last to finish rows in the wait, and follows it for as long
 * as it had work without a break; before that it is the loop's again. So pieces follow each other without a gap, and
 * add up to the step. A wait for other ranks ends at the wait: what they did is in their traces. Threads: any.
 */
#ifndef STK_REPORT_CRITICAL_H
#define STK_REPORT_CRITICAL_H

#include "report/trace_data.h"

typedef struct stk_critical {
    stk_stretch *piece; /* by time */
    size_t n;
    int64_t kind_ns[STK_N_WORK_KINDS];
} stk_critical;

/* Of step number i_step of the trace. */
stk_status stk_critical_find(const stk_trace_data *data, size_t i_step, stk_critical *out);
void stk_critical_free(stk_critical *critical);

/* What of a step lay beside its path, of one kind. */
typedef struct stk_beside {
    stk_work_kind kind;
    bool is_driver;   /* the training loop's, while the path was elsewhere; otherwise other threads' */
    int64_t busy_ns;  /* of all threads together */
    int64_t slack_ns; /* by which the tightest could have ended later and held up nobody; -1: the trace does not tell */
} stk_beside;
enum { STK_MOST_BESIDE = 2 * STK_N_WORK_KINDS };
/* Fills out, most time first, and returns how many. */
int stk_critical_beside(const stk_trace_data *data, size_t i_step, const stk_critical *critical,
                        stk_beside out[STK_MOST_BESIDE]);

/* Pieces that are alike (kind, name, layer), together. */
typedef struct stk_alike {
    stk_stretch what; /* the first of them */
    int64_t sum_ns;
    size_t n;
} stk_alike;
/* *out: most time first. Returned: free(). */
stk_status stk_critical_sum(const stk_critical *critical, stk_alike **out, size_t *n);

#endif
