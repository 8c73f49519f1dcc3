/* What a run sees of its GPU, on a played NVML (tests/watch/fake_nvml.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "run/chip.h"

#define FAKE STK_BINARY_DIR "/tests/libfake_nvml.so"

static void wait_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void the_chip_on_that_bus_is_read(void **state)
{
    (void)state;
    stk_chip chip;
    setenv("FAKE_NVML_GPUS", "3", 1);
    stk_chip_open(&chip, "0000:43:00.0", FAKE);
    assert_non_null(chip.device);
    for (int i = 0; i < 3; i++) {
        wait_ms(60);
        stk_chip_look(&chip);
    }
    json_t *seen = stk_chip_json(&chip, 10);
    assert_non_null(seen);
    assert_true(number(seen, "joules") > 0); /* An idle one takes 70 watts. */
    assert_true(number(seen, "joules") < 70);
    assert_true(fabs(number(seen, "joules_per_sample") * 10 - number(seen, "joules")) < 1e-9);
    assert_true(number(seen, "most_clock_hz") == 1980e6);
    assert_true(number(seen, "least_clock_hz") <= number(seen, "mean_clock_hz"));
    assert_true(number(seen, "mean_clock_hz") > 0);
    assert_true(json_is_array(json_object_get(seen, "slowed_by")));
    json_decref(seen);
    stk_chip_close(&chip);
    unsetenv("FAKE_NVML_GPUS");
}

static void what_is_not_told_is_left_out(void **state)
{
    (void)state;
    stk_chip chip;
    stk_chip_open(&chip, "0000:07:00.0", FAKE); /* No chip is there. */
    assert_null(stk_chip_json(&chip, 10));
    stk_chip_close(&chip);
    stk_chip_open(&chip, "", FAKE); /* A device that is on no bus. */
    assert_null(stk_chip_json(&chip, 10));
    stk_chip_close(&chip);
    stk_chip_open(&chip, "0000:41:00.0", "/no/such/library.so");
    stk_chip_look(&chip);
    assert_null(stk_chip_json(&chip, 10));
    stk_chip_close(&chip);
    setenv("FAKE_NVML_FAIL", "nvmlDeviceGetTotalEnergyConsumption,nvmlDeviceGetClockInfo", 1);
    stk_chip_open(&chip, "0000:41:00.0", FAKE);
    json_t *seen = stk_chip_json(&chip, 10);
    assert_non_null(seen);
    assert_null(json_object_get(seen, "joules"));
    assert_null(json_object_get(seen, "mean_clock_hz"));
    json_decref(seen);
    stk_chip_close(&chip);
    unsetenv("FAKE_NVML_FAIL");
}

static void reasons_have_names(void **state)
{
    (void)state;
    stk_chip chip = {.device = &chip, .slowed = 0x1 | 0x4 | 0x40};
    json_t *seen = stk_chip_json(&chip, 0), *list = json_object_get(seen, "slowed_by");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(json_string_value(json_array_get(list, 0)), "power limit");
    assert_string_equal(json_string_value(json_array_get(list, 1)), "heat (hardware)");
    json_decref(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chip_on_that_bus_is_read),
        cmocka_unit_test(what_is_not_told_is_left_out),
        cmocka_unit_test(reasons_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
