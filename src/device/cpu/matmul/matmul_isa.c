#include "device/cpu/matmul/matmul.h"

#include <stdbool.h>
#include <string.h>

#include "device/cpu/threads/parallel.h"

/* Registers: ROWS x 2 sums, two of b and one of a. Eight sums hide the latency of two multiply-adds a cycle, so that
 * tiles of LOW_ROWS are as fast. */
#if defined(__AVX512F__)
enum { VEC_BYTES = 64, ROWS = 8 };
#elif defined(__AVX2__)
enum { VEC_BYTES = 32, ROWS = 6 };
#else
enum { VEC_BYTES = 16, ROWS = 6 };
#endif

enum { LOW_ROWS = 4 };

#define T       float
#define NAME(x) x##_f32
#include "device/cpu/matmul/matmul_tmpl.h"

#include "device/cpu/matmul/matmul_block_tmpl.h"
#undef T
#undef NAME

#define T       double
#define NAME(x) x##_f64
#include "device/cpu/matmul/matmul_tmpl.h"

#include "device/cpu/matmul/matmul_block_tmpl.h"

#define FNS(x, T)                                                                                                      \
    {                                                                                                                  \
        LOW_ROWS, COLS_##x, columns_at_once_##x, has_small_a_##x, shares_rows_##x, pack_share_##x, multiply_rows_##x,  \
            multiply_columns_##x, multiply_panels_##x, packed_b_bytes_##x, (size_t)MC_##x *KC_##x * sizeof(T),         \
            (size_t)KC_##x *COLS_##x * sizeof(T), block_elements_##x, pack_block_##x, multiply_block_##x               \
    }

const stk_gemm_table STK_ISA_NAME(stk_gemm) = {
    .f32 = FNS(f32, float),
    .f64 = FNS(f64, double),
};
