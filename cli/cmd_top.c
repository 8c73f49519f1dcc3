/* stoker top: a run and its machine, live. Rates are differences of two samples of the doctor's sampler; what the run
 * says of itself is the last line of its metrics.jsonl. Plain escape sequences: no terminal library is worth a
 * dependency here.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli.h"
#include "stoker/printable.h"
#include "top.h"
#include "watch/nvml.h"
#include "watch/own.h"
#include "watch/sampler.h"

enum { PATH_BYTES = 4096, LINE_BYTES = 512, MOST_LINES = 64, BAR = 20, MOST_PROCESSES = 6 };

static const cli_option options[] = {
    {"--once", NULL, "prints what there is after half a second, and ends"},
    {"--every", "SECONDS", "between two pictures, 1 to 60; default: 2"},
    {"--serve", "PORT",
     "instead, serves the GPUs' numbers to Prometheus at http://127.0.0.1:PORT/metrics, by the names "
     "of NVIDIA's dcgm-exporter; 0: any free port"},
    {"--sort", "cores|memory|gpu|pid", "which of the processes come first; default: cores"},
    {NULL, NULL, NULL}};

typedef struct top {
    char folder[PATH_BYTES]; /* "": no run */
    int64_t pid;             /* 0: none */
    stk_watch_sampler sampler;
    stk_watch_sample before;
    top_order order;
    int64_t sorted[TOP_MOST_PROCESSES]; /* ids of the job's processes, in that order */
    char line[MOST_LINES][LINE_BYTES];
    int n_lines;
} top;

/* --- which run, which process --- */

/* Who holds the run's lock, by /proc/locks; 0: nobody. */
static int64_t find_holder(const char *folder)
{
    char path[PATH_BYTES + 8], line[256], want[64];
    struct stat info;
    long long pid = 0, found = 0;
    snprintf(path, sizeof(path), "%s/lock", folder);
    if (stat(path, &info) < 0) return 0;
    snprintf(want, sizeof(want), "%02x:%02x:%llu ", major(info.st_dev), minor(info.st_dev),
             (unsigned long long)info.st_ino);
    FILE *file = fopen("/proc/locks", "re");
    while (file && fgets(line, sizeof(line), file))
        if (strstr(line, want) && sscanf(line, "%*s %*s %*s %*s %lld", &pid) == 1 && pid > 0) found = pid;
    if (file) fclose(file);
    return found;
}

/* The folder whose metrics.jsonl the process has open; false: none. */
static bool find_folder(int64_t pid, char out[PATH_BYTES])
{
    char path[64 + NAME_MAX], target[PATH_BYTES];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd", pid);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));) {
        snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd/%s", pid, entry->d_name);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n <= 0) continue;
        target[n] = 0;
        char *name = strstr(target, "/metrics.jsonl");
        if (!name || name[14]) continue;
        *name = 0;
        snprintf(out, PATH_BYTES, "%s", target);
        found = true;
    }
    if (dir) closedir(dir);
    return found;
}

/* A run under ./runs that is training now. */
static bool find_running(top *t)
{
    DIR *dir = opendir("runs");
    for (struct dirent *entry; dir && t->pid == 0 && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(t->folder, sizeof(t->folder), "runs/%s", entry->d_name);
        t->pid = find_holder(t->folder);
    }
    if (dir) closedir(dir);
    if (t->pid == 0) t->folder[0] = 0;
    return t->pid != 0;
}

static int find_job(const cli_verb *verb, const char *word, top *t)
{
    char *end, path[PATH_BYTES + 16];
    struct stat info;
    if (!word) {
        find_running(t);
        return CLI_OK;
    }
    long long pid = strtoll(word, &end, 10);
    if (*word && !*end && pid > 0) {
        snprintf(path, sizeof(path), "/proc/%lld", pid);
        if (stat(path, &info) < 0) {
            cli_error("there is no process %lld, or /proc hides it", pid);
            return CLI_FAILED;
        }
        t->pid = pid;
        find_folder(pid, t->folder);
        return CLI_OK;
    }
    if (strlen(word) >= sizeof(t->folder)) return cli_usage(verb, "the folder's name is too long");
    snprintf(path, sizeof(path), "%s/recipe.yaml", word);
    if (stat(path, &info) < 0) {
        if (errno == EACCES)
            cli_error("cannot read '%s': permission denied", path);
        else
            cli_error("folder '%s' holds no run: no recipe.yaml; see: stoker top --help", word);
        return CLI_FAILED;
    }
    snprintf(t->folder, sizeof(t->folder), "%s", word);
    t->pid = find_holder(word);
    return CLI_OK;
}

/* --- lines --- */

static void add_line(top *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_line(top *t, const char *format, ...)
{
    va_list args;
    char text[LINE_BYTES];
    if (t->n_lines == MOST_LINES) return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    /* Names of processes are what these say of themselves. */
    stk_printable(text, t->line[t->n_lines++], LINE_BYTES);
}

/* The number behind "key": in a line of JSON; default_value where there is none. */
static double number_of(const char *line, const char *key, double default_value)
{
    char want[40], *end;
    snprintf(want, sizeof(want), "\"%s\": ", key);
    const char *at = strstr(line, want);
    if (!at) return default_value;
    double x = strtod(at + strlen(want), &end);
    return end == at + strlen(want) ? default_value : x;
}

/* What the run computes on, by its recipe; "": not told. */
static void read_device(const top *t, char out[CLI_TEXT])
{
    char path[PATH_BYTES + 16], line[LINE_BYTES];
    snprintf(path, sizeof(path), "%s/recipe.yaml", t->folder);
    FILE *file = fopen(path, "re");
    out[0] = 0;
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "device: %31[^ #\n]", out) == 1) break;
    if (file) fclose(file);
    if (file && !out[0]) snprintf(out, CLI_TEXT, "cpu");
}

static void add_run(top *t)
{
    char path[PATH_BYTES + 16], line[STK_WATCH_OWN_LINE], count[CLI_TEXT], a[CLI_BAR], lr[CLI_TEXT],
        rate_text[CLI_TEXT], device[CLI_TEXT];
    static const char *const parts[] = {"input", "host", "launch", "compute"};
    if (!t->folder[0]) return;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", t->folder);
    stk_watch_own_read_last(path, line);
    if (!line[0]) {
        add_line(t, "run      %.60s: no step yet", t->folder);
        return;
    }
    read_device(t, device);
    add_line(t, "run      %.60s%s%s%s", t->folder, device[0] ? " on " : "", device,
             t->pid ? "" : " (not training now)");
    double accuracy = number_of(line, "accuracy", -1);
    char shown[32] = "";
    if (accuracy >= 0) snprintf(shown, sizeof(shown), "  acc %.2f %%", 100 * accuracy);
    add_line(t, "         step %s  epoch %.0f  loss %s%s  lr %s  %s samples/s",
             cli_count((int64_t)number_of(line, "step", 0), count), number_of(line, "epoch", 0),
             cli_loss(number_of(line, "loss", 0), a), shown, cli_number_text(number_of(line, "lr", 0), lr),
             cli_rate(number_of(line, "samples_per_s", 0), rate_text));
    for (int i = 0; i < 4; i++) {
        double share = number_of(line, parts[i], -1);
        if (share >= 0) add_line(t, "         %-8s %s %5.1f %%", parts[i], cli_bar_text(share, BAR, a), 100 * share);
    }
}

/* --- the machine --- */

static double rate(int64_t now, int64_t before, double s)
{
    return now < 0 || before < 0 || now < before || s <= 0 ? 0 : (double)(now - before) / s;
}

static void add_machine(top *t, double s)
{
    const stk_watch_machine *m = &t->sampler.sample.machine, *b = &t->before.machine;
    char spark[TOP_SPARK_TEXT], bars[CLI_BAR], x[CLI_TEXT], y[CLI_TEXT], z[CLI_TEXT], w[CLI_TEXT];
    double n = m->n_cpus > 0 ? (double)m->n_cpus : 1, busy = rate(m->busy_ms, b->busy_ms, s) / 1000;
    if (busy > n) busy = n;
    top_spark_add(0, busy / n);
    add_line(t, "cores    %s %5.1f %% of %.0f %s; %" PRId64 " runnable; disk wait %.1f %%",
             cli_bar_text(busy / n, BAR - TOP_SPARK, bars), 100 * busy / n, n, top_spark_text(0, spark),
             m->n_runnable > 0 ? m->n_runnable : 0, 100 * rate(m->iowait_ms, b->iowait_ms, s) / 1000 / n);
    double total = (double)m->memory_kb * 1024, used = total - (double)m->available_kb * 1024;
    if (m->memory_kb > 0)
        add_line(t, "memory   %s %s of %s; swap %s", cli_bar_text(used / total, BAR, bars), cli_bytes(used, x),
                 cli_bytes(total, y), cli_bytes(m->swap_kb > 0 ? (double)(m->swap_kb - m->swap_free_kb) * 1024 : 0, z));
    add_line(t, "io per s disk %s read, %s written; net %s in, %s out",
             cli_bytes(rate(m->disk_read_kb, b->disk_read_kb, s) * 1024, x),
             cli_bytes(rate(m->disk_written_kb, b->disk_written_kb, s) * 1024, y),
             cli_bytes(rate(m->net_received_kb, b->net_received_kb, s) * 1024, z),
             cli_bytes(rate(m->net_sent_kb, b->net_sent_kb, s) * 1024, w));
    if (m->psi_cpu_us >= 0)
        add_line(t, "pressure cpu %.1f %%, io %.1f %%, memory %.1f %% of the time",
                 rate(m->psi_cpu_us, b->psi_cpu_us, s) / 1e4, rate(m->psi_io_us, b->psi_io_us, s) / 1e4,
                 rate(m->psi_memory_us, b->psi_memory_us, s) / 1e4);
    if (m->quota_millicores > 0)
        add_line(t, "quota    %.2f cores; held back %.1f %% of the time", (double)m->quota_millicores / 1000,
                 rate(m->throttled_us, b->throttled_us, s) / 1e4);
}

/* "  -": not told. */
static const char *permille(int64_t x, char out[CLI_TEXT])
{
    snprintf(out, CLI_TEXT, x < 0 ? "  -" : "%3" PRId64, x < 0 ? 0 : x / 10);
    return out;
}

/* "-": not told. */
static const char *known(int64_t x, double scale, int digits, char out[CLI_TEXT])
{
    if (x < 0)
        snprintf(out, CLI_TEXT, "-");
    else
        snprintf(out, CLI_TEXT, "%.*f", digits, (double)x * scale);
    return out;
}

/* As much of a GPU's name as a line has room for; its maker is known. */
static const char *gpu_name(const top *t, int64_t id, char out[LINE_BYTES])
{
    enum { ROOM = 11 };
    const char *text;
    out[0] = 0;
    for (size_t i = 0; (text = stk_watch_facts_get(&t->sampler.facts, "gpu", i)); i++) {
        char *end;
        if (strtoll(text, &end, 10) != id || strncmp(end, ": ", 2) != 0) continue;
        end += strncmp(end, ": NVIDIA ", 9) ? 2 : 9;
        stk_printable(end, out, LINE_BYTES);
        size_t n = 0;
        for (int i_character = 0; i_character < ROOM && out[n]; i_character++)
            n += (size_t)stk_character_bytes((const unsigned char *)out + n);
        out[n] = 0;
    }
    return out;
}

static void add_gpus(top *t)
{
    char spark[TOP_SPARK_TEXT], a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT], d[CLI_TEXT], e[CLI_TEXT], f[CLI_TEXT],
        h[CLI_TEXT], name[LINE_BYTES];
    for (size_t i = 0; i < t->sampler.sample.gpus.n; i++) {
        const stk_watch_gpu *g = stk_watch_gpu_at(&t->sampler.sample, i);
        bool is_slowed = g->slowdown_mask > 0 && g->slowdown_mask != NVML_SLOW_IDLE;
        top_spark_add(-1 - g->id, (double)g->busy_permille / 1000);
        add_line(t, "gpu %-2" PRId64 "   busy %s%% %s sm %s%% tensor %s%% dram %s%%%s  %s", g->id,
                 permille(g->busy_permille, a), top_spark_text(-1 - g->id, spark), permille(g->sm_permille, b),
                 permille(g->tensor_permille, c), permille(g->dram_permille, d), is_slowed ? "  SLOWED" : "",
                 gpu_name(t, g->id, name));
        add_line(t, "         %s of %s GiB  %s of %s W  %s of %s MHz  %s C", known(g->memory_used_mb, 1.0 / 1024, 1, a),
                 known(g->memory_mb, 1.0 / 1024, 1, b), known(g->power_mw, 1e-3, 0, c),
                 known(g->power_limit_mw, 1e-3, 0, d), known(g->clock_mhz, 1, 0, e), known(g->clock_most_mhz, 1, 0, f),
                 known(g->celsius, 1, 0, h));
    }
}

static void add_processes(top *t, double s)
{
    char line[LINE_BYTES];
    size_t n = t->sampler.sample.processes.n, most = MOST_PROCESSES;
    if (t->pid == 0 || n == 0) return;
    top_sort(&t->sampler.sample, &t->before, s, t->order, t->sorted);
    add_line(t, "%s", top_process_head);
    for (size_t i = 0; i < n && i < most; i++) {
        top_process_line(&t->sampler.sample, &t->before, t->sorted[i], s, line, sizeof(line));
        add_line(t, "%s", line);
    }
    if (n > most) add_line(t, "         and %zu more", n - most);
}

/* --- pictures --- */

/* Takes a sample `ms` after the last, and makes lines of both. */
static bool look(top *t, int ms)
{
    char now_text[32];
    time_t now;
    if (stk_watch_sample_copy(&t->before, &t->sampler.sample) != STK_OK) return false;
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    if (ms > 0) nanosleep(&pause, NULL);
    if (stk_watch_sampler_take(&t->sampler) != STK_OK) return false;
    double s = (double)(t->sampler.sample.time_us - t->before.time_us) * 1e-6;
    now = time(NULL);
    strftime(now_text, sizeof(now_text), "%H:%M:%S", localtime(&now));
    t->n_lines = 0;
    if (t->pid)
        add_line(t, "stoker top   %s   process %" PRId64, now_text, t->pid);
    else
        add_line(t, "stoker top   %s   %s", now_text, t->folder[0] ? "no process" : "no run is training in ./runs");
    add_run(t);
    add_machine(t, s);
    add_gpus(t);
    add_processes(t, s);
    return true;
}

static struct termios before_raw;

static void draw(const top *t)
{
    struct winsize size = {.ws_row = 24};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    int rows = size.ws_row > 2 ? size.ws_row : 24, columns = cli_width(stdout, LINE_BYTES);
    printf("\033[H");
    for (int i = 0; i < t->n_lines && i < rows - 1; i++)
        printf("%.*s\033[K\n", (int)cli_fit(t->line[i], columns - 1), t->line[i]);
    printf("\033[J\033[%d;1Hq ends  c m g p: sort by cores, memory, GPU memory, number  k: end a process", rows);
    fflush(stdout);
}

/* Serves keys until a picture is due; true: it is over. */
static bool serve_keys(top *t, int ms)
{
    char said[CLI_TEXT];
    for (char key = top_read_key(ms); key;) {
        if (key == 'q' || key == 'Q') return true;
        top_order_by_key(key, &t->order);
        if (key != 'k') break;
        top_end_process(&t->sampler.sample, said);
        top_ask(said, "");
        key = top_read_key(1500); /* time to read it */
    }
    return false;
}

static int show(top *t, int every_ms)
{
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
        cli_error("top needs a terminal; --once prints one picture without");
        return CLI_FAILED;
    }
    tcgetattr(STDIN_FILENO, &before_raw);
    struct termios raw = before_raw;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    cli_catch_stop();
    printf("\033[?1049h\033[?25l");
    bool goes_on = look(t, 300);
    while (goes_on) {
        draw(t);
        if (serve_keys(t, every_ms)) break;
        goes_on = look(t, 0);
    }
    printf("\033[?25h\033[?1049l");
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before_raw);
    return goes_on ? CLI_OK : cli_fail();
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static top t;
    int64_t every, port;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words > 1) return cli_usage(verb, "top takes one run or process, and there are %d", args.n_words);
    if (!cli_number(&args, "--every", 1, 60, 2, &every)) return CLI_USAGE;
    const char *order = cli_value(&args, "--sort");
    if (order && !top_order_by_name(order, &t.order))
        return cli_usage(verb, "--sort is cores, memory, gpu or pid, and not '%s'", order);
    if (!cli_number(&args, "--serve", 0, 65535, 0, &port)) return CLI_USAGE;
    if (cli_has(&args, "--serve")) return top_serve((int)port);
    int code = find_job(verb, args.n_words ? args.word[0] : NULL, &t);
    if (code != CLI_OK) return code;
    stk_watch_config config = {.pid = t.pid ? t.pid : (int64_t)getpid(), .interval_us = 500000, .each_whole = true};
    if (stk_watch_sampler_open(&t.sampler, &config) != STK_OK) return cli_fail();
    stk_watch_sample_init(&t.before);
    code = CLI_FAILED;
    if (stk_watch_sampler_take(&t.sampler) != STK_OK) {
        cli_fail();
    } else if (!cli_has(&args, "--once")) {
        code = show(&t, (int)every * 1000);
    } else if (look(&t, 500)) {
        for (int i = 0; i < t.n_lines; i++)
            cli_printf("%s\n", t.line[i]);
        code = CLI_OK;
    } else {
        cli_fail();
    }
    stk_watch_sample_free(&t.before);
    stk_watch_sampler_close(&t.sampler);
    return code;
}

const cli_verb cli_top = {
    "top", "[RUN|PID] [OPTION...]",
    "Shows a run and its machine, live. Loss and speed, where the run's time goes, cores, memory, IO, GPUs "
    "and the run's processes, which keys sort and, after a question, end. Without a name, the run that trains in "
    "./runs.",
    options, .run = run};
