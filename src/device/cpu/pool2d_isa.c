#include "device/cpu/pool2d.h"

#include <math.h>

#define T       float
#define MASK    int32_t
#define NAME(x) x##_f32
#include "device/cpu/pool2d_tmpl.h"
#undef T
#undef MASK
#undef NAME

#define T       double
#define MASK    int64_t
#define NAME(x) x##_f64
#include "device/cpu/pool2d_tmpl.h"

const stk_pool_table STK_ISA_NAME(stk_pool) = {{max_f32, avg_f32, max_grad_f32, avg_grad_f32},
                                               {max_f64, avg_f64, max_grad_f64, avg_grad_f64}};
