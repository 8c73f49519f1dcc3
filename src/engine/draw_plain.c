#include "base/isa.h"
#include "engine/draw_tmpl.h"

const stk_draw_kernels stk_draw_kernels_plain = {draw_uniform, draw_normal};

const stk_draw_kernels *stk_draw_kernels_choose(void)
{
#ifdef __x86_64__
    if (stk_isa_allowed() >= STK_ISA_AVX2 && __builtin_cpu_supports("avx2")) return &stk_draw_kernels_avx2;
#endif
    return &stk_draw_kernels_plain;
}
