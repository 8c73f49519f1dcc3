#include "device/cpu/norm/group_norm.h"

#include <math.h>

#define T       float
#define NAME(x) x##_f32
#include "device/cpu/norm/group_norm_tmpl.h"
#undef T
#undef NAME

#define T       double
#define NAME(x) x##_f64
#include "device/cpu/norm/group_norm_tmpl.h"

const stk_group_norm_table STK_ISA_NAME(stk_group_norm) = {{forward_f32, grad_f32}, {forward_f64, grad_f64}};
