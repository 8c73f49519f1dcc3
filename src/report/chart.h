/* Charts as SVG inside of HTML: colours come from the page's style, so that they follow light and dark. What a page's
 * script (chart_script.js) has to know of them is in their data-* attributes. */
#ifndef STK_REPORT_CHART_H
#define STK_REPORT_CHART_H

#include <stdbool.h>

#include "base/text.h"

/* Text with &, <, > and quotes replaced; bytes that are not UTF-8 as question marks. */
void stk_html_add(stk_text *out, const char *text);
/* 12345678 -> "12.3 M": three digits and a unit. Returns out. */
enum { STK_SHORT_TEXT = 32 };
const char *stk_short_number(double x, char out[STK_SHORT_TEXT]);
const char *stk_short_bytes(double x, char out[STK_SHORT_TEXT]);
const char *stk_short_time(double s, char out[STK_SHORT_TEXT]);

/* A line through points with finite x and y, in colour number `color` from 0. */
typedef struct stk_series {
    const double *x, *y;
    int n, color;
    bool faint;        /* behind the others: single steps */
    bool dots;         /* each point shows, and one that is missing parts the line */
    const char *label; /* NULL: not in the legend */
} stk_series;
typedef struct stk_chart {
    const char *title, *x_label;
    const stk_series *series;
    int n_series;
    bool from_zero, percent;
} stk_chart;
/* Nothing where no point is finite. */
void stk_chart_add(stk_text *out, const stk_chart *chart);

/* A bar of parts that add up to 1, each with its colour. */
typedef struct stk_part {
    const char *name;
    double share;
    int color;
} stk_part;
void stk_parts_add(stk_text *out, const stk_part *part, int n);

#endif
