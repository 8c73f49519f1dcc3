/* Contents that differ, in whatever way files come to differ, have other hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/content_hash.h"

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Every bit of bytes of each kind, turned alone; every length; every pair of stripes in each other's place. */
static void every_change_counts(void **state)
{
    (void)state;
    enum { N = 3000, MOST = 2 * 8 * N + N + 47 * 46 / 2 + 8 };
    uint64_t *hash = malloc(MOST * sizeof(*hash));
    uint8_t *bytes = malloc(N);
    size_t n = 0;
    assert_true(hash && bytes);
    for (int kind = 0; kind < 2; kind++) {
        for (int i = 0; i < N; i++)
            bytes[i] = kind ? (uint8_t)((uint32_t)i * 2654435761u >> 13) : 0;
        hash[n++] = stk_content_hash(bytes, N);
        for (int bit = 0; bit < 8 * N; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            hash[n++] = stk_content_hash(bytes, N);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    for (size_t length = 0; length < N; length++)
        hash[n++] = stk_content_hash(bytes, length);
    for (int i = 0; i < N / 64; i++)
        for (int k = 0; k < i; k++) {
            uint8_t kept[64];
            memcpy(kept, bytes + 64 * i, 64);
            memcpy(bytes + 64 * i, bytes + 64 * k, 64);
            memcpy(bytes + 64 * k, kept, 64);
            hash[n++] = stk_content_hash(bytes, N);
            memcpy(bytes + 64 * k, bytes + 64 * i, 64);
            memcpy(bytes + 64 * i, kept, 64);
        }
    assert_true(n <= MOST);
    qsort(hash, n, sizeof(*hash), compare);
    for (size_t i = 1; i < n; i++)
        assert_true(hash[i] != hash[i - 1]);
    free(hash);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_change_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
