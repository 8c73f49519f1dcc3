#include "data/codec/jpeg_crop/huffman.h"

#include <string.h>

enum { BITS = STK_JPEG_INDEX_BITS, N = STK_JPEG_N_INDEX, MOST = STK_JPEG_ENTRY_BITS, MOST_DC_SIZE = 11 };

/* T.81, annex C. All ones is no legal code, as in libjpeg. */
static bool build_canonical(stk_jpeg_code raw, stk_jpeg_canonical *c)
{
    uint32_t code = 0;
    int i_symbol = 0;
    for (int l = 1; l <= 16; l++) {
        int count = raw.counts[l - 1];
        c->offset[l] = i_symbol - (int)code;
        code += (uint32_t)count;
        i_symbol += count;
        if (count && code >= 1U << l) return false;
        c->limit[l] = code << (16 - l);
        code <<= 1;
    }
    memset(c->symbol, 0, sizeof(c->symbol));
    memcpy(c->symbol, raw.counts + 16, (size_t)raw.n_symbols);
    return true;
}

int stk_jpeg_slow_symbol(const stk_jpeg_canonical *codes, uint32_t top16, int *n_bits)
{
    for (int l = BITS + 1; l <= 16; l++)
        if (top16 < codes->limit[l]) {
            *n_bits = l;
            return codes->symbol[(int)(top16 >> (16 - l)) + codes->offset[l]];
        }
    return -1;
}

/* For each index the one symbol that it starts with: bits | symbol << 8. */
static void fill_one(stk_jpeg_code raw, uint16_t *one)
{
    const uint8_t *symbol = raw.counts + 16;
    int at = 0;
    for (int l = 1; l <= BITS; l++)
        for (int i = 0; i < raw.counts[l - 1]; i++, symbol++) {
            uint16_t entry = (uint16_t)(l | *symbol << 8);
            for (int end = at + (1 << (BITS - l)); at < end; at++)
                one[at] = entry;
        }
    memset(one + at, 0, (size_t)(N - at) * sizeof(one[0]));
}

static bool build_dc(stk_jpeg_code raw, stk_jpeg_dc_table *t)
{
    uint16_t one[N];
    for (int i = 0; i < raw.n_symbols; i++)
        if (raw.counts[16 + i] > MOST_DC_SIZE) return false;
    if (!build_canonical(raw, &t->codes)) return false;
    fill_one(raw, one);
    for (int i = 0; i < N; i++) {
        uint32_t n = one[i] & 255U, size = one[i] >> 8;
        t->entry[i] = n ? (n + size) | n << 8 | (63 - size) << 16 : 0;
    }
    return true;
}

static uint64_t store_entry(uint32_t n_bits, uint32_t first, uint32_t last, uint32_t before, uint32_t size,
                            uint32_t end, int value)
{
    return n_bits | first << 8 | last << 16 | before << 24 | (uint64_t)((64 - size) & 63) << 32 | (uint64_t)end << 40 |
           (uint64_t)(uint16_t)value << 48;
}

static bool is_end(uint32_t run, uint32_t size)
{
    return !size && run != 15; /* runs of ends exist in progressive files only; the library takes them as one */
}

/* For each index of which n_left bits remain, what the symbol there adds to an entry of a first symbol; 0: nothing,
 * as it has to be left to the next lookup. */
static void fill_second(const uint16_t *one, uint32_t n_left, uint64_t *second)
{
    uint32_t n_before = BITS - n_left;
    for (uint32_t i = 0; i < 1U << n_left; i++) {
        uint32_t e = one[i << n_before], n = e & 255, run = e >> 12, size = e >> 8 & 15;
        if (!n || n > n_left || (!size && run == 15) || n_before + n + size > MOST)
            second[i] = 0;
        else if (is_end(run, size))
            second[i] = store_entry(n, 0, 64, n, 0, 0, 0);
        else
            second[i] = store_entry(n + size, 0, run + 1, n, size, STK_JPEG_NO_END, 0);
    }
}

/* The entries of all indices that start with one symbol and n_both bits of code and value: for each value, one symbol
 * or two. Returns the next entry. */
static uint64_t *store_pairs(uint64_t *to, uint32_t n_both, uint32_t size, uint32_t step, uint64_t alone,
                             const uint64_t *second)
{
    for (uint32_t v = 0; v < 1U << size; v++) {
        int value = stk_jpeg_extend(v, (int)size);
        uint64_t first = store_entry(n_both, step, step, n_both, 0, step, value);
        for (uint32_t i = 0; i < 1U << (BITS - n_both); i++)
            *to++ = second[i] ? first + second[i] : alone;
    }
    return to;
}

static uint64_t *store_same(uint64_t *to, uint32_t n, uint64_t entry)
{
    for (uint32_t i = 0; i < n; i++)
        *to++ = entry;
    return to;
}

static void build_store(stk_jpeg_code raw, stk_jpeg_ac_table *t)
{
    const uint64_t slow = store_entry(0, 64, 64, 0, 0, STK_JPEG_NO_END, 0);
    const uint8_t *symbol = raw.counts + 16;
    uint64_t second[2 * N], *to = t->store; /* for n bits that are left: [2^n, 2^(n + 1)) */
    uint32_t has_second = 0;
    for (uint32_t n = 1; n <= BITS; n++)
        for (int i = 0; i < raw.counts[n - 1]; i++, symbol++) {
            uint32_t run = *symbol >> 4, size = *symbol & 15, both = n + size, n_same = 1U << (BITS - n);
            uint64_t alone =
                size && both <= MOST ? store_entry(both, run + 1, run + 1, n, size, STK_JPEG_NO_END, 0) : slow;
            if (is_end(run, size)) {
                to = store_same(to, n_same, store_entry(n, 64, 64, n, 0, 0, 0));
            } else if (both >= BITS) {
                to = store_same(to, n_same, alone);
            } else {
                uint32_t n_left = BITS - both;
                if (!(has_second >> n_left & 1)) fill_second(t->one, n_left, second + (1U << n_left));
                has_second |= 1U << n_left;
                to = store_pairs(to, both, size, run + 1, alone, second + (1U << n_left));
            }
        }
    store_same(to, (uint32_t)(t->store + N - to), slow);
    t->has_store = true;
}

/* What n_left bits hold, given the same of fewer bits: as many symbols as fit. `less` of n bits: [2^n, 2^(n + 1)). */
static void fill_parse(stk_jpeg_code raw, uint32_t n_left, const uint32_t *less, uint32_t none, uint32_t *to)
{
    const uint8_t *symbol = raw.counts + 16;
    uint32_t *end = to + (1U << n_left);
    for (uint32_t n = 1; n <= n_left; n++)
        for (int i = 0; i < raw.counts[n - 1]; i++, symbol++) {
            uint32_t run = *symbol >> 4, size = *symbol & 15, both = n + size, step = run + 1;
            uint32_t one = both | step << 8 | (STK_JPEG_NO_END + step) << 16,
                     n_more = both < n_left ? n_left - both : 0;
            const uint32_t *more = less + (1U << n_more);
            if (is_end(run, size)) one = n | 64 << 8;
            if (both > MOST - (BITS - n_left)) one = none;
            bool is_last = is_end(run, size) || !n_more || one == none;
            uint32_t *stop = to + (1U << (n_left - n));
            while (is_last && to < stop)
                *to++ = one;
            while (to < stop)
                for (uint32_t k = 0; k < 1U << n_more; k++)
                    *to++ = more[k] + both + (step << 8) + (step << 16);
        }
    while (to < end)
        *to++ = none;
}

static void build_parse(stk_jpeg_code raw, stk_jpeg_ac_table *t)
{
    uint32_t less[N];
    for (uint32_t n = 1; n < BITS; n++)
        fill_parse(raw, n, less, (uint32_t)STK_JPEG_NO_END << 16, less + (1U << n));
    fill_parse(raw, BITS, less, 64 << 8 | (uint32_t)STK_JPEG_NO_END << 16, t->parse);
    t->has_parse = true;
}

/* Which of the cached tables has these bytes; else the one to replace, whose key is set. */
static int find(stk_jpeg_tables *tables, stk_jpeg_table_key *keys, stk_jpeg_code code, bool *found)
{
    int n = 16 + code.n_symbols, oldest = 0;
    *found = true;
    for (int i = 0; i < STK_JPEG_N_CACHED; i++) {
        if (keys[i].n == n && !memcmp(keys[i].bytes, code.counts, (size_t)n)) {
            keys[i].used = ++tables->clock;
            return i;
        }
        if (keys[i].used < keys[oldest].used) oldest = i;
    }
    *found = false;
    memcpy(keys[oldest].bytes, code.counts, (size_t)n);
    keys[oldest].n = n;
    keys[oldest].used = ++tables->clock;
    return oldest;
}

const stk_jpeg_dc_table *stk_jpeg_dc_table_of(stk_jpeg_tables *tables, stk_jpeg_code code)
{
    bool found;
    int i = find(tables, tables->dc_key, code, &found);
    if (!found && !build_dc(code, &tables->dc[i])) {
        tables->dc_key[i].n = 0;
        return NULL;
    }
    return &tables->dc[i];
}

const stk_jpeg_ac_table *stk_jpeg_ac_table_of(stk_jpeg_tables *tables, stk_jpeg_code code, bool store, bool parse)
{
    bool found;
    int i = find(tables, tables->ac_key, code, &found);
    stk_jpeg_ac_table *t = &tables->ac[i];
    if (!found) {
        t->has_store = t->has_parse = false;
        if (!build_canonical(code, &t->codes)) {
            tables->ac_key[i].n = 0;
            return NULL;
        }
        fill_one(code, t->one);
    }
    if (store && !t->has_store) build_store(code, t);
    if (parse && !t->has_parse) build_parse(code, t);
    return t;
}
