/* See supervise.h. */
#include "supervise.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "elastic/launch.h"
#include "elastic/supervise.h"

extern char **environ;

static stk_supervisor *volatile supervisor; /* set before the handlers are */
static bool prints_json;

bool cli_wants_supervisor(const cli_args *args)
{
    const char *beats = getenv(STK_ELASTIC_BEATS);
    return cli_has(args, "--elastic") && !(beats && beats[0]);
}

bool cli_wants_hosts(const cli_args *args)
{
    return cli_has(args, "--hosts") && !cli_has(args, "--elastic");
}

static void on_stop(int i_stop)
{
    (void)i_stop;
    if (supervisor) stk_supervisor_stop(supervisor);
}

/* Lines of a rank's log stand below, as they are. */
static void print_lines(const char *text)
{
    char shown[4096];
    size_t n = strcspn(text, "\n");
    char first[2048];
    snprintf(first, sizeof(first), "%.*s", (int)n, text);
    cli_warn("%s", cli_shown(first));
    if (text[n]) fprintf(stderr, "%s\n", stk_printable_lines(text + n + 1, shown, sizeof(shown)));
}

static void on_event(void *user, const char *kind, const char *text, const char *json)
{
    (void)user;
    (void)kind;
    if (prints_json) {
        printf("%s\n", json);
        fflush(stdout);
    }
    if (text[0] && !prints_json) print_lines(text);
}

static int refuse_hosts(const cli_verb *verb, const char *hosts)
{
    return cli_usage(verb,
                     "option '--hosts' must be names, each with its number of ranks where that is not 1, like a:2,b:2, "
                     "not '%s'",
                     hosts);
}

static int check(const cli_args *args, stk_supervise_options *o)
{
    int64_t least, ranks, restarts, stuck;
    int per_host, n_all = o->hosts ? stk_launch_count_hosts(o->hosts, &per_host) : 0;
    if (o->hosts && n_all == 0) return refuse_hosts(args->verb, o->hosts);
    if (!cli_number(args, "--elastic", 1, 4096, 1, &least) ||
        !cli_number(args, "--ranks", 1, 4096, n_all ? n_all : least, &ranks) ||
        !cli_number(args, "--restarts", 0, 250, 20, &restarts) || !cli_number(args, "--stuck", 1, 86400, 60, &stuck))
        return CLI_USAGE;
    if (ranks < least)
        return cli_usage(args->verb, "'--ranks %lld' are fewer than '--elastic %lld' asks for", (long long)ranks,
                         (long long)least);
    if (n_all && ranks > n_all)
        return cli_usage(args->verb, "'--hosts %s' has room for %d ranks, not for %lld", o->hosts, n_all,
                         (long long)ranks);
    o->least_ranks = (int)least;
    o->n_ranks = (int)ranks;
    o->most_restarts = (int)restarts;
    o->give_up_ms = stuck * 1000;
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE"))
        return cli_usage(args->verb, "'--elastic' starts the ranks by itself: leave mpirun away, and say '--ranks N'");
    return CLI_OK;
}

/* This program, wherever it lies. */
static bool find_program(char program[CLI_PATH])
{
    ssize_t n = readlink("/proc/self/exe", program, CLI_PATH - 1);
    if (n <= 0) return cli_error("cannot tell where this program lies: %s", strerror(errno)), false;
    program[n] = 0;
    return true;
}

/* Open MPI takes its own variables along, and those that it is told of. */
static bool collect_variables(const char **name, int most, int *n)
{
    static const char *const prefixes[] = {"STOKER_", "OMP_", "GOMP_", "CUDA_VISIBLE_DEVICES="};
    for (char **variable = environ; *variable && *n < most; variable++) {
        bool is_ours = false;
        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
            is_ours = is_ours || !strncmp(*variable, prefixes[i], strlen(prefixes[i]));
        if (is_ours && !(name[*n] = strndup(*variable, strcspn(*variable, "=")))) return false;
        *n += is_ours;
    }
    return true;
}

int cli_train_on_hosts(const cli_args *args, int argc, char **argv)
{
    enum { MOST_NAMES = 250 };
    const char *hosts = cli_value(args, "--hosts");
    char program[CLI_PATH];
    const char *names[MOST_NAMES];
    int per_host, n = 0, n_names = 0, n_all = stk_launch_count_hosts(hosts, &per_host);
    if (n_all == 0) return refuse_hosts(args->verb, hosts);
    if (!find_program(program)) return CLI_FAILED;
    char **words = calloc((size_t)argc + 2, sizeof(*words));
    if (!words || !collect_variables(names, MOST_NAMES, &n_names)) return cli_error("out of memory"), CLI_FAILED;
    words[n++] = "train";
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--hosts"))
            i++;
        else if (strncmp(argv[i], "--hosts=", 8) != 0)
            words[n++] = argv[i];
    }
    stk_launch launch = {
        .program = program, .argv = words, .hosts = hosts, .name = names, .n_env = n_names, .n_ranks = n_all};
    (void)stk_launch_become(&launch);
    for (int i = 0; i < n_names; i++)
        free((char *)(uintptr_t)names[i]);
    free(words);
    return cli_fail();
}

int cli_supervise(const cli_args *args, int argc, char **argv)
{
    char program[CLI_PATH];
    char **words = calloc((size_t)argc + 2, sizeof(*words));
    stk_supervisor *opened;
    int code = CLI_FAILED;
    if (!words) return cli_error("out of memory"), CLI_FAILED;
    if (!find_program(program)) {
        free(words);
        return CLI_FAILED;
    }
    words[0] = "train";
    for (int i = 0; i < argc; i++)
        words[i + 1] = argv[i];
    stk_supervise_options options = {.program = program,
                                     .argv = words,
                                     .hosts = cli_value(args, "--hosts"),
                                     .resumes = cli_has(args, "--resume"),
                                     .on_event = on_event};
    prints_json = cli_has(args, "--json");
    code = check(args, &options);
    if (code == CLI_OK && stk_supervisor_open(&options, &opened) != STK_OK) code = cli_fail();
    if (code == CLI_OK) {
        supervisor = opened;
        cli_catch_stops(2, on_stop);
        if (stk_supervisor_run(opened, &code) != STK_OK) code = cli_fail();
        supervisor = NULL;
        stk_supervisor_close(opened);
        if (cli_stopped() && code != CLI_OK) code = cli_stop_code();
    }
    free(words);
    return code;
}
