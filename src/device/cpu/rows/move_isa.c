#include "device/cpu/rows/move.h"

#include <string.h>

enum { TILE = 8 };

#define MOVE(T)                                                                                                        \
    static void strided_##T(int64_t n, void *dst, int64_t dst_stride, const void *src, int64_t src_stride)             \
    {                                                                                                                  \
        T *y = dst;                                                                                                    \
        const T *x = src;                                                                                              \
        if (dst_stride == 1 && src_stride == 1) {                                                                      \
            memcpy(dst, src, (size_t)n * sizeof(T));                                                                   \
        } else if (dst_stride == 1 && src_stride == 0) {                                                               \
            T a = *x;                                                                                                  \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = a;                                              \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                                            \
                y[i * dst_stride] = x[i * src_stride];                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void transpose_##T(int64_t n_rows, int64_t n_cols, void *dst, int64_t dst_stride, const void *src,          \
                              int64_t src_stride)                                                                      \
    {                                                                                                                  \
        T *y = dst;                                                                                                    \
        const T *x = src;                                                                                              \
        for (int64_t r = 0; r < n_rows; r += TILE) {                                                                   \
            int64_t r_end = r + TILE < n_rows ? r + TILE : n_rows;                                                     \
            for (int64_t c = 0; c < n_cols; c += TILE) {                                                               \
                int64_t c_end = c + TILE < n_cols ? c + TILE : n_cols;                                                 \
                for (int64_t i = r; i < r_end; i++)                                                                    \
                    for (int64_t j = c; j < c_end; j++)                                                                \
                        y[i * dst_stride + j] = x[j * src_stride + i];                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }

MOVE(uint8_t)
MOVE(uint16_t)
MOVE(uint32_t)
MOVE(uint64_t)

const stk_move_table STK_ISA_NAME(stk_move) = {
    .strided = {strided_uint8_t, strided_uint16_t, strided_uint32_t, strided_uint64_t},
    .transpose = {transpose_uint8_t, transpose_uint16_t, transpose_uint32_t, transpose_uint64_t},
};
