/* stoker completion */
#include <string.h>

#include "complete.h"

static const cli_option options[] = {{NULL, NULL, NULL}};

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static const char *const shells[] = {"bash", "zsh", "fish"};
    static void (*const print[])(void) = {complete_bash, complete_zsh, complete_fish};
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 1) return cli_usage(verb, "completion takes one shell: bash, zsh or fish");
    for (int i = 0; i < 3; i++) {
        if (strcmp(args.word[0], shells[i])) continue;
        print[i]();
        return CLI_OK;
    }
    return cli_usage(verb, "no completions for '%s', but for bash, zsh and fish", args.word[0]);
}

const cli_verb cli_completion = {
    "completion", "bash|zsh|fish",
    "Prints completions for a shell. `cmake --install` puts them where shells look; otherwise: source <(stoker "
    "completion bash), which ~/.bashrc may do, or the same for zsh; stoker completion fish | source.",
    options, .run = run};
