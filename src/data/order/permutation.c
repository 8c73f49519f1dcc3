/* See data/order/permutation.h. */
#include "data/order/permutation.h"

#include <math.h>

/* Up to this many numbers one of all n! permutations is drawn with a 64-bit word: a Feistel network over so few cells
 * could not reach all of them. 16! is 2^44. */
enum { TINY = 16 };

stk_permutation stk_permutation_of(int64_t n_numbers)
{
    uint64_t n = (uint64_t)n_numbers, a = (uint64_t)sqrt((double)n);
    while (a * a < n)
        a++;
    uint64_t b = (n + a - 1) / a;
    /* Small rectangles mix less in a round, and their shuffles cost nothing that matters. */
    return (stk_permutation){.n = n, .side = {(uint32_t)a, (uint32_t)b}, .n_rounds = n < 4096 ? 12 : 6};
}

/* One of all n! permutations, drawn by key with the factorial number system. */
static uint64_t permute_tiny(uint64_t key, uint64_t n, uint64_t x)
{
    uint8_t place[TINY];
    for (uint64_t i = 0; i < n; i++)
        place[i] = (uint8_t)i;
    for (uint64_t i = n - 1; i > 0; i--) {
        uint64_t j = key % (i + 1);
        key /= i + 1;
        uint8_t t = place[i];
        place[i] = place[j];
        place[j] = t;
    }
    return place[x];
}

/* A number in [0, n) from a half of the position and the round's key. */
static inline uint32_t round_number(uint64_t key, uint32_t half, uint32_t n)
{
    uint64_t h = (key ^ half) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
    h *= 0x9E3779B97F4A7C15u;
    return (uint32_t)((h >> 32) * n >> 32);
}

static inline uint32_t add_modulo(uint32_t x, uint32_t y, uint32_t n)
{
    uint64_t sum = (uint64_t)x + y;
    return (uint32_t)(sum >= n ? sum - n : sum);
}

uint64_t stk_permute(const stk_permutation *p, uint64_t key, uint64_t x)
{
    uint64_t n = p->n;
    if (n <= TINY) return permute_tiny(key, n, x);
    uint32_t a = p->side[0], b = p->side[1];
    do {
        uint32_t left = (uint32_t)(x / b), right = (uint32_t)(x % b);
        uint64_t round_key = key;
        for (int i = 0; i < p->n_rounds; i += 2) {
            left = add_modulo(left, round_number(round_key, right, a), a);
            round_key += 0xA0761D6478BD642Fu;
            right = add_modulo(right, round_number(round_key, left, b), b);
            round_key += 0xA0761D6478BD642Fu;
        }
        x = (uint64_t)left * b + right;
    } while (x >= n); /* A cell outside is followed on: its cycle comes back inside. */
    return x;
}
