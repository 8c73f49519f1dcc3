/* Symbols are read one after the other: wider registers have nothing to do here. */
#ifdef __x86_64__
#include "data/codec/jpeg_crop/kernels.h"

bool stk_jpeg_store_avx512(stk_jpeg_scan *scan, int n_mcus)
{
    return stk_jpeg_store_avx2(scan, n_mcus);
}

bool stk_jpeg_parse_avx512(stk_jpeg_scan *scan, int n_mcus)
{
    return stk_jpeg_parse_avx2(scan, n_mcus);
}
#endif
