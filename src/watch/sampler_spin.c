/* What threads that run are at, which nothing in /proc tells. Those of OpenMP spin until there is work for them, for a
 * while or, by OMP_WAIT_POLICY and the like, for ever; those of a process of JAX or TensorFlow compute or prepare data.
 * So some are asked now and then where they are, by ptrace(2): each stops for some microseconds and goes on. In
 * OpenMP's own code they wait; what they compute is the program's, and lies elsewhere. What JAX and TensorFlow compute
 * lies in their libraries or in code that they made; who is in Python's interpreter or another library feeds them. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "watch/parse.h"
#include "watch/sampler.h"

/* In the first minute as often as a share of few seconds wants it; of a long run, a look every ten seconds. */
enum {
    MAPS_BYTES = 4 << 20,
    MAPS_US = 10000000,
    OTHER_US = 5000000,
    EARLY_US = 60000000,
    EARLY_LOOK_US = 50000,
    LATER_US = 10000000,
    LOOKS_AT_ONCE = 4,
    STOP_US = 20000,
    STEP_US = 20
};

/* --- where a thread is --- */

/* Of one that has stopped; false: not known on this kind of processor. */
static bool read_place(pid_t thread, uint64_t *out)
{
#if defined(__x86_64__) || defined(__aarch64__)
    struct user_regs_struct registers;
    struct iovec part = {&registers, sizeof(registers)};
    if (ptrace(PTRACE_GETREGSET, thread, (void *)(uintptr_t)NT_PRSTATUS, &part) != 0) return false;
#ifdef __x86_64__
    *out = registers.rip;
#else
    *out = registers.pc;
#endif
    return true;
#else
    (void)thread;
    (void)out;
    return false;
#endif
}

static bool is_within(const stk_watch_code *code, int n, uint64_t place)
{
    for (int i = 0; i < n; i++)
        if (place >= code[i].begin && place < code[i].end) return true;
    return false;
}

/* Lets the thread go that was told to stop. False: it has not stopped yet. A signal that came first is passed on. */
static bool let_go(stk_watch_spin *spin, stk_watch_thread *thread)
{
    uint64_t place;
    int how = 0;
    pid_t id = (pid_t)spin->stopping, found = waitpid(id, &how, __WALL | WNOHANG);
    if (found == 0) {
        /* Somebody who waits for any child may have taken the news. */
        if (ptrace(PTRACE_DETACH, id, NULL, NULL) == 0 || kill(id, 0) != 0) spin->stopping = 0;
        return spin->stopping == 0;
    }
    spin->stopping = 0;
    if (found < 0 || !WIFSTOPPED(how)) return true;
    if (thread && read_place(id, &place)) {
        thread->n_looks++;
        thread->n_spins += is_within(spin->code, spin->n_codes, place);
        thread->n_feeds += is_within(spin->feeding, spin->n_feeding, place);
    }
    int signal = how >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(how);
    (void)ptrace(PTRACE_DETACH, id, NULL, (void *)(intptr_t)signal);
    return true;
}

static void look(stk_watch_sampler *sampler, stk_watch_thread *thread)
{
    const struct timespec step = {0, STEP_US * 1000};
    stk_watch_spin *spin = &sampler->spin;
    pid_t id = (pid_t)thread->id;
    if (ptrace(PTRACE_SEIZE, id, NULL, NULL) != 0) {
        spin->is_refused = errno == EPERM;
        return;
    }
    spin->stopping = id;
    (void)ptrace(PTRACE_INTERRUPT, id, NULL, NULL);
    if (thread->n_looks < 0) thread->n_looks = thread->n_spins = thread->n_feeds = 0;
    for (int us = 0; us < STOP_US && !let_go(spin, thread); us += STEP_US)
        nanosleep(&step, NULL);
}

/* --- whom to ask --- */

/* Where that code lies in a process, looked up now and then until it is there, and for as long as modules may still be
 * loaded; of another process seldom, since the list of what is mapped is long. */
static void find_code(stk_watch_sampler *sampler, int64_t process)
{
    stk_watch_spin *spin = &sampler->spin;
    int64_t now = sampler->sample.time_us, since = now - spin->maps_us;
    bool is_known = spin->n_codes > 0 || (spin->n_feeding > 0 && now > EARLY_US);
    if (spin->process == process ? is_known || since < MAPS_US : spin->process && since < OTHER_US) return;
    spin->process = process;
    spin->maps_us = now;
    spin->n_codes = spin->n_feeding = 0;
    char *maps = malloc(MAPS_BYTES);
    if (!maps) return; /* it is looked up again */
    if (stk_watch_read(&sampler->config.root, maps, MAPS_BYTES, "/proc/%" PRId64 "/maps", process)) {
        spin->n_codes = stk_watch_parse_openmp(maps, spin->code, STK_WATCH_CODES);
        spin->n_feeding = stk_watch_parse_feeding(maps, spin->feeding, STK_WATCH_FEEDING_CODES);
    }
    free(maps);
}

/* By the last sample it ran, and is no process's first, which runs the program between its loops. */
static bool may_spin(const stk_watch_thread *thread)
{
    return thread->id != thread->process && thread->state == 'R' && thread->is_active == 1;
}

/* Who sleeps in OpenMP's code does not spin. */
static bool still_runs(stk_watch_sampler *sampler, const stk_watch_thread *thread)
{
    char text[1024];
    stk_watch_stat stat;
    return stk_watch_read(&sampler->config.root, text, sizeof(text), "/proc/%" PRId64 "/task/%" PRId64 "/stat",
                          thread->process, thread->id) &&
           stk_watch_parse_stat(text, &stat) && stat.state == 'R';
}

/* First thing in a sample: this program runs on a core of the job's, whose thread the others then wait for, spinning,
 * so that later looks would find more who spin than there are. */
void stk_watch_read_spins(stk_watch_sampler *sampler)
{
    stk_watch_spin *spin = &sampler->spin;
    const stk_watch_list *threads = &sampler->sample.threads;
    int64_t now = sampler->sample.time_us;
    if (spin->stopping && !let_go(spin, NULL)) return;
    if (sampler->config.root.over || spin->is_refused) return;
    if (now - spin->looked_us < (now > EARLY_US ? LATER_US : EARLY_LOOK_US)) return;
    int n_looks = 0;
    size_t first = spin->next < threads->n ? spin->next : 0;
    for (size_t k = 0; k < threads->n && n_looks < LOOKS_AT_ONCE; k++) {
        size_t i = (first + k) % threads->n;
        stk_watch_thread *thread = stk_watch_thread_at(&sampler->sample, i);
        if (!may_spin(thread)) continue;
        if (n_looks == 0) find_code(sampler, thread->process);
        spin->next = i + 1;
        if (spin->n_codes + spin->n_feeding == 0 || spin->process != thread->process) continue;
        if (!still_runs(sampler, thread)) continue;
        look(sampler, thread);
        spin->looked_us = now;
        n_looks++;
        if (spin->stopping || spin->is_refused) break;
    }
    if (spin->is_refused)
        (void)stk_watch_facts_add(
            &sampler->facts, "missing",
            "whether OpenMP's threads work or spin, and who feeds JAX or TensorFlow (ptrace: the same user, and "
            "/proc/sys/kernel/yama/ptrace_scope)");
}

void stk_watch_end_spins(stk_watch_sampler *sampler)
{
    const struct timespec step = {0, STEP_US * 1000};
    for (int us = 0; us < STOP_US && sampler->spin.stopping && !let_go(&sampler->spin, NULL); us += STEP_US)
        nanosleep(&step, NULL);
}
