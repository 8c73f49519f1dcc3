/* XXH64 by the values of its specification, and in parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"

static void published_values(void **state)
{
    (void)state;
    assert_true(stk_hash64("", 0, 0) == 0xef46db3751d8e999u);
    assert_true(stk_hash64("abc", 3, 0) == 0x44bc2cf5ad770999u);
    assert_true(stk_hash64("Nobody inspects the spammish repetition", 39, 0) == 0xfbcea83c8a378bf1u);
}

/* However the bytes are cut. */
static void parts_are_the_whole(void **state)
{
    (void)state;
    uint8_t bytes[200];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * i >> 3 ^ i);
    for (size_t n = 0; n <= sizeof(bytes); n += 7)
        for (size_t first = 0; first <= n; first++)
            for (size_t second = 0; first + second <= n; second += 5) {
                stk_hash64_parts hash = stk_hash64_begin(n);
                stk_hash64_add(&hash, bytes, first);
                stk_hash64_add(&hash, bytes + first, second);
                stk_hash64_add(&hash, bytes + first + second, n - first - second);
                assert_true(stk_hash64_end(&hash) == stk_hash64(bytes, n, n));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values),
        cmocka_unit_test(parts_are_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
