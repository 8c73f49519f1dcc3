/* See report/chart.h. */
#include "report/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

enum { WIDTH = 560, HEIGHT = 240, LEFT = 54, RIGHT = 12, TOP = 10, BOTTOM = 34, MOST_POINTS = 500, MOST_TICKS = 16 };

void stk_html_add(stk_text *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int n = stk_character_bytes(p);
        const char *entity = *p == '&'   ? "&amp;"
                             : *p == '<' ? "&lt;"
                             : *p == '>' ? "&gt;"
                             : *p == '"' ? "&quot;"
                                         : NULL;
        char one[5] = {0};
        memcpy(one, p, n ? (size_t)n : 1);
        if (entity)
            stk_text_add(out, "%s", entity);
        else if (*p != '\n' && stk_is_unprintable(p, n))
            stk_text_add_printable(out, one);
        else
            stk_text_add_bytes(out, p, (size_t)n);
        p += n ? n : 1;
    }
}

/* --- numbers --- */

static const char *scale(double x, double base, const char *const *units, int n_units, char out[STK_SHORT_TEXT])
{
    int i = 0;
    if (!isfinite(x)) {
        snprintf(out, STK_SHORT_TEXT, "–");
        return out;
    }
    while (i + 1 < n_units && fabs(x) >= base * 0.9995) {
        x /= base;
        i++;
    }
    int digits = fabs(x) >= 99.95 || x == floor(x) ? 0 : fabs(x) >= 9.995 ? 1 : 2;
    snprintf(out, STK_SHORT_TEXT, "%.*f%s%s", digits, x, units[i][0] ? " " : "", units[i]);
    return out;
}

const char *stk_short_number(double x, char out[STK_SHORT_TEXT])
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    if (isfinite(x) && x != 0 && fabs(x) < 0.095) {
        snprintf(out, STK_SHORT_TEXT, "%.3g", x);
        return out;
    }
    return scale(x, 1000, units, 5, out);
}

const char *stk_short_bytes(double x, char out[STK_SHORT_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return scale(x, 1024, units, 5, out);
}

const char *stk_short_time(double s, char out[STK_SHORT_TEXT])
{
    static const char *const units[] = {"ns", "µs", "ms", "s"};
    return scale(s * 1e9, 1000, units, 4, out);
}

/* --- lines --- */

typedef struct frame {
    double x0, x1, y0, y1;
} frame;

static double to_x(const frame *f, double x)
{
    return LEFT + (x - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

static double to_y(const frame *f, double y)
{
    return HEIGHT - BOTTOM - (y - f->y0) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

/* The round step with about `n` of them in the range. */
static double find_step(double range, int n)
{
    double raw = range / n, power = pow(10, floor(log10(raw))), lead = raw / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

/* A range that is too narrow for ticks that differ, as numbers of its size are rounded. */
static void widen(double *from, double *to, double by)
{
    double size = fmax(fabs(*from), fabs(*to));
    if (*to - *from <= 1e-9 * size || *to == *from) *to = *from + fmax(by, 1e-9 * size);
}

static bool find_frame(const stk_chart *chart, frame *out)
{
    frame f = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int s = 0; s < chart->n_series; s++)
        for (int i = 0; i < chart->series[s].n; i++) {
            double x = chart->series[s].x[i], y = chart->series[s].y[i];
            if (!isfinite(x) || !isfinite(y)) continue;
            f.x0 = fmin(f.x0, x);
            f.x1 = fmax(f.x1, x);
            f.y0 = fmin(f.y0, y);
            f.y1 = fmax(f.y1, y);
        }
    if (!(f.x0 <= f.x1)) return false;
    if (chart->from_zero && f.y0 > 0) f.y0 = 0;
    widen(&f.x0, &f.x1, 1);
    widen(&f.y0, &f.y1, f.y0 != 0 ? fabs(f.y0) : 1);
    if (!isfinite(f.x1 - f.x0) || !isfinite(2 * (f.y1 - f.y0))) return false; /* beyond what can be drawn */
    double step = find_step(f.y1 - f.y0, 4);
    if (!(step > 0)) return false;
    f.y0 = floor(f.y0 / step + 1e-9) * step;
    f.y1 = ceil(f.y1 / step - 1e-9) * step;
    *out = f;
    return true;
}

/* Of numbers that are that far apart. */
static int digits_of(double step)
{
    return (int)fmin(9, fmax(0, ceil(-log10(step) - 1e-9)));
}

/* All ticks of an axis in one unit and with as many digits as its step has. most: the largest of them. */
static const char *show_tick(double x, double step, double most, char out[STK_SHORT_TEXT])
{
    static const char *const units[] = {"", " k", " M", " G", " T"};
    int i = 0;
    if (most < 1e-4) {
        snprintf(out, STK_SHORT_TEXT, "%.3g", x);
        return out;
    }
    for (; i + 1 < 5 && most >= 9999.5; i++) {
        most /= 1000;
        step /= 1000;
        x /= 1000;
    }
    snprintf(out, STK_SHORT_TEXT, "%.*f%s", digits_of(step), x, x == 0 ? "" : units[i]);
    return out;
}

static void add_axes(stk_text *out, const stk_chart *chart, const frame *f)
{
    char text[STK_SHORT_TEXT];
    double step = find_step(f->y1 - f->y0, 4), most = fmax(fabs(f->y0), fabs(f->y1));
    for (int i = 0; i <= MOST_TICKS && f->y0 + i * step <= f->y1 + step / 2; i++) {
        double y = f->y0 + i * step, at = to_y(f, y), shown = fabs(y) < step * 1e-6 ? 0 : y;
        if (chart->percent)
            snprintf(text, sizeof(text), "%.*f %%", digits_of(100 * step), 100 * shown);
        else
            show_tick(shown, step, most, text);
        stk_text_add(out, "<line class=grid x1=%d x2=%d y1=%.1f y2=%.1f />", LEFT, WIDTH - RIGHT, at, at);
        stk_text_add(out, "<text class=tick data-along=y data-at=%.1f text-anchor=end x=%d y=%.1f>%s</text>", at,
                     LEFT - 6, at + 4, text);
    }
    step = find_step(f->x1 - f->x0, 6);
    if (step < 1) step = 1;
    double first = ceil(f->x0 / step) * step;
    for (int i = 0; i <= MOST_TICKS && first + i * step <= f->x1 + step * 1e-6; i++) {
        double x = first + i * step, at = to_x(f, x);
        stk_text_add(out, "<text class=tick data-along=x data-at=%.1f text-anchor=middle x=%.1f y=%d>%s</text>", at, at,
                     HEIGHT - BOTTOM + 16, show_tick(x, step, fmax(fabs(f->x0), fabs(f->x1)), text));
    }
    stk_text_add(out, "<text class=tick text-anchor=end x=%d y=%d>%s</text>", WIDTH - RIGHT, HEIGHT - 3,
                 chart->x_label);
}

/* Many points become the means of as many stretches as a screen can show. */
static void add_line(stk_text *out, const stk_series *s, const frame *f)
{
    int each = (s->n + MOST_POINTS - 1) / MOST_POINTS, n_shown = 0;
    if (each < 1) each = 1;
    double last_x = 0, last_y = 0;
    bool parted = true;
    stk_text_add(out, "<path class=\"line%s\" style=\"stroke:var(--s%d)\" data-name=\"", s->faint ? " faint" : "",
                 s->color % 8);
    stk_html_add(out, s->label ? s->label : "");
    stk_text_add(out, "\" d=\"");
    for (int i = 0; i < s->n; i += each) {
        double x = 0, y = 0;
        int n = 0;
        for (int k = i; k < i + each && k < s->n; k++)
            if (isfinite(s->x[k]) && isfinite(s->y[k])) {
                x += s->x[k];
                y += s->y[k];
                n++;
            }
        parted |= n == 0 && s->dots;
        if (n == 0) continue;
        last_x = to_x(f, x / n);
        last_y = to_y(f, y / n);
        stk_text_add(out, "%c%.1f %.1f", parted ? 'M' : 'L', last_x, last_y);
        if (parted && s->dots) stk_text_add(out, "h0"); /* a point alone shows */
        parted = false;
        n_shown++;
    }
    stk_text_add(out, "\"/>");
    if (n_shown == 1 && !s->faint)
        stk_text_add(out, "<circle r=3.5 cx=%.1f cy=%.1f style=\"fill:var(--s%d)\"/>", last_x, last_y, s->color % 8);
    for (int i = 0; s->dots && i < s->n && s->n <= 100; i++) {
        char a[STK_SHORT_TEXT], b[STK_SHORT_TEXT];
        if (!isfinite(s->x[i]) || !isfinite(s->y[i])) continue;
        stk_text_add(out, "<circle r=3 cx=%.1f cy=%.1f style=\"fill:var(--s%d)\"><title>", to_x(f, s->x[i]),
                     to_y(f, s->y[i]), s->color % 8);
        stk_html_add(out, s->label ? s->label : "");
        stk_text_add(out, " %s at %s</title></circle>", stk_short_number(s->y[i], a), stk_short_number(s->x[i], b));
    }
}

void stk_chart_add(stk_text *out, const stk_chart *chart)
{
    frame f;
    int n_labels = 0;
    if (!find_frame(chart, &f)) return;
    stk_text_add(out, "<figure><figcaption>");
    stk_html_add(out, chart->title);
    stk_text_add(out,
                 "</figcaption><svg class=chart data-frame=\"%.17g %.17g %.17g %.17g\" data-box=\"%d %d %d %d\"%s "
                 "data-axis=\"",
                 f.x0, f.x1, f.y0, f.y1, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM,
                 chart->percent ? " data-percent" : "");
    stk_html_add(out, chart->x_label);
    stk_text_add(out, "\" viewBox=\"0 0 %d %d\" role=img aria-label=\"", WIDTH, HEIGHT);
    stk_html_add(out, chart->title);
    stk_text_add(out, "\">");
    add_axes(out, chart, &f);
    for (int pass = 0; pass < 2; pass++)
        for (int s = 0; s < chart->n_series; s++)
            if (chart->series[s].faint == (pass == 0)) add_line(out, &chart->series[s], &f);
    stk_text_add(out, "</svg>");
    for (int s = 0; s < chart->n_series; s++)
        n_labels += chart->series[s].label && !chart->series[s].faint;
    if (n_labels > 1) {
        stk_text_add(out, "<div class=legend>");
        for (int s = 0; s < chart->n_series; s++) {
            if (!chart->series[s].label || chart->series[s].faint) continue;
            stk_text_add(out, "<span><i style=\"background:var(--s%d)\"></i>", chart->series[s].color % 8);
            stk_html_add(out, chart->series[s].label);
            stk_text_add(out, "</span>");
        }
        stk_text_add(out, "</div>");
    }
    stk_text_add(out, "</figure>\n");
}

/* --- bars --- */

void stk_parts_add(stk_text *out, const stk_part *part, int n)
{
    stk_text_add(out, "<div class=parts>");
    for (int i = 0; i < n; i++) {
        if (!(part[i].share > 0.0005)) continue;
        stk_text_add(out, "<b style=\"flex:%.5f;background:var(--s%d)\" title=\"", part[i].share, part[i].color % 8);
        stk_html_add(out, part[i].name);
        stk_text_add(out, " %.1f %%\"></b>", 100 * part[i].share);
    }
    stk_text_add(out, "</div>\n");
}
