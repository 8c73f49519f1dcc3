/* A job for overhead.py whose threads are OpenMP's: regions of about a millisecond, which all cores share and end
 * together. A line in: N rounds; a line out: seconds on the clock, and on cores. */
#include <stdio.h>
#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double work(int n)
{
    volatile double sum = 0;
    for (int i = 0; i < n; i++)
        sum = sum * 0.5 + i;
    return sum;
}

int main(void)
{
    long n;
    while (scanf("%ld", &n) == 1) {
        double begin = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), sum = 0;
        for (long i = 0; i < n; i++) {
#pragma omp parallel reduction(+ : sum)
            sum += work(300000);
        }
        printf("%.9f %.9f %s", seconds(CLOCK_MONOTONIC) - begin, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               sum < 0 ? "0\n" : "\n");
        fflush(stdout);
    }
    return 0;
}
