/* The bytes of a fuzz target as decisions: each takes the next byte or two. After the end all are 0, which always
 * stands for the plainest choice, so that short inputs make small things. Threads: one at a time.
 */
#ifndef STK_TESTS_FUZZ_DRAW_H
#define STK_TESTS_FUZZ_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fuzz_draw {
    const uint8_t *data; /* [n], borrowed */
    size_t n, at;
} fuzz_draw;

static inline int fuzz_byte(fuzz_draw *d)
{
    return d->at < d->n ? d->data[d->at++] : 0;
}

/* 0 .. n-1; n from 1 to 65536. */
static inline int fuzz_below(fuzz_draw *d, int n)
{
    int x = n > 1 ? fuzz_byte(d) : 0;
    return (n > 256 ? x << 8 | fuzz_byte(d) : x) % n;
}

/* True in N of 256 cases, and not at the end of the bytes. */
static inline bool fuzz_chance(fuzz_draw *d, int of_256)
{
    return fuzz_byte(d) >= 256 - of_256;
}

/* A number that programs get wrong: at the ends of types, and around. */
static inline int64_t fuzz_wild(fuzz_draw *d)
{
    static const int64_t ends[] = {0, 1 << 8, 1 << 16, INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 47, INT64_MAX};
    int64_t x = ends[fuzz_below(d, 7)] - fuzz_below(d, 4);
    return fuzz_byte(d) & 1 ? -x : x;
}

#endif
