/* One run of a command: started, waited for, timed, and its output searched for the figure that it prints. No
 * statistics here. Threads: one at a time. */
#ifndef STK_BENCH_COMMAND_H
#define STK_BENCH_COMMAND_H

#include <regex.h>

#include "bench/conditions.h"
#include "bench/metric.h"

enum { STK_BENCH_MOST_OUTPUT = 64 << 20 };

/* What a run came to. Times in seconds, of the command and all its children that it waited for. */
typedef struct stk_bench_run {
    int number, round; /* from 0, in the order of the case; warm-up runs have round -1 */
    bool is_warmup, is_counted, is_outlier;
    unsigned marks;
    double at_s; /* since measuring began */
    double wall_s, user_s, system_s;
    double figure;     /* what counts: wall_s, or what the command printed */
    double joules;     /* of the machine's processors; NaN: not measured */
    double gpu_joules; /* of all GPUs; NaN: not measured */
    int64_t resident_kb, n_major_faults, n_blocks_read;
    double metric[STK_BENCH_N_METRICS]; /* what a run of Stoker's says in its folder; NaN: not told */
    stk_bench_during during;
} stk_bench_run;

/* How a command is run. */
typedef struct stk_bench_start {
    char *const *argv;        /* ended by NULL; borrowed */
    const regex_t *pattern;   /* NULL: the time counts; its first group, or all of it, is the number */
    const char *file;         /* a JSON file that the command writes, with the number at `key`; NULL: none */
    const char *key;          /* "samples_per_s", "test.accuracy" */
    int number;               /* STOKER_BENCH_RUN in its environment: 1, 2, ... in the order of the case */
    bool (*is_stopped)(void); /* asked while it runs; NULL: never */
    bool shows_output, may_fail;
} stk_bench_start;

/* Errors: STK_NOT_FOUND or STK_IO, it cannot be started; STK_INVALID, it failed, or printed no figure, with the end of
 * what it said; STK_INTERRUPTED. */
stk_status stk_bench_command_run(const stk_bench_start *start, stk_bench_machine *machine, stk_bench_run *out);

/* The last number that pattern finds in text; NaN: none. Thousands may be parted by commas. */
double stk_bench_find_figure(const regex_t *pattern, const char *text);
/* A pattern as of grep -E. Free with regfree. */
stk_status stk_bench_pattern_compile(const char *text, regex_t *out);

#endif
