/* See report/trace_data.h. */
#include "report/trace_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "report/run_data.h"

enum { MOST_THREADS = 4096, ROUNDING_NS = 2 };
static const double MOST_US = 1e12; /* no time of a run is that long; its nanoseconds fit */

/* A slice as it is in the file. */
typedef struct slice {
    stk_stretch what;
    int64_t number; /* of a launch and its kernel */
    bool is_kernel, is_launch;
} slice;

typedef struct reader {
    stk_trace_data *out;
    slice *slice;
    size_t n;
} reader;

/* --- events --- */

static bool read_time(const json_t *event, const char *name, int64_t *ns)
{
    double us = stk_json_number(event, name);
    if (!isfinite(us) || us < 0 || us > MOST_US) return false;
    *ns = llround(us * 1e3);
    return true;
}

/* False: no room. */
static bool find_thread(stk_trace_data *data, int64_t process, int64_t id, int32_t *out)
{
    int32_t i = 0;
    /* The newest first: events of a thread stand together. */
    for (i = data->n_threads - 1; i >= 0; i--)
        if (data->thread[i].process == process && data->thread[i].id == id) break;
    if (i < 0) {
        if (data->n_threads == MOST_THREADS) return false;
        i = data->n_threads++;
        data->thread[i] = (stk_traced_thread){.process = process, .id = id, .name = ""};
    }
    *out = i;
    return true;
}

/* Of what ranks do together, outside of kernels: an op may be called broadcast, too. */
static bool is_collective(const char *name)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static stk_work_kind find_kind(const char *category, const char *name)
{
    if (!strcmp(category, "kernel"))
        return !strncmp(name, "rank_", 5) || !strcmp(name, "all_reduce") ? STK_WORK_COMMUNICATION : STK_WORK_COMPUTE;
    if (!strcmp(category, "input")) return STK_WORK_WAIT;
    if (!strcmp(category, "data")) return STK_WORK_INPUT;
    if (!strcmp(category, "cuda_runtime")) return STK_WORK_LAUNCH;
    if (!strcmp(category, "checkpoint")) return STK_WORK_SAVE;
    return is_collective(name) ? STK_WORK_COMMUNICATION : STK_WORK_HOST;
}

static int64_t read_number(const json_t *event, const char *path)
{
    const json_t *value = stk_json_find(event, path);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

/* Room is for all. */
static void read_event(reader *r, const json_t *event)
{
    stk_trace_data *data = r->out;
    const char *phase = stk_json_text(event, "ph"), *category = stk_json_text(event, "cat");
    slice s = {.what = {.name = stk_json_text(event, "name"), .layer = stk_json_text(event, "args.layer")}};
    int64_t length_ns;
    if (strcmp(phase, "X") != 0 && strcmp(phase, "M") != 0) return;
    if (!find_thread(data, read_number(event, "pid"), read_number(event, "tid"), &s.what.thread)) return;
    if (phase[0] == 'M') {
        if (!strcmp(s.what.name, "thread_name")) data->thread[s.what.thread].name = stk_json_text(event, "args.name");
        return;
    }
    if (!read_time(event, "ts", &s.what.begin_ns) || !read_time(event, "dur", &length_ns)) return;
    s.what.end_ns = s.what.begin_ns + length_ns;
    s.what.kind = find_kind(category, s.what.name);
    s.is_kernel = !strcmp(category, "kernel");
    s.is_launch = !strcmp(category, "cuda_runtime");
    if (s.is_launch) s.what.name = "launch";
    s.number = read_number(event, "args.correlation");
    if (!strcmp(category, "user_annotation")) {
        data->step[data->n_steps++] = (stk_traced_step){s.what.begin_ns, s.what.end_ns, s.what.name};
        data->batch[data->n_steps - 1].thread = s.what.thread; /* until the driver is known */
        return;
    }
    r->slice[r->n++] = s;
}

/* --- who drives, and whose kernels these are --- */

static int by_step(const void *a, const void *b)
{
    const stk_traced_step *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Ranks that are threads have steps, too: the main thread's count, and the first one's where it has none. */
static void choose_driver(stk_trace_data *data)
{
    size_t n = 0;
    if (data->n_steps == 0) return;
    data->driver = data->batch[0].thread;
    for (size_t i = 0; i < data->n_steps; i++) {
        const stk_traced_thread *t = &data->thread[data->batch[i].thread];
        if (t->process == t->id) data->driver = data->batch[i].thread;
    }
    for (size_t i = 0; i < data->n_steps; i++)
        if (data->batch[i].thread == data->driver && data->step[i].end_ns > data->step[i].begin_ns)
            data->step[n++] = data->step[i];
    data->n_steps = n;
    qsort(data->step, n, sizeof(*data->step), by_step);
}

static int by_number(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    if (x->is_launch != y->is_launch) return x->is_launch ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->what.end_ns > y->what.end_ns) - (x->what.end_ns < y->what.end_ns);
}

/* A kernel's launch has its number, and ends where it begins; several ranks count alike. launch[n]: by number. */
static const slice *find_launch(const slice *launch, size_t n, const slice *kernel)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool before = launch[middle].number < kernel->number ||
                      (launch[middle].number == kernel->number &&
                       launch[middle].what.end_ns < kernel->what.begin_ns - ROUNDING_NS);
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < n && launch[low].number == kernel->number &&
                 launch[low].what.end_ns <= kernel->what.begin_ns + ROUNDING_NS;
    return found ? &launch[low] : NULL;
}

static void assign_kernels(reader *r)
{
    size_t n_launches = 0;
    qsort(r->slice, r->n, sizeof(*r->slice), by_number);
    while (n_launches < r->n && r->slice[n_launches].is_launch)
        n_launches++;
    for (size_t i = n_launches; i < r->n; i++) {
        if (!r->slice[i].is_kernel) continue;
        const slice *launch = find_launch(r->slice, n_launches, &r->slice[i]);
        r->slice[i].what.thread = launch ? launch->what.thread : n_launches ? r->slice[i].what.thread : r->out->driver;
    }
}

/* --- stretches --- */

/* Those that hold others come first. */
static int by_time(const void *a, const void *b)
{
    const stk_stretch *x = &((const slice *)a)->what, *y = &((const slice *)b)->what;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static int by_end(const void *a, const void *b)
{
    const stk_stretch *x = a, *y = b;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static size_t add_stretch(stk_stretch *out, size_t n, const slice *s, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns <= begin_ns) return n;
    out[n] = s->what;
    out[n].begin_ns = begin_ns;
    out[n].end_ns = end_ns;
    return n + 1;
}

/* One thread's slices, by time, to its stretches: at most two for each slice. open: room for as many. Returns how many.
 */
static size_t flatten(const slice *s, size_t n, const slice **open, stk_stretch *out)
{
    size_t n_open = 0, n_out = 0;
    int64_t at = 0;
    for (size_t i = 0; i <= n; i++) {
        int64_t next = i < n ? s[i].what.begin_ns : INT64_MAX;
        while (n_open > 0 && open[n_open - 1]->what.end_ns <= next) {
            const slice *top = open[--n_open];
            n_out = add_stretch(out, n_out, top, at, top->what.end_ns);
            if (top->what.end_ns > at) at = top->what.end_ns;
        }
        if (i == n) break;
        if (n_open > 0) n_out = add_stretch(out, n_out, open[n_open - 1], at, next);
        at = next;
        open[n_open++] = &s[i];
    }
    return n_out;
}

static stk_status make_stretches(reader *r)
{
    stk_trace_data *data = r->out;
    const slice **open = malloc((r->n + 1) * sizeof(*open));
    data->stretch = malloc((2 * r->n + 1) * sizeof(*data->stretch));
    if (!open || !data->stretch) {
        free(open);
        return stk_fail_memory((2 * r->n + 1) * sizeof(*data->stretch));
    }
    qsort(r->slice, r->n, sizeof(*r->slice), by_time);
    size_t n = 0;
    for (size_t i = 0; i < r->n;) {
        size_t end = i;
        int32_t thread = r->slice[i].what.thread;
        while (end < r->n && r->slice[end].what.thread == thread)
            end++;
        data->thread[thread].first = n;
        data->thread[thread].n = flatten(r->slice + i, end - i, open, data->stretch + n);
        n += data->thread[thread].n;
        i = end;
    }
    for (size_t i = 0; i < r->n; i++)
        if (r->slice[i].what.kind == STK_WORK_INPUT && !strcmp(r->slice[i].what.name, "rows"))
            data->batch[data->n_batches++] = r->slice[i].what;
    qsort(data->batch, data->n_batches, sizeof(*data->batch), by_end);
    free(open);
    return STK_OK;
}

/* --- the whole --- */

stk_status stk_trace_data_make(json_t *root, stk_trace_data *out)
{
    const json_t *events = stk_json_find(root, "traceEvents"), *event;
    size_t i, n = json_array_size(events);
    reader r = {.out = out};
    stk_status status = STK_OK;
    *out = (stk_trace_data){.root = root};
    r.slice = calloc(n + 1, sizeof(*r.slice));
    out->thread = calloc(MOST_THREADS, sizeof(*out->thread));
    out->step = calloc(n + 1, sizeof(*out->step));
    out->batch = calloc(n + 1, sizeof(*out->batch));
    if (!r.slice || !out->thread || !out->step || !out->batch) {
        status = stk_fail_memory((n + 1) * sizeof(*r.slice));
        goto done;
    }
    json_array_foreach(events, i, event) read_event(&r, event);
    choose_driver(out);
    assign_kernels(&r);
    status = make_stretches(&r);
done:
    free(r.slice);
    if (status != STK_OK) stk_trace_data_free(out);
    return status;
}

stk_status stk_trace_data_read(const char *path, stk_trace_data *out)
{
    json_t *root;
    *out = (stk_trace_data){0};
    STK_RETURN_IF_ERROR(stk_json_read(path, 0, &root));
    return stk_trace_data_make(root, out);
}

void stk_trace_data_free(stk_trace_data *data)
{
    free(data->stretch);
    free(data->thread);
    free(data->step);
    free(data->batch);
    json_decref(data->root);
    *data = (stk_trace_data){0};
}
