/* What is known of all ranks of a job by those that listen to their beats, and, for those on this host, by the system's
 * own word on their processes: table.c; table_take.c reads what is sent. Threads: one at a time.
 */
#ifndef STK_ELASTIC_TABLE_H
#define STK_ELASTIC_TABLE_H

#include <stddef.h>

#include "elastic/beat.h"

/* Samples of the last seconds, for what is slow. */
enum { STK_BEAT_SAMPLES = 16, STK_BEAT_SAMPLE_MS = 500 };
typedef struct stk_beat_sample {
    int64_t ns, step, wait_ms, held_ms, aside_ms;
} stk_beat_sample;

typedef struct stk_rank_seen {
    stk_beat_state state;
    int64_t first_ns, heard_ns; /* 0: not heard yet */
    bool is_here;               /* a process that this one sees */
    bool is_gone;               /* it was, and is no more */
    bool is_stopped;            /* by a signal, or a debugger */
    uint64_t begun; /* of the process, so that another one of its number is not taken for it; 0: not known */
    stk_beat_sample sample[STK_BEAT_SAMPLES]; /* a ring */
    int64_t n_samples;
} stk_rank_seen;

typedef struct stk_beat_table {
    int socket, port, n_ranks;
    uint64_t token;
    int64_t begun_ns; /* when the ranks were started */
    char host[STK_BEAT_HOST];
    stk_rank_seen *rank;
} stk_beat_table;

/* everywhere: others than this host's ranks are heard as well. */
stk_status stk_beat_table_open(bool everywhere, int n_ranks, stk_beat_table *out);
/* Accepts one that was not opened, but is all 0. */
void stk_beat_table_close(stk_beat_table *table);
/* Forgets all ranks, for n_ranks that are started; beats of earlier ones are not heard. */
stk_status stk_beat_table_restart(stk_beat_table *table, int n_ranks);
/* Where ranks are to send, "HOST:PORT:TOKEN"; host NULL: this machine's loopback. */
void stk_beat_table_address(const stk_beat_table *table, const char *host, char out[STK_BEAT_ADDRESS]);
/* Takes what has come, and looks at the processes of this host. Waits for beats up to timeout_ms. */
void stk_beat_table_update(stk_beat_table *table, int timeout_ms);
/* One datagram: whether it is a beat of this job. For tests, too. */
bool stk_beat_table_take(stk_beat_table *table, const void *bytes, size_t n, int64_t now_ns);

#endif
