/* What one core can do: multiply-adds on the widest vectors that it has and that STOKER_ISA allows. For the programs of
 * bench/. */
#ifndef STK_BENCH_PEAK_H
#define STK_BENCH_PEAK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/isa.h"

#if defined(__x86_64__)
typedef float wide8 __attribute__((vector_size(32)));
typedef float wide16 __attribute__((vector_size(64)));

/* Twelve independent chains of multiply-adds: more than latency times throughput. A compiler that knew b and c would
 * see that the chain from 1 on stays at 1, and leave it out. */
#define FLOPS_LOOP(T)                                                                                                  \
    T a[12], b = (T){0} + 0.999f, c = (T){0} + 0.001f;                                                                 \
    for (int i = 0; i < 12; i++)                                                                                       \
        a[i] = (T){0} + (float)i;                                                                                      \
    __asm__("" : "+x"(b), "+x"(c));                                                                                    \
    for (int64_t r = 0; r < n; r++)                                                                                    \
        _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) a[i] = a[i] * b + c;                                     \
    T sum = a[0];                                                                                                      \
    for (int i = 1; i < 12; i++)                                                                                       \
        sum += a[i];                                                                                                   \
    *out = sum[0] + sum[1]

__attribute__((target("avx2,fma"))) static void run_fma8(int64_t n, volatile float *out)
{
    FLOPS_LOOP(wide8);
}

__attribute__((target("avx512f"))) static void run_fma16(int64_t n, volatile float *out)
{
    FLOPS_LOOP(wide16);
}
#endif

/* GFLOP/s of one core; 0 where it is not known how to measure it. */
static double measure_peak(void)
{
    double best = 0;
#if defined(__x86_64__)
    volatile float sink;
    int64_t n = 1 << 20;
    bool has_512 = __builtin_cpu_supports("avx512f") && stk_isa_allowed() == STK_ISA_AVX512;
    for (int r = 0; r < 20 && __builtin_cpu_supports("avx2"); r++) {
        int64_t start = stk_clock_ns();
        if (has_512)
            run_fma16(n, &sink);
        else
            run_fma8(n, &sink);
        double rate = (double)n * 12 * 2 * (has_512 ? 16 : 8) / (double)(stk_clock_ns() - start);
        if (rate > best) best = rate;
    }
#endif
    return best;
}

#endif
