/* Results that were measured apart, case by case, each compared with the first: for 'stoker bench compare' and for
 * pages of several results. What was measured in turns is in compare.c. Threads: one at a time.
 */
#ifndef STK_BENCH_APART_H
#define STK_BENCH_APART_H

#include "bench/place.h"
#include "bench/result.h"

/* By how much a machine may have changed from one result to the other, where nothing else is said. */
#define STK_BENCH_ALLOWANCE 0.02

/* A case that two results have; borrows both. */
typedef struct stk_bench_apart_row {
    const stk_bench_kept *a, *b;
    int i_a, i_b; /* of their cases */
    stk_bench_comparison comparison;
} stk_bench_apart_row;
/* {0} is an empty one. */
typedef struct stk_bench_apart {
    stk_bench_apart_row *row;
    int n;
    double allowance;
} stk_bench_apart;

/* Adds the cases that both have by name; where both have one alone, that. Cases in other units are an error where
 * is_strict, and left out else. Errors: STK_MISMATCH, also where is_strict and they have no case in common. */
stk_status stk_bench_apart_add(stk_bench_apart *apart, const stk_bench_kept *a, const stk_bench_kept *b,
                               bool is_strict);
void stk_bench_apart_free(stk_bench_apart *apart);

/* "train"; "sleep 1 -> sleep 2" where both results have one case alone, of different names. Borrowed from them or out.
 */
const char *stk_bench_apart_name(const stk_bench_apart_row *row, char out[STK_BENCH_PLACE]);

/* Tables, each row with the places of both raw runs, as seen from the file `from` that they go to; NULL: from here. */
void stk_bench_apart_markdown(const stk_bench_apart *apart, const char *from, stk_text *out);
void stk_bench_apart_csv(const stk_bench_apart *apart, const char *from, stk_text *out);
/* Returned: json_decref; an array. */
json_t *stk_bench_apart_json(const stk_bench_apart *apart, const char *from);

#endif
