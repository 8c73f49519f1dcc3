/* Apart from precision.c, so that what only names precisions is linked without the trainer. */
#include "train/precision.h"

const char *stk_precision_name(stk_precision precision)
{
    static const char *const names[] = {"f32", "bf16", "f16", "auto", "tf32"};
    return names[precision];
}
