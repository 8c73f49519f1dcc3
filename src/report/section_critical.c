/* The critical path of a traced step, what it is made of, and what lies beside it. See report/sections.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "report/chart.h"
#include "report/critical.h"
#include "report/sections.h"

enum { PATH_BYTES = 4096, MOST_ROWS = 10, MOST_LANES = 8, WIDTH = 1120, LEFT = 130, LANE = 20, BAR = 15, BOTTOM = 18 };

static const struct {
    const char *name, *meaning;
    int color;
} kinds[STK_N_WORK_KINDS] = {
    [STK_WORK_WAIT] = {"waiting for input", "no batch was ready, and what held it up is not in the trace", 5},
    [STK_WORK_INPUT] = {"making input", "what the loop waited for, or did itself", 1},
    [STK_WORK_HOST] = {"host", "around the step and its kernels", 3},
    [STK_WORK_LAUNCH] = {"launch", "between kernels", 4},
    [STK_WORK_COMPUTE] = {"compute", "in kernels", 0},
    [STK_WORK_COMMUNICATION] = {"communication", "between ranks, as far as no compute hides it", 6},
    [STK_WORK_SAVE] = {"saving", "of checkpoints, and waiting for the one before", 2},
};

static double share_of(int64_t ns, int64_t all_ns)
{
    return all_ns > 0 ? 100 * (double)ns / (double)all_ns : 0;
}

/* What a piece is: its op or stage, or its kind where it has no name. */
static void add_name(stk_text *out, const stk_stretch *s)
{
    const char *between = s->kind == STK_WORK_INPUT ? "between rows" : "the loop itself";
    stk_html_add(out, s->name[0] ? s->name : between);
}

/* --- the picture --- */

typedef struct picture {
    const stk_trace_data *data;
    const stk_traced_step *step;
    double ns_per_unit;
} picture;

static double place(const picture *p, int64_t ns)
{
    return LEFT + (double)(ns - p->step->begin_ns) / p->ns_per_unit;
}

static void draw_box(stk_text *out, const picture *p, const stk_stretch *s, int64_t begin_ns, int64_t end_ns, int lane)
{
    char text[STK_SHORT_TEXT];
    stk_text_add(out, "<rect x=%.1f y=%d width=%.1f height=%d style=\"fill:var(--s%d)\"><title>", place(p, begin_ns),
                 lane * LANE, (double)(end_ns - begin_ns) / p->ns_per_unit, BAR, kinds[s->kind].color);
    add_name(out, s);
    stk_text_add(out, " ");
    stk_html_add(out, s->layer);
    stk_text_add(out, ", %s</title></rect>\n", stk_short_time((double)(end_ns - begin_ns) * 1e-9, text));
}

/* Neighbours of a kind that are too narrow to be seen alone become one box; all of a lane are in time's order. */
static void draw_lane(stk_text *out, const picture *p, const stk_stretch *s, size_t n, int lane)
{
    stk_stretch box = {0};
    bool is_open = false;
    int64_t narrow_ns = (int64_t)(0.7 * p->ns_per_unit);
    for (size_t i = 0; i <= n; i++) {
        bool is_end = i == n || s[i].begin_ns >= p->step->end_ns;
        int64_t begin = is_end ? 0 : s[i].begin_ns, end = is_end ? 0 : s[i].end_ns;
        if (begin < p->step->begin_ns) begin = p->step->begin_ns;
        if (end > p->step->end_ns) end = p->step->end_ns;
        if (!is_end && end <= begin) continue;
        bool joins = is_open && !is_end && begin - box.end_ns <= narrow_ns && end - box.begin_ns <= 2 * narrow_ns;
        if (joins) {
            box.end_ns = end;
            continue;
        }
        if (is_open) draw_box(out, p, &box, box.begin_ns, box.end_ns, lane);
        if (is_end) break;
        box = s[i];
        box.begin_ns = begin;
        box.end_ns = end;
        is_open = true;
    }
}

/* True where the thread did something in the step. */
static bool has_part(const picture *p, const stk_traced_thread *thread)
{
    const stk_stretch *s = p->data->stretch + thread->first;
    for (size_t i = 0; i < thread->n && s[i].begin_ns < p->step->end_ns; i++)
        if (s[i].end_ns > p->step->begin_ns) return true;
    return false;
}

static void add_label(stk_text *out, const char *name, int lane)
{
    stk_text_add(out, "<text class=tick x=0 y=%d>", lane * LANE + BAR - 3);
    stk_html_add(out, name);
    stk_text_add(out, "</text>");
}

static void draw(stk_text *out, const stk_trace_data *data, const stk_traced_step *step, const stk_critical *critical)
{
    picture p = {data, step, (double)(step->end_ns - step->begin_ns) / (WIDTH - LEFT)};
    char text[STK_SHORT_TEXT];
    int32_t shown[MOST_LANES];
    int n = 0;
    for (int32_t i = 0; i < data->n_threads && n < MOST_LANES; i++)
        if (i != data->driver && has_part(&p, &data->thread[i])) shown[n++] = i;
    int height = (n + 2) * LANE + BOTTOM;
    stk_text_add(out,
                 "<figure><figcaption>The step from left to right: its critical path, and what the threads "
                 "did</figcaption><svg viewBox=\"0 0 %d %d\" role=img aria-label=\"critical path\">\n",
                 WIDTH, height);
    add_label(out, "critical path", 0);
    draw_lane(out, &p, critical->piece, critical->n, 0);
    add_label(out, "training loop", 1);
    draw_lane(out, &p, data->stretch + data->thread[data->driver].first, data->thread[data->driver].n, 1);
    for (int i = 0; i < n; i++) {
        const stk_traced_thread *thread = &data->thread[shown[i]];
        add_label(out, thread->name, i + 2);
        draw_lane(out, &p, data->stretch + thread->first, thread->n, i + 2);
    }
    stk_text_add(out, "<text class=tick x=%d y=%d>0</text><text class=tick text-anchor=end x=%d y=%d>%s</text></svg>",
                 LEFT, height - 3, WIDTH, height - 3,
                 stk_short_time((double)(step->end_ns - step->begin_ns) * 1e-9, text));
    stk_text_add(out, "<div class=legend>");
    for (int k = 0; k < STK_N_WORK_KINDS; k++)
        stk_text_add(out, "<span><i style=\"background:var(--s%d)\"></i>%s</span>", kinds[k].color, kinds[k].name);
    stk_text_add(out, "</div></figure>\n");
}

/* --- tables --- */

static void add_kinds(stk_text *out, const stk_critical *critical, int64_t step_ns, const int64_t *all_kind_ns,
                      int64_t all_ns)
{
    char text[STK_SHORT_TEXT];
    stk_text_add(out, "<table><tr><th>the path</th><th class=n>time</th><th class=n>of the step</th><th class=n>of all "
                      "traced steps</th><th></th></tr>\n");
    for (int k = 0; k < STK_N_WORK_KINDS; k++)
        stk_text_add(out,
                     "<tr><td><i style=\"background:var(--s%d)\"></i>%s</td><td class=n>%s</td><td class=n>%.1f "
                     "%%</td><td class=n>%.1f %%</td><td class=dim style=\"min-width:16em\">%s</td></tr>\n",
                     kinds[k].color, kinds[k].name, stk_short_time((double)critical->kind_ns[k] * 1e-9, text),
                     share_of(critical->kind_ns[k], step_ns), share_of(all_kind_ns[k], all_ns), kinds[k].meaning);
    stk_text_add(out, "</table>\n");
}

static stk_status add_longest(stk_text *out, const stk_critical *critical, int64_t step_ns)
{
    stk_alike *alike;
    size_t n;
    char text[STK_SHORT_TEXT];
    STK_RETURN_IF_ERROR(stk_critical_sum(critical, &alike, &n));
    stk_text_add(out, "<h4>The longest on the path</h4><table><tr><th>piece</th><th>layer</th><th>kind</th><th "
                      "class=n>times</th><th class=n>time</th><th class=n>of the step</th></tr>\n");
    for (size_t i = 0; i < n && i < MOST_ROWS; i++) {
        stk_text_add(out, "<tr><td>");
        add_name(out, &alike[i].what);
        stk_text_add(out, "</td><td>");
        stk_html_add(out, alike[i].what.layer);
        stk_text_add(out, "</td><td>%s</td><td class=n>%zu</td><td class=n>%s</td><td class=n>%.1f %%</td></tr>\n",
                     kinds[alike[i].what.kind].name, alike[i].n, stk_short_time((double)alike[i].sum_ns * 1e-9, text),
                     share_of(alike[i].sum_ns, step_ns));
    }
    stk_text_add(out, "</table>\n");
    free(alike);
    return STK_OK;
}

static void add_beside(stk_text *out, const stk_trace_data *data, size_t i_step, const stk_critical *critical)
{
    stk_beside beside[STK_MOST_BESIDE];
    char text[STK_SHORT_TEXT];
    int n = stk_critical_beside(data, i_step, critical, beside);
    int64_t step_ns = data->step[i_step].end_ns - data->step[i_step].begin_ns;
    stk_text_add(out, "<h4>Next to the path</h4>\n");
    if (n == 0) {
        stk_text_add(out, "<p class=dim>Nothing: whatever the trace has of this step lies on its path.</p>\n");
        return;
    }
    stk_text_add(out, "<table><tr><th>next to the path</th><th>where</th><th class=n>time</th><th class=n>of the "
                      "step</th><th class=n>slack</th></tr>\n");
    for (int i = 0; i < n; i++) {
        const char *slack = beside[i].slack_ns < 0 ? "–" : stk_short_time((double)beside[i].slack_ns * 1e-9, text);
        stk_text_add(out, "<tr><td><i style=\"background:var(--s%d)\"></i>%s</td><td>%s</td>",
                     kinds[beside[i].kind].color, kinds[beside[i].kind].name,
                     beside[i].is_driver ? "training loop" : "other threads");
        stk_text_add(out, "<td class=n>%.3f ms</td><td class=n>%.1f %%</td><td class=n>%s</td></tr>\n",
                     (double)beside[i].busy_ns * 1e-6, share_of(beside[i].busy_ns, step_ns), slack);
    }
    stk_text_add(out, "</table><p class=dim>Of several threads together, so that it may be more than the step. Slack: "
                      "how much later the tightest piece could have ended and held up nobody, at least; –: nothing in "
                      "the trace waits for it.</p>\n");
}

/* --- the whole --- */

static int by_length(const void *a, const void *b)
{
    const stk_traced_step *x = *(const stk_traced_step *const *)a, *y = *(const stk_traced_step *const *)b;
    int64_t m = x->end_ns - x->begin_ns, n = y->end_ns - y->begin_ns;
    if (m != n) return m < n ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* The step of median length. */
static stk_status choose_step(const stk_trace_data *data, size_t *i_step)
{
    const stk_traced_step **by = malloc(data->n_steps * sizeof(*by));
    if (!by) return stk_fail_memory(data->n_steps * sizeof(*by));
    for (size_t i = 0; i < data->n_steps; i++)
        by[i] = &data->step[i];
    qsort(by, data->n_steps, sizeof(*by), by_length);
    *i_step = (size_t)(by[(data->n_steps - 1) / 2] - data->step);
    free(by);
    return STK_OK;
}

static stk_status sum_all(const stk_trace_data *data, int64_t *kind_ns, int64_t *all_ns)
{
    *all_ns = 0;
    memset(kind_ns, 0, STK_N_WORK_KINDS * sizeof(*kind_ns));
    for (size_t i = 0; i < data->n_steps; i++) {
        stk_critical critical;
        STK_RETURN_IF_ERROR(stk_critical_find(data, i, &critical));
        for (int k = 0; k < STK_N_WORK_KINDS; k++)
            kind_ns[k] += critical.kind_ns[k];
        *all_ns += data->step[i].end_ns - data->step[i].begin_ns;
        stk_critical_free(&critical);
    }
    return STK_OK;
}

static void add_step(stk_text *out, const stk_trace_data *data, const stk_traced_step *step)
{
    char text[STK_SHORT_TEXT];
    char which[64] = "the only one traced";
    const char *number = strchr(step->name, '#');
    if (data->n_steps > 1) snprintf(which, sizeof(which), "the median of %zu traced", data->n_steps);
    stk_text_add(out, "<p>Step ");
    stk_html_add(out, number ? number + 1 : step->name);
    stk_text_add(out,
                 ", of %s, %s. Its length was decided by what is on this path: from the "
                 "end back along the training loop and, where that waited for a batch, along the thread that made the "
                 "batch. What is made shorter here makes the step shorter; what lies next to it does not, before its "
                 "slack is used up. A traced step runs kernel by kernel, which itself takes a little.</p>\n",
                 stk_short_time((double)(step->end_ns - step->begin_ns) * 1e-9, text), which);
}

static stk_status add_path(stk_text *out, const stk_trace_data *data)
{
    size_t i_step = 0;
    int64_t kind_ns[STK_N_WORK_KINDS], all_ns;
    stk_part part[STK_N_WORK_KINDS];
    stk_critical critical = {0};
    STK_RETURN_IF_ERROR(choose_step(data, &i_step));
    STK_RETURN_IF_ERROR(sum_all(data, kind_ns, &all_ns));
    STK_RETURN_IF_ERROR(stk_critical_find(data, i_step, &critical));
    const stk_traced_step *step = &data->step[i_step];
    int64_t step_ns = step->end_ns - step->begin_ns;
    add_step(out, data, step);
    for (int k = 0; k < STK_N_WORK_KINDS; k++)
        part[k] = (stk_part){kinds[k].name, share_of(critical.kind_ns[k], step_ns) / 100, kinds[k].color};
    stk_parts_add(out, part, STK_N_WORK_KINDS);
    draw(out, data, step, &critical);
    add_kinds(out, &critical, step_ns, kind_ns, all_ns);
    stk_status status = add_longest(out, &critical, step_ns);
    if (status == STK_OK) add_beside(out, data, i_step, &critical);
    stk_critical_free(&critical);
    return status;
}

stk_status stk_section_critical(stk_text *out, const stk_run_data *run)
{
    char path[PATH_BYTES];
    stk_trace_data data = {0};
    stk_status status = stk_path_join(path, sizeof(path), run->folder, "trace.json");
    if (status == STK_OK && !stk_path_exists(path)) status = STK_NOT_FOUND;
    stk_text_add(out, "<section><h2>Critical path of a step</h2>\n");
    if (status == STK_OK) status = stk_trace_data_read(path, &data);
    if (status == STK_NO_MEMORY) return status;
    if (status == STK_NOT_FOUND)
        stk_text_add(out, "<p class=dim>The run has no trace: <code>stoker train RECIPE --trace 10-20</code> writes "
                          "steps 10 to 20 down, and then this says what the length of a step is decided by.</p>\n");
    else if (status != STK_OK)
        stk_text_add(out, "<p class=dim>The run's trace.json cannot be read, or is larger than what is read: "
                          "<code>--trace</code> with fewer steps makes a smaller one.</p>\n");
    else if (data.n_steps == 0)
        stk_text_add(out,
                     "<p class=dim>The run's trace.json has no whole step: <code>--trace 10-20</code> writes steps "
                     "10 to 20 down.</p>\n");
    else
        status = add_path(out, &data);
    stk_trace_data_free(&data);
    stk_text_add(out, "</section>\n");
    return status == STK_NO_MEMORY ? status : STK_OK;
}
