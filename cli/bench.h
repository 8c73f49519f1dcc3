/* What the verbs of stoker bench share. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "bench/result.h"

/* Says what a result has that cannot be, as an efficiency above 100 %, each as an error; returns how many. */
int cli_bench_impossible(const stk_bench_kept *kept);

#endif
