/* Packed weights of convolutions, element by element, in both formats and turned round, of bf16 and of f32 that round
 * to the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/conv/conv2d_pack.h"
#include "device/cpu/matmul/bf16_tile.h"

/* NULL where the processor lacks what packs. */
static const stk_tile_fns *find_tiles(void)
{
    return stk_bf16_tile_of(stk_isa_choose());
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Blocks of o outside, then of c, then taps; or, in pairs of c, taps outside those. */
static stk_conv_packing packing_of(stk_pack_kind kind, int64_t o, int64_t c, int64_t block)
{
    stk_conv_packing p = {.kind = kind, .o = o, .kernel_h = 2, .kernel_w = 3, .c = c, .block = block};
    bool in_pairs = kind == STK_PACK_IN_PAIRS;
    int64_t n_taps = p.kernel_h * p.kernel_w;
    p.padded_o = round_up(o, block);
    p.padded_c = round_up(c, in_pairs ? 2 : STK_PACK_LANES);
    p.c_step = in_pairs ? 2 * block : n_taps * STK_PACK_LANES * STK_PACK_LANES;
    p.x_step = in_pairs ? p.padded_c * block : STK_PACK_LANES * STK_PACK_LANES;
    p.y_step = p.kernel_w * p.x_step;
    p.o_step = p.padded_c * n_taps * block;
    p.bytes = (size_t)(p.padded_o / block * p.o_step) * sizeof(uint16_t);
    return p;
}

static int64_t place_of(const stk_conv_packing *p, int64_t o, int64_t y, int64_t x, int64_t c)
{
    int64_t at = o / p->block * p->o_step + y * p->y_step + x * p->x_step, i = o % p->block, n = STK_PACK_LANES;
    if (p->kind == STK_PACK_IN_PAIRS) return at + c / 2 * p->c_step + 2 * i + c % 2;
    return at + c / n * p->c_step + i / 2 * 2 * n + c % n * 2 + i % 2;
}

/* No two neighbours alike, and none 0, which stands for what is beyond the weights. */
static uint16_t weight_at(const stk_conv_packing *p, int64_t o, int64_t tap, int64_t c)
{
    if (o >= p->o || c >= p->c) return 0;
    return (uint16_t)(0x3c00 + ((o * p->kernel_h * p->kernel_w + tap) * p->c + c) % 1021);
}

static void check_packing(stk_conv_packing p, bool is_wide)
{
    enum { N_PARTS = 3 };
    const stk_tile_fns *tiles = find_tiles();
    if (!tiles) {
        print_message("SKIP: this processor multiplies no bf16 (AVX512-BF16)\n");
        skip();
    }
    int64_t n_taps = p.kernel_h * p.kernel_w, n = p.o * n_taps * p.c;
    uint16_t *weight = malloc((size_t)n * sizeof(*weight));
    void *memory = NULL;
    uint32_t *wide = malloc((size_t)n * sizeof(*wide));
    assert_true(weight && wide && !posix_memalign(&memory, 64, p.bytes));
    uint16_t *to = memory;
    memset(to, 0xff, p.bytes);
    for (int64_t i = 0; i < n; i++) {
        weight[i] = p.is_turned ? weight_at(&p, i % p.o, n_taps - 1 - i / p.o % n_taps, i / p.o / n_taps)
                                : weight_at(&p, i / p.c / n_taps, i / p.c % n_taps, i % p.c);
        wide[i] = ((uint32_t)weight[i] << 16) + (i % 2 ? 0x7fff : -0x7fff);
    }
    for (int i = 0; i < N_PARTS; i++)
        stk_conv_pack_share(tiles, &p, is_wide ? NULL : weight, is_wide ? (const float *)(const void *)wide : NULL, to,
                            i, N_PARTS);
    for (int64_t i = 0; i < p.padded_o * n_taps * p.padded_c; i++) {
        int64_t at_o = i / p.padded_c / n_taps, tap = i / p.padded_c % n_taps, at_c = i % p.padded_c;
        assert_int_equal(to[place_of(&p, at_o, tap / p.kernel_w, tap % p.kernel_w, at_c)],
                         weight_at(&p, at_o, tap, at_c));
    }
    free(weight);
    free(wide);
    free(to);
}

static void check(stk_pack_kind kind, int64_t o, int64_t c, int64_t block, bool is_wide)
{
    check_packing(packing_of(kind, o, c, block), is_wide);
}

static void pairs_of_inputs(void **state)
{
    (void)state;
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        check(STK_PACK_IN_PAIRS, 64, 64, 64, is_wide);
        check(STK_PACK_IN_PAIRS, 50, 3, 48, is_wide);
        check(STK_PACK_IN_PAIRS, 67, 531, 32, is_wide);
    }
}

static void pairs_of_outputs(void **state)
{
    (void)state;
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        check(STK_PACK_OUT_PAIRS, 64, 64, STK_PACK_LANES, is_wide);
        check(STK_PACK_OUT_PAIRS, 33, 3, STK_PACK_LANES, is_wide);
        check(STK_PACK_OUT_PAIRS, 42, 531, STK_PACK_LANES, is_wide);
    }
}

static void weights_turned_round(void **state)
{
    static const int64_t sizes[][3] = {{64, 64, 64}, {50, 3, 48}, {67, 531, 32}, {3, 300, 16}};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        const int64_t *size = sizes[i / 2];
        stk_conv_packing p = packing_of(STK_PACK_IN_PAIRS, size[0], size[1], size[2]);
        p.is_turned = true;
        check_packing(p, i % 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pairs_of_inputs), cmocka_unit_test(pairs_of_outputs),
                                       cmocka_unit_test(weights_turned_round)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
