#include "data/common/isa.h"

#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
stk_data_isa_kind stk_data_isa(void)
{
    const char *wanted = getenv("STOKER_ISA");
    __builtin_cpu_init();
    if ((wanted && !strcmp(wanted, "baseline")) || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2"))
        return STK_DATA_PLAIN;
    if ((wanted && !strcmp(wanted, "avx2")) || !__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512vbmi") ||
        !__builtin_cpu_supports("avx512vbmi2"))
        return STK_DATA_AVX2;
    return STK_DATA_AVX512;
}
#else
stk_data_isa_kind stk_data_isa(void)
{
    return STK_DATA_PLAIN;
}
#endif
