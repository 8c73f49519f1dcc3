/* The program `stoker-watch`: the verb `watch` alone, which needs libc and nothing else, for other machines. */
#include <string.h>

#include "cli.h"

int main(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
        printf("stoker-watch %s\n", stk_version());
        return CLI_OK;
    }
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (strcmp(argv[i], "--help") && strcmp(argv[i], "-h")) continue;
        cli_help(&cli_watch);
        return CLI_OK;
    }
    int code = cli_watch.run(&cli_watch, argc - 1, argv + 1);
    if (fflush(stdout) != 0 && code == CLI_OK) code = CLI_FAILED;
    return code;
}
