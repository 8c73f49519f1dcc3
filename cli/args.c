/* Arguments: one table of options for each verb gives parsing, help and suggestions. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Letters to insert, remove, replace or swap; words longer than the table are never near. */
static size_t edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 31 };
    size_t na = strlen(a), nb = strlen(b), d[LONGEST + 1][LONGEST + 1];
    if (na > LONGEST || nb > LONGEST) return na + nb;
    for (size_t i = 0; i <= na; i++) {
        for (size_t j = 0; j <= nb; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[na][nb];
}

const char *cli_nearest(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    size_t n_word = strlen(word), n_letters = n_word - strspn(word, "-"),
           least = n_letters < 5 ? 2 : (n_letters + 1) / 3 + 1;
    for (int i = 0; i < n; i++) {
        size_t n_name = strlen(names[i]), n_both = n_name < n_word ? n_name : n_word;
        bool begins_alike = n_both > 4 && !strncmp(word, names[i], n_both); /* --vocabulary and --vocab */
        size_t distance = begins_alike ? 1 : edit_distance(word, names[i]);
        /* The word itself is no answer. */
        if (n_name == n_word && begins_alike) continue;
        if (distance == 0 || distance >= least || (distance >= n_letters && distance >= n_name)) continue;
        least = distance;
        best = names[i];
    }
    return best;
}

char cli_joint = ' ';

int cli_usage(const cli_verb *verb, const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    cli_error("%s; see: stoker%c%s%s--help", text, verb ? cli_joint : ' ', verb ? verb->name : "", verb ? " " : "");
    return CLI_USAGE;
}

int cli_fail(void)
{
    cli_error("%s", stk_error_text());
    return CLI_FAILED;
}

void cli_put_wrapped(const char *text, int at, int indent)
{
    int width = cli_width(stdout, 100);
    bool is_first = true;
    while (*text) {
        int n_blanks = (int)strspn(text, " "), n = (int)strcspn(text + n_blanks, " \n");
        if (at + n_blanks + n > width && !is_first) {
            at = printf("\n%*s", indent, "") - 1;
            n_blanks = 0;
        }
        text += strspn(text, " ");
        at += printf("%*s%.*s", n_blanks, "", n, text);
        is_first = false;
        text += n;
        if (*text != '\n') continue;
        at = printf("\n%*s", indent, "") - 1;
        is_first = true;
        text++;
    }
    printf("\n");
}

/* The text with "stoker VERB" as this program is called. */
static char *as_called(const cli_verb *verb)
{
    char called[64], *text = strdup(verb->about);
    int n = snprintf(called, sizeof(called), "stoker %s", verb->name);
    for (char *p = text; p && (p = strstr(p, called)); p += n)
        p[strlen("stoker")] = cli_joint;
    return text;
}

void cli_help(const cli_verb *verb)
{
    char *about = as_called(verb);
    const int column = cli_width(stdout, 100) < 70 ? 10 : 23;
    cli_put_wrapped(verb->usage, printf("usage: stoker%c%s ", cli_joint, verb->name), 9);
    printf("\n");
    cli_put_wrapped(about ? about : verb->about, 0, 0);
    free(about);
    if (verb->options[0].name) printf("\n");
    for (const cli_option *option = verb->options; option->name; option++) {
        int at = printf("  %s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
        if (at >= column) at = printf("\n") - 1;
        printf("%*s", column - at, "");
        cli_put_wrapped(option->doc, column, column);
    }
    printf("  %-*s %s\n", column - 3, "--help", "this text");
}

static const cli_option *find_option(const cli_verb *verb, const char *name, size_t n)
{
    for (const cli_option *option = verb->options; option->name; option++)
        if (strlen(option->name) == n && !strncmp(option->name, name, n)) return option;
    return NULL;
}

static bool refuse_option(const cli_verb *verb, const char *name, size_t n)
{
    const char *names[64];
    char word[64];
    int n_names = 0;
    snprintf(word, sizeof(word), "%.*s", (int)n, name);
    for (const cli_option *option = verb->options; option->name && n_names < 63; option++)
        names[n_names++] = option->name;
    names[n_names++] = "--help";
    const char *nearest = cli_nearest(word, names, n_names);
    if (nearest)
        cli_usage(verb, "%s has no option '%s' (did you mean '%s'?)", verb->name, word, nearest);
    else
        cli_usage(verb, "%s has no option '%s'", verb->name, word);
    return false;
}

bool cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *out)
{
    bool only_words = false;
    out->verb = verb;
    out->n_found = out->n_words = 0;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        if (out->n_found == CLI_MOST_ARGS || out->n_words == CLI_MOST_ARGS) {
            cli_usage(verb, "more than %d arguments", CLI_MOST_ARGS);
            return false;
        }
        if (only_words || arg[0] != '-' || !arg[1]) {
            out->word[out->n_words++] = arg;
            continue;
        }
        if (!strcmp(arg, "--")) {
            only_words = true;
            continue;
        }
        const char *equals = strchr(arg, '=');
        size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
        const cli_option *option = find_option(verb, arg, n);
        if (!option) return refuse_option(verb, arg, n);
        const char *value = equals ? equals + 1 : NULL;
        if (!option->value && value) {
            cli_usage(verb, "option '%s' takes no value", option->name);
            return false;
        }
        if (option->value && !value) {
            if (i + 1 == argc) {
                cli_usage(verb, "option '%s' needs a value: %s", option->name, option->value);
                return false;
            }
            value = argv[++i];
        }
        out->found[out->n_found].option = option;
        out->found[out->n_found++].value = value;
    }
    return true;
}

bool cli_has(const cli_args *args, const char *name)
{
    for (int i = 0; i < args->n_found; i++)
        if (!strcmp(args->found[i].option->name, name)) return true;
    return false;
}

const char *cli_value(const cli_args *args, const char *name)
{
    const char *value = NULL;
    for (int i = 0; i < args->n_found; i++)
        if (!strcmp(args->found[i].option->name, name)) value = args->found[i].value;
    return value;
}

bool cli_number(const cli_args *args, const char *name, int64_t least, int64_t most, int64_t default_value,
                int64_t *out)
{
    const char *text = cli_value(args, name);
    char *end;
    *out = default_value;
    if (!text) return true;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end != text && !*end && errno == 0 && value >= least && value <= most) {
        *out = value;
        return true;
    }
    cli_usage(args->verb, "option '%s' must be a whole number from %lld to %lld, not '%s'", name, (long long)least,
              (long long)most, text);
    return false;
}
