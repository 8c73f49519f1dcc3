#ifdef __x86_64__
#include "engine/draw_tmpl.h"

const stk_draw_kernels stk_draw_kernels_avx2 = {draw_uniform, draw_normal};
#else
typedef int stk_no_avx2; /* a file must not be empty */
#endif
