/* stoker get */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "stoker/digits.h"

static const cli_option options[] = {{"--out", "DIR", "where to write; default: data/NAME"},
                                     {"--train", "N", "pictures to learn from; default: 60000"},
                                     {"--test", "N", "pictures to test with; default: 10000"},
                                     {"--seed", "N", "of every random choice; default: 0"},
                                     {"--size", "N", "pixels of a side; default: 28"},
                                     {"--threads", "N", "0, the default: as many as cores"},
                                     {"--list", NULL, "lists what there is to get"},
                                     {NULL, NULL, NULL}};

/* 20 characters of bar, where there is a terminal to see them. */
static void show(void *user, int64_t done, int64_t total)
{
    bool terminal = *(const bool *)user;
    char a[CLI_TEXT], b[CLI_TEXT], bar[32];
    if (!terminal) return;
    int filled = total > 0 ? (int)(20 * done / total) : 20;
    for (int i = 0; i < 20; i++)
        bar[i] = i < filled ? '#' : '-';
    bar[20] = 0;
    printf("\r%s  %s of %s pictures\033[K%s", bar, cli_count(done, a), cli_count(total, b), done == total ? "\n" : "");
    fflush(stdout);
}

static int get_digits(const cli_args *args)
{
    stk_digits_config config = stk_digits_config_default();
    int64_t seed, size, threads;
    const char *out = cli_value(args, "--out");
    bool terminal = isatty(STDOUT_FILENO);
    char a[CLI_TEXT], b[CLI_TEXT];
    if (!cli_number(args, "--train", 1, 10000000, config.n_train, &config.n_train) ||
        !cli_number(args, "--test", 0, 10000000, config.n_test, &config.n_test) ||
        !cli_number(args, "--seed", 0, INT64_MAX, (int64_t)config.seed, &seed) ||
        !cli_number(args, "--size", 16, 512, config.size, &size) ||
        !cli_number(args, "--threads", 0, 4096, config.n_threads, &threads))
        return CLI_USAGE;
    config.seed = (uint64_t)seed;
    config.size = (int)size;
    config.n_threads = (int)threads;
    if (!out) out = "data/digits";
    if (stk_digits_generate(out, &config, show, &terminal) != STK_OK) return cli_fail();
    printf("wrote %s + %s pictures to %s\n", cli_count(config.n_train, a), cli_count(config.n_test, b), out);
    return CLI_OK;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static const char *const names[] = {"digits"};
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (cli_has(&args, "--list")) {
        printf("digits   handwritten-like digits, made here: 60,000 + 10,000 grey JPEG files of 28 x 28 pixels\n");
        return CLI_OK;
    }
    if (args.n_words != 1) return cli_usage(verb, "get takes one name, and there are %d", args.n_words);
    if (!strcmp(args.word[0], "digits")) return get_digits(&args);
    const char *nearest = cli_nearest(args.word[0], names, 1);
    if (nearest) return cli_usage(verb, "no data set '%s' (did you mean '%s'?)", args.word[0], nearest);
    return cli_usage(verb, "no data set '%s'; there is: digits", args.word[0]);
}

const cli_verb cli_get = {"get", "NAME [OPTION...]", "Makes a data set. It downloads nothing.", options, run};
