#include "device/cpu/recurrent/recurrent.h"

#include <math.h>
#include <string.h>

#include "device/cpu/element/element_math.h"

static inline double sigmoid_f64(double x)
{
    double e = exp(-fabs(x)), y = 1 / (1 + e);
    return x < 0 ? e * y : y;
}

#define T          float
#define NAME(x)    x##_f32
#define SIGMOID(x) sigmoid_f32(x)
#define TANH(x)    tanh_f32(x)
#include "device/cpu/recurrent/recurrent_tmpl.h"
#undef T
#undef NAME
#undef SIGMOID
#undef TANH

#define T          double
#define NAME(x)    x##_f64
#define SIGMOID(x) sigmoid_f64(x)
#define TANH(x)    tanh(x)
#include "device/cpu/recurrent/recurrent_tmpl.h"

#define FNS(x)                                                                                                         \
    {                                                                                                                  \
        lstm_##x, gru_##x, lstm_back_##x, gru_back_##x, hold_back_##x                                                  \
    }

const stk_recurrent_table STK_ISA_NAME(stk_recurrent) = {.f32 = FNS(f32), .f64 = FNS(f64)};
