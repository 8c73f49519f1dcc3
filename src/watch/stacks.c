#include "watch/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const double first_s = 0.5, growth = 1.0 / 16, longest_s = 10;
enum { MOST_FRAMES = 3, MOST_FRAME = 100 };

/* --- what they say --- */

/* Adds a frame of n bytes; false when there are enough. */
static bool add_frame(char out[STK_WATCH_STACK_LINE], int *n_frames, const char *frame, size_t n)
{
    size_t at = strlen(out);
    snprintf(out + at, STK_WATCH_STACK_LINE - at, "%s%.*s", *n_frames ? " < " : "",
             (int)(n < MOST_FRAME ? n : MOST_FRAME), frame);
    return ++*n_frames < MOST_FRAMES;
}

bool stk_watch_parse_py_spy(const char *text, int64_t thread, char out[STK_WATCH_STACK_LINE])
{
    char head[40];
    int n_frames = 0;
    out[0] = 0;
    snprintf(head, sizeof(head), "Thread %" PRId64 " ", thread);
    const char *p = strstr(text, head);
    while (p && p != text && p[-1] != '\n')
        p = strstr(p + 1, head);
    if (!p) return false;
    for (p = strchr(p, '\n'); p && !strncmp(p, "\n    ", 5); p = strchr(p + 1, '\n')) {
        const char *frame = p + 1 + strspn(p + 1, " ");
        if (!add_frame(out, &n_frames, frame, strcspn(frame, "\n"))) break;
    }
    return n_frames > 0;
}

/* "#1  0x00007f in work (x=3) at /a/job.c:12" gives "work (job.c:12)". */
static size_t find_gdb_frame(const char *line, size_t n, char out[MOST_FRAME + 1])
{
    char text[512];
    snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) - 1 ? n : sizeof(text) - 1), line);
    char *name = text + 1 + strspn(text + 1, "0123456789");
    name += strspn(name, " ");
    char *in = !strncmp(name, "0x", 2) ? strstr(name, " in ") : NULL, *at = NULL;
    if (in) name = in + 4;
    for (char *next = strstr(name, ") at "); next; next = strstr(next + 1, ") at "))
        at = next + 5;
    char *slash = at ? strrchr(at, '/') : NULL;
    int length = (int)strcspn(name, " ");
    if (at)
        snprintf(out, MOST_FRAME + 1, "%.*s (%s)", length, name, slash ? slash + 1 : at);
    else
        snprintf(out, MOST_FRAME + 1, "%.*s", length, name);
    return strlen(out);
}

bool stk_watch_parse_gdb(const char *text, char out[STK_WATCH_STACK_LINE])
{
    int n_frames = 0;
    out[0] = 0;
    for (const char *p = text; p && *p; p = strchr(p, '\n'), p += p != NULL) {
        char frame[MOST_FRAME + 1];
        if (p[0] != '#' || p[1] < '0' || p[1] > '9') continue;
        size_t n = find_gdb_frame(p, strcspn(p, "\n"), frame);
        if (n > 0 && !add_frame(out, &n_frames, frame, n)) break;
    }
    return n_frames > 0;
}

/* --- asking --- */

static bool is_python(const stk_watch_facts *facts, int64_t process)
{
    const char *text;
    for (size_t i = 0; (text = stk_watch_facts_get(facts, "python", i)); i++)
        if (strtoll(text, NULL, 10) == process) return true;
    return false;
}

/* Its output, errors too, goes to stacks->fd. Returns errno. */
static int start_tool(stk_watch_stacks *stacks)
{
    char id[24];
    int fds[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    sigset_t none;
    snprintf(id, sizeof(id), "%" PRId64, stacks->process);
    /* Without a pause of the job, and without looking for symbols elsewhere or running what a folder has for gdb. */
    char *py_spy[] = {"py-spy", "dump", "--nonblocking", "--pid", id, NULL};
    char *gdb[] = {"gdb", "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", "-p",
                   id,    "-ex", "bt 8",   NULL};
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return errno;
    /* gdb waits for signals that are blocked here, and Ctrl-C is the job's. */
    sigemptyset(&none);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
    char **command = stacks->is_py_spy ? py_spy : gdb;
    int error = posix_spawnp(&stacks->tool, command[0], &actions, &how, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&how);
    close(fds[1]);
    if (error) {
        stacks->tool = 0;
        close(fds[0]);
        return error;
    }
    stacks->fd = fds[0];
    stacks->n = 0;
    return 0;
}

void stk_watch_stacks_end(stk_watch_stacks *stacks)
{
    if (stacks->tool == 0) return;
    /* Whoever waits for any child may have taken it, and its number may be another's by now. */
    if (waitpid(stacks->tool, NULL, WNOHANG) == 0) {
        kill(stacks->tool, SIGKILL);
        waitpid(stacks->tool, NULL, 0);
    }
    close(stacks->fd);
    stacks->tool = 0;
}

/* All that it has to say; the rest of too much is dropped. True: it has ended. */
static bool read_all(stk_watch_stacks *stacks)
{
    for (;;) {
        char dropped[512];
        size_t room = sizeof(stacks->text) - 1 - stacks->n;
        ssize_t n = read(stacks->fd, room ? stacks->text + stacks->n : dropped, room ? room : sizeof(dropped));
        if (n < 0) return errno != EAGAIN && errno != EINTR;
        if (n == 0) return true;
        if (room) stacks->n += (size_t)n;
    }
}

static stk_status take(stk_watch_stacks *stacks, stk_watch_facts *facts)
{
    char line[STK_WATCH_STACK_LINE];
    for (size_t i = 0; i < stacks->n; i++)
        if (!stacks->text[i]) stacks->text[i] = ' ';
    stacks->text[stacks->n] = 0;
    bool good = stacks->is_py_spy ? stk_watch_parse_py_spy(stacks->text, stacks->process, line)
                                  : stk_watch_parse_gdb(stacks->text, line);
    if (good) return stk_watch_facts_add(facts, "stack", "%.2f %s", stacks->begun_s, line);
    if (stk_watch_facts_get(facts, "stack", 0)) return STK_OK; /* one that it missed */
    return stk_watch_facts_add(facts, "missing", "stacks (%s: %.*s)", stacks->is_py_spy ? "py-spy" : "gdb",
                               (int)strcspn(stacks->text, "\n"), stacks->text);
}

stk_status stk_watch_stacks_step(stk_watch_stacks *stacks, double now_s, int64_t process, stk_watch_facts *facts)
{
    if (stacks->tool != 0) {
        if (!read_all(stacks)) {
            if (now_s - stacks->begun_s > longest_s) stk_watch_stacks_end(stacks);
            return STK_OK;
        }
        stk_watch_stacks_end(stacks);
        return take(stacks, facts);
    }
    if (process <= 0 || now_s < stacks->next_s) return STK_OK;
    stacks->begun_s = now_s;
    stacks->next_s = now_s + fmax(first_s, now_s * growth);
    stacks->process = process;
    stacks->is_py_spy = is_python(facts, process);
    int error = start_tool(stacks);
    if (!error) return STK_OK;
    return stk_watch_facts_add(facts, "missing", "stacks (they need %s on PATH, and that it may look into the job)",
                               stacks->is_py_spy ? "py-spy" : "gdb");
}

/* --- summing up --- */

enum { MOST_KINDS = 64 };

void stk_watch_stacks_sum(const stk_watch_facts *facts, double begin_s, double end_s, stk_watch_held *out)
{
    const char *kind[MOST_KINDS], *text;
    int n[MOST_KINDS] = {0}, n_kinds = 0;
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; (text = stk_watch_facts_get(facts, "stack", i)); i++) {
        char *line;
        double at_s = strtod(text, &line);
        if (line == text || *line != ' ' || !(at_s >= begin_s) || !(at_s <= end_s)) continue;
        int k = 0;
        while (k < n_kinds && strcmp(kind[k], line + 1))
            k++;
        out->n_stacks++;
        if (k == MOST_KINDS) continue;
        kind[k] = line + 1;
        n[k]++;
        if (k == n_kinds) n_kinds++;
    }
    while (out->n_lines < STK_WATCH_STACK_LINES) {
        int best = -1;
        for (int k = 0; k < n_kinds; k++)
            if (n[k] > 0 && (best < 0 || n[k] > n[best])) best = k;
        if (best < 0) break;
        out->text[out->n_lines] = kind[best];
        out->n[out->n_lines++] = n[best];
        n[best] = 0;
    }
}
