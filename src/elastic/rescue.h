/* What becomes of the states in the host's memory when no rank goes on: the newest becomes a checkpoint of the run. */
#ifndef STK_ELASTIC_RESCUE_H
#define STK_ELASTIC_RESCUE_H

#include <stdint.h>

#include "stoker/status.h"

/* Copies the newest checkpoint of the folder `states` into that of the run, where it is behind a later step than all
 * that are there; *step is then that step, else -1. A checkpoint appears whole or not at all, in both. */
stk_status stk_rescue_state(const char *states, const char *folder, int64_t *step);

#endif
