/* What a measuring came to, in words and tables. Threads: any. */
#ifndef STK_BENCH_TELL_H
#define STK_BENCH_TELL_H

#include "bench/result.h"

enum { STK_BENCH_FIGURE = 96, STK_BENCH_SENTENCE = 512 };

/* "101.3 ms", "1,234 samples/s". Returns out. */
const char *stk_bench_figure_text(double x, const char *unit, char out[STK_BENCH_FIGURE]);
/* "'b' is 2.1 % slower than 'a' (1.7 to 2.4 % in 95 of 100, 24 pairs)". unit: of time or not, for the word. Returns
 * out.
 */
const char *stk_bench_verdict_text(const stk_bench_comparison *c, const char *a, const char *b, bool less_is_better,
                                   char out[STK_BENCH_SENTENCE]);
/* The same of a comparison within a kept result. */
const char *stk_bench_kept_verdict_text(const stk_bench_kept *kept, const stk_bench_comparison *c,
                                        char out[STK_BENCH_SENTENCE]);
/* Lines for a terminal. */
void stk_bench_tell_text(const stk_bench *bench, const stk_bench_about *about, stk_text *out);

#endif
