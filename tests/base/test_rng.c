/* Philox against the vectors published with Random123 (kat_vectors, philox4x32 10). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void published_vectors(void **state)
{
    (void)state;
    stk_u32x4 r = stk_philox(0, 0, 0);
    assert_int_equal(r.v[0], 0x6627e8d5);
    assert_int_equal(r.v[1], 0xe169c58d);
    assert_int_equal(r.v[2], 0xbc57ac4c);
    assert_int_equal(r.v[3], 0x9b00dbd8);
    r = stk_philox(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u);
    assert_int_equal(r.v[0], 0xd16cfe09);
    assert_int_equal(r.v[1], 0x94fdcceb);
    assert_int_equal(r.v[2], 0x5001e420);
    assert_int_equal(r.v[3], 0x24126ea1);
}

static void below_is_in_range(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(1, 2, 3, 4);
    int seen[7] = {0};
    for (int i = 0; i < 7000; i++)
        seen[stk_rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 850, 1150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_vectors), cmocka_unit_test(below_is_in_range)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
