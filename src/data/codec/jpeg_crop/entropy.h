/* The loops over MCUs, blocks and coefficients, included once for each instruction set with NAME(x) defined. */
#include "data/codec/jpeg_crop/kernels.h"

#define LOOK(word) ((word) >> (64 - STK_JPEG_INDEX_BITS))
#define COLD(x)    __builtin_expect(!!(x), 0)

/* By position in the file; positions beyond the block mean nothing and fall on 0, which is written last. */
static const uint8_t place[64 + 64 + 32] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

static inline __attribute__((always_inline)) bool read_dc(stk_jpeg_bits *b, const stk_jpeg_dc_table *t, int *pred)
{
    uint32_t e = t->entry[LOOK(b->word)];
    int difference;
    if (COLD(!e)) {
        stk_jpeg_bits copy = *b;
        difference = stk_jpeg_scan_slow_dc(&copy, t);
        *b = copy;
        if (difference == INT32_MIN) return false;
        stk_jpeg_refill(b);
    } else {
        difference = stk_jpeg_value(b->word << (e >> 8 & 63), e >> 16);
        stk_jpeg_drop(b, e & 63);
    }
    *pred += difference;
    return true;
}

/* The value of 64 - rest bits, at least 1, that word starts with (T.81, F.2.2.1, EXTEND): less 2^size - 1 where the
 * first bit is 0. */
static inline int16_t ac_value(uint64_t word, uint64_t rest)
{
    return (int16_t)((word >> rest) - ((uint64_t)((int64_t)~word >> 63) >> rest));
}

/* One symbol the slow way, then on with the fast one. */
static inline __attribute__((always_inline)) bool read_slowly(stk_jpeg_bits *b, const stk_jpeg_ac_table *t, int *k,
                                                              uint64_t n_back, int16_t *coefs)
{
    stk_jpeg_bits copy = *b;
    *k = stk_jpeg_scan_slow_ac(&copy, t, *k, n_back, coefs);
    *b = copy;
    return *k >= 0;
}

static inline __attribute__((always_inline)) bool store_ac(stk_jpeg_bits *b, const stk_jpeg_ac_table *t, int16_t *coefs)
{
    uint64_t k = 0, e = t->store[LOOK(b->word)], word, done;
    /* The next lookup is under way before this one's values are cut out and before bits are refilled: an entry takes
     * 23 bits at most, so that of 56 there are 10 left for the third index. */
#define STEP(refill)                                                                                                   \
    word = b->word;                                                                                                    \
    done = e;                                                                                                          \
    b->word <<= done & 63;                                                                                             \
    b->count -= (uint8_t)done;                                                                                         \
    e = t->store[LOOK(b->word)];                                                                                       \
    refill;                                                                                                            \
    coefs[place[k + (done >> 8 & 255)]] = (int16_t)(done >> 48);                                                       \
    k += done >> 16 & 255;                                                                                             \
    coefs[place[k]] = ac_value(word << (done >> 24 & 63), done >> 32 & 63);                                            \
    if (k >= 63) break;
    for (;;) {
        for (;;) {
            STEP(stk_jpeg_refill(b))
            STEP()
        }
#undef STEP
        uint64_t before = k - (done >> 16 & 255);
        if (k == 63 || before + (done >> 40 & 255) <= 62) return true;
        int at = (int)before;
        if (!read_slowly(b, t, &at, done & 63, coefs)) return false;
        if (at >= 63) return true;
        k = (uint64_t)at;
        stk_jpeg_refill(b);
        e = t->store[LOOK(b->word)];
    }
}

static inline __attribute__((always_inline)) bool parse_ac(stk_jpeg_bits *b, const stk_jpeg_ac_table *t)
{
    uint32_t k = 0, e = t->parse[LOOK(b->word)], done;
#define STEP(refill)                                                                                                   \
    done = e;                                                                                                          \
    b->word <<= done & 63;                                                                                             \
    b->count -= (uint8_t)done;                                                                                         \
    e = t->parse[LOOK(b->word)];                                                                                       \
    refill;                                                                                                            \
    k += done >> 8 & 255;                                                                                              \
    if (k >= 63) break;
    for (;;) {
        for (;;) {
            STEP(stk_jpeg_refill(b))
            STEP()
        }
#undef STEP
        uint32_t before = k - (done >> 8 & 255);
        if (k == 63 || before + (done >> 16) <= 62) return true;
        int at = (int)before;
        if (!read_slowly(b, t, &at, done & 63, NULL)) return false;
        if (at >= 63) return true;
        k = (uint32_t)at;
        stk_jpeg_refill(b);
        e = t->parse[LOOK(b->word)];
    }
}

bool NAME(stk_jpeg_store)(stk_jpeg_scan *scan, int n_mcus)
{
    stk_jpeg_bits b = scan->bits;
    for (; n_mcus > 0; n_mcus--)
        for (int i = 0; i < scan->n_blocks; i++) {
            stk_jpeg_scan_block *block = &scan->block[i];
            if (COLD(b.at > scan->limit)) {
                stk_jpeg_bits copy = b;
                if (!stk_jpeg_scan_more(scan, &copy)) return false;
                b = copy;
            }
            stk_jpeg_refill(&b);
            if (!read_dc(&b, block->dc, &scan->dc[block->i_component])) return false;
            if (block->coefs) {
                if (!store_ac(&b, block->ac, block->coefs)) return false;
                block->coefs[0] = (int16_t)scan->dc[block->i_component];
                block->coefs += block->step;
            } else if (!parse_ac(&b, block->ac))
                return false;
        }
    scan->bits = b;
    return true;
}

bool NAME(stk_jpeg_parse)(stk_jpeg_scan *scan, int n_mcus)
{
    stk_jpeg_bits b = scan->bits;
    for (; n_mcus > 0; n_mcus--)
        for (int i = 0; i < scan->n_blocks; i++) {
            const stk_jpeg_scan_block *block = &scan->block[i];
            if (COLD(b.at > scan->limit)) {
                stk_jpeg_bits copy = b;
                if (!stk_jpeg_scan_more(scan, &copy)) return false;
                b = copy;
            }
            stk_jpeg_refill(&b);
            if (!read_dc(&b, block->dc, &scan->dc[block->i_component]) || !parse_ac(&b, block->ac)) return false;
        }
    scan->bits = b;
    return true;
}

#undef LOOK
#undef COLD
