/* Starting the ranks of a job by what people have: srun where it gave this process an allocation, or else mpirun. Its
 * process is of a group of its own, so that Ctrl-C reaches the supervisor alone, and is told to end when that dies.
 * Threads: any.
 */
#ifndef STK_ELASTIC_LAUNCH_H
#define STK_ELASTIC_LAUNCH_H

#include <stdbool.h>

#include "stoker/status.h"

typedef struct stk_launch {
    const char *program;     /* path of what the ranks run; borrowed, like the rest */
    char *const *argv;       /* its arguments behind its name, ended by NULL */
    const char *more;        /* one more argument; NULL: none */
    const char *hosts;       /* "a:2,b:2"; NULL: this one */
    const char *const *name; /* environment that the ranks get: n_env names and values */
    const char *const *value;
    int n_env, n_ranks;
} stk_launch;

/* *pid: of the launcher, for waitpid. */
stk_status stk_launch_ranks(const stk_launch *launch, int *pid);

enum { STK_LAUNCH_MOST_ARGS = 4200 };
typedef enum stk_launcher { STK_LAUNCHER_OPEN_MPI, STK_LAUNCHER_MPICH, STK_LAUNCHER_SRUN } stk_launcher;
/* The command; texts are borrowed from launch or numbers[64]. Returns the number of arguments, 0: too many. */
int stk_launch_command(const stk_launch *launch, stk_launcher launcher, int n_cores, char numbers[64],
                       const char *out[STK_LAUNCH_MOST_ARGS]);

#endif
