/* Loops that the compiler builds for several instruction sets, the right one chosen when the library is loaded. */
#ifndef STK_DATA_STAGE_SIMD_H
#define STK_DATA_STAGE_SIMD_H

#include <stdint.h> /* for __GLIBC__: other C libraries have no ifunc */

/* Sanitizers and clang do not get along with it. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&                           \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define STK_SIMD_CLONES __attribute__((target_clones("default", "avx2", "avx512f"), optimize("O3")))
#else
#define STK_SIMD_CLONES
#endif

#endif
