#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t stk_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double stk_process_age_s(void)
{
    char line[1024];
    FILE *f = fopen("/proc/self/stat", "r");
    if (!f) return 0;
    size_t n = fread(line, 1, sizeof(line) - 1, f);
    fclose(f);
    line[n] = 0;
    /* Field 22 (starttime); the name in field 2 may hold spaces, so count from its closing parenthesis. */
    const char *p = strrchr(line, ')');
    for (int field = 2; p && field < 22; field++) {
        p = strchr(p + 1, ' ');
    }
    unsigned long long ticks = 0;
    if (!p || sscanf(p, " %llu", &ticks) != 1) return 0;
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9 - (double)ticks / (double)sysconf(_SC_CLK_TCK);
}
