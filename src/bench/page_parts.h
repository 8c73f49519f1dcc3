/* Parts of the page of results that more than one file makes (bench/page.h): what trainings used of the machine, the
 * roofline, and scaling. Each adds nothing where a result has nothing for it. Threads: any. */
#ifndef STK_BENCH_PAGE_PARTS_H
#define STK_BENCH_PAGE_PARTS_H

#include "bench/metric.h"
#include "bench/result.h"

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

/* Begins a link to a case's runs, which "</a>" ends. */
void stk_bench_page_link(stk_text *out, int i_result, size_t i_case);
/* Each run of a case, to which those links lead. */
void stk_bench_page_case(stk_text *out, const json_t *from, int i_result, size_t i);
void stk_bench_page_trainings(stk_text *out, const stk_bench_kept *kept, int i_result);
/* Throughput and energy over the batch, a line for each precision, for each network whose cases differ in it. */
void stk_bench_page_curves(stk_text *out, const stk_bench_kept *kept);
void stk_bench_page_roofline(stk_text *out, const stk_bench_kept *kept);
void stk_bench_page_scaling(stk_text *out, const stk_bench_kept *kept, int i_result);

/* Of n replicas compared with one, from their medians with intervals: value, and what it may be. */
stk_bench_interval stk_bench_efficiency(stk_bench_interval one, stk_bench_interval many, int n_replicas);

#endif
