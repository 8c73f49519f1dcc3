/* See data/common/keep.h. */
#include "data/common/keep.h"

#include <stdatomic.h>

static atomic_bool keeps_nothing;

void stk_keep_data(bool keep)
{
    atomic_store(&keeps_nothing, !keep);
}

bool stk_keeps_data(void)
{
    return !atomic_load(&keeps_nothing);
}
