/* Whether a result's folder may stand next to others': its files are as they were written, its figures follow from its
 * runs, no run was left out without a mark, and the conditions are complete. What cannot be checked: who ran it where.
 * Threads: one at a time. */
#ifndef STK_BENCH_SUBMIT_H
#define STK_BENCH_SUBMIT_H

#include "base/text.h"

/* problems: a line for each; *n: how many. Errors: the folder or its files cannot be read. */
stk_status stk_bench_submit_check(const char *folder, stk_text *problems, int *n);

#endif
