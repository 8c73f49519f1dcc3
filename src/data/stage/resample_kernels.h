/* The inner loops of resizing u8 images, for each instruction set. All give the same bits: integers only. */
#ifndef STK_DATA_STAGE_RESAMPLE_KERNELS_H
#define STK_DATA_STAGE_RESAMPLE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* Outputs and values are made in whole groups; rows have room for them. */
enum { STK_COLUMN_TAPS = 2, STK_COLUMN_GROUP = 4, STK_ROW_GROUP = 32 };

/* The taps of all columns. */
typedef struct stk_columns {
    const int32_t *first;  /* [n], the first pixel that counts */
    const int16_t *weight; /* [n, n_taps], 0 beyond those that count */
    /* RGB: the same, as it is multiplied: [n / 4, 2, n_taps / 2, 2, 8]: of four outputs 0 and 2, then 1 and 3; of each
     * taps t and t + 1 three times, then 0 0. 64-byte aligned. NULL for other channels */
    const int16_t *paired;
    int n_taps; /* a multiple of STK_COLUMN_TAPS */
    int n;      /* a multiple of STK_COLUMN_GROUP */
    int channels;
    int shift;         /* sums are rounded and shifted right by so much, */
    int16_t low, high; /* and kept between these */
} stk_columns;

typedef struct stk_resample_kernels {
    /* src [width, channels] -> dst [n, channels] */
    void (*columns)(const uint8_t *src, const stk_columns *c, int16_t *dst);
    /* dst[i] = sum of weight[k] * row[k][i], rounded, shifted right and kept within u8. n is a multiple of
     * STK_ROW_GROUP. */
    void (*rows)(const int16_t *const *row, const int16_t *weight, int n_rows, int n, int shift, uint8_t *dst);
} stk_resample_kernels;

extern const stk_resample_kernels stk_resample_kernels_plain;
#ifdef __x86_64__
extern const stk_resample_kernels stk_resample_kernels_avx2;
extern const stk_resample_kernels stk_resample_kernels_avx512;
#endif
/* The best for this processor, or less where the environment's STOKER_ISA says so. */
const stk_resample_kernels *stk_resample_kernels_choose(void);

#endif
