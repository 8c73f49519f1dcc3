#include "data/common/isa.h"

#include "base/isa.h"

#ifdef __x86_64__
stk_data_isa_kind stk_data_isa(void)
{
    stk_isa allowed = stk_isa_allowed();
    __builtin_cpu_init();
    if (allowed < STK_ISA_AVX2 || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2"))
        return STK_DATA_PLAIN;
    if (allowed < STK_ISA_AVX512 || !__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512vbmi") || !__builtin_cpu_supports("avx512vbmi2"))
        return STK_DATA_AVX2;
    return STK_DATA_AVX512;
}
#else
stk_data_isa_kind stk_data_isa(void)
{
    return STK_DATA_PLAIN;
}
#endif
