/* Data named on the command line: where it lies, and what it is. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "stoker/data/sources.h"

bool cli_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

const char *cli_find_data(const char *path, char out[CLI_PATH])
{
    struct stat info;
    const char *variable = getenv("STOKER_DATA");
    if (stat(path, &info) == 0 || path[0] == '/' || strstr(path, "://") || !variable || !variable[0]) return path;
    int n = snprintf(out, CLI_PATH, "%s/%s", variable, path);
    if (n < 0 || n >= CLI_PATH) return path;
    return stat(out, &info) == 0 || strpbrk(path, "*?[") ? out : path;
}

bool cli_is_tar(const char *path)
{
    return cli_ends_with(path, ".tar") || cli_ends_with(path, ".tar.gz") || cli_ends_with(path, ".tgz");
}
