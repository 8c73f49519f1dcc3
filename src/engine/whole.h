/* Programs that a device's compiler gets as a whole: their text, what the compiler says of them, and what in them fits
 * ill into the tiles that a matrix unit works on. Threads: one at a time for each engine.
 */
#ifndef STK_ENGINE_WHOLE_H
#define STK_ENGINE_WHOLE_H

#include "device/queue.h"
#include "engine/engine.h"
#include "stoker/observe/plan.h"

/* The program's module, with the names of variables, inputs and outputs at its arguments and results. STK_UNSUPPORTED
 * on a device that compiles no whole programs, or that is here. */
stk_status stk_program_print_module(stk_program *program, stk_text *out);
/* Compiles it, which may take minutes. */
stk_status stk_program_analyse(stk_program *program, stk_compiled_program *out);
/* Bytes that the host gives to a run. */
size_t stk_program_fed_bytes(const stk_program *program);
/* Fills the products and the gathers of *out. */
stk_status stk_program_read_tiles(const stk_program *program, stk_compiled_plan *out);

#endif
