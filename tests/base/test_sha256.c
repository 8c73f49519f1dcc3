/* SHA-256 by the published values (FIPS 180-4's examples, NIST's test vectors), at each length around a block's end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static void expect(const void *data, size_t n, const char *hex)
{
    uint8_t sum[32];
    char got[65];
    stk_sha256(data, n, sum);
    for (int i = 0; i < 32; i++)
        snprintf(got + 2 * i, 3, "%02x", sum[i]);
    assert_string_equal(got, hex);
}

static void published_values(void **state)
{
    (void)state;
    char *million = malloc(1000000);
    assert_non_null(million);
    memset(million, 'a', 1000000);
    expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    expect(million, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    expect(million, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    free(million);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
