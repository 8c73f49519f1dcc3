/* Numbers as commands print them and people write them: "1,234.5", "12_000", "3e-4". Threads: any. */
#ifndef STK_BENCH_NUMBER_H
#define STK_BENCH_NUMBER_H

#include <stddef.h>

/* Reads the number that text begins with, behind blanks, of at most n bytes. Commas and '_' part groups of three
 * digits; the point is decimal. Returns how many bytes it takes; 0: there is none, or what follows could belong to it,
 * as in "1,5" and "1.2.3". */
size_t stk_bench_read_number(const char *text, size_t n, double *out);

#endif
