/* Starting the ranks of a job by what people have: srun where it gave this process an allocation, or else mpirun. Its
 * process is of a group of its own, so that Ctrl-C reaches the supervisor alone, and is told to end when that dies; or
 * it takes this process's place. Hosts are reached by mpirun's own ssh, or what it is set up for.
 * Threads: one at a time.
 */
#ifndef STK_ELASTIC_LAUNCH_H
#define STK_ELASTIC_LAUNCH_H

#include <stdbool.h>

#include "stoker/status.h"

typedef struct stk_launch {
    const char *program;      /* path of what the ranks run; borrowed, like the rest */
    char *const *argv;        /* its arguments behind its name, ended by NULL */
    const char *more;         /* one more argument; NULL: none */
    const char *hosts;        /* "a:2,b": names, each with its number of ranks where that is not 1; NULL: this one */
    const char *const *name;  /* environment that the ranks get: n_env names and values */
    const char *const *value; /* NULL: as they are here */
    int n_env, n_ranks;
} stk_launch;

/* *pid: of the launcher, for waitpid. */
stk_status stk_launch_ranks(const stk_launch *launch, int *pid);

/* The launcher in place of this process. Returns only where that fails. */
stk_status stk_launch_become(const stk_launch *launch);
/* Ranks of "a:2,b": 3. 0: it is no list of hosts. *per_host: the number of each, 0: they differ. */
int stk_launch_count_hosts(const char *hosts, int *per_host);

enum { STK_LAUNCH_MOST_ARGS = 4200, STK_LAUNCH_HOSTS = 8192 };
typedef enum stk_launcher { STK_LAUNCHER_OPEN_MPI, STK_LAUNCHER_MPICH, STK_LAUNCHER_SRUN } stk_launcher;
typedef struct stk_launch_texts {
    char n_ranks[16], per_host[40], hosts[STK_LAUNCH_HOSTS];
} stk_launch_texts;
/* The command, ended by NULL; words are borrowed from launch or texts. */
stk_status stk_launch_command(const stk_launch *launch, stk_launcher launcher, int n_cores, stk_launch_texts *texts,
                              const char *out[STK_LAUNCH_MOST_ARGS]);

#endif
