/* OpenMP's waiting threads spin for about a millisecond by default. As long as nobody else wants the cores that is
 * fast; with data workers or any other process on them, steps become 3 to 30 times slower, because a spinning thread
 * keeps the core from the one that it waits for. libgomp reads its settings before main, so a better one needs a new
 * start, which costs about 5 ms. Whatever the user has set stays.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

void cli_settle_threads(char **argv)
{
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
    if (setenv("GOMP_SPINCOUNT", "5000", 1) == 0) execv("/proc/self/exe", argv);
    /* Where that fails everything still works. */
}
