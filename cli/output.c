/* Where the program's output goes: nowhere (closed descriptors), to a pipe whose reader has gone, to a full disk. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

void cli_settle_descriptors(void)
{
    /* Read-only, so that printing into the void is an error as before; 0 is open when 1 is looked at. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(CLI_FAILED);
}

/* A connection that broke is an error of its write, but when nobody reads what is printed there is nothing left to do.
 */
static void on_pipe(int number)
{
    int before = errno;
    struct pollfd out = {.fd = STDOUT_FILENO};
    if (poll(&out, 1, 0) == 1 && out.revents & POLLERR) {
        signal(number, SIG_DFL);
        raise(number); /* as soon as this returns */
    }
    errno = before;
}

/* The write fails, which is told where it matters. */
static void on_ignored(int number)
{
    (void)number;
}

/* A handler and not SIG_IGN, which programs that we start would inherit. */
static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, inherited;
    if (sigaction(number, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN) sigaction(number, &action, NULL);
}

static bool only_prints;

void cli_only_prints(void)
{
    only_prints = true;
    handle(SIGPIPE, on_pipe);
}

void cli_settle_output(const cli_verb *verb)
{
    handle(SIGPIPE, verb->makes_files ? on_ignored : on_pipe);
    handle(SIGXFSZ, on_ignored); /* where files may not grow: ulimit -f */
}

/* Of the first long text that could not be written: the stream keeps that it failed, but not why. */
static int text_errno;

void cli_put_text(const char *text)
{
    if (fputs(text, stdout) < 0 && !text_errno) text_errno = errno;
}

int cli_finish_output(const cli_verb *verb, int code)
{
    bool failed = fflush(stdout) != 0;
    if (!failed && !ferror(stdout)) return code;
    const char *why = failed ? strerror(errno) : text_errno ? strerror(text_errno) : "a write failed";
    if (verb && verb->makes_files && !only_prints) {
        fprintf(stderr, "stoker: warning: not all that was to be printed could be written: %s\n", why);
        return code;
    }
    fprintf(stderr, "stoker: cannot write to the output: %s\n", why);
    return code == CLI_OK ? CLI_FAILED : code;
}
