/* Results as one HTML page that needs no network: what was found, how well it is known, each run, and the conditions.
 * Threads: one at a time. */
#ifndef STK_BENCH_PAGE_H
#define STK_BENCH_PAGE_H

#include "bench/price.h"

enum { STK_BENCH_MOST_PAGE = 8 };

/* The page as a text. kept [n], at least one and at most STK_BENCH_MOST_PAGE. prices: what they cost, filled; NULL: it
 * is not told. */
stk_status stk_bench_page_add(const stk_bench_kept *kept, int n, const stk_bench_prices *prices, stk_text *out);
/* Errors: STK_BUSY, another kind of file is at path. */
stk_status stk_bench_page_write(const stk_bench_kept *kept, int n, const stk_bench_prices *prices, const char *path);

#endif
