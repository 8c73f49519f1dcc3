/* Names and features of processors, from texts as Linux writes them on each architecture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/processor.h"

static const char x86[] =
    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 207\nmodel name\t: Intel(R) Xeon(R)  8592+ \n"
    "flags\t\t: fpu avx512_bf16 amx_tile amx_bf16\nvmx flags\t: vnmi\n\nprocessor\t: 1\nmodel name\t: another\n";
static const char grace[] = "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve sve2 bf16 i8mm\n"
                            "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n";
static const char newer_arm[] = "Features\t: fp\nCPU implementer\t: 0x61\nCPU part\t: 0x022\n";
static const char riscv[] =
    "processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdcv\nmmu\t\t: sv39\nuarch\t\t: sifive,u74-mc\n";

static void is_named(const char *cpuinfo, const char *name)
{
    char got[STK_PROCESSOR_NAME];
    assert_true(stk_processor_name_in(cpuinfo, got, sizeof(got)));
    assert_string_equal(got, name);
}

static void test_names(void **state)
{
    (void)state;
    is_named(x86, "Intel(R) Xeon(R)  8592+");
    is_named(grace, "ARM Neoverse V2");
    is_named(newer_arm, "ARM, implementer 0x61, part 0x022");
    is_named(riscv, "sifive,u74-mc");
}

static void test_no_name(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "\n",
                                        "model name",
                                        "model name\t:",
                                        "model name\t:\nCPU part\t: 0xd4f\n",
                                        "CPU implementer\t:\nCPU part\t:\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char got[STK_PROCESSOR_NAME] = "left";
        assert_false(stk_processor_name_in(texts[i], got, sizeof(got)));
        assert_string_equal(got, "");
    }
}

static void test_cut(void **state)
{
    (void)state;
    char got[9];
    assert_true(stk_processor_name_in(grace, got, sizeof(got)));
    assert_string_equal(got, "ARM Neov");
}

static void test_features(void **state)
{
    (void)state;
    assert_true(stk_processor_has_in(x86, "amx_tile"));
    assert_true(stk_processor_has_in(x86, "fpu"));
    assert_true(stk_processor_has_in(x86, "amx_bf16"));
    assert_false(stk_processor_has_in(x86, "amx"));
    assert_false(stk_processor_has_in(x86, "bf16"));
    assert_false(stk_processor_has_in(x86, "vnmi"));
    assert_true(stk_processor_has_in(grace, "sve"));
    assert_false(stk_processor_has_in(grace, "sve3"));
    assert_false(stk_processor_has_in("", "sve"));
}

static void test_here(void **state)
{
    (void)state;
    char got[STK_PROCESSOR_NAME];
    if (!stk_processor_name(got, sizeof(got))) skip();
    assert_true(got[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),    cmocka_unit_test(test_no_name), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_features), cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
