/* What differs between oneDNN 2.6 and 3.x, and nothing else. onednn_v2.c and onednn_v3.c give it; the header that the
 * build finds decides which of the two has content. Private to onednn*.c.
 */
#ifndef STK_DEVICE_CPU_ONEDNN_ONEDNN_VERSION_H
#define STK_DEVICE_CPU_ONEDNN_ONEDNN_VERSION_H

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <stdbool.h>

#include "device/cpu/onednn/onednn.h"

/* A memory descriptor that we own, and how both versions take one. */
typedef struct stk_md {
    dnnl_memory_desc_t desc; /* 2.x: the struct itself; 3.x: a handle */
} stk_md;
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t stk_md_ref;
#else
typedef const dnnl_memory_desc_t *stk_md_ref;
#endif

/* strides NULL: the format is oneDNN's choice. Clear with stk_md_clear, which accepts a zeroed one. */
dnnl_status_t stk_md_init(stk_md *md, int n_dims, const dnnl_dims_t dims, const dnnl_dim_t *strides,
                          dnnl_data_type_t type);
stk_md_ref stk_md_get(const stk_md *md);
void stk_md_clear(stk_md *md);

/* How a format that oneDNN chose lies in memory: steps from a block to the next and what a block is made of, both by
 * dimension. False where it is no such format. */
enum { STK_MD_BLOCKS = 4 };
typedef struct stk_md_format {
    int n_dims, n_blocks;
    dnnl_dims_t steps, padded_dims;
    int64_t block_size[STK_MD_BLOCKS], block_dim[STK_MD_BLOCKS];
} stk_md_format;
bool stk_md_get_format(stk_md_ref md, stk_md_format *out);

/* Descriptors and sizes as oneDNN wants them: dilates are 0 for dense kernels. */
typedef struct stk_dnnl_conv {
    stk_conv_pass pass;
    stk_md_ref x, weight, y;
    stk_md_ref read_weight; /* as the forward pass reads it: weight, but where its gradient is f32 and x is not */
    stk_md_ref bias;        /* NULL: none; of the forward pass alone */
    dnnl_dims_t strides, dilates, pad_low, pad_high;
} stk_dnnl_conv;
dnnl_status_t stk_dnnl_conv_pd(dnnl_engine_t engine, const stk_dnnl_conv *conv, const_dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out);

/* c = a b, plus a bias [1,n] where that is not NULL; sums that attr asks for are added by stk_dnnl_add_sum. */
dnnl_status_t stk_dnnl_matmul_pd(dnnl_engine_t engine, stk_md_ref a, stk_md_ref b, stk_md_ref bias, stk_md_ref c,
                                 const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out);
/* What is written is added to what is there. */
dnnl_status_t stk_dnnl_add_sum(dnnl_post_ops_t ops);

struct stk_onednn {
    dnnl_engine_t engine;
    char version[24];
};

/* What a primitive is, which oneDNN tells by its name alone. */
typedef struct stk_dnnl_kind {
    const char *name;             /* "jit_dw:avx2"; borrowed from the descriptor */
    bool is_depthwise, is_brgemm; /* its ways for one filter a channel; its newer products */
} stk_dnnl_kind;
stk_dnnl_kind stk_dnnl_kind_of(const_dnnl_primitive_desc_t pd);

/* The status of a call for `what`, with its text. */
stk_status stk_onednn_check(dnnl_status_t status, const char *what);

#endif
