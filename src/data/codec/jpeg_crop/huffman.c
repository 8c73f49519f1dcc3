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

static void build_store(stk_jpeg_ac_table *t)
{
    const uint64_t slow = store_entry(0, 64, 64, 0, 0, STK_JPEG_NO_END, 0);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t n = t->one[i] & 255U, run = t->one[i] >> 12, size = t->one[i] >> 8 & 15;
        if (n && !size && run != 15) {
            t->store[i] = store_entry(n, 64, 64, n, 0, 0, 0);
            continue;
        }
        uint32_t both = n + size, step = run + 1;
        uint32_t next = n && both < BITS ? t->one[i << both & (N - 1)] : 0, n2 = next & 255;
        uint32_t run2 = next >> 12, size2 = next >> 8 & 15;
        bool ends = n2 && !size2 && run2 != 15;
        if (!n2 || n2 > BITS - both || (!size2 && !ends) || both + n2 + size2 > MOST) {
            t->store[i] = size && both <= MOST ? store_entry(both, step, step, n, size, STK_JPEG_NO_END, 0) : slow;
            continue;
        }
        int value = stk_jpeg_extend(i >> (BITS - both) & ((1U << size) - 1), (int)size);
        if (ends)
            t->store[i] = store_entry(both + n2, step, step + 64, both + n2, 0, step, value);
        else
            t->store[i] =
                store_entry(both + n2 + size2, step, step + run2 + 1, both + n2, size2, STK_JPEG_NO_END, value);
    }
    t->has_store = true;
}

static void build_parse(stk_jpeg_ac_table *t)
{
    for (uint32_t i = 0; i < N; i++) {
        uint32_t used = 0, step = 0, end = STK_JPEG_NO_END;
        while (used < BITS) {
            uint32_t one = t->one[i << used & (N - 1)], n = one & 255, size = one >> 8 & 15, run = one >> 12;
            if (!n || n > BITS - used || used + n + size > MOST) break;
            used += n + size;
            if (!size && run != 15) {
                end = step;
                step += 64;
                break;
            }
            step += run + 1;
        }
        t->parse[i] = used ? used | step << 8 | end << 16 : 64 << 8 | STK_JPEG_NO_END << 16;
    }
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
    if (store && !t->has_store) build_store(t);
    if (parse && !t->has_parse) build_parse(t);
    return t;
}
