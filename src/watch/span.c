#include "watch/span.h"

#include <math.h>
#include <string.h>

double stk_watch_busy(const stk_watch_span *s, const stk_watch_row *row)
{
    if (s->has_gpu) return row->gpu_busy;
    if (s->main_computes && row->main >= 0) return fmin(1, row->main);
    double may = row->allowed > 0 ? row->allowed : row->machine_cores;
    if (row->quota < may) may = row->quota;
    return may > 0 && row->cores > 0 ? fmin(1, row->cores / may) : 0;
}

/* What a program loads makes it grow, and then it stays as it is; one that grows all the time has no such point. */
static size_t after_loading(const stk_watch_history *history, size_t first)
{
    double size = 0, begin_s = history->n ? 0.6 * history->row[history->n - 1].at_s : 0;
    size_t half = history->n / 2, i = first;
    for (size_t k = half; k < history->n; k++)
        size += history->row[k].resident_mb / (double)(history->n - half);
    while (i < history->n && history->row[i].resident_mb < 0.9 * size)
        i++;
    return i < history->n && history->row[i].at_s < begin_s ? i : first;
}

/* A program that ends gives back a part of what it has at once, and tidies up for a second or more, alone on its core:
 * where the last rows begin in which it has less than before and never as much again. */
static size_t before_end(const stk_watch_history *history, size_t first, size_t last)
{
    const stk_watch_row *row = history->row;
    size_t end = last;
    double most = 0, end_s = last > first ? row[last - 1].at_s : 0,
           most_s = last > first ? fmin(4, 0.2 * (end_s - row[first].at_s)) : 0;
    for (size_t k = last; k > first + 1 && end_s - row[k - 1].at_s < most_s; k--) {
        most = fmax(most, row[k - 1].resident_mb);
        if (most < 0.97 * row[k - 2].resident_mb) end = k - 1;
    }
    return end;
}

static double field(const stk_watch_row *row, size_t offset)
{
    return *(const double *)((const char *)row + offset);
}

/* The mean of work, of the GPU or on cores, over rows a to b, b not included. */
static double work_of(const stk_watch_row *row, size_t work, size_t a, size_t b)
{
    double sum = 0, length = 0;
    for (size_t k = a; k < b; k++)
        if (field(&row[k], work) >= 0) sum += field(&row[k], work) * row[k].length_s, length += row[k].length_s;
    return length > 0 ? sum / length : 0;
}

/* How much of rows a to b lies in whole seconds in which there is as much work as that. */
static double share_of_busy_seconds(const stk_watch_row *row, size_t work, size_t a, size_t b, double level)
{
    double busy = 0, all = 0;
    for (size_t k = a, from = a; k < b; k++) {
        double length = row[k].at_s - row[from].at_s + row[from].length_s;
        if (length < 1 && k + 1 < b) continue;
        all += length;
        busy += work_of(row, work, from, k + 1) >= level ? length : 0;
        from = k + 1;
    }
    return all > 0 ? busy / all : 0;
}

/* Where a start ends that may be longer than all that follows: the work before and after it differs most there, is
 * at least twice as much after it, and was neither so before it for long nor less after it, as in jobs that swing.
 * `first` where there is none. Of a long run a start is no more than the first minute. */
static size_t after_start(const stk_watch_history *history, size_t work, size_t first, size_t last)
{
    const stk_watch_row *row = history->row;
    double best = 0, sum = 0, length = 0, all = 0, all_s = 0;
    size_t found = first;
    for (size_t k = first; k < last; k++)
        if (field(&row[k], work) >= 0) all += field(&row[k], work) * row[k].length_s, all_s += row[k].length_s;
    for (size_t k = first; k + 1 < last && row[k].at_s - row[first].at_s < 60; k++) {
        if (field(&row[k], work) >= 0) sum += field(&row[k], work) * row[k].length_s, length += row[k].length_s;
        double left_s = all_s - length;
        if (length < 0.5 || left_s < 2) continue;
        double before = sum / length, after = (all - sum) / left_s;
        double gain = length * left_s * (after - before) * (after - before);
        if (after < 2 * before + 0.05 || gain <= best) continue;
        best = gain;
        found = k + 1;
    }
    if (found == first) return first;
    double level = 0.6 * work_of(row, work, found, last);
    bool is_clear = share_of_busy_seconds(row, work, first, found, level) < 0.15 &&
                    share_of_busy_seconds(row, work, found, last, level) > 0.85;
    return is_clear ? found : first;
}

/* Frameworks try kernels before the first step: from the first second on in which the GPU works as it does later. */
static size_t after_warm_up(const stk_watch_history *history, size_t first, size_t last)
{
    double level = 0, n = 0;
    for (size_t k = first + (last - first) / 2; k < last; k++)
        if (history->row[k].gpu_busy >= 0) level += history->row[k].gpu_busy, n++;
    for (size_t i = first; i < first + (last - first) / 2 && n > 0; i++) {
        double sum = 0, length = 0;
        for (size_t k = i; k < last && length < 1; k++) {
            sum += history->row[k].gpu_busy * history->row[k].length_s;
            length += history->row[k].length_s;
        }
        if (sum >= 0.5 * level / n * length) return i;
    }
    return first;
}

stk_watch_span stk_watch_span_find(const stk_watch_history *history, const char *framework)
{
    stk_watch_span s = {history->row, history->n, false, framework && !strcmp(framework, "stoker")};
    size_t first = 0, last = 0, first_held = history->n;
    for (size_t i = 0; i < history->n; i++) {
        const stk_watch_row *row = &history->row[i];
        if (!(row->gpus_used > 0)) continue;
        if (first_held == history->n) first_held = i;
        if (row->gpu_busy > 0.02 && !s.has_gpu) {
            s.has_gpu = true;
            first = i;
        }
        last = i + 1;
    }
    if (!s.has_gpu && first_held < history->n) {
        s.has_gpu = true;
        first = first_held;
    }
    if (!s.has_gpu) {
        double length_s = history->n ? history->row[history->n - 1].at_s : 0, skip_s = fmin(4, 0.3 * length_s);
        while (first < history->n && history->row[first].at_s < skip_s)
            first++;
        if (!s.main_computes) first = after_loading(history, first);
        last = before_end(history, first, history->n);
        if (!s.main_computes) first = after_start(history, STK_WATCH_FIELD(cores), first, last);
    } else {
        first = after_start(history, STK_WATCH_FIELD(gpu_busy), first, last);
        first = after_warm_up(history, first, last);
    }
    /* In the first second of work caches and clocks warm up. */
    if (last > first + 20) first += 3;
    s.row += first;
    s.n = last > first ? last - first : 0;
    return s;
}

/* --- means --- */

double stk_watch_mean(const stk_watch_span *s, size_t offset)
{
    double sum = 0, length = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = field(&s->row[i], offset);
        if (isnan(x)) continue;
        sum += x * s->row[i].length_s;
        length += s->row[i].length_s;
    }
    return length > 0 ? sum / length : NAN;
}

double stk_watch_most(const stk_watch_span *s, size_t offset)
{
    double best = NAN;
    for (size_t i = 0; i < s->n; i++)
        best = fmax(best, field(&s->row[i], offset));
    return best;
}

double stk_watch_mean_idle(const stk_watch_span *s, size_t offset)
{
    double sum = 0, length = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = field(&s->row[i], offset), weight = s->row[i].length_s;
        if (s->has_gpu) weight *= 1 - s->row[i].gpu_busy;
        if (isnan(x) || isnan(weight)) continue;
        sum += x * weight;
        length += weight;
    }
    return length > 0 ? sum / length : NAN;
}

double stk_watch_mean_busy(const stk_watch_span *s, size_t offset)
{
    double sum = 0, length = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = field(&s->row[i], offset);
        if (isnan(x) || !(s->row[i].gpu_busy > 0.3)) continue;
        sum += x * s->row[i].length_s;
        length += s->row[i].length_s;
    }
    return length > 0 ? sum / length : NAN;
}

double stk_watch_fill(const stk_watch_span *s, size_t offset)
{
    double filled = 0, idle = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = field(&s->row[i], offset), rest = 1 - stk_watch_busy(s, &s->row[i]);
        if (isnan(x) || isnan(rest)) continue;
        filled += fmin(rest, x) * s->row[i].length_s;
        idle += rest * s->row[i].length_s;
    }
    return idle > 0.02 * (double)s->n * (s->n ? s->row[0].length_s : 1) ? filled / idle : NAN;
}
