/* Products of oneDNN while signals come, as from Ctrl-C or a profiler: handlers run on the thread's stack and nowhere
 * else, and results are those without signals.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "device/cpu/onednn/onednn.h"

/* Of this size oneDNN 2.6 has its workspace on the heap. */
enum { M = 48, N = 64, K = 520, N_RUNS = 600 };

static volatile sig_atomic_t n_signals, n_elsewhere;
static uintptr_t stack; /* an address on it */

static void look_where(int number)
{
    uintptr_t at = (uintptr_t)__builtin_frame_address(0); /* A local may lie elsewhere under a sanitizer. */
    (void)number;
    n_signals++;
    if ((at > stack ? at - stack : stack - at) > (uintptr_t)4 << 20) n_elsewhere++;
}

static float *new_numbers(int n, int modulus)
{
    float *x = malloc((size_t)n * sizeof(float));
    assert_non_null(x);
    for (int i = 0; i < n; i++)
        x[i] = (float)(i % modulus - modulus / 2);
    return x;
}

static void ring_every(int us)
{
    struct itimerval t = {{0, us}, {0, us}};
    assert_int_equal(setitimer(ITIMER_REAL, &t, NULL), 0);
}

static void test_products_bear_signals(void **state)
{
    (void)state;
    stack = (uintptr_t)__builtin_frame_address(0);
    struct sigaction action = {.sa_handler = look_where, .sa_flags = SA_RESTART}, before;
    float *a = new_numbers(K * M, 7), *b = new_numbers(K * N, 5), *want = new_numbers(M * N, 3);
    stk_sgemm g = {.m = M,
                   .n = N,
                   .k = K,
                   .transpose_a = true,
                   .adds = true,
                   .a = a,
                   .b = b,
                   .a_step = M,
                   .b_step = N,
                   .c_step = N};
    g.c = want;
    assert_int_equal(stk_onednn_sgemm(&g), STK_OK);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    ring_every(200);
    for (int i = 0; i < N_RUNS || n_signals < 100; i++) {
        float *c = new_numbers(M * N, 3);
        g.c = c;
        assert_int_equal(stk_onednn_sgemm(&g), STK_OK);
        assert_memory_equal(c, want, M * N * sizeof(float));
        free(c);
    }
    ring_every(0);
    assert_int_equal(n_elsewhere, 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    free(want);
    free(b);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products_bear_signals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
