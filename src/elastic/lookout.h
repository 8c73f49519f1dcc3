/* Watching over the ranks of a job from within, where no supervisor does: the first two ranks listen to the beats of
 * all, and what is wrong is told by the first one, or by the second where it is the first that is at fault. Nothing is
 * ended here: what waits for a rank does so by its own time-out. A rank that is gone or failed is told by the
 * collective that misses it.
 *
 * Threads: opened, asked and closed by one; `tell` is called from a thread of its own.
 */
#ifndef STK_ELASTIC_LOOKOUT_H
#define STK_ELASTIC_LOOKOUT_H

#include "elastic/judge.h"

enum { STK_LOOKOUT_LISTENERS = 2, STK_LOOKOUT_TEXT = 3000 };

typedef struct stk_lookout stk_lookout;

/* rank: this one's, below STK_LOOKOUT_LISTENERS. everywhere: ranks are on other hosts, too. tell: once for each thing
 * that is found, and for its end; text is borrowed until it returns. */
stk_status stk_lookout_open(bool everywhere, int rank, int n_ranks, void (*tell)(void *user, const char *text),
                            void *user, stk_lookout **out);
/* Where ranks are to send. */
void stk_lookout_address(const stk_lookout *lookout, char out[STK_BEAT_ADDRESS]);
/* What is found at this moment, "" for nothing, and the rank's number. Accepts NULL. */
void stk_lookout_ask(stk_lookout *lookout, char out[STK_LOOKOUT_TEXT], int *rank);
/* Nothing is told afterwards. Accepts NULL. */
void stk_lookout_close(stk_lookout *lookout);

#endif
