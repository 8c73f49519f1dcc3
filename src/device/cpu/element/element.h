/* Loops over elements, one for each instruction and dtype: what the interpreter of element-wise programs calls on each
 * block. dst may be the same memory as an operand of the same element size.
 */
#ifndef STK_DEVICE_CPU_ELEMENT_ELEMENT_H
#define STK_DEVICE_CPU_ELEMENT_ELEMENT_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

typedef void (*stk_element_fn)(int64_t n, void *dst, const void *const *src);

/* Elements first .. first+n-1 of a tensor whose rows (along dimension 0) have n_columns elements. */
typedef struct stk_dropout_args {
    uint64_t key;
    int64_t sample, n_columns;
    double rate;
} stk_dropout_args;

typedef void (*stk_dropout_fn)(const stk_dropout_args *args, int64_t first, int64_t n, void *dst, const void *src);

/* What has one loop although it is some instructions of a group: in bf16, and in f32. A gradient follows its function.
 */
typedef enum stk_whole {
    STK_WHOLE_gelu,      /* of x */
    STK_WHOLE_gelu_grad, /* of x and dy */
    STK_WHOLE_gelu_tanh,
    STK_WHOLE_gelu_tanh_grad,
    STK_WHOLE_gelu_f32,
    STK_WHOLE_gelu_f32_grad,
    STK_WHOLE_gelu_tanh_f32,
    STK_WHOLE_gelu_tanh_f32_grad,
    STK_N_WHOLE
} stk_whole;

/* Where a group has both of them of one x: what they have in common, and what is left of each. */
typedef enum stk_whole_step {
    STK_WHOLE_ALONE,
    STK_WHOLE_SHARE, /* of x, to f32 */
    STK_WHOLE_REST,  /* of x and the share; of x, dy and the share */
    STK_N_WHOLE_STEPS
} stk_whole_step;

/* Empty where the op is not for that dtype. Log2 of the element's bytes is an index where bits are only moved. */
typedef struct stk_element_table {
    stk_element_fn unary[STK_N_UNARY][STK_N_DTYPES];
    stk_element_fn binary[STK_N_BINARY][STK_N_DTYPES];
    /* From f32 to f32, the result rounded to what bf16 has. Empty where that changes nothing, and for some others. */
    stk_element_fn unary_bf16[STK_N_UNARY], binary_bf16[STK_N_BINARY];
    /* The same, by how many operands, the first ones, are stored as bf16, and whether the result is. Of few ops. */
    stk_element_fn binary_stored[STK_N_BINARY][3][2];
    /* To bf16, rounded once; by whether x and dy are stored as bf16 or are f32. And of f32 to f32. */
    stk_element_fn whole[STK_N_WHOLE][STK_N_WHOLE_STEPS][2];
    stk_element_fn store_bf16;                           /* to bf16, of f32 that is rounded already */
    stk_element_fn compare[STK_N_COMPARE][STK_N_DTYPES]; /* to bool */
    stk_element_fn cast[STK_N_DTYPES][STK_N_DTYPES];     /* from, to; the 16-bit floats from and to f32 only */
    stk_element_fn select[4];                            /* src: condition, a, b */
    /* dst[i] = src[i * stride]. */
    void (*gather[4])(int64_t n, void *dst, const void *src, int64_t stride);
    stk_dropout_fn dropout_f32, dropout_f64;
    /* Rounded to what bf16 has; by whether the operand is stored as bf16 or is f32, and whether the result is. */
    stk_dropout_fn dropout_bf16[2][2];
} stk_element_table;

STK_ISA_TABLE(stk_element_table, stk_element)

/* log2(bytes). */
static inline int stk_dtype_log2(stk_dtype dtype)
{
    size_t bytes = stk_dtype_bytes(dtype);
    return bytes == 8 ? 3 : bytes == 4 ? 2 : bytes == 2 ? 1 : 0;
}

/* value in that dtype, in the lowest bytes. */
uint64_t stk_element_bits(stk_isa isa, stk_dtype dtype, double value);

#endif
