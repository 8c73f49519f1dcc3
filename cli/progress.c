/* See progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

static const int64_t REDRAW_NS = 100000000; /* of the moving line */
static const int64_t LINE_NS = 30000000000; /* between plain lines of steps */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

progress progress_make(bool quiet, bool json)
{
    return (progress){.quiet = quiet, .json = json, .terminal = cli_is_terminal(stdout) && !quiet && !json};
}

void progress_clear(progress *p)
{
    if (p->line_shown) fputs("\r\033[K", stdout);
    p->line_shown = false;
    fflush(stdout);
}

/* --- where the time goes --- */

typedef struct time_share {
    const char *name;
    double share, moderate, high; /* XProf's thresholds */
} time_share;

enum { N_SHARES = 5 };

static void list_shares(const stk_time_shares *time, time_share out[N_SHARES])
{
    out[0] = (time_share){"input", time->input, 0.05, 0.2};
    out[1] = (time_share){"host", time->host, 0.03, 0.15};
    out[2] = (time_share){"launch", time->launch, 0.03, 0.15};
    out[3] = (time_share){"communication", time->communication, 0.03, 0.15};
    out[4] = (time_share){"idle", time->idle, 0.03, 0.15};
}

static void print_shares(const stk_time_shares *time)
{
    time_share shares[N_SHARES];
    list_shares(time, shares);
    cli_printf("  time went to");
    for (int i = 0; i < N_SHARES; i++) {
        const time_share *s = &shares[i];
        if (i > 2 && s->share < 0.0005) continue; /* one device waits for no other */
        cli_printf(" %s %.1f %%", s->name, 100 * s->share);
        if (s->share >= s->moderate)
            cli_printf(" (%sless than %.0f %% is usual)", s->share >= s->high ? "high: " : "", 100 * s->moderate);
        cli_printf(",");
    }
    cli_printf(" compute %.1f %%\n", 100 * time->compute);
}

/* The line that moves, with what is most important first. */
static void draw_line(progress *p, const stk_train_event *event)
{
    enum { PART = 2 * CLI_TEXT };
    char text[CLI_TEXT], parts[8 + N_SHARES][PART];
    const char *part[8 + N_SHARES];
    time_share shares[N_SHARES];
    int n = 0;
    snprintf(parts[n++], PART, "epoch %" PRId64 "/%" PRId64 "  loss %s", event->epoch, event->n_epochs,
             cli_loss(event->train.n_samples > 0 ? event->train.loss : event->loss, text));
    if (event->train.accuracy >= 0)
        snprintf(parts[n++], PART, "  acc %.1f %%", 100 * event->train.accuracy);
    else if (event->train.perplexity > 0)
        snprintf(parts[n++], PART, "  ppl %s", cli_number_text(event->train.perplexity, text));
    snprintf(parts[n++], PART, "  %s left", cli_duration(event->left_s, text));
    snprintf(parts[n++], PART, "  %s %ss/s", cli_rate(event->samples_per_s, text), p->info.sample);
    if (event->n_skipped_steps > 0) snprintf(parts[n++], PART, "  %" PRId64 " skipped", event->n_skipped_steps);
    snprintf(parts[n++], PART, "  input %.1f %%", 100 * event->input_wait_share);
    list_shares(&event->time, shares);
    for (int i = 1; i < N_SHARES; i++)
        if (shares[i].share >= shares[i].moderate)
            snprintf(parts[n++], PART, "  %s %.1f %%", shares[i].name, 100 * shares[i].share);
    snprintf(parts[n++], PART, "  compute %.1f %%", 100 * event->time.compute);
    for (int i = 0; i < n; i++)
        part[i] = parts[i];
    cli_draw(part, n, event->n_steps > 0 ? (double)event->step / (double)event->n_steps : 0);
    p->line_shown = true;
}

/* --- lines that stay --- */

static void print_values(const stk_metrics *metrics)
{
    char text[CLI_TEXT];
    for (int i = 0; i < metrics->n_values; i++)
        cli_printf("  %s %s", metrics->value[i].name, cli_number_text(metrics->value[i].value, text));
}

/* Steps that loss scale or on_nan skipped. */
static void print_skipped_steps(const stk_train_event *event)
{
    char text[CLI_TEXT];
    if (event->n_skipped_steps == 0) return;
    cli_printf("  %" PRId64 " step%s skipped", event->n_skipped_steps, event->n_skipped_steps == 1 ? "" : "s");
    if (event->loss_scale > 0) cli_printf(", loss scale %s", cli_number_text(event->loss_scale, text));
}

/* Where lines are kept, in a file or a log, one now and then shows that the run is alive. */
static void print_step(const progress *p, const stk_train_event *event)
{
    char step[CLI_TEXT], n_steps[CLI_TEXT], count[CLI_TEXT], left[CLI_TEXT];
    cli_printf("epoch %3" PRId64 "/%" PRId64 "  step %s/%s  loss %s", event->epoch, event->n_epochs,
               cli_count(event->step, step), cli_count(event->n_steps, n_steps),
               cli_loss(event->train.n_samples > 0 ? event->train.loss : event->loss, count));
    if (event->train.accuracy >= 0) cli_printf("  acc %.2f %%", 100 * event->train.accuracy);
    if (event->train.perplexity > 0) cli_printf("  ppl %s", cli_number_text(event->train.perplexity, count));
    print_values(&event->train);
    print_skipped_steps(event);
    cli_printf("  %s %ss/s  input %.1f %%  %s left\n", cli_rate(event->samples_per_s, count), p->info.sample,
               100 * event->input_wait_share, cli_duration(event->left_s, left));
    fflush(stdout);
}

static void print_epoch(progress *p, const stk_train_event *event)
{
    char count[CLI_TEXT], left[CLI_TEXT];
    progress_clear(p);
    cli_printf("%sepoch %3" PRId64 "/%" PRId64 "%s  loss %s", cli_mark_text(stdout, CLI_BOLD), event->epoch,
               event->n_epochs, cli_mark_text(stdout, CLI_PLAIN), cli_loss(event->train.loss, count));
    if (event->train.accuracy >= 0) cli_printf("  acc %.2f %%", 100 * event->train.accuracy);
    if (event->train.perplexity > 0) cli_printf("  ppl %s", cli_number_text(event->train.perplexity, count));
    print_values(&event->train);
    if (event->valid.n_samples > 0) {
        cli_printf("  valid loss %s", cli_loss(event->valid.loss, count));
        if (event->valid.perplexity > 0) cli_printf(" ppl %s", cli_number_text(event->valid.perplexity, count));
        if (event->valid.accuracy >= 0) cli_printf(" acc %.2f %%", 100 * event->valid.accuracy);
        print_values(&event->valid);
    }
    double speed = event->epoch_s > 0 ? (double)event->train.n_samples / event->epoch_s : event->samples_per_s;
    print_skipped_steps(event);
    cli_printf("  %s %ss/s  input %.1f %%  %s", cli_rate(speed, count), p->info.sample, 100 * event->input_wait_share,
               cli_duration(event->epoch_s, left));
    if (event->epoch < event->n_epochs) cli_printf("  %s left", cli_duration(event->left_s, left));
    cli_printf("\n");
    fflush(stdout);
}

static void print_plan(progress *p, const stk_train_event *event)
{
    char count[CLI_TEXT], flops[CLI_TEXT], peak[CLI_TEXT], limit[CLI_TEXT];
    cli_printf("model   %s, %s parameters, %s %s %s forward\n", cli_shown(p->info.model),
               cli_count(event->n_parameters, count), cli_flops(event->forward_flops, flops),
               strchr("aeiou", p->info.sample[0]) ? "an" : "a", p->info.sample);
    cli_printf("plan    %s, %s, batch %" PRId64 ", peak %s", event->text, event->precision, p->info.batch,
               cli_bytes((double)event->peak_planned_bytes, peak));
    size_t most = event->memory_limit_bytes ? event->memory_limit_bytes : p->info.memory_limit_bytes;
    if (most > 0) cli_printf(" of %s", cli_bytes((double)most, limit));
    if (event->checkpoint_copy_bytes > 0)
        cli_printf("; a copy to save, %s", cli_bytes((double)event->checkpoint_copy_bytes, peak));
    cli_printf("\n");
    if (event->n_micro > 1)
        cli_printf("        %" PRId64 " micro-batches of %" PRId64 " a step\n", event->n_micro, event->micro_batch);
    if (event->n_replicas > 1)
        cli_printf("        %d replicas, each with %" PRId64 " %ss of a batch\n", event->n_replicas,
                   event->n_micro * event->micro_batch, p->info.sample);
    if (event->n_recomputed > 0)
        cli_printf("        recompute %" PRId64 " of %" PRId64 " activations, %.1f %% more FLOP a step\n",
                   event->n_recomputed, event->n_kept,
                   100 * event->recompute_flops / (event->step_flops - event->recompute_flops));
    if (event->expected_slowdown > 1.005)
        cli_printf("        expected %.2fx the time of a step without a limit\n", event->expected_slowdown);
    p->compiles_steps = event->compiles_steps;
    if (event->builds_kernels && !p->terminal)
        cli_printf(p->compiles_steps ? "the step is compiled for this device where no earlier run left it\n"
                                     : "kernels for this device are built where no earlier run left them\n");
    fflush(stdout);
    if (!p->terminal || !event->builds_kernels) return;
    /* It stands until they are built. */
    const char *part = p->compiles_steps ? "compiling the step for this device"
                                         : "building kernels for this device, which later runs find";
    cli_draw(&part, 1, 0);
    p->line_shown = true;
}

/* What took so short that nobody waited for it was built before. */
static void print_built(progress *p, const stk_train_event *event)
{
    char text[CLI_TEXT];
    progress_clear(p);
    if (event->step_s < 1) return;
    cli_printf(p->compiles_steps ? "compiled in %s\n" : "kernels built in %s, kept for later runs\n",
               cli_duration(event->step_s, text));
    fflush(stdout);
}

void progress_info(void *user, const stk_run_info *info)
{
    progress *p = user;
    char count[CLI_TEXT], bytes[CLI_TEXT];
    p->info = *info;
    if (p->quiet) return;
    if (p->json) {
        printf("{\"event\": \"data\", \"name\": ");
        cli_json_text(stdout, info->name);
        printf(", \"folder\": ");
        cli_json_text(stdout, info->folder);
        printf(", \"train\": %" PRId64 ", \"valid\": %" PRId64 ", \"test\": %" PRId64 ", \"classes\": %" PRId64
               ", \"bytes\": %" PRId64 ", \"resumed_step\": %" PRId64 "}\n",
               info->n_train, info->n_valid, info->n_test, info->n_classes, info->source_bytes, info->resumed_step);
        return;
    }
    cli_printf("data    %s", cli_count(info->n_train, count));
    if (info->n_valid > 0) cli_printf(" + %s valid", cli_count(info->n_valid, count));
    if (info->n_test > 0) cli_printf(" + %s test", cli_count(info->n_test, count));
    cli_printf(" %ss", info->sample);
    if (info->n_classes > 0) cli_printf(", %s classes", cli_count(info->n_classes, count));
    if (info->source_bytes > 0) cli_printf(", %s", cli_bytes((double)info->source_bytes, bytes));
    cli_printf("\n");
    if (info->resumed_step > 0)
        cli_printf("resume  %s from step %s\n", cli_shown(info->folder), cli_count(info->resumed_step, count));
    fflush(stdout);
}

void progress_graph(void *user, const char *pass, const char *text)
{
    progress_clear(user);
    printf("--- after %s\n%s", pass, text); /* as it is, however wide */
}

/* --- JSON --- */

static void print_json_epoch(const stk_train_event *event)
{
    printf("{\"event\": \"epoch\", \"epoch\": %" PRId64 ", \"step\": %" PRId64 ", \"loss\": ", event->epoch,
           event->step);
    cli_json_number(stdout, event->train.loss);
    printf(", \"accuracy\": ");
    cli_json_number(stdout, event->train.accuracy);
    cli_json_values("", &event->train);
    if (event->valid.n_samples > 0) {
        printf(", \"valid_loss\": ");
        cli_json_number(stdout, event->valid.loss);
        printf(", \"valid_accuracy\": ");
        cli_json_number(stdout, event->valid.accuracy);
        cli_json_values("valid_", &event->valid);
    }
    if (event->loss_scale > 0)
        printf(", \"loss_scale\": %.7g, \"skipped_steps\": %" PRId64, event->loss_scale, event->n_skipped_steps);
    printf(", \"samples_per_s\": %.6g, \"input_wait_share\": %.4g, \"epoch_s\": %.6g}\n", event->samples_per_s,
           event->input_wait_share, event->epoch_s);
}

static void print_json_event(const stk_train_event *event)
{
    switch (event->kind) {
    case STK_EVENT_PLAN:
        printf("{\"event\": \"plan\", \"device\": ");
        cli_json_place(stdout, event->text);
        printf(", \"parameters\": %" PRId64
               ", \"forward_flops\": %.9g, \"peak_planned_bytes\": %zu, \"steps\": %" PRId64 "}\n",
               event->n_parameters, event->forward_flops, event->peak_planned_bytes, event->n_steps);
        break;
    case STK_EVENT_EPOCH: print_json_epoch(event); break;
    case STK_EVENT_SAVED:
    case STK_EVENT_TRACED:
    case STK_EVENT_SERVED:
    case STK_EVENT_WARNING:
        printf("{\"event\": \"%s\", \"text\": ", event->kind == STK_EVENT_SAVED    ? "saved"
                                                 : event->kind == STK_EVENT_TRACED ? "traced"
                                                 : event->kind == STK_EVENT_SERVED ? "served"
                                                                                   : "warning");
        cli_json_place(stdout, event->text);
        printf("}\n");
        break;
    default: return;
    }
    fflush(stdout);
}

void progress_event(void *user, const stk_train_event *event)
{
    progress *p = user;
    if (event->kind == STK_EVENT_STEP) p->last = *event;
    if (event->kind == STK_EVENT_WARNING) {
        progress_clear(p);
        cli_warn("%s", cli_shown(event->text));
    }
    if (p->quiet) return;
    if (p->json) {
        print_json_event(event);
        return;
    }
    if (event->kind == STK_EVENT_PLAN) print_plan(p, event);
    if (event->kind == STK_EVENT_BUILT) print_built(p, event);
    if (event->kind == STK_EVENT_EPOCH) print_epoch(p, event);
    if (event->kind == STK_EVENT_TRACED) {
        progress_clear(p);
        cli_printf("trace   %s; open it at ui.perfetto.dev\n", cli_shown(event->text));
    }
    if (event->kind == STK_EVENT_SERVED) {
        cli_printf("metrics %s\n", event->text);
        fflush(stdout);
    }
    if (event->kind == STK_EVENT_STEP) {
        int64_t now = now_ns(), pause = p->terminal ? REDRAW_NS : LINE_NS;
        if (p->last_ns == 0 && !p->terminal) p->last_ns = now;
        if (now - p->last_ns < pause) return;
        p->last_ns = now;
        if (p->terminal)
            draw_line(p, event);
        else
            print_step(p, event);
    }
    if (event->kind == STK_EVENT_END) progress_clear(p);
}

/* --- the end --- */

static void print_skipped(const stk_run *run, int64_t n)
{
    char count[CLI_TEXT];
    if (n == 0) return;
    cli_printf("skipped %s record%s:\n", cli_count(n, count), n == 1 ? "" : "s");
    for (int64_t i = 0;; i++) {
        const char *text = stk_run_skipped(run, i);
        if (!text) break;
        cli_printf("        %s\n", cli_shown(text));
    }
}

/* The time is this process's, and so are the steps. */
static void print_time(const stk_train_result *train, int64_t resumed_step)
{
    char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT];
    int64_t n = train->n_steps - resumed_step;
    cli_printf("  time         %s  (%s step%s", cli_duration(train->wall_s, a), cli_count(n, b), n == 1 ? "" : "s");
    if (resumed_step > 0) cli_printf(", %s in all", cli_count(train->n_steps, b));
    cli_printf(", %s epoch%s", cli_count(train->n_epochs, c), train->n_epochs == 1 ? "" : "s");
    if (n > 0) cli_printf("; the first step %.2f s after the program's start", train->first_step_s);
    cli_printf(")\n");
}

static void print_expected(const stk_run_result *result)
{
    char text[CLI_TEXT];
    for (int i = 0; i < result->n_expected; i++) {
        const stk_expected *e = &result->expected[i];
        if (e->is_met) /* what is missed is an error */
            cli_printf("  expected     %s: reached, it is %s\n", cli_shown(e->text), cli_number_text(e->value, text));
    }
    if (result->unjudged_epochs > 0)
        cli_printf("  expected     not judged: the recipe's %lld epochs are to reach it\n",
                   (long long)result->unjudged_epochs);
}

static void print_table(const stk_run *run, const stk_run_result *result, const stk_run_info *info)
{
    char a[CLI_TEXT], b[CLI_TEXT];
    const char *sample = info->sample;
    const stk_train_result *train = &result->train;
    cli_printf("\n");
    if (result->test.n_samples > 0) {
        if (result->test.accuracy >= 0) {
            cli_printf("  accuracy     %.2f %%  (", 100 * result->test.accuracy);
            if (result->test.top5 >= 0) cli_printf("top-5 %.2f %%; ", 100 * result->test.top5);
            cli_printf("%s test %ss)\n", cli_count(result->test.n_samples, a), sample);
        }
        for (int i = 0; i < result->test.n_values; i++)
            cli_printf("  %-12s %s\n", result->test.value[i].name, cli_number_text(result->test.value[i].value, a));
        cli_printf("  test loss    %s\n", cli_loss(result->test.loss, a));
        if (result->test.perplexity > 0) cli_printf("  perplexity   %s\n", cli_number_text(result->test.perplexity, a));
    } else {
        cli_printf("  test         none%s\n",
                   result->is_finished ? ": the recipe has no test data" : ": the run is not finished");
    }
    print_time(train, info->resumed_step);
    bool has_run = train->n_steps > info->resumed_step; /* else nothing but the test */
    if (has_run)
        cli_printf("  %ss/s%*s%s in the median step\n", sample, 10 - (int)strlen(sample), "",
                   cli_rate(train->samples_per_s, a));
    if (train->tokens_per_s > 0) cli_printf("  tokens/s     %s\n", cli_rate(train->tokens_per_s, a));
    if (has_run)
        cli_printf("  input wait   %.2f %%, %s, with %d data thread%s\n", 100 * train->input_wait_share,
                   stk_input_verdict(train->input_wait_share), train->n_data_threads,
                   train->n_data_threads == 1 ? "" : "s");
    cli_printf("  peak memory  %s planned, ", cli_bytes((double)train->peak_planned_bytes, a));
    if (result->checkpoint_copy_bytes > 0)
        cli_printf("%s for a copy to save, ", cli_bytes((double)result->checkpoint_copy_bytes, a));
    cli_printf("%s used by the process\n", cli_bytes((double)train->peak_rss_bytes, b));
    if (has_run) print_shares(&train->time);
    if (stk_run_saved(run)) cli_printf("  saved        %s\n", cli_shown(stk_run_saved(run)));
    print_expected(result);
    if (train->early_stopped) cli_printf("  stopped early: validation did not get better\n");
    print_skipped(run, train->n_skipped);
}

static void print_json_result(const stk_run_result *result)
{
    const stk_train_result *train = &result->train;
    printf("{\"event\": \"end\", \"finished\": %s, \"test_accuracy\": ", result->is_finished ? "true" : "false");
    bool is_tested = result->test.n_samples > 0;
    cli_json_number(stdout, is_tested && result->test.accuracy >= 0 ? result->test.accuracy : 0.0 / 0.0);
    printf(", \"test_loss\": ");
    cli_json_number(stdout, is_tested ? result->test.loss : 0.0 / 0.0);
    if (is_tested) cli_json_values("test_", &result->test);
    printf(", \"epochs\": %" PRId64 ", \"steps\": %" PRId64 ", \"wall_s\": %.6g, \"samples_per_s\": %.6g, "
           "\"input_wait_share\": %.4g, \"first_step_s\": %.4g, \"peak_planned_bytes\": %zu, \"peak_rss_bytes\": %zu, "
           "\"skipped_records\": %" PRId64 "}\n",
           train->n_epochs, train->n_steps, train->wall_s, train->samples_per_s, train->input_wait_share,
           train->first_step_s, train->peak_planned_bytes, train->peak_rss_bytes, train->n_skipped);
}

void progress_result(progress *p, const stk_run *run, const stk_run_result *result)
{
    progress_clear(p);
    if (p->quiet) return;
    if (p->json)
        print_json_result(result);
    else
        print_table(run, result, &p->info);
    fflush(stdout);
}
