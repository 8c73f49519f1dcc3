#include "data/codec/jpeg_crop/kernels.h"

#include <stdlib.h>
#include <string.h>

const stk_jpeg_kernels stk_jpeg_kernels_plain = STK_JPEG_KERNELS_TABLE(plain);
#ifdef __x86_64__
const stk_jpeg_kernels stk_jpeg_kernels_avx2 = STK_JPEG_KERNELS_TABLE(avx2);
#endif

const stk_jpeg_kernels *stk_jpeg_kernels_choose(void)
{
#ifdef __x86_64__
    const char *wanted = getenv("STOKER_ISA");
    __builtin_cpu_init();
    if (!(wanted && !strcmp(wanted, "baseline")) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2"))
        return &stk_jpeg_kernels_avx2;
#endif
    return &stk_jpeg_kernels_plain;
}
