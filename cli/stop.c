/* Ctrl-C and SIGTERM for verbs that stop between two pieces of work. A second signal kills. */
#include <signal.h>

#include "cli.h"

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

void cli_catch_stop(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cli_stopped(void)
{
    return caught != 0;
}

int cli_stop_code(void)
{
    return 128 + (caught ? (int)caught : SIGINT);
}
