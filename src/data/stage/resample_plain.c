#include "data/common/isa.h"
#include "data/stage/resample_kernels.h"

static inline __attribute__((always_inline)) void mix_columns(const uint8_t *src, const stk_columns *c, int channels,
                                                              int16_t *dst)
{
    const int32_t half = 1 << (c->shift - 1);
    for (int i = 0; i < c->n; i++) {
        const uint8_t *at = src + (int64_t)c->first[i] * channels;
        const int16_t *w = c->weight + (int64_t)i * c->n_taps;
        for (int k = 0; k < channels; k++) {
            int32_t sum = half;
            for (int t = 0; t < c->n_taps; t++)
                sum += at[t * channels + k] * w[t];
            sum >>= c->shift;
            *dst++ = (int16_t)(sum < c->low ? c->low : sum > c->high ? c->high : sum);
        }
    }
}

static void columns(const uint8_t *src, const stk_columns *c, int16_t *dst)
{
    switch (c->channels) {
    case 1: mix_columns(src, c, 1, dst); break;
    case 3: mix_columns(src, c, 3, dst); break;
    default: mix_columns(src, c, c->channels, dst);
    }
}

static void rows(const int16_t *const *row, const int16_t *weight, int n_rows, int n, int shift, uint8_t *dst)
{
    for (int i = 0; i < n; i += STK_ROW_GROUP) {
        int32_t sum[STK_ROW_GROUP];
        for (int k = 0; k < STK_ROW_GROUP; k++)
            sum[k] = 1 << (shift - 1);
        for (int r = 0; r < n_rows; r++)
            for (int k = 0; k < STK_ROW_GROUP; k++)
                sum[k] += row[r][i + k] * weight[r];
        for (int k = 0; k < STK_ROW_GROUP; k++) {
            int32_t x = sum[k] >> shift;
            dst[i + k] = (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
        }
    }
}

const stk_resample_kernels stk_resample_kernels_plain = {columns, rows};

const stk_resample_kernels *stk_resample_kernels_choose(void)
{
#ifdef __x86_64__
    switch (stk_data_isa()) {
    case STK_DATA_AVX512: return &stk_resample_kernels_avx512;
    case STK_DATA_AVX2: return &stk_resample_kernels_avx2;
    case STK_DATA_PLAIN: break;
    }
#endif
    return &stk_resample_kernels_plain;
}
