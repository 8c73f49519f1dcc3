/* What is shown of all runs together: numbers, curves, and where the time went. See report/sections.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/chart.h"
#include "report/sections.h"
#include "stoker/observe/report.h"

/* --- numbers --- */

typedef const char *(*show)(double x, char out[STK_SHORT_TEXT]);

static const char *show_percent(double x, char out[STK_SHORT_TEXT])
{
    if (isfinite(x))
        snprintf(out, STK_SHORT_TEXT, "%.2f %%", 100 * x);
    else
        snprintf(out, STK_SHORT_TEXT, "–");
    return out;
}

static const char *show_loss(double x, char out[STK_SHORT_TEXT])
{
    if (isfinite(x))
        snprintf(out, STK_SHORT_TEXT, "%.4f", x);
    else
        snprintf(out, STK_SHORT_TEXT, "–");
    return out;
}

static const char *show_joules(double x, char out[STK_SHORT_TEXT])
{
    char text[STK_SHORT_TEXT];
    snprintf(out, STK_SHORT_TEXT, isfinite(x) ? "%s J" : "%s", stk_short_number(x, text));
    return out;
}

static const char *show_hertz(double x, char out[STK_SHORT_TEXT])
{
    char text[STK_SHORT_TEXT];
    snprintf(out, STK_SHORT_TEXT, isfinite(x) ? "%sHz" : "%s", stk_short_number(x, text));
    return out;
}

typedef struct row {
    const char *name;
    bool in_profile; /* else in result.json */
    const char *path;
    show show;
    const char *meaning;
} row;

static const row rows[] = {
    {"test accuracy", false, "test_accuracy", show_percent, ""},
    {"test loss", false, "test_loss", show_loss, ""},
    {"samples a second", false, "samples_per_s_overall", stk_short_number,
     "over the time of training, first steps included"},
    {"in the median step", false, "samples_per_s", stk_short_number, "batch over its time"},
    {"time", false, "wall_s", stk_short_time, "of training, validation included"},
    {"first step", false, "first_step_s", stk_short_time, "after the program's start"},
    {"steps", false, "steps", stk_short_number, ""},
    {"MFU", true, "step.mfu", show_percent,
     "FLOPs of a step, those of recomputation left out, over its mean time and over the rate of an f32 matrix product "
     "of "
     "1024 x 1024 measured on this machine at the run's end"},
    {"planned memory", false, "peak_planned_bytes", stk_short_bytes, "arena and variables"},
    {"resident memory", false, "peak_rss_bytes", stk_short_bytes, "the process's most"},
    {"GPU memory", false, "gpu.most_memory_bytes", stk_short_bytes, "the GPU's most, of all who use it, by NVML"},
    {"GPU clock, mean", false, "gpu.mean_clock_hz", show_hertz, "of its multiprocessors, by NVML"},
    {"GPU clock, lowest", false, "gpu.least_clock_hz", show_hertz, "seen once a second"},
    {"GPU energy a sample", false, "gpu.joules_per_sample", show_joules, "of the whole GPU, by NVML"},
    {"energy a sample", true, "energy.joules_per_sample", show_joules, "of the machine's processors, by RAPL"},
};

void stk_section_summary(stk_text *out, const stk_run_data *run, int n)
{
    char text[STK_SHORT_TEXT];
    stk_text_add(out, "<section><h2>In numbers</h2><table><tr><th></th>");
    for (int i = 0; i < n; i++) {
        stk_text_add(out, "<th class=n>%s<i style=\"background:var(--s%d)\"></i>", n > 1 ? "" : "<!-- -->", i);
        stk_html_add(out, stk_run_data_name(&run[i]));
        stk_text_add(out, "</th>");
    }
    stk_text_add(out, "<th></th></tr>\n");
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        bool is_known = false;
        for (int i = 0; i < n; i++)
            is_known |= isfinite(stk_json_number(rows[r].in_profile ? run[i].profile : run[i].result, rows[r].path));
        if (!is_known) continue;
        stk_text_add(out, "<tr><td>%s</td>", rows[r].name);
        for (int i = 0; i < n; i++) {
            double x = stk_json_number(rows[r].in_profile ? run[i].profile : run[i].result, rows[r].path);
            stk_text_add(out, "<td class=n>%s</td>", rows[r].show(x, text));
        }
        stk_text_add(out, "<td class=dim>%s</td></tr>\n", rows[r].meaning);
    }
    stk_text_add(out, "</table></section>\n");
}

/* --- curves --- */

typedef struct columns {
    double *step, *loss, *smooth, *accuracy, *lr, *speed;
    double *epoch_step, *train_loss, *valid_loss, *valid_accuracy;
    int n, n_epochs;
    double *memory;
} columns;

static stk_status make_columns(const stk_run_data *run, columns *c)
{
    size_t n = (size_t)run->n_points + 1;
    *c = (columns){.memory = calloc(10 * n, sizeof(double))};
    if (!c->memory) return stk_fail_memory(10 * n * sizeof(double));
    double **all[] = {&c->step,  &c->loss,       &c->smooth,     &c->accuracy,   &c->lr,
                      &c->speed, &c->epoch_step, &c->train_loss, &c->valid_loss, &c->valid_accuracy};
    for (int i = 0; i < 10; i++)
        *all[i] = c->memory + (size_t)i * n;
    double mean = NAN, decay = run->n_points > 400 ? 0.95 : run->n_points > 60 ? 0.85 : 0.5;
    for (int i = 0; i < run->n_points; i++) {
        const stk_point *p = &run->point[i];
        if (p->is_epoch) {
            c->epoch_step[c->n_epochs] = p->step;
            c->train_loss[c->n_epochs] = p->train_loss;
            c->valid_loss[c->n_epochs] = p->valid_loss;
            c->valid_accuracy[c->n_epochs++] = p->valid_accuracy;
            continue;
        }
        if (isfinite(p->loss)) mean = isfinite(mean) ? decay * mean + (1 - decay) * p->loss : p->loss;
        c->step[c->n] = p->step;
        c->loss[c->n] = p->loss;
        c->smooth[c->n] = mean;
        c->accuracy[c->n] = p->accuracy;
        c->lr[c->n] = p->lr;
        c->speed[c->n++] = p->samples_per_s;
    }
    return STK_OK;
}

static void add_charts(stk_text *out, const stk_run_data *run, const columns *c, int n)
{
    stk_series loss[3 * STK_MOST_REPORTED], accuracy[2 * STK_MOST_REPORTED], lr[STK_MOST_REPORTED],
        speed[STK_MOST_REPORTED];
    char label[2 * STK_MOST_REPORTED][128];
    int n_loss = 0, n_accuracy = 0;
    for (int i = 0; i < n; i++) {
        int valid = n > 1 ? i : 1;
        snprintf(label[2 * i], sizeof(label[0]), "%.100s", n > 1 ? stk_run_data_name(&run[i]) : "training");
        snprintf(label[2 * i + 1], sizeof(label[0]), "%.100s%svalidation", n > 1 ? stk_run_data_name(&run[i]) : "",
                 n > 1 ? ", " : "");
        loss[n_loss++] = (stk_series){c[i].step, c[i].loss, c[i].n, i, true, false, NULL};
        loss[n_loss++] = (stk_series){c[i].step, c[i].smooth, c[i].n, i, false, false, label[2 * i]};
        bool has_valid = false;
        for (int e = 0; e < c[i].n_epochs; e++)
            has_valid |= isfinite(c[i].valid_loss[e]);
        const char *valid_label = has_valid ? label[2 * i + 1] : NULL;
        loss[n_loss++] = (stk_series){c[i].epoch_step, c[i].valid_loss, c[i].n_epochs, valid, false, true, valid_label};
        accuracy[n_accuracy++] = (stk_series){c[i].step, c[i].accuracy, c[i].n, i, false, false, label[2 * i]};
        accuracy[n_accuracy++] =
            (stk_series){c[i].epoch_step, c[i].valid_accuracy, c[i].n_epochs, valid, false, true, valid_label};
        lr[i] = (stk_series){c[i].step, c[i].lr, c[i].n, i, false, false, label[2 * i]};
        speed[i] = (stk_series){c[i].step, c[i].speed, c[i].n, i, false, false, label[2 * i]};
    }
    stk_text_add(out, "<section><h2>Curves</h2><div class=charts>\n");
    stk_chart_add(out, &(stk_chart){"loss: each record, and smoothed", "step", loss, n_loss, false, false});
    stk_chart_add(out, &(stk_chart){"accuracy: mean of the epoch so far", "step", accuracy, n_accuracy, false, true});
    stk_chart_add(out, &(stk_chart){"samples a second", "step", speed, n, true, false});
    stk_chart_add(out, &(stk_chart){"learning rate", "step", lr, n, true, false});
    stk_text_add(out, "</div></section>\n");
}

stk_status stk_section_curves(stk_text *out, const stk_run_data *run, int n)
{
    columns c[STK_MOST_REPORTED] = {{0}};
    stk_status status = STK_OK;
    for (int i = 0; i < n && status == STK_OK; i++)
        status = make_columns(&run[i], &c[i]);
    if (status == STK_OK) add_charts(out, run, c, n);
    for (int i = 0; i < n; i++)
        free(c[i].memory);
    return status;
}

/* --- time --- */

static const char *judge(double share, bool is_input)
{
    double low = is_input ? 0.05 : 0.03, high = is_input ? 0.2 : 0.15;
    return share >= high ? "high" : share >= low ? "moderate" : "low";
}

static void add_shares(stk_text *out, const stk_run_data *run)
{
    static const char *const names[] = {"input", "host", "launch", "communication", "idle", "compute"};
    static const int colors[] = {1, 3, 4, 6, 7, 0};
    static const char *const meanings[] = {"waiting for a batch, or making it",
                                           "around the step: records, copies for checkpoints",
                                           "between kernels",
                                           "between devices; 0 where there is one",
                                           "for no reason that is known",
                                           "in kernels"};
    stk_part part[6];
    for (int i = 0; i < 6; i++) {
        char path[32];
        snprintf(path, sizeof(path), "time.%s", names[i]);
        double share = stk_json_number(run->profile, path);
        part[i] = (stk_part){names[i], isfinite(share) ? share : 0, colors[i]};
    }
    stk_parts_add(out, part, 6);
    stk_text_add(out, "<table>");
    for (int i = 0; i < 6; i++) {
        stk_text_add(out,
                     "<tr><td><i style=\"background:var(--s%d)\"></i>%s</td><td class=n>%.1f %%</td><td>%s</td><td "
                     "class=dim>%s</td></tr>",
                     colors[i], names[i], 100 * part[i].share, i < 5 ? judge(part[i].share, i == 0) : "", meanings[i]);
    }
    stk_text_add(out, "</table>\n");
}

static void add_work(stk_text *out, const stk_run_data *run)
{
    const json_t *list = stk_json_find(run->profile, "work"), *entry;
    double peak = stk_json_number(run->profile, "peaks.flops_per_s"),
           stream = stk_json_number(run->profile, "peaks.bytes_per_s");
    stk_part part[16];
    double sum = 0;
    size_t i, n = json_array_size(list);
    if (n == 0) return;
    if (n > 16) n = 16;
    json_array_foreach(list, i, entry) sum += stk_json_number(entry, "s");
    if (!(sum > 0)) return;
    for (i = 0; i < n; i++) {
        entry = json_array_get(list, i);
        part[i] = (stk_part){stk_json_text(entry, "work"), stk_json_number(entry, "s") / sum, (int)i};
    }
    stk_text_add(out, "<h4>Of the compute</h4>\n");
    stk_parts_add(out, part, (int)n);
    stk_text_add(out, "<table><tr><th></th><th class=n>share</th><th class=n>a step</th><th class=n>FLOP/s</th><th "
                      "class=n>of the peak</th><th class=n>bytes/s</th><th class=n>of the peak</th></tr>\n");
    for (i = 0; i < n; i++) {
        char a[STK_SHORT_TEXT], b[STK_SHORT_TEXT], c[STK_SHORT_TEXT], d[STK_SHORT_TEXT], e[STK_SHORT_TEXT];
        entry = json_array_get(list, i);
        double s = stk_json_number(entry, "s"), flops = stk_json_number(entry, "flops") / s,
               bytes = stk_json_number(entry, "bytes") / s;
        stk_text_add(out, "<tr><td><i style=\"background:var(--s%d)\"></i>", (int)i % 8);
        stk_html_add(out, part[i].name);
        stk_text_add(out,
                     "</td><td class=n>%.1f %%</td><td class=n>%s</td><td "
                     "class=n>%s</td><td class=n>%s</td><td class=n>%s</td><td class=n>%s</td></tr>\n",
                     100 * part[i].share, stk_short_time(s, a), stk_short_number(flops, b),
                     show_percent(flops / peak, c), stk_short_bytes(bytes, d), show_percent(bytes / stream, e));
    }
    stk_text_add(out, "</table>\n");
}

void stk_section_time(stk_text *out, const stk_run_data *run, int n)
{
    bool is_known = false;
    for (int i = 0; i < n; i++)
        is_known |= run[i].profile != NULL;
    if (!is_known) return;
    stk_text_add(out, "<section><h2>Where the time went</h2>\n");
    for (int i = 0; i < n; i++) {
        if (!run[i].profile) continue;
        stk_text_add(out, "<h3>");
        stk_html_add(out, n > 1 ? stk_run_data_name(&run[i]) : "The training loop, without validation");
        stk_text_add(out, "</h3>\n");
        add_shares(out, &run[i]);
        add_work(out, &run[i]);
    }
    stk_text_add(out,
                 "<p class=dim>Moderate from 5 %% and high from 20 %% for input, 3 %% and 15 %% for host, launch and "
                 "communication, as XProf has it. Kernels are timed in one step of sixteen, on GPUs in the steps of "
                 "--trace. Bytes are what a kernel must "
                 "move at least; what lies in caches makes them come faster than memory gives them.</p></section>\n");
}
