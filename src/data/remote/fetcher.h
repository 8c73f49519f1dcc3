/* Threads that wait for servers, so that workers need not: what will be read soon is fetched in the background.
 *
 * How many requests are under way at once follows from what is measured: one more each time a worker had to wait, as
 * long as the first byte takes no longer than twice its least time; fewer where it takes three times as long, since
 * then they only wait for each other. 8 at first, at least 4, at most 32.
 *
 * Threads: any.
 */
#ifndef STK_DATA_REMOTE_FETCHER_H
#define STK_DATA_REMOTE_FETCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker/status.h"

/* Fetches one thing of an owner; never fails, since who reads it fetches it again. */
typedef void (*stk_fetch_fn)(void *owner, uint64_t what);

/* Each owner enters before it asks for anything; leaving forgets what is queued for it and waits for what is under way.
 * With the last owner the threads end. */
stk_status stk_fetcher_enter(void);
void stk_fetcher_leave(void *owner);
/* Queues a call. False: as many as make sense are queued. */
bool stk_fetcher_add(stk_fetch_fn fn, void *owner, uint64_t what);
/* A worker had to wait. */
void stk_fetcher_note_wait(void);
/* A request took that long until its first byte. */
void stk_fetcher_note_latency(double latency_s);

#endif
