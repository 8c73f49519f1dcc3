/* stoker watch, and the program stoker-watch that has this verb alone. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/new_file.h"
#include "cli.h"
#include "events/exporter.h"
#include "stoker/printable.h"
#include "watch/child.h"
#include "watch/compare.h"
#include "watch/origin.h"
#include "watch/together.h"
#include "watch/watch.h"

static const cli_option options[] = {
    {"--pid", "PID", "watches a running process and its children, until it ends or Ctrl-C"},
    {"--seconds", "N", "with --pid: ends after N seconds"},
    {"--interval", "MS",
     "time between two samples, 20 to 10000 ms; default: 100, longer where that would cost too much"},
    {"--json", NULL, "prints one JSON object at the end; the command's own output goes to standard error"},
    {"--html", "FILE", "writes the report as one page, too"},
    {"--serve", "PORT", "the report as it is by now at http://127.0.0.1:PORT/ until the job ends; 0: any free port"},
    {"--record", "FILE", "writes all that was seen; %h in its name is this machine, %r the rank"},
    {"--replay", "FILE", "judges a recording"},
    {"--compare", "A B", "two recordings: did the change help? With a confidence interval"},
    {"--together", "A B ...", "recordings of one job, of several ranks or machines: which one holds the others back?"},
    {"--assert", "SIGNAL>N",
     "ends with exit code 1 where that does not hold at the end: 'gpu_util>80', 'idle<20' "
     "(shares in per cent); may be given often. --signals lists the names"},
    {"--stacks", NULL,
     "now and then asks py-spy (of Python) or gdb, which must be on PATH, what the driving thread is at; py-spy does "
     "not "
     "stop the job, gdb does for a moment each time"},
    {"--signals", NULL, "lists the signals that rules and --assert know"},
    {"--quiet", NULL, "no line while the job runs"},
    {"--nvml", "FILE", "NVIDIA's library, where it is not the driver's libnvidia-ml.so.1"},
    {"--over", "DIR", "for tests: files of DIR/proc and DIR/sys stand before the kernel's"},
    {"--without", "LIST", "for tests: sources that are treated as missing: pressure,schedstat,/io,wchan,libnvidia"},
    {NULL, NULL, NULL}};

/* --- assertions --- */

typedef struct claim {
    stk_watch_signal signal;
    char is;
    double limit;
} claim;

/* Another name that people know, of gpu_busy. */
static const char also_gpu_busy[] = "gpu_util";

static bool find_signal(const char *name, stk_watch_signal *out)
{
    if (!strcmp(name, also_gpu_busy)) name = stk_watch_signal_name(STK_WATCH_gpu_busy);
    for (int i = 0; i < STK_WATCH_SIGNALS; i++) {
        if (strcmp(stk_watch_signal_name((stk_watch_signal)i), name)) continue;
        *out = (stk_watch_signal)i;
        return true;
    }
    return false;
}

static bool parse_claim(const cli_verb *verb, const char *text, claim *out)
{
    char name[64], *end;
    size_t n = strcspn(text, "<>");
    if (n == 0 || n >= sizeof(name) || !text[n]) {
        cli_usage(verb, "option '--assert' must be like 'gpu_util>80', not '%s'", text);
        return false;
    }
    snprintf(name, sizeof(name), "%.*s", (int)n, text);
    while (n > 0 && isspace((unsigned char)name[n - 1]))
        name[--n] = 0;
    if (!find_signal(name, &out->signal)) {
        const char *names[STK_WATCH_SIGNALS + 1];
        names[STK_WATCH_SIGNALS] = also_gpu_busy;
        for (int i = 0; i < STK_WATCH_SIGNALS; i++)
            names[i] = stk_watch_signal_name((stk_watch_signal)i);
        const char *nearest = cli_nearest(name, names, STK_WATCH_SIGNALS + 1);
        cli_usage(verb, "option '--assert' knows no signal '%s'%s%s%s; 'stoker watch --signals' lists them", name,
                  nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
        return false;
    }
    text += strcspn(text, "<>");
    out->is = *text++;
    out->limit = strtod(text, &end);
    if (end == text || *end) {
        cli_usage(verb, "option '--assert' must end in a number, and '%s' does not", text);
        return false;
    }
    return true;
}

/* 0, or 1 where a claim does not hold. */
static int check_claims(const cli_args *args, const stk_watch_report *report)
{
    int code = CLI_OK;
    char text[CLI_TEXT];
    for (int i = 0; i < args->n_found; i++) {
        claim c;
        if (strcmp(args->found[i].option->name, "--assert") || !parse_claim(args->verb, args->found[i].value, &c))
            continue;
        bool is_share = !strcmp(stk_watch_signal_unit(c.signal), "%");
        double x = report->signals.value[c.signal] * (is_share ? 100 : 1);
        if (c.is == '>' ? x > c.limit : x < c.limit) continue;
        cli_error("'%s' does not hold: it is %s", args->found[i].value,
                  isnan(x) ? "not known here" : cli_number_text(x, text));
        code = CLI_FAILED;
    }
    return code;
}

/* --- output --- */

/* Characters in a line of a report: as a narrow terminal has them, but no more than are read with ease. */
static int width_of(FILE *file)
{
    enum { MOST = 110, LEAST = 40 };
    int width = isatty(fileno(file)) ? cli_width(file, MOST) : MOST;
    return width < LEAST ? LEAST : width;
}

static int put_text(FILE *file, stk_text *text)
{
    int code = stk_text_status(text) == STK_OK ? CLI_OK : cli_fail();
    const char *all = stk_text_get(text), *bold = cli_mark_text(file, CLI_BOLD), *verdict = strstr(all, "\n  verdict ");
    if (code == CLI_OK && bold[0] && verdict) {
        size_t n = (size_t)(verdict - all) + 1, length = strcspn(verdict + 1, "\n");
        fprintf(file, "%.*s%s%.*s%s%s", (int)n, all, bold, (int)length, verdict + 1, cli_mark_text(file, CLI_PLAIN),
                verdict + 1 + length);
    } else if (code == CLI_OK) {
        fputs(all, file);
    }
    stk_text_free(text);
    return code;
}

static int put_html(const char *path, const stk_watch_report *report)
{
    stk_text page = {0};
    stk_watch_report_html(report, &page);
    stk_status status = stk_text_status(&page);
    if (status == STK_OK) status = stk_file_write_durably(path, stk_text_get(&page), page.n);
    stk_text_free(&page);
    return status == STK_OK ? CLI_OK : cli_fail();
}

/* The report in all forms that were asked for; text goes to file. */
static int put_report(const cli_args *args, const stk_watch *watch, FILE *file)
{
    static stk_watch_report report;
    stk_text text = {0};
    int code = CLI_OK;
    stk_watch_report_now(watch, &report);
    if (cli_has(args, "--json")) {
        stk_watch_report_json(&report, &text);
        file = stdout;
    } else {
        report.width = width_of(file);
        stk_watch_report_text(&report, &text);
    }
    if (put_text(file, &text) != CLI_OK) code = CLI_FAILED;
    if (cli_value(args, "--html") && put_html(cli_value(args, "--html"), &report) != CLI_OK) code = CLI_FAILED;
    if (check_claims(args, &report) != CLI_OK) code = CLI_FAILED;
    return code;
}

/* One that cannot be made for want of memory leaves the one before. */
static void put_page(stk_exporter *served, const stk_watch_report *report)
{
    stk_text page = {0};
    stk_watch_report_html(report, &page);
    if (stk_text_status(&page) == STK_OK) (void)stk_exporter_put_page(served, &page);
    stk_text_free(&page);
}

/* The verdict is looked for again only as often as that takes a thousandth of a core: long runs have many rows. served:
 * NULL, nowhere. */
static void tell_by_now(const stk_watch *watch, bool shows_line, stk_exporter *served)
{
    static stk_watch_report report;
    static double judge_at;
    stk_text line = {0};
    clock_t begin = clock();
    if (cli_now() >= judge_at) {
        stk_watch_report_now(watch, &report);
        if (served) put_page(served, &report);
        judge_at = cli_now() + 1000.0 * (double)(clock() - begin) / CLOCKS_PER_SEC;
    }
    if (!shows_line) return;
    report.length_s = watch->history.n ? watch->history.row[watch->history.n - 1].at_s : 0;
    stk_watch_report_line(&report, &line);
    /* One that fills the terminal could not be taken away again. */
    fprintf(stderr, "\r\033[K%.*s", (int)cli_fit(stk_text_get(&line), width_of(stderr) - 1), stk_text_get(&line));
    fflush(stderr);
    stk_text_free(&line);
}

/* The file to record to, with the machine and the rank in its name; NULL: none. */
static const char *record_path(const cli_args *args)
{
    static char path[CLI_PATH];
    if (!cli_value(args, "--record")) return NULL;
    stk_watch_origin_path(cli_value(args, "--record"), path, sizeof(path));
    return path;
}

/* Whether the files can be written that are to be at the end, before a command starts that may take days. */
static bool can_write(const cli_args *args)
{
    static const char page[] = STK_WATCH_PAGE;
    const char *record = record_path(args), *html = cli_value(args, "--html");
    if (record && html && !strcmp(record, html)) {
        cli_error("'--record' and '--html' name one file: '%s'", record);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        const char *path = i == 0 ? record : html;
        if (i == 1 && path &&
            (stk_new_file_check_regular(path) != STK_OK ||
             stk_new_file_check_kind(path, "a page of 'stoker watch'", 0, page, strlen(page)) != STK_OK)) {
            cli_fail();
            return false;
        }
        bool is_new = path && access(path, F_OK) != 0;
        FILE *file = path ? fopen(path, "ae") : NULL;
        if (path && !file) {
            cli_error("cannot write '%s': %s", path, strerror(errno));
            return false;
        }
        if (file) fclose(file);
        if (file && is_new) unlink(path); /* the command may not start */
    }
    return true;
}

/* --- watching --- */

typedef struct watched_job {
    pid_t pid;
    bool is_ours, shows_line;
    double seconds;       /* 0: no limit */
    stk_exporter *served; /* NULL: nowhere */
} watched_job;

enum { MOST_STOPS = 3 }; /* then a command that does not mind Ctrl-C is left alone */

/* Samples until the job ends. *exit_code: as a shell would give it, or -1 where nobody knows; *by_signal: see child.h.
 */
static stk_status follow(stk_watch *watch, const watched_job *job, int *exit_code, int *by_signal)
{
    double begin = cli_now(), shown = begin;
    bool is_over = false, ended = false;
    *exit_code = -1;
    while (!is_over && !ended) {
        double at = cli_now();
        stk_status status = stk_watch_take(watch, &is_over);
        if (status != STK_OK) return status;
        if ((job->shows_line || job->served) && cli_now() - shown >= 1) {
            tell_by_now(watch, job->shows_line, job->served);
            shown = cli_now();
        }
        if (job->is_ours) is_over = false;
        if (stk_watch_child_stops() >= (job->is_ours ? MOST_STOPS : 1)) break;
        if (job->seconds > 0 && cli_now() - begin >= job->seconds) break;
        double left = (double)stk_watch_sampler_interval_us(&watch->sampler) * 1e-6 - (cli_now() - at);
        if (!is_over) stk_watch_child_wait(left > 0.001 ? (long)(left * 1e6) : 1000);
        ended = job->is_ours && stk_watch_child_ended(job->pid, exit_code, by_signal);
    }
    return STK_OK;
}

static void name_command(stk_watch *watch, char *const *argv)
{
    char kept[CLI_PATH];
    stk_text text = {0};
    for (int i = 0; argv[i]; i++)
        stk_text_add(&text, "%s%s", i ? " " : "", argv[i]);
    (void)stk_watch_facts_add(&watch->sampler.facts, "command", "%s",
                              stk_hide_secrets(stk_text_get(&text), kept, sizeof(kept)));
    stk_text_free(&text);
}

/* /proc may hide processes of other users (hidepid). */
static bool can_see(int64_t pid)
{
    char path[40];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    return access(path, R_OK) == 0;
}

static int watch_job(const cli_args *args, char *const *argv)
{
    static stk_watch watch;
    stk_watch_config config = {.nvml = cli_value(args, "--nvml"),
                               .root = {cli_value(args, "--over"), cli_value(args, "--without")}};
    int64_t pid, seconds, interval, port;
    int exit_code = -1, by_signal = 0;
    watched_job job = {0, argv != NULL, isatty(STDERR_FILENO) && !cli_has(args, "--quiet"), 0, NULL};
    if (!cli_number(args, "--pid", 1, INT32_MAX, 0, &pid) || !cli_number(args, "--seconds", 1, 1 << 30, 0, &seconds) ||
        !cli_number(args, "--interval", 20, 10000, 100, &interval) || !cli_number(args, "--serve", 0, 65535, 0, &port))
        return CLI_USAGE;
    if (!argv && kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
        cli_error("there is no process %d", (int)pid);
        return CLI_FAILED;
    }
    if (!argv && !can_see(pid)) {
        cli_error("cannot see process %d in /proc: watch it as its own user or as root", (int)pid);
        return CLI_FAILED;
    }
    job.seconds = (double)seconds;
    if (!can_write(args)) return CLI_FAILED;
    if (cli_has(args, "--serve")) {
        if (stk_exporter_open((int)port, &job.served) != STK_OK) return cli_fail();
        fprintf(stderr, "stoker: the report is at http://127.0.0.1:%d/\n", stk_exporter_port(job.served));
    }
    if (argv) {
        stk_status status = stk_watch_child_start(argv, cli_has(args, "--json"), &job.pid);
        if (status != STK_OK) {
            cli_fail();
            stk_exporter_close(job.served);
            return status == STK_NOT_FOUND ? 127 : 126;
        }
    } else {
        stk_watch_child_attach();
        job.pid = (pid_t)pid;
    }
    config.pid = job.pid;
    config.is_ours = job.is_ours;
    config.interval_us = interval * 1000;
    stk_status status = stk_watch_open(&watch, &config, record_path(args));
    watch.takes_stacks = cli_has(args, "--stacks");
    if (status == STK_OK && argv) name_command(&watch, argv);
    if (status == STK_OK) status = follow(&watch, &job, &exit_code, &by_signal);
    if (status == STK_OK) status = stk_watch_finish(&watch, exit_code, by_signal);
    if (job.shows_line) fprintf(stderr, "\r\033[K");
    if (status == STK_OK && job.is_ours && exit_code < 0) {
        cli_error("'%s' did not stop and goes on as process %d; kill -9 %d ends it", argv[0], (int)job.pid,
                  (int)job.pid);
        exit_code = 128 + SIGINT;
    }
    int code = status == STK_OK ? put_report(args, &watch, argv ? stderr : stdout) : cli_fail();
    stk_watch_close(&watch);
    stk_exporter_close(job.served);
    /* A failure to watch must not end the command, which goes on and tells its own end. */
    while (job.is_ours && exit_code < 0 && status != STK_OK && !stk_watch_child_ended(job.pid, &exit_code, &by_signal))
        stk_watch_child_wait(1000000);
    return exit_code > 0 ? exit_code : code;
}

static int replay(const cli_args *args)
{
    static stk_watch watch;
    if (stk_watch_replay(&watch, cli_value(args, "--replay")) != STK_OK) return cli_fail();
    int code = put_report(args, &watch, stdout);
    stk_watch_close(&watch);
    return code;
}

static int compare(const cli_args *args)
{
    static stk_watch before, after;
    static stk_watch_report a, b;
    stk_text text = {0};
    if (stk_watch_replay(&before, cli_value(args, "--compare")) != STK_OK) return cli_fail();
    if (stk_watch_replay(&after, args->word[0]) != STK_OK) {
        stk_watch_close(&before);
        return cli_fail();
    }
    stk_watch_report_now(&before, &a);
    stk_watch_report_now(&after, &b);
    (cli_has(args, "--json") ? stk_watch_compare_json : stk_watch_compare_text)(&a, &b, &text);
    int code = put_text(stdout, &text);
    stk_watch_close(&before);
    stk_watch_close(&after);
    return code;
}

/* A page of several recordings, or nothing. */
static int put_together_page(const char *path, const stk_watch_together *together)
{
    stk_text page = {0};
    if (!path) return CLI_OK;
    stk_watch_together_html(together, &page);
    stk_status status = stk_text_status(&page);
    if (status == STK_OK) status = stk_file_write_durably(path, stk_text_get(&page), page.n);
    stk_text_free(&page);
    return status == STK_OK ? CLI_OK : cli_fail();
}

typedef struct one_of_several {
    stk_watch watch;
    stk_watch_report report;
} one_of_several;

static int judge_together(const cli_args *args)
{
    static stk_watch_member member[STK_WATCH_MOST_MEMBERS];
    static const char *path[STK_WATCH_MOST_MEMBERS];
    stk_watch_together together;
    stk_text text = {0};
    int n = args->n_words + 1, n_open = 0, code = CLI_OK;
    one_of_several *all = calloc((size_t)n, sizeof(*all));
    if (!all) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (int i = 0; i < n && code == CLI_OK; i++) {
        path[i] = i == 0 ? cli_value(args, "--together") : args->word[i - 1];
        if (stk_watch_replay(&all[i].watch, path[i]) != STK_OK) {
            code = cli_fail();
            break;
        }
        n_open++;
        stk_watch_report_now(&all[i].watch, &all[i].report);
        member[i].report = &all[i].report;
    }
    if (code == CLI_OK) {
        stk_watch_together_judge(member, path, n, &together);
        if (cli_has(args, "--json"))
            stk_watch_together_json(&together, &text);
        else
            stk_watch_together_text(&together, width_of(stdout), &text);
        code = put_text(stdout, &text);
        if (put_together_page(cli_value(args, "--html"), &together) != CLI_OK) code = CLI_FAILED;
    }
    for (int i = 0; i < n_open; i++)
        stk_watch_close(&all[i].watch);
    free(all);
    return code;
}

static int list_signals(void)
{
    for (int i = 0; i < STK_WATCH_SIGNALS; i++) {
        stk_watch_signals all = {.idle_by_run = false};
        char text[STK_WATCH_SENTENCE];
        all.value[STK_WATCH_gpus_used] = 1; /* "the device" */
        all.value[i] = NAN;                 /* "N %" */
        stk_watch_signal_tell(&all, (stk_watch_signal)i, text);
        const char *unit = stk_watch_signal_unit((stk_watch_signal)i);
        cli_printf("  %-16s %-7s %s\n", stk_watch_signal_name((stk_watch_signal)i), unit[0] ? unit : "-", text);
        if (i == STK_WATCH_gpu_busy) cli_printf("  %-16s the same, as nvidia-smi calls it\n", also_gpu_busy);
    }
    return CLI_OK;
}

/* Options of a job that is watched do not go with recordings, nor all of a report with several. */
static bool suit_recordings(const cli_verb *verb, const cli_args *args)
{
    static const char *const of_jobs[] = {"--record", "--serve", "--stacks", "--interval", NULL};
    for (int i = 0; of_jobs[i]; i++)
        if (cli_has(args, of_jobs[i])) {
            cli_usage(verb, "option '%s' goes with a job that is watched, not with recordings", of_jobs[i]);
            return false;
        }
    bool is_one = cli_has(args, "--replay");
    if (!is_one && cli_has(args, "--assert")) {
        cli_usage(verb, "option '--assert' is of one recording: --replay FILE");
        return false;
    }
    if (cli_has(args, "--compare") && cli_has(args, "--html")) {
        cli_usage(verb, "option '--html' does not go with '--compare', which prints text or, with '--json', JSON");
        return false;
    }
    return true;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    int n = 0;
    claim unused;
    /* Everything behind -- is the command's. */
    while (n < argc && strcmp(argv[n], "--"))
        n++;
    char *const *command = n + 1 < argc ? argv + n + 1 : NULL;
    if (!cli_parse(verb, n, argv, &args)) return CLI_USAGE;
    for (int i = 0; i < args.n_found; i++)
        if (!strcmp(args.found[i].option->name, "--assert") && !parse_claim(verb, args.found[i].value, &unused))
            return CLI_USAGE;
    if (cli_has(&args, "--signals")) return list_signals();
    int n_ways = (command != NULL) + cli_has(&args, "--pid") + cli_has(&args, "--replay") +
                 cli_has(&args, "--compare") + cli_has(&args, "--together");
    if (n_ways == 0 && args.n_words > 0) return cli_usage(verb, "put '--' before the command: -- %s", args.word[0]);
    if (n_ways != 1)
        return cli_usage(verb, "needs one of: -- COMMAND, --pid PID, --replay FILE, --compare A B, --together A B ...");
    if (!command && !cli_has(&args, "--pid") && !suit_recordings(verb, &args)) return CLI_USAGE;
    if (cli_has(&args, "--compare"))
        return args.n_words == 1 ? compare(&args) : cli_usage(verb, "option '--compare' needs two recordings: A B");
    if (cli_has(&args, "--together")) {
        if (args.n_words < 1 || args.n_words >= STK_WATCH_MOST_MEMBERS)
            return cli_usage(verb, "option '--together' needs 2 to %d recordings", STK_WATCH_MOST_MEMBERS);
        return can_write(&args) ? judge_together(&args) : CLI_FAILED;
    }
    if (cli_has(&args, "--seconds") && !cli_has(&args, "--pid"))
        return cli_usage(verb,
                         "option '--seconds' goes with '--pid'; a command is watched to its end (timeout N COMMAND)");
    if (args.n_words > 0) return cli_usage(verb, "'%s' is no option; a command goes behind '--'", args.word[0]);
    return cli_has(&args, "--replay") ? replay(&args) : watch_job(&args, command);
}

const cli_verb cli_watch = {
    "watch", "[OPTION...] (-- COMMAND ARGUMENT... | --pid PID | --replay FILE | --compare A B | --together A B ...)",
    "Tells what holds a training job back, in any framework. Watches a command and its children from outside, as an "
    "ordinary user: GPUs by NVML, threads, cores, files and memory by /proc, PSI and control groups. At the end it "
    "gives "
    "a verdict with its evidence, what it costs, and what to do. The exit code is the command's.\n\n"
    "  stoker watch -- python train.py --epochs 1\n"
    "  stoker watch --pid 4711 --seconds 30 --html report.html\n"
    "  stoker watch --record before.rec -- ./train.sh\n"
    "  stoker watch --compare before.rec after.rec\n"
    "  mpirun -n 4 stoker watch --record job-%r.rec -- python train.py\n"
    "  stoker watch --together job-*.rec --html job.html\n"
    "  stoker watch --json --assert 'gpu_util>80' -- python train.py\n",
    options, .run = run};
