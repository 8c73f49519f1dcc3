#include "bench/part.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "bench/statistics.h"

const stk_bench_part *stk_bench_part_at(int i)
{
    static const stk_bench_part *const parts[] = {
        &stk_bench_part_matmul,  &stk_bench_part_conv, &stk_bench_part_memory,    &stk_bench_part_jpeg,
        &stk_bench_part_storage, &stk_bench_part_copy, &stk_bench_part_all_reduce};
    return i >= 0 && i < (int)(sizeof(parts) / sizeof(parts[0])) ? parts[i] : NULL;
}

const stk_bench_part *stk_bench_part_find(const char *name)
{
    const stk_bench_part *part;
    for (int i = 0; (part = stk_bench_part_at(i)); i++)
        if (!strcmp(part->name, name)) return part;
    return NULL;
}

stk_status stk_bench_part_sizes(const char *text, int n, int64_t *out)
{
    const char *at = text;
    for (int i = 0; i < n; i++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        bool ends_well = i + 1 < n ? *end == 'x' : !*end;
        if (end == at || !ends_well || value < 1 || value > 1 << 20)
            return n == 1 ? stk_fail(STK_INVALID, "'%s' must be a whole number from 1 to %d", text, 1 << 20)
                          : stk_fail(STK_INVALID, "'%s' is not %d sizes from 1 to %d, like 64x32", text, n, 1 << 20);
        out[i] = value;
        at = end + 1;
    }
    return STK_OK;
}

stk_status stk_bench_part_repeat(double seconds, stk_status (*work)(void *user, double *amount), void *user,
                                 double *figure)
{
    enum { MOST = 10000, LEAST = 5 };
    static double rate[MOST];
    double amount = 0;
    int n = 0;
    STK_RETURN_IF_ERROR(work(user, &amount));
    for (int64_t begin = stk_clock_ns(); n < MOST && (n < LEAST || (double)(stk_clock_ns() - begin) < seconds * 1e9);) {
        int64_t start = stk_clock_ns();
        STK_RETURN_IF_ERROR(work(user, &amount));
        rate[n++] = amount / ((double)(stk_clock_ns() - start) * 1e-9);
    }
    stk_bench_sort(rate, n);
    *figure = stk_bench_quantile(rate, n, 0.5);
    return STK_OK;
}
