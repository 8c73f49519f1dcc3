/* A group that ends in a reduction of one of its values.
 *
 * The space is a matrix (stk_fused_matrix) that is made band by band. A band is made block by block, as groups without
 * a reduction are, and what the value's part of it adds up to is taken at once, while it is in a core's own cache. A
 * value that is no output of the group exists a band at a time, in the thread's scratch.
 *
 *   short rows   a band is some whole rows; each has its result at once
 *   long rows    cut into pieces of PIECE_BANDS bands, whose sums are added up in their order
 *   columns      rows are cut into units of some bands of rows; a unit has sums of all columns, which are added up in
 *                their order
 *
 *                      columns
 *              band  +----------+   acc[unit][c] takes in column c of the band, up to STK_REDUCE_ROWS rows at a time
 *       unit 0 band  |          |
 *              band  +----------+
 *       unit 1 band  |          |
 *
 * Where it is cut depends on shapes alone, and the functions of reduce.h add up in f32 within a band, then in double:
 * results are the same for any number of threads and any instruction set.
 */
#ifndef STK_DEVICE_CPU_FUSED_PROGRAM_REDUCE_H
#define STK_DEVICE_CPU_FUSED_PROGRAM_REDUCE_H

#include "device/cpu/fused/program_build.h"
#include "device/cpu/rows/reduce.h"

typedef enum stk_reduce_way { STK_REDUCE_SHORT_ROWS, STK_REDUCE_LONG_ROWS, STK_REDUCE_COLUMNS } stk_reduce_way;

typedef struct stk_fused_program_reduce {
    stk_reduce_way way;
    stk_fused_matrix matrix;
    int32_t i_value; /* the program's output that is reduced */
    int value_log2_bytes, result_log2_bytes;
    stk_reduce_fns fns; /* of the value; finish: of the result */
    double divisor;
    int64_t n_results, n_units;
    int64_t band;         /* elements */
    int64_t unit;         /* elements of whole bands; the last one of a row, or of all, may be shorter */
    int64_t n_pieces;     /* long rows: units of a row */
    size_t buffer_offset; /* in a thread's scratch: the band of a value that is no output */
} stk_fused_program_reduce;

/* The group with the value that is reduced among its outputs: as one more where it is none. */
stk_status stk_fused_program_reduce_extend(stk_arena *arena, const stk_fused *group, stk_fused *out, int32_t *i_value);
/* Whether all bands begin at multiples of N elements. */
bool stk_fused_program_reduce_repeats(const stk_fused *group, int64_t period);
/* After all else: fills program->reduce and adds to thread_bytes. */
stk_status stk_fused_program_reduce_make(stk_fused_program_builder *b, int32_t i_value, const stk_reduce_table *table);
/* Of the kernel, with n_threads known. */
size_t stk_fused_program_reduce_scratch(const stk_element_program *program);
/* The kernel's run. */
stk_status stk_fused_program_reduce_run(const void *state, const stk_kernel_args *args);

#endif
