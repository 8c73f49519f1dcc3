#include "device/cpu/matmul.h"

#include <stdbool.h>
#include <string.h>

#include "device/cpu/parallel.h"

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
#include "device/cpu/matmul_tmpl.h"
#undef T
#undef NAME

#define T       double
#define NAME(x) x##_f64
#include "device/cpu/matmul_tmpl.h"

const stk_gemm_table STK_ISA_NAME(stk_gemm) = {
    .f32 = {ROWS, COLS_f32, run_f32, packed_b_bytes_f32, (size_t)MC_f32 *KC_f32 * sizeof(float)},
    .f64 = {ROWS, COLS_f64, run_f64, packed_b_bytes_f64, (size_t)MC_f64 *KC_f64 * sizeof(double)},
};
