/* The training step of a run, for a device that is not here (plan.c). */
#ifndef STK_RUN_AHEAD_H
#define STK_RUN_AHEAD_H

#include "engine/engine.h"
#include "stoker/observe/plan.h"

/* *batch: samples of a replica's step. The program is the engine's. */
stk_status stk_run_compile_ahead(stk_run *run, const stk_plan_request *request, int64_t *batch, stk_program **out);

#endif
