/* Instruction sets of own kernels. Every *_isa.c is compiled once for each of baseline, avx2 and avx512 and ends in a
 * table of functions, named by STK_ISA_NAME; at run time one of the tables is taken for the whole device.
 *
 * What a header declares with STK_ISA_TABLE(type, stem) is used as stem_of(isa)->function(...).
 */
#ifndef STK_DEVICE_CPU_SIMD_ISA_H
#define STK_DEVICE_CPU_SIMD_ISA_H

#include "base/isa.h"

#define STK_ISA_JOIN_(stem, isa) stem##_##isa
#define STK_ISA_JOIN(stem, isa)  STK_ISA_JOIN_(stem, isa)
/* In *_isa.c only, where the build defines STK_ISA. */
#define STK_ISA_NAME(stem) STK_ISA_JOIN(stem, STK_ISA)

#ifdef STK_ISA_X86
#define STK_ISA_TABLE(type, stem)                                                                                      \
    extern const type stem##_baseline, stem##_avx2, stem##_avx512;                                                     \
    static inline const type *stem##_of(stk_isa isa)                                                                   \
    {                                                                                                                  \
        return isa == STK_ISA_AVX512 ? &stem##_avx512 : isa == STK_ISA_AVX2 ? &stem##_avx2 : &stem##_baseline;         \
    }
#elif defined(STK_ISA)
/* A *_isa.c only defines tables. */
#define STK_ISA_TABLE(type, stem) extern const type STK_ISA_NAME(stem);
#else
#define STK_ISA_TABLE(type, stem)                                                                                      \
    extern const type stem##_baseline;                                                                                 \
    static inline const type *stem##_of(stk_isa isa)                                                                   \
    {                                                                                                                  \
        (void)isa;                                                                                                     \
        return &stem##_baseline;                                                                                       \
    }
#endif

/* The best that this processor has, or less where the environment's STOKER_ISA says so. */
stk_isa stk_isa_choose(void);
/* Whether it multiplies bf16 by instructions of its own, which are used with STK_ISA_AVX512 only. */
bool stk_isa_has_bf16(stk_isa isa);
/* Whether Intel made it: generations of one instruction set differ by maker in what is fast. */
bool stk_isa_is_of_intel(void);
/* Whether it multiplies tiles of bf16 (AMX) and the system lets this process do so, which it is asked for here. */
bool stk_isa_has_amx(stk_isa isa);

#endif
