/* What layers share: their names, their parameters and their errors. No arithmetic here.
 *
 * A layer begins, checks its arguments (stk_layer_fail on the first that does not fit), makes its parameters and nodes,
 * and ends. Errors of the nodes inside then start with the layer's name too.
 */
#ifndef STK_NN_LAYER_H
#define STK_NN_LAYER_H

#include "graph/graph.h"
#include "stoker/nn/nn.h"

typedef struct stk_layer {
    stk_graph *graph; /* borrowed */
    const char *name; /* with its scopes; borrowed from the graph */
    stk_value x;      /* the input */
    stk_shape shape;  /* of x */
    stk_dtype dtype;  /* of parameters: f64 where x is f64, else f32 */
} stk_layer;

/* Names the layer: its scopes, then name (NULL: kind, with a counter where a layer of that name has variables). False
 * when x is no value or an error came before. */
bool stk_layer_begin(stk_layer *layer, stk_value x, const char *kind, const char *name);
/* The variable "<layer's name>.<part>". */
stk_value stk_layer_variable(const stk_layer *layer, const char *part, stk_shape shape, stk_init init, bool trainable);
/* Keeps "layer 'name': ..." as the graph's error; returns no value. */
stk_value stk_layer_fail(const stk_layer *layer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns y; an error since the beginning gets the layer's name in front. */
stk_value stk_layer_end(const stk_layer *layer, stk_value y);

/* The name within its scopes, as for stk_scope_push: parts of the layer are then named "<layer's name>.<part>". */
const char *stk_layer_own_name(const stk_layer *layer);

/* False, with an error kept, unless x is f32 or f64. */
bool stk_layer_need_float(const stk_layer *layer);
/* False, with an error kept, unless x is [N,H,W,C] (n_dims 2) or [N,D,H,W,C] (3) of known sizes. */
bool stk_layer_need_space(const stk_layer *layer, int n_dims);
/* False, with an error kept, unless x is [N,T,C] with known T and C. */
bool stk_layer_need_sequence(const stk_layer *layer);
/* False, with an error kept, unless low <= value <= high. */
bool stk_layer_need_range(const stk_layer *layer, const char *what, int64_t value, int64_t low, int64_t high);

/* The limit of kernels, strides, padding and dilation: their products then fit in 32 bits. */
enum { STK_MOST_KERNEL = 1 << 14 };

/* Resolves an initialiser for a weight with that many inputs an output and outputs an input. */
stk_init stk_initializer_resolve(stk_initializer init, double fan_in, double fan_out);
/* For the bias next to such a weight. */
stk_init stk_initializer_bias(stk_initializer init, double fan_in);

#endif
