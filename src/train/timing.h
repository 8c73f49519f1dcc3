/* Where the loop's time goes, and traces of some steps. What a step does apart from computing is timed always, by a few
 * readings of the clock; one step in sixteen runs kernel by kernel, so that their times are known too.
 * Threads: the trainer's.
 */
#ifndef STK_TRAIN_TIMING_H
#define STK_TRAIN_TIMING_H

#include "stoker/train/trainer.h"

enum { STK_PROFILED_EVERY = 16 };

typedef struct stk_timing {
    int64_t n_steps;         /* of this process */
    int64_t loop_ns;         /* of steps with all that is around them; no validation */
    int64_t wait_ns;         /* for batches */
    int64_t run_ns;          /* in the program: to run it, or to enqueue it */
    int64_t result_ns;       /* waiting for the device, where it is not on the host */
    int64_t profiled_run_ns; /* part of run_ns: of steps that were profiled */
    int64_t step_begin_ns, trace_begin_ns;
    bool in_step;     /* one is under way: loop_ns lacks it */
    bool is_profiled; /* the step under way */
    bool is_tracing, has_traced;
    bool off; /* nothing is timed: for bench_counters, which measures what timing costs */
} stk_timing;

/* A step begins: decides whether it is profiled, and starts a trace that is due. */
stk_status stk_timing_begin(stk_trainer *trainer);
void stk_timing_add_wait(stk_trainer *trainer, int64_t from_ns, int64_t to_ns);
/* device_ns: of it, waiting for a device that is busy with an earlier step. */
void stk_timing_add_run(stk_trainer *trainer, int64_t from_ns, int64_t to_ns, int64_t device_ns);
void stk_timing_add_result(stk_trainer *trainer, int64_t from_ns, int64_t to_ns);
/* It has ended, with what is around it. Writes a trace whose last step it was; a failure to write is a warning. */
void stk_timing_end(stk_trainer *trainer);
/* The run ends: a trace under way is written as far as it got. */
void stk_timing_finish(stk_trainer *trainer);

/* Shares of the time so far. */
stk_time_shares stk_timing_get_shares(const stk_trainer *trainer);

#endif
