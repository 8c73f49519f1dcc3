#include <stdlib.h>

#include "engine/draw_tmpl.h"

const stk_draw_kernels stk_draw_kernels_plain = {draw_uniform, draw_normal};

const stk_draw_kernels *stk_draw_kernels_choose(void)
{
#ifdef __x86_64__
    const char *wanted = getenv("STOKER_ISA");
    if (!(wanted && !strcmp(wanted, "baseline")) && __builtin_cpu_supports("avx2")) return &stk_draw_kernels_avx2;
#endif
    return &stk_draw_kernels_plain;
}
