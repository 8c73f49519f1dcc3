#include "data/codec/jpeg_crop/scan.h"

#include <limits.h>
#include <string.h>

#include "data/codec/jpeg_crop/kernels.h"

/* A marker, after any fill bytes, or the file's end: there are no more data to un-stuff. FF ... FF 00 is data to the
 * library and the end to us, so that such a file is refused. */
static bool at_end(const stk_jpeg_scan *s)
{
    return s->src_end - s->src < 2 || (s->src[0] == 0xFF && s->src[1] != 0);
}

/* Fills the window from `from` on. */
static void fill(stk_jpeg_scan *s, uint8_t *from)
{
    s->end = from + s->kernels->unstuff(from, s->chunk, &s->src, s->src_end);
    s->ended = at_end(s);
    if (s->ended) memset((uint8_t *)(uintptr_t)s->end, 0, STK_JPEG_LOOK_AHEAD);
    /* At the data's end the bit buffer may be ahead, by up to 8 bytes. */
    s->limit = s->ended ? s->end + 8 : s->end - STK_JPEG_LOOK_AHEAD;
}

static void open_window(stk_jpeg_scan *s, const uint8_t *src)
{
    uint8_t *start = s->window + STK_JPEG_LOOK_BACK;
    memset(s->window, 0, STK_JPEG_LOOK_BACK);
    s->src = s->mark_src = src;
    s->mark = start;
    s->bits = (stk_jpeg_bits){.at = start};
    fill(s, start);
}

/* Bits of the window's data that have not been taken; negative: more were taken than there are. */
static ptrdiff_t bits_left(const stk_jpeg_scan *s)
{
    return (s->end - s->bits.at) * 8 + (ptrdiff_t)s->bits.count;
}

static void move_mark(stk_jpeg_scan *s, const uint8_t *to)
{
    size_t n = (size_t)(to - s->mark), n_stuffed = 0;
    for (size_t i = 0; i < n; i++)
        n_stuffed += s->mark[i] == 0xFF;
    s->mark_src += n + n_stuffed;
    s->mark = to;
}

bool stk_jpeg_scan_more(stk_jpeg_scan *s, stk_jpeg_bits *bits)
{
    while (bits->at > s->limit) {
        if (s->ended) return false;
        const uint8_t *keep = bits->at - STK_JPEG_LOOK_BACK;
        size_t n = (size_t)(s->end - keep);
        ptrdiff_t shift = keep - s->window;
        if (s->marks) {
            if (s->mark < keep) move_mark(s, keep);
            s->mark -= shift;
        }
        memmove(s->window, keep, n);
        bits->at -= shift;
        fill(s, s->window + n);
    }
    return true;
}

void stk_jpeg_scan_start_at(stk_jpeg_scan *s, stk_span encoded, size_t offset, int bit, int64_t i_mcu, int interval,
                            const int dc[3], size_t n_likely)
{
    s->chunk = n_likely < STK_JPEG_CHUNK ? n_likely : STK_JPEG_CHUNK;
    s->src_end = encoded.data + encoded.n;
    s->interval = interval;
    s->mcus_left = interval ? interval - (int)(i_mcu % interval) : INT_MAX;
    s->i_restart = interval ? (int)(i_mcu / interval & 7) : 0;
    memcpy(s->dc, dc, sizeof(s->dc));
    open_window(s, encoded.data + offset);
    stk_jpeg_refill(&s->bits);
    stk_jpeg_drop(&s->bits, (uint64_t)bit);
}

/* All data must have been taken, but for the padding of the last byte, and this marker must follow. */
static bool take_marker(stk_jpeg_scan *s, int marker)
{
    while (!s->ended && bits_left(s) < 8 * STK_JPEG_LOOK_AHEAD) {
        s->limit = s->window; /* more, whether a block needs it or not */
        (void)stk_jpeg_scan_more(s, &s->bits);
    }
    if (!s->ended || bits_left(s) < 0 || bits_left(s) >= 8) return false;
    const uint8_t *p = s->src;
    while (s->src_end - p >= 2 && p[0] == 0xFF && p[1] == 0xFF)
        p++;
    if (s->src_end - p < 2 || p[0] != 0xFF || p[1] != marker) return false;
    s->src = p + 2;
    return true;
}

/* T.81, F.2.2.5 */
static bool restart(stk_jpeg_scan *s)
{
    if (!take_marker(s, 0xD0 + s->i_restart)) return false;
    s->i_restart = (s->i_restart + 1) & 7;
    s->mcus_left = s->interval;
    s->dc[0] = s->dc[1] = s->dc[2] = 0;
    open_window(s, s->src);
    return true;
}

bool stk_jpeg_scan_mcus(stk_jpeg_scan *s, int n, bool store)
{
    while (n > 0) {
        if (!s->mcus_left && !restart(s)) return false;
        int part = n < s->mcus_left ? n : s->mcus_left;
        if (!(store ? s->kernels->store : s->kernels->parse)(s, part)) return false;
        if (s->interval) s->mcus_left -= part;
        n -= part;
        if (s->ended && bits_left(s) < 0) return false;
        /* Damage only; the library lets predictions run until they overflow. */
        for (int i = 0; i < 3; i++)
            if (s->dc[i] > 1 << 29 || s->dc[i] < -(1 << 29)) return false;
    }
    return true;
}

bool stk_jpeg_scan_finish(stk_jpeg_scan *s)
{
    return take_marker(s, 0xD9);
}

bool stk_jpeg_scan_place(stk_jpeg_scan *s, stk_span encoded, size_t *offset, int *bit)
{
    if (!s->mcus_left && !restart(s)) return false;
    move_mark(s, s->bits.at - (s->bits.count + 7) / 8);
    *offset = (size_t)(s->mark_src - encoded.data);
    *bit = (int)(-s->bits.count & 7);
    return true;
}

int stk_jpeg_scan_slow_ac(stk_jpeg_bits *bits, const stk_jpeg_ac_table *ac, int k, uint64_t n_back, int16_t *coefs)
{
    uint64_t ahead = bits->count + n_back;
    const uint8_t *p = bits->at - (ahead + 7) / 8;
    *bits = (stk_jpeg_bits){.at = p, .word = 0, .count = 0};
    stk_jpeg_refill(bits);
    stk_jpeg_drop(bits, -ahead & 7);
    stk_jpeg_refill(bits);
    int one = ac->one[bits->word >> (64 - STK_JPEG_INDEX_BITS)], n_code = one & 255, symbol = one >> 8;
    if (!one) symbol = stk_jpeg_slow_symbol(&ac->codes, (uint32_t)(bits->word >> 48), &n_code);
    if (symbol < 0) return -1;
    int size = symbol & 15, run = symbol >> 4;
    stk_jpeg_drop(bits, (uint64_t)n_code);
    /* Runs of end-of-block exist in progressive files only; the library takes them as one. */
    if (!size && run != 15) return 64;
    k += run + 1;
    if (k > 63) return -1;
    if (size && coefs) coefs[stk_jpeg_natural_order[k]] = (int16_t)stk_jpeg_value(bits->word, (uint32_t)(63 - size));
    stk_jpeg_drop(bits, (uint64_t)size);
    return k;
}

int stk_jpeg_scan_slow_dc(stk_jpeg_bits *bits, const stk_jpeg_dc_table *dc)
{
    int n_code, size = stk_jpeg_slow_symbol(&dc->codes, (uint32_t)(bits->word >> 48), &n_code);
    if (size < 0) return INT32_MIN;
    stk_jpeg_drop(bits, (uint64_t)n_code);
    int value = size ? stk_jpeg_value(bits->word, (uint32_t)(63 - size)) : 0;
    stk_jpeg_drop(bits, (uint64_t)size);
    return value;
}
