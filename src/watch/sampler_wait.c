/* What a sleeping thread waits for: by the kernel's function that it sleeps in (wchan), and where that says too little
 * by the call that it is in (syscall), whose file or files tell a pipe from a socket and from a disk. A list of files
 * to wait for (poll) is read from the process, which the kernel allows for one's own children. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "watch/parse.h"
#include "watch/sampler.h"

enum { MOST_POLLED = 16, MOST_FDS = 512 };

typedef enum call_kind { CALL_OTHER, CALL_READ, CALL_WRITE, CALL_SYNC, CALL_POLL, CALL_EPOLL, CALL_LOCK } call_kind;

static const struct {
    int64_t number;
    call_kind kind;
    stk_watch_wait wait; /* of CALL_OTHER: what it says by itself */
} calls[] = {
    {SYS_read, CALL_READ, 0},
    {SYS_readv, CALL_READ, 0},
    {SYS_pread64, CALL_READ, 0},
    {SYS_recvfrom, CALL_READ, 0},
    {SYS_recvmsg, CALL_READ, 0},
    {SYS_accept4, CALL_READ, 0},
    {SYS_connect, CALL_READ, 0},
    {SYS_write, CALL_WRITE, 0},
    {SYS_writev, CALL_WRITE, 0},
    {SYS_pwrite64, CALL_WRITE, 0},
    {SYS_sendto, CALL_WRITE, 0},
    {SYS_sendmsg, CALL_WRITE, 0},
    {SYS_fsync, CALL_SYNC, 0},
    {SYS_fdatasync, CALL_SYNC, 0},
    {SYS_ppoll, CALL_POLL, 0},
    {SYS_epoll_pwait, CALL_EPOLL, 0},
    {SYS_futex, CALL_LOCK, 0},
    {SYS_clock_nanosleep, CALL_OTHER, STK_WATCH_WAIT_SLEEP},
    {SYS_nanosleep, CALL_OTHER, STK_WATCH_WAIT_SLEEP},
    {SYS_restart_syscall, CALL_OTHER, STK_WATCH_WAIT_SLEEP}, /* one with a limit that goes on behind a stop */
    {SYS_wait4, CALL_OTHER, STK_WATCH_WAIT_CHILD},
    {SYS_waitid, CALL_OTHER, STK_WATCH_WAIT_CHILD},
    {SYS_flock, CALL_OTHER, STK_WATCH_WAIT_FILE_LOCK},
    {SYS_fcntl, CALL_OTHER, STK_WATCH_WAIT_FILE_LOCK},
#ifdef SYS_poll
    {SYS_poll, CALL_POLL, 0},
#endif
#ifdef SYS_accept
    {SYS_accept, CALL_READ, 0},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, CALL_EPOLL, 0},
#endif
};

/* --- files --- */

/* Whether a socket stays on this machine (unix); sockets of other kinds go to a network, be it the machine's own. */
static bool is_local_socket(stk_watch_sampler *sampler, int64_t process, const char *link)
{
    char want[64];
    size_t n = strcspn(link + 8, "]"); /* socket:[N] */
    snprintf(want, sizeof(want), " %.*s", (int)(n < 30 ? n : 30), link + 8);
    if (!stk_watch_read(&sampler->config.root, sampler->text, STK_WATCH_TEXT, "/proc/%" PRId64 "/net/unix", process))
        return false;
    size_t length = strlen(want);
    for (const char *p = sampler->text; (p = strstr(p, want)); p += length)
        if (p[length] == '\n' || p[length] == ' ' || p[length] == 0) return true;
    return false;
}

/* A process of the job other than this one that has the same pipe open; 0: none has. */
static int64_t find_holder(stk_watch_sampler *sampler, int64_t process, const char *link)
{
    char path[64 + 32], other[STK_WATCH_PATH];
    int64_t best = 0, most_us = -1;
    for (size_t i = 0; i < sampler->sample.processes.n; i++) {
        const stk_watch_process *p = stk_watch_process_at(&sampler->sample, i);
        if (p->id == process || p->cpu_us <= most_us) continue;
        for (int fd = 0, n_missing = 0; fd < MOST_FDS && n_missing < 64; fd++) {
            snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd/%d", p->id, fd);
            if (!stk_watch_read_link(&sampler->config.root, other, sizeof(other), "%s", path)) {
                n_missing++;
                continue;
            }
            n_missing = 0;
            if (strcmp(other, link)) continue;
            best = p->id;
            most_us = p->cpu_us;
            break;
        }
    }
    return best;
}

static stk_watch_wait look_at_file(stk_watch_sampler *sampler, int64_t process, int64_t fd, bool writes, int64_t *peer)
{
    char link[STK_WATCH_PATH], path[64];
    struct stat info;
    stk_watch_wait pipe = writes ? STK_WATCH_WAIT_PIPE_OUT : STK_WATCH_WAIT_PIPE_IN;
    *peer = -1;
    if (!stk_watch_read_link(&sampler->config.root, link, sizeof(link), "/proc/%" PRId64 "/fd/%" PRId64, process, fd))
        return STK_WATCH_WAIT_UNKNOWN;
    if (!strncmp(link, "socket:[", 8)) return is_local_socket(sampler, process, link) ? pipe : STK_WATCH_WAIT_NET;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd/%" PRId64, process, fd);
    if (!strncmp(link, "pipe:[", 6) || (stat(path, &info) == 0 && S_ISFIFO(info.st_mode))) {
        *peer = find_holder(sampler, process, link);
        return pipe;
    }
    if (!strncmp(link, "/dev/pts/", 9) || !strncmp(link, "/dev/tty", 8))
        return writes ? STK_WATCH_WAIT_PIPE_OUT : STK_WATCH_WAIT_PEER;
    if (!strncmp(link, "/dev/nvidia", 11)) return STK_WATCH_WAIT_DEVICE;
    return STK_WATCH_WAIT_UNKNOWN;
}

/* The same, remembered for a while: what a descriptor is changes seldom. */
static stk_watch_wait look_at_fd(stk_watch_sampler *sampler, int64_t process, int64_t fd, bool writes, int64_t *peer)
{
    enum { KEEP_US = 1000000 };
    int64_t key = process << 20 ^ fd << 1 ^ writes, now = sampler->sample.time_us;
    stk_watch_seen_file *seen = &sampler->seen_file[(uint64_t)key % STK_WATCH_SEEN_FILES];
    if (seen->key != key || now - seen->at_us > KEEP_US || seen->at_us > now) {
        seen->wait = look_at_file(sampler, process, fd, writes, &seen->peer);
        seen->key = key;
        seen->at_us = now;
    }
    *peer = seen->peer;
    return (stk_watch_wait)seen->wait;
}

/* Of several files that are waited for together the one that leads farthest out. */
static void choose(stk_watch_asleep *out, stk_watch_wait wait, int64_t peer)
{
    static const stk_watch_wait order[] = {STK_WATCH_WAIT_NET, STK_WATCH_WAIT_PIPE_IN, STK_WATCH_WAIT_PIPE_OUT,
                                           STK_WATCH_WAIT_DEVICE};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if (out->wait == (int64_t)order[i]) return;
        if (wait != order[i]) continue;
        out->wait = wait;
        out->peer = peer;
        return;
    }
}

static void look_at_polled(stk_watch_sampler *sampler, int64_t process, const stk_watch_call *call,
                           stk_watch_asleep *out)
{
    struct pollfd list[MOST_POLLED];
    size_t n = call->argument[1] < MOST_POLLED ? (size_t)call->argument[1] : MOST_POLLED;
    struct iovec to = {list, n * sizeof(list[0])}, from = {(void *)(uintptr_t)call->argument[0], to.iov_len};
    int64_t peer;
    if (n == 0) {
        out->wait = STK_WATCH_WAIT_SLEEP;
        return;
    }
    if (process_vm_readv((pid_t)process, &to, 1, &from, 1, 0) != (ssize_t)to.iov_len) return;
    for (size_t i = 0; i < n; i++) {
        bool writes = (list[i].events & POLLOUT) && !(list[i].events & POLLIN);
        if (list[i].fd < 0) continue;
        stk_watch_wait wait = look_at_fd(sampler, process, list[i].fd, writes, &peer);
        choose(out, wait, peer);
    }
}

static void look_at_epoll(stk_watch_sampler *sampler, int64_t process, int64_t fd, stk_watch_asleep *out)
{
    char text[2048];
    int64_t peer;
    int n = 0;
    if (!stk_watch_read(&sampler->config.root, text, sizeof(text), "/proc/%" PRId64 "/fdinfo/%" PRId64, process, fd))
        return;
    for (const char *p = text; (p = strstr(p, "tfd:")) && n < MOST_POLLED; n++) {
        p += 4;
        stk_watch_wait wait = look_at_fd(sampler, process, strtol(p, NULL, 10), false, &peer);
        choose(out, wait, peer);
    }
}

/* --- a thread --- */

/* Whether a file behind a network or a program is meant by a call on a file. */
static bool is_remote_file(stk_watch_sampler *sampler, int64_t process, int64_t fd)
{
    const stk_watch_root *root = &sampler->config.root;
    char path[STK_WATCH_PATH], type[STK_WATCH_PATH], point[STK_WATCH_PATH];
    return stk_watch_read_link(root, path, sizeof(path), "/proc/%" PRId64 "/fd/%" PRId64, process, fd) &&
           path[0] == '/' &&
           stk_watch_read(root, sampler->text, STK_WATCH_TEXT, "/proc/%" PRId64 "/mountinfo", process) &&
           stk_watch_parse_mount(sampler->text, path, type, point) && stk_watch_is_remote(type);
}

/* Whether a lock is a part of Python's own data. Of those only the GIL is waited for with a limit (CPython's
 * Python/ceval_gil.c, take_gil). A process's map is read once, and now and then where it has no Python. */
static bool is_of_interpreter(stk_watch_sampler *sampler, int64_t process, uint64_t address)
{
    enum { MAPS_BYTES = 4 << 20, KEEP_US = 30000000 };
    stk_watch_interpreter *known = &sampler->interpreter[(uint64_t)process % STK_WATCH_INTERPRETERS];
    int64_t now = sampler->sample.time_us;
    bool is_new = known->at_us == 0 || now - known->at_us > KEEP_US;
    if (is_new && (known->process != process || known->end == 0)) {
        char *maps = malloc(MAPS_BYTES);
        stk_watch_code data = {0, 0};
        if (maps && stk_watch_read(&sampler->config.root, maps, MAPS_BYTES, "/proc/%" PRId64 "/maps", process))
            (void)stk_watch_parse_interpreter(maps, &data);
        free(maps);
        *known = (stk_watch_interpreter){process, now, data.begin, data.end};
    }
    return known->process == process && known->begin <= address && address < known->end;
}

static void refine(stk_watch_sampler *sampler, int64_t process, const stk_watch_call *call, stk_watch_asleep *out)
{
    bool on_disk = out->wait == STK_WATCH_WAIT_DISK;
    size_t i = 0;
    while (i < sizeof(calls) / sizeof(calls[0]) && calls[i].number != call->number)
        i++;
    if (i == sizeof(calls) / sizeof(calls[0])) return;
    call_kind kind = calls[i].kind;
    bool has_file = kind == CALL_READ || kind == CALL_WRITE || kind == CALL_SYNC;
    if (on_disk && has_file && is_remote_file(sampler, process, call->argument[0]))
        out->wait = STK_WATCH_WAIT_REMOTE;
    else if (on_disk && (kind == CALL_WRITE || kind == CALL_SYNC))
        out->wait = STK_WATCH_WAIT_DISK_OUT;
    else if (on_disk)
        return;
    else if (kind == CALL_SYNC)
        out->wait = STK_WATCH_WAIT_DISK_OUT;
    else if (kind == CALL_READ || kind == CALL_WRITE) {
        stk_watch_wait wait = look_at_fd(sampler, process, call->argument[0], kind == CALL_WRITE, &out->peer);
        if (wait != STK_WATCH_WAIT_UNKNOWN) out->wait = wait;
    } else if (kind == CALL_POLL)
        look_at_polled(sampler, process, call, out);
    else if (kind == CALL_EPOLL)
        look_at_epoll(sampler, process, call->argument[0], out);
    else if (kind == CALL_LOCK) {
        out->wait = STK_WATCH_WAIT_LOCK;
        /* A wait with a limit; the parts of a condition variable lie in one line of memory. */
        if (call->argument[3] != 0) {
            out->word = call->argument[0] >> 6;
            out->at_gil = is_of_interpreter(sampler, process, (uint64_t)call->argument[0]);
        }
    } else if (out->wait == STK_WATCH_WAIT_UNKNOWN || out->wait == STK_WATCH_WAIT_PEER)
        out->wait = calls[i].wait;
}

stk_watch_asleep stk_watch_read_wait(stk_watch_sampler *sampler, int64_t process, int64_t thread)
{
    char text[256];
    stk_watch_asleep out = {STK_WATCH_WAIT_UNKNOWN, -1, -1, -1, false};
    stk_watch_call call;
    int64_t key = stk_watch_file_key(process, thread, STK_WATCH_FILE_WCHAN);
    if (!stk_watch_read_kept(&sampler->keeper, key, text, sizeof(text), "/proc/%" PRId64 "/task/%" PRId64 "/wchan",
                             process, thread)) {
        if (kill((pid_t)process, 0) == 0)
            (void)stk_watch_facts_add(&sampler->facts, "missing",
                                      "what sleeping threads wait for (/proc/PID/wchan: a kernel that shows it)");
        return out;
    }
    if (text[0] == '0' && !text[1]) {
        out.is_awake = true;
        return out;
    }
    out.wait = stk_watch_parse_wchan(text);
    /* Nothing is asked of a remote file: its server may never answer this process either. */
    if (out.wait == STK_WATCH_WAIT_SLEEP || out.wait == STK_WATCH_WAIT_SWAP || out.wait == STK_WATCH_WAIT_CHILD ||
        out.wait == STK_WATCH_WAIT_REMOTE)
        return out;
    key = stk_watch_file_key(process, thread, STK_WATCH_FILE_CALL);
    if (stk_watch_read_kept(&sampler->keeper, key, text, sizeof(text), "/proc/%" PRId64 "/task/%" PRId64 "/syscall",
                            process, thread) &&
        stk_watch_parse_call(text, &call))
        refine(sampler, process, &call, &out);
    return out;
}
