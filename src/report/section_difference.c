/* What kernels take longer in one run than in the first, by op and layer. See report/sections.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/chart.h"
#include "report/sections.h"
#include "stoker/observe/report.h"

enum { MOST_ROWS = 20 };

/* Of an op in a layer; texts borrowed. */
typedef struct difference {
    const char *op, *layer;
    double s[STK_MOST_REPORTED]; /* of a step of each run; NAN: not among its longest */
    double most;                 /* by which one differs from the first */
} difference;

typedef struct differences {
    difference *row;
    size_t n;
} differences;

static difference *find_row(differences *d, const char *op, const char *layer)
{
    for (size_t i = 0; i < d->n; i++)
        if (!strcmp(d->row[i].op, op) && !strcmp(d->row[i].layer, layer)) return &d->row[i];
    difference *row = &d->row[d->n++];
    *row = (difference){op, layer, {0}, 0};
    for (int i = 0; i < STK_MOST_REPORTED; i++)
        row->s[i] = NAN;
    return row;
}

static double or_zero(double x)
{
    return isfinite(x) ? x : 0;
}

static int by_most(const void *a, const void *b)
{
    double x = ((const difference *)a)->most, y = ((const difference *)b)->most;
    return (x < y) - (x > y);
}

static stk_status collect(const stk_run_data *run, int n, differences *d)
{
    size_t n_kernels = 0, k;
    const json_t *kernel;
    for (int i = 0; i < n; i++)
        n_kernels += json_array_size(stk_json_find(run[i].profile, "kernels"));
    d->row = calloc(n_kernels + 1, sizeof(*d->row));
    if (!d->row) return stk_fail_memory((n_kernels + 1) * sizeof(*d->row));
    for (int i = 0; i < n; i++)
        json_array_foreach(stk_json_find(run[i].profile, "kernels"), k, kernel)
        {
            difference *row = find_row(d, stk_json_text(kernel, "op"), stk_json_text(kernel, "layer"));
            row->s[i] = or_zero(row->s[i]) + or_zero(stk_json_number(kernel, "s"));
        }
    for (size_t r = 0; r < d->n; r++)
        for (int i = 1; i < n; i++)
            d->row[r].most = fmax(d->row[r].most, fabs(or_zero(d->row[r].s[i]) - or_zero(d->row[r].s[0])));
    qsort(d->row, d->n, sizeof(*d->row), by_most);
    return STK_OK;
}

static void add_change(stk_text *out, double s, double first)
{
    char text[STK_SHORT_TEXT];
    double change = or_zero(s) - or_zero(first);
    stk_text_add(out, "<td class=n>%s%s</td>", change < 0 ? "−" : "+", stk_short_time(fabs(change), text));
}

static void add_table(stk_text *out, const stk_run_data *run, int n, const differences *d)
{
    char text[STK_SHORT_TEXT];
    stk_text_add(out,
                 "<section><h2>Where a step's time differs</h2><p class=dim>Kernels by op and layer, of the longest "
                 "of each run, with the largest difference from the first run on top. –: not among them.</p>\n"
                 "<table><tr><th>op</th><th>layer</th>");
    for (int i = 0; i < n; i++) {
        stk_text_add(out, "<th class=n><i style=\"background:var(--s%d)\"></i>", i);
        stk_html_add(out, stk_run_data_name(&run[i]));
        stk_text_add(out, "</th>%s", i ? "<th class=n>more</th>" : "");
    }
    stk_text_add(out, "</tr>\n");
    for (size_t r = 0; r < d->n && r < MOST_ROWS; r++) {
        stk_text_add(out, "<tr><td>");
        stk_html_add(out, d->row[r].op);
        stk_text_add(out, "</td><td>");
        stk_html_add(out, d->row[r].layer);
        stk_text_add(out, "</td>");
        for (int i = 0; i < n; i++) {
            stk_text_add(out, "<td class=n>%s</td>",
                         isfinite(d->row[r].s[i]) ? stk_short_time(d->row[r].s[i], text) : "–");
            if (i) add_change(out, d->row[r].s[i], d->row[r].s[0]);
        }
        stk_text_add(out, "</tr>\n");
    }
    stk_text_add(out, "</table></section>\n");
}

stk_status stk_section_difference(stk_text *out, const stk_run_data *run, int n)
{
    differences d = {NULL, 0};
    if (n < 2) return STK_OK;
    STK_RETURN_IF_ERROR(collect(run, n, &d));
    if (d.n > 0) add_table(out, run, n, &d);
    free(d.row);
    return STK_OK;
}
