#include "device/cpu/matmul/matmul.h"

#include <stdbool.h>
#include <string.h>

#include "device/cpu/simd/register_tile.h"
#include "device/cpu/threads/parallel.h"

/* Tiles of LOW_ROWS are as fast. */
enum { LOW_ROWS = 4 };
/* Steps of k, 8 KiB of f32 on AVX-512: the best of 16 to 512 in a recurrent layer. */
enum { AHEAD = 64 };

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
