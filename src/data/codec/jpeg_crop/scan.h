/* The entropy-coded data of one baseline scan (T.81, F.2): a window of un-stuffed bytes over the file, moved on as it
 * is read, and a bit buffer over that window.
 *
 *    file    ....FF 00..............FF D0..............        stuffed, with restart markers
 *                 |- src reads on from here
 *    window  [16 | bytes read | bytes to come | slack ]        no markers; 0 after the data's end
 *                             |- at: next byte for `word`, which has `count` bits left
 *
 * A block reads at most 64 x 31 bits, so one test a block against `limit` keeps all reads inside the window. At a
 * marker, zeros follow; whoever reads more of them than a byte's padding is refused.
 */
#ifndef STK_DATA_CODEC_JPEG_CROP_SCAN_H
#define STK_DATA_CODEC_JPEG_CROP_SCAN_H

#include "data/codec/jpeg_crop/huffman.h"

enum {
    STK_JPEG_CHUNK = 8192,     /* bytes that are un-stuffed at once */
    STK_JPEG_LOOK_BACK = 16,   /* an entry of several symbols may have to be taken back */
    STK_JPEG_LOOK_AHEAD = 400, /* more than a block and the bit buffer can read */
    STK_JPEG_WINDOW = STK_JPEG_LOOK_BACK + 2 * STK_JPEG_LOOK_AHEAD + STK_JPEG_CHUNK + 64 + STK_JPEG_LOOK_AHEAD
};

typedef struct stk_jpeg_bits {
    const uint8_t *at;
    uint64_t word;  /* the next bits, from the highest */
    uint64_t count; /* how many of them are valid; those below agree with the bytes from `at`, or are 0 */
} stk_jpeg_bits;

/* A block of the MCU. */
typedef struct stk_jpeg_scan_block {
    const stk_jpeg_dc_table *dc;
    const stk_jpeg_ac_table *ac;
    int i_component;
    int16_t *coefs; /* natural order, 0 before; NULL: always passed over. Moved on by `step` each MCU */
    size_t step;
} stk_jpeg_scan_block;

typedef struct stk_jpeg_scan {
    stk_jpeg_bits bits;
    const uint8_t *limit; /* bits.at of a block's start may not be beyond */
    const uint8_t *end;   /* of the data in the window */
    int dc[3];            /* predictions */
    int n_blocks;
    stk_jpeg_scan_block block[6];

    const struct stk_jpeg_kernels *kernels;
    const uint8_t *src, *src_end;
    size_t chunk;                   /* bytes that are un-stuffed at once */
    bool ended;                     /* src is at a marker or at the file's end: no data after `end` */
    int interval, mcus_left;        /* to the next restart */
    int i_restart;                  /* number of the next marker, 0-7 */
    const uint8_t *mark, *mark_src; /* the same byte in window and file, for stk_jpeg_scan_place */
    bool marks;                     /* places are wanted */
    uint8_t window[STK_JPEG_WINDOW] __attribute__((aligned(64)));
} stk_jpeg_scan;

/* Where MCU number i_mcu starts: at bit `bit` of the file's byte `offset`, with these predictions. The caller has set
 * kernels, n_blocks, block and marks. n_likely: that many bytes are un-stuffed at once, at most STK_JPEG_CHUNK. */
void stk_jpeg_scan_start_at(stk_jpeg_scan *scan, stk_span encoded, size_t offset, int bit, int64_t i_mcu, int interval,
                            const int dc[3], size_t n_likely);
/* n MCUs, over restarts. False: damaged. */
bool stk_jpeg_scan_mcus(stk_jpeg_scan *scan, int n, bool store);
/* After the last MCU: only the end-of-image marker may follow. */
bool stk_jpeg_scan_finish(stk_jpeg_scan *scan);
/* Where the next MCU starts in the file, for stk_jpeg_scan_start_at; reads a restart marker that stands before it.
 * False: damaged. */
bool stk_jpeg_scan_place(stk_jpeg_scan *scan, stk_span encoded, size_t *offset, int *bit);

/* For the kernels. Moves the window on; bits->at moves with it. False: read beyond the data. */
bool stk_jpeg_scan_more(stk_jpeg_scan *scan, stk_jpeg_bits *bits);
/* Takes back n_back bits, reads one AC symbol the slow way, and stores its value where coefs is not NULL. Returns the
 * new k (63: complete, 64 and more: end of block) or -1 for damage. */
int stk_jpeg_scan_slow_ac(stk_jpeg_bits *bits, const stk_jpeg_ac_table *ac, int k, uint64_t n_back, int16_t *coefs);
/* The same for a DC difference, of which no bit has been taken; INT32_MIN for damage. */
int stk_jpeg_scan_slow_dc(stk_jpeg_bits *bits, const stk_jpeg_dc_table *dc);

static inline uint64_t stk_jpeg_load_be64(const uint8_t *p)
{
    uint64_t x;
    __builtin_memcpy(&x, p, sizeof(x));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

/* At least 56 valid bits. After F. Giesen, "Reading bits in far too many ways", 2018, variant 4. */
static inline void stk_jpeg_refill(stk_jpeg_bits *b)
{
    b->word |= stk_jpeg_load_be64(b->at) >> b->count;
    b->at += (63 - b->count) >> 3;
    b->count |= 56;
}

static inline void stk_jpeg_drop(stk_jpeg_bits *b, uint64_t n)
{
    b->word <<= n;
    b->count -= n;
}

/* The value that word starts with (T.81, EXTEND), without a branch. */
static inline int stk_jpeg_value(uint64_t word, uint32_t rest)
{
    uint64_t negative = (uint64_t)((int64_t)~word >> 63);
    return (int)(((word ^ negative) >> 1 >> rest) ^ negative) - (int)negative;
}

#endif
