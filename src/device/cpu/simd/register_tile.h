/* For *_isa.c that multiply: how many bytes a vector has, and how many rows of two vectors a tile of sums in registers
 * has, besides which two of one factor and one of the other are there. Eight sums hide the latency of two multiply-adds
 * a cycle.
 */
#ifndef STK_DEVICE_CPU_SIMD_REGISTER_TILE_H
#define STK_DEVICE_CPU_SIMD_REGISTER_TILE_H

#if defined(__AVX512F__)
enum { VEC_BYTES = 64, ROWS = 8 };
#elif defined(__AVX2__)
enum { VEC_BYTES = 32, ROWS = 6 };
#elif defined(__aarch64__)
enum { VEC_BYTES = 16, ROWS = 8 }; /* 32 registers, and four multiply-adds a cycle in the larger cores */
#else
enum { VEC_BYTES = 16, ROWS = 6 };
#endif

#endif
