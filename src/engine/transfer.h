/* What goes into a program's runs, and, on a device that is not on the host, how it gets there and back.
 *
 *   run k     side k mod 2 of the inputs, slot k mod 4 of the results
 *
 *   in        --[copy k]--            --[copy k+1]--                  copy k + 2 waits for run k: it has the same side
 *   compute               --[run k]----------------[run k+1]--        each ends by copying outputs to its result slot
 *   out                             --[results k]-----------[..]      slot k is written again after it has been read
 *
 * So the host waits for nothing but the copy of what it wants to write again, and for results that it wants to read.
 */
#ifndef STK_ENGINE_TRANSFER_H
#define STK_ENGINE_TRANSFER_H

#include "device/queue.h"
#include "engine/engine.h"

enum { STK_N_SIDES = 2 };

/* An input or an output in a block of several, at 64-byte boundaries. */
typedef struct stk_io_part {
    int32_t value; /* id in the graph */
    size_t offset, bytes;
} stk_io_part;

typedef struct stk_io_block {
    stk_io_part *part;
    int n_parts;
    size_t bytes;
} stk_io_block;

typedef struct stk_transfer {
    stk_io_block result; /* the outputs */
    struct {
        char *device;  /* inputs as the program reads them */
        char *staging; /* the host's: values that were set, on their way */
        stk_event *copied, *ran;
    } side[STK_N_SIDES];
    struct {
        char *device, *host; /* outputs of one run */
        stk_event *read;
    } slot[STK_RUNS_KEPT];
    int64_t n_runs;
    int64_t i_shown; /* the run whose outputs are shown; -1: none yet */
} stk_transfer;

/* The inputs of a program, the shortest first, so that scalars lie together. */
stk_status stk_transfer_list_inputs(const stk_program *program, stk_io_block *out);
void stk_io_block_free(stk_io_block *block);
/* Bytes from the start of the block, of the part with that value; SIZE_MAX: it has none. */
size_t stk_io_block_find(const stk_io_block *block, int32_t value);

stk_status stk_transfer_new(stk_program *program, stk_transfer **out);
/* Nothing is under way. Accepts NULL. */
void stk_transfer_free(stk_program *program);
/* Enqueue: the inputs' way to the device before a run, and the outputs' way back after it. */
stk_status stk_transfer_begin(stk_program *program, int *i_side);
stk_status stk_transfer_end(stk_program *program);

#endif
