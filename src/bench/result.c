#include "bench/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/new_folder.h"
#include "base/secret.h"
#include "bench/metric.h"
#include "bench/place.h"
#include "bench/table.h"

/* --- writing --- */

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *interval_json(const stk_bench_interval *i)
{
    json_t *object = json_object();
    json_object_set_new(object, "value", number(i->value));
    json_object_set_new(object, "low", number(i->low));
    json_object_set_new(object, "high", number(i->high));
    return object;
}

static json_t *run_json(const stk_bench_run *run)
{
    json_t *object = json_object();
    json_object_set_new(object, "number", json_integer(run->number));
    json_object_set_new(object, "round", run->round >= 0 ? json_integer(run->round) : json_null());
    json_object_set_new(object, "warm_up", json_boolean(run->is_warmup));
    json_object_set_new(object, "counted", json_boolean(run->is_counted));
    json_object_set_new(object, "outlier", json_boolean(run->is_outlier));
    json_object_set_new(object, "marks", stk_bench_marks_json(run->marks));
    json_object_set_new(object, "at_s", number(run->at_s));
    json_object_set_new(object, "figure", number(run->figure));
    json_object_set_new(object, "wall_s", number(run->wall_s));
    json_object_set_new(object, "user_s", number(run->user_s));
    json_object_set_new(object, "system_s", number(run->system_s));
    json_object_set_new(object, "joules", number(run->joules));
    json_object_set_new(object, "gpu_joules", number(run->gpu_joules));
    json_object_set_new(object, "resident_kib", json_integer(run->resident_kb));
    json_object_set_new(object, "major_faults", json_integer(run->n_major_faults));
    json_object_set_new(object, "blocks_read", json_integer(run->n_blocks_read));
    json_object_set_new(object, "metrics", stk_bench_metrics_json(run->metric));
    json_object_set_new(object, "during", stk_bench_during_json(&run->during));
    return object;
}

static json_t *summary_json(const stk_bench_case *c)
{
    const stk_bench_summary *s = &c->summary;
    json_t *object = json_object(), *marks = json_object();
    json_object_set_new(object, "median", interval_json(&s->median));
    json_object_set_new(object, "confidence", json_real(0.95));
    json_object_set_new(object, "counted_runs", json_integer(s->n));
    json_object_set_new(object, "warm_up_runs", json_integer(s->n_warmup));
    json_object_set_new(object, "marked_runs", json_integer(s->n_marked));
    for (int i = 0; i < STK_BENCH_N_MARKS; i++)
        if (s->n_marks[i]) json_object_set_new(marks, stk_bench_mark_name(i), json_integer(s->n_marks[i]));
    json_object_set_new(object, "marks", marks);
    json_object_set_new(object, "outliers", json_integer(s->n_outliers));
    json_object_set_new(object, "outlier_below", number(s->low_fence));
    json_object_set_new(object, "outlier_above", number(s->high_fence));
    json_object_set_new(object, "mean", number(s->mean));
    json_object_set_new(object, "deviation", number(s->deviation));
    json_object_set_new(object, "least", number(s->least));
    json_object_set_new(object, "most", number(s->most));
    json_object_set_new(object, "first_quartile", number(s->first_quartile));
    json_object_set_new(object, "third_quartile", number(s->third_quartile));
    json_object_set_new(object, "trend", json_boolean(s->has_trend));
    json_object_set_new(object, "trend_share", number(s->trend_share));
    json_object_set_new(object, "trend_chance", number(s->trend_chance));
    json_object_set_new(object, "block_length", json_integer(s->block));
    json_object_set_new(object, "further_runs", s->n_further >= 0 ? json_integer(s->n_further) : json_null());
    json_object_set_new(object, "first_run_s", number(s->first_s));
    json_object_set_new(object, "wall_s", number(s->wall_s));
    json_object_set_new(object, "user_s", number(s->user_s));
    json_object_set_new(object, "system_s", number(s->system_s));
    json_object_set_new(object, "joules", number(s->joules));
    json_object_set_new(object, "gpu_joules", number(s->gpu_joules));
    json_object_set_new(object, "metrics", stk_bench_metrics_json(s->metric));
    json_object_set_new(object, "resident_kib", number(s->resident_kb));
    return object;
}

static json_t *case_json(const stk_bench_case *c)
{
    char shown[4096];
    json_t *object = json_object(), *words = json_array(), *runs = json_array();
    for (int i = 0; c->argv[i]; i++)
        json_array_append_new(words, json_string(stk_hide_secrets(c->argv[i], shown, sizeof(shown))));
    for (int i = 0; i < c->n_runs; i++)
        json_array_append_new(runs, run_json(&c->run[i]));
    json_object_set_new(object, "name", json_string(stk_hide_secrets(c->name, shown, sizeof(shown))));
    json_object_set_new(object, "about", c->about ? json_string(c->about) : json_null());
    json_object_set_new(object, "precision", c->precision ? json_string(c->precision) : json_null());
    json_object_set_new(object, "scaling", c->scaling ? json_string(c->scaling) : json_null());
    json_object_set_new(object, "replicas", json_integer(c->n_replicas > 0 ? c->n_replicas : 1));
    json_object_set_new(object, "command", words);
    json_object_set_new(object, "figure", json_string(c->file ? c->key : c->pattern ? c->pattern : "wall time"));
    json_object_set_new(object, "unit", json_string(c->unit));
    json_object_set_new(object, "better", json_string(c->less_is_better ? "less" : "more"));
    json_object_set_new(object, "peak", c->peak > 0 ? json_real(c->peak) : json_null());
    json_object_set_new(object, "summary", summary_json(c));
    json_object_set_new(object, "runs", runs);
    return object;
}

static json_t *comparison_json(const stk_bench_comparison *c)
{
    json_t *object = json_object();
    json_object_set_new(object, "from", json_integer(c->a));
    json_object_set_new(object, "to", json_integer(c->b));
    json_object_set_new(object, "paired", json_boolean(c->is_paired));
    json_object_set_new(object, "pairs", json_integer(c->n));
    json_object_set_new(object, "change", interval_json(&c->change));
    json_object_set_new(object, "change_99", interval_json(&c->decision));
    json_object_set_new(object, "share_better", number(c->share_better));
    json_object_set_new(object, "further_runs", c->n_further >= 0 ? json_integer(c->n_further) : json_null());
    json_object_set_new(object, "verdict", json_string(stk_bench_verdict_name(c->verdict)));
    return object;
}

static json_t *settings_json(const stk_bench *bench)
{
    const stk_bench_plan *p = &bench->plan;
    json_t *object = json_object();
    json_object_set_new(object, "precision", json_real(p->precision));
    json_object_set_new(object, "most_s", json_real(p->most_s));
    json_object_set_new(object, "least_s", json_real(p->least_s));
    json_object_set_new(object, "least_rounds", json_integer(p->least_rounds));
    json_object_set_new(object, "most_rounds", json_integer(p->most_rounds));
    json_object_set_new(object, "least_warm_ups", json_integer(p->least_warmups));
    json_object_set_new(object, "seed", json_integer((json_int_t)p->seed));
    json_object_set_new(object, "counts_marked", json_boolean(p->counts_marked));
    json_object_set_new(object, "ignores_failures", json_boolean(p->may_fail));
    return object;
}

json_t *stk_bench_result_json(const stk_bench *bench, const stk_bench_about *about)
{
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    json_t *root = json_object(), *cases = json_array(), *comparisons = json_array();
    if (gmtime_r(&now, &utc)) strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    for (int i = 0; i < bench->n_cases; i++)
        json_array_append_new(cases, case_json(&bench->cases[i]));
    for (int i = 0; i < about->n_comparisons; i++)
        json_array_append_new(comparisons, comparison_json(&about->comparison[i]));
    json_object_set_new(root, "schema", json_string(STK_BENCH_SCHEMA));
    json_object_set_new(root, "stoker", json_string(stk_version()));
    json_object_set_new(root, "name", json_string(about->name));
    json_object_set_new(root, "date", json_string(date));
    json_object_set_new(root, "settings", settings_json(bench));
    json_object_set(root, "machine", about->machine);
    json_object_set_new(root, "before", stk_bench_reading_json(&bench->before));
    json_object_set_new(root, "after", stk_bench_reading_json(&bench->after));
    json_object_set_new(root, "seconds", number(bench->seconds));
    json_object_set_new(root, "rounds", json_integer(bench->n_rounds));
    json_object_set_new(root, "disturbed", json_boolean(bench->is_disturbed));
    json_object_set_new(root, "ended", json_string(stk_bench_end_name(bench->end)));
    json_object_set_new(root, "energy",
                        json_string(bench->no_energy ? bench->no_energy : "RAPL, of the whole machine"));
    json_object_set_new(root, "left_out", about->left_out ? json_incref(about->left_out) : json_array());
    json_object_set_new(root, "cases", cases);
    json_object_set_new(root, "comparisons", comparisons);
    return root;
}

void stk_bench_result_csv(const stk_bench *bench, stk_text *out)
{
    char shown[4096];
    stk_text_add(out, "case,unit,run,round,warm_up,counted,outlier,marks,figure,wall_s,user_s,system_s,joules,"
                      "resident_kib,neighbour_cores,steal_share\n");
    for (int i = 0; i < bench->n_cases; i++) {
        const stk_bench_case *c = &bench->cases[i];
        for (int k = 0; k < c->n_runs; k++) {
            const stk_bench_run *run = &c->run[k];
            stk_bench_put_field(out, stk_hide_secrets(c->name, shown, sizeof(shown)));
            stk_text_add(out, ",");
            stk_bench_put_field(out, c->unit);
            stk_text_add(out, ",%d,%d,%d,%d,%d,\"", run->number, run->round, run->is_warmup, run->is_counted,
                         run->is_outlier);
            bool is_first = true;
            for (int m = 0; m < STK_BENCH_N_MARKS; m++) {
                if (!(run->marks >> m & 1)) continue;
                stk_text_add(out, "%s%s", is_first ? "" : " ", stk_bench_mark_name(m));
                is_first = false;
            }
            stk_text_add(out, "\",%.9g,%.9g,%.6f,%.6f,", run->figure, run->wall_s, run->user_s, run->system_s);
            if (isfinite(run->joules)) stk_text_add(out, "%.6g", run->joules);
            stk_text_add(out, ",%" PRId64 ",%.4g,%.4g\n", run->resident_kb, run->during.neighbour_cores,
                         run->during.steal_share);
        }
    }
}

static stk_status put_file(const char *folder, const char *name, const char *text, size_t n, json_t *hashes)
{
    char path[STK_NEW_FOLDER_PATH], hash[32];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, name));
    snprintf(hash, sizeof(hash), "%016" PRIx64, stk_hash64(text, n, 0));
    json_object_set_new(hashes, name, json_string(hash));
    return stk_file_write_durably(path, text, n);
}

static stk_status put_text(const char *folder, const char *name, stk_text *text, json_t *hashes)
{
    stk_status status = stk_text_status(text);
    if (status == STK_OK) status = put_file(folder, name, stk_text_get(text), text->n, hashes);
    stk_text_free(text);
    return status;
}

static stk_status put_files(const char *folder, const stk_bench *bench, const stk_bench_about *about)
{
    stk_text csv = {0}, markdown = {0};
    stk_bench_kept kept = {.path = ""};
    char *json = NULL, *list = NULL, path[STK_NEW_FOLDER_PATH];
    json_t *hashes = NULL;
    stk_status status = STK_OK;
    unsigned mark = stk_json_mark();
    STK_TRY(stk_json_print(stk_bench_result_json(bench, about), mark, JSON_INDENT(1), &json));
    mark = stk_json_mark();
    hashes = json_object();
    STK_TRY(put_file(folder, "result.json", json, strlen(json), hashes));
    stk_bench_result_csv(bench, &csv);
    STK_TRY(put_text(folder, "runs.csv", &csv, hashes));
    STK_TRY(stk_bench_kept_parse("result.json", json, strlen(json), &kept));
    stk_bench_table_report(&kept, &markdown);
    STK_TRY(put_text(folder, "report.md", &markdown, hashes));
    STK_TRY(stk_json_print(hashes, mark, JSON_INDENT(1), &list));
    hashes = NULL;
    STK_TRY(stk_path_join(path, sizeof(path), folder, "hashes.json"));
    STK_TRY(stk_file_write_durably(path, list, strlen(list)));
done:
    stk_bench_kept_free(&kept);
    json_decref(hashes);
    free(json);
    free(list);
    return status;
}

stk_status stk_bench_result_write(const char *folder, const stk_bench *bench, const stk_bench_about *about)
{
    stk_new_folder f = {.lock_fd = -1};
    stk_status status = STK_OK;
    STK_TRY(stk_new_folder_begin(&f, folder));
    STK_TRY(put_files(f.folder, bench, about));
    STK_TRY(stk_new_folder_finish(&f, false));
done:
    stk_new_folder_end(&f, status);
    return status;
}

/* --- reading --- */

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static stk_status read_case(const stk_bench_kept *kept, const json_t *from, stk_bench_kept_case *out)
{
    const json_t *runs = json_object_get(from, "runs"), *run;
    size_t i, n = json_array_size(runs);
    out->name = text_at(from, "name");
    out->unit = text_at(from, "unit");
    out->less_is_better = !strcmp(text_at(from, "better"), "less");
    out->figure = malloc((n + 1) * sizeof(double));
    if (!out->figure) return stk_fail_memory((n + 1) * sizeof(double));
    json_array_foreach(runs, i, run)
    {
        if (!json_is_true(json_object_get(run, "counted"))) continue;
        double x = json_number_value(json_object_get(run, "figure"));
        if (!(x > 0) || !isfinite(x))
            return stk_fail(STK_CORRUPT, "'%s': run %zu of '%s' has a figure that cannot be", kept->path, i, out->name);
        out->figure[out->n++] = x;
    }
    return STK_OK;
}

/* Of out->root, which it frees after an error. */
static stk_status take_root(stk_bench_kept *out)
{
    stk_status status = STK_OK;
    const json_t *cases, *from;
    size_t i;
    if (strcmp(text_at(out->root, "schema"), STK_BENCH_SCHEMA))
        STK_TRY(stk_fail(STK_CORRUPT, "'%s' is no result of 'stoker bench' (its schema is '%s', not '%s')", out->path,
                         text_at(out->root, "schema"), STK_BENCH_SCHEMA));
    out->is_disturbed = json_is_true(json_object_get(out->root, "disturbed"));
    cases = json_object_get(out->root, "cases");
    out->cases = calloc(json_array_size(cases) + 1, sizeof(*out->cases));
    if (!out->cases) STK_TRY(stk_fail_memory((json_array_size(cases) + 1) * sizeof(*out->cases)));
    json_array_foreach(cases, i, from)
    {
        STK_TRY(read_case(out, from, &out->cases[out->n_cases++]));
    }
done:
    if (status != STK_OK) stk_bench_kept_free(out);
    return status;
}

stk_status stk_bench_kept_read(const char *path, stk_bench_kept *out)
{
    memset(out, 0, sizeof(*out));
    if (stk_path_is_dir(path))
        STK_RETURN_IF_ERROR(stk_path_join(out->path, sizeof(out->path), path, "result.json"));
    else
        snprintf(out->path, sizeof(out->path), "%s", path);
    STK_RETURN_IF_ERROR(stk_json_read(out->path, 0, &out->root));
    return take_root(out);
}

stk_status stk_bench_kept_parse(const char *origin, const void *text, size_t n, stk_bench_kept *out)
{
    json_error_t error;
    memset(out, 0, sizeof(*out));
    snprintf(out->path, sizeof(out->path), "%s", origin);
    STK_RETURN_IF_ERROR(stk_json_parse(text, n, 0, &out->root, &error));
    return take_root(out);
}

void stk_bench_kept_free(stk_bench_kept *kept)
{
    for (int i = 0; i < kept->n_cases; i++)
        free(kept->cases[i].figure);
    free(kept->cases);
    json_decref(kept->root);
    kept->cases = NULL;
    kept->root = NULL;
    kept->n_cases = 0;
}

int stk_bench_kept_n_comparisons(const stk_bench_kept *kept)
{
    return (int)json_array_size(json_object_get(kept->root, "comparisons"));
}

static stk_bench_interval interval_at(const json_t *object, const char *key)
{
    const json_t *i = json_object_get(object, key);
    return (stk_bench_interval){stk_bench_number_at(i, "value"), stk_bench_number_at(i, "low"),
                                stk_bench_number_at(i, "high")};
}

bool stk_bench_kept_comparison(const stk_bench_kept *kept, int i, stk_bench_comparison *out)
{
    const json_t *from = json_array_get(json_object_get(kept->root, "comparisons"), (size_t)i);
    const char *verdict = text_at(from, "verdict");
    double a = stk_bench_number_at(from, "from"), b = stk_bench_number_at(from, "to"),
           further = stk_bench_number_at(from, "further_runs"), n_pairs = stk_bench_number_at(from, "pairs");
    if (!(a >= 0 && a < kept->n_cases && b >= 0 && b < kept->n_cases && n_pairs >= 0 && n_pairs < 1e9)) return false;
    *out = (stk_bench_comparison){.a = (int)a,
                                  .b = (int)b,
                                  .is_paired = json_is_true(json_object_get(from, "paired")),
                                  .change = interval_at(from, "change"),
                                  .decision = interval_at(from, "change_99"),
                                  .share_better = stk_bench_number_at(from, "share_better"),
                                  .n = (int)n_pairs,
                                  .n_further = further >= 0 && further < 1e15 ? (int64_t)further : -1,
                                  .verdict = !strcmp(verdict, stk_bench_verdict_name(1))    ? 1
                                             : !strcmp(verdict, stk_bench_verdict_name(-1)) ? -1
                                                                                            : 0};
    return true;
}

int stk_bench_kept_differences(const stk_bench_kept *a, const stk_bench_kept *b, stk_text *out)
{
    static const char *const keys[] = {"processor", "cores",     "usable_cores", "quota_cores",   "memory_kib",
                                       "governor",  "turbo_off", "kernel",       "nvidia_driver", "huge_pages",
                                       "gpus",      "gpu_modes", "libraries"};
    const json_t *first = json_object_get(a->root, "machine"), *second = json_object_get(b->root, "machine");
    int n = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_t *x = json_object_get(first, keys[i]), *y = json_object_get(second, keys[i]);
        if (!x || !y || json_equal(x, y)) continue; /* Results of earlier versions lack some. */
        char *shown_x = json_dumps(x, JSON_ENCODE_ANY), *shown_y = json_dumps(y, JSON_ENCODE_ANY);
        stk_text_add(out, "%s: %s and %s\n", keys[i], shown_x ? shown_x : "?", shown_y ? shown_y : "?");
        free(shown_x);
        free(shown_y);
        n++;
    }
    if (strcmp(text_at(a->root, "stoker"), text_at(b->root, "stoker"))) {
        stk_text_add(out, "stoker: %s and %s\n", text_at(a->root, "stoker"), text_at(b->root, "stoker"));
        n++;
    }
    return n;
}
