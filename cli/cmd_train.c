/* stoker train */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "progress.h"
#include "stoker/printable.h"
#include "supervise.h"

static const cli_option options[] = {
    {"--set", "KEY=VALUE", "changes a key of the recipe: --set optimizer.sgd.lr=0.2; may be given often"},
    {"--out", "DIR", "the run's folder; default: runs/NAME"},
    {"--resume", NULL, "goes on from the last checkpoint, where there is one"},
    {"--steps", "N", "stops after step N"},
    {"--device", "DEVICE", "short for --set device=NAME; stoker devices lists them"},
    {"--memory", "SIZE", "short for --set memory=SIZE: 8GiB, 60%, auto"},
    {"--precision", "auto|f32|tf32|bf16|f16", "short for --set precision=NAME"},
    {"--batch", "N", "short for --set batch=N"},
    {"--epochs", "N", "short for --set epochs=N"},
    {"--threads", "N", "short for --set threads=N"},
    {"--replicas", "N", "short for --set replicas=N: shares of each batch, trained side by side"},
    {"--hosts", "LIST", "hosts to train on, by mpirun and its ssh or by srun, with ranks of each: a:2,b:2"},
    {"--seed", "N", "short for --set seed=N"},
    {"--deterministic", NULL, "short for --set deterministic=true: the same bits on all such processors"},
    {"--elastic", "MIN", "starts ranks by mpirun or srun and watches over them: after a failure at least MIN go on"},
    {"--ranks", "N",
     "with --elastic: processes to start, at first; default: MIN, or as many as the hosts have room for"},
    {"--restarts", "N", "with --elastic: gives up at more within an hour; default: 20"},
    {"--stuck", "SECONDS", "with --elastic: a rank that others wait for so long is ended; default: 60"},
    {"--trace", "STEPS", "writes steps like 10-20 to RUN/trace.json, for ui.perfetto.dev; 10: that one"},
    {"--quiet", NULL, "prints warnings and errors only"},
    {"--json", NULL, "prints a line of JSON for each event"},
    {"--dump-graph", "PASS", "prints the graph after that pass, or after each with 'all'"},
    {NULL, NULL, NULL}};

/* Set before the handlers are; NULL again when the run is over. */
static stk_run *volatile running;
/* What is shown of it. Handlers look at it, so it is there for as long as they are. */
static progress shown;
static bool shares_terminal; /* what handlers say comes where the moving line is, or the echo of Ctrl-C */

/* The last whole checkpoint, for the handler: one text is read while the other is written. */
static char kept[2][CLI_PATH];
static volatile sig_atomic_t i_kept;
static volatile sig_atomic_t builds; /* the program, then the device's kernels, before the first step */

static void keep(const char *path)
{
    int next = !i_kept;
    snprintf(kept[next], CLI_PATH, "%s", path);
    i_kept = next;
}

/* The first signal has the run saved, the second says what a third one costs, which ends the program. */
static void on_stop(int i_stop)
{
    const char *path = kept[i_kept], *line = shares_terminal ? "\r\033[K" : "";
    if (!running) return; /* there is nothing to finish any more */
    if (i_stop == 1) stk_run_stop(running);
    if (path[0] && access(path, F_OK) != 0) path = "";
    if (builds && i_stop > 1) { /* There is nothing that waiting would save. */
        cli_say_in_handler((const char *[]){line, "stoker: stopped before the first step; nothing was saved\n", NULL});
        _exit(cli_stop_code());
    }
    if (builds && i_stop == 1 && !shown.quiet)
        cli_say_in_handler(
            (const char *[]){line, "stoker: stopping before the first step; once more ends it now\n", NULL});
    else if (i_stop == 1 && !shown.quiet)
        cli_say_in_handler((const char *[]){line, "stoker: finishing the step, then saving\n", NULL});
    else if (i_stop == 2 && path[0])
        cli_say_in_handler((const char *[]){line,
                                            "stoker: still finishing the step and saving; once more gives that up and "
                                            "keeps '",
                                            path, "'\n", NULL});
    else if (i_stop == 2)
        cli_say_in_handler((const char *[]){
            line, "stoker: still finishing the step and saving; once more gives that up, and nothing is kept\n", NULL});
    else if (i_stop > 2 && path[0])
        cli_say_in_handler((const char *[]){line, "stoker: gave up saving; '", path, "' is kept\n", NULL});
    else if (i_stop > 2)
        cli_say_in_handler((const char *[]){line, "stoker: gave up saving; nothing is kept\n", NULL});
}

static void on_info(void *user, const stk_run_info *info)
{
    char path[CLI_PATH];
    progress_info(user, info);
    if (info->resumed_step > 0 &&
        snprintf(path, sizeof(path), "%s/step-%lld", info->folder, (long long)info->resumed_step) < (int)sizeof(path))
        keep(path);
}

static void on_event(void *user, const stk_train_event *event)
{
    if (event->kind == STK_EVENT_PLAN || event->kind == STK_EVENT_BUILT)
        builds = event->kind == STK_EVENT_PLAN && event->builds_kernels;
    if (event->kind == STK_EVENT_SAVED) keep(event->text);
    progress_event(user, event);
}

typedef struct command_line {
    int argc;
    char *const *argv;
} command_line;

/* The command that goes on with this run: this one, with --resume and without --steps. */
static void print_command(FILE *file, const void *user)
{
    char *const *argv = ((const command_line *)user)->argv;
    int argc = ((const command_line *)user)->argc;
    if (stk_run_n_ranks(running) > 1)
        fprintf(file, "%s -n %d ", getenv("SLURM_STEP_ID") ? "srun" : "mpirun", stk_run_n_ranks(running));
    fprintf(file, "stoker train");
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--resume") || !strncmp(argv[i], "--steps=", 8)) continue;
        if (!strcmp(argv[i], "--steps")) {
            i++;
            continue;
        }
        char word[CLI_PATH];
        fprintf(file, " ");
        cli_shell_word(file, stk_hide_secrets(argv[i], word, sizeof(word)));
    }
    fprintf(file, " --resume");
}

static void print_saved(const char *saved, int argc, char **argv)
{
    char line[CLI_PATH + 64];
    command_line command = {argc, argv};
    snprintf(line, sizeof(line), "saved   %s; go on with:", saved);
    cli_put_command(line, print_command, &command);
}

static int report_interrupt(progress *p, int argc, char **argv)
{
    progress_clear(p);
    if (!p->quiet && !p->json) {
        if (stk_run_saved(running))
            print_saved(cli_shown(stk_run_saved(running)), argc, argv);
        else
            cli_printf("stopped before the first step; nothing was saved\n");
    }
    return cli_stop_code();
}

/* CLI_FAILED where the recipe expects more. */
static int check_expected(const stk_run_result *result)
{
    char text[CLI_TEXT];
    int code = CLI_OK;
    for (int i = 0; i < result->n_expected; i++) {
        const stk_expected *e = &result->expected[i];
        if (e->is_met) continue;
        cli_error("the run falls short of its recipe: '%s' is expected, and it is %s", cli_shown(e->text),
                  cli_number_text(e->value, text));
        code = CLI_FAILED;
    }
    return code;
}

static int train(const char *recipe, const stk_run_options *run_options, progress *p, int argc, char **argv)
{
    stk_run_result result;
    stk_run *run;
    stk_status opened = stk_run_open(recipe, run_options, &run);
    if (opened == STK_LOST) return CLI_FAILED; /* The first of the processes that train together says why. */
    if (opened != STK_OK) return cli_fail();
    p->quiet |= stk_run_rank(run) > 0;
    builds = 1;
    running = run;
    shares_terminal = p->terminal && cli_is_terminal(stderr);
    cli_catch_stops(2, on_stop);
    stk_status status = stk_run_train(running, &result);
    int code;
    if (status == STK_OK && !result.was_finished) {
        progress_result(p, running, &result);
        code = check_expected(&result);
    } else if (status == STK_OK) {
        progress_clear(p);
        if (p->json)
            progress_result(p, running, &result);
        else if (!p->quiet && result.is_finished)
            cli_printf("the run in '%s' is finished; there is nothing left to do\n", cli_shown(p->info.folder));
        else if (!p->quiet)
            cli_printf("the run in '%s' is at step %lld already; --steps %lld leaves nothing to do\n",
                       cli_shown(p->info.folder), (long long)p->info.resumed_step, (long long)run_options->max_steps);
        code = check_expected(&result);
    } else if (status == STK_INTERRUPTED) {
        code = report_interrupt(p, argc, argv);
    } else if (status == STK_LOST && stk_run_rank(running) > 0) {
        code = CLI_FAILED; /* as above */
    } else {
        if (result.has_ended)
            progress_result(p, running, &result);
        else
            progress_clear(p);
        code = cli_fail();
        for (int64_t i = 0; stk_run_skipped(running, i) && !p->quiet; i++)
            fprintf(stderr, "        skipped %s\n", cli_shown(stk_run_skipped(running, i)));
        if (stk_run_saved(running) && !strstr(stk_error_text(), stk_run_saved(running)) && !p->quiet)
            cli_error("the last checkpoint is %s", cli_shown(stk_run_saved(running)));
        if ((status == STK_IO || status == STK_CORRUPT) && stk_run_saved(running) && !p->quiet && !p->json)
            print_saved(cli_shown(stk_run_saved(running)), argc, argv);
    }
    stk_run *ended = running;
    running = NULL;
    stk_run_close(ended);
    return code;
}

/* Shorthands become texts like "batch=64". Returned texts are freed by the caller. */
static bool collect_sets(const cli_args *args, char **sets, int *n)
{
    *n = 0;
    for (int i = 0; i < args->n_found; i++) {
        const char *name = args->found[i].option->name, *value = args->found[i].value;
        static const char *const shorthands[] = {"--device", "--memory",  "--precision", "--batch",
                                                 "--epochs", "--threads", "--replicas",  "--seed"};
        bool is_short = false, is_set = !strcmp(name, "--deterministic");
        for (size_t k = 0; k < sizeof(shorthands) / sizeof(shorthands[0]); k++)
            is_short = is_short || !strcmp(name, shorthands[k]);
        if (is_set) value = "true";
        is_short |= is_set;
        if (!is_short && strcmp(name, "--set")) continue;
        size_t bytes = strlen(name) + strlen(value) + 2;
        char *set = malloc(bytes);
        if (!set) return false;
        if (is_short)
            snprintf(set, bytes, "%s=%s", name + 2, value);
        else
            snprintf(set, bytes, "%s", value);
        sets[(*n)++] = set;
    }
    return true;
}

/* "10-20" or "10". */
static bool read_trace(const cli_args *args, int64_t *first, int64_t *last)
{
    const char *text = cli_value(args, "--trace");
    char *end;
    *first = *last = 0;
    if (!text) return true;
    errno = 0;
    *first = *last = strtoll(text, &end, 10);
    if (end != text && *end == '-') *last = strtoll(end + 1, &end, 10);
    if (errno == 0 && !*end && *first >= 1 && *last >= *first && *last - *first < 1000) return true;
    cli_usage(args->verb, "option '--trace' must be steps like 10-20, at most 1,000 of them, not '%s'", text);
    return false;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args; /* too large for the stack */
    static char *sets[CLI_MOST_ARGS];
    int n_sets = 0, code = CLI_FAILED;
    int64_t steps, trace_first, trace_last;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 1)
        return cli_usage(verb,
                         args.n_words == 0 ? "train needs a recipe: stoker train RECIPE.yaml"
                                           : "train takes one recipe, and there are %d",
                         args.n_words);
    if (!cli_number(&args, "--steps", 1, INT64_MAX, 0, &steps)) return CLI_USAGE;
    if (!read_trace(&args, &trace_first, &trace_last)) return CLI_USAGE;
    for (int i = 0; i < args.n_found; i++)
        if (!strcmp(args.found[i].option->name, "--set") && !strchr(args.found[i].value, '='))
            return cli_usage(verb, "option '--set' needs KEY=VALUE, not '%s'", args.found[i].value);
    if (cli_has(&args, "--json") && cli_has(&args, "--dump-graph"))
        return cli_usage(verb, "graphs are no JSON: '--dump-graph' does not go with '--json'");
    shown = progress_make(cli_has(&args, "--quiet"), cli_has(&args, "--json"));
    bool is_elsewhere = cli_wants_supervisor(&args) || cli_wants_hosts(&args);
    if (!collect_sets(&args, sets, &n_sets)) {
        cli_error("out of memory");
    } else if (is_elsewhere) { /* What is wrong with the recipe is said once, and no launcher adds to it. */
        if (stk_recipe_check(args.word[0], (const char *const *)sets, n_sets) != STK_OK)
            code = cli_fail();
        else
            code = (cli_wants_hosts(&args) ? cli_train_on_hosts : cli_supervise)(&args, argc, argv);
    } else {
        stk_run_options run_options = {.set = (const char *const *)sets,
                                       .n_set = n_sets,
                                       .out = cli_value(&args, "--out"),
                                       .resume = cli_has(&args, "--resume"),
                                       .ranks = true,
                                       .max_steps = steps,
                                       .trace_first = trace_first,
                                       .trace_last = trace_last,
                                       .on_info = on_info,
                                       .on_event = on_event,
                                       .dump_graph = cli_value(&args, "--dump-graph"),
                                       .dump = progress_graph,
                                       .user = &shown};
        code = train(args.word[0], &run_options, &shown, argc, argv);
    }
    for (int i = 0; i < n_sets; i++)
        free(sets[i]);
    return code;
}

const cli_verb cli_train = {
    "train",
    "RECIPE [OPTION...]",
    "Trains the network of a recipe. The run's folder, runs/NAME, gets checkpoints, metrics.jsonl and "
    "result.json. Ctrl-C finishes the step, saves, and says how to go on.",
    options,
    run,
    .makes_files = true};
