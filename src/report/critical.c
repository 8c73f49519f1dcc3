/* See report/critical.h. */
#include "report/critical.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* As long as it takes to wake a thread: a shorter wait found its batch ready, and a shorter break is no idling. */
static const int64_t WAKE_NS = 50000;

/* --- looking things up --- */

/* The last of the thread's stretches that begins before t; NULL: none does. */
static const stk_stretch *find_before(const stk_trace_data *data, int32_t thread, int64_t t)
{
    const stk_stretch *s = data->stretch + data->thread[thread].first;
    size_t low = 0, high = data->thread[thread].n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s[middle].begin_ns < t)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &s[low - 1] : NULL;
}

/* What another thread finished last in (from, to], or before `to` where that is not wanted again; NULL: nothing. */
static const stk_stretch *find_batch(const stk_trace_data *data, int64_t from, int64_t to, bool before)
{
    size_t low = 0, high = data->n_batches;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (data->batch[middle].end_ns < to || (!before && data->batch[middle].end_ns == to))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low > 0 && data->batch[low - 1].end_ns > from; low--)
        if (data->batch[low - 1].thread != data->driver) return &data->batch[low - 1];
    return NULL;
}

/* --- the walk --- */

typedef struct walk {
    const stk_trace_data *data;
    stk_critical *out;
    size_t capacity;
    int64_t begin_ns, t; /* the path is known from t on */
    int32_t thread;      /* whose it is before t */
    int64_t left_ns;     /* where it last left the driver */
} walk;

/* The piece before t, which becomes its begin. */
static stk_status take(walk *w, stk_stretch what, int64_t from_ns)
{
    stk_critical *out = w->out;
    if (out->n == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 256;
        stk_stretch *grown = realloc(out->piece, capacity * sizeof(*grown));
        if (!grown) return stk_fail_memory(capacity * sizeof(*grown));
        out->piece = grown;
        w->capacity = capacity;
    }
    what.begin_ns = from_ns > w->begin_ns ? from_ns : w->begin_ns;
    what.end_ns = w->t;
    w->t = what.begin_ns;
    out->kind_ns[what.kind] += what.end_ns - what.begin_ns;
    out->piece[out->n++] = what;
    return STK_OK;
}

static stk_status walk_driver(walk *w)
{
    const stk_stretch *s = find_before(w->data, w->thread, w->t);
    if (!s || s->end_ns < w->t) {
        stk_stretch host = {.name = "", .layer = "", .thread = w->thread, .kind = STK_WORK_HOST};
        return take(w, host, s ? s->end_ns : w->begin_ns);
    }
    int64_t from = s->begin_ns > w->begin_ns ? s->begin_ns : w->begin_ns;
    if (s->kind == STK_WORK_WAIT && w->t - from > WAKE_NS) {
        const stk_stretch *batch = find_batch(w->data, from, w->t, w->t == w->left_ns);
        if (batch) {
            if (batch->end_ns < w->t) STK_RETURN_IF_ERROR(take(w, *s, batch->end_ns));
            w->left_ns = w->t;
            w->thread = batch->thread;
            return STK_OK;
        }
    }
    return take(w, *s, s->begin_ns);
}

static stk_status walk_worker(walk *w)
{
    const stk_stretch *s = find_before(w->data, w->thread, w->t);
    if (s && s->end_ns >= w->t) return take(w, *s, s->begin_ns);
    if (s && w->t - s->end_ns <= WAKE_NS && s->end_ns > w->begin_ns) {
        stk_stretch between = {.name = "", .layer = "", .thread = w->thread, .kind = STK_WORK_INPUT};
        return take(w, between, s->end_ns);
    }
    w->thread = w->data->driver;
    return STK_OK;
}

stk_status stk_critical_find(const stk_trace_data *data, size_t i_step, stk_critical *out)
{
    const stk_traced_step *step = &data->step[i_step];
    walk w = {.data = data, .out = out, .begin_ns = step->begin_ns, .t = step->end_ns, .thread = data->driver};
    *out = (stk_critical){0};
    w.left_ns = INT64_MAX;
    while (w.t > w.begin_ns) {
        stk_status status = w.thread == data->driver ? walk_driver(&w) : walk_worker(&w);
        if (status == STK_OK) continue;
        stk_critical_free(out);
        return status;
    }
    for (size_t i = 0, k = out->n; i + 1 < k; i++) {
        stk_stretch kept = out->piece[i];
        out->piece[i] = out->piece[--k];
        out->piece[k] = kept;
    }
    return STK_OK;
}

void stk_critical_free(stk_critical *critical)
{
    free(critical->piece);
    *critical = (stk_critical){0};
}

/* --- beside it --- */

/* How much of the stretch is on the path, or in the driver's own part of such work: it waits there, and nothing is
 * hidden. */
static int64_t find_overlap(const stk_critical *critical, const stk_stretch *s)
{
    size_t low = 0, high = critical->n;
    int64_t sum = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (critical->piece[middle].end_ns <= s->begin_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < critical->n && critical->piece[low].begin_ns < s->end_ns; low++) {
        const stk_stretch *p = &critical->piece[low];
        bool is_awaited = s->kind == p->kind && (s->kind == STK_WORK_COMMUNICATION || s->kind == STK_WORK_SAVE);
        if (p->thread != s->thread && !is_awaited) continue;
        sum +=
            (p->end_ns < s->end_ns ? p->end_ns : s->end_ns) - (p->begin_ns > s->begin_ns ? p->begin_ns : s->begin_ns);
    }
    return sum;
}

/* The driver's first stretch of that kind that ends at t or later; NULL: none. */
static const stk_stretch *find_need(const stk_trace_data *data, stk_work_kind kind, int64_t t)
{
    const stk_traced_thread *driver = &data->thread[data->driver];
    const stk_stretch *s = data->stretch + driver->first, *end = s + driver->n;
    size_t low = 0, high = driver->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s[middle].end_ns < t)
            low = middle + 1;
        else
            high = middle;
    }
    for (s += low; s < end; s++)
        if (s->kind == kind) return s;
    return NULL;
}

/* Until the driver needs it; what the driver itself did may take as long as it waits afterwards. */
static int64_t find_slack(const stk_trace_data *data, const stk_stretch *s)
{
    bool is_driver = s->thread == data->driver;
    stk_work_kind wait = is_driver || s->kind == STK_WORK_INPUT ? STK_WORK_WAIT : s->kind;
    bool is_awaited = wait == STK_WORK_WAIT || wait == STK_WORK_COMMUNICATION || wait == STK_WORK_SAVE;
    const stk_stretch *need = is_awaited ? find_need(data, wait, s->end_ns) : NULL;
    if (!need) return -1;
    if (!is_driver) return need->end_ns - s->end_ns;
    return need->end_ns - (need->begin_ns > s->end_ns ? need->begin_ns : s->end_ns);
}

static int by_busy(const void *a, const void *b)
{
    int64_t x = ((const stk_beside *)a)->busy_ns, y = ((const stk_beside *)b)->busy_ns;
    return (x < y) - (x > y);
}

static void add_beside(const stk_trace_data *data, const stk_traced_step *step, const stk_critical *critical,
                       const stk_stretch *s, stk_beside *sum)
{
    stk_stretch inside = *s;
    if (inside.begin_ns < step->begin_ns) inside.begin_ns = step->begin_ns;
    if (inside.end_ns > step->end_ns) inside.end_ns = step->end_ns;
    int64_t busy = inside.end_ns - inside.begin_ns - find_overlap(critical, &inside);
    if (busy <= 0) return;
    int64_t slack = find_slack(data, s);
    if (slack >= 0 && (sum->slack_ns < 0 || slack < sum->slack_ns)) sum->slack_ns = slack;
    sum->busy_ns += busy;
}

int stk_critical_beside(const stk_trace_data *data, size_t i_step, const stk_critical *critical,
                        stk_beside out[STK_MOST_BESIDE])
{
    const stk_traced_step *step = &data->step[i_step];
    int n = 0;
    for (int k = 0; k < STK_MOST_BESIDE; k++)
        out[k] = (stk_beside){(stk_work_kind)(k / 2), k % 2, 0, -1};
    for (int32_t i = 0; i < data->n_threads; i++) {
        const stk_stretch *s = data->stretch + data->thread[i].first, *end = s + data->thread[i].n;
        const stk_stretch *first = find_before(data, i, step->begin_ns);
        bool is_driver = i == data->driver;
        for (s = first ? first : s; s < end && s->begin_ns < step->end_ns; s++) {
            if (s->end_ns <= step->begin_ns || s->kind == STK_WORK_WAIT) continue;
            add_beside(data, step, critical, s, &out[2 * (int)s->kind + is_driver]);
        }
    }
    qsort(out, STK_MOST_BESIDE, sizeof(*out), by_busy);
    while (n < STK_MOST_BESIDE && out[n].busy_ns > 0)
        n++;
    return n;
}

/* --- what is alike --- */

static int by_alike(const void *a, const void *b)
{
    const stk_stretch *x = &((const stk_alike *)a)->what, *y = &((const stk_alike *)b)->what;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    int names = strcmp(x->name, y->name);
    if (names == 0) names = strcmp(x->layer, y->layer);
    return names ? names : (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static int by_sum(const void *a, const void *b)
{
    const stk_alike *x = a, *y = b;
    if (x->sum_ns != y->sum_ns) return x->sum_ns < y->sum_ns ? 1 : -1;
    return (x->what.begin_ns > y->what.begin_ns) - (x->what.begin_ns < y->what.begin_ns);
}

stk_status stk_critical_sum(const stk_critical *critical, stk_alike **out, size_t *n)
{
    stk_alike *all = malloc((critical->n + 1) * sizeof(*all));
    *out = NULL;
    *n = 0;
    if (!all) return stk_fail_memory((critical->n + 1) * sizeof(*all));
    for (size_t i = 0; i < critical->n; i++) {
        const stk_stretch *p = &critical->piece[i];
        all[i] = (stk_alike){*p, p->end_ns - p->begin_ns, 1};
    }
    qsort(all, critical->n, sizeof(*all), by_alike);
    for (size_t i = 0; i < critical->n; i++) {
        stk_stretch *last = *n ? &all[*n - 1].what : NULL;
        if (last && last->kind == all[i].what.kind && !strcmp(last->name, all[i].what.name) &&
            !strcmp(last->layer, all[i].what.layer)) {
            all[*n - 1].sum_ns += all[i].sum_ns;
            all[*n - 1].n++;
        } else {
            all[(*n)++] = all[i];
        }
    }
    qsort(all, *n, sizeof(*all), by_sum);
    *out = all;
    return STK_OK;
}
