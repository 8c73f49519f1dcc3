/* The program `stoker-watch`: the verb `watch` alone, which needs libc and nothing else, for other machines. */
#include <string.h>

#include "cli.h"

int main(int argc, char **argv)
{
    cli_settle_descriptors();
    cli_joint = '-';
    if (argc == 2 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
        printf("stoker-watch %s\n", stk_version());
        return cli_finish_output(NULL, CLI_OK);
    }
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (strcmp(argv[i], "--help") && strcmp(argv[i], "-h")) continue;
        cli_help(&cli_watch);
        return cli_finish_output(NULL, CLI_OK);
    }
    cli_settle_output(&cli_watch);
    return cli_finish_output(&cli_watch, cli_watch.run(&cli_watch, argc - 1, argv + 1));
}
