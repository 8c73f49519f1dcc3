/* What a program's memory is for, and how long its run should take. */
#ifndef STK_ENGINE_BREAKDOWN_H
#define STK_ENGINE_BREAKDOWN_H

#include "engine/engine.h"
#include "stoker/observe/plan.h"

/* Fills the memory and the arithmetic of *out, and its layers: free with stk_memory_plan_free. */
stk_status stk_program_break_down(const stk_program *program, stk_memory_plan *out);
/* What a value in the arena is for: "activation", "backward", "gradient"; below 0: "workspace". Returns a constant. */
const char *stk_program_name_use(const stk_program *program, int32_t value);
/* Each entry at the device's speed, or at that of its memory, whichever takes longer. In seconds. */
double stk_program_expect_s(const stk_program *program, const stk_device_speed *speed);
/* Multiplies matrices of dtype, F32 or BF16, and adds arrays, on an engine of its own, for about a second, in memory of
 * STK_MEASURE_BYTES. */
#define STK_MEASURE_BYTES ((size_t)72 << 20)
stk_status stk_measure_speed(const char *device, const stk_device_config *config, stk_dtype dtype,
                             stk_device_speed *out);

#endif
