/* What group_norm and its gradient share. */
#ifndef STK_OPS_GROUP_NORM_H
#define STK_OPS_GROUP_NORM_H

#include "ops/rule.h"

/* Fails unless x [N,...,C] and the attributes fit; *channels [C], *groups [N,G]. */
stk_status stk_group_norm_check(const stk_attrs *attrs, stk_tensor_desc x, stk_shape *channels, stk_shape *groups);
/* x as [N, rows, G, C / G]. */
stk_shape stk_group_norm_split(const stk_attrs *attrs, stk_shape x);
void stk_group_norm_print(const stk_attrs *attrs, stk_text *out);

#endif
