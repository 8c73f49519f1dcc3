#include "device/cpu/rows/gather.h"

#define ADD_ROWS(suffix, T)                                                                                            \
    static void add_##suffix(int64_t n_ids, const int32_t *ids, int64_t width, int64_t begin, int64_t end,             \
                             const void *src, void *dst)                                                               \
    {                                                                                                                  \
        for (int64_t i = 0; i < n_ids; i++) {                                                                          \
            const T *from = (const T *)src + i * width;                                                                \
            T *to = (T *)dst + ids[i] * width;                                                                         \
            _Pragma("omp simd") for (int64_t c = begin; c < end; c++) to[c] += from[c];                                \
        }                                                                                                              \
    }

ADD_ROWS(f32, float)
ADD_ROWS(f64, double)

const stk_gather_table STK_ISA_NAME(stk_gather) = {add_f32, add_f64};
