/* Recordings: samples and facts as lines of text, each with only what differs from the sample before.
 *
 *   stoker-watch-record 1
 *   I key text            a fact
 *   M 0 i:d ...           the machine: field number i grew by d
 *   G, P, H id i:d ...    a GPU, a process, a thread; a new one starts at -1 in all fields
 *   X G|P|H id            it is gone
 *   T us                  the sample is whole, that many microseconds after the one before
 *
 * A file that ends early gives all whole samples before its end. Threads: one at a time.
 */
#ifndef STK_WATCH_RECORD_H
#define STK_WATCH_RECORD_H

#include <stdio.h>

#include "watch/facts.h"
#include "watch/sample.h"

typedef struct stk_watch_recorder {
    FILE *file;
    stk_watch_sample last;
    size_t n_facts; /* written */
} stk_watch_recorder;

/* Makes the file; zero the recorder first. Errors: STK_IO. */
stk_status stk_watch_recorder_open(stk_watch_recorder *recorder, const char *path);
stk_status stk_watch_recorder_put(stk_watch_recorder *recorder, const stk_watch_sample *sample,
                                  const stk_watch_facts *facts);
/* Writes facts that are new, and closes. A recorder that is zero or closed is fine. */
stk_status stk_watch_recorder_close(stk_watch_recorder *recorder, const stk_watch_facts *facts);

/* Calls visit for each whole sample of a recording's text of n bytes; facts grow as they were found.
 * Errors: STK_CORRUPT with the line, or what visit returned. */
typedef stk_status (*stk_watch_visit)(void *user, const stk_watch_sample *sample);
stk_status stk_watch_record_parse(const char *text, size_t n, stk_watch_facts *facts, stk_watch_visit visit,
                                  void *user);

#endif
