/* When the process crashes in code that it has loaded of others (base/foreign.h), it says whose that was before it ends
 * as it would have.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/foreign.h"
#include "cli.h"

static const struct {
    int number;
    const char *name;
} faults[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}, {SIGABRT, "SIGABRT"}};
enum { N_FAULTS = sizeof(faults) / sizeof(faults[0]) };
static struct sigaction before[N_FAULTS];

static const void *address_of(const void *context)
{
    const ucontext_t *c = context;
#if defined(__x86_64__)
    return (const void *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)(uintptr_t)c->uc_mcontext.pc;
#else
    (void)c;
    return NULL;
#endif
}

/* printf is not for handlers. */
static void add(char *text, size_t size, const char *more)
{
    size_t n = strlen(text), k = strlen(more);
    if (k > size - 1 - n) k = size - 1 - n;
    memcpy(text + n, more, k);
    text[n + k] = '\0';
}

static void tell(const char *what, const char *doing, const char *signal_name)
{
    char text[1024] = "";
    if (isatty(STDERR_FILENO)) add(text, sizeof(text), "\n"); /* a bar may be on the line */
    add(text, sizeof(text), "stoker: ");
    add(text, sizeof(text), what);
    add(text, sizeof(text), " crashed (");
    add(text, sizeof(text), signal_name);
    add(text, sizeof(text), ")");
    if (doing) add(text, sizeof(text), " while it was ");
    if (doing) add(text, sizeof(text), doing);
    add(text, sizeof(text), "; try another version of it, or another device. What was saved is kept\n");
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int i = 0, error = errno;
    while (i + 1 < N_FAULTS && faults[i].number != number)
        i++;
    const char *doing, *what = stk_foreign_at(address_of(context), &doing);
    if (what) tell(what, doing, faults[i].name);
    /* What faulted is done again, or the signal comes again, and finds who was there before. */
    sigaction(number, &before[i], NULL);
    if (info->si_code <= 0) raise(number);
    errno = error;
}

void cli_settle_crashes(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_FAULTS; i++)
        sigaction(faults[i].number, &action, &before[i]);
}
