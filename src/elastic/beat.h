/* What a rank tells of itself, ten times a second (of more than 100 ranks each less often, down to once), by a thread
 * of its own and on a path that is not the collectives': datagrams to one or two that listen (table.h). A beat says
 * that the process runs; what is in it, whether its training goes on, and in which collective, by that one's own
 * number, it is.
 *
 * A listener that is not there is no failure: nothing here stops a training. Datagrams carry a token, so that others
 * are not heard. They are this machine's bytes: all ranks have one order of them. Threads: one trains and marks, the
 * beat's own reads.
 */
#ifndef STK_ELASTIC_BEAT_H
#define STK_ELASTIC_BEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker/status.h"

/* What a rank does between collectives, and how it is said. */
#define STK_PHASE_LIST(X)                                                                                              \
    X(starting, "starts")                                                                                              \
    X(data, "waits for data")                                                                                          \
    X(step, "computes")                                                                                                \
    X(evaluation, "evaluates")                                                                                         \
    X(saving, "saves")                                                                                                 \
    X(ended, "has ended")
#define X(name, words) STK_PHASE_##name,
typedef enum stk_phase { STK_PHASE_LIST(X) STK_N_PHASES } stk_phase;
#undef X

enum { STK_BEAT_HOST = 64, STK_BEAT_NAME = 24, STK_BEAT_FOLDER = 384, STK_BEAT_LOG = 448, STK_BEAT_ADDRESS = 160 };

/* Texts end in 0. A datagram is a head and this; it fits into one packet of an Ethernet. */
typedef struct stk_beat_state {
    int32_t rank, n_ranks;
    int64_t pid, n_beats;
    int64_t step;         /* done */
    int64_t resumed_step; /* where this process began */
    int64_t batch;        /* of all ranks, or its parts (strict): their number divides it; 0: not known yet */
    int64_t phase_ms;     /* in this phase */
    int64_t n_calls;      /* collectives come to: the last one's number, from 1 */
    int64_t n_given;      /* parts that it has given to them, of which each waits for all ranks'; 0: not known */
    int64_t call_ms;      /* in it, while it waits for the others */
    int64_t wait_ms;      /* in all of them that were of steps */
    int64_t held_ms;      /* in all: it would have run and did not, as it was stopped or had no core */
    int64_t aside_ms;     /* in all: in phases that are no steps */
    int32_t phase;        /* stk_phase */
    int32_t in_call;      /* 1: it waits in the last one */
    int32_t status;       /* ended: how */
    int32_t from_memory;  /* 1: it began with what a host's memory kept */
    char call[STK_BEAT_NAME], device[STK_BEAT_NAME], host[STK_BEAT_HOST];
    char folder[STK_BEAT_FOLDER]; /* the run's, once it is one */
    char log[STK_BEAT_LOG];       /* the last lines that it would say */
} stk_beat_state;

typedef struct stk_beat stk_beat;

/* address: "127.0.0.1:4711:TOKEN", or two of them with a comma between; fails where none of them can be sent to. */
stk_status stk_beat_open(const char *address, int rank, int n_ranks, stk_beat **out);
/* Tells that it ends, unless that was told. Accepts NULL. */
void stk_beat_close(stk_beat *beat);

/* All accept NULL and never wait. */
void stk_beat_phase(stk_beat *beat, stk_phase phase);
void stk_beat_step(stk_beat *beat, int64_t step);
/* It waits in a collective of that name, a constant, and then no longer does. */
void stk_beat_enter(stk_beat *beat, const char *call);
void stk_beat_leave(stk_beat *beat);
/* Counters whose sum is n_given, n of at most 2, borrowed until close. */
void stk_beat_count(stk_beat *beat, const _Atomic uint64_t *const *counter, int n);
void stk_beat_say(stk_beat *beat, const char *format, ...) __attribute__((format(printf, 2, 3)));
void stk_beat_tell_run(stk_beat *beat, const char *folder, const char *device, int64_t batch);
void stk_beat_tell_start(stk_beat *beat, int64_t step, bool from_memory);
/* The last beat, sent at once. text: why, where it failed; may be NULL. */
void stk_beat_end(stk_beat *beat, stk_status status, const char *text);

/* --- for those that listen --- */

typedef struct stk_beat_head {
    char mark[4]; /* "STKB" */
    uint32_t bytes;
    uint64_t token;
} stk_beat_head;
typedef struct stk_beat_packet {
    stk_beat_head head;
    stk_beat_state state;
} stk_beat_packet;

const char *stk_phase_words(int phase);

#endif
