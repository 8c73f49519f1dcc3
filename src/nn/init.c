/* Initialisers: names of the literature to what a variable needs. Normal ones are not truncated, as PyTorch's.
 * He et al. 2015; Glorot & Bengio 2010.
 */
#include <math.h>

#include "nn/layer.h"

stk_init stk_initializer_resolve(stk_initializer init, double fan_in, double fan_out)
{
    switch (init) {
    case STK_INIT_HE_NORMAL: return (stk_init){STK_INIT_NORMAL, sqrt(2 / fan_in)};
    case STK_INIT_HE_NORMAL_FAN_OUT: return (stk_init){STK_INIT_NORMAL, sqrt(2 / fan_out)};
    case STK_INIT_HE_UNIFORM: return (stk_init){STK_INIT_UNIFORM, sqrt(6 / fan_in)};
    case STK_INIT_GLOROT_NORMAL: return (stk_init){STK_INIT_NORMAL, sqrt(2 / (fan_in + fan_out))};
    case STK_INIT_GLOROT_UNIFORM: return (stk_init){STK_INIT_UNIFORM, sqrt(6 / (fan_in + fan_out))};
    case STK_INIT_ZERO: return (stk_init){STK_INIT_CONSTANT, 0};
    case STK_INIT_DIRAC: return (stk_init){STK_INIT_IDENTITY, 1 / sqrt(fan_in)};
    case STK_INIT_DEFAULT: break;
    }
    return (stk_init){STK_INIT_UNIFORM, 1 / sqrt(fan_in)};
}

stk_init stk_initializer_bias(stk_initializer init, double fan_in)
{
    if (init != STK_INIT_DEFAULT) return (stk_init){STK_INIT_CONSTANT, 0};
    return (stk_init){STK_INIT_UNIFORM, 1 / sqrt(fan_in)};
}
