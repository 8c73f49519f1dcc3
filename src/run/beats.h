/* What a run tells those who watch over its ranks (elastic/beat.h), and the states that it keeps in the host's memory
 * for the next start, where a supervisor asks for them.
 *
 * A state is a checkpoint like any other, in a folder of /dev/shm that the supervisor names; one process of each host
 * writes it, since all ranks have the same variables, so that a host that goes takes no state with it that others lack.
 * Steps wait for a copy of the variables only; a thread writes them, as seldom as takes a fiftieth of its time.
 * Threads: the trainer's.
 */
#ifndef STK_RUN_BEATS_H
#define STK_RUN_BEATS_H

#include "run/state.h"

/* Collective, after stk_run_open_ranks. A supervisor listens, or the first two of several ranks do, which then warn
 * (elastic/lookout.h). */
stk_status stk_run_open_beats(stk_run *run);
/* The run has ended with this status and text, which stay; where a rank was lost, with what is known of it. */
stk_status stk_run_end_beats(stk_run *run, stk_status status);
void stk_run_close_beats(stk_run *run);
/* Once folder, device and plan stand. */
void stk_run_tell_beats(stk_run *run);

/* Opens the writer, on one process of a host. What keeps it from that is a warning: the run goes on without. */
void stk_run_open_states(stk_run *run);
bool stk_run_state_is_due(stk_run *run);
/* After a step: takes a state where one is due and all of the step is there. */
void stk_run_keep_state(stk_run *run);
/* After another rank was lost, of a whole state: whether it is in memory now, from which the ranks that remain go on
 * sooner than from the disk. */
bool stk_run_keep_last(stk_run *run);
void stk_run_close_states(stk_run *run);
/* Where this host's memory has a state that is newer than the checkpoint ("" for none): its path, in its stead. */
bool stk_run_find_state(const stk_run *run, char checkpoint[STK_PATH_BYTES]);

#endif
