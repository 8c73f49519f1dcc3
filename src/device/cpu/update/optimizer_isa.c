#include "device/cpu/update/optimizer.h"

#include <math.h>

#define T       float
#define NAME(x) x##_f32
#define SQRT    sqrtf
#include "device/cpu/update/optimizer_tmpl.h"
#undef T
#undef NAME
#undef SQRT

#define T       double
#define NAME(x) x##_f64
#define SQRT    sqrt
#include "device/cpu/update/optimizer_tmpl.h"

const stk_optimizer_table STK_ISA_NAME(stk_optimizer) = {{sgd_f32, momentum_f32, adam_f32},
                                                         {sgd_f64, momentum_f64, adam_f64}};
