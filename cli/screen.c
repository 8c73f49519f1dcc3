/* What a terminal can show, and lines that fit into it. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/printable.h"
#include "cli.h"

bool cli_is_terminal(FILE *file)
{
    const char *term = getenv("TERM");
    return isatty(fileno(file)) && !(term && !strcmp(term, "dumb"));
}

int cli_width(FILE *file, int most)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    if (width <= 0 && ioctl(fileno(file), TIOCGWINSZ, &size) == 0) width = size.ws_col;
    if (width <= 0) width = 80;
    return width > most ? most : width < 20 ? 20 : width;
}

bool cli_shows_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0]) return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "utf-8");
    }
    return false;
}

/* How many bytes the character or escape sequence at p has; *columns: how wide it is. */
static size_t measure(const char *p, int *columns)
{
    size_t n = 1;
    *columns = p[0] != '\033';
    if (p[0] == '\033' && p[1] == '[') {
        n = 2 + strcspn(p + 2, "ABCDEFGHJKSTfmhl");
        return p[n] ? n + 1 : n;
    }
    while (((unsigned char)p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

int cli_columns(const char *text)
{
    int sum = 0, columns;
    while (*text) {
        text += measure(text, &columns);
        sum += columns;
    }
    return sum;
}

size_t cli_fit(const char *text, int columns)
{
    size_t n = 0;
    for (int one, used = 0; text[n]; used += one) {
        size_t length = measure(text + n, &one);
        if (used + one > columns) break;
        n += length;
    }
    return n;
}

const char *cli_mark_text(FILE *file, cli_mark mark)
{
    static const char *const sequences[] = {
        [CLI_PLAIN] = "\033[0m", [CLI_BOLD] = "\033[1m", [CLI_RED] = "\033[1;31m", [CLI_YELLOW] = "\033[1;33m"};
    const char *none = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
    if (none && none[0]) return "";
    if (!(force && force[0] && strcmp(force, "0")) && !cli_is_terminal(file)) return "";
    return sequences[mark];
}

/* --- lines --- */

/* Where lines below the first begin: under what stands behind the first word and two blanks or more, as in tables. */
static int find_indent(const char *line, int width)
{
    int start = (int)strspn(line, " "), columns = start, one;
    const char *p = line + start;
    while (*p && (p[0] != ' ' || p[1] != ' ')) {
        p += measure(p, &one);
        columns += one;
    }
    if (!*p) return start ? start : 2;
    columns += (int)strspn(p, " ");
    return columns <= width / 2 ? columns : start + 2;
}

/* Where to end a line that has room for that many columns: between two parts (two blanks) rather than between two
 * words. `least`: columns at its begin that stay together. A word that is too long stays whole. */
static size_t find_break(const char *text, int room, int least)
{
    size_t at = 0, word = 0, part = 0;
    int columns = 0, one, part_at = 0;
    while (text[at]) {
        if (text[at] == ' ' && columns > least && text[at + strspn(text + at, " ")]) {
            if (columns > room && (word || part)) break;
            if (at > 0 && text[at - 1] != ' ') {
                word = at;
                if (text[at + 1] == ' ') {
                    part = at;
                    part_at = columns;
                }
            }
            if (columns > room) break;
        }
        at += measure(text + at, &one);
        columns += one;
    }
    if (columns <= room) return strlen(text);
    if (part && part_at * 2 >= room) return part;
    return word ? word : strlen(text);
}

/* at: the columns before it on the line. */
static void put_line(FILE *file, const char *text, int at, int indent, int width)
{
    int least = indent - at;
    for (;;) {
        size_t n = find_break(text, width - at, least);
        fwrite(text, 1, n, file);
        text += n + strspn(text + n, " ");
        if (!*text) break;
        fprintf(file, "\n%*s", indent, "");
        at = indent;
        least = 0;
    }
    fputc('\n', file);
}

/* Each line of a text that ends in a newline or not. */
static void put_lines(FILE *file, const char *text, int at, int indent)
{
    int width = cli_width(file, 1000);
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = strndup(text, n);
        if (line)
            put_line(file, line, at, indent >= 0 ? indent : find_indent(line, width), width);
        else
            fprintf(file, "%.*s\n", (int)n, text);
        free(line);
        text += n + (text[n] == '\n');
        at = 0;
    }
}

void cli_printf(const char *format, ...)
{
    static char line[16384]; /* what came since the last newline */
    static size_t n;
    va_list args;
    va_start(args, format);
    if (!cli_is_terminal(stdout)) {
        vprintf(format, args);
        va_end(args);
        return;
    }
    va_list again;
    va_copy(again, args);
    int more = vsnprintf(line + n, sizeof(line) - n, format, args);
    va_end(args);
    if (more > 0 && n + (size_t)more >= sizeof(line)) {
        /* Longer than any screen: as it is. */
        printf("%.*s", (int)n, line);
        vprintf(format, again);
        n = 0;
        line[0] = 0;
        more = 0;
    }
    va_end(again);
    n += more > 0 ? (size_t)more : 0;
    char *end = strrchr(line, '\n');
    if (!end) return;
    char next = end[1];
    end[1] = 0;
    put_lines(stdout, line, 0, -1);
    end[1] = next;
    n -= (size_t)(end + 1 - line);
    memmove(line, end + 1, n + 1);
}

void cli_put_command(const char *line, cli_print_command print, const void *user)
{
    char *command = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&command, &n);
    if (memory) print(memory, user);
    bool known = memory && fclose(memory) == 0;
    if (!cli_is_terminal(stdout) || (known && cli_columns(line) + cli_columns(command) + 1 <= cli_width(stdout, 1000)))
        printf("%s ", line);
    else
        printf("%s\n  ", line);
    print(stdout, user);
    printf("\n");
    free(command);
}

/* The prefix in its colour, and the rest in lines that begin below it. */
static void complain(cli_mark mark, const char *prefix, const char *format, va_list args)
{
    char text[8192], shown[2 * sizeof(text)];
    fflush(stdout); /* In a pipe, too, what was said before comes before. */
    fprintf(stderr, "%s%s%s ", cli_mark_text(stderr, mark), prefix, cli_mark_text(stderr, CLI_PLAIN));
    vsnprintf(text, sizeof(text), format, args);
    stk_printable_lines(text, shown, sizeof(shown)); /* Names of files come from anywhere. */
    if (cli_is_terminal(stderr))
        put_lines(stderr, shown, (int)strlen(prefix) + 1, 8);
    else
        fprintf(stderr, "%s\n", shown);
}

void cli_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(CLI_RED, "stoker:", format, args);
    va_end(args);
}

void cli_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(CLI_YELLOW, "stoker: warning:", format, args);
    va_end(args);
}
