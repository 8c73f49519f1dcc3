/* A command whose time is known but for the machine's noise: a stretch of work, and a planted part more of it or of
 * sleep. For tools/bench_truth.py.
 *
 * usage: bench_planted [ROUNDS [EXTRA work|sleep|scatter|print]]
 *
 * ROUNDS: of some 0.1 ms each; EXTRA: a share, 0.02. scatter: sleeps for ROUNDS * 0.1 ms * exp(EXTRA * z), z normal and
 * drawn anew in each run; print: only prints that time. Work is multiplications that wait for each other, and a walk
 * through memory in the second-level cache.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "stoker/rng.h"

enum { WORDS = 32768, STEPS = 60000 };

static uint32_t memory[WORDS];

static uint64_t work(double rounds)
{
    uint64_t x = 88172645463325252u;
    int64_t n = (int64_t)(rounds * STEPS);
    for (int64_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        memory[x >> 49] += (uint32_t)x;
    }
    return x + memory[0];
}

static void pause_s(double s)
{
    struct timespec pause = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
    nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    double rounds = argc > 1 ? atof(argv[1]) : 300, extra = argc > 3 ? atof(argv[2]) : 0;
    bool sleeps = argc > 3 && !strcmp(argv[3], "sleep");
    int64_t begin = stk_clock_ns();
    if (argc > 3 && (!strcmp(argv[3], "scatter") || !strcmp(argv[3], "print"))) {
        stk_rng rng = stk_rng_make((uint64_t)begin, 0, 0, 0);
        double s = rounds * 1e-4 * exp(extra * (double)stk_rng_normal(&rng));
        if (!strcmp(argv[3], "print"))
            printf("%.6f ms\n", s * 1e3);
        else
            pause_s(s);
        return 0;
    }
    volatile uint64_t sink = work(sleeps ? rounds : rounds * (1 + extra));
    (void)sink;
    if (sleeps && extra > 0) {
        pause_s((double)(stk_clock_ns() - begin) * 1e-9 * extra);
    }
    printf("%.3f ms\n", (double)(stk_clock_ns() - begin) * 1e-6);
    return 0;
}
