/* Ways to compute an op on the cpu device. An op that has several has one const array of them in its file, best first:
 * the order is the choice, by shape, dtype and instruction set alone, never by timing. Where the processor's family has
 * a table (tuned/tuned.h), the way that it names for such a call comes before the list. An op that has one way is a
 * plain function; loops that differ by dtype or instruction set alone are tables (simd/isa.h). docs/kernels.md has
 * more.
 *
 *     static const stk_cpu_impl impls[] = {
 *         {"onednn sgemm", stk_matmul_sgemm_supports, stk_matmul_sgemm_make},
 *         {NULL, stk_matmul_own_supports, stk_matmul_own_make},
 *         STK_CPU_IMPL_WIDENED,
 *         {0},
 *     };
 */
#ifndef STK_DEVICE_CPU_IMPL_H
#define STK_DEVICE_CPU_IMPL_H

#include "device/cpu/cpu.h"

typedef struct stk_cpu_impl {
    /* What people see as the kernel's impl, where make says no more; NULL: "own avx2" and so on. */
    const char *name;
    /* Whether it is the one for this call, when those before it are not. */
    bool (*supports)(const stk_cpu_device *device, const stk_op_call *call);
    /* STK_UNSUPPORTED, with a text, where only a library knows that it cannot: then the next one is asked. */
    stk_status (*make)(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
} stk_cpu_impl;

/* The kernel of the first that supports the call and makes it; the array ends with {0}. */
stk_status stk_cpu_make_first(const stk_cpu_device *device, const stk_op_call *call, const stk_cpu_impl *impls,
                              stk_kernel *out);

/* A way under the name that tables of families have for it. Its impl's `supports` says whether it can do a call, were
 * it the best or not. Several of an array may have one name. */
typedef struct stk_cpu_way {
    const char *name;
    stk_cpu_impl impl;
} stk_cpu_way;

extern const stk_cpu_way stk_matmul_ways[], stk_conv_ways[]; /* matmul/matmul.c, conv/conv2d.c */

/* The kernel of the first that is called so and can do it, whatever tables and lists say; STK_UNSUPPORTED: none. The
 * array ends with {0}. */
stk_status stk_cpu_make_way(const stk_cpu_device *device, const stk_op_call *call, const stk_cpu_way *ways,
                            const char *name, stk_kernel *out);
/* The lists of the ops that have ways: products, convolutions of images. NULL: an op that has none. */
const stk_cpu_way *stk_cpu_ways_of(stk_op op);
/* By the way that was measured to be best, or that the family's table names, else stk_cpu_make_first. */
stk_status stk_cpu_make_best(const stk_cpu_device *device, const stk_op_call *call, const stk_cpu_way *ways,
                             const stk_cpu_impl *impls, stk_kernel *out);

/* What several ops ask. In f32 or f64: the first input, the first output. 16-bit floats: anywhere. */
bool stk_cpu_reads_wide(const stk_cpu_device *device, const stk_op_call *call);
bool stk_cpu_writes_wide(const stk_cpu_device *device, const stk_op_call *call);
bool stk_cpu_has_half(const stk_cpu_device *device, const stk_op_call *call);

/* The last way of ops whose loops know f32 and f64 alone: the same op in f32 between two conversions. */
stk_status stk_cpu_widened_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
#define STK_CPU_IMPL_WIDENED                                                                                           \
    {                                                                                                                  \
        NULL, stk_cpu_has_half, stk_cpu_widened_make                                                                   \
    }

#endif
