/* What a stoker run says of itself: where the time went, by the last line of its metrics.jsonl. From outside the time
 * that a run waits for data looks like that of a thread which waits for a core, so where the run has a record, that
 * counts. Threads: one at a time.
 */
#ifndef STK_WATCH_OWN_H
#define STK_WATCH_OWN_H

#include <stdbool.h>

#include "watch/facts.h"

/* Notes as the fact "own" what the run wrote whose file is the fact "metrics", and as "f32" that its recipe asks for
 * that type; nothing where there is no such file, or several. */
stk_status stk_watch_own_note(stk_watch_facts *facts);

/* The last whole line of a run's metrics.jsonl; "" where there is none, or no regular file. */
enum { STK_WATCH_OWN_LINE = 16384 };
void stk_watch_own_read_last(const char *path, char out[STK_WATCH_OWN_LINE]);

typedef struct stk_watch_own {
    double input, host, launch, compute; /* shares of the run's time */
} stk_watch_own;
/* False where the run has said nothing. */
bool stk_watch_own_get(const stk_watch_facts *facts, stk_watch_own *out);

/* In tenths of a per cent that sum up to 1000: input, host, launch, compute, and what is none of these. */
enum { STK_WATCH_OWN_PARTS = 5 };
void stk_watch_own_round(const stk_watch_own *own, int permille[STK_WATCH_OWN_PARTS]);

#endif
