/* From a fused group to a program: what its steps share. Only program.c and the program_*.c include it.
 *
 *   program_lower.c   instructions that the loops lack become others; what the instructions read
 *   program_bf16.c    the same for bf16 in the interpreter
 *   program_whole.c   instructions that have one loop together
 *   program_space.c   axes are collapsed, inputs told apart, the block chosen
 *   program_slots.c   every register gets memory
 *   program_reduce.c  groups that end in a reduction: where it is cut
 *   program.c         all of it in order, and the result written down
 */
#ifndef STK_DEVICE_CPU_FUSED_PROGRAM_BUILD_H
#define STK_DEVICE_CPU_FUSED_PROGRAM_BUILD_H

#include "device/cpu/fused/program.h"

/* Instructions of the group that one loop computes. */
typedef struct stk_fused_program_part {
    int32_t kind;       /* stk_whole; -1: none */
    int32_t operand[3]; /* registers; unused: -1 */
    bool shares;        /* there is another part of the same x with which it has a step in common */
} stk_fused_program_part;

typedef struct stk_fused_program_builder {
    const stk_fused *group;
    stk_element_program *program;
    stk_isa isa;
    const stk_element_table *table;
    stk_arena *arena;
    int32_t i_instr;              /* of the group, that is being lowered */
    stk_fused_program_part *part; /* by instruction of the group: that ends with it */
    bool *is_needed;              /* by instruction of the group: outside of parts, or as the end of one */
    /* After lowering: registers 0 .. n_in-1 are inputs, then the instructions' results. */
    stk_fused_instr *instr;
    int32_t n_instr, n_in;
    int32_t *wide;     /* by register: its f32 version, -1: none yet */
    int32_t *stored;   /* by register of f32 that holds a value of bf16: its 16 bits, -1: none yet */
    int32_t *share;    /* by register: what parts of it have in common (STK_WHOLE_SHARE), -1: none yet */
    int32_t *out;      /* by output: register */
    int32_t *last_use; /* by register: instruction; n_instr: read after the last one */
    int32_t *slot;     /* by register */
    uint32_t *in_place;
} stk_fused_program_builder;

/* --- program_lower.c --- */
/* Fills instr, wide, stored and out. Fails where the loops lack an instruction. */
stk_status stk_fused_program_lower(stk_fused_program_builder *b);
stk_dtype stk_fused_program_dtype(const stk_fused_program_builder *b, int32_t r);
/* True for a register that is read as seed or sample; elements: that is read element by element. */
bool stk_fused_program_reads(const stk_fused_program_builder *b, int32_t r, bool elements);
/* Adds an instruction, and one that casts; the new register. */
int32_t stk_fused_program_emit(stk_fused_program_builder *b, stk_fused_instr instr);
int32_t stk_fused_program_emit_cast(stk_fused_program_builder *b, int32_t r, stk_dtype to);
/* The register's value in f32, where it is of 16 bits; r itself, where it is not. */
int32_t stk_fused_program_widen(stk_fused_program_builder *b, int32_t r);
/* NULL: there is none. */
stk_element_fn stk_fused_program_find_loop(const stk_fused_program_builder *b, const stk_fused_instr *instr);

/* --- program_bf16.c: a lowered instruction whose src_dtype is bf16 rounds a result that it leaves in f32 --- */
/* Adds instr, which reads or makes bf16 and whose operands hold lowered registers; its register. */
int32_t stk_fused_program_lower_bf16(stk_fused_program_builder *b, stk_fused_instr instr);
/* The register's value as 16 bits, where the group has it in bf16 and it stands in f32. */
int32_t stk_fused_program_store(stk_fused_program_builder *b, int32_t r, stk_dtype dtype);
/* NULL: no loop of bf16's own. */
stk_element_fn stk_fused_program_find_bf16_loop(const stk_fused_program_builder *b, const stk_fused_instr *instr);

/* --- program_whole.c --- */
/* Fills part and is_needed. */
stk_status stk_fused_program_find_parts(stk_fused_program_builder *b);
/* Adds the instruction of a part whose operands are lowered registers: op is fused, kind a stk_whole times
 * STK_N_WHOLE_STEPS plus its step. */
int32_t stk_fused_program_lower_part(stk_fused_program_builder *b, stk_fused_program_part part);

/* --- program_space.c --- */
/* Fills dim, rank and the inputs' strides; then how each input is read. */
void stk_fused_program_collapse(stk_fused_program_builder *b);
/* Needs the slots. element_bytes: of the widest register. */
void stk_fused_program_choose_block(stk_fused_program_builder *b, int32_t n_buffers, int64_t element_bytes);

/* --- program_slots.c --- */
/* Fills slot, in_place and the inputs' buffers. */
stk_status stk_fused_program_assign_slots(stk_fused_program_builder *b);

#endif
