/* Where the time of the thread that drives the step goes, in the interval between two samples, and what the job's other
 * threads do meanwhile. No judging here. Threads: one at a time. */
#ifndef STK_WATCH_ACCOUNT_H
#define STK_WATCH_ACCOUNT_H

#include "watch/history.h"

/* The process whose first thread drives the step: trainer, or who waits for what the trainer puts into a pipe, which is
 * then kept in history->driver_pid. */
int64_t stk_watch_find_driver(stk_watch_history *history, const stk_watch_sample *now, int64_t trainer);

/* Fills what the row has of roles, and its beside_ fields; history->last is the sample before. */
void stk_watch_account_add(stk_watch_history *history, stk_watch_row *row, const stk_watch_sample *now, int64_t driver);

#endif
