#include "watch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

static volatile sig_atomic_t n_stops;
static volatile pid_t send_to; /* 0: nobody */

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    int before = errno;
    /* The others may mean anything to a job: Slurm sends SIGUSR1 ahead of the time limit. */
    if (number == SIGINT || number == SIGTERM || send_to == 0) n_stops += number != SIGUSR1 && number != SIGUSR2;
    /* The terminal has told the whole group already. */
    if (send_to > 0 && info->si_code <= 0) kill(send_to, number);
    errno = before;
}

static void wake(int number)
{
    (void)number;
}

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
enum { N_CAUGHT = sizeof(caught) / sizeof(caught[0]) };

static void catch_signals(void)
{
    struct sigaction action, inherited;
    sigset_t blocked;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = note;
    action.sa_flags = SA_SIGINFO;
    /* What nohup has made ignored stays so. */
    for (int i = 0; i < N_CAUGHT; i++)
        if (sigaction(caught[i], NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
            sigaction(caught[i], &action, NULL);
    memset(&action, 0, sizeof(action));
    action.sa_handler = wake;
    sigaction(SIGCHLD, &action, NULL);
    /* Unblocked only while waiting, so that the end of a child is not missed just before it. */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
}

/* Signals that come before the job is known wait for it. */
static void hold_signals(sigset_t *before)
{
    sigset_t held;
    sigemptyset(&held);
    for (int i = 0; i < N_CAUGHT; i++)
        sigaddset(&held, caught[i]);
    sigprocmask(SIG_BLOCK, &held, before);
}

/* In the child: tells the parent by the pipe why the command could not be started. */
static void become(char *const *argv, bool without_stdout, int pipe_fd, const sigset_t *signals)
{
    sigprocmask(SIG_SETMASK, signals, NULL);
    if (without_stdout) dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(argv[0], argv);
    int error = errno;
    ssize_t n = write(pipe_fd, &error, sizeof(error));
    _exit(n == (ssize_t)sizeof(error) ? 127 : 126);
}

stk_status stk_watch_child_start(char *const *argv, bool without_stdout, pid_t *out)
{
    int fds[2], error = 0;
    sigset_t before;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (pipe2(fds, O_CLOEXEC) != 0) return stk_fail(STK_IO, "cannot make a pipe: %s", stk_errno_text(errno));
    hold_signals(&before);
    pid_t pid = fork();
    if (pid < 0) {
        error = errno;
        sigprocmask(SIG_SETMASK, &before, NULL);
        close(fds[0]);
        close(fds[1]);
        return stk_fail(STK_IO, "cannot start a process: %s", stk_errno_text(error));
    }
    if (pid == 0) become(argv, without_stdout, fds[1], &before);
    close(fds[1]);
    ssize_t n = read(fds[0], &error, sizeof(error));
    close(fds[0]);
    if (n == (ssize_t)sizeof(error)) {
        waitpid(pid, NULL, 0);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return stk_fail(error == ENOENT ? STK_NOT_FOUND : STK_IO, "cannot start '%s': %s", argv[0],
                        stk_errno_text(error));
    }
    send_to = pid;
    catch_signals();
    sigaddset(&before, SIGCHLD);
    sigprocmask(SIG_SETMASK, &before, NULL);
    *out = pid;
    return STK_OK;
}

void stk_watch_child_attach(void)
{
    send_to = 0;
    catch_signals();
}

void stk_watch_child_wait(long us)
{
    struct timespec timeout = {us / 1000000, us % 1000000 * 1000};
    sigset_t open;
    sigprocmask(SIG_BLOCK, NULL, &open);
    sigdelset(&open, SIGCHLD);
    if (us > 0) ppoll(NULL, 0, &timeout, &open);
}

bool stk_watch_child_ended(pid_t pid, int *exit_code, int *by_signal)
{
    bool ended = false;
    int how;
    for (pid_t found; (found = waitpid(-1, &how, WNOHANG)) > 0;) {
        if (found != pid) continue;
        ended = true;
        *by_signal = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
        *exit_code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + *by_signal;
    }
    if (ended) send_to = 0;
    return ended;
}

int stk_watch_child_stops(void)
{
    return n_stops;
}
