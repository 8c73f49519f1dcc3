#include "data/codec/jpeg_crop/kernels.h"

#include "data/common/isa.h"

const stk_jpeg_kernels stk_jpeg_kernels_plain = STK_JPEG_KERNELS_TABLE(plain);
#ifdef __x86_64__
const stk_jpeg_kernels stk_jpeg_kernels_avx2 = STK_JPEG_KERNELS_TABLE(avx2);
const stk_jpeg_kernels stk_jpeg_kernels_avx512 = STK_JPEG_KERNELS_TABLE(avx512);
#endif

const stk_jpeg_kernels *stk_jpeg_kernels_choose(void)
{
#ifdef __x86_64__
    switch (stk_data_isa()) {
    case STK_DATA_AVX512: return &stk_jpeg_kernels_avx512;
    case STK_DATA_AVX2: return &stk_jpeg_kernels_avx2;
    case STK_DATA_PLAIN: break;
    }
#endif
    return &stk_jpeg_kernels_plain;
}
