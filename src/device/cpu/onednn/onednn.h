/* One thin shim over oneDNN 2.6 and 3.x: convolutions and their gradients on plain NHWC and OHWI tensors, or
 * NDHWC and ODHWI.
 *
 * oneDNN chooses its own format for weights; the reorders to and from it run inside the call, through the call's
 * scratch memory, where the caller does not bring weights packed by conv2d_pack.h. Everything is created beforehand; a
 * run only sets pointers. Threads: an operation runs on one thread at a time; oneDNN itself uses as many as the
 * operation was made for.
 */
#ifndef STK_DEVICE_CPU_ONEDNN_ONEDNN_H
#define STK_DEVICE_CPU_ONEDNN_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/graph/graph.h"
#include <signal.h>

typedef struct stk_onednn stk_onednn;
typedef struct stk_onednn_conv stk_onednn_conv;

/* What any kernel of oneDNN's counts for as memory (stk_kernel.library_bytes): 6 MiB of its code that generates code,
 * and what it keeps of what it generated, measured with 2.6.3. What products in f32 pack comes besides
 * (sgemm_memory.h). */
#define STK_ONEDNN_BYTES ((size_t)10 << 20)

stk_status stk_onednn_open(stk_onednn **out);
void stk_onednn_close(stk_onednn *onednn); /* accepts NULL */
/* "2.6.3". Borrowed from onednn. */
const char *stk_onednn_version(const stk_onednn *onednn);

typedef enum stk_conv_pass { STK_CONV_FORWARD, STK_CONV_GRAD_DATA, STK_CONV_GRAD_WEIGHT } stk_conv_pass;

/* x [N,H,W,C], weight [O,KH,KW,C/groups], y [N,H',W',O], bias [O] f32 (f64 for f64); or of volumes; none empty. */
typedef struct stk_conv_shape {
    stk_conv_pass pass;
    stk_shape x, weight, y;
    stk_window window;
    bool has_bias, has_relu; /* forward: behind the sums, before they are rounded */
} stk_conv_shape;

/* Weights [O,KH,KW,C] of bf16 as oneDNN's convolutions want them, in blocks of pairs; conv2d_pack.h packs them. */
enum { STK_PACK_LANES = 16, STK_PACK_AT_ONCE = 256 /* input channels of a piece of work */ };

typedef enum stk_pack_kind {
    STK_PACK_NONE,      /* oneDNN reorders */
    STK_PACK_IN_PAIRS,  /* a block is [o in block][2 of c]; the next two of c are behind it */
    STK_PACK_OUT_PAIRS, /* a block is [8 twos of o][16 of c][2 of o] */
} stk_pack_kind;

typedef struct stk_conv_packing {
    stk_pack_kind kind;
    int64_t o, kernel_h, kernel_w, c;
    int64_t padded_o, padded_c;             /* what lies beyond o and c is 0 */
    int64_t block;                          /* output channels of a block, a multiple of STK_PACK_LANES */
    int64_t o_step, c_step, y_step, x_step; /* elements from a block of o, a block of c, a tap to the next */
    size_t bytes;
    /* The weights lie as [C,KH,KW,O], and their taps come from the last to the first: a gradient of data that is a
     * convolution of its own. STK_PACK_IN_PAIRS only. */
    bool is_turned;
} stk_conv_packing;

/* dtype: F32, or BF16 for all but gradients of weights, which stay f32. For n_threads of oneDNN's, or for 1, the
 * caller's: then several of them run side by side. Returned: free with stk_onednn_conv_free. onednn must live longer.
 * STK_UNSUPPORTED where oneDNN has none. packing: NULL, or out: what a run wants in place of the weights; of kind
 * STK_PACK_NONE, the weights. shape's ReLU is not done: oneDNN makes a NaN 0 there. */
stk_status stk_onednn_conv_new(const stk_onednn *onednn, const stk_conv_shape *shape, stk_dtype dtype, int n_threads,
                               stk_conv_packing *packing, stk_onednn_conv **out);
void stk_onednn_conv_free(stk_onednn_conv *conv); /* accepts NULL */
/* Bytes of 64-byte aligned scratch memory that a run needs. */
size_t stk_onednn_conv_scratch_bytes(const stk_onednn_conv *conv);
/* "onednn jit:avx2 2 reorders". Borrowed from conv. */
const char *stk_onednn_conv_impl(const stk_onednn_conv *conv);
/* Whether it was made for one filter a channel, and is not what oneDNN has for groups of any size. */
bool stk_onednn_conv_is_depthwise(const stk_onednn_conv *conv);
/* The two that the pass reads, and the third, which it writes. bias [O] f32, where shape has one. */
stk_status stk_onednn_conv_run(const stk_onednn_conv *conv, void *x, void *weight, void *bias, void *y, void *scratch);

/* --- products --- */

/* c [m,n] = a b, or c += a b where it adds; element (i, l) of a is at a[i * a_step + l], or a[l * a_step + i] where it
 * is transposed, and so on for b; c is at c[i * c_step + j]. */
typedef struct stk_sgemm {
    int64_t m, n, k;
    bool transpose_a, transpose_b, adds;
    const float *a, *b;
    int64_t a_step, b_step, c_step;
    const float *bias; /* [n], for matmul_onednn.h alone; NULL: none */
    float *c;
} stk_sgemm;

/* On one thread, the caller's: the parts of a kernel call it side by side. */
stk_status stk_onednn_sgemm(const stk_sgemm *g);

/* Signals wait while oneDNN computes. Its products point the stack pointer into the heap while they run, where a
 * signal's frame would be written over other memory (oneDNN issue 4845, in all versions up to 3.11).
 */
/* Of the calling thread; before gets those that waited already. Signals of faults come as ever: the code itself causes
 * them. */
void stk_hold_signals(sigset_t *before);
void stk_let_signals_come(const sigset_t *before);

#endif
