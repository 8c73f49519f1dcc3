/* Counters of the job's processes and threads. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "watch/parse.h"
#include "watch/sampler.h"

enum {
    MOST_THREADS = 8000,
    MOST_THREADS_FAST = 256,
    MOST_THREADS_IDLE = 256,
    MOST_WAITS = 64,
    MOST_PROCESSES_FAST = 128
};

void stk_watch_miss(stk_watch_sampler *sampler, int64_t process, const char *text)
{
    char line[1024];
    stk_watch_stat stat;
    if (kill((pid_t)process, 0) != 0 && errno != EPERM) return;
    bool is_known = stk_watch_read(&sampler->config.root, line, sizeof(line), "/proc/%" PRId64 "/stat", process) &&
                    stk_watch_parse_stat(line, &stat);
    if (!is_known || stat.state != 'Z') (void)stk_watch_facts_add(&sampler->facts, "missing", "%s", text);
}

static int64_t read_wait(stk_watch_sampler *sampler, int64_t process, char state)
{
    if (state != 'S' && state != 'D') return STK_WATCH_WAIT_UNKNOWN;
    int64_t wait = stk_watch_read_wait(sampler, process, process).wait;
    return wait == STK_WATCH_WAIT_UNKNOWN && state == 'D' ? (int64_t)STK_WATCH_WAIT_DISK : wait;
}

/* --- threads --- */

/* Of threads that work the file stays open. */
static bool read_schedstat(stk_watch_sampler *sampler, const stk_watch_thread *thread, char *text, size_t bytes)
{
    static const char path[] = "/proc/%" PRId64 "/task/%" PRId64 "/schedstat";
    int64_t process = thread->process, id = thread->id;
    if (thread->is_active != 1 && id != process)
        return stk_watch_read(&sampler->config.root, text, bytes, path, process, id);
    return stk_watch_read_kept(&sampler->keeper, stk_watch_file_key(process, id, STK_WATCH_FILE_SCHEDSTAT), text, bytes,
                               path, process, id);
}

static bool read_thread(stk_watch_sampler *sampler, stk_watch_thread *thread, bool with_state)
{
    const stk_watch_root *root = &sampler->config.root;
    char text[1024];
    int64_t run_ns, waited_ns;
    stk_watch_stat stat;
    bool has_time =
        read_schedstat(sampler, thread, text, sizeof(text)) && stk_watch_parse_schedstat(text, &run_ns, &waited_ns);
    if (has_time) {
        thread->cpu_us = run_ns / 1000;
        thread->waited_us = waited_ns / 1000;
        if (!with_state) return true;
    }
    if (!stk_watch_read(root, text, sizeof(text), "/proc/%" PRId64 "/task/%" PRId64 "/stat", thread->process,
                        thread->id) ||
        !stk_watch_parse_stat(text, &stat))
        return has_time;
    thread->state = stat.state;
    thread->system_us = stat.system_ticks * (1000000 / sysconf(_SC_CLK_TCK));
    thread->minor_faults = stat.minor_faults;
    if (!has_time) {
        thread->cpu_us = stat.cpu_ticks * (1000000 / sysconf(_SC_CLK_TCK));
        stk_watch_miss(sampler, thread->process,
                       "time that threads wait for a core (/proc/PID/schedstat: CONFIG_SCHED_INFO)");
    }
    return true;
}

static void forget_thread(stk_watch_sampler *sampler, const stk_watch_thread *thread)
{
    int64_t key = stk_watch_file_key(thread->process, thread->id, 0);
    stk_watch_keeper_drop(&sampler->keeper, key, key | 0xff);
    stk_watch_list_remove(&sampler->sample.threads, thread->id);
}

/* Adds threads that are new. */
static stk_status list_threads(stk_watch_sampler *sampler, int64_t process)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/task", process);
    DIR *folder = stk_watch_is_hidden(&sampler->config.root, path) ? NULL : opendir(path);
    if (!folder) {
        stk_watch_miss(sampler, process, "threads of processes (/proc/PID/task: the same user)");
        return STK_OK;
    }
    for (struct dirent *entry; (entry = readdir(folder)) && sampler->sample.threads.n < MOST_THREADS;) {
        int64_t id = atoll(entry->d_name);
        if (id <= 0) continue;
        stk_watch_thread *thread = stk_watch_list_add(&sampler->sample.threads, id);
        if (!thread) {
            closedir(folder);
            return stk_fail_memory(sizeof(*thread));
        }
        thread->process = process;
    }
    closedir(folder);
    return STK_OK;
}

/* Whether it is read at every tick. */
static bool is_watched(const stk_watch_sampler *sampler, const stk_watch_process *process)
{
    return process->is_active == 1 || process->holds_gpu == 1 || process->id == sampler->config.pid;
}

/* Of threads that work, and of the first ones of processes that do. */
static bool is_thread_watched(const stk_watch_sampler *sampler, const stk_watch_thread *thread)
{
    if (thread->is_active == 1 || thread->id != thread->process) return thread->is_active == 1;
    const stk_watch_process *process = stk_watch_list_find(&sampler->sample.processes, thread->process);
    return process && is_watched(sampler, process);
}

static void look_at_thread(stk_watch_sampler *sampler, stk_watch_thread *thread)
{
    stk_watch_asleep asleep = stk_watch_read_wait(sampler, thread->process, thread->id);
    thread->is_asleep = !asleep.is_awake;
    thread->wait = asleep.wait;
    thread->peer = asleep.peer;
    thread->word = asleep.word;
    thread->at_gil = asleep.at_gil;
    if (asleep.wait == STK_WATCH_WAIT_UNKNOWN && thread->state == 'D') thread->wait = STK_WATCH_WAIT_DISK;
}

/* Often: threads that have run of late; now and then: others, too, in turn where there are many. */
static void read_threads(stk_watch_sampler *sampler, bool is_slow)
{
    stk_watch_list *threads = &sampler->sample.threads;
    size_t first_idle = sampler->n_next_idle < threads->n ? sampler->n_next_idle : 0;
    int n_waits = 0, n_fast = 0, n_idle = 0;
    for (size_t i = 0; i < threads->n; i++) {
        stk_watch_thread *thread = stk_watch_thread_at(&sampler->sample, i);
        bool is_main = thread->id == thread->process, watched = is_thread_watched(sampler, thread);
        int64_t before_us = thread->cpu_us;
        if (!is_slow && ((!watched && threads->n > MOST_WAITS) || n_fast++ >= MOST_THREADS_FAST)) continue;
        if (is_slow && !watched) {
            if (i < first_idle || n_idle >= MOST_THREADS_IDLE) continue;
            n_idle++;
            sampler->n_next_idle = i + 1;
        }
        if (!read_thread(sampler, thread, is_slow)) {
            forget_thread(sampler, thread);
            i--;
            continue;
        }
        if (thread->cpu_us > before_us + 1000) thread->is_active = 1;
        bool was_active = thread->is_active == 1;
        if (is_slow) thread->is_active = thread->cpu_us > before_us + 1000;
        thread->wait = STK_WATCH_WAIT_UNKNOWN;
        thread->is_asleep = thread->peer = thread->word = thread->at_gil = -1;
        /* Where there are few, those that only sleep tell, too. */
        bool is_looked_at = is_main || was_active || thread->state == 'D' || threads->n <= MOST_WAITS;
        if (is_looked_at && n_waits++ < MOST_WAITS) look_at_thread(sampler, thread);
    }
}

/* --- processes --- */

static void read_io(stk_watch_sampler *sampler, stk_watch_process *process)
{
    char text[512];
    if (!stk_watch_read_kept(&sampler->keeper, stk_watch_file_key(process->id, 0, STK_WATCH_FILE_IO), text,
                             sizeof(text), "/proc/%" PRId64 "/io", process->id)) {
        stk_watch_miss(sampler, process->id, "bytes that processes read and write (/proc/PID/io: the same user)");
        return;
    }
    process->asked_kb = stk_watch_parse_key(text, "rchar") / 1024;
    process->put_kb = stk_watch_parse_key(text, "wchar") / 1024;
    process->read_kb = stk_watch_parse_key(text, "read_bytes") / 1024;
    process->written_kb = stk_watch_parse_key(text, "write_bytes") / 1024;
}

static void read_status(stk_watch_sampler *sampler, stk_watch_process *process)
{
    char text[4096];
    cpu_set_t set;
    if (stk_watch_read(&sampler->config.root, text, sizeof(text), "/proc/%" PRId64 "/status", process->id)) {
        process->swapped_kb = stk_watch_parse_key(text, "VmSwap");
        int64_t anonymous = stk_watch_parse_key(text, "RssAnon"), shared = stk_watch_parse_key(text, "RssShmem");
        process->anonymous_kb = anonymous < 0 ? -1 : anonymous + (shared > 0 ? shared : 0);
        process->code_kb = stk_watch_parse_key(text, "VmLib"); /* all that is mapped so, but the program's own */
        process->voluntary = stk_watch_parse_key(text, "voluntary_ctxt_switches");
        process->involuntary = stk_watch_parse_key(text, "nonvoluntary_ctxt_switches");
    } else {
        stk_watch_miss(sampler, process->id,
                       "memory of processes that is swapped out (/proc/PID/status: the same user)");
    }
    CPU_ZERO(&set);
    process->n_allowed_cpus = sched_getaffinity((pid_t)process->id, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;
}

/* The memory node of a core, -1 where the machine has but one. */
static int64_t node_of(stk_watch_sampler *sampler, int64_t cpu)
{
    char text[256];
    for (int node = 0; sampler->has_nodes && node < 64; node++) {
        bool has = false;
        if (!stk_watch_read(&sampler->config.root, text, sizeof(text), "/sys/devices/system/node/node%d/cpulist", node))
            return -1;
        if (stk_watch_parse_cpu_list(text, cpu, &has) > 0 && has) return node;
    }
    return -1;
}

/* False: it has ended. */
static bool read_process(stk_watch_sampler *sampler, stk_watch_process *process, bool is_slow)
{
    static int64_t page_kb, tick_us;
    char text[1024];
    stk_watch_stat stat;
    if (!page_kb) {
        page_kb = sysconf(_SC_PAGESIZE) / 1024;
        tick_us = 1000000 / sysconf(_SC_CLK_TCK);
    }
    if (!stk_watch_read_kept(&sampler->keeper, stk_watch_file_key(process->id, 0, STK_WATCH_FILE_STAT), text,
                             sizeof(text), "/proc/%" PRId64 "/stat", process->id) ||
        !stk_watch_parse_stat(text, &stat)) {
        stk_watch_miss(sampler, process->id,
                       "the job's processes (/proc/PID/stat: its user, or root, where /proc hides them)");
        return false;
    }
    if (stat.state == 'Z' || stat.state == 'X') return false;
    bool is_new = process->cpu_us < 0;
    if (process->start_ticks >= 0 && process->start_ticks != stat.start_ticks) return false;
    process->start_ticks = stat.start_ticks;
    process->parent = stat.parent;
    process->state = stat.state;
    process->n_threads = stat.n_threads;
    bool has_run = stat.cpu_ticks * tick_us > process->cpu_us;
    process->cpu_us = stat.cpu_ticks * tick_us;
    process->major_faults = stat.major_faults;
    process->minor_faults = stat.minor_faults;
    process->system_us = stat.system_ticks * tick_us;
    process->children_us = stat.children_ticks * tick_us;
    process->resident_kb = stat.resident_pages * page_kb;
    process->last_cpu = stat.last_cpu;
    if (process->holds_gpu < 0) process->holds_gpu = 0;
    read_io(sampler, process);
    process->wait = read_wait(sampler, process->id, stat.state);
    bool works = has_run || stat.state != 'S' || process->wait == STK_WATCH_WAIT_DISK ||
                 process->wait == STK_WATCH_WAIT_REMOTE || process->wait == STK_WATCH_WAIT_SWAP;
    if (is_slow || works) process->is_active = works;
    sampler->sample.machine.n_compilers += stk_watch_is_compiler(stat.name);
    if (!is_slow && !is_new) return true;
    read_status(sampler, process);
    process->numa_node = node_of(sampler, stat.last_cpu);
    return true;
}

static void remove_process(stk_watch_sampler *sampler, int64_t id)
{
    stk_watch_list *threads = &sampler->sample.threads;
    size_t n_left = 0;
    for (size_t i = 0; i < threads->n; i++) {
        stk_watch_thread *thread = stk_watch_thread_at(&sampler->sample, i);
        if (thread->process != id) *stk_watch_thread_at(&sampler->sample, n_left++) = *thread;
    }
    threads->n = n_left;
    stk_watch_keeper_drop(&sampler->keeper, stk_watch_file_key(id, 0, 0), stk_watch_file_key(id, -1, 0xff));
    stk_watch_list_remove(&sampler->sample.processes, id);
}

stk_status stk_watch_read_processes(stk_watch_sampler *sampler, bool is_slow)
{
    stk_watch_list *list = &sampler->sample.processes;
    /* New threads, like new processes, count among what the machine has started. */
    bool lists = is_slow && (sampler->n_forks < 0 || sampler->n_forks != sampler->n_listed_forks);
    int n_fast = 0;
    if (lists) sampler->n_listed_forks = sampler->n_forks;
    sampler->sample.machine.n_compilers = 0;
    for (size_t i = 0; i < list->n; i++) {
        stk_watch_process *process = stk_watch_process_at(&sampler->sample, i);
        bool is_new = process->cpu_us < 0;
        bool is_quick = !is_slow && !is_new;
        /* Once it was waited for, its parent's counters have what it did. */
        if (is_quick && kill((pid_t)process->id, 0) != 0 && errno == ESRCH) {
            remove_process(sampler, process->id);
            i--;
            continue;
        }
        if (is_quick && (!is_watched(sampler, process) || n_fast++ >= MOST_PROCESSES_FAST)) continue;
        if (!read_process(sampler, process, is_slow)) {
            remove_process(sampler, process->id);
            i--;
            continue;
        }
        if (lists || is_new) STK_RETURN_IF_ERROR(list_threads(sampler, process->id));
    }
    read_threads(sampler, is_slow);
    if (is_slow && sampler->n_next_idle >= sampler->sample.threads.n) sampler->n_next_idle = 0;
    for (size_t i = 0; i < list->n; i++) {
        stk_watch_process *process = stk_watch_process_at(&sampler->sample, i);
        const stk_watch_thread *thread = stk_watch_list_find(&sampler->sample.threads, process->id);
        if (!thread) continue;
        process->main_us = thread->cpu_us;
        process->main_waited_us = thread->waited_us;
    }
    return STK_OK;
}
