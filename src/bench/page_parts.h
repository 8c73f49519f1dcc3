/* Parts of the page of results that more than one file makes (bench/page.h): what trainings used of the machine, the
 * roofline, and scaling. Each adds nothing where a result has nothing for it. Threads: any. */
#ifndef STK_BENCH_PAGE_PARTS_H
#define STK_BENCH_PAGE_PARTS_H

#include "bench/derived.h"

/* Begins a link to a case's runs, which "</a>" ends. */
void stk_bench_page_link(stk_text *out, int i_result, size_t i_case);
/* Each run of a case, to which those links lead. */
void stk_bench_page_case(stk_text *out, const json_t *from, int i_result, size_t i);
void stk_bench_page_trainings(stk_text *out, const stk_bench_kept *kept, int i_result);
/* Throughput and energy over the batch, a line for each precision, for each network whose cases differ in it. */
void stk_bench_page_curves(stk_text *out, const stk_bench_kept *kept);
void stk_bench_page_roofline(stk_text *out, const stk_bench_kept *kept);
void stk_bench_page_scaling(stk_text *out, const stk_bench_kept *kept, int i_result);

#endif
