/* stoker new */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "stoker/train/run.h"

static const cli_option options[] = {{"--keys", NULL, "prints all keys of a recipe, with types and defaults, instead"},
                                     {NULL, NULL, NULL}};

static int print_keys(void)
{
    char *text;
    cli_only_prints();
    if (stk_recipe_reference(&text) != STK_OK) return cli_fail();
    cli_put_text(text);
    free(text);
    return CLI_OK;
}

static void print_command(FILE *file, const void *path)
{
    fprintf(file, "stoker train ");
    cli_shell_word(file, path);
}

static int write_new(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) {
        cli_error("'%s' is there already; choose another name", path);
        return CLI_FAILED;
    }
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0) ok = false;
    if (!ok) {
        cli_error("cannot write '%s': %s", path, strerror(errno));
        if (fd >= 0) unlink(path);
        return CLI_FAILED;
    }
    char line[CLI_PATH + 64];
    snprintf(line, sizeof(line), "wrote %s; train it with:", path);
    cli_put_command(line, print_command, path);
    return CLI_OK;
}

/* "folder/first.yaml" and "folder/first" both give folder/first.yaml with the name "first". */
static int write_starter(const cli_verb *verb, const char *argument)
{
    char path[4096], name[256], *text;
    size_t n = strlen(argument);
    if (n > 5 && !strcmp(argument + n - 5, ".yaml")) n -= 5;
    const char *slash = strrchr(argument, '/'), *start = slash ? slash + 1 : argument;
    size_t n_name = (size_t)(argument + n - start);
    if (n_name == 0 || n_name > 200 || start[0] == '.')
        return cli_usage(verb, "'%s' is no name for a recipe", argument);
    for (size_t i = 0; i < n_name; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.", start[i]))
            return cli_usage(verb, "'%s' is no name for a recipe: use letters, digits, '-', '_' and '.'", argument);
    snprintf(name, sizeof(name), "%.*s", (int)n_name, start);
    if (snprintf(path, sizeof(path), "%.*s.yaml", (int)n, argument) >= (int)sizeof(path))
        return cli_usage(verb, "the path is too long");
    if (stk_recipe_starter(name, &text) != STK_OK) return cli_fail();
    int code = write_new(path, text);
    free(text);
    return code;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (cli_has(&args, "--keys")) return print_keys();
    if (args.n_words != 1) return cli_usage(verb, "new takes one name, and there are %d", args.n_words);
    return write_starter(verb, args.word[0]);
}

const cli_verb cli_new = {
    "new",   "NAME", "Writes NAME.yaml, a recipe to start from, with comments. Never overwrites a file.",
    options, run,    .makes_files = true};
