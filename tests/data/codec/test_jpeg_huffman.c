/* The tables that look up several symbols at once say what reading symbol by symbol says, for codes of all kinds:
 * random lengths, ends and runs of 16 anywhere, values too large for an 8-bit file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "data/codec/jpeg_crop/huffman.h"

enum { BITS = STK_JPEG_INDEX_BITS, N = STK_JPEG_N_INDEX };

/* 16 counts and the symbols: lengths at random, until no code is left or `most` symbols are used. */
static stk_jpeg_code random_code(stk_rng *rng, int most, uint8_t bytes[STK_JPEG_KEY_BYTES])
{
    int n_free = 1, n = 0;
    memset(bytes, 0, STK_JPEG_KEY_BYTES);
    for (int l = 1; l <= 16; l++) {
        n_free = 2 * n_free;
        int room = n_free - 1 < most - n ? n_free - 1 : most - n; /* all ones is no code */
        int count = l == 16 ? room : (int)stk_rng_below(rng, (uint64_t)(room / (l < 5 ? 2 : 1)) + 1);
        bytes[l - 1] = (uint8_t)count;
        n += count;
        n_free -= count;
    }
    for (int i = 0; i < n; i++) {
        static const uint8_t likely[] = {0x00, 0xF0, 0x01, 0x11, 0x02, 0x21};
        uint64_t kind = stk_rng_below(rng, 3);
        bytes[16 + i] = kind == 0 ? likely[stk_rng_below(rng, sizeof(likely))] : (uint8_t)stk_rng_below(rng, 256);
        if (kind == 1) bytes[16 + i] &= 0xF7; /* values of 7 bits at most */
    }
    return (stk_jpeg_code){bytes, n};
}

/* The symbol that `left` bits start with; false: it is longer. */
static bool read_symbol(stk_jpeg_code code, uint32_t bits, int left, int *n, int *symbol)
{
    uint32_t next = 0;
    const uint8_t *s = code.counts + 16;
    for (*n = 1; *n <= left; (*n)++) {
        uint32_t at = bits >> (left - *n), count = code.counts[*n - 1];
        if (at < next + count) {
            *symbol = s[at - next];
            return true;
        }
        s += count;
        next = 2 * (next + count);
    }
    return false;
}

typedef struct symbols {
    int n_bits, n_before, step_first, step_last, size, value, n; /* as in a store entry */
    bool ends;
    int step_before_end;
} symbols;

/* Reads symbols, `most` of them at most, the way one by one. */
static symbols read_symbols(stk_jpeg_code code, uint32_t index, int most, bool is_store)
{
    symbols s = {0};
    while (s.n < most && s.n_bits < BITS && !s.ends) {
        int left = BITS - s.n_bits, n, symbol;
        if (!read_symbol(code, index & ((1U << left) - 1), left, &n, &symbol)) break;
        int run = symbol >> 4, size = symbol & 15;
        bool ends = !size && run != 15;
        if (s.n_bits + n + size > STK_JPEG_ENTRY_BITS) break;
        if (is_store && s.n == 1 && !size && !ends) break; /* a run of 16 comes first or alone */
        s.n_before = s.n_bits + n;
        s.size = size;
        s.n_bits += n + size;
        s.n++;
        if (ends) {
            s.ends = true;
            s.step_before_end = s.step_last;
            s.step_last += 64;
            break;
        }
        s.step_last += run + 1;
        if (s.n == 1) {
            s.step_first = s.step_last;
            if (n + size <= BITS) s.value = stk_jpeg_extend(index >> (BITS - n - size) & ((1U << size) - 1), size);
        }
    }
    return s;
}

static void check_parse(stk_jpeg_code code, const stk_jpeg_ac_table *t, uint32_t i)
{
    symbols s = read_symbols(code, i, BITS, false);
    uint32_t e = t->parse[i];
    assert_int_equal(e & 255, s.n_bits);
    assert_int_equal(e >> 8 & 255, s.n ? s.step_last : 64);
    if (s.ends)
        assert_int_equal(e >> 16, s.step_before_end);
    else
        assert_true(e >> 16 >= STK_JPEG_NO_END);
}

static void check_store(stk_jpeg_code code, const stk_jpeg_ac_table *t, uint32_t i)
{
    symbols s = read_symbols(code, i, 2, true);
    uint64_t e = t->store[i];
    bool alone = s.n == 1 && !s.ends;
    if (alone && !s.size) s.n = 0; /* a run of 16 alone goes the slow way */
    assert_int_equal(e & 255, s.n ? s.n_bits : 0);
    assert_int_equal(e >> 16 & 255, s.n ? s.step_last : 64);
    if (s.ends)
        assert_int_equal(e >> 40 & 255, s.step_before_end);
    else
        assert_true((e >> 40 & 255) >= STK_JPEG_NO_END);
    if (!s.n) return;
    assert_int_equal(e >> 24 & 255, s.n_before);
    assert_int_equal(e >> 32 & 63, (64 - s.size) & 63);
    if (s.n == 2) {
        assert_int_equal(e >> 8 & 255, s.step_first);
        assert_int_equal((int16_t)(e >> 48), s.value);
    }
}

static void tables_say_what_symbols_say(void **state)
{
    (void)state;
    static stk_jpeg_tables tables;
    uint8_t bytes[STK_JPEG_KEY_BYTES];
    for (uint64_t round = 0; round < 300; round++) {
        stk_rng rng = stk_rng_make(7, 0, round, 0);
        stk_jpeg_code code = random_code(&rng, 1 + (int)stk_rng_below(&rng, 256), bytes);
        const stk_jpeg_ac_table *t = stk_jpeg_ac_table_of(&tables, code, true, true);
        assert_non_null(t);
        for (uint32_t i = 0; i < N; i++) {
            check_parse(code, t, i);
            check_store(code, t, i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_say_what_symbols_say)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
