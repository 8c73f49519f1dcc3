/* The account in words: who drives the step, and where the time went. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/report.h"

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

static void tell_driver(const stk_watch_report *report, stk_watch_tell_line *tell, void *user)
{
    char line[200];
    const char *name;
    int64_t driver = stk_watch_report_driver(report, &name);
    if (driver <= 0) return;
    snprintf(line, sizeof(line), "process %" PRId64 "%s%.100s%s: its first thread drives the step", driver,
             name[0] ? " (" : "", name, name[0] ? ")" : "");
    tell(user, "driver", line);
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
                 {STK_WATCH_by_outside, "pipe from outside"},
                 {STK_WATCH_by_children, "short-lived children"},
                 {STK_WATCH_by_compiling, "compilers"},
                 {STK_WATCH_by_unknown, "asleep, cause outside of what can be seen"}};
    stk_text line = {0};
    int n = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        double share = report->signals.value[parts[i].signal];
        if (share >= 0.005) stk_text_add(&line, "%s%s %.0f %%", n++ ? ", " : "", parts[i].name, 100 * share);
    }
    bool good = !line.failed;
    if (good) tell(user, "account", stk_text_get(&line));
    stk_text_free(&line);
    return good;
}

/* What the driver's workers are at, and how much is done by other threads of its process. */
static void tell_roles(const stk_watch_report *report, stk_watch_tell_line *tell, void *user)
{
    const double *x = report->signals.value;
    char line[300];
    if (x[STK_WATCH_fed] >= 0.5) {
        snprintf(line, sizeof(line),
                 "%.0f processes; each works %.0f %%, waits for a core %.0f %%, sleeps for input %.0f %%, for room or "
                 "orders %.0f %% of the time",
                 x[STK_WATCH_fed], 100 * x[STK_WATCH_worker_runs], 100 * x[STK_WATCH_worker_ready],
                 100 * x[STK_WATCH_worker_input],
                 100 * fmax(0, 1 - x[STK_WATCH_worker_runs] - x[STK_WATCH_worker_ready] - x[STK_WATCH_worker_input]));
        tell(user, "workers", line);
    }
    if (x[STK_WATCH_helpers] >= 0.05) {
        int n =
            snprintf(line, sizeof(line), "other threads of the driving process want %.1f cores", x[STK_WATCH_helpers]);
        if (x[STK_WATCH_spins] >= 0.05)
            snprintf(line + n, sizeof(line) - (size_t)n, "; on %.1f of these OpenMP's spin while they wait for work",
                     x[STK_WATCH_spins]);
        tell(user, "helpers", line);
    }
}

bool stk_watch_account_tell(const stk_watch_report *report, stk_watch_tell_line *tell, void *user)
{
    if (!(report->signals.value[STK_WATCH_account] > 0.5)) return true;
    tell_driver(report, tell, user);
    if (!tell_account(report, tell, user)) return false;
    tell_roles(report, tell, user);
    return true;
}
