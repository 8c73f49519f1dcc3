/* A job for test_spin.py: two threads of OpenMP meet often. usage: spin_job serial|parallel SECONDS: most work is the
 * first one's alone, while the other one waits; or is shared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double work(int n)
{
    volatile double sum = 0;
    for (int i = 0; i < n; i++)
        sum = sum * 0.5 + i;
    return sum;
}

int main(int argc, char **argv)
{
    enum { MUCH = 10000000, LITTLE = 10000 };
    double sum = 0, end_s;
    if (argc != 3) return 2;
    int alone = strcmp(argv[1], "serial") ? 0 : MUCH, shared = alone ? LITTLE : MUCH;
    for (end_s = now_s() + atof(argv[2]); now_s() < end_s;) {
#pragma omp parallel num_threads(2) reduction(+ : sum)
        sum += work(shared);
        sum += work(alone);
    }
    printf("%g\n", sum);
    return 0;
}
