/* Suites: what is measured together, as a YAML file says it or one of the built-in texts, which are written alike.
 *
 *   name: mine
 *   seconds: 120                              # for all of it; --seconds stands before it
 *   files: {small.yaml: "..."}                # written to {work} first
 *   prepare: ['{stoker} get digits --out {work}/digits']   # run once
 *   cases:
 *     - {name: start, run: '{stoker} --version'}           # its time
 *     - {name: matmul, run: '{stoker} bench part matmul 512x512x512 f32', pattern: '^([0-9.,]+)', unit: GFLOP/s}
 *     - {name: train, run: ..., file: '{work}/run/result.json', key: samples_per_s, unit: samples/s}
 *
 * {stoker} is this program, {work} a folder that is there until the end, {device} the device that is measured, {other}
 * the first or second of its kind, which is not it, {cores}
 * how many cores may be used, {side} the side of a matrix that is large for the device. Threads: one at a time.
 */
#ifndef STK_BENCH_SUITE_H
#define STK_BENCH_SUITE_H

#include "bench/measure.h"
#include "settings/yaml.h"

enum { STK_BENCH_MOST_CASES = 64 };

typedef struct stk_bench_suite {
    const char *name;
    double seconds, precision;
    int least_rounds, least_warmups;
    stk_bench_case cases[STK_BENCH_MOST_CASES]; /* without argv */
    char *run[STK_BENCH_MOST_CASES];            /* the commands, with the words in place; the suite's */
    int n_cases, n_prepare;
    char *prepare[STK_BENCH_MOST_CASES];
    struct {
        const char *name;
        int64_t wants; /* cores, or devices */
        bool of_devices;
    } left_out[STK_BENCH_MOST_CASES]; /* cases that this machine has too few of either for */
    int n_left_out;
    /* its own */
    stk_yaml *yaml;
    const char *device;
    char work[64], *file[STK_BENCH_MOST_CASES];
} stk_bench_suite;

/* The text of a built-in suite and what it is for; NULL: there is none of that name, or past the end. */
typedef struct stk_bench_builtin {
    const char *name, *about, *text;
} stk_bench_builtin;
const stk_bench_builtin *stk_bench_builtin_at(int i);
const stk_bench_builtin *stk_bench_builtin_find(const char *name);

/* Of a built-in's text, or of a file where builtin is NULL. program: the path of this one; device: as "cpu",
 * borrowed until it is closed. Makes {work} and its files. Free in any case. */
stk_status stk_bench_suite_open(const stk_bench_builtin *builtin, const char *path, const char *program,
                                const char *device, stk_bench_suite *out);
void stk_bench_suite_close(stk_bench_suite *suite);

#endif
