/* The decoder's loops for this processor against plain C: the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "data/codec/jpeg_crop/kernels.h"

static int64_t draw(stk_rng *rng, int64_t below)
{
    return stk_rng_below(rng, (uint32_t)below);
}

static void kernels_agree(void **state)
{
    (void)state;
    const stk_jpeg_kernels *plain = &stk_jpeg_kernels_plain, *best = stk_jpeg_kernels_choose();
    print_message("kernels: %s\n", best->name);
    stk_rng rng = stk_rng_make(13, 0, 0, 0);
    uint8_t from[3][256] __attribute__((aligned(64))), a[1024], b[1024];
    for (int i = 0; i < 20000; i++) {
        int n = 1 + (int)draw(&rng, 150);
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < 256; k++)
                from[c][k] = (uint8_t)(i & 1 ? stk_rng_u32(&rng) : (stk_rng_u32(&rng) & 1) * 255);
        memset(a, 7, sizeof(a));
        memset(b, 7, sizeof(b));
        switch (i % 5) {
        case 0: plain->upsample_h2v1(from[0] + 8, n, a), best->upsample_h2v1(from[0] + 8, n, b), n *= 2; break;
        case 1:
            plain->upsample_h2v2(from[0] + 8, from[1] + 8, n, a);
            best->upsample_h2v2(from[0] + 8, from[1] + 8, n, b);
            n *= 2;
            break;
        case 2:
            plain->upsample_h1v2(from[0], from[1], i & 8, n, a);
            best->upsample_h1v2(from[0], from[1], i & 8, n, b);
            break;
        case 3:
            plain->rgb(from[0], from[1], from[2], n, a), best->rgb(from[0], from[1], from[2], n, b), n = 1024;
            break;
        default: plain->grey_rgb(from[0], n, a), best->grey_rgb(from[0], n, b), n = 1024;
        }
        assert_memory_equal(a, b, (size_t)n);
    }
}

/* The rounding multiplications must hit libjpeg's tables for every value. */
static void every_color_is_converted(void **state)
{
    (void)state;
    const stk_jpeg_kernels *best = stk_jpeg_kernels_choose();
    static const uint8_t lumas[] = {0, 1, 100, 128, 254, 255};
    uint8_t y[128], cb[256 + 64], cr[128], out[96];
    for (int k = 0; k < 256 + 64; k++)
        cb[k] = (uint8_t)k;
    for (size_t l = 0; l < sizeof(lumas); l++)
        for (int r = 0; r < 256; r++)
            for (int b = 0; b < 256; b += 32) {
                memset(y, lumas[l], sizeof(y));
                memset(cr, r, sizeof(cr));
                best->rgb(y, cb + b, cr, 32, out);
                for (int k = 0; k < 32; k++) {
                    double red = (91881 * (r - 128) + 32768) >> 16, blue = (116130 * (b + k - 128) + 32768) >> 16;
                    double green = (-22554 * (b + k - 128) - 46802 * (r - 128) + 32768) >> 16;
                    double want[3] = {lumas[l] + red, lumas[l] + green, lumas[l] + blue};
                    for (int c = 0; c < 3; c++) {
                        double w = want[c] < 0 ? 0 : want[c] > 255 ? 255 : want[c];
                        if ((double)out[3 * k + c] != w) fail_msg("y %d cb %d cr %d", lumas[l], b + k, r);
                    }
                }
            }
}

static void transforms_agree(void **state)
{
    (void)state;
    const stk_jpeg_kernels *plain = &stk_jpeg_kernels_plain, *best = stk_jpeg_kernels_choose();
    stk_rng rng = stk_rng_make(14, 0, 0, 0);
    int16_t a[256] __attribute__((aligned(64))), b[256] __attribute__((aligned(64)));
    uint16_t quant[64] __attribute__((aligned(64)));
    uint8_t out_a[8 * 32], out_b[8 * 32];
    for (int i = 0; i < 50000; i++) {
        int n = 1 + i % 3;
        uint32_t range = 1U << (1 + stk_rng_below(&rng, 16)), most = 1U << stk_rng_below(&rng, 17), dense = 1 + i % 20;
        for (int k = 0; k < 256; k++) {
            bool empty = k % 64 > 7 && i & 1 << k / 64;
            a[k] = !empty && stk_rng_below(&rng, dense) == 0
                       ? (int16_t)((int)stk_rng_below(&rng, range) - (int)(range / 2))
                       : 0;
        }
        for (int k = 0; k < 64; k++)
            quant[k] = (uint16_t)stk_rng_below(&rng, most);
        memcpy(b, a, sizeof(a));
        plain->idct(a, n, quant, out_a, 32);
        best->idct(b, n, quant, out_b, 32);
        for (int y = 0; y < 8; y++)
            assert_memory_equal(out_a + 32 * y, out_b + 32 * y, 8 * (size_t)n);
        for (int k = 0; k < 64 * n; k++)
            assert_int_equal(a[k] | b[k], 0);
    }
}

static void unstuffing_agrees(void **state)
{
    (void)state;
    const stk_jpeg_kernels *kernels[] = {&stk_jpeg_kernels_plain, stk_jpeg_kernels_choose()};
    stk_rng rng = stk_rng_make(15, 0, 0, 0);
    for (int i = 0; i < 30000; i++) {
        size_t n = stk_rng_below(&rng, 300), room = 1 + stk_rng_below(&rng, 200), n_out[2];
        uint32_t rare = 1 + stk_rng_below(&rng, 60);
        uint8_t *src = malloc(n ? n : 1), out[2][400];
        assert_non_null(src);
        for (size_t k = 0; k < n; k++)
            src[k] = (uint8_t)(k && src[k - 1] == 0xFF && stk_rng_below(&rng, 50) ? 0
                               : stk_rng_below(&rng, rare) == 0                   ? 0xFF
                                                                                  : stk_rng_u32(&rng));
        const uint8_t *at[2] = {src, src};
        for (int k = 0; k < 2; k++)
            n_out[k] = kernels[k]->unstuff(out[k], room, &at[k], src + n);
        size_t same = n_out[0] < n_out[1] ? n_out[0] : n_out[1];
        assert_memory_equal(out[0], out[1], same);
        /* They may stop at different places, but only beyond `room`. */
        if (n_out[0] != n_out[1] || at[0] != at[1]) assert_true(same >= room);
        assert_true(n_out[0] <= room + 63 && n_out[1] <= room + 63);
        free(src);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_agree), cmocka_unit_test(every_color_is_converted),
                                       cmocka_unit_test(transforms_agree), cmocka_unit_test(unstuffing_agrees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
