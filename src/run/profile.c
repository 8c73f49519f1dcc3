/* profile.json: what a run's time and memory went to, for 'stoker report' and for scripts, with what the machine can
 * do, measured where the run was long enough to be worth it. docs/observing.md has its fields.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/processor.h"
#include "base/thread.h"
#include "engine/breakdown.h"
#include "engine/profile.h"
#include "events/json_text.h"
#include "run/state.h"
#include "train/trainer_state.h"

enum { MOST_KERNELS = 60, MOST_BUFFERS = 1500 };
static const double WORTH_MEASURING_S = 20; /* the measurement takes about half a second */

typedef struct profile_info {
    const stk_run_info *run;
    const stk_energy *energy;
    const stk_device_speed *peaks; /* NULL: not measured */
    size_t peak_rss_bytes;         /* of the process, before that was measured */
} profile_info;

static void add(stk_text *out, const char *key, double value)
{
    stk_text_add(out, ", \"%s\": ", key);
    stk_json_add_number(out, value, 7);
}

static void add_text(stk_text *out, const char *key, const char *value)
{
    stk_text_add(out, ", \"%s\": ", key);
    stk_json_add_text(out, value ? value : "");
}

/* --- the machine --- */

static void add_processor(stk_text *out)
{
    char name[STK_PROCESSOR_NAME];
    stk_text_add(out, "\"processor\": ");
    stk_json_add_text(out, stk_processor_name(name, sizeof(name)) ? name : "unknown");
}

static void add_machine(stk_text *out, const stk_trainer *trainer)
{
    struct utsname system;
    stk_text device = {0};
    const stk_device *d = stk_engine_device(trainer->engine);
    d->class->describe(d, &device);
    stk_text_add(out, ",\n\"machine\": {");
    add_processor(out);
    add(out, "cores", stk_n_cores());
    add(out, "memory_bytes", (double)stk_machine_memory(false));
    if (uname(&system) == 0) {
        add_text(out, "system", system.sysname);
        add_text(out, "kernel", system.release);
        add_text(out, "host", system.nodename);
    }
    add_text(out, "device", d->class->name);
    add_text(out, "about", stk_text_get(&device));
    if (device.failed) out->failed = true;
    add_text(out, "stoker", stk_version());
    stk_text_add(out, "}");
    stk_text_free(&device);
}

/* --- kernels --- */

typedef struct sum {
    const stk_trace_kernel *about;
    double ns, flops, bytes; /* of one step */
    int n;
} sum;

static bool is_same(const stk_trace_kernel *a, const stk_trace_kernel *b)
{
    return !strcmp(a->op, b->op) && !strcmp(a->layer, b->layer) && !strcmp(a->shape, b->shape) && a->impl == b->impl;
}

static int compare_ns(const void *a, const void *b)
{
    double x = ((const sum *)a)->ns, y = ((const sum *)b)->ns;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Adds entries up: by kind of work, or those that are alike. Returns how many sums, most time first. */
static int add_up(const stk_program *program, const stk_trace_kernel *about, int n, bool by_work, sum *out)
{
    int n_sums = 0;
    double n_runs = (double)stk_program_n_profiled(program);
    for (int e = 0; e < n; e++) {
        int i = 0;
        while (i < n_sums && !(by_work ? !strcmp(out[i].about->work, about[e].work) : is_same(out[i].about, &about[e])))
            i++;
        if (i == n_sums) out[n_sums++] = (sum){.about = &about[e]};
        out[i].ns += n_runs > 0 ? (double)stk_program_entry_ns(program, e) / n_runs : 0;
        out[i].flops += about[e].flops;
        out[i].bytes += about[e].bytes;
        out[i].n++;
    }
    qsort(out, (size_t)n_sums, sizeof(*out), compare_ns);
    return n_sums;
}

static void add_sum(stk_text *out, const sum *s, bool by_work)
{
    if (by_work) {
        add_text(out, "work", s->about->work);
    } else {
        add_text(out, "op", s->about->op);
        add_text(out, "layer", s->about->layer);
        add_text(out, "shape", s->about->shape);
        add_text(out, "impl", s->about->impl);
        add_text(out, "work", s->about->work);
    }
    add(out, "s", s->ns * 1e-9);
    add(out, "flops", s->flops);
    add(out, "bytes", s->bytes);
    add(out, "n", s->n);
}

static stk_status add_kernels(stk_text *out, stk_program *program)
{
    const stk_trace_kernel *about;
    int n;
    STK_RETURN_IF_ERROR(stk_program_get_about(program, &about, &n));
    sum *sums = calloc((size_t)n + 1, sizeof(*sums));
    if (!sums) return stk_fail_memory((size_t)n * sizeof(*sums));
    for (int by_work = 1; by_work >= 0; by_work--) {
        int n_sums = add_up(program, about, n, by_work, sums);
        stk_text_add(out, ",\n\"%s\": [", by_work ? "work" : "kernels");
        for (int i = 0; i < n_sums && i < MOST_KERNELS; i++) {
            stk_text_add(out, "%s\n  {\"i\": %d", i ? "," : "", i);
            add_sum(out, &sums[i], by_work);
            stk_text_add(out, "}");
        }
        stk_text_add(out, "]");
        memset(sums, 0, (size_t)n * sizeof(*sums));
    }
    free(sums);
    return STK_OK;
}

/* --- input --- */

static void add_input(stk_text *out, stk_trainer *trainer)
{
    if (trainer->loader) stk_trainer_keep_loader(trainer, trainer->loader);
    const stk_loader_stats *s = &trainer->loader_stats;
    stk_text_add(out, ",\n\"input\": {\"threads\": %d", s->n_threads);
    add(out, "active_threads", s->n_active_threads);
    add(out, "slots", s->n_slots);
    add(out, "used_slots", s->n_used_slots);
    add(out, "ready_mean", s->ready_mean);
    add(out, "n_samples", (double)s->n_samples);
    add(out, "work_s", (double)s->work_ns * 1e-9);
    add(out, "slot_bytes", (double)s->slot_bytes);
    stk_text_add(out, ", \"ready\": [");
    for (int i = 0; i < s->n_history; i++)
        stk_text_add(out, "%s%.3g", i ? ", " : "", (double)s->ready[i]);
    stk_text_add(out, "], \"stages\": [");
    for (int i = 0; i < trainer->n_stages; i++) {
        stk_text_add(out, "%s\n  {\"i\": %d", i ? "," : "", i);
        add_text(out, "field", trainer->stage[i].field);
        add_text(out, "name", trainer->stage[i].name);
        add(out, "ns", trainer->stage[i].ns_per_sample);
        stk_text_add(out, "}");
    }
    stk_text_add(out, "]}");
}

/* --- memory --- */

static stk_status add_memory(stk_text *out, stk_trainer *trainer, const profile_info *info)
{
    stk_program_info program = stk_program_get_info(trainer->train.program);
    stk_arena_use *use = malloc(MOST_BUFFERS * sizeof(*use));
    int32_t n_nodes;
    if (!use) return stk_fail_memory(MOST_BUFFERS * sizeof(*use));
    int n = stk_program_get_arena(trainer->train.program, use, MOST_BUFFERS, &n_nodes);
    stk_text_add(out, ",\n\"memory\": {\"arena_bytes\": %zu", program.arena_bytes);
    add(out, "used_bytes", (double)program.used_bytes);
    add(out, "lower_bound_bytes", (double)program.lower_bound_bytes);
    add(out, "variable_bytes", (double)program.variable_bytes);
    add(out, "packed_bytes", (double)program.packed_bytes);
    add(out, "spread_bytes", (double)program.spread_bytes);
    add(out, "limit_bytes", (double)info->run->memory_limit_bytes);
    add(out, "peak_resident_bytes", (double)info->peak_rss_bytes);
    add(out, "n_nodes", n_nodes);
    stk_text_add(out, ", \"buffers\": [");
    for (int i = 0; i < n; i++) {
        stk_text_add(out, "%s\n  [%zu, %zu, %d, %d, \"%s\", ", i ? "," : "", use[i].offset, use[i].bytes,
                     (int)use[i].first, (int)use[i].last, use[i].what);
        stk_json_add_text(out, use[i].layer);
        stk_text_add(out, "]");
    }
    stk_text_add(out, "]}");
    free(use);
    return STK_OK;
}

/* --- the whole --- */

static void add_step(stk_text *out, const stk_trainer *trainer, const profile_info *info)
{
    const stk_timing *t = &trainer->timing;
    stk_train_result result;
    stk_program_info program = stk_program_get_info(trainer->train.program);
    stk_time_shares shares = stk_timing_get_shares(trainer);
    double mean_s = t->n_steps > 0 ? (double)t->loop_ns * 1e-9 / (double)t->n_steps : 0;
    stk_trainer_get_result(trainer, &result);
    stk_text_add(out, ",\n\"time\": {\"input\": %.6g", shares.input);
    add(out, "host", shares.host);
    add(out, "launch", shares.launch);
    add(out, "communication", shares.communication);
    add(out, "compute", shares.compute);
    add(out, "idle", shares.idle);
    stk_text_add(out, "},\n\"step\": {\"n\": %" PRId64, t->n_steps);
    add(out, "profiled", (double)stk_program_n_profiled(trainer->train.program));
    add(out, "mean_s", mean_s);
    add(out, "median_s", result.step_ms_median * 1e-3);
    add(out, "samples_per_s", mean_s > 0 ? (double)stk_trainer_step_rows(trainer) / mean_s : 0);
    add(out, "flops", program.flops);
    add(out, "recompute_flops", program.recompute_flops);
    add(out, "bytes", program.bytes);
    if (info->peaks && mean_s > 0)
        add(out, "mfu", (program.flops - program.recompute_flops) / mean_s / info->peaks->flops_per_s);
    stk_text_add(out, "}");
}

static void add_peaks(stk_text *out, const stk_trainer *trainer, const profile_info *info)
{
    const stk_energy *energy = info->energy;
    double n = (double)trainer->timing.n_steps * (double)stk_trainer_step_rows(trainer);
    stk_text_add(out, ",\n\"peaks\": ");
    if (info->peaks)
        stk_text_add(out, "{\"flops_per_s\": %.6g, \"bytes_per_s\": %.6g}", info->peaks->flops_per_s,
                     info->peaks->bytes_per_s);
    else
        stk_text_add(out, "null");
    stk_text_add(out, ",\n\"energy\": {\"source\": \"%s\"", energy->n > 0 ? "RAPL, packages" : "");
    if (energy->n == 0) add_text(out, "missing", energy->missing);
    if (energy->n > 0) add(out, "joules", energy->joules);
    if (energy->n > 0 && n > 0) add(out, "joules_per_sample", energy->joules / n);
    stk_text_add(out, "}");
}

/* Writes it whole or not at all. The trainer has run. */
static stk_status write_profile(stk_trainer *trainer, const profile_info *info, const char *path)
{
    stk_text out = {0};
    stk_status status;
    if (!trainer->prepared) return STK_OK;
    stk_text_add(&out, "{\"version\": 1");
    add_text(&out, "name", info->run->name);
    add_text(&out, "model", info->run->model);
    add_text(&out, "sample", info->run->sample);
    add_text(&out, "precision", trainer->result.precision);
    add(&out, "batch", (double)stk_trainer_step_rows(trainer));
    add(&out, "step_number", (double)trainer->state.step);
    add(&out, "n_steps", (double)trainer->n_steps);
    add_machine(&out, trainer);
    add_step(&out, trainer, info);
    add_peaks(&out, trainer, info);
    STK_TRY(add_kernels(&out, trainer->train.program));
    add_input(&out, trainer);
    STK_TRY(add_memory(&out, trainer, info));
    stk_text_add(&out, "}\n");
    STK_TRY(stk_text_status(&out));
    status = stk_file_write_durably(path, out.data, out.n);
done:
    stk_text_free(&out);
    return status;
}

void stk_run_write_profile(stk_run *run, const stk_train_result *result)
{
    char path[STK_PATH_BYTES], text[700];
    stk_device_speed speed;
    /* A limit holds until the end. */
    size_t limit = stk_trainer_step_limit(run->trainer);
    bool fits = limit == 0 || stk_trainer_planned(run->trainer) + STK_MEASURE_BYTES <= limit;
    bool worth = fits && (result->wall_s >= WORTH_MEASURING_S || run->options.trace_first > 0);
    bool measured = worth && stk_run_measure(run, &speed) == STK_OK;
    stk_energy_count(&run->energy);
    profile_info info = {&run->info, &run->energy, measured ? &speed : NULL, result->peak_rss_bytes};
    stk_status status = stk_path_join(path, sizeof(path), run->folder, "profile.json");
    if (status == STK_OK) status = write_profile(run->trainer, &info, path);
    if (status == STK_OK) return;
    snprintf(text, sizeof(text), "no profile: %.600s", stk_error_text());
    stk_run_warn(run, text);
}
