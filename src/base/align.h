/* Sizes rounded up to a multiple. Threads: any.
 *
 * Nothing checks for overflow: n + to - 1 wraps where n is that close to the type's greatest value, so that a size out
 * of a file is bounded before.
 */
#ifndef STK_BASE_ALIGN_H
#define STK_BASE_ALIGN_H

#include <stddef.h>
#include <stdint.h>

/* The least multiple of `to`, which is 1 or more, that is at least n. */
static inline size_t stk_round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* The same for counts and indices: n is 0 or more. */
static inline int64_t stk_round_up_i64(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

#endif
