/* Blocks of products by tiles: the model of them on any processor, against sums in double; the processor's own, where
 * it has them, bit for bit as the model's.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "base/rng.h"
#include "device/cpu/amx/amx.h"
#include "device/cpu/simd/isa.h"

enum { MOST = 160, GUARD = 7 };

/* Random, with some that are tiny, huge or denormal. */
static uint16_t draw(uint64_t seed, int64_t i, bool is_wild)
{
    uint64_t r = stk_mix64(seed * 1000003 + (uint64_t)i);
    if (is_wild && r % 7 == 0) return (uint16_t)(r >> 20);
    float x = (float)((double)(r >> 40) / (1 << 23) - 1);
    return stk_f32_to_bf16(x);
}

static const stk_amx_fns *silicon(void)
{
    const stk_amx_fns *fns = stk_amx_of(stk_isa_choose());
    return fns == &stk_amx_model ? NULL : fns;
}

typedef struct sizes {
    int64_t m, n, k;
    bool transpose_a, transpose_b, is_wide;
} sizes;

static void *new_aligned(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(p);
    memset(p, 0xff, (bytes + 63) / 64 * 64); /* NaN: what is read must have been written */
    return p;
}

/* a [m,k] and b [k,n], as they lie where they are transposed or not, packed by fns. */
static void pack(const stk_amx_fns *fns, const sizes *z, const uint16_t *a, const uint16_t *b, uint16_t *chunks,
                 uint16_t *panels)
{
    int64_t depth = (z->k + 31) / 32 * 32;
    float *wide = malloc((size_t)(MOST * MOST) * sizeof(*wide));
    assert_non_null(wide);
    for (int64_t i = 0; i < z->k * z->n; i++)
        wide[i] = stk_bf16_to_f32(b[i]);
    stk_amx_source x = {a, z->transpose_a ? 1 : z->k, z->transpose_a ? z->m : 1, false};
    fns->pack_a(&x, z->m, z->k, chunks);
    stk_amx_source y = {b, z->transpose_b ? 1 : z->n, z->transpose_b ? z->k : 1, z->is_wide};
    if (z->is_wide) y.x = wide;
    fns->pack_b(&y, z->k, z->n, depth, panels);
    free(wide);
}

/* lies: rows of a are read where they are by the first panel, which packs them into chunks for the others. */
static void multiply(const stk_amx_fns *fns, const sizes *z, const uint16_t *lies, uint16_t *chunks,
                     const uint16_t *panels, const float *bias, float *c, uint16_t *rounded)
{
    int64_t n_steps = (z->k + 31) / 32, step = z->n + GUARD;
    for (int64_t j = 0; j < z->n; j += STK_AMX_SIDE) {
        stk_amx_block g = {.m = z->m, .n = z->n - j < STK_AMX_SIDE ? z->n - j : STK_AMX_SIDE, .n_steps = n_steps};
        g.a = chunks;
        g.a_step = STK_AMX_STEP;
        g.a_block = n_steps * STK_AMX_STEP;
        if (lies && j == 0) {
            g.packs_a = chunks;
            g.a = lies;
            g.a_row = z->k;
            g.a_step = STK_AMX_DEPTH;
            g.a_block = STK_AMX_SIDE * z->k;
            g.fetches_a = true;
        }
        g.b = panels + j * n_steps * STK_AMX_DEPTH;
        g.bias = bias ? bias + j : NULL;
        g.has_relu = bias != NULL;
        g.c = c + j;
        g.c_row = step;
        fns->multiply(&g);
        g.rounded_c = rounded + j;
        fns->multiply(&g);
    }
}

/* Rows of whole tiles give the same bits where they lie as packed, and are packed as by pack_a. */
static void check_lying(const sizes *z, const uint16_t *a, const uint16_t *chunks, const uint16_t *panels,
                        const float *bias, const float *c, const uint16_t *half)
{
    const stk_amx_fns *all[2] = {&stk_amx_model, silicon()};
    int64_t n_c = z->m * (z->n + GUARD);
    size_t n_chunks = (size_t)(z->m * z->k) * 2;
    if (z->transpose_a || z->m % STK_AMX_ROWS || z->k % STK_AMX_DEPTH) return;
    for (int which = 0; which < 2 && all[which]; which++) {
        float *c2 = new_aligned((size_t)n_c * 4);
        uint16_t *half2 = new_aligned((size_t)n_c * 2), *packed = new_aligned(n_chunks + 1024 * (size_t)z->k / 32);
        multiply(all[which], z, a, packed, panels, bias, c2, half2);
        if (z->m % STK_AMX_SIDE == 0) assert_memory_equal(chunks, packed, n_chunks);
        assert_memory_equal(c, c2, (size_t)n_c * 4);
        assert_memory_equal(half, half2, (size_t)n_c * 2);
        free(c2), free(half2), free(packed);
    }
}

static double exact(const sizes *z, const uint16_t *a, const uint16_t *b, const float *bias, int64_t i, int64_t j,
                    double *size)
{
    double sum = 0;
    *size = 0;
    for (int64_t l = 0; l < z->k; l++) {
        double x = stk_bf16_to_f32(a[z->transpose_a ? l * z->m + i : i * z->k + l]);
        double y = stk_bf16_to_f32(b[z->transpose_b ? j * z->k + l : l * z->n + j]);
        sum += x * y;
        *size += fabs(x * y);
    }
    if (bias) sum += bias[j];
    return bias && sum < 0 ? 0 : sum;
}

static void check_sizes(const sizes *z, uint64_t seed)
{
    int64_t rows = (z->m + 31) / 32 * 32, depth = (z->k + 31) / 32 * 32, columns = (z->n + 31) / 32 * 32;
    uint16_t *a = malloc(sizeof(*a) * MOST * MOST), *b = malloc(sizeof(*b) * MOST * MOST);
    uint16_t *chunks = new_aligned((size_t)(rows * depth) * 2), *panels = new_aligned((size_t)(columns * depth) * 2);
    int64_t n_c = z->m * (z->n + GUARD);
    float *c = new_aligned((size_t)n_c * 4), *c2 = new_aligned((size_t)n_c * 4), bias[MOST];
    uint16_t *half = new_aligned((size_t)n_c * 2), *half2 = new_aligned((size_t)n_c * 2);
    assert_true(a && b);
    for (int64_t i = 0; i < MOST * MOST; i++) {
        a[i] = draw(seed, i, false);
        b[i] = draw(seed + 1, i, false);
    }
    for (int64_t j = 0; j < MOST; j++)
        bias[j] = stk_bf16_to_f32(draw(seed + 2, j, false));
    for (int with_bias = 0; with_bias < 2; with_bias++) {
        const float *add = with_bias ? bias : NULL;
        pack(&stk_amx_model, z, a, b, chunks, panels);
        multiply(&stk_amx_model, z, NULL, chunks, panels, add, c, half);
        check_lying(z, a, chunks, panels, add, c, half);
        for (int64_t i = 0; i < z->m; i++)
            for (int64_t j = 0; j < z->n; j++) {
                double size, want = exact(z, a, b, add, i, j, &size), got = c[i * (z->n + GUARD) + j];
                assert_true(fabs(got - want) <= 1e-6 * (size + 1));
                assert_int_equal(half[i * (z->n + GUARD) + j], stk_f32_to_bf16((float)got));
            }
        if (!silicon()) continue;
        memset(chunks, 0xff, (size_t)(rows * depth) * 2);
        pack(silicon(), z, a, b, chunks, panels);
        multiply(silicon(), z, NULL, chunks, panels, add, c2, half2);
        assert_memory_equal(c, c2, (size_t)n_c * 4);
        assert_memory_equal(half, half2, (size_t)n_c * 2);
    }
    free(a), free(b), free(chunks), free(panels), free(c), free(c2), free(half), free(half2);
}

static void check_products(void **state)
{
    (void)state;
    if (!silicon()) printf("SKIP in part: this processor has no tiles (AMX), the model alone was tested\n");
    for (uint64_t seed = 1; seed <= 120; seed++) {
        uint64_t r = stk_mix64(seed);
        sizes z = {.m = 1 + (int64_t)(r % 100), .n = 1 + (int64_t)(r >> 8) % 100, .k = 1 + (int64_t)(r >> 16) % 130};
        if (z.n < 0) z.n = -z.n + 1;
        if (z.k < 0) z.k = -z.k + 1;
        if (seed % 5 == 0) z.m = z.n = z.k = 32 * (int64_t)(1 + r % 4);
        z.transpose_a = r >> 32 & 1, z.transpose_b = r >> 33 & 1, z.is_wide = r >> 34 & 1;
        check_sizes(&z, seed * 10);
    }
}

/* Steps that lie anywhere, rows that go elsewhere or nowhere, and sums that are added to. */
static void check_rows(void **state)
{
    (void)state;
    enum { M = 70, N = 20, STEPS = 5, STRIDE = 24 };
    const stk_amx_fns *all[2] = {&stk_amx_model, silicon()};
    uint16_t *a = new_aligned(200 * 64), *b = new_aligned(STEPS * STK_AMX_STEP * 2);
    int64_t steps[STEPS];
    int32_t rows[M];
    static float c[2][M * STRIDE], before[M * STRIDE];
    for (int64_t i = 0; i < 200 * 32; i++)
        a[i] = draw(3, i, false);
    for (int64_t i = 0; i < STEPS * STK_AMX_STEP; i++)
        b[i] = draw(4, i, false);
    for (int i = 0; i < STEPS; i++)
        steps[i] = (int64_t)(i * 13 % 40) * STK_AMX_DEPTH;
    for (int i = 0; i < M; i++)
        rows[i] = i % 3 == 2 ? -1 : (i * 37) % M;
    for (int i = 0; i < M * STRIDE; i++)
        before[i] = (float)i;
    for (int which = 0; which < 2 && all[which]; which++) {
        memcpy(c[which], before, sizeof(before));
        stk_amx_block g = {.m = M, .n = N, .n_steps = STEPS, .a = a, .steps = steps, .b = b, .rows = rows};
        g.c = c[which];
        g.add = g.c;
        g.c_row = g.add_row = STRIDE;
        g.a_block = STK_AMX_STEP;
        all[which]->multiply(&g);
    }
    if (all[1]) assert_memory_equal(c[0], c[1], sizeof(c[0]));
    bool written[M] = {0};
    for (int i = 0; i < M; i++) {
        if (rows[i] < 0) continue;
        written[rows[i]] = true;
        for (int j = 0; j < N; j++) {
            double want = before[rows[i] * STRIDE + j];
            for (int step = 0; step < STEPS; step++)
                for (int l = 0; l < 32; l++)
                    want += (double)stk_bf16_to_f32(a[steps[step] + i * 32 + l]) *
                            stk_bf16_to_f32(b[step * STK_AMX_STEP + j / 16 * 512 + l / 2 * 32 + j % 16 * 2 + l % 2]);
            assert_true(fabs(want - c[0][rows[i] * STRIDE + j]) < 1e-3);
        }
    }
    for (int i = 0; i < M; i++)
        for (int j = 0; j < STRIDE; j++)
            if (!written[i] || j >= N) assert_true(c[0][i * STRIDE + j] == before[i * STRIDE + j]);
    free(a), free(b);
}

/* Each NaN to the same one of its sign. */
static uint16_t round_plainly(float x)
{
    uint16_t y = stk_f32_to_bf16(x);
    return isnan(x) ? (uint16_t)((y & 0x8000) | 0x7fc0) : y;
}

/* Weights in f32 of all kinds, denormals and NaN too, are rounded as elsewhere. */
static void check_rounding(void **state)
{
    (void)state;
    enum { N = STK_AMX_SIDE, K = STK_AMX_DEPTH };
    const stk_amx_fns *all[2] = {&stk_amx_model, silicon()};
    uint16_t *panel = new_aligned(STK_AMX_STEP * 2);
    static float x[K][N];
    for (uint64_t seed = 0; seed < 300; seed++) {
        for (int64_t i = 0; i < K * N; i++) {
            uint32_t bits = (uint32_t)(stk_mix64(seed * 4096 + (uint64_t)i) >> 20);
            if (seed % 3 == 1 && i % 5 == 0) bits &= 0x807fffff;
            if (seed % 3 == 2 && i % 5 == 0) bits |= 0x7f800000;
            if (seed % 3 == 0 && (bits & 0x7f800000) == 0x7f800000) bits &= 0xbfffffff;
            memcpy(&x[i / N][i % N], &bits, sizeof(bits));
        }
        for (int which = 0; which < 2 && all[which]; which++) {
            all[which]->pack_b(&(stk_amx_source){x, N, 1, true}, K, N, K, panel);
            for (int l = 0; l < K; l++)
                for (int j = 0; j < N; j++)
                    assert_int_equal(panel[j / 16 * 512 + l / 2 * 32 + j % 16 * 2 + l % 2], round_plainly(x[l][j]));
        }
    }
    free(panel);
}

/* Several panels, all steps of each at once, some at a time, and by rows that lie apart: the same sums to the bit. */
static void check_orders(void **state)
{
    (void)state;
    enum { M = 48, N = 84, PANELS = 3, STEPS = 2 * STK_AMX_NEAR_STEPS + 1, A_ROW = STEPS * 32, WAYS = 3 };
    const stk_amx_fns *all[2] = {&stk_amx_model, silicon()};
    uint16_t *a = new_aligned(64 * A_ROW * 2), *b = new_aligned(PANELS * STEPS * STK_AMX_STEP * 2);
    uint16_t *lines = new_aligned(64 * A_ROW * 2), *c[WAYS + 1];
    float *partial = new_aligned(64 * 32 * 4), bias[N];
    for (int64_t i = 0; i < 64 * A_ROW; i++)
        a[i] = draw(5, i, false), lines[(i % A_ROW / 32 * 64 + i / A_ROW) * 32 + i % 32] = draw(5, i, false);
    for (int64_t i = 0; i < PANELS * STEPS * STK_AMX_STEP; i++)
        b[i] = draw(6, i, false);
    for (int i = 0; i < N; i++)
        bias[i] = (float)i;
    for (int i = 0; i <= WAYS; i++)
        c[i] = new_aligned(M * N * 2);
    for (int which = 0; which < 2 && all[which]; which++)
        for (int way = 0; way < WAYS; way++) {
            stk_amx_block g = {.m = M, .n = N, .n_steps = STEPS, .b = b, .b_panel = STEPS * STK_AMX_STEP};
            bool by_rows = way == 2;
            g.a = by_rows ? a : lines;
            g.a_row = by_rows ? A_ROW : 0;
            g.a_block = by_rows ? STK_AMX_SIDE * A_ROW : STK_AMX_STEP;
            g.a_step = by_rows ? 32 : 64 * 32;
            g.by_rows = by_rows;
            g.partial = way == 1 ? partial : NULL;
            g.bias = bias;
            g.rounded_c = c[which + way > 0 ? 1 + way : 0];
            g.c_row = N;
            all[which]->multiply(&g);
            assert_memory_equal(c[0], g.rounded_c, M * N * 2);
        }
    for (int i = 0; i < M * N; i++) {
        double want = bias[i % N], size = 1;
        for (int64_t l = 0; l < A_ROW; l++) {
            int64_t j = i % N, at = (j / 32 * STEPS + l / 32) * STK_AMX_STEP + j % 32 / 16 * 512;
            double x = stk_bf16_to_f32(a[i / N * A_ROW + l]);
            want += x * stk_bf16_to_f32(b[at + l % 32 / 2 * 32 + j % 16 * 2 + l % 2]);
            size += fabs(x);
        }
        assert_true(fabs(want - stk_bf16_to_f32(c[0][i])) < 1e-5 * size + 0x1p-8 * fabs(want));
    }
    for (int i = 0; i <= WAYS; i++)
        free(c[i]);
    free(a), free(b), free(lines), free(partial);
}

/* Numbers of all kinds: what the model says of denormals, infinities and NaN is what the processor does. */
static void check_wild(void **state)
{
    (void)state;
    if (!silicon()) {
        printf("SKIP: this processor has no tiles (AMX)\n");
        skip();
    }
    uint16_t *a = new_aligned(32 * 64 * 8), *b = new_aligned(8 * STK_AMX_STEP * 2);
    float *c[2] = {new_aligned(4096), new_aligned(4096)};
    for (uint64_t seed = 0; seed < 200; seed++) {
        for (int64_t i = 0; i < 32 * 32 * 8; i++)
            a[i] = draw(seed, i, true);
        for (int64_t i = 0; i < 8 * STK_AMX_STEP; i++)
            b[i] = draw(seed + 1000, i, true);
        for (int which = 0; which < 2; which++)
            for (int adds = 0; adds < 2; adds++) {
                const stk_amx_weight_fns *fns = (which ? silicon() : &stk_amx_model)->weights;
                stk_amx_sum sum = {.a = a, .b = b, .a_tile = 4096, .b_tile = 4096, .n_groups = 1, .n_rows = 1};
                sum.n_tiles = 8;
                sum.from = adds ? c[which] : NULL;
                sum.to = c[which];
                fns->begin();
                fns->sum(&sum);
                fns->end();
            }
        for (int i = 0; i < 1024; i++) {
            bool is_nan = isnan(c[0][i]);
            assert_int_equal(is_nan, isnan(c[1][i]) != 0);
            if (!is_nan) assert_memory_equal(&c[0][i], &c[1][i], 4);
        }
    }
    free(a), free(b), free(c[0]), free(c[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_products), cmocka_unit_test(check_rows), cmocka_unit_test(check_rounding),
        cmocka_unit_test(check_orders),   cmocka_unit_test(check_wild),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
