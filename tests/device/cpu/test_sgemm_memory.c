/* What products take besides their operands is what is counted for them, run after run. The shapes are not those with
 * which it was found: the constants are oneDNN's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/matmul/matmul_onednn.h"
#include "device/cpu/onednn/sgemm_memory.h"
#include "high_water.h"

enum { THREADS = 2, RUNS = 20, MIB = 1 << 20 };

typedef struct product {
    int m, n, k;
    bool transpose_a, transpose_b;
} product;

/* Each takes more than those before it. */
static const product products[] = {
    {640, 1800, 300, false, false},  {1100, 900, 2000, true, false}, {960, 5200, 500, false, true},
    {3000, 5000, 380, false, false}, {512, 30000, 200, false, true},
};
enum { N_PRODUCTS = sizeof(products) / sizeof(*products), MOST_ELEMENTS = 16 << 20 };

static void run(const product *p, float *const data[3])
{
    stk_sgemm g = {.m = p->m, .n = p->n, .k = p->k, .transpose_a = p->transpose_a, .transpose_b = p->transpose_b};
    g.a = data[0];
    g.b = data[1];
    g.c = data[2];
    g.a_step = p->transpose_a ? g.m : g.k;
    g.b_step = p->transpose_b ? g.k : g.n;
    g.c_step = g.n;
    assert_int_equal(stk_sgemm_run(&g, THREADS), STK_OK);
}

static void products_take_what_is_counted(void **state)
{
    (void)state;
    float *data[3];
    stk_cpu_pool *pool;
    assert_int_equal(stk_cpu_pool_new(THREADS, NULL, &pool), STK_OK);
    stk_cpu_pool *before_pool = stk_cpu_pool_enter(pool);
    for (int i = 0; i < 3; i++) {
        data[i] = malloc(MOST_ELEMENTS * sizeof(float));
        assert_non_null(data[i]);
        memset(data[i], 0, MOST_ELEMENTS * sizeof(float));
    }
    /* oneDNN's code, for each way that operands may lie. */
    for (int i = 0; i < 4; i++)
        run(&(product){256, 256, 500, i % 2, i / 2}, data);
    size_t before = high_water(), last = 0;
    for (int i = 0; i < N_PRODUCTS; i++) {
        const product *p = &products[i];
        size_t counted = stk_sgemm_library_bytes(p->m, p->n, p->k, THREADS);
        for (int j = 0; j < RUNS; j++)
            run(p, data);
        size_t taken = high_water() - before;
        if (!HIGH_WATER_IS_TOLD) continue;
        /* The heap still has the place of the one before when a larger one is mapped for the first time. */
        if (taken > counted + last + MIB) fail_msg("product %d took %zu bytes, counted are %zu", i, taken, counted);
        last = counted;
    }
    for (int i = 0; i < 3; i++)
        free(data[i]);
    stk_cpu_pool_enter(before_pool);
    stk_cpu_pool_free(pool);
}

static void sizes_are_oneDNNs(void **state)
{
    (void)state;
    /* As malloc saw them with 2.6.3, which is what GPT-2's layers and its vocabulary of 50257 take. */
    static const struct {
        int64_t m, n, k;
        double mib;
    } seen[] = {{512, 25152, 768, 15.20}, {25152, 768, 512, 1.14}, {512, 2304, 768, 3.95}};
    for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++)
        assert_true(fabs((double)stk_sgemm_packing_bytes(seen[i].m, seen[i].n, seen[i].k) / MIB - seen[i].mib) < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_take_what_is_counted),
        cmocka_unit_test(sizes_are_oneDNNs),
    };
    return cmocka_run_group_tests_name("device/sgemm_memory", tests, NULL, NULL);
}
