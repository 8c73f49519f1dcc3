/* See elastic/launch.h. */
#include "elastic/launch.h"

#include <ctype.h>
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

/* --- hosts --- */

enum { MOST_RANKS = 1 << 20 };

/* Letters, digits and .-_, and never an option of ssh's. */
static bool is_host(const char *text, size_t n)
{
    if (n == 0 || text[0] == '-') return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(".-_", text[i])) return false;
    return true;
}

/* One entry of the list, "a:2" or "a", and what follows it; NULL: it is none. */
static const char *read_host(const char *at, size_t *n_name, int *n_ranks)
{
    *n_name = strcspn(at, ":,");
    *n_ranks = 1;
    if (!is_host(at, *n_name)) return NULL;
    at += *n_name;
    if (*at == ':') {
        char *end;
        if (!isdigit((unsigned char)at[1])) return NULL;
        long n = strtol(at + 1, &end, 10);
        if (n < 1 || n > MOST_RANKS) return NULL;
        *n_ranks = (int)n;
        at = end;
    }
    return !*at || (*at == ',' && at[1]) ? at : NULL;
}

int stk_launch_count_hosts(const char *hosts, int *per_host)
{
    int n_all = 0, n, first = 0;
    size_t n_name;
    bool is_even = true;
    for (const char *at = hosts;; at++) {
        at = read_host(at, &n_name, &n);
        if (!at || (n_all += n) > MOST_RANKS) return 0;
        if (!first) first = n;
        is_even &= n == first;
        if (!*at) break;
    }
    *per_host = is_even ? first : 0;
    return n_all;
}

/* srun takes names alone, and one number for all. */
static stk_status write_srun_hosts(const char *hosts, stk_launch_texts *texts)
{
    int per_host, n;
    size_t n_name, used = 0;
    if (stk_launch_count_hosts(hosts, &per_host) == 0 || strlen(hosts) >= sizeof(texts->hosts))
        return stk_fail(STK_INVALID, "'%s' is no list of hosts, like a:2,b:2", hosts);
    if (per_host == 0)
        return stk_fail(STK_UNSUPPORTED, "srun wants as many ranks on each host, like a:2,b:2, and not '%s'", hosts);
    for (const char *at = hosts;;) {
        const char *behind = read_host(at, &n_name, &n);
        used += (size_t)snprintf(texts->hosts + used, sizeof(texts->hosts) - used, "%s%.*s", used ? "," : "",
                                 (int)n_name, at);
        if (!*behind) break;
        at = behind + 1;
    }
    snprintf(texts->per_host, sizeof(texts->per_host), "--ntasks-per-node=%d", per_host);
    return STK_OK;
}

/* --- the command --- */

/* Open MPI counts cores and refuses more ranks; on this host they take turns. On others a rank may be one of two, each
 * of which it would give a single core. Variables: MPICH and srun pass all on. */
stk_status stk_launch_command(const stk_launch *l, stk_launcher launcher, int n_cores, stk_launch_texts *texts,
                              const char *out[STK_LAUNCH_MOST_ARGS])
{
    words w = {.word = out};
    snprintf(texts->n_ranks, sizeof(texts->n_ranks), "%d", l->n_ranks);
    add(&w, launcher == STK_LAUNCHER_SRUN ? "srun" : "mpirun");
    add(&w, "-n");
    add(&w, texts->n_ranks);
    if (launcher == STK_LAUNCHER_SRUN) {
        add(&w, "--kill-on-bad-exit=0");
        if (!getenv("SLURM_MPI_TYPE")) add(&w, "--mpi=pmix"); /* Of Open MPI; for MPICH that is pmi2. */
        if (l->hosts) {
            STK_RETURN_IF_ERROR(write_srun_hosts(l->hosts, texts));
            add(&w, "-w"), add(&w, texts->hosts), add(&w, texts->per_host);
        }
    } else if (l->hosts && launcher == STK_LAUNCHER_OPEN_MPI) {
        add(&w, "--host"), add(&w, l->hosts), add(&w, "--bind-to"), add(&w, "none");
    } else if (l->hosts) {
        add(&w, "-hosts"), add(&w, l->hosts);
    } else if (launcher == STK_LAUNCHER_OPEN_MPI && l->n_ranks > n_cores) {
        add(&w, "--oversubscribe");
    }
    for (int i = 0; launcher == STK_LAUNCHER_OPEN_MPI && i < l->n_env; i++)
        add(&w, "-x"), add(&w, l->name[i]);
    add(&w, l->program);
    for (int i = 0; l->argv[i]; i++)
        add(&w, l->argv[i]);
    if (l->more) add(&w, l->more);
    if (w.n >= STK_LAUNCH_MOST_ARGS) return stk_fail(STK_INVALID, "too many arguments");
    out[w.n] = NULL;
    return STK_OK;
}

/* The first line of `mpirun --version`. */
static stk_status ask_version(char *out, size_t n)
{
    FILE *pipe = popen("mpirun --version 2>&1", "re");
    if (!pipe) return stk_fail(STK_IO, "cannot start 'mpirun': %s", strerror(errno));
    size_t got = fread(out, 1, n - 1, pipe);
    out[got] = 0;
    while (fgetc(pipe) != EOF) /* MPICH's is long, and fails where nobody reads it. */
        continue;
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
    bool is_open = strstr(version, "Open MPI") || strstr(version, "OpenRTE"); /* as mpirun.openmpi calls itself */
    *out = is_open ? STK_LAUNCHER_OPEN_MPI : STK_LAUNCHER_MPICH;
    return STK_OK;
}

static stk_status make_command(const stk_launch *launch, const char ***out)
{
    static const char *command[STK_LAUNCH_MOST_ARGS];
    static stk_launch_texts texts;
    stk_launcher launcher;
    *out = command;
    STK_RETURN_IF_ERROR(find_launcher(&launcher));
    return stk_launch_command(launch, launcher, (int)sysconf(_SC_NPROCESSORS_ONLN), &texts, command);
}

/* Launchers look at the host with hwloc. Where PoCL is installed and hwloc's plug-in for OpenCL loads it, Open MPI's
 * passes SIGUSR1 on to no rank on another host; without that plug-in it does. */
static void prepare_launcher(void)
{
    (void)setenv("HWLOC_COMPONENTS", "-opencl", 0);
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
    for (int i = 0; l->value && i < l->n_env; i++)
        (void)setenv(l->name[i], l->value[i], 1);
    prepare_launcher();
    execvp(command[0], (char *const *)command);
    _exit(127);
}

stk_status stk_launch_ranks(const stk_launch *launch, int *pid)
{
    const char **command;
    STK_RETURN_IF_ERROR(make_command(launch, &command));
    int parent = (int)getpid();
    fflush(NULL);
    *pid = fork();
    if (*pid < 0) return stk_fail(STK_IO, "cannot start '%s': %s", command[0], strerror(errno));
    if (*pid == 0) become(launch, command, parent);
    return STK_OK;
}

stk_status stk_launch_become(const stk_launch *launch)
{
    const char **command;
    STK_RETURN_IF_ERROR(make_command(launch, &command));
    fflush(NULL);
    prepare_launcher();
    execvp(command[0], (char *const *)command);
    return stk_fail(STK_IO, "cannot start '%s': %s", command[0], strerror(errno));
}
