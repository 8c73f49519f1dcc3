/* CRC32C by the published vectors (RFC 3720, B.4), and against a sum bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/crc32c.h"

static void published_values(void **state)
{
    (void)state;
    uint8_t bytes[32];
    memset(bytes, 0, 32);
    assert_int_equal(stk_crc32c(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, 32);
    assert_int_equal(stk_crc32c(bytes, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(stk_crc32c(bytes, 32), 0x46dd794eu);
    assert_int_equal(stk_crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(stk_crc32c("", 0), 0);
}

static uint32_t bit_by_bit(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (0x82f63b78u & (0 - (crc & 1)));
    }
    return ~crc;
}

static void every_length_and_alignment(void **state)
{
    (void)state;
    static uint8_t bytes[5000];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * i >> 3 ^ i);
    for (size_t n = 0; n < sizeof(bytes) - 8; n += n < 900 ? 1 : 97)
        assert_int_equal(stk_crc32c(bytes + n % 8, n), bit_by_bit(bytes + n % 8, n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_values),
                                       cmocka_unit_test(every_length_and_alignment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
