/* A bar that moves on a terminal. */
#include <time.h>

#include "cli.h"

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void cli_bar(const char *what, int64_t n_done, int64_t n_all, int64_t n_before, double start_s)
{
    enum { WIDTH = 20 };
    char done[CLI_TEXT], all[CLI_TEXT], left[CLI_TEXT], bar[WIDTH + 1];
    int filled = n_all > 0 ? (int)(WIDTH * n_done / n_all) : WIDTH;
    int64_t n_new = n_done - n_before;
    double s = cli_now() - start_s;
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < filled ? '#' : '-';
    bar[WIDTH] = 0;
    printf("\r%s  %s of %s %s", bar, cli_count(n_done, done), cli_count(n_all, all), what);
    if (n_new > 0 && n_done < n_all)
        printf("  %s left", cli_duration(s * (double)(n_all - n_done) / (double)n_new, left));
    printf("\033[K");
    fflush(stdout);
}

void cli_clear_bar(void)
{
    printf("\r\033[K");
    fflush(stdout);
}
