#include "bench/apart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/place.h"
#include "bench/tell.h"

/* The number of the case of that name; where both results have one alone, 0. -1: there is none. */
static int find_case(const stk_bench_kept *kept, const char *name, bool is_only)
{
    if (is_only && kept->n_cases == 1) return 0;
    for (int i = 0; i < kept->n_cases; i++)
        if (!strcmp(kept->cases[i].name, name)) return i;
    return -1;
}

stk_status stk_bench_apart_add(stk_bench_apart *apart, const stk_bench_kept *a, const stk_bench_kept *b, bool is_strict)
{
    int n_before = apart->n;
    for (int i = 0; i < a->n_cases; i++) {
        const stk_bench_kept_case *first = &a->cases[i];
        int k = find_case(b, first->name, a->n_cases == 1);
        if (k < 0) continue;
        const stk_bench_kept_case *second = &b->cases[k];
        if (strcmp(first->unit, second->unit) || first->less_is_better != second->less_is_better) {
            if (!is_strict) continue;
            return stk_fail(STK_MISMATCH, "'%s' is measured in %s in '%s' and in %s in '%s'", first->name, first->unit,
                            a->path, second->unit, b->path);
        }
        size_t bytes = ((size_t)apart->n + 1) * sizeof(*apart->row);
        stk_bench_apart_row *row = realloc(apart->row, bytes);
        if (!row) return stk_fail_memory(bytes);
        apart->row = row;
        row += apart->n;
        *row = (stk_bench_apart_row){.a = a, .b = b, .i_a = i, .i_b = k};
        STK_RETURN_IF_ERROR(stk_bench_compare_apart(first->figure, first->n, second->figure, second->n,
                                                    first->less_is_better, apart->allowance, &row->comparison));
        apart->n++;
    }
    if (is_strict && apart->n == n_before)
        return stk_fail(STK_MISMATCH, "'%s' and '%s' have no case in common", a->path, b->path);
    return STK_OK;
}

void stk_bench_apart_free(stk_bench_apart *apart)
{
    free(apart->row);
    apart->row = NULL;
    apart->n = 0;
}

const char *stk_bench_apart_name(const stk_bench_apart_row *r, char out[STK_BENCH_PLACE])
{
    const char *a = r->a->cases[r->i_a].name, *b = r->b->cases[r->i_b].name;
    if (!strcmp(a, b)) return a;
    snprintf(out, STK_BENCH_PLACE, "%.200s -> %.200s", a, b);
    return out;
}

static double median_of(const stk_bench_kept *kept, int i_case)
{
    const json_t *from = json_array_get(json_object_get(kept->root, "cases"), (size_t)i_case);
    return stk_bench_number_at(from, "summary.median.value");
}

/* The change as a share, of the figure. */
static const char *change_text(const stk_bench_comparison *c, char out[64])
{
    if (isfinite(c->change.low))
        snprintf(out, 64, "%+.2f %% (%+.2f to %+.2f)", 100 * c->change.value, 100 * c->change.low,
                 100 * c->change.high);
    else
        snprintf(out, 64, "%+.2f %%, too few runs", 100 * c->change.value);
    return out;
}

void stk_bench_apart_markdown(const stk_bench_apart *apart, const char *from, stk_text *out)
{
    char name[STK_BENCH_PLACE], folder[2][STK_BENCH_PLACE], place[2][STK_BENCH_PLACE], figure[STK_BENCH_FIGURE],
        change[64];
    stk_text_add(out, "| Case | From | To | From, median | To, median | Change (95 %%) | What can be said |\n"
                      "|---|---|---|---:|---:|---:|---|\n");
    for (int i = 0; i < apart->n; i++) {
        const stk_bench_apart_row *r = &apart->row[i];
        const stk_bench_kept_case *c = &r->a->cases[r->i_a];
        stk_bench_raw_place(r->a, from, place[0]);
        stk_bench_raw_place(r->b, from, place[1]);
        stk_text_add(out, "|");
        stk_bench_put_cell(out, stk_bench_apart_name(r, name), place[0]);
        stk_bench_put_cell(out, stk_bench_folder_of(r->a, folder[0]), place[0]);
        stk_bench_put_cell(out, stk_bench_folder_of(r->b, folder[1]), place[1]);
        stk_bench_put_cell(out, stk_bench_figure_text(median_of(r->a, r->i_a), c->unit, figure), place[0]);
        stk_bench_put_cell(out, stk_bench_figure_text(median_of(r->b, r->i_b), c->unit, figure), place[1]);
        stk_bench_put_cell(out, change_text(&r->comparison, change), place[1]);
        stk_bench_put_cell(out, stk_bench_verdict_name(r->comparison.verdict), NULL);
        stk_text_add(out, "\n");
    }
}

void stk_bench_apart_csv(const stk_bench_apart *apart, const char *from, stk_text *out)
{
    char text[STK_BENCH_PLACE];
    stk_text_add(out, "case,unit,from,to,from_median,to_median,change,low,high,verdict,share_better,runs,further_runs,"
                      "allowance,from_raw,from_case,to_raw,to_case\n");
    for (int i = 0; i < apart->n; i++) {
        const stk_bench_apart_row *r = &apart->row[i];
        const stk_bench_comparison *c = &r->comparison;
        const double numbers[] = {median_of(r->a, r->i_a), median_of(r->b, r->i_b), c->change.value, c->change.low,
                                  c->change.high};
        const double more[] = {c->share_better, c->n, c->n_further >= 0 ? (double)c->n_further : NAN, apart->allowance};
        stk_bench_put_field(out, stk_bench_apart_name(r, text));
        stk_text_add(out, ",");
        stk_bench_put_field(out, r->a->cases[r->i_a].unit);
        stk_text_add(out, ",");
        stk_bench_put_field(out, stk_bench_folder_of(r->a, text));
        stk_text_add(out, ",");
        stk_bench_put_field(out, stk_bench_folder_of(r->b, text));
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
            stk_text_add(out, ",");
            stk_bench_put_number(out, numbers[k]);
        }
        stk_text_add(out, ",\"%s\"", stk_bench_verdict_name(c->verdict));
        for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
            stk_text_add(out, ",");
            stk_bench_put_number(out, more[k]);
        }
        stk_text_add(out, ",");
        stk_bench_put_field(out, stk_bench_raw_place(r->a, from, text));
        stk_text_add(out, ",%d,", r->i_a);
        stk_bench_put_field(out, stk_bench_raw_place(r->b, from, text));
        stk_text_add(out, ",%d\n", r->i_b);
    }
}

static void set_number(json_t *object, const char *key, double x)
{
    json_object_set_new(object, key, isfinite(x) ? json_real(x) : json_null());
}

json_t *stk_bench_apart_json(const stk_bench_apart *apart, const char *from)
{
    char text[STK_BENCH_PLACE];
    json_t *list = json_array();
    for (int i = 0; i < apart->n; i++) {
        const stk_bench_apart_row *r = &apart->row[i];
        const stk_bench_comparison *c = &r->comparison;
        json_t *object = json_object();
        json_object_set_new(object, "from", json_string(r->a->path));
        json_object_set_new(object, "to", json_string(r->b->path));
        json_object_set_new(object, "case", json_string(stk_bench_apart_name(r, text)));
        json_object_set_new(object, "unit", json_string(r->a->cases[r->i_a].unit));
        set_number(object, "from_median", median_of(r->a, r->i_a));
        set_number(object, "to_median", median_of(r->b, r->i_b));
        json_object_set_new(object, "verdict", json_string(stk_bench_verdict_name(c->verdict)));
        set_number(object, "change", c->change.value);
        set_number(object, "low", c->change.low);
        set_number(object, "high", c->change.high);
        set_number(object, "share_better", c->share_better);
        json_object_set_new(object, "runs", json_integer(c->n));
        json_object_set_new(object, "further_runs", json_integer((json_int_t)c->n_further));
        json_object_set_new(object, "from_raw", json_string(stk_bench_raw_place(r->a, from, text)));
        json_object_set_new(object, "from_case", json_integer(r->i_a));
        json_object_set_new(object, "to_raw", json_string(stk_bench_raw_place(r->b, from, text)));
        json_object_set_new(object, "to_case", json_integer(r->i_b));
        json_array_append_new(list, object);
    }
    return list;
}
