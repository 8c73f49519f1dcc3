/* Signals that ask the program to end: Ctrl-C (SIGINT), SIGTERM, a terminal that closes (SIGHUP), the limit of
 * processor time (SIGXCPU), and SIGUSR1, which queues of clusters send before a job's time is over (srun passes it on,
 * where it takes SIGTERM for itself). The first ones are only noted, so that what is under way can be kept; one too
 * many ends the program at once. One that the program was started to ignore, as by nohup, stays ignored.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGUSR1};
enum { N_ENDS = sizeof(ends) / sizeof(ends[0]) };

/* Within so long of the one before it is the same: supervisors tell a process and its group, and keys are held down. */
static const int64_t AGAIN_NS = 1000000000;

static volatile sig_atomic_t caught, n_caught;
static volatile int64_t caught_ns;  /* of the handler alone; signals are blocked in it */
static int n_noted;                 /* that many are only noted; set before the handler is */
static void (*on_stop)(int i_stop); /* likewise; may be NULL */

static void on_signal(int number)
{
    int before = errno;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    if (n_caught == 0 || now - caught_ns >= AGAIN_NS) {
        caught = number;
        caught_ns = now;
        n_caught = n_caught + 1;
        if (on_stop) on_stop((int)n_caught);
        if (n_caught > n_noted) _exit(128 + number);
    }
    errno = before;
}

void cli_catch_stops(int n, void (*call)(int i_stop))
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, inherited;
    n_noted = n;
    on_stop = call;
    for (int i = 0; i < N_ENDS; i++)
        sigaddset(&action.sa_mask, ends[i]);
    for (int i = 0; i < N_ENDS; i++)
        if (sigaction(ends[i], NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
}

void cli_catch_stop(void)
{
    cli_catch_stops(1, NULL);
}

bool cli_stopped(void)
{
    return caught != 0;
}

int cli_stop_code(void)
{
    return 128 + (caught ? (int)caught : SIGINT);
}

void cli_say_in_handler(const char *const *parts)
{
    /* A reader that has stopped reading must not keep the program from ending. */
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    char text[1024];
    size_t n = 0;
    for (int i = 0; parts[i]; i++) {
        size_t n_part = strlen(parts[i]);
        if (n_part > sizeof(text) - n) n_part = sizeof(text) - n;
        memcpy(text + n, parts[i], n_part);
        n += n_part;
    }
    if (poll(&out, 1, 0) == 1 && write(STDERR_FILENO, text, n) < 0) return; /* There is nobody to tell. */
}
