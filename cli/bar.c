/* A line with a bar that moves on a terminal. */
#include <string.h>
#include <time.h>

#include "cli.h"

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

const char *cli_bar_text(double share, int columns, char out[CLI_BAR])
{
    bool utf8 = cli_shows_utf8();
    double filled = share > 0 ? share * columns : 0;
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < columns && n + 4 < CLI_BAR; i++) {
        const char *mark = i + 1 <= filled ? "━" : i < filled ? "╸" : "─";
        if (!utf8) mark = i + 1 <= filled ? "#" : "-";
        n += (size_t)snprintf(out + n, CLI_BAR - n, "%s", mark);
    }
    return out;
}

void cli_draw(const char *const *part, int n_parts, double share)
{
    enum { SHORTEST = 10, LONGEST = 30 };
    char bar[CLI_BAR], line[1024];
    /* One column stays free, because a line that wraps cannot be taken away again. */
    int width = cli_width(stdout, 500) - 1, used = cli_columns(part[0]);
    size_t n = (size_t)snprintf(line, sizeof(line), "%s", part[0]);
    for (int i = 1; i < n_parts && n < sizeof(line); i++) {
        int columns = cli_columns(part[i]);
        if (used + columns + 2 + SHORTEST > width) continue;
        used += columns;
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s", part[i]);
    }
    int columns = width - used - 2;
    printf("\r%.*s", (int)cli_fit(line, width), line);
    if (columns >= SHORTEST / 2) printf("  %s", cli_bar_text(share, columns < LONGEST ? columns : LONGEST, bar));
    printf("\033[K\r"); /* What the terminal echoes of Ctrl-C comes at the line's begin, and breaks no line. */
    fflush(stdout);
}

void cli_bar(const char *what, int64_t n_done, int64_t n_all, int64_t n_before, double start_s)
{
    char done[CLI_TEXT], all[CLI_TEXT], left[CLI_TEXT], parts[2][3 * CLI_TEXT];
    const char *part[2] = {parts[0], parts[1]};
    int64_t n_new = n_done - n_before;
    double s = cli_now() - start_s;
    if (!strcmp(what, "bytes"))
        snprintf(parts[0], sizeof(parts[0]), "%s of %s", cli_bytes((double)n_done, done),
                 cli_bytes((double)n_all, all));
    else
        snprintf(parts[0], sizeof(parts[0]), "%s of %s %s", cli_count(n_done, done), cli_count(n_all, all), what);
    bool is_going = n_new > 0 && n_done < n_all;
    if (is_going)
        snprintf(parts[1], sizeof(parts[1]), "  %s left",
                 cli_duration(s * (double)(n_all - n_done) / (double)n_new, left));
    cli_draw(part, is_going ? 2 : 1, n_all > 0 ? (double)n_done / (double)n_all : 1);
}

void cli_clear_bar(void)
{
    printf("\r\033[K");
    fflush(stdout);
}
