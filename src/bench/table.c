#include "bench/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/plain_number.h"
#include "bench/apart.h"
#include "bench/derived.h"
#include "bench/place.h"
#include "bench/tell.h"

/* The first words of each kind, by which one is known again. */
#define MARKDOWN_BEGIN "# Results of stoker bench"
#define CSV_BEGIN      "result,case,unit,better,"
#define JSON_BEGIN     "{\n \"schema\": \"" STK_BENCH_TABLE_SCHEMA "\""

static const struct {
    const char *name, *place;
} columns[] = {
#define X(name, place) {#name, place},
    STK_BENCH_COLUMNS(X)
#undef X
};

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static const json_t *case_at(const stk_bench_kept *kept, int i)
{
    return json_array_get(json_object_get(kept->root, "cases"), (size_t)i);
}

/* The comparison of case i with another that it ran in turns with. */
static bool find_comparison(const stk_bench_kept *kept, int i, stk_bench_comparison *out)
{
    for (int k = 0; k < stk_bench_kept_n_comparisons(kept); k++)
        if (stk_bench_kept_comparison(kept, k, out) && out->b == i) return true;
    return false;
}

/* What is known of two, or of one of them. */
static double sum_of_known(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

void stk_bench_row_read(const stk_bench_kept *kept, int i, double c[STK_BENCH_N_COLUMNS])
{
    const json_t *from = case_at(kept, i);
    double m[STK_BENCH_N_METRICS];
    stk_bench_use use;
    stk_bench_interval e;
    stk_bench_comparison comparison;
    for (int k = 0; k < STK_BENCH_N_COLUMNS; k++)
        c[k] = columns[k].place[0] ? stk_bench_number_at(from, columns[k].place) : NAN;
    if (!stk_bench_read_training(kept->root, from, m, &use))
        stk_bench_metrics_parse(NULL, m);
    else {
        c[STK_BENCH_COLUMN_flop_per_s] = use.flop_per_s;
        c[STK_BENCH_COLUMN_share_of_measured_peak] = use.of_measured;
        c[STK_BENCH_COLUMN_share_of_published_peak] = use.of_published;
    }
    double used = m[STK_BENCH_METRIC_gpu_bytes];
    c[STK_BENCH_COLUMN_used_bytes] = isfinite(used) ? used : m[STK_BENCH_METRIC_resident_bytes];
    c[STK_BENCH_COLUMN_replica_batch] = c[STK_BENCH_COLUMN_batch] / c[STK_BENCH_COLUMN_replicas];
    c[STK_BENCH_COLUMN_run_joules] =
        sum_of_known(stk_bench_number_at(from, "summary.joules"), stk_bench_number_at(from, "summary.gpu_joules"));
    c[STK_BENCH_COLUMN_sample_joules] =
        sum_of_known(m[STK_BENCH_METRIC_gpu_joules_per_sample], m[STK_BENCH_METRIC_cpu_joules_per_sample]);
    if (find_comparison(kept, i, &comparison)) {
        c[STK_BENCH_COLUMN_change] = comparison.change.value;
        c[STK_BENCH_COLUMN_change_low] = comparison.change.low;
        c[STK_BENCH_COLUMN_change_high] = comparison.change.high;
        c[STK_BENCH_COLUMN_pairs] = comparison.n;
    }
    if (stk_bench_scaling_of(kept, i, &e)) {
        c[STK_BENCH_COLUMN_efficiency] = e.value;
        c[STK_BENCH_COLUMN_efficiency_low] = e.low;
        c[STK_BENCH_COLUMN_efficiency_high] = e.high;
    }
}

/* --- CSV and JSON --- */

/* A row's words: with which case it was compared in turns, what could be said, and why it is an error; "": nothing. */
typedef struct row_words {
    const char *compared_with, *verdict, *error;
    char text[STK_BENCH_SENTENCE];
} row_words;

static void read_words(const stk_bench_kept *kept, int i, row_words *out)
{
    stk_bench_comparison c;
    bool is_compared = find_comparison(kept, i, &c);
    out->compared_with = is_compared ? kept->cases[c.a].name : "";
    out->verdict = is_compared ? stk_bench_verdict_name(c.verdict) : "";
    out->error = stk_bench_impossible(kept, i, out->text);
    if (!out->error) out->error = "";
}

void stk_bench_table_csv(const stk_bench_kept *kept, int n, const char *from, stk_text *out)
{
    double c[STK_BENCH_N_COLUMNS];
    char text[STK_BENCH_PLACE];
    row_words words;
    stk_text_add(out, CSV_BEGIN "precision,scaling");
    for (int k = 0; k < STK_BENCH_N_COLUMNS; k++)
        stk_text_add(out, ",%s", columns[k].name);
    stk_text_add(out, ",compared_with,verdict,error,disturbed,energy,date,raw,raw_case\n");
    for (int r = 0; r < n; r++)
        for (int i = 0; i < kept[r].n_cases; i++) {
            const json_t *row = case_at(&kept[r], i);
            const char *texts[] = {text_at(row, "name"), text_at(row, "unit"), text_at(row, "better"),
                                   text_at(row, "precision"), text_at(row, "scaling")};
            stk_bench_put_field(out, stk_bench_folder_of(&kept[r], text));
            for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
                stk_text_add(out, ",");
                stk_bench_put_field(out, texts[k]);
            }
            stk_bench_row_read(&kept[r], i, c);
            for (int k = 0; k < STK_BENCH_N_COLUMNS; k++) {
                stk_text_add(out, ",");
                stk_bench_put_number(out, c[k]);
            }
            read_words(&kept[r], i, &words);
            const char *more[] = {words.compared_with, words.verdict, words.error};
            for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
                stk_text_add(out, ",");
                stk_bench_put_field(out, more[k]);
            }
            stk_text_add(out, ",%d,", kept[r].is_disturbed);
            stk_bench_put_field(out, text_at(kept[r].root, "energy"));
            stk_text_add(out, ",");
            stk_bench_put_field(out, text_at(kept[r].root, "date"));
            stk_text_add(out, ",");
            stk_bench_put_field(out, stk_bench_raw_place(&kept[r], from, text));
            stk_text_add(out, ",%d\n", i);
        }
}

static void set_words(json_t *object, const char *key, const char *words)
{
    json_object_set_new(object, key, words[0] ? json_string(words) : json_null());
}

static json_t *row_json(const stk_bench_kept *kept, int i, const char *from)
{
    row_words words;
    static const char *const keys[] = {"unit", "better", "precision", "scaling"};
    double c[STK_BENCH_N_COLUMNS];
    char text[STK_BENCH_PLACE];
    const json_t *row = case_at(kept, i);
    json_t *object = json_object();
    json_object_set_new(object, "result", json_string(stk_bench_folder_of(kept, text)));
    json_object_set_new(object, "case", json_string(text_at(row, "name")));
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
        set_words(object, keys[k], text_at(row, keys[k]));
    stk_bench_row_read(kept, i, c);
    for (int k = 0; k < STK_BENCH_N_COLUMNS; k++)
        json_object_set_new(object, columns[k].name, isfinite(c[k]) ? json_real(c[k]) : json_null());
    read_words(kept, i, &words);
    set_words(object, "compared_with", words.compared_with);
    set_words(object, "verdict", words.verdict);
    set_words(object, "error", words.error);
    json_object_set_new(object, "disturbed", json_boolean(kept->is_disturbed));
    json_object_set_new(object, "energy", json_string(text_at(kept->root, "energy")));
    json_object_set_new(object, "date", json_string(text_at(kept->root, "date")));
    json_object_set_new(object, "raw", json_string(stk_bench_raw_place(kept, from, text)));
    json_object_set_new(object, "raw_case", json_integer(i));
    return object;
}

/* The cases that further results share with the first one. */
static stk_status compare_all(const stk_bench_kept *kept, int n, stk_bench_apart *apart)
{
    apart->allowance = STK_BENCH_ALLOWANCE;
    for (int i = 1; i < n; i++)
        STK_RETURN_IF_ERROR(stk_bench_apart_add(apart, &kept[0], &kept[i], false));
    return STK_OK;
}

stk_status stk_bench_table_json(const stk_bench_kept *kept, int n, const char *from, stk_text *out)
{
    stk_bench_apart apart = {0};
    char *text = NULL;
    stk_status status = STK_OK;
    STK_TRY(compare_all(kept, n, &apart));
    unsigned mark = stk_json_mark();
    json_t *root = json_object(), *rows = json_array();
    for (int r = 0; r < n; r++)
        for (int i = 0; i < kept[r].n_cases; i++)
            json_array_append_new(rows, row_json(&kept[r], i, from));
    json_object_set_new(root, "schema", json_string(STK_BENCH_TABLE_SCHEMA));
    json_object_set_new(root, "rows", rows);
    json_object_set_new(root, "allowance", json_real(apart.allowance));
    json_object_set_new(root, "comparisons", stk_bench_apart_json(&apart, from));
    STK_TRY(stk_json_print(root, mark, JSON_INDENT(1) | JSON_REAL_PRECISION(12), &text));
    stk_text_add(out, "%s\n", text);
    free(text);
    status = stk_text_status(out);
done:
    stk_bench_apart_free(&apart);
    return status;
}

/* --- Markdown --- */

/* How a column's number is shown. */
typedef enum style { NUMBER, SHARE, TIME, BYTES, KIB, GIGA, ENERGY } style;

static const char *number_text(double x, style how, char out[STK_BENCH_FIGURE])
{
    char text[STK_PLAIN_TEXT];
    if (!isfinite(x)) return how == ENERGY ? "not measured" : "-";
    if (how == SHARE)
        snprintf(out, STK_BENCH_FIGURE, "%.1f %%", 100 * x);
    else
        snprintf(out, STK_BENCH_FIGURE, "%s%s",
                 how == TIME    ? stk_plain_time(x, text)
                 : how == BYTES ? stk_plain_bytes(x, text)
                 : how == KIB   ? stk_plain_bytes(1024 * x, text)
                                : stk_plain_number(how == GIGA ? x * 1e-9 : x, text),
                 how == ENERGY ? " J" : "");
    return out;
}

typedef struct shown_column {
    const char *title;
    int column;
    style how;
} shown_column;

static const shown_column of_trainings[] = {{"Batch", STK_BENCH_COLUMN_batch, NUMBER},
                                            {"Step", STK_BENCH_COLUMN_step_s, TIME},
                                            {"First step", STK_BENCH_COLUMN_first_step_s, TIME},
                                            {"Epoch", STK_BENCH_COLUMN_epoch_s, TIME},
                                            {"GFLOP/s", STK_BENCH_COLUMN_flop_per_s, GIGA},
                                            {"Of the measured peak", STK_BENCH_COLUMN_share_of_measured_peak, SHARE},
                                            {"MFU (published peak)", STK_BENCH_COLUMN_share_of_published_peak, SHARE},
                                            {"Waits for data", STK_BENCH_COLUMN_input_share, SHARE},
                                            {"Memory, planned", STK_BENCH_COLUMN_planned_bytes, BYTES},
                                            {"Memory, in use", STK_BENCH_COLUMN_used_bytes, BYTES},
                                            {"Energy a sample", STK_BENCH_COLUMN_sample_joules, ENERGY},
                                            {"Test accuracy", STK_BENCH_COLUMN_test_accuracy, SHARE},
                                            {"Test loss", STK_BENCH_COLUMN_test_loss, NUMBER}};
static const shown_column of_scaling[] = {{"Replicas", STK_BENCH_COLUMN_replicas, NUMBER},
                                          {"Batch of each", STK_BENCH_COLUMN_replica_batch, NUMBER},
                                          {"Efficiency", STK_BENCH_COLUMN_efficiency, SHARE},
                                          {"from", STK_BENCH_COLUMN_efficiency_low, SHARE},
                                          {"to", STK_BENCH_COLUMN_efficiency_high, SHARE}};

/* A table of the cases of which `wanted` is known; nothing where there is none. */
static void put_columns(stk_text *out, const stk_bench_kept *kept, const char *place, int wanted, const char *title,
                        const shown_column *shown, size_t n)
{
    double c[STK_BENCH_N_COLUMNS];
    char text[STK_BENCH_FIGURE];
    bool has_head = false;
    for (int i = 0; i < kept->n_cases; i++) {
        const json_t *row = case_at(kept, i);
        stk_bench_row_read(kept, i, c);
        if (!isfinite(c[wanted])) continue;
        if (!has_head) {
            stk_text_add(out, "\n%s\n\n| Case | Products in |", title);
            for (size_t k = 0; k < n; k++)
                stk_text_add(out, " %s |", shown[k].title);
            stk_text_add(out, "\n|---|---|");
            for (size_t k = 0; k < n; k++)
                stk_text_add(out, "---:|");
            stk_text_add(out, "\n");
        }
        has_head = true;
        stk_text_add(out, "|");
        stk_bench_put_cell(out, text_at(row, "name"), place);
        stk_bench_put_cell(out, text_at(row, "precision"), NULL);
        for (size_t k = 0; k < n; k++)
            stk_bench_put_cell(out, number_text(c[shown[k].column], shown[k].how, text), place);
        stk_text_add(out, "\n");
    }
}

static void put_found(stk_text *out, const stk_bench_kept *kept, const char *place)
{
    double c[STK_BENCH_N_COLUMNS];
    char text[STK_BENCH_FIGURE], other[STK_BENCH_FIGURE], both[2 * STK_BENCH_FIGURE + 8];
    static const shown_column more[] = {
        {"Runs", STK_BENCH_COLUMN_counted_runs, NUMBER}, {"Marked", STK_BENCH_COLUMN_marked_runs, NUMBER},
        {"Outliers", STK_BENCH_COLUMN_outliers, NUMBER}, {"First run", STK_BENCH_COLUMN_first_run_s, TIME},
        {"Memory", STK_BENCH_COLUMN_resident_kib, KIB},  {"Energy a run", STK_BENCH_COLUMN_run_joules, ENERGY}};
    stk_text_add(out, "| Case | Median | 95 %% interval |");
    for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++)
        stk_text_add(out, " %s |", more[k].title);
    stk_text_add(out, "\n|---|---:|---:|");
    for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++)
        stk_text_add(out, "---:|");
    stk_text_add(out, "\n");
    for (int i = 0; i < kept->n_cases; i++) {
        const json_t *row = case_at(kept, i);
        const char *unit = text_at(row, "unit");
        stk_bench_row_read(kept, i, c);
        stk_text_add(out, "|");
        stk_bench_put_cell(out, text_at(row, "name"), place);
        stk_bench_put_cell(out, stk_bench_figure_text(c[STK_BENCH_COLUMN_median], unit, text), place);
        snprintf(both, sizeof(both), "%s to %s", stk_bench_figure_text(c[STK_BENCH_COLUMN_low], unit, text),
                 stk_bench_figure_text(c[STK_BENCH_COLUMN_high], unit, other));
        stk_bench_put_cell(out, isfinite(c[STK_BENCH_COLUMN_low]) ? both : "too few runs", place);
        for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++)
            stk_bench_put_cell(out, number_text(c[more[k].column], more[k].how, text), place);
        stk_text_add(out, "\n");
    }
}

static void put_item(stk_text *out, const char *line)
{
    stk_text_add(out, "- ");
    stk_bench_put_text(out, line);
    stk_text_add(out, "\n");
}

/* What can be said of cases that ran in turns, and what cannot be. */
static void put_verdicts(stk_text *out, const stk_bench_kept *kept)
{
    char sentence[STK_BENCH_SENTENCE];
    stk_bench_comparison c;
    const char *begin = "\nWhich is faster, run in turns:\n\n";
    for (int i = 0; i < stk_bench_kept_n_comparisons(kept); i++) {
        if (!stk_bench_kept_comparison(kept, i, &c)) continue;
        stk_text_add(out, "%s", begin);
        put_item(out, stk_bench_kept_verdict_text(kept, &c, sentence));
        begin = "";
    }
    begin = "\n**Errors:**\n\n";
    for (int i = 0; i < kept->n_cases; i++) {
        if (!stk_bench_impossible(kept, i, sentence)) continue;
        stk_text_add(out, "%s- ", begin);
        stk_bench_put_text(out, kept->cases[i].name);
        stk_text_add(out, ": %s\n", sentence);
        begin = "";
    }
}

static void put_result(stk_text *out, const stk_bench_kept *kept, const char *place)
{
    double n_cores = stk_bench_number_at(kept->root, "machine.cores");
    stk_bench_put_text(out, text_at(json_object_get(kept->root, "machine"), "processor"));
    if (isfinite(n_cores)) stk_text_add(out, ", %.0f cores", n_cores);
    stk_text_add(out, "; ");
    stk_bench_put_text(out, text_at(kept->root, "date"));
    stk_text_add(out, "; Stoker ");
    stk_bench_put_text(out, text_at(kept->root, "stoker"));
    stk_text_add(out, "; energy: ");
    stk_bench_put_text(out, text_at(kept->root, "energy"));
    stk_text_add(out, ".%s\n\n", kept->is_disturbed ? " **Disturbed: something else had a part in most rounds.**" : "");
    put_found(out, kept, place);
    put_columns(out, kept, place, STK_BENCH_COLUMN_step_s, "What trainings made of the machine:", of_trainings,
                sizeof(of_trainings) / sizeof(of_trainings[0]));
    put_columns(out, kept, place, STK_BENCH_COLUMN_efficiency, "Scaling:", of_scaling,
                sizeof(of_scaling) / sizeof(of_scaling[0]));
    put_verdicts(out, kept);
    stk_text_add(out, "\nHow far it can be trusted:\n\n");
    stk_bench_trust(kept, put_item, out);
}

void stk_bench_table_report(const stk_bench_kept *kept, stk_text *out)
{
    stk_text_add(out, MARKDOWN_BEGIN ": ");
    stk_bench_put_text(out, text_at(kept->root, "name"));
    stk_text_add(out, "\n\n");
    put_result(out, kept, "runs.csv");
}

stk_status stk_bench_table_markdown(const stk_bench_kept *kept, int n, const char *from, stk_text *out)
{
    stk_bench_apart apart = {0};
    char folder[STK_BENCH_PLACE], place[STK_BENCH_PLACE];
    stk_text_add(out, MARKDOWN_BEGIN "\n\nCells lead to the raw runs.\n");
    for (int r = 0; r < n; r++) {
        stk_bench_raw_place(&kept[r], from, place);
        stk_text_add(out, "\n## ");
        stk_bench_put_text(out, stk_bench_folder_of(&kept[r], folder));
        stk_text_add(out, "\n\n");
        put_result(out, &kept[r], place);
    }
    stk_status status = compare_all(kept, n, &apart);
    if (status == STK_OK && apart.n) {
        stk_text_add(out, "\n## Next to each other\n\n");
        stk_bench_apart_markdown(&apart, from, out);
        stk_text_add(out, "\nMeasured apart: less than %.3g %% is not told.\n", 100 * apart.allowance);
    }
    stk_bench_apart_free(&apart);
    return status == STK_OK ? stk_text_status(out) : status;
}

/* --- files --- */

typedef enum kind { MARKDOWN, CSV, JSON, N_KINDS } kind;
static const struct {
    const char *ending, *begin, *what;
} kinds[] = {[MARKDOWN] = {".md", MARKDOWN_BEGIN, "a table of 'stoker report --bench' in Markdown"},
             [CSV] = {".csv", CSV_BEGIN, "a table of 'stoker report --bench' in CSV"},
             [JSON] = {".json", JSON_BEGIN, "a table of 'stoker report --bench' in JSON"}};

static kind kind_of(const char *path)
{
    size_t n = strlen(path);
    kind k = MARKDOWN;
    while (k < N_KINDS &&
           !(n > strlen(kinds[k].ending) && !strcmp(path + n - strlen(kinds[k].ending), kinds[k].ending)))
        k++;
    return k;
}

bool stk_bench_is_table(const char *path)
{
    return kind_of(path) != N_KINDS;
}

stk_status stk_bench_table_write(const stk_bench_kept *kept, int n, const stk_bench_prices *prices, const char *path)
{
    stk_text out = {0};
    stk_status status = STK_OK;
    kind k = kind_of(path);
    if (k == N_KINDS) return stk_fail(STK_UNSUPPORTED, "'%s' ends neither in .md nor in .csv nor in .json", path);
    if (prices && k != MARKDOWN)
        return stk_fail(STK_UNSUPPORTED,
                        "prices stand on pages and in Markdown; for programs: stoker bench cost PRICES DIR --json");
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(path, kinds[k].what, 0, kinds[k].begin, strlen(kinds[k].begin)));
    STK_TRY(stk_dir_check_for(path));
    if (k == CSV)
        stk_bench_table_csv(kept, n, path, &out);
    else if (k == JSON)
        STK_TRY(stk_bench_table_json(kept, n, path, &out));
    else
        STK_TRY(stk_bench_table_markdown(kept, n, path, &out));
    if (prices) {
        stk_text_add(&out, "\n## What the money buys\n\n");
        stk_bench_prices_tell(prices, &out);
    }
    STK_TRY(stk_text_status(&out));
    STK_TRY(stk_file_write_durably(path, stk_text_get(&out), out.n));
done:
    stk_text_free(&out);
    return status;
}
