/* How much memory this process has had in use at most so far, and the processor time of this thread. Include after
 * cmocka.h. Threads: any. */
#ifndef TESTS_HIGH_WATER_H
#define TESTS_HIGH_WATER_H

#include <stdio.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HIGH_WATER_IS_TOLD = 0 }; /* sanitizers have memory of their own */
#else
enum { HIGH_WATER_IS_TOLD = 1 };
#endif

/* Bytes; 0 where the system or the build does not tell. */
static inline size_t high_water(void)
{
    char line[256];
    size_t kib = 0;
    FILE *f = HIGH_WATER_IS_TOLD ? fopen("/proc/self/status", "r") : NULL;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmHWM: %zu", &kib) == 1) break;
    if (f) fclose(f);
    return kib << 10;
}

static inline double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
