#include "bench/command.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "bench/number.h"

/* --- what it printed --- */

stk_status stk_bench_pattern_compile(const char *text, regex_t *out)
{
    char why[256];
    int code = regcomp(out, text, REG_EXTENDED | REG_NEWLINE);
    if (code == 0) return STK_OK;
    regerror(code, out, why, sizeof(why));
    return stk_fail(STK_INVALID, "'%s' is no pattern: %s", text, why);
}

double stk_bench_find_figure(const regex_t *pattern, const char *text)
{
    regmatch_t found[2];
    double figure = NAN;
    for (int flags = 0; *text && regexec(pattern, text, 2, found, flags) == 0; flags = REG_NOTBOL) {
        const regmatch_t *part = pattern->re_nsub > 0 && found[1].rm_so >= 0 ? &found[1] : &found[0];
        double x;
        if (stk_bench_read_number(text + part->rm_so, (size_t)(part->rm_eo - part->rm_so), &x)) figure = x;
        text += found[0].rm_eo > 0 ? found[0].rm_eo : 1;
    }
    return figure;
}

/* The end of what a file holds, or all of it, ended by 0; free(). NULL: out of memory. */
static char *read_output(int fd, size_t most)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size < 0) info.st_size = 0;
    size_t size = (size_t)info.st_size, n = size < most ? size : most, have = 0;
    char *text = malloc(n + 1);
    if (!text) return NULL;
    while (have < n) {
        ssize_t got = pread(fd, text + have, n - have, (off_t)(size - n + have));
        if (got <= 0 && !(got < 0 && errno == EINTR)) break;
        if (got > 0) have += (size_t)got;
    }
    text[have] = 0;
    for (size_t i = 0; i < have; i++)
        if (!text[i]) text[i] = ' ';
    return text;
}

/* The number at a key of a JSON file: "a.b". */
static stk_status read_key(const stk_bench_start *start, double *out)
{
    json_t *root;
    STK_RETURN_IF_ERROR(stk_json_read(start->file, 0, &root));
    *out = stk_bench_number_at(root, start->key);
    json_decref(root);
    return isnan(*out) ? stk_fail(STK_INVALID, "'%s' has no number '%s'", start->file, start->key) : STK_OK;
}

static stk_status fail_with_output(const stk_bench_start *start, int fd, const char *what)
{
    enum { END = 1500 };
    char *end = read_output(fd, END), shown[4 * END];
    if (!end) return stk_fail_memory(END);
    size_t n = strlen(end);
    while (n > 0 && (end[n - 1] == '\n' || end[n - 1] == ' '))
        end[--n] = 0;
    stk_status status = n ? stk_fail(STK_INVALID, "'%s' %s; the end of what it printed:\n%s", start->argv[0], what,
                                     stk_printable_lines(end, shown, sizeof(shown)))
                          : stk_fail(STK_INVALID, "'%s' %s, and printed nothing", start->argv[0], what);
    free(end);
    return status;
}

/* --- the process --- */

/* This process's environment and the number of the run. Returned: free(). */
static char **make_environment(const stk_bench_start *start, char entry[48])
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **out = malloc((n + 2) * sizeof(*out));
    if (!out) return NULL;
    memcpy(out, environ, n * sizeof(*out));
    snprintf(entry, 48, "STOKER_BENCH_RUN=%d", start->number);
    out[n] = entry;
    out[n + 1] = NULL;
    return out;
}

/* In the child. error_fd gets errno where the program cannot be started. */
static void become(const stk_bench_start *start, char *const *environment, int output_fd, int error_fd)
{
    int null = open("/dev/null", O_RDWR);
    signal(SIGPIPE, SIG_DFL);
    if (null >= 0) dup2(null, STDIN_FILENO);
    if (!start->shows_output) {
        dup2(start->pattern ? output_fd : null, STDOUT_FILENO);
        dup2(output_fd, STDERR_FILENO);
    } else if (start->pattern) {
        dup2(output_fd, STDOUT_FILENO);
    } else {
        dup2(STDERR_FILENO, STDOUT_FILENO);
    }
    execvpe(start->argv[0], start->argv, environment);
    int error = errno;
    if (write(error_fd, &error, sizeof(error)) < 0) _exit(126);
    _exit(127);
}

static stk_status begin_process(const stk_bench_start *start, int output_fd, pid_t *out)
{
    int fds[2], error = 0;
    char entry[48], **environment = make_environment(start, entry);
    if (!environment) return stk_fail_memory(sizeof(entry));
    if (pipe2(fds, O_CLOEXEC) != 0) {
        free(environment);
        return stk_fail(STK_IO, "cannot make a pipe: %s", stk_errno_text(errno));
    }
    pid_t pid = fork();
    if (pid == 0) become(start, environment, output_fd, fds[1]);
    int fork_error = errno;
    free(environment);
    close(fds[1]);
    ssize_t n = 0;
    while (pid > 0 && (n = read(fds[0], &error, sizeof(error))) < 0 && errno == EINTR)
        ;
    close(fds[0]);
    if (pid < 0) return stk_fail(STK_IO, "cannot start a process: %s", stk_errno_text(fork_error));
    *out = pid;
    if (n != (ssize_t)sizeof(error)) return STK_OK;
    waitpid(pid, NULL, 0);
    return stk_fail(error == ENOENT ? STK_NOT_FOUND : STK_IO, "cannot start '%s': %s", start->argv[0],
                    stk_errno_text(error));
}

/* Ends it: asked at first, then not. */
static void end_process(pid_t pid, int *how, struct rusage *usage)
{
    enum { TRIES = 50 };
    struct timespec pause = {0, 100000000};
    kill(pid, SIGTERM);
    for (int i = 0; i < TRIES; i++) {
        if (wait4(pid, how, WNOHANG, usage) == pid) return;
        nanosleep(&pause, NULL);
    }
    kill(pid, SIGKILL);
    while (wait4(pid, how, 0, usage) < 0 && errno == EINTR)
        ;
}

/* Waits to its end, and looks at it now and then: at first early, as its control group is known by then. */
static stk_status wait_process(const stk_bench_start *start, stk_bench_machine *machine, pid_t pid, int output_fd,
                               int *how, struct rusage *usage, int64_t *end_ns)
{
    enum { FIRST_MS = 20, LATER_MS = 200 };
    struct stat output;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0), wait_ms = FIRST_MS;
    stk_status status = STK_OK;
    while (fd >= 0 && status == STK_OK) {
        struct pollfd ended = {.fd = fd, .events = POLLIN};
        if (poll(&ended, 1, wait_ms) > 0) break;
        wait_ms = LATER_MS;
        if (start->is_stopped && start->is_stopped())
            status = stk_fail(STK_INTERRUPTED, "interrupted while '%s' ran", start->argv[0]);
        else if (fstat(output_fd, &output) == 0 && output.st_size > STK_BENCH_MOST_OUTPUT)
            status = stk_fail(STK_INVALID, "'%s' prints more than %d MiB", start->argv[0], STK_BENCH_MOST_OUTPUT >> 20);
        else
            status = stk_bench_look(machine, pid);
    }
    *end_ns = stk_clock_ns();
    if (fd >= 0) close(fd);
    if (status != STK_OK) {
        end_process(pid, how, usage);
        return status;
    }
    while (wait4(pid, how, 0, usage) < 0)
        if (errno != EINTR) return stk_fail(STK_IO, "cannot wait for '%s': %s", start->argv[0], stk_errno_text(errno));
    if (fd < 0) *end_ns = stk_clock_ns();
    return STK_OK;
}

static stk_status take_figure(const stk_bench_start *start, int output_fd, stk_bench_run *run)
{
    run->figure = run->wall_s;
    if (start->file) return read_key(start, &run->figure);
    if (!start->pattern) return STK_OK;
    char *text = read_output(output_fd, STK_BENCH_MOST_OUTPUT);
    if (!text) return stk_fail_memory(STK_BENCH_MOST_OUTPUT);
    run->figure = stk_bench_find_figure(start->pattern, text);
    free(text);
    return isnan(run->figure) ? fail_with_output(start, output_fd, "printed no number that the pattern finds") : STK_OK;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

stk_status stk_bench_command_run(const stk_bench_start *start, stk_bench_machine *machine, stk_bench_run *run)
{
    struct rusage usage = {0};
    int how = 0, fd = memfd_create("output", MFD_CLOEXEC);
    pid_t pid = -1;
    int64_t begin_ns, end_ns;
    char what[64];
    stk_status status = STK_OK;
    if (fd < 0) return stk_fail(STK_IO, "cannot make a file in memory: %s", stk_errno_text(errno));
    begin_ns = stk_clock_ns();
    STK_TRY(begin_process(start, fd, &pid));
    STK_TRY(wait_process(start, machine, pid, fd, &how, &usage, &end_ns));
    run->wall_s = (double)(end_ns - begin_ns) * 1e-9;
    run->user_s = seconds_of(usage.ru_utime);
    run->system_s = seconds_of(usage.ru_stime);
    run->resident_kb = usage.ru_maxrss;
    run->n_major_faults = usage.ru_majflt;
    run->n_blocks_read = usage.ru_inblock;
    if (how != 0 && !start->may_fail) {
        if (WIFSIGNALED(how))
            snprintf(what, sizeof(what), "was ended by signal %d", WTERMSIG(how));
        else
            snprintf(what, sizeof(what), "failed with exit code %d", WEXITSTATUS(how));
        if (start->is_stopped && start->is_stopped())
            STK_TRY(stk_fail(STK_INTERRUPTED, "interrupted while '%s' ran", start->argv[0]));
        STK_TRY(fail_with_output(start, fd, what));
    }
    STK_TRY(take_figure(start, fd, run));
    stk_bench_metrics_read(start->file, run->metric);
done:
    close(fd);
    return status;
}
