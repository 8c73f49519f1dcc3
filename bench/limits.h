/* What the device's threads can do, all at once: multiply-adds of f32 in registers, products of bf16 by tiles in
 * registers (AMX), and a triad over memory that no cache holds. For the programs of bench/.
 *
 * The numbers in tiles are not zeros, which take least power. Where others share the machine all of these change by the
 * second: they are to be measured in turns with what is compared with them. */
#ifndef STK_BENCH_LIMITS_H
#define STK_BENCH_LIMITS_H

#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/cpu/amx/amx.h"
#include "device/cpu/cpu.h"
#include "device/cpu/threads/parallel.h"
#include "peak.h"

/* GFLOP/s and GB/s; 0: not known. */
typedef struct limits {
    double vectors, tiles, memory;
    double product; /* of a large one, which is measured elsewhere */
} limits;

enum { LIMITS_MOST_THREADS = 256, LIMITS_NS = 10000000, TRIAD = 16 << 20 /* elements of each array */ };

typedef struct limits_task {
    int64_t end_ns;
    double *flops; /* of each part */
    float *memory; /* [3][TRIAD] */
} limits_task;

#if defined(__x86_64__)
static void multiply_vectors(const void *arg, int i_part, int n_parts)
{
    enum { N = 1 << 14, CHAINS = 12 };
    const limits_task *task = arg;
    volatile float sink;
    bool has_512 = __builtin_cpu_supports("avx512f") && stk_isa_allowed() == STK_ISA_AVX512;
    (void)n_parts;
    do {
        if (has_512)
            run_fma16(N, &sink);
        else
            run_fma8(N, &sink);
        task->flops[i_part] += (double)N * CHAINS * 2 * (has_512 ? 16 : 8);
    } while (stk_clock_ns() < task->end_ns);
}
#endif

#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ >= 11
#define STK_LIMITS_TILES 1
#include <immintrin.h>

__attribute__((target("amx-tile,amx-bf16"))) static void multiply_tiles(const void *arg, int i_part, int n_parts)
{
    enum { TURNS = 500, TURN_FLOPS = 4 * 2 * 16 * 16 * 32, TILE = 512 };
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    const limits_task *task = arg;
    _Alignas(64) uint16_t numbers[2 * TILE];
    (void)n_parts;
    for (int i = 0; i < 2 * TILE; i++) /* 1 to 2, of both signs */
        numbers[i] = (uint16_t)(0x3f80 | ((uint32_t)i * 2654435761u >> 25) | (i % 2 ? 0x8000 : 0));
    _tile_loadconfig(&shapes);
    __asm__ volatile("" ::: "memory");
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, numbers, 64);
    _tile_loadd(5, numbers + TILE, 64);
    _tile_loadd(6, numbers, 64);
    _tile_loadd(7, numbers + TILE, 64);
    do {
        for (int i = 0; i < TURNS; i++) {
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        task->flops[i_part] += (double)TURNS * TURN_FLOPS;
    } while (stk_clock_ns() < task->end_ns);
    _tile_release();
}
#endif

static void add_triad(const void *arg, int i_part, int n_parts)
{
    const limits_task *task = arg;
    int64_t begin, end;
    stk_cpu_share(TRIAD, 16, i_part, n_parts, &begin, &end);
    float *restrict a = task->memory;
    const float *restrict b = a + TRIAD, *restrict c = b + TRIAD;
    for (int64_t i = begin; i < end; i++)
        a[i] = b[i] + 3 * c[i];
}

/* What is done a nanosecond: of `amount`, or of what the parts have counted. */
static double rate_of(const stk_device *device, stk_cpu_body body, limits_task *task, double amount)
{
    for (int i = 0; i < device->n_threads; i++)
        task->flops[i] = 0;
    int64_t start = stk_clock_ns();
    task->end_ns = start + LIMITS_NS;
    stk_cpu_parallel(device->n_threads, body, task);
    double took = (double)(stk_clock_ns() - start);
    for (int i = 0; i < device->n_threads; i++)
        amount += task->flops[i];
    return amount / took;
}

/* memory: [3][TRIAD], written before, so that its pages are there. */
static limits measure_limits(const stk_device *device, float *memory)
{
    const stk_cpu_device *cpu = (const stk_cpu_device *)device;
    double flops[LIMITS_MOST_THREADS];
    limits_task task = {.flops = flops, .memory = memory};
    limits found = {0};
    if (device->n_threads > LIMITS_MOST_THREADS) return found;
    stk_cpu_pool *before = stk_cpu_pool_enter(cpu->pool);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) found.vectors = rate_of(device, multiply_vectors, &task, 0);
#endif
#ifdef STK_LIMITS_TILES
    const stk_amx_fns *fns = stk_amx_of(cpu->isa);
    if (fns && fns != &stk_amx_model) found.tiles = rate_of(device, multiply_tiles, &task, 0);
#endif
    found.memory = rate_of(device, add_triad, &task, 3.0 * TRIAD * sizeof(float));
    stk_cpu_pool_enter(before);
    return found;
}

#endif
