/* See supervise.h. */
#include "supervise.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "elastic/supervise.h"

static stk_supervisor *volatile supervisor; /* set before the handlers are */
static bool prints_json;

bool cli_wants_supervisor(const cli_args *args)
{
    const char *beats = getenv(STK_ELASTIC_BEATS);
    return cli_has(args, "--elastic") && !(beats && beats[0]);
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

static int check(const cli_args *args, stk_supervise_options *o)
{
    int64_t least, ranks, restarts, stuck;
    if (!cli_number(args, "--elastic", 1, 4096, 1, &least) || !cli_number(args, "--ranks", 1, 4096, least, &ranks) ||
        !cli_number(args, "--restarts", 0, 250, 20, &restarts) || !cli_number(args, "--stuck", 1, 86400, 60, &stuck))
        return CLI_USAGE;
    if (ranks < least)
        return cli_usage(args->verb, "'--ranks %lld' are fewer than '--elastic %lld' asks for", (long long)ranks,
                         (long long)least);
    o->least_ranks = (int)least;
    o->n_ranks = (int)ranks;
    o->most_restarts = (int)restarts;
    o->give_up_ms = stuck * 1000;
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE"))
        return cli_usage(args->verb, "'--elastic' starts the ranks by itself: leave mpirun away, and say '--ranks N'");
    return CLI_OK;
}

int cli_supervise(const cli_args *args, int argc, char **argv)
{
    char program[CLI_PATH];
    char **words = calloc((size_t)argc + 2, sizeof(*words));
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    stk_supervisor *opened;
    int code = CLI_FAILED;
    if (!words || n < 0) {
        free(words);
        cli_error("out of memory");
        return CLI_FAILED;
    }
    program[n] = 0;
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
