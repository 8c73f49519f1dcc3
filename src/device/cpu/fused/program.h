/* Element-wise programs: a fused group, or one op as a group of one, made ready to run in blocks.
 *
 *   iteration space, collapsed to few axes and cut into blocks of some hundred elements
 *   for each block   point the inputs' slots at memory, or load them into a buffer where they are broadcast
 *                    run each instruction as one loop over the block; what lies between stays in the L1 cache
 *
 *   slots  0 .. n_in-1              inputs
 *          n_in .. n_in+n_out-1     outputs: most results are made in place of them
 *          above                    buffers in the thread's scratch: loaded inputs, constants, results between
 */
#ifndef STK_DEVICE_CPU_FUSED_PROGRAM_H
#define STK_DEVICE_CPU_FUSED_PROGRAM_H

#include "base/arena.h"
#include "device/cpu/cpu.h"
#include "device/cpu/element/element.h"
#include "graph/fused.h"

typedef enum stk_load {
    STK_LOAD_DENSE, /* as the output: read where it is */
    STK_LOAD_ONCE,  /* the same for every block: loaded once a run */
    STK_LOAD_WALK,  /* loaded for each block */
    STK_LOAD_NONE   /* seed or sample of dropout: no element reads it */
} stk_load;

typedef struct stk_fused_program_input {
    stk_load load;
    int log2_bytes;
    int32_t buffer; /* slot, where it is loaded */
    int64_t stride[STK_MAX_RANK];
} stk_fused_program_input;

typedef struct stk_fused_program_instr {
    stk_element_fn run; /* NULL: dropout */
    int32_t dst, src[3];
    stk_dropout_fn dropout;
    int32_t seed, sample; /* inputs */
    int64_t stream;
    double rate;
} stk_fused_program_instr;

typedef struct stk_fused_program_fill {
    int32_t slot;
    int log2_bytes;
    uint64_t bits;
} stk_fused_program_fill;

/* An output that is not made in place: copied from a slot at the end of a block. */
typedef struct stk_fused_program_copy {
    int32_t out, slot;
} stk_fused_program_copy;

struct stk_fused_program_reduce;

typedef struct stk_element_program {
    stk_arena *arena; /* of all arrays, and of this */
    const stk_element_table *table;
    int n_threads; /* that a run is worth */
    int rank;
    int64_t dim[STK_MAX_RANK]; /* collapsed */
    int64_t count, block, n_columns;
    int32_t n_in, n_out, n_slots, n_instr, n_fills, n_copies;
    size_t slot_bytes, thread_bytes; /* of a buffer; of a thread's scratch */
    stk_fused_program_input *input;
    stk_fused_program_instr *instr;
    stk_fused_program_fill *fill;
    stk_fused_program_copy *copy;
    int *out_log2_bytes;
    /* NULL: the group reduces nothing. What it reduces may be an output of the program that is none of the kernel's,
     * and exists a band at a time: band_output, the last one; -1: none such. */
    const struct stk_fused_program_reduce *reduce;
    int32_t band_output;
} stk_element_program;

/* Makes a kernel of a group. */
stk_status stk_fused_program_kernel(const stk_cpu_device *device, const stk_fused *group, stk_kernel *out);
/* Where one thread is. */
typedef struct stk_fused_program_walk {
    const stk_element_program *program;
    void *const *in;
    void *const *out;
    void **at; /* by slot: the beginning of the thread's scratch, of thread_bytes */
} stk_fused_program_walk;

/* Fills buffers that are the same for all blocks, and at. */
void stk_fused_program_begin(const stk_fused_program_walk *walk);
/* Elements first .. first+n-1, n at most a block, first a multiple of what inputs that are loaded once repeat after. */
void stk_fused_program_run_block(const stk_fused_program_walk *walk, int64_t first, int64_t n);

/* The kernel's run. */
stk_status stk_fused_program_interpret(const void *state, const stk_kernel_args *args);

#endif
