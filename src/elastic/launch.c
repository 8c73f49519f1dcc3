/* See elastic/launch.h. */
#include "elastic/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

typedef struct words {
    const char **word;
    int n;
} words;

static void add(words *w, const char *text)
{
    if (w->n < STK_LAUNCH_MOST_ARGS - 1) w->word[w->n] = text;
    w->n++;
}

/* Open MPI counts cores and refuses more ranks; on this host they take turns. Variables: MPICH and srun pass all on. */
int stk_launch_command(const stk_launch *l, stk_launcher launcher, int n_cores, char numbers[64],
                       const char *out[STK_LAUNCH_MOST_ARGS])
{
    words w = {.word = out};
    snprintf(numbers, 64, "%d", l->n_ranks);
    add(&w, launcher == STK_LAUNCHER_SRUN ? "srun" : "mpirun");
    add(&w, "-n");
    add(&w, numbers);
    if (launcher == STK_LAUNCHER_SRUN) {
        add(&w, "--kill-on-bad-exit=0");
        if (!getenv("SLURM_MPI_TYPE")) add(&w, "--mpi=pmix"); /* Of Open MPI; for MPICH that is pmi2. */
        if (l->hosts) add(&w, "-w"), add(&w, l->hosts);
    } else if (l->hosts) {
        add(&w, launcher == STK_LAUNCHER_OPEN_MPI ? "--host" : "-hosts"), add(&w, l->hosts);
    } else if (launcher == STK_LAUNCHER_OPEN_MPI && l->n_ranks > n_cores) {
        add(&w, "--oversubscribe");
    }
    for (int i = 0; launcher == STK_LAUNCHER_OPEN_MPI && i < l->n_env; i++)
        add(&w, "-x"), add(&w, l->name[i]);
    add(&w, l->program);
    for (int i = 0; l->argv[i]; i++)
        add(&w, l->argv[i]);
    if (l->more) add(&w, l->more);
    if (w.n >= STK_LAUNCH_MOST_ARGS) return 0;
    out[w.n] = NULL;
    return w.n;
}

/* The first line of `mpirun --version`. */
static stk_status ask_version(char *out, size_t n)
{
    FILE *pipe = popen("mpirun --version 2>&1", "re");
    if (!pipe) return stk_fail(STK_IO, "cannot start 'mpirun': %s", strerror(errno));
    size_t got = fread(out, 1, n - 1, pipe);
    out[got] = 0;
    if (pclose(pipe) == 0) return STK_OK;
    return stk_fail(STK_NOT_FOUND, "'mpirun' is not there, which starts the ranks; Debian: openmpi-bin or mpich");
}

static stk_status find_launcher(stk_launcher *out)
{
    char version[512];
    if (getenv("SLURM_JOB_ID")) {
        *out = STK_LAUNCHER_SRUN;
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(ask_version(version, sizeof(version)));
    *out = strstr(version, "Open MPI") ? STK_LAUNCHER_OPEN_MPI : STK_LAUNCHER_MPICH;
    return STK_OK;
}

/* In the child: calls that are safe behind a fork. setenv is, since the supervisor has one thread. */
static void become(const stk_launch *l, const char **command, int parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) (void)dup2(nothing, STDIN_FILENO);
    for (int i = 0; i < l->n_env; i++)
        (void)setenv(l->name[i], l->value[i], 1);
    execvp(command[0], (char *const *)command);
    _exit(127);
}

stk_status stk_launch_ranks(const stk_launch *launch, int *pid)
{
    static const char *command[STK_LAUNCH_MOST_ARGS];
    char numbers[64];
    stk_launcher launcher;
    STK_RETURN_IF_ERROR(find_launcher(&launcher));
    int n_cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (stk_launch_command(launch, launcher, n_cores, numbers, command) == 0)
        return stk_fail(STK_INVALID, "too many arguments");
    int parent = (int)getpid();
    fflush(NULL);
    *pid = fork();
    if (*pid < 0) return stk_fail(STK_IO, "cannot start '%s': %s", command[0], strerror(errno));
    if (*pid == 0) become(launch, command, parent);
    return STK_OK;
}
