/* What the rules of attention and its gradient share. */
#ifndef STK_OPS_ATTENTION_H
#define STK_OPS_ATTENTION_H

#include "graph/attention.h"
#include "ops/compose.h"

/* Checks q [N,T,H,D], k and v [N,S,H,D] from input i_q on, and the optional inputs from number i_rest on. */
stk_status stk_attention_check(const stk_op_call *call, int i_q, int i_rest);
void stk_attention_print(const stk_attrs *attrs, stk_text *out);
/* Pairs of a query and a key that see each other, of all heads and samples. */
double stk_attention_pairs(const stk_op_call *call, int i_q);

/* The composition, which stores all weights: [N,H,T,S], wide. q, k and v are [N,H,..,D]; pairs that do not see each
 * other have the score -inf. */
typedef struct stk_attention_parts {
    const stk_decompose_call *call;
    int i_rest;
    stk_attention_sizes size;
    stk_value q, k, v, score;
} stk_attention_parts;
stk_attention_parts stk_attention_compose(const stk_decompose_call *call, int i_q, int i_rest);
/* exp(score - lse), 0 of pairs that do not see each other; lse [N,H,T]. */
stk_value stk_attention_compose_weights(const stk_attention_parts *p, stk_value lse);
/* x, or 0 of pairs that do not see each other. */
stk_value stk_attention_compose_see(const stk_attention_parts *p, stk_value x, double unseen);
/* What dropout makes of weights [N,H,T,S]. */
stk_value stk_attention_compose_drop(const stk_attention_parts *p, stk_value x);
/* [N,T,H,D] to [N,H,T,D] and back. */
stk_value stk_attention_swap_heads(stk_value x);
stk_value stk_attention_multiply(stk_value a, stk_value b, bool transpose_a, bool transpose_b);

#endif
