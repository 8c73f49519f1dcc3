/* Where a recording comes from: the machine, the rank and the time, as facts "host", "rank" and "began" (s since 1970),
 * by which recordings of one job are told apart. Threads: one at a time. */
#ifndef STK_WATCH_ORIGIN_H
#define STK_WATCH_ORIGIN_H

#include "watch/facts.h"

/* Notes all three as of now. The rank is what launchers put into the environment, which a command gets from here. */
stk_status stk_watch_origin_note(stk_watch_facts *facts);
/* path with %h for the machine's name and %r for the rank ("0" without one) into out, cut at bytes - 1; all else
 * stays. */
void stk_watch_origin_path(const char *path, char *out, size_t bytes);

#endif
