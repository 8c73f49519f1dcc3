/* stoker help */
#include <string.h>

#include "help.h"

static const cli_option options[] = {{"--man", NULL, "prints a man page instead: stoker help --man train | man -l -"},
                                     {"--verbs", NULL, "lists all verbs, one a line"},
                                     {NULL, NULL, NULL}};

int help_sentence(const char *text)
{
    int n = 0;
    /* A full stop inside a word ends none. */
    while (text[n] && (text[n] != '.' || text[n + 1] > ' '))
        n++;
    return n;
}

static void list_verbs(const cli_verb *group)
{
    enum { COLUMN = 14 };
    char sentence[256];
    const cli_verb *verb;
    for (int i = 0; (verb = cli_next_of(group, &i));) {
        snprintf(sentence, sizeof(sentence), "%.*s", help_sentence(verb->about), verb->about);
        printf("  %-10s  ", cli_last_word(verb));
        cli_put_wrapped(sentence, COLUMN, COLUMN);
    }
}

void help_print(const cli_verb *verb)
{
    if (verb && !cli_is_group(verb)) {
        cli_help(verb);
        return;
    }
    /* A group may have work of its own. */
    if (verb && verb->options[0].name) {
        cli_help(verb);
        printf("\n");
    } else if (verb) {
        printf("usage: stoker %s %s\n\n%s\n\n", verb->name, verb->usage, verb->about);
    } else {
        printf("usage: stoker VERB ...\n\nTrains deep networks from files on disk.\n\n");
    }
    list_verbs(verb);
    if (verb) {
        printf("\nstoker help %s VERB says more.\n", verb->name);
        return;
    }
    printf("\n");
    cli_put_wrapped("stoker help VERB says more; stoker --version prints the version. To begin:", 0, 0);
    printf("  stoker get digits --out data/digits && stoker new first\n  stoker train first.yaml\n");
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    for (int i = 0; cli_has(&args, "--verbs") && cli_verbs[i]; i++)
        printf("%s\n", cli_verbs[i]->name);
    if (cli_has(&args, "--verbs")) return CLI_OK;
    const cli_verb *asked = cli_find_verb(args.n_words, (char *const *)args.word);
    if (args.n_words > 0 && !asked) return cli_refuse_verb(NULL, args.word[0]);
    if (asked && args.n_words > cli_count_words(asked)) {
        const char *word = args.word[cli_count_words(asked)];
        return cli_is_group(asked) ? cli_refuse_verb(asked, word)
                                   : cli_usage(verb, "'%s' has no verb '%s'", asked->name, word);
    }
    (cli_has(&args, "--man") ? man_print : help_print)(asked);
    return CLI_OK;
}

const cli_verb cli_help_verb = {"help", "[VERB...] [OPTION...]", "Tells what there is, or what a verb does.", options,
                                .run = run};
