/* How the calls of attention and attention_grad are read, by rules and kernels alike. Their inputs end in what is
 * optional:
 *
 *   mask bool [N,S]                   of keys; a key whose mask is false counts as absent
 *   seed i64 [], sample i64 []        with dropout; the weight of query t and key s in head h of sample n has the bits
 * of dropout.h's row n, element stk_dropout_attention_element
 */
#ifndef STK_GRAPH_ATTENTION_H
#define STK_GRAPH_ATTENTION_H

#include "graph/dropout.h"
#include "tensor/shape.h"

enum { STK_ATTENTION_FIXED = 3, STK_ATTENTION_GRAD_FIXED = 6 }; /* inputs before the optional ones */

typedef struct stk_attention_sizes {
    int64_t n, t, s, h, d; /* samples, queries, keys, heads, and the size of each; n may be STK_ANY */
} stk_attention_sizes;

/* Of q [N,T,H,D] and k [N,S,H,D]. */
static inline stk_attention_sizes stk_attention_get_sizes(stk_shape q, stk_shape k)
{
    return (stk_attention_sizes){q.dim[0], q.dim[1], k.dim[1], q.dim[2], q.dim[3]};
}

/* Which optional inputs stand behind the first n_fixed. */
static inline bool stk_attention_has_mask(int n_in, int n_fixed)
{
    return (n_in - n_fixed) % 2 == 1;
}
static inline bool stk_attention_has_dropout(int n_in, int n_fixed)
{
    return n_in - n_fixed >= 2;
}

#endif
