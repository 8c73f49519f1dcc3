/* Memory bandwidth: a = b + 3 c over arrays that no cache holds, by threads that each have their own part, as STREAM's
 * triad (McCalpin 1995). Counted are the bytes that the program names: two reads and a write. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "bench/part.h"

enum { MOST_THREADS = 256 };

typedef struct triad {
    double *a, *b, *c; /* [n] */
    size_t n;
    int n_threads;
} triad;

typedef struct share {
    const triad *all;
    size_t from, to;
} share;

static void add_share(void *user)
{
    const share *s = user;
    double *restrict a = s->all->a;
    const double *restrict b = s->all->b, *restrict c = s->all->c;
    for (size_t i = s->from; i < s->to; i++)
        a[i] = b[i] + 3 * c[i];
}

static stk_status run_triad(void *user, double *amount)
{
    const triad *t = user;
    stk_thread thread[MOST_THREADS];
    share part[MOST_THREADS];
    stk_status status = STK_OK;
    memset(thread, 0, sizeof(thread));
    for (int i = 0; i < t->n_threads && status == STK_OK; i++) {
        part[i] = (share){t, t->n * (size_t)i / (size_t)t->n_threads, t->n * (size_t)(i + 1) / (size_t)t->n_threads};
        status = stk_thread_start(&thread[i], "triad", false, add_share, &part[i]);
    }
    for (int i = 0; i < t->n_threads; i++)
        stk_thread_join(&thread[i]);
    *amount = 3e-9 * (double)(t->n * sizeof(double));
    return status;
}

static stk_status run_memory(const stk_bench_part_setting *setting, int n, const char *const *argument, double *figure)
{
    int64_t mib;
    triad t = {.n_threads = setting->n_threads > 0 ? setting->n_threads : stk_n_cores()};
    if (n != 1) return stk_fail(STK_INVALID, "memory takes the size of an array in MiB");
    STK_RETURN_IF_ERROR(stk_bench_part_sizes(argument[0], 1, &mib));
    if (t.n_threads > MOST_THREADS) t.n_threads = MOST_THREADS;
    t.n = (size_t)mib * (1 << 20) / sizeof(double);
    double *memory = malloc(3 * t.n * sizeof(double));
    if (!memory) return stk_fail_memory(3 * t.n * sizeof(double));
    for (size_t i = 0; i < 3 * t.n; i++)
        memory[i] = (double)(i % 8);
    t.a = memory;
    t.b = memory + t.n;
    t.c = memory + 2 * t.n;
    stk_status status = stk_bench_part_repeat(setting->seconds, run_triad, &t, figure);
    free(memory);
    return status;
}

const stk_bench_part stk_bench_part_memory = {"memory", "MIB", "STREAM's triad over three arrays of so many MiB",
                                              "GB/s", run_memory};
