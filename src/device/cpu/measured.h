/* Choices that were measured: on a processor that no table knows (tuned/tuned.h) the ways of products and convolutions
 * are timed before the first step, those of most work first, for less than a second in all, and a call goes by the way
 * that won; by its list, where no way was clearly better or the time was over.
 *
 *   a call counts with few images or rows, those that the ways are told apart by: one answer does for all batches
 *   what was found is kept for the next process (device/kept.h): a call is measured once, and then has the same bits in
 *   every run on this processor with this library and number of threads; the next run measures what there was no time
 *   for
 *   a run keeps all of it as text, so that it goes on by the same ways, whatever became of the cache
 *
 * STOKER_KERNELS in the environment: "measured" has it so instead of by the family's table, "default" and "tuned" have
 * nothing measured. Threads: one at a time.
 */
#ifndef STK_DEVICE_CPU_MEASURED_H
#define STK_DEVICE_CPU_MEASURED_H

#include "device/cpu/impl.h"

typedef struct stk_measured stk_measured;

/* Whether the processor is one for which ways are measured. */
bool stk_measured_wanted(stk_isa isa);
/* With what the cache has. */
stk_status stk_measured_new(const stk_cpu_device *device, stk_measured **out);
void stk_measured_free(stk_measured *measured); /* accepts NULL */

/* One of those that stk_measured_settle is to judge, unless it is judged. */
stk_status stk_measured_expect(stk_measured *measured, const stk_op_call *call);
/* Judges them. What goes wrong with a call leaves it to its list; STK_INTERRUPTED once *stop is not 0. */
stk_status stk_measured_settle(stk_measured *measured, stk_cpu_device *device, const volatile int *stop);
/* The way of a call; NULL: its list's. NULL for measured NULL. Borrowed. */
const char *stk_measured_way(const stk_measured *measured, const stk_op_call *call);
/* Of the calls of programs: how many were measured, and how many of these do not go by their lists. */
void stk_measured_count(const stk_measured *measured, int *n, int *n_other);

/* A line for what it was measured on, then one for each call of programs: the way, - for the list's or ? where there
 * was no time for it, and the call behind a tab. */
void stk_measured_print(const stk_measured *measured, stk_text *out);
/* Takes what was printed, instead of what it has. STK_MISMATCH: it is another processor's, STK_CORRUPT: it is not
 * whole; both leave what it has. */
stk_status stk_measured_take(stk_measured *measured, const char *text);

#endif
