/* stoker bench part: one part of the machine, measured once. */
#include <stdlib.h>

#include "bench/part.h"
#include "cli.h"

static const cli_option options[] = {{"--device", "DEVICE", "for matmul, conv and copy; default: cpu"},
                                     {"--to", "DEVICE", "for copy: another device of the same kind"},
                                     {"--threads", "N", "default: as many as cores"},
                                     {"--seconds", "S", "of work; default: 0.3"},
                                     {"--folder", "DIR", "for storage; default: the working folder"},
                                     {"--list", NULL, "lists the parts"},
                                     {NULL, NULL, NULL}};

static int list_parts(void)
{
    const stk_bench_part *part;
    for (int i = 0; (part = stk_bench_part_at(i)); i++)
        cli_printf("  %s %s: %s, in %s\n", part->name, part->usage, part->about, part->unit);
    return CLI_OK;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    stk_bench_part_setting setting = {.seconds = 0.3};
    char text[CLI_TEXT];
    int64_t n_threads;
    double figure;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (cli_has(&args, "--list")) return list_parts();
    const stk_bench_part *part = args.n_words ? stk_bench_part_find(args.word[0]) : NULL;
    if (!args.n_words) return cli_usage(verb, "bench part needs the name of a part; '--list' lists them");
    if (!part) return cli_usage(verb, "there is no part '%s'; '--list' lists them", args.word[0]);
    if (!cli_number(&args, "--threads", 1, 1024, 0, &n_threads)) return CLI_USAGE;
    setting.n_threads = (int)n_threads;
    setting.device = cli_value(&args, "--device");
    setting.other = cli_value(&args, "--to");
    setting.folder = cli_value(&args, "--folder");
    const char *seconds = cli_value(&args, "--seconds");
    char *end = NULL;
    if (seconds) setting.seconds = strtod(seconds, &end);
    if (seconds && (end == seconds || *end || !(setting.seconds >= 0 && setting.seconds <= 3600)))
        return cli_usage(verb, "option '--seconds' must be a number from 0 to 3600, not '%s'", seconds);
    if (part->run(&setting, args.n_words - 1, args.word + 1, &figure) != STK_OK) return cli_fail();
    cli_printf("%s %s\n", cli_number_text(figure, text), part->unit);
    return CLI_OK;
}

const cli_verb cli_bench_part = {
    "bench part", "NAME ARGUMENT... [OPTION...]",
    "Measures one part of the machine once: products, convolutions, memory, JPEG decoding, storage. It prints one "
    "figure; 'stoker bench system' runs them often and in turns.",
    options, .run = run};
