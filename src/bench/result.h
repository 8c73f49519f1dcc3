/* The folder of a measuring, and what is read back of it:
 *
 *   result.json    everything: settings, machine, conditions, each run; docs/bench-schema.json
 *   runs.csv       one line a run
 *   report.md      the tables, for people
 *   hashes.json    the files' hashes (base/hash.h), for stoker bench submit --check
 *
 * Threads: one at a time.
 */
#ifndef STK_BENCH_RESULT_H
#define STK_BENCH_RESULT_H

#include "base/text.h"
#include "bench/measure.h"

#define STK_BENCH_SCHEMA "stoker-bench-1"

/* What belongs to a measuring besides its runs. */
typedef struct stk_bench_about {
    const char *name;
    json_t *machine; /* stk_bench_machine_json; borrowed */
    const stk_bench_comparison *comparison;
    int n_comparisons;
    json_t *left_out; /* texts: cases for which the machine has too few cores or devices; borrowed, may be NULL */
} stk_bench_about;

/* Returned: json_decref; NULL: out of memory. */
json_t *stk_bench_result_json(const stk_bench *bench, const stk_bench_about *about);
void stk_bench_result_csv(const stk_bench *bench, stk_text *out);
/* Makes the folder, with all files. Errors: STK_BUSY where it is there. */
stk_status stk_bench_result_write(const char *folder, const stk_bench *bench, const stk_bench_about *about);

/* A case as a result.json has it. */
typedef struct stk_bench_kept_case {
    const char *name, *unit; /* borrowed from root */
    bool less_is_better;
    double *figure; /* [n] of the counted runs */
    int n;
} stk_bench_kept_case;
typedef struct stk_bench_kept {
    char path[4096];
    json_t *root;
    stk_bench_kept_case *cases;
    int n_cases;
    bool is_disturbed;
} stk_bench_kept;

/* path: a result's folder, or its result.json. Errors: STK_CORRUPT, no result, or an impossible one. */
stk_status stk_bench_kept_read(const char *path, stk_bench_kept *out);
/* The same of a text; origin: its name for messages. */
stk_status stk_bench_kept_parse(const char *origin, const void *text, size_t n, stk_bench_kept *out);
void stk_bench_kept_free(stk_bench_kept *kept);
/* Comparisons of its cases, which ran in turns. False: there is none, or none that can be. */
int stk_bench_kept_n_comparisons(const stk_bench_kept *kept);
bool stk_bench_kept_comparison(const stk_bench_kept *kept, int i, stk_bench_comparison *out);
/* Why two of them do not measure alike: one line for each thing that differs. Returns how many. */
int stk_bench_kept_differences(const stk_bench_kept *a, const stk_bench_kept *b, stk_text *out);

#endif
