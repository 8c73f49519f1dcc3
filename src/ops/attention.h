/* What the rules of attention and its gradient share. */
#ifndef STK_OPS_ATTENTION_H
#define STK_OPS_ATTENTION_H

#include "graph/attention.h"
#include "ops/rule.h"

/* Checks q [N,T,H,D], k and v [N,S,H,D] from input i_q on, and the optional inputs from number i_rest on. */
stk_status stk_attention_check(const stk_op_call *call, int i_q, int i_rest);
void stk_attention_print(const stk_attrs *attrs, stk_text *out);
/* Pairs of a query and a key that see each other, of all heads and samples. */
double stk_attention_pairs(const stk_op_call *call, int i_q);

#endif
