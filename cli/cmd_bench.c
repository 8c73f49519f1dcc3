/* stoker bench: times commands, alone or next to each other. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/new_folder.h"
#include "base/text.h"
#include "bench.h"
#include "bench/accelerator.h"
#include "bench/derived.h"
#include "bench/suite.h"
#include "bench/tell.h"
#include "cli.h"
#include "stoker/graph/device.h"

static const cli_option options[] = {
    {"--compare", "COMMAND", "times a command next to those of --with, in turns, and says which is faster"},
    {"--with", "COMMAND", "the one that --compare is compared with; may be given often"},
    {"--suite", "FILE", "a suite of one's own (docs/bench.md)"},
    {"--list", NULL, "lists the suites that are built in"},
    {"--device", "DEVICE", "that suites measure; default: cpu; stoker devices lists them"},
    {"--pattern", "REGEX",
     "what counts is not the time but the last number that this finds in what the command prints "
     "(as grep -E; of a group in it, if it has one); needs --unit"},
    {"--unit", "UNIT", "of that number: samples/s, ms"},
    {"--better", "less|more", "which numbers are better; default: less for times and s/..., else more"},
    {"--peak", "N", "the best that is possible, in that unit (of times the least): a number beyond it is an error"},
    {"--precision", "P%", "until the 95 % interval of the median is +-P % or narrower; default: 1%"},
    {"--until", "interval|entropy",
     "what ends it: intervals that are narrow enough, or that more runs tell little new of how figures scatter; "
     "default: interval"},
    {"--seconds", "S", "time for all, with warm-up; default: 60"},
    {"--runs", "N", "runs at least, of each command, where --seconds suffices; default: 10"},
    {"--most-runs", "N", "runs at most; default: 1000"},
    {"--warmup", "N", "runs to warm up at least, in a fifth of --seconds at most; default: 2"},
    {"--count-marked", NULL, "runs with a mark count, too"},
    {"--ignore-failure", NULL, "a command may end with another exit code than 0"},
    {"--show-output", NULL, "shows what commands print, on standard error"},
    {"--seed", "N", "of the order and the resamples; default: 1"},
    {"--out", "DIR", "the result's folder; default: runs/bench-NAME, or the next free name like it"},
    {"--json", NULL, "prints the result as JSON"},
    {"--quiet", NULL, "no line while it runs"},
    {"--nvml", "FILE", "NVIDIA's library, where it is not the driver's libnvidia-ml.so.1"},
    {"--over", "DIR", "for tests: files of DIR/proc and DIR/sys stand before the kernel's"},
    {NULL, NULL, NULL}};

enum { MOST_CASES = STK_BENCH_MOST_CASES, MOST_WORDS = 256 };

/* A command that is given as one text. */
typedef struct command_text {
    char *text; /* cut at blanks */
    char *word[MOST_WORDS + 1];
} command_text;

typedef struct bench_job {
    const cli_args *args;
    stk_bench bench;
    stk_bench_case cases[MOST_CASES];
    command_text command[MOST_CASES];
    stk_bench_suite suite;
    char name[512];
    bool shows_bar;
    double shown_at;
} bench_job;

/* One without any of the shell's characters needs no shell, whose start would be timed as well. */
static bool split_command(const char *text, command_text *out)
{
    static char shell[] = "sh", option[] = "-c";
    int n = 0;
    out->text = malloc(strlen(text) + 1);
    if (!out->text) return false;
    strcpy(out->text, text);
    memset(out->word, 0, sizeof(out->word)); /* the words end with NULL */
    if (strpbrk(text, "|&;<>()$`\\\"'*?[]#~=%{}\n")) {
        out->word[0] = shell;
        out->word[1] = option;
        out->word[2] = out->text;
        return true;
    }
    for (char *word = strtok(out->text, " \t"); word && n < MOST_WORDS; word = strtok(NULL, " \t"))
        out->word[n++] = word;
    return n > 0;
}

static bool is_time(const char *unit)
{
    static const char *const units[] = {
        "s",           "ms",   "us",     "ns",      "min",  "h",     "d",     "sec",  "second",       "seconds",
        "msec",        "usec", "minute", "minutes", "hour", "hours", "day",   "days", "milliseconds", "microseconds",
        "nanoseconds", "J",    "kJ",     "Wh",      "kWh",  "joule", "joules"};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (!strncmp(unit, units[i], strlen(units[i])) && (!unit[strlen(units[i])] || unit[strlen(units[i])] == '/'))
            return true;
    return false;
}

/* "1%" or "0.01". */
static bool read_precision(const cli_args *args, double *out)
{
    const char *text = cli_value(args, "--precision");
    char *end;
    if (!text) return true;
    double x = strtod(text, &end);
    if (*end == '%' && !end[1])
        x /= 100;
    else if (*end)
        x = NAN;
    if (end == text || !(x >= 0.0001 && x <= 0.5)) {
        cli_usage(args->verb, "option '--precision' must be a share from 0.01%% to 50%%, not '%s'", text);
        return false;
    }
    *out = x;
    return true;
}

static bool read_plan(const cli_args *args, stk_bench_plan *plan)
{
    int64_t seconds, runs, most, warmups, seed;
    const char *until = cli_value(args, "--until");
    *plan = stk_bench_plan_default();
    if (until && strcmp(until, "interval") != 0 && strcmp(until, "entropy") != 0) {
        cli_usage(args->verb, "option '--until' must be interval or entropy, not '%s'", until);
        return false;
    }
    if (!read_precision(args, &plan->precision) || !cli_number(args, "--seconds", 1, 1000000, 60, &seconds) ||
        !cli_number(args, "--runs", 1, 2000, plan->least_rounds, &runs) ||
        !cli_number(args, "--most-runs", 1, 2000, runs > 1000 ? 2000 : 1000, &most) ||
        !cli_number(args, "--warmup", 0, 1000, plan->least_warmups, &warmups) ||
        !cli_number(args, "--seed", 0, INT64_MAX, 1, &seed))
        return false;
    if (cli_value(args, "--most-runs") && !cli_value(args, "--runs") && runs > most) runs = most;
    if (most < runs) {
        cli_usage(args->verb, "option '--most-runs' is less than '--runs'");
        return false;
    }
    plan->most_s = (double)seconds;
    plan->least_rounds = (int)runs;
    plan->most_rounds = (int)most;
    plan->least_warmups = (int)warmups;
    if (plan->most_warmups < (int)warmups || warmups == 0) plan->most_warmups = (int)warmups;
    plan->seed = (uint64_t)seed;
    plan->counts_marked = cli_has(args, "--count-marked");
    plan->by_entropy = until && !strcmp(until, "entropy");
    plan->may_fail = cli_has(args, "--ignore-failure");
    plan->shows_output = cli_has(args, "--show-output");
    return true;
}

/* What all commands have in common. False: a message is out. */
static bool read_figure(const cli_args *args, stk_bench_case *c)
{
    const char *better = cli_value(args, "--better"), *peak = cli_value(args, "--peak");
    char *end;
    c->pattern = cli_value(args, "--pattern");
    c->unit = cli_value(args, "--unit");
    if (!c->pattern != !c->unit) {
        cli_usage(args->verb, c->pattern ? "option '--pattern' needs '--unit': a number without one says nothing"
                                         : "option '--unit' goes with '--pattern'");
        return false;
    }
    if (better && !c->pattern) {
        cli_usage(args->verb, "option '--better' goes with '--pattern': of times less is better");
        return false;
    }
    if (!c->unit) c->unit = "s";
    c->less_is_better = is_time(c->unit);
    if (better && strcmp(better, "less") && strcmp(better, "more")) {
        cli_usage(args->verb, "option '--better' must be less or more, not '%s'", better);
        return false;
    }
    if (better) c->less_is_better = !strcmp(better, "less");
    if (!peak) return true;
    c->peak = strtod(peak, &end);
    if (end != peak && !*end && c->peak > 0) return true;
    cli_usage(args->verb, "option '--peak' must be a number above 0, not '%s'", peak);
    return false;
}

static bool add_command(bench_job *job, const char *text)
{
    stk_bench_case *c = &job->cases[job->bench.n_cases];
    command_text *command = &job->command[job->bench.n_cases];
    if (job->bench.n_cases == MOST_CASES) {
        cli_usage(job->args->verb, "more than %d commands", MOST_CASES);
        return false;
    }
    if (!split_command(text, command)) {
        cli_usage(job->args->verb, "an empty command, or no memory for it");
        return false;
    }
    c->argv = command->word;
    c->name = text;
    job->bench.n_cases++;
    return read_figure(job->args, c);
}

/* The cases, by --compare and --with, or of the words behind --. */
static bool read_cases(bench_job *job, char *const *argv)
{
    static stk_text words;
    const cli_args *args = job->args;
    for (int i = 0; i < args->n_found; i++)
        if (!strcmp(args->found[i].option->name, "--compare") && !add_command(job, args->found[i].value)) return false;
    for (int i = 0; i < args->n_found; i++)
        if (!strcmp(args->found[i].option->name, "--with") && !add_command(job, args->found[i].value)) return false;
    if (!argv) return true;
    for (int i = 0; argv[i]; i++)
        stk_text_add(&words, "%s%s", i ? " " : "", argv[i]);
    job->cases[0].name = stk_text_get(&words);
    job->cases[0].argv = argv;
    job->bench.n_cases = 1;
    return read_figure(args, &job->cases[0]);
}

static const char *suite_device(const cli_args *args)
{
    const char *device = cli_value(args, "--device");
    return device ? device : "cpu";
}

/* Before minutes of other work: whether there is one. A plug-in that is named by its path says so itself, as it is
 * loaded. */
static stk_status check_device(const char *device)
{
    stk_device_info info;
    char missing[sizeof(info.detail)] = "";
    size_t n = strcspn(device, ":");
    if (device[n] && !isdigit((unsigned char)device[n + 1])) return STK_OK;
    for (int i = 0; stk_device_get_info(i, &info) == STK_OK; i++) {
        bool is_meant = (!strncmp(info.name, device, n) && !info.name[n]) || (info.is_gpu && !strcmp(device, "gpu"));
        if (is_meant && info.available) return STK_OK;
        if (is_meant) snprintf(missing, sizeof(missing), "%s", info.detail);
    }
    if (missing[0]) return stk_fail(STK_NO_DEVICE, "device '%s': %s", device, missing);
    return stk_fail(STK_NO_DEVICE, "no device '%s'; 'stoker devices' lists those here, and what others lack", device);
}

/* The chip's name to out, and what the maker publishes of it; NULL: nothing is known. */
static const stk_accelerator *find_published(const cli_args *args, char out[128])
{
    stk_device_info info;
    const char *device = suite_device(args);
    size_t n = strcspn(device, ":");
    int number = device[n] ? atoi(device + n + 1) : 0;
    for (int i = 0; stk_device_get_info(i, &info) == STK_OK; i++) {
        if (strncmp(info.name, device, n) || info.name[n] || (!info.on_host && info.number != number)) continue;
        snprintf(out, 128, "%s", info.chip);
        return stk_accelerator_find(info.chip);
    }
    out[0] = 0;
    return NULL;
}

static void describe_device(const cli_args *args, json_t *machine)
{
    char chip[128];
    const stk_accelerator *published = find_published(args, chip);
    json_object_set_new(machine, "device", json_string(suite_device(args)));
    if (chip[0]) json_object_set_new(machine, "chip", json_string(chip));
    json_object_set_new(machine, "published", stk_accelerator_json(published));
}

/* Products cannot be faster than the maker says; clocks may be a little higher than he counts with. */
static void limit_products(const cli_args *args, stk_bench_case *cases, int n)
{
    static const double MARGIN = 1.05;
    char chip[128];
    const stk_accelerator *published = find_published(args, chip);
    for (int i = 0; i < n; i++) {
        double peak = stk_accelerator_peak(published, cases[i].precision);
        if (!strcmp(cases[i].unit, "GFLOP/s") && cases[i].peak == 0 && peak > 0) cases[i].peak = MARGIN * peak * 1e-9;
    }
}

/* A suite's cases; what it says holds where no option says otherwise. */
static stk_status read_suite(bench_job *job, const stk_bench_builtin *builtin)
{
    static char program[CLI_PATH];
    const cli_args *args = job->args;
    stk_bench_suite *suite = &job->suite;
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (n < 0) return stk_fail(STK_IO, "cannot tell where this program lies");
    STK_RETURN_IF_ERROR(check_device(suite_device(args)));
    STK_RETURN_IF_ERROR(stk_bench_suite_open(builtin, cli_value(args, "--suite"), program, suite_device(args), suite));
    for (int i = 0; i < suite->n_cases; i++) {
        job->cases[i] = suite->cases[i];
        if (!split_command(suite->run[i], &job->command[i]))
            return stk_fail(STK_INVALID, "'%s' has an empty command", suite->cases[i].name);
        job->cases[i].argv = job->command[i].word;
    }
    job->bench.n_cases = suite->n_cases;
    limit_products(args, job->cases, suite->n_cases);
    stk_bench_plan *plan = &job->bench.plan;
    if (!cli_value(args, "--seconds")) plan->most_s = suite->seconds;
    if (!cli_value(args, "--precision")) plan->precision = suite->precision;
    if (!cli_value(args, "--runs"))
        plan->least_rounds = suite->least_rounds < plan->most_rounds ? suite->least_rounds : plan->most_rounds;
    if (!cli_value(args, "--warmup")) {
        plan->least_warmups = suite->least_warmups;
        if (!suite->least_warmups) plan->most_warmups = 0;
    }
    snprintf(job->name, sizeof(job->name), "bench-%.200s", suite->name);
    return STK_OK;
}

/* Into the result, and for whoever watches. */
static json_t *tell_left_out(const bench_job *job)
{
    json_t *list = json_array();
    char text[600];
    for (int i = 0; i < job->suite.n_left_out; i++) {
        const char *what = job->suite.left_out[i].of_devices ? "devices" : "cores";
        snprintf(text, sizeof(text), "%.500s: wants %lld %s", job->suite.left_out[i].name,
                 (long long)job->suite.left_out[i].wants, what);
        json_array_append_new(list, json_string(text));
        if (!cli_has(job->args, "--json")) cli_printf("left out  %s\n", cli_shown(text));
    }
    return list;
}

static stk_status prepare(bench_job *job, stk_bench_machine *machine)
{
    for (int i = 0; i < job->suite.n_prepare; i++) {
        command_text command;
        stk_bench_run unused = {0};
        if (!split_command(job->suite.prepare[i], &command)) {
            free(command.text);
            return stk_fail(STK_INVALID, "an empty command in 'prepare', or no memory for it");
        }
        stk_bench_start start = {.argv = command.word, .is_stopped = cli_stopped};
        stk_status status = stk_bench_command_run(&start, machine, &unused);
        free(command.text);
        if (status != STK_OK) return stk_fail_prefix(status, "'prepare', '%.200s': ", job->suite.prepare[i]);
    }
    return STK_OK;
}

static int list_suites(void)
{
    const stk_bench_builtin *suite;
    for (int i = 0; (suite = stk_bench_builtin_at(i)); i++)
        cli_printf("  %-8s %s\n", suite->name, suite->about);
    return CLI_OK;
}

/* "bench-train.py" of "python train.py": the last part of the first word that is no option, of each command. */
static void name_result(bench_job *job)
{
    size_t n = (size_t)snprintf(job->name, sizeof(job->name), "bench");
    for (int i = 0; i < job->bench.n_cases && i < 3; i++) {
        const char *word = job->cases[i].argv[0], *slash = strrchr(word, '/');
        if (!strcmp(word, "sh") && job->cases[i].argv[1]) word = "command";
        n += (size_t)snprintf(job->name + n, sizeof(job->name) - n, "-%.60s", slash && slash[1] ? slash + 1 : word);
    }
    for (char *p = job->name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p)) *p = '-';
}

static void show_progress(void *user, const stk_bench *bench)
{
    bench_job *job = user;
    char line[256], figure[STK_BENCH_FIGURE];
    if (!job->shows_bar || cli_now() - job->shown_at < 0.2) return;
    job->shown_at = cli_now();
    const stk_bench_case *c = &bench->cases[0];
    const stk_bench_run *run = c->n_runs ? &c->run[c->n_runs - 1] : NULL;
    if (!run) return;
    snprintf(line, sizeof(line), "%s %d, %s", run->is_warmup ? "warm-up" : "run", c->n_runs,
             stk_bench_figure_text(run->figure, c->unit, figure));
    fprintf(stderr, "\r\033[K%.*s", (int)cli_fit(line, cli_width(stderr, 110) - 1), line);
    fflush(stderr);
}

/* Every case but the first with the first. Returned in out [MOST_CASES]. */
static stk_status compare_all(const bench_job *job, stk_bench_comparison *out, int *n)
{
    const stk_bench *bench = &job->bench;
    *n = 0;
    if (job->suite.n_cases) return STK_OK; /* Its cases measure different things. */
    for (int i = 1; i < bench->n_cases; i++)
        STK_RETURN_IF_ERROR(stk_bench_compare_pairs(bench, 0, i, &out[(*n)++]));
    return STK_OK;
}

/* runs/NAME, or the first of runs/NAME-2, ... that is free. */
static stk_status write_result(const bench_job *job, const stk_bench_about *about, char folder[CLI_PATH])
{
    const char *out = cli_value(job->args, "--out");
    enum { TRIES = 10000 };
    if (out) {
        snprintf(folder, CLI_PATH, "%s", out);
        return stk_bench_result_write(out, &job->bench, about);
    }
    for (int i = 1; i < TRIES; i++) {
        if (i == 1)
            snprintf(folder, CLI_PATH, "runs/%s", job->name);
        else
            snprintf(folder, CLI_PATH, "runs/%s-%d", job->name, i);
        if (!stk_path_exists(folder)) break;
    }
    return stk_bench_result_write(folder, &job->bench, about);
}

int cli_bench_impossible(const stk_bench_kept *kept)
{
    char why[STK_BENCH_SENTENCE];
    int n = 0;
    for (int i = 0; i < kept->n_cases; i++) {
        if (!stk_bench_impossible(kept, i, why)) continue;
        cli_error("'%s': %s", cli_shown(kept->cases[i].name), why);
        n++;
    }
    return n;
}

/* What cannot be is an error of the measuring. */
static int refuse_impossible(const char *folder)
{
    static stk_bench_kept kept;
    if (stk_bench_kept_read(folder, &kept) != STK_OK) return cli_fail();
    int n = cli_bench_impossible(&kept);
    stk_bench_kept_free(&kept);
    return n ? CLI_FAILED : CLI_OK;
}

static int put_result(const bench_job *job, const stk_bench_about *about)
{
    char folder[CLI_PATH];
    stk_text text = {0};
    char *json = NULL;
    int code = CLI_OK;
    if (cli_has(job->args, "--json")) {
        unsigned mark = stk_json_mark();
        if (stk_json_print(stk_bench_result_json(&job->bench, about), mark, JSON_INDENT(1), &json) != STK_OK)
            return cli_fail();
        printf("%s\n", json);
        free(json);
    } else {
        stk_bench_tell_text(&job->bench, about, &text);
        if (stk_text_status(&text) == STK_OK)
            cli_put_text(stk_text_get(&text));
        else
            code = cli_fail();
        stk_text_free(&text);
    }
    if (write_result(job, about, folder) != STK_OK) return cli_fail();
    if (!cli_has(job->args, "--json")) cli_printf("wrote     %s\n", cli_shown(folder));
    return code == CLI_OK ? refuse_impossible(folder) : code;
}

static int measure(bench_job *job)
{
    static stk_bench_machine machine;
    stk_bench_comparison comparison[MOST_CASES];
    stk_bench_about about = {.name = job->name, .comparison = comparison};
    stk_watch_root root = {cli_value(job->args, "--over"), NULL};
    stk_bench *bench = &job->bench;
    int code = CLI_OK, failed = CLI_OK;
    stk_status status = stk_bench_machine_open(&machine, cli_value(job->args, "--nvml"), &root), end = STK_OK;
    if (status == STK_OK) {
        cli_catch_stops(2, NULL);
        bench->is_stopped = cli_stopped;
        bench->progress = show_progress;
        bench->user = job;
        status = prepare(job, &machine);
    }
    if (status == STK_OK) {
        end = stk_bench_measure(bench, &machine);
        if (job->shows_bar) fprintf(stderr, "\r\033[K");
        bool is_kept = end == STK_INTERRUPTED || (bench->end == STK_BENCH_END_failed && bench->n_rounds > 0);
        if (end != STK_OK && !is_kept) status = end;
    }
    /* What was measured until a command failed is kept. */
    if (status == STK_OK && end != STK_OK && end != STK_INTERRUPTED) failed = cli_fail();
    if (status == STK_OK) status = compare_all(job, comparison, &about.n_comparisons);
    about.machine = stk_bench_machine_json(&machine);
    about.left_out = tell_left_out(job);
    if (status == STK_OK && job->suite.n_cases) describe_device(job->args, about.machine);
    if (status != STK_OK)
        code = cli_fail();
    else
        code = put_result(job, &about);
    if (end == STK_INTERRUPTED && code == CLI_OK) code = cli_stop_code();
    if (code == CLI_OK) code = failed;
    json_decref(about.machine);
    json_decref(about.left_out);
    stk_bench_free(bench);
    stk_bench_machine_close(&machine);
    return code;
}

static int refuse_suite(const cli_verb *verb, const char *word)
{
    enum { MOST_SUITES = 32 };
    const char *names[MOST_SUITES + 1] = {NULL};
    const stk_bench_builtin *suite;
    static const char *const verbs[] = {"compare", "cost", "part", "submit", NULL};
    for (int i = 0; i < MOST_SUITES && (suite = stk_bench_builtin_at(i)); i++)
        names[i] = suite->name;
    const char *meant = stk_nearest_name(word, names);
    if (!meant) meant = stk_nearest_name(word, verbs);
    return cli_usage(verb, "there is no suite '%s'%s%s%s ('--list' lists them); put '--' before a command: -- %s", word,
                     meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "", word);
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static bench_job job;
    const stk_bench_builtin *builtin = NULL;
    int n = 0;
    /* Everything behind -- is the command's. */
    while (n < argc && strcmp(argv[n], "--"))
        n++;
    char *const *command = n + 1 < argc ? argv + n + 1 : NULL;
    if (!cli_parse(verb, n, argv, &args)) return CLI_USAGE;
    job.args = &args;
    job.bench.cases = job.cases;
    if (cli_has(&args, "--list")) return list_suites();
    if (args.n_words == 1) builtin = stk_bench_builtin_find(args.word[0]);
    if (args.n_words > (builtin != NULL)) return refuse_suite(verb, args.word[0]);
    bool has_suite = builtin || cli_has(&args, "--suite");
    if ((command != NULL) + cli_has(&args, "--compare") + (builtin != NULL) + cli_has(&args, "--suite") != 1)
        return cli_usage(verb, "needs one of: a suite, --suite FILE, -- COMMAND, --compare 'COMMAND' --with 'COMMAND'");
    if (!has_suite && cli_has(&args, "--device"))
        return cli_usage(verb, "option '--device' goes with a suite; a command says itself where it runs");
    if (has_suite && (cli_has(&args, "--pattern") || cli_has(&args, "--unit") || cli_has(&args, "--peak") ||
                      cli_has(&args, "--better")))
        return cli_usage(verb,
                         "a suite says itself what its figures are: no '--pattern', '--unit', '--better' or '--peak'");
    if (cli_has(&args, "--compare") != cli_has(&args, "--with"))
        return cli_usage(verb, "options '--compare' and '--with' go together");
    if (!read_plan(&args, &job.bench.plan) || (!has_suite && !read_cases(&job, command))) return CLI_USAGE;
    job.shows_bar = isatty(STDERR_FILENO) && !cli_has(&args, "--quiet");
    if (!has_suite) name_result(&job);
    const char *out = cli_value(&args, "--out");
    stk_status status = out ? stk_new_folder_check(out) : STK_OK; /* before minutes of measuring */
    if (status == STK_OK && has_suite) status = read_suite(&job, builtin);
    int code = status == STK_OK ? measure(&job) : cli_fail();
    stk_bench_suite_close(&job.suite);
    for (int i = 0; i < MOST_CASES; i++)
        free(job.command[i].text);
    return code;
}

const cli_verb cli_bench = {
    "bench",
    "SUITE [OPTION...] (or: --suite FILE | -- COMMAND ARGUMENT... | --compare 'COMMAND' --with "
    "'COMMAND')",
    "Times commands so that the figures can be trusted. Runs are repeated after a warm-up until the interval of their "
    "median is narrow, several commands in turns; what the machine did meanwhile is recorded, and runs that others "
    "disturbed are marked and repeated. Nothing is called faster that may not be.\n\n"
    "  stoker bench quick\n"
    "  stoker bench -- python train.py --steps 20\n"
    "  stoker bench --pattern '([0-9.]+) images/s' --unit images/s -- ./train\n"
    "  stoker bench --compare './train --threads 1' --with './train --threads 2'\n"
    "  stoker bench compare runs/bench-a runs/bench-b\n",
    options,
    .run = run,
    .makes_files = true};
