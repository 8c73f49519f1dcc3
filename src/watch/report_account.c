/* The account in words: who drives the step, and where the time went. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/report.h"
#include "watch/roles.h"

int64_t stk_watch_report_driver(const stk_watch_report *report, const char **name)
{
    int64_t driver = report->history->drives_pid;
    const char *text;
    *name = "";
    /* The last one of that number. */
    for (size_t i = 0; driver > 0 && (text = stk_watch_facts_get(report->facts, "process", i)); i++) {
        char *end;
        if (strtoll(text, &end, 10) == driver && *end == ' ') *name = end + 1;
    }
    return driver;
}

/* "computes 80 %, lock 20 %": what one thread of a role is at. */
static void add_parts(const double share[STK_WATCH_STATES], stk_text *line)
{
    for (int k = 0, n = 0; k < STK_WATCH_STATES; k++)
        if (share[k] >= 0.005)
            stk_text_add(line, "%s%s %.0f %%", n++ ? ", " : "", stk_watch_state_text((stk_watch_state)k),
                         100 * share[k]);
}

static bool tell_driver(const stk_watch_report *report, stk_watch_tell_line *tell, void *user)
{
    const char *name;
    stk_text line = {0};
    int64_t driver = stk_watch_report_driver(report, &name);
    if (driver <= 0) return true;
    stk_text_add(&line, "process %" PRId64 "%s%.100s%s: its first thread drives the step", driver, name[0] ? " (" : "",
                 name, name[0] ? ")" : "");
    if (report->signals.role_threads[STK_WATCH_ROLE_DRIVER] > 0) {
        stk_text_add(&line, "; ");
        add_parts(report->signals.role[STK_WATCH_ROLE_DRIVER], &line);
    }
    bool good = !line.failed;
    if (good) tell(user, "driver", stk_text_get(&line));
    stk_text_free(&line);
    return good;
}

/* Who has the cores that it waits for: the quota by how often it stops the job, the rest by who works on them. */
static void add_ready(const double *x, stk_text *line)
{
    double quota = x[STK_WATCH_throttled] > 0.05 ? fmin(1, x[STK_WATCH_throttled]) : 0;
    double others = fmax(0, x[STK_WATCH_contention] * x[STK_WATCH_machine_cores]),
           own =
               fmax(0, x[STK_WATCH_cores] - x[STK_WATCH_by_compute] - x[STK_WATCH_by_kernel] - x[STK_WATCH_by_faults]);
    if (!(x[STK_WATCH_by_ready] >= 0.05) || !(own + others > 0)) return;
    double scale = 100 * x[STK_WATCH_by_ready] * (1 - quota) / (own + others);
    stk_text_add(line, " (the job's own threads %.0f %%, other programs %.0f %%", scale * own, scale * others);
    if (quota > 0) stk_text_add(line, ", quota %.0f %%", 100 * x[STK_WATCH_by_ready] * quota);
    stk_text_add(line, ")");
}

/* Where the driving thread's time went, all of it. */
static bool tell_account(const stk_watch_report *report, stk_watch_tell_line *tell, void *user)
{
    static const struct {
        stk_watch_signal signal;
        const char *name;
    } parts[] = {{STK_WATCH_by_device, "the GPU works"},
                 {STK_WATCH_by_compute, "computes"},
                 {STK_WATCH_by_host, "around the steps"},
                 {STK_WATCH_by_faults, "page faults"},
                 {STK_WATCH_by_kernel, "kernel"},
                 {STK_WATCH_by_ready, "waits for a core"},
                 {STK_WATCH_by_disk, "disk"},
                 {STK_WATCH_by_write, "writes files"},
                 {STK_WATCH_by_remote, "remote files"},
                 {STK_WATCH_by_net, "network"},
                 {STK_WATCH_by_output, "output"},
                 {STK_WATCH_by_timer, "sleeps in a timer"},
                 {STK_WATCH_by_file_lock, "lock of a file"},
                 {STK_WATCH_by_thread, "for one thread that works"},
                 {STK_WATCH_by_workers, "for workers"},
                 {STK_WATCH_by_turns, "turns with other threads"},
                 {STK_WATCH_by_balance, "waits for threads that share its work"},
                 {STK_WATCH_by_pool, "for its own threads, which compute or prepare data"},
                 {STK_WATCH_by_outside, "pipe from outside"},
                 {STK_WATCH_by_children, "short-lived children"},
                 {STK_WATCH_by_compiling, "compilers"},
                 {STK_WATCH_by_unknown, "asleep, cause outside of what can be seen"}};
    stk_text line = {0};
    int n = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        double share = report->signals.value[parts[i].signal];
        if (!(share >= 0.005)) continue;
        stk_text_add(&line, "%s%s %.0f %%", n++ ? ", " : "", parts[i].name, 100 * share);
        if (parts[i].signal == STK_WATCH_by_ready) add_ready(report->signals.value, &line);
    }
    bool good = !line.failed;
    if (good) tell(user, "account", stk_text_get(&line));
    stk_text_free(&line);
    return good;
}

/* What all others are at that work or feed, by what they are for. */
static bool tell_roles(const stk_watch_report *report, stk_watch_tell_line *tell, void *user)
{
    static const char *const whose[STK_WATCH_ROLES] = {
        [STK_WATCH_ROLE_HELPERS] = "of the driving process",
        [STK_WATCH_ROLE_WORKERS] = "of processes that it has started",
        [STK_WATCH_ROLE_FEEDERS] = "of the job's other processes",
        [STK_WATCH_ROLE_WRITERS] = "that write files",
    };
    double spins = report->signals.value[STK_WATCH_spins];
    for (int role = STK_WATCH_ROLE_HELPERS; role < STK_WATCH_ROLES; role++) {
        double n = report->signals.role_threads[role];
        stk_text line = {0};
        if (!(n >= 0.5) || report->signals.role[role][STK_WATCH_STATE_OTHER] > 0.99) continue;
        stk_text_add(&line, "%.0f thread%s %s; each: ", n, n < 1.5 ? "" : "s", whose[role]);
        add_parts(report->signals.role[role], &line);
        if (role == STK_WATCH_ROLE_HELPERS && spins >= 0.05)
            stk_text_add(&line, "; on %.1f cores OpenMP's spin while they wait for work", spins);
        bool good = !line.failed;
        if (good) tell(user, stk_watch_role_name((stk_watch_role)role), stk_text_get(&line));
        stk_text_free(&line);
        if (!good) return false;
    }
    return true;
}

/* In a virtual machine: time that no program here has, and that makes all else longer. */
static void tell_stolen(const stk_watch_report *report, stk_watch_tell_line *tell, void *user)
{
    char line[120];
    double share = report->signals.value[STK_WATCH_stolen];
    if (!(share >= 0.03)) return;
    snprintf(line, sizeof(line),
             "gives %.0f %% of this virtual machine's cores to others, while they were wanted (steal)", 100 * share);
    tell(user, "host", line);
}

bool stk_watch_account_tell(const stk_watch_report *report, stk_watch_tell_line *tell, void *user)
{
    tell_stolen(report, tell, user);
    if (!(report->signals.value[STK_WATCH_account] > 0.5)) return true;
    return tell_driver(report, tell, user) && tell_account(report, tell, user) && tell_roles(report, tell, user);
}
