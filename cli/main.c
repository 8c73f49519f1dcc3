/* The program `stoker`: finds the verb. Exit codes: 0 well, 1 it failed, 2 wrong usage. */
#include <string.h>

#include "cli.h"

static const cli_verb *const verbs[] = {&cli_train,     &cli_plan,    &cli_eval,   &cli_predict, &cli_generate,
                                        &cli_models,    &cli_data,    &cli_pack,   &cli_index,   &cli_tokenize,
                                        &cli_tokenizer, &cli_devices, &cli_new,    &cli_get,     &cli_watch,
                                        &cli_import,    &cli_export,  &cli_report, &cli_top};
enum { N_VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static void print_help(void)
{
    printf("usage: stoker VERB ...\n\nTrains deep networks from files on disk.\n\n");
    for (int i = 0; i < N_VERBS; i++) {
        /* The first sentence is enough here; a full stop inside a word ends none. */
        int n = 0;
        while (verbs[i]->about[n] && (verbs[i]->about[n] != '.' || verbs[i]->about[n + 1] > ' '))
            n++;
        printf("  %-9s %.*s\n", verbs[i]->name, n, verbs[i]->about);
    }
    printf("\nstoker VERB --help says more; stoker --version prints the version.\n"
           "To begin:  stoker get digits --out data/digits && stoker new first && stoker train first.yaml\n");
}

static int refuse_verb(const char *word)
{
    const char *names[N_VERBS];
    for (int i = 0; i < N_VERBS; i++)
        names[i] = verbs[i]->name;
    const char *nearest = cli_nearest(word, names, N_VERBS);
    if (nearest) return cli_usage(NULL, "no verb '%s' (did you mean '%s'?)", word, nearest);
    return cli_usage(NULL, "no verb '%s'", word);
}

int main(int argc, char **argv)
{
    cli_settle_descriptors();
    if (argc < 2) {
        print_help();
        return CLI_USAGE;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("stoker %s\n", stk_version());
        return cli_finish_output(NULL, CLI_OK);
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_help();
        return cli_finish_output(NULL, CLI_OK);
    }
    for (int i = 0; i < N_VERBS; i++) {
        if (strcmp(argv[1], verbs[i]->name)) continue;
        for (int k = 2; k < argc && strcmp(argv[k], "--"); k++) {
            if (strcmp(argv[k], "--help") && strcmp(argv[k], "-h")) continue;
            cli_help(verbs[i]);
            return cli_finish_output(NULL, CLI_OK);
        }
        /* A watched command shall find the settings that it would find without us. */
        if (verbs[i] != &cli_watch) cli_settle_threads(argv);
        cli_settle_output(verbs[i]);
        return cli_finish_output(verbs[i], verbs[i]->run(verbs[i], argc - 2, argv + 2));
    }
    return refuse_verb(argv[1]);
}
