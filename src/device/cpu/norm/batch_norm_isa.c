#include "device/cpu/norm/batch_norm.h"

#include <math.h>

#include "device/cpu/simd/half.h"

#define T        float
#define S        float
#define LOAD(x)  (x)
#define STORE(x) (x)
#define NAME(x)  x##_f32
#include "device/cpu/norm/batch_norm_loops_tmpl.h"
#include "device/cpu/norm/batch_norm_tmpl.h"
#undef S
#undef LOAD
#undef STORE
#undef NAME

#define S        uint16_t
#define LOAD(x)  bf16_to_f32(x)
#define STORE(x) bf16_from_f32(x)
#define NAME(x)  x##_bf16
#include "device/cpu/norm/batch_norm_loops_tmpl.h"
#include "device/cpu/norm/batch_norm_tmpl.h"
#undef LOAD
#undef STORE
#undef NAME

#define LOAD(x)  f16_to_f32(x)
#define STORE(x) f16_from_f32(x)
#define NAME(x)  x##_f16
#include "device/cpu/norm/batch_norm_loops_tmpl.h"
#include "device/cpu/norm/batch_norm_tmpl.h"
#undef T
#undef S
#undef LOAD
#undef STORE
#undef NAME

#define T        double
#define S        double
#define LOAD(x)  (x)
#define STORE(x) (x)
#define NAME(x)  x##_f64
#include "device/cpu/norm/batch_norm_loops_tmpl.h"
#include "device/cpu/norm/batch_norm_tmpl.h"

const stk_batch_norm_table STK_ISA_NAME(stk_batch_norm) = {
    .fns = {[STK_F32] = STK_BATCH_NORM_FNS(f32),
            [STK_BF16] = STK_BATCH_NORM_FNS(bf16),
            [STK_F16] = STK_BATCH_NORM_FNS(f16),
            [STK_F64] = STK_BATCH_NORM_FNS(f64)},
};
