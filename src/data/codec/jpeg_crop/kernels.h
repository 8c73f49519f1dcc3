/* The decoder's inner loops, for each instruction set. All give the same bits.
 *
 * Rows are u8. Where a kernel may read or write beyond n samples it says so; the decoder's own rows have room for it.
 */
#ifndef STK_DATA_CODEC_JPEG_CROP_KERNELS_H
#define STK_DATA_CODEC_JPEG_CROP_KERNELS_H

#include "data/codec/jpeg_crop/scan.h"

enum {
    STK_JPEG_PAD = 64,  /* bytes at each end of a row that kernels may touch */
    STK_JPEG_GROUP = 4, /* blocks that the transform does at once, at most */
};

typedef struct stk_jpeg_kernels {
    const char *name;
    /* Copies bytes of a scan, FF 00 becoming FF, until a marker, the end of *src, or `room` bytes (63 more may be
     * written, and counted). *src moves on; a marker is left unread. Returns the number of bytes. */
    size_t (*unstuff)(uint8_t *dst, size_t room, const uint8_t **src, const uint8_t *end);
    /* Decodes n MCUs, within one restart interval. False: damaged. */
    bool (*store)(stk_jpeg_scan *scan, int n_mcus);
    bool (*parse)(stk_jpeg_scan *scan, int n_mcus); /* values of AC coefficients are dropped */
    /* Inverse DCT of n_blocks blocks side by side, which are cleared. Whole groups: up to STK_JPEG_GROUP - 1
     * blocks more are read, cleared and written. */
    void (*idct)(int16_t *coefs, int n_blocks, const uint16_t quant[64], uint8_t *dst, size_t stride);
    /* Fancy upsampling: n samples become 2 n. near[-1..n] and far[-1..n] are read. */
    void (*upsample_h2v1)(const uint8_t *src, int n, uint8_t *dst);
    void (*upsample_h2v2)(const uint8_t *near, const uint8_t *far, int n, uint8_t *dst);
    void (*upsample_h1v2)(const uint8_t *near, const uint8_t *far, bool far_is_above, int n, uint8_t *dst);
    /* dst [n,3]; writes no more than that. */
    void (*rgb)(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int n, uint8_t *dst);
    void (*grey_rgb)(const uint8_t *y, int n, uint8_t *dst);
} stk_jpeg_kernels;

/* The best for this processor, or less where the environment's STOKER_ISA says so (as for the cpu device). */
const stk_jpeg_kernels *stk_jpeg_kernels_choose(void);

extern const stk_jpeg_kernels stk_jpeg_kernels_plain;
#ifdef __x86_64__
extern const stk_jpeg_kernels stk_jpeg_kernels_avx2;
extern const stk_jpeg_kernels stk_jpeg_kernels_avx512; /* from Ice Lake and Zen 4 on: VBMI2 */
#endif

/* What the tables above are made of. */
#define STK_JPEG_DECLARE_KERNELS(isa)                                                                                  \
    size_t stk_jpeg_unstuff_##isa(uint8_t *dst, size_t room, const uint8_t **src, const uint8_t *end);                 \
    bool stk_jpeg_store_##isa(stk_jpeg_scan *scan, int n_mcus);                                                        \
    bool stk_jpeg_parse_##isa(stk_jpeg_scan *scan, int n_mcus);                                                        \
    void stk_jpeg_idct_##isa(int16_t *coefs, int n_blocks, const uint16_t quant[64], uint8_t *dst, size_t stride);     \
    void stk_jpeg_upsample_h2v1_##isa(const uint8_t *src, int n, uint8_t *dst);                                        \
    void stk_jpeg_upsample_h2v2_##isa(const uint8_t *near, const uint8_t *far, int n, uint8_t *dst);                   \
    void stk_jpeg_upsample_h1v2_##isa(const uint8_t *near, const uint8_t *far, bool far_is_above, int n,               \
                                      uint8_t *dst);                                                                   \
    void stk_jpeg_rgb_##isa(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int n, uint8_t *dst);              \
    void stk_jpeg_grey_rgb_##isa(const uint8_t *y, int n, uint8_t *dst);
STK_JPEG_DECLARE_KERNELS(plain)
STK_JPEG_DECLARE_KERNELS(avx2)
STK_JPEG_DECLARE_KERNELS(avx512)

#define STK_JPEG_KERNELS_TABLE(isa)                                                                                    \
    {                                                                                                                  \
#isa, stk_jpeg_unstuff_##isa, stk_jpeg_store_##isa, stk_jpeg_parse_##isa, stk_jpeg_idct_##isa,                 \
            stk_jpeg_upsample_h2v1_##isa, stk_jpeg_upsample_h2v2_##isa, stk_jpeg_upsample_h1v2_##isa,                  \
            stk_jpeg_rgb_##isa, stk_jpeg_grey_rgb_##isa                                                                \
    }

#endif
