/* Every case of the harness on a device on paper. */
#ifndef STK_TESTS_PAPER_CALLS_H
#define STK_TESTS_PAPER_CALLS_H

#include "device/paper/paper.h"

typedef struct paper_tally {
    int n_calls, n_refused; /* refused: there is no kernel */
} paper_tally;

/* Builds the kernels of all of them as one program, then checks each launch. */
stk_status paper_build_cases(stk_device *device, paper_tally *out);

#endif
