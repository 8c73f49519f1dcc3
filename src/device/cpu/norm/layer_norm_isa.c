#include "device/cpu/norm/layer_norm.h"

#include <math.h>

#include "device/cpu/simd/half.h"

#define T        float
#define S        float
#define LOAD(x)  (x)
#define STORE(x) (x)
#define NAME(x)  x##_f32
#include "device/cpu/norm/layer_norm_tmpl.h"
#undef S
#undef LOAD
#undef STORE
#undef NAME

#define S        uint16_t
#define LOAD(x)  bf16_to_f32(x)
#define STORE(x) bf16_from_f32(x)
#define NAME(x)  x##_bf16
#include "device/cpu/norm/layer_norm_tmpl.h"
#undef LOAD
#undef STORE
#undef NAME

#define LOAD(x)  f16_to_f32(x)
#define STORE(x) f16_from_f32(x)
#define NAME(x)  x##_f16
#include "device/cpu/norm/layer_norm_tmpl.h"
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
#include "device/cpu/norm/layer_norm_tmpl.h"

#define FNS(suffix)                                                                                                    \
    {                                                                                                                  \
        forward_##suffix, grad_##suffix                                                                                \
    }

const stk_layer_norm_table STK_ISA_NAME(stk_layer_norm) = {
    .fns = {[STK_F32] = FNS(f32), [STK_BF16] = FNS(bf16), [STK_F16] = FNS(f16), [STK_F64] = FNS(f64)},
};
