/* Prints a group of element-wise ops in the dialect, and makes its launches: also of a group of one, which is how
 * element-wise ops outside of groups are computed. */
#ifndef STK_DEVICE_GPU_OPS_PRINT_H
#define STK_DEVICE_GPU_OPS_PRINT_H

#include "device/gpu/gpu.h"
#include "graph/fused.h"

/* The kernel reads the call's inputs and writes its outputs, in order. */
void gpu_make_group(gpu_maker *m, const stk_fused *program);

/* --- print_instr.c --- */
/* "    value_f32 r7 = ...;\n" for each instruction. The registers r0 .. of the inputs exist, and i is the number of the
 * element. Refuses, with the op, what has no text. in_packs: the element is number k of GPU_DROPOUT_BITS from `first`
 * on, and gpu_print_dropout_blocks stands before them. */
enum { GPU_DROPOUT_BITS = 8 }; /* that a block of random numbers is for */
void gpu_print_instructions(gpu_maker *m, const stk_fused *program, bool in_packs, stk_text *out);
/* Random numbers for elements first .. first + 7, where the registers that they are drawn by exist by then. */
void gpu_print_dropout_blocks(const stk_fused *program, stk_text *out);
stk_dtype gpu_register_type(const stk_fused *program, int r);

#endif
