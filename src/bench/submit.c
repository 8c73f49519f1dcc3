#include "bench/submit.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "bench/derived.h"
#include "bench/result.h"

typedef struct checker {
    const char *folder;
    stk_text *problems;
    int n;
} checker;

static void note(checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(checker *c, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    stk_text_add(c->problems, "%s\n", text);
    c->n++;
}

static stk_status check_hashes(checker *c)
{
    static const char *const names[] = {"result.json", "runs.csv", "report.md"};
    char path[4096], hash[32];
    json_t *hashes;
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), c->folder, "hashes.json"));
    STK_RETURN_IF_ERROR(stk_json_read(path, 0, &hashes));
    stk_status status = STK_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && status == STK_OK; i++) {
        const char *wanted = json_string_value(json_object_get(hashes, names[i]));
        stk_span file = {NULL, 0};
        status = stk_path_join(path, sizeof(path), c->folder, names[i]);
        if (status == STK_OK) status = stk_file_load(path, &file);
        if (status != STK_OK) break;
        snprintf(hash, sizeof(hash), "%016" PRIx64, stk_hash64(file.data, file.n, 0));
        stk_file_unload(file);
        if (!wanted)
            note(c, "%s has no hash", names[i]);
        else if (strcmp(wanted, hash))
            note(c, "%s was changed after it was written", names[i]);
    }
    json_decref(hashes);
    return status;
}

/* What docs/bench-schema.json requires: null says that it could not be read, and a key that is not there nothing. */
static void check_keys(checker *c, const json_t *object, const char *const *keys, const char *what)
{
    for (; *keys; keys++)
        if (!json_object_get(object, *keys)) note(c, "%s lack '%s'", what, *keys);
}

static void check_conditions(checker *c, const json_t *root)
{
    static const char *const wanted[] = {"processor",  "architecture", "cores", "usable_cores",
                                         "memory_kib", "kernel",       "stoker"};
    static const char *const of_machine[] = {"quota_cores",   "governor", "turbo_off", "smt", "huge_pages",
                                             "nvidia_driver", "gpus",     "not_seen",  NULL};
    static const char *const of_reading[] = {"load_average",
                                             "runnable_threads",
                                             "available_memory_kib",
                                             "clock_mhz",
                                             "probe_ns",
                                             "gpu_slowdown_mask",
                                             "gpu_other_processes",
                                             "gpu_power_w",
                                             "gpu_celsius",
                                             "gpu_clock_mhz",
                                             NULL};
    static const char *const of_settings[] = {"precision",    "most_s",        "least_s",
                                              "least_rounds", "most_rounds",   "least_warm_ups",
                                              "seed",         "counts_marked", NULL};
    static const char *const readings[] = {"before", "after"};
    const json_t *machine = json_object_get(root, "machine");
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const json_t *value = json_object_get(machine, wanted[i]);
        if (!value || json_is_null(value)) note(c, "the machine's '%s' is not told", wanted[i]);
    }
    check_keys(c, machine, of_machine, "the machine's conditions");
    check_keys(c, json_object_get(root, "settings"), of_settings, "the settings");
    for (int i = 0; i < 2; i++) {
        const json_t *reading = json_object_get(root, readings[i]);
        char what[64];
        snprintf(what, sizeof(what), "the conditions '%s'", readings[i]);
        check_keys(c, reading, of_reading, what);
        if (json_is_null(json_object_get(reading, "load_average"))) note(c, "%s are not told", what);
    }
    if (!json_string_value(json_object_get(root, "date"))) note(c, "it has no date");
    if (!json_string_value(json_object_get(root, "energy"))) note(c, "it does not say how energy was measured");
    if (json_is_true(json_object_get(root, "disturbed"))) note(c, "most runs were disturbed, and all were counted");
    if (json_is_true(json_object_get(json_object_get(root, "settings"), "counts_marked")))
        note(c, "runs with marks were counted");
    if (json_is_true(json_object_get(json_object_get(root, "settings"), "ignores_failures")))
        note(c, "commands were allowed to fail");
    const char *ended = json_string_value(json_object_get(root, "ended"));
    for (int k = 0; ended && k < STK_BENCH_N_ENDS; k++)
        if ((k == STK_BENCH_END_stopped || k == STK_BENCH_END_failed) &&
            !strcmp(ended, stk_bench_end_name((stk_bench_end)k)))
            note(c, "measuring ended when %s", stk_bench_end_text((stk_bench_end)k));
}

/* What was seen during a run. */
static void check_during(checker *c, const json_t *run, size_t i, const char *name)
{
    static const char *const keys[] = {"neighbour_cores",   "steal_share",         "throttled_periods",
                                       "throttled_s",       "heat_cuts",           "swapped_pages",
                                       "probe_ns",          "clock_mhz",           "load_average",
                                       "gpu_slowdown_mask", "gpu_other_processes", NULL};
    const json_t *during = json_object_get(run, "during");
    char what[512];
    if (!json_is_object(during)) {
        note(c, "run %zu of '%s' has no conditions", i + 1, name);
        return;
    }
    snprintf(what, sizeof(what), "the conditions of run %zu of '%.400s'", i + 1, name);
    check_keys(c, during, keys, what);
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *x = json_object_get(object, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

/* Rounds in which any case's run is marked may be left out, and no others. */
static bool round_is_marked(const json_t *cases, json_int_t round)
{
    const json_t *from, *run;
    size_t i, k;
    json_array_foreach(cases, i, from)
    {
        json_array_foreach(json_object_get(from, "runs"), k, run)
        {
            const json_t *at = json_object_get(run, "round");
            if (json_is_integer(at) && json_integer_value(at) == round &&
                json_array_size(json_object_get(run, "marks")))
                return true;
        }
    }
    return false;
}

/* Runs are counted from 1, as on the page. */
static void check_runs(checker *c, const json_t *cases, const json_t *from, const char *name)
{
    const json_t *runs = json_object_get(from, "runs"), *run;
    size_t i;
    double peak = number_at(from, "peak");
    bool less = !strcmp(
        json_string_value(json_object_get(from, "better")) ? json_string_value(json_object_get(from, "better")) : "",
        "less");
    json_array_foreach(runs, i, run)
    {
        const json_t *round = json_object_get(run, "round");
        double figure = number_at(run, "figure");
        if (!(figure > 0) || !isfinite(figure) || (peak > 0 && (less ? figure < peak : figure > peak)))
            note(c, "run %zu of '%s' has a figure that cannot be", i + 1, name);
        check_during(c, run, i, name);
        if (!json_is_true(json_object_get(run, "counted")) && !json_is_true(json_object_get(run, "warm_up")) &&
            !(json_is_integer(round) && round_is_marked(cases, json_integer_value(round))))
            note(c, "run %zu of '%s' is left out, and no run of its round has a mark", i + 1, name);
        if (number_at(run, "number") != (double)(i + 1)) note(c, "run %zu of '%s' is missing", i + 1, name);
    }
}

static stk_status check_figures(checker *c, const stk_bench_kept *kept)
{
    const json_t *cases = json_object_get(kept->root, "cases");
    const json_t *seed = json_object_get(json_object_get(kept->root, "settings"), "seed");
    char why[STK_BENCH_SENTENCE];
    for (int i = 0; i < kept->n_cases; i++) {
        const stk_bench_kept_case *k = &kept->cases[i];
        const json_t *from = json_array_get(cases, (size_t)i), *summary = json_object_get(from, "summary");
        const json_t *median = json_object_get(summary, "median");
        stk_bench_interval found;
        if (!k->unit[0]) note(c, "'%s' has no unit", k->name);
        if (k->n < STK_BENCH_LEAST_RUNS)
            note(c, "'%s' has %d runs that count; %d are needed", k->name, k->n, STK_BENCH_LEAST_RUNS);
        STK_RETURN_IF_ERROR(
            stk_bench_median_interval(k->figure, k->n, 0.95, (uint64_t)json_integer_value(seed), &found));
        const double told[] = {number_at(median, "value"), number_at(median, "low"), number_at(median, "high")};
        const double wanted[] = {found.value, found.low, found.high};
        for (int m = 0; m < 3; m++)
            if (!(isnan(told[m]) && isnan(wanted[m])) && !(fabs(told[m] - wanted[m]) <= 1e-9 * fabs(wanted[m]))) {
                note(c, "the median of '%s' does not follow from its runs", k->name);
                break;
            }
        if (number_at(summary, "counted_runs") != (double)k->n)
            note(c, "'%s' says that another number of runs count", k->name);
        check_runs(c, cases, from, k->name);
        if (stk_bench_impossible(kept, i, why)) note(c, "'%s': %s", k->name, why);
    }
    if (!kept->n_cases) note(c, "there is no case");
    return STK_OK;
}

stk_status stk_bench_submit_check(const char *folder, stk_text *problems, int *n)
{
    checker c = {folder, problems, 0};
    stk_bench_kept kept = {.path = ""};
    stk_status status = STK_OK;
    STK_TRY(check_hashes(&c));
    STK_TRY(stk_bench_kept_read(folder, &kept));
    check_conditions(&c, kept.root);
    STK_TRY(check_figures(&c, &kept));
    STK_TRY(stk_text_status(problems));
done:
    stk_bench_kept_free(&kept);
    *n = c.n;
    return status;
}
