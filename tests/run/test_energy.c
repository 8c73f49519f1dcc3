/* RAPL's counters, as files that this test writes: packages add up, a counter that starts again is followed, and what
 * cannot be read is said. */
#include "run/energy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static char folder[] = "/tmp/stk-energy-XXXXXX";

static void put(int package, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/intel-rapl:%d", folder, package);
    mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/intel-rapl:%d/%s", folder, package, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_counting(void **state)
{
    (void)state;
    stk_energy energy;
    put(0, "max_energy_range_uj", "262143328850\n");
    put(0, "energy_uj", "262143000000\n");
    put(2, "max_energy_range_uj", "262143328850\n"); /* package 1 cannot be read */
    put(2, "energy_uj", "5000000\n");
    stk_energy_open(&energy, folder);
    assert_int_equal(energy.n, 2);
    put(0, "energy_uj", "262143100000\n");
    put(2, "energy_uj", "6000000\n");
    stk_energy_count(&energy);
    assert_float_equal(energy.joules, 1.1, 1e-9);
    put(0, "energy_uj", "771150\n"); /* from 262143100000 to 262143328850, and again from 0 */
    stk_energy_count(&energy);
    assert_float_equal(energy.joules, 2.1, 1e-9);
    put(0, "energy_uj", "");
    stk_energy_count(&energy); /* nothing comes of what cannot be read any more */
    assert_float_equal(energy.joules, 2.1, 1e-9);
}

static void test_missing(void **state)
{
    (void)state;
    stk_energy energy;
    stk_energy_open(&energy, "/none");
    assert_int_equal(energy.n, 0);
    assert_non_null(strstr(energy.missing, "no RAPL counters"));
    stk_energy_count(&energy);
    assert_float_equal(energy.joules, 0, 0);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return stk_tree_remove(folder) == STK_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counting), cmocka_unit_test(test_missing)};
    return cmocka_run_group_tests_name("run/energy", tests, set_up, tear_down);
}
