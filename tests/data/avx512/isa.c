/* Instead of data/common/isa.c: AVX-512, whatever the processor has, as it is built as intrinsics.h says. */
#include "data/common/isa.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/isa.h"

stk_data_isa_kind stk_data_isa(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) {
        printf("SKIP: AVX-512 is built for AVX2 here, and the processor has none\n");
        exit(77);
    }
    return stk_isa_allowed() == STK_ISA_BASELINE ? STK_DATA_PLAIN
           : stk_isa_allowed() == STK_ISA_AVX2   ? STK_DATA_AVX2
                                                 : STK_DATA_AVX512;
}
