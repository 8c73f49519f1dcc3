/* Initialisers: names of the literature to what a variable needs. Normal ones are not truncated, as PyTorch's.
 * He et al. 2015; Glorot & Bengio 2010.
 */
#include <math.h>

#include "nn/layer_class.h"

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

/* --- in a recipe --- */

#define INITIALIZERS(X)                                                                                                \
    X("default", STK_INIT_DEFAULT)                                                                                     \
    X("he_normal", STK_INIT_HE_NORMAL)                                                                                 \
    X("he_uniform", STK_INIT_HE_UNIFORM)                                                                               \
    X("glorot_normal", STK_INIT_GLOROT_NORMAL)                                                                         \
    X("glorot_uniform", STK_INIT_GLOROT_UNIFORM)                                                                       \
    X("he_normal_fan_out", STK_INIT_HE_NORMAL_FAN_OUT)                                                                 \
    X("zero", STK_INIT_ZERO)                                                                                           \
    X("dirac", STK_INIT_DIRAC)

#define X(word, init) word,
const char *const stk_initializer_words[] = {INITIALIZERS(X) NULL};
#undef X

stk_initializer stk_initializer_of(const stk_yaml_node *settings)
{
#define X(word, init) init,
    static const stk_initializer initializers[] = {INITIALIZERS(X)};
#undef X
    for (int i = 0; stk_initializer_words[i]; i++)
        if (stk_yaml_is(settings, "init", stk_initializer_words[i])) return initializers[i];
    return STK_INIT_DEFAULT;
}
