/* What follows from the figures of a result: use of the peaks, as published and as measured next to it, scaling
 * efficiency, and what cannot be. Threads: any.
 */
#ifndef STK_BENCH_DERIVED_H
#define STK_BENCH_DERIVED_H

#include "bench/metric.h"
#include "bench/result.h"
#include "bench/tell.h"

/* Compute of the best product in that precision, and the best memory bandwidth, that the same result measured. */
stk_bench_roof stk_bench_measured_roof(const json_t *root, const char *precision);
/* What the maker publishes of the device. */
stk_bench_roof stk_bench_published_roof(const json_t *root, const char *precision);

/* What a case says of a training, and how well that used what there is. False: it is no training. */
bool stk_bench_read_training(const json_t *root, const json_t *from, double metric[STK_BENCH_N_METRICS],
                             stk_bench_use *use);
/* The efficiency of case i compared with one replica in the same result. False: it is none of several replicas, or the
 * one is not there. */
bool stk_bench_scaling_of(const stk_bench_kept *kept, int i, stk_bench_interval *out);

/* The rate of a case: its figure, or of times what is done in one, which for weak scaling is as much as replicas. */
stk_bench_interval stk_bench_rate_of(const json_t *from);
/* Of n replicas compared with one, from their medians with intervals: value, and what it may be. */
stk_bench_interval stk_bench_efficiency(stk_bench_interval one, stk_bench_interval many, int n_replicas);

/* Why case i says what cannot be: an efficiency whose whole interval lies above 100 %, or more than the published peak.
 * Returns out; NULL: it can be. */
const char *stk_bench_impossible(const stk_bench_kept *kept, int i, char out[STK_BENCH_SENTENCE]);

/* How far a result can be trusted: a line for each thing, marks and how it ended among them, each given to put. A line
 * may hold what the result holds, line ends too. Out of memory: out fails. */
typedef void stk_bench_put_line(stk_text *out, const char *line);
void stk_bench_trust(const stk_bench_kept *kept, stk_bench_put_line *put, stk_text *out);

#endif
