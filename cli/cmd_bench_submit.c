/* stoker bench submit */
#include "bench/submit.h"
#include "cli.h"

static const cli_option options[] = {{"--check", NULL, "says what keeps the result from being published"},
                                     {NULL, NULL, NULL}};

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    stk_text problems = {0};
    int n = 0, code = CLI_OK;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 1 || !cli_has(&args, "--check"))
        return cli_usage(verb, "bench submit takes '--check' and one folder");
    if (stk_bench_submit_check(args.word[0], &problems, &n) != STK_OK) {
        code = cli_fail();
    } else if (n > 0) {
        cli_put_text(stk_text_get(&problems));
        cli_error("'%s': %d thing%s to be settled before it can be compared with others'", cli_shown(args.word[0]), n,
                  n == 1 ? " has" : "s have");
        code = CLI_FAILED;
    } else {
        cli_printf("'%s' is whole, its figures follow from its runs, and its conditions are complete\n",
                   cli_shown(args.word[0]));
    }
    stk_text_free(&problems);
    return code;
}

const cli_verb cli_bench_submit = {"bench submit", "DIR --check",
                                   "Checks the folder of a result, before somebody else relies on it: hashes, "
                                   "conditions, and whether its figures follow from "
                                   "its runs. Nothing is sent anywhere.",
                                   options, .run = run};
