/* STOKER_ISA: what each value allows, and that anything else allows all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/isa.h"

static void names_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < STK_N_ISAS; i++) {
        stk_isa isa = STK_N_ISAS;
        assert_true(stk_isa_find(stk_isa_name((stk_isa)i), &isa));
        assert_int_equal(isa, i);
    }
    stk_isa isa = STK_ISA_AVX2;
    assert_false(stk_isa_find("sse", &isa));
    assert_false(stk_isa_find("", &isa));
    assert_int_equal(isa, STK_ISA_AVX2);
}

static void environment_limits(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        stk_isa allowed;
    } cases[] = {{"baseline", STK_ISA_BASELINE}, {"avx2", STK_ISA_AVX2}, {"avx512", STK_ISA_AVX512},
                 {"best", STK_ISA_AVX512},       {"", STK_ISA_AVX512},   {"AVX2", STK_ISA_AVX512}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv("STOKER_ISA", cases[i].value, 1);
        assert_int_equal(stk_isa_allowed(), cases[i].allowed);
    }
    unsetenv("STOKER_ISA");
    assert_int_equal(stk_isa_allowed(), STK_ISA_AVX512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(environment_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
