/* Which instruction set the data plane's kernels are taken from. */
#ifndef STK_DATA_COMMON_ISA_H
#define STK_DATA_COMMON_ISA_H

typedef enum stk_data_isa_kind {
    STK_DATA_PLAIN,
    STK_DATA_AVX2,   /* with BMI and BMI2: from Haswell and Zen on */
    STK_DATA_AVX512, /* F, BW, DQ, VL, VBMI and VBMI2: from Ice Lake and Zen 4 on */
} stk_data_isa_kind;

/* The best that this processor has, or less where the environment's STOKER_ISA says `baseline` or `avx2` (as for the
 * cpu device). */
stk_data_isa_kind stk_data_isa(void);

#endif
