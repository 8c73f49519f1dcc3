/* The fast CPU device: own kernels, oneDNN for some convolutions (conv2d.c says which) and for large
 * products (matmul.c).
 *
 *   cpu.c                the device's functions and its table of kernels
 *   impl.h               the ways to compute an op, of which the first that fits is taken
 *   tuned/               tables that say for a family of processors which way is faster than that
 *   measured.h           the same for processors without a table, by timing the ways (timing.h) before the first step
 *   ROOM/KERNEL.c        prepares kernels: checks, shapes, scratch, how many threads
 *   ROOM/KERNEL_isa.c    the loops, built for each instruction set (simd/isa.h)
 *   attention/           heads in blocks, by matmul's tiles (matmul/matmul_block_tmpl.h) or AMX's
 *   amx/                 what multiplies blocks of bf16 by AMX's tiles, and a model of them for other processors
 *   threads/             the device's, oneDNN's (openmp.c), and where they and memory are (numa.c)
 *
 * A kernel's state is one malloc'ed block that starts with what its loops need; scratch is split by thread.
 */
#ifndef STK_DEVICE_CPU_CPU_H
#define STK_DEVICE_CPU_CPU_H

#include "base/error.h"
#include "device/cpu/simd/isa.h"
#include "device/cpu/threads/parallel.h"
#include "device/device.h"

typedef struct stk_onednn stk_onednn;
struct stk_measured; /* measured.h */

typedef struct stk_cpu_device {
    stk_device base;
    stk_isa isa;
    stk_onednn *onednn;
    stk_numa numa;
    stk_cpu_pool *pool;            /* NULL: one thread */
    struct stk_measured *measured; /* NULL: no choice is measured */
} stk_cpu_device;

/* What a body gets from stk_cpu_run. */
typedef struct stk_cpu_task {
    const void *state;
    const stk_kernel_args *args;
} stk_cpu_task;

/* One function for each op that is computed; the table is in cpu.c. */
#define X(name)                                                                                                        \
    stk_status stk_cpu_##name##_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
STK_KERNEL_OP_LIST(X)
#undef X

/* STK_UNSUPPORTED, naming the op and the dtypes of its inputs. */
stk_status stk_cpu_unsupported(const stk_op_call *call);
/* A zeroed state of n bytes into out->state; run is set. */
stk_status stk_cpu_new_state(size_t bytes, stk_status (*run)(const void *, const stk_kernel_args *), stk_kernel *out);
typedef stk_status (*stk_cpu_maker)(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
/* The table's; NULL for leaves and marks. */
stk_cpu_maker stk_cpu_maker_of(stk_op op);
/* For kernels that lack the 16-bit floats and work sample by sample: n_slice samples at a time in f32. Inputs are
 * [N,...] but those in `shared` (bit i: input i), which all samples read as a whole; outputs are [N,...], N >= 1. make
 * gives kernels that cannot fail when they run. */
stk_status stk_cpu_slices_kernel(const stk_cpu_device *device, const stk_op_call *call, uint32_t shared,
                                 int64_t n_slice, stk_cpu_maker make, stk_kernel *out);
/* For other kernels that lack them: the same call in f32 between two conversions. */
stk_status stk_cpu_widen_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_cpu_maker make,
                                stk_kernel *out);
/* "2 threads, avx2, oneDNN 2.6.3" */
void stk_cpu_describe(const stk_cpu_device *device, stk_text *out);
/* "own avx2" and so on: a constant. */
const char *stk_cpu_own_impl(stk_isa isa);

#endif
