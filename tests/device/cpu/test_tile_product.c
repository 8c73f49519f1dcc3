/* Large products of bf16 by own tiles, all kinds that this processor has, against sums in double, element by element
 * where a product is small and at some thousand places where it is not. Buffers have exactly the bytes that they need,
 * for the sanitizers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "device/cpu/matmul/tile_product.h"

typedef struct buffers {
    size_t c_bytes;
    uint16_t *a, *b;
    float *bias;     /* NULL where the shape has none */
    void *c, *start; /* start: what c has before the run */
} buffers;

static float value_of(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof(x));
    return x;
}

static void *alloc(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes)) abort();
    return p;
}

/* Of both signs, between 1/2 and 2. */
static uint16_t *random_matrix(uint64_t seed, int64_t n)
{
    uint16_t *x = alloc((size_t)n * sizeof(*x));
    for (int64_t i = 0; i < n; i++) {
        uint32_t r = stk_philox(seed, 3, (uint64_t)i).v[0];
        x[i] = (uint16_t)((r & 0x80ff) + 0x3f00);
    }
    return x;
}

static buffers make_buffers(const stk_product_shape *s)
{
    int64_t a_rows = s->transpose_a ? s->k : s->m, a_columns = s->transpose_a ? s->m : s->k;
    int64_t b_rows = s->transpose_b ? s->n : s->k, b_columns = s->transpose_b ? s->k : s->n;
    buffers x = {.c_bytes = (size_t)((s->m - 1) * s->c_step + s->n) * stk_dtype_bytes(s->out)};
    x.a = random_matrix(1, (a_rows - 1) * s->a_step + a_columns);
    x.b = random_matrix(2, (b_rows - 1) * s->b_step + b_columns);
    x.bias = s->has_bias ? alloc((size_t)s->n * sizeof(*x.bias)) : NULL;
    for (int64_t j = 0; j < s->n && x.bias; j++)
        x.bias[j] = 0.37f * (float)(j % 101) - 20;
    x.c = alloc(x.c_bytes);
    x.start = alloc(x.c_bytes);
    memset(x.start, 0x41, x.c_bytes);
    return x;
}

static void free_buffers(buffers *x)
{
    free(x->a);
    free(x->b);
    free(x->bias);
    free(x->c);
    free(x->start);
}

static double load_c(const stk_product_shape *s, const void *c, int64_t at)
{
    return s->out == STK_F32 ? (double)((const float *)c)[at] : (double)value_of(((const uint16_t *)c)[at]);
}

static void check_element(const stk_product_shape *s, const buffers *x, int64_t i, int64_t j)
{
    double right = s->adds ? load_c(s, x->start, i * s->c_step + j) : 0, size;
    if (x->bias) right += (double)x->bias[j];
    size = fabs(right);
    for (int64_t l = 0; l < s->k; l++) {
        double a = (double)value_of(x->a[s->transpose_a ? l * s->a_step + i : i * s->a_step + l]);
        double b = (double)value_of(x->b[s->transpose_b ? j * s->b_step + l : l * s->b_step + j]);
        right += a * b;
        size += fabs(a * b);
    }
    /* Sums of f32, whose errors mostly cancel, and one rounding at the end. */
    double limit = size * 0x1p-21 + (s->out == STK_BF16 ? fabs(right) * 0x1p-8 : 0);
    double got = load_c(s, x->c, i * s->c_step + j);
    if (!(fabs(got - right) <= limit))
        fail_msg("[%d,%d] of %d x %d x %d: %.9g instead of %.9g", (int)i, (int)j, (int)s->m, (int)s->n, (int)s->k, got,
                 right);
}

/* What lies between rows of c stays. */
static void check_gaps(const stk_product_shape *s, const buffers *x)
{
    size_t element = stk_dtype_bytes(s->out), gap = (size_t)(s->c_step - s->n) * element;
    for (int64_t i = 0; i + 1 < s->m; i++) {
        size_t at = (size_t)(i * s->c_step + s->n) * element;
        assert_memory_equal((const char *)x->c + at, (const char *)x->start + at, gap);
    }
}

/* Some f32 that rounds to x: up to half a step away, and as far as that where x is even, which ties go to. */
static float near(uint16_t x, uint32_t random)
{
    int32_t most = x % 2 ? 0x7fff : 0x8000, off = (int32_t)(random % (uint32_t)(2 * most + 1)) - most;
    uint32_t bits = ((uint32_t)x << 16) + (uint32_t)(random % 8 ? off : random % 16 ? most : -most);
    float wide;
    memcpy(&wide, &bits, sizeof(wide));
    return wide;
}

/* b as it is kept, of numbers in f32. */
static void *keep(const stk_tile_product *p, const buffers *x)
{
    const stk_product_shape *s = &p->shape;
    int64_t n = ((s->transpose_b ? s->n : s->k) - 1) * s->b_step + (s->transpose_b ? s->k : s->n);
    size_t bytes = stk_tile_product_kept_bytes(p);
    float *wide = alloc((size_t)n * sizeof(*wide));
    for (int64_t i = 0; i < n; i++)
        wide[i] = near(x->b[i], stk_philox(6, 1, (uint64_t)i).v[0]);
    void *kept = alloc(bytes);
    memset(kept, 0xff, bytes);
    stk_tile_product_pack(p, wide, kept);
    free(wide);
    return kept;
}

/* kept: b packed beforehand, or NULL. */
static void run_cut(const stk_tile_product *p, const buffers *x, const void *a, const void *b, const void *kept,
                    void *c)
{
    stk_cpu_pool *pool;
    assert_int_equal(stk_cpu_pool_new(p->n_threads, NULL, &pool), STK_OK);
    stk_cpu_pool *before = stk_cpu_pool_enter(pool);
    size_t bytes = stk_tile_product_scratch_bytes(p);
    void *scratch = alloc(bytes);
    /* NaN where anything is read that was not written. */
    memset(scratch, 0xff, bytes);
    memcpy(c, x->start, x->c_bytes);
    stk_tile_product_run(p, a, kept ? NULL : b, kept, x->bias, c, scratch);
    free(scratch);
    stk_cpu_pool_enter(before);
    stk_cpu_pool_free(pool);
}

static void run(const stk_product_shape *s, stk_tile_kind kind, const buffers *x, int n_threads, bool keeps, void *c)
{
    stk_tile_product p = stk_tile_product_cut(STK_ISA_AVX512, kind, s, n_threads);
    stk_cpu_pool *pool;
    assert_int_equal(stk_cpu_pool_new(n_threads, NULL, &pool), STK_OK);
    stk_cpu_pool *before = stk_cpu_pool_enter(pool);
    void *kept = keeps ? keep(&p, x) : NULL;
    stk_cpu_pool_enter(before);
    stk_cpu_pool_free(pool);
    run_cut(&p, x, x->a, x->b, kept, c);
    free(kept);
}

static bool runs_here(stk_tile_kind kind)
{
    stk_isa isa = stk_isa_choose();
    switch (kind) {
    case STK_TILES_AMX: return stk_amx_of(isa);
    case STK_TILES_BF16: return stk_bf16_tile_of(isa);
    default: return stk_f32_tile_of(isa);
    }
}

static void skip_elsewhere(void)
{
    if (runs_here(STK_TILES_F32)) return;
    print_message("SKIP: this processor has no AVX-512\n");
    skip();
}

static void check_kind(stk_product_shape s, stk_tile_kind kind)
{
    enum { MOST_ELEMENTS = 2000 };
    buffers x = make_buffers(&s);
    run(&s, kind, &x, 2, false, x.c);
    bool all = s.m * s.n * s.k < 2000000;
    for (int64_t e = 0; e < (all ? s.m * s.n : MOST_ELEMENTS); e++) {
        /* The last rows and columns each time. */
        uint32_t r = stk_philox(5, 1, (uint64_t)e).v[0];
        int64_t i = all ? e / s.n : e % 4 == 0 ? s.m - 1 - e % 7 : r % s.m;
        int64_t j = all ? e % s.n : e % 4 == 1 ? s.n - 1 - e % 67 : (r >> 8) % s.n;
        check_element(&s, &x, i, j);
    }
    check_gaps(&s, &x);
    /* The same bits from any number of threads, and from a b that is kept. */
    void *again = alloc(x.c_bytes);
    for (int i = 0; i < 4; i++) {
        run(&s, kind, &x, i % 2 ? 3 : 1, i < 2, again);
        assert_memory_equal(again, x.c, x.c_bytes);
    }
    free(again);
    free_buffers(&x);
}

/* The same numbers in f32 give the same bits as bf16 that is widened. */
static void check_wide(stk_product_shape s)
{
    buffers x = make_buffers(&s);
    int64_t n_a = ((s.transpose_a ? s.k : s.m) - 1) * s.a_step + (s.transpose_a ? s.m : s.k);
    int64_t n_b = ((s.transpose_b ? s.n : s.k) - 1) * s.b_step + (s.transpose_b ? s.k : s.n);
    float *a = alloc((size_t)n_a * sizeof(*a)), *b = alloc((size_t)n_b * sizeof(*b));
    void *again = alloc(x.c_bytes);
    for (int64_t i = 0; i < n_a; i++)
        a[i] = value_of(x.a[i]);
    for (int64_t i = 0; i < n_b; i++)
        b[i] = value_of(x.b[i]);
    run(&s, STK_TILES_F32, &x, 2, false, x.c);
    s.in = STK_F32;
    stk_tile_product wide = stk_tile_product_cut(STK_ISA_AVX512, STK_TILES_F32, &s, 3);
    run_cut(&wide, &x, a, b, NULL, again);
    assert_memory_equal(again, x.c, x.c_bytes);
    free(again);
    free(a);
    free(b);
    free_buffers(&x);
}

static void check(stk_product_shape s)
{
    static const stk_tile_kind kinds[] = {STK_TILES_BF16, STK_TILES_F32, STK_TILES_AMX};
    skip_elsewhere();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (runs_here(kinds[i])) check_kind(s, kinds[i]);
    if (s.out == STK_F32) check_wide(s);
}

/* With steps that are a little longer than rows. */
static stk_product_shape shape_of(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, stk_dtype out)
{
    stk_product_shape s = {.m = m, .n = n, .k = k, .transpose_a = transpose_a, .transpose_b = transpose_b};
    s.a_step = (transpose_a ? m : k) + 3;
    s.b_step = (transpose_b ? k : n) + 5;
    s.c_step = n + 2;
    s.n_batch = 1;
    s.in = STK_BF16;
    s.out = out;
    return s;
}

static void odd_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        stk_dtype out = i & 4 ? STK_BF16 : STK_F32;
        check(shape_of(96, 64, 64, i & 1, i & 2, out));
        check(shape_of(101, 131, 77, i & 1, i & 2, out));
        check(shape_of(97, 65, 95, i & 1, i & 2, out));
    }
}

static void blocks_of_rows(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        check(shape_of(1234, 130, 333, i & 1, i & 2, STK_F32));
}

/* More than one part of what is summed over, and more than one of the columns. */
static void long_sums(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        check(shape_of(110, 200, 6333, i & 1, i & 2, i & 4 ? STK_BF16 : STK_F32));
    check(shape_of(100, 2111, 6145, false, false, STK_BF16));
    check(shape_of(100, 2111, 3071, true, true, STK_F32));
}

static void added_to_c(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        stk_product_shape s = shape_of(120, 100, i ? 3500 : 70, true, false, STK_F32);
        s.adds = true;
        check(s);
    }
}

/* Results that go past the caches where their rows begin with lines; of two parts of a sum, the last one does. */
static void large_results(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        stk_product_shape s = shape_of(1100, 2000, i == 1 ? 1550 : 20, false, false, STK_F32);
        s.c_step = i == 2 ? s.n + 2 : s.n + 16;
        s.has_bias = i == 1;
        check(s);
    }
}

/* After the last part of a sum, and once. */
static void biases(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        stk_product_shape s = shape_of(101, 131, i & 2 ? 3500 : 77, false, i & 1, i & 4 ? STK_BF16 : STK_F32);
        s.has_bias = true;
        check(s);
    }
    stk_product_shape s = shape_of(100, 2111, 3071, false, true, STK_BF16);
    s.has_bias = true;
    check(s);
}

/* What a cast makes of numbers that a weight rarely has, in both ways to pack and both kinds of tiles. */
static void rare_numbers_are_cast(void **state)
{
    (void)state;
    enum { N = 64, DEPTH = 6 };
    static const uint32_t wide[DEPTH] = {0x7f800001, 0xffbfffff, 0x7f7fffff, 0x00018000, 0x80000001, 0xff800000};
    static const uint16_t narrow[DEPTH] = {0x7fc0, 0xffc0, 0x7f80, 0x0002, 0x8000, 0xff80};
    skip_elsewhere();
    for (int i = 0; i < 4; i++) {
        bool by_columns = i % 2, as_f32 = i / 2;
        const stk_tile_fns *tiles = as_f32 ? stk_f32_tile_of(stk_isa_choose()) : stk_bf16_tile_of(stk_isa_choose());
        if (!tiles) continue;
        float y[DEPTH * N];
        uint32_t x[DEPTH * N];
        void *to = alloc(sizeof(float) * DEPTH * N);
        for (int64_t at = 0; at < DEPTH * N; at++)
            x[at] = wide[by_columns ? at % DEPTH : at / N];
        memcpy(y, x, sizeof(y));
        tiles->pack_rounded(y, by_columns ? 1 : N, by_columns ? DEPTH : 1, DEPTH, N, N, DEPTH, to);
        for (int64_t l = 0; l < DEPTH; l++)
            for (int64_t j = 0; j < N; j++)
                if (as_f32)
                    assert_int_equal(((uint32_t *)to)[l * N + j], (uint32_t)narrow[l] << 16);
                else
                    assert_int_equal(((uint16_t *)to)[l / 2 * 2 * N + 2 * j + l % 2], narrow[l]);
        free(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_sizes),
        cmocka_unit_test(blocks_of_rows),
        cmocka_unit_test(long_sums),
        cmocka_unit_test(large_results),
        cmocka_unit_test(added_to_c),
        cmocka_unit_test(biases),
        cmocka_unit_test(rare_numbers_are_cast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
