/* The program `stoker`: finds the verb. Exit codes: 0 well, 1 it failed, 2 wrong usage. */
#include <string.h>

#include "cli.h"
#include "help.h"

static int run_verb(const cli_verb *verb, int argc, char **argv)
{
    int n_words = cli_count_words(verb);
    for (int k = 1 + n_words; k < argc && strcmp(argv[k], "--"); k++) {
        if (strcmp(argv[k], "--help") && strcmp(argv[k], "-h")) continue;
        help_print(verb);
        return cli_finish_output(NULL, CLI_OK);
    }
    bool runs_others = verb == &cli_watch || verb == &cli_bench;
    if (!runs_others && !cli_check_environment()) return CLI_USAGE;
    /* A watched or timed command shall find the settings that it would find without us. */
    if (!runs_others) cli_settle_threads(argv);
    if (!runs_others) cli_settle_crashes();
    cli_settle_output(verb);
    return cli_finish_output(verb, verb->run(verb, argc - 1 - n_words, argv + 1 + n_words));
}

int main(int argc, char **argv)
{
    cli_settle_descriptors();
    if (argc < 2) {
        help_print(NULL);
        return CLI_USAGE;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("stoker %s\n", stk_version());
        return cli_finish_output(NULL, CLI_OK);
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        help_print(NULL);
        return cli_finish_output(NULL, CLI_OK);
    }
    const cli_verb *verb = cli_find_verb(argc - 1, argv + 1);
    return verb ? run_verb(verb, argc, argv) : cli_refuse_verb(NULL, argv[1]);
}
