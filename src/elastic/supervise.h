/* A supervisor: one small process that starts the ranks of a training, listens to their beats, names what is wrong, and
 * starts them again from the newest checkpoint, with those that remain, as often as it may.
 *
 *   supervisor -- mpirun -- rank 0, rank 1, ...       beats: datagrams, each rank to the supervisor
 *                                                     the newest state: in the run's folder, or in a folder of a
 *                                                     file system in memory, which outlives the ranks
 *
 * It knows no recipe and no network. What happens is one line of JSON each in RUN/events.jsonl. Threads: one at a time;
 * stk_supervisor_stop may be called from a signal handler.
 */
#ifndef STK_ELASTIC_SUPERVISE_H
#define STK_ELASTIC_SUPERVISE_H

#include "elastic/judge.h"

/* Variables that ranks of a supervisor have: where to send beats, and a folder for states, "" for none. */
#define STK_ELASTIC_BEATS  "STOKER_ELASTIC_BEATS"
#define STK_ELASTIC_STATES "STOKER_ELASTIC_STATES"
/* Of the user: "off", or a folder in whose stead /dev/shm is not to be taken. */
#define STK_ELASTIC_MEMORY "STOKER_ELASTIC_MEMORY"

typedef struct stk_supervise_options {
    const char *program; /* as in stk_launch; borrowed, like the rest */
    char *const *argv;
    const char *hosts;
    bool resumes; /* argv has --resume */
    int n_ranks, least_ranks;
    int most_restarts;  /* in any hour */
    int64_t give_up_ms; /* a rank that is stuck so long is given up */
    /* kind: "stepping", "gone", "restart", ...; text: a line for people, "" for none; json: the line of events.jsonl.
     */
    void (*on_event)(void *user, const char *kind, const char *text, const char *json);
    void *user;
} stk_supervise_options;

typedef struct stk_supervisor stk_supervisor;

stk_status stk_supervisor_open(const stk_supervise_options *options, stk_supervisor **out);
/* *code: the exit code of the ranks that came to an end by themselves, whatever it is. A status: what the supervisor
 * could not do, or why it gave up. */
stk_status stk_supervisor_run(stk_supervisor *supervisor, int *code);
/* The ranks save and end. Async-signal-safe. */
void stk_supervisor_stop(stk_supervisor *supervisor);
/* Ends what still runs. Accepts NULL. */
void stk_supervisor_close(stk_supervisor *supervisor);

#endif
