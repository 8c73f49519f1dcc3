/* A keyed permutation of the numbers below n: a pure function in constant time, without a table.
 *
 * A Feistel network over a rectangle a x b that just holds n (Black & Rogaway, "Ciphers with arbitrary finite domains",
 * CT-RSA 2002), with cycle walking over the few cells left; up to 16 numbers, one of all n! orders by the factorial
 * number system. Threads: any.
 */
#ifndef STK_DATA_ORDER_PERMUTATION_H
#define STK_DATA_ORDER_PERMUTATION_H

#include <stdint.h>

typedef struct stk_permutation {
    uint64_t n;
    uint32_t side[2]; /* of the rectangle */
    int n_rounds;
} stk_permutation;

/* n at least 1. */
stk_permutation stk_permutation_of(int64_t n);
/* What x in [0, n) becomes under that key. */
uint64_t stk_permute(const stk_permutation *p, uint64_t key, uint64_t x);

#endif
