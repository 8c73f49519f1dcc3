/* See hold_signals.h. */
#include "device/cpu/onednn/hold_signals.h"

#include <pthread.h>
#include <stddef.h>

void stk_hold_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void stk_let_signals_come(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
