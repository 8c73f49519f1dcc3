/* Running a program of several devices: its list of entries, cut into segments that each run on one device's queue.
 *
 *   queue 0   begun [entries 0-4] ----------------------------- [9-12] joins   results leave
 *   out 0              \ copy to the host                        ^
 *   queue 1   waits     '-> copy from it [entries 6-7] -> copy --'  ended
 *
 * Devices that share the host's memory copy by a kernel. Others copy by way of memory of the host, which an event on
 * each side guards; the next run writes it after the first device has joined all others. A kernel waits for entries of
 * other queues by an event behind each. On the host a launch is done when it returns, and events are nothing.
 */
#ifndef STK_ENGINE_DISPATCH_H
#define STK_ENGINE_DISPATCH_H

#include "device/queue.h"
#include "engine/transfer.h"

struct stk_program;
struct stk_compile_options;

/* What an entry of the program says besides: its queue, and that it waits for the entries wait[first_wait] ..
 * wait[first_wait + n_waits - 1] of others. */
typedef struct stk_dispatch_entry {
    int32_t queue, first_wait, n_waits;
} stk_dispatch_entry;

/* Entries that run one after the other on one queue. */
typedef struct stk_segment {
    int first, n;
    int32_t device;
    int staged;       /* it is that copy by way of the host; -1: kernels */
    stk_event *event; /* behind it, where others wait for its last entry; else NULL */
    stk_capture *capture[STK_N_SIDES];
} stk_segment;

typedef struct stk_staged_copy {
    int32_t from; /* device; the segment's is where to */
    void *host;   /* of the device it comes from */
    size_t bytes;
    stk_event *ready, *sent; /* of the device it comes from: the value is made; it is in the host's memory */
} stk_staged_copy;

typedef struct stk_dispatch {
    stk_dispatch_entry *entry; /* [n_entries], as the program's */
    int32_t *wait;             /* numbers of entries */
    stk_segment *segment;
    int n_segments;
    int32_t *segment_of; /* by entry */
    stk_staged_copy *staged;
    int n_staged;
    stk_event *begun;                    /* of the first device: inputs are there, and the run before is over */
    stk_event *ended[STK_MOST_DEVICES];  /* of the others */
    stk_event *unused[STK_MOST_DEVICES]; /* never recorded, so that nobody waits: to ask for failures */
} stk_dispatch;

/* After the entries are listed. */
stk_status stk_dispatch_new(struct stk_program *program);
/* Nothing is under way. */
void stk_dispatch_free(struct stk_program *program);
/* A node that copies between devices of which one is not on the host: it has no kernel. */
bool stk_dispatch_is_staged(const struct stk_program *program, int32_t node);
/* Takes up the pointers of that side's entries. */
stk_status stk_dispatch_capture(struct stk_program *program, int i_side);
/* Enqueues a run; where the first device is on the host, it is done then. */
stk_status stk_dispatch_launch(struct stk_program *program, int i_side, int *i_failed);
/* For profiles: begins a run and waits until all is quiet; then runs one entry after the other and waits. */
stk_status stk_dispatch_begin_alone(struct stk_program *program);
stk_status stk_dispatch_run_alone(struct stk_program *program, int e, int i_side, int *i_failed);
/* The first failure of any work so far on a device but the first; waits for nothing. */
stk_status stk_dispatch_failure(const struct stk_program *program);

/* --- devices.c --- */
/* What a program can do with several devices, and that each value is read where it lies. */
stk_status stk_program_check_devices(const struct stk_program *program);
/* STK_NO_MEMORY names the device whose limit is too small. */
stk_status stk_program_check_device_limits(const struct stk_program *program,
                                           const struct stk_compile_options *options);
/* Each arena is as large as the plan wants. */
stk_status stk_program_reserve(const struct stk_program *program);

#endif
