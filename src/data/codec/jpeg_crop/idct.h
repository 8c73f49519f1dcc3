/* Constants of the "slow but accurate" integer transform (Loeffler, Ligtenberg & Moschytz 1989, as in libjpeg's
 * jidctint.c), 13 bits of fraction, in the pairs that 16-bit multiply-add takes.
 *
 * Damaged files may drive values beyond 16 bits. What then happens is what libjpeg-turbo's SSE2 and AVX2 code does:
 * products with the quantisation table and sums of two inputs wrap, results of a pass saturate.
 */
#ifndef STK_DATA_CODEC_JPEG_CROP_IDCT_H
#define STK_DATA_CODEC_JPEG_CROP_IDCT_H

enum {
    F_0_298 = 2446,
    F_0_390 = 3196,
    F_0_541 = 4433,
    F_0_765 = 6270,
    F_0_899 = 7373,
    F_1_175 = 9633,
    F_1_501 = 12299,
    F_1_847 = 15137,
    F_1_961 = 16069,
    F_2_053 = 16819,
    F_2_562 = 20995,
    F_3_072 = 25172,
    SHIFT_COLUMNS = 13 - 2, /* two bits of fraction stay between the passes */
    SHIFT_ROWS = 13 + 2 + 3
};

#endif
