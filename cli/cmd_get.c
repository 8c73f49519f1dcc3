/* stoker get */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "stoker/digits.h"
#include "stoker/download.h"

static const cli_option options[] = {{"--out", "DIR", "where to write; default: data/NAME"},
                                     {"--mirror", "WHERE", "an address or folder that has the files by their names"},
                                     {"--train", "N", "digits: pictures to learn from; default: 60000"},
                                     {"--test", "N", "digits: pictures to test with; default: 10000"},
                                     {"--seed", "N", "digits: of every random choice; default: 0"},
                                     {"--size", "N", "digits: pixels of a side; default: 28"},
                                     {"--threads", "N", "digits: 0, the default: as many as cores"},
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

static void print_list(void)
{
    char bytes[CLI_TEXT];
    const stk_download_set *set;
    printf("digits           handwritten-like digits, made here: 60,000 + 10,000 grey JPEG files of 28 x 28 pixels\n");
    for (int i = 0; (set = stk_download_at(i)); i++) {
        int64_t sum = 0;
        for (int k = 0; k < set->n_files; k++)
            sum += set->file[k].n_bytes;
        printf("%-16s %s; %s; licence: %s\n", set->name, set->about, cli_bytes((double)sum, bytes), set->licence);
        for (int k = 0; k < set->n_files; k++)
            printf("                 %s\n                   %s\n", set->file[k].url, set->file[k].checksum);
    }
}

static void show_bytes(void *user, const char *name, int64_t done, int64_t total)
{
    bool terminal = *(const bool *)user;
    char a[CLI_TEXT], b[CLI_TEXT];
    if (terminal)
        printf("\r%s  %s of %s\033[K%s", name, cli_bytes((double)done, a), cli_bytes((double)total, b),
               done == total ? "\n" : "");
    else if (done == total)
        printf("%s  %s\n", name, cli_bytes((double)total, b));
    fflush(stdout);
}

static int get_files(const cli_args *args, const stk_download_set *set)
{
    char standard[CLI_PATH];
    const char *out = cli_value(args, "--out");
    bool terminal = isatty(STDOUT_FILENO);
    snprintf(standard, sizeof(standard), "data/%s", set->name);
    if (!out) out = standard;
    printf("%s: %s; licence: %s\n", set->name, set->about, set->licence);
    if (stk_download(set, out, cli_value(args, "--mirror"), show_bytes, &terminal) != STK_OK) return cli_fail();
    printf("%s is in %s\n", set->name, out);
    return CLI_OK;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    enum { MOST = 64 };
    static cli_args args;
    const char *names[MOST] = {"digits"};
    const stk_download_set *set;
    int n = 1;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (cli_has(&args, "--list")) {
        print_list();
        return CLI_OK;
    }
    if (args.n_words != 1) return cli_usage(verb, "get takes one name, and there are %d", args.n_words);
    if (!strcmp(args.word[0], "digits")) return get_digits(&args);
    for (int i = 0; (set = stk_download_at(i)) && n < MOST; i++) {
        if (!strcmp(args.word[0], set->name)) return get_files(&args, set);
        names[n++] = set->name;
    }
    const char *nearest = cli_nearest(args.word[0], names, n);
    if (nearest) return cli_usage(verb, "no data set '%s' (did you mean '%s'?)", args.word[0], nearest);
    return cli_usage(verb, "no data set '%s'; stoker get --list names them", args.word[0]);
}

const cli_verb cli_get = {"get", "NAME [OPTION...]",
                          "Makes or downloads a data set. Downloads go on where they were cut off, and are checked.",
                          options, run};
