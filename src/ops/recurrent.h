/* What the rules of lstm and gru and of their gradients share.
 *
 * One node is all steps of one direction. x holds what the inputs give to the gates, x_t W' and its bias, of which one
 * product for all steps has been made before; weight and bias are the state's. N samples, T steps, H units, G gates:
 *
 *   lstm   i, f, g, o = x_t + weight h + bias [4H]   c_t = sigmoid(f) c + sigmoid(i) tanh(g)   h_t = sigmoid(o)
 * tanh(c_t) gru    r, z = sigmoid(x_t + weight h + bias)     n = tanh(x_t + r part), part = weight h + bias of the
 * third gate h_t = n + z (h - n)
 *
 * where h and c are the step's before. A step that a mask leaves out keeps both, and its gates and part are 0. Outputs
 * are all steps' states; `gates` (behind their functions) and `part` are for the gradient alone. Hochreiter &
 * Schmidhuber 1997, Gers et al. 2000; Cho et al. 2014, with the reset gate behind the product, as PyTorch and cuDNN.
 */
#ifndef STK_OPS_RECURRENT_H
#define STK_OPS_RECURRENT_H

#include "ops/compose.h"

enum { STK_LSTM_GATES = 4, STK_GRU_GATES = 3 };
/* Steps that a device without the op computes one by one. */
enum { STK_MOST_COMPOSED_STEPS = 4096 };

/* Sizes that x [N,T,GH] has; STK_ANY only for n. */
typedef struct stk_recurrent_sizes {
    int64_t n, t, h;
} stk_recurrent_sizes;

stk_status stk_recurrent_read(const char *role, stk_tensor_desc x, int n_gates, stk_recurrent_sizes *out);
/* Floats of one dtype: [N,T,width], [N,H], weight [GH,H]. */
stk_status stk_recurrent_need_steps(const stk_op_call *call, const char *role, int i, const stk_recurrent_sizes *size,
                                    int64_t width);
stk_status stk_recurrent_need_state(const stk_op_call *call, const char *role, int i, const stk_recurrent_sizes *size);
stk_status stk_recurrent_need_weight(const stk_op_call *call, int i, const stk_recurrent_sizes *size, int n_gates);
/* That there are n_fixed inputs, and a mask [N,T] behind them where attrs say so, and up to n_more then. */
stk_status stk_recurrent_need_rest(const stk_op_call *call, int n_fixed, int n_more, const stk_recurrent_sizes *size);
void stk_recurrent_print(const stk_attrs *attrs, stk_text *out);

/* --- gradients --- */

/* Of weight: what gates had to do, [N,T,GH], times the states before. */
stk_value stk_recurrent_grad_weight(stk_value dgates, stk_value h, stk_value h0, bool reverse);
/* Of bias. */
stk_value stk_recurrent_grad_bias(stk_value dgates);
/* grad, or zeros like x where it is none. */
stk_value stk_recurrent_or_zeros(stk_value grad, stk_value x);

/* --- compositions: a step after the other --- */

typedef struct stk_recurrent_steps {
    const stk_decompose_call *call;
    stk_recurrent_sizes size;
    bool backward;      /* steps are walked over from the last to the first */
    stk_value *made[3]; /* outputs [N,1,...], by step */
    int64_t width[3];
    int n_made;
    stk_value mask; /* id -1: none */
} stk_recurrent_steps;

/* Starts with n_made outputs of those widths. False, and the error in the graph, where there are too many steps. End
 * with stk_recurrent_end_steps, which sets made outputs 0 .. n_made - 1 where nothing failed. */
bool stk_recurrent_begin_steps(const stk_decompose_call *call, stk_value x, int n_gates, int i_mask,
                               const int64_t *width, int n_made, stk_recurrent_steps *out);
void stk_recurrent_end_steps(stk_recurrent_steps *steps, const int *i_output);
/* Which step comes i-th, and which was before it in the forward pass: -1 for the state that it began with. */
int64_t stk_recurrent_step(const stk_recurrent_steps *steps, int64_t i);
int64_t stk_recurrent_before(const stk_recurrent_steps *steps, int64_t step);
/* Step t of x [N,T,W] as [N,W]; gate i of such a one. */
stk_value stk_recurrent_pick(stk_value x, int64_t t);
stk_value stk_recurrent_gate(const stk_recurrent_steps *steps, stk_value x, int i);
/* a where step t counts, else b, or 0 where that is none. */
stk_value stk_recurrent_choose(const stk_recurrent_steps *steps, int64_t t, stk_value a, stk_value b);
/* The state's part of the gates [N,GH], or of one row where h is none: bias alone. */
stk_value stk_recurrent_from_state(stk_value h, stk_value weight, stk_value bias);
/* A state that the steps begin with; none where it is zeros, which then cost nothing. */
stk_value stk_recurrent_first(stk_value state);
/* dy * y (1 - y) and dy (1 - y^2). */
stk_value stk_recurrent_sigmoid_grad(stk_value dy, stk_value y);
stk_value stk_recurrent_tanh_grad(stk_value dy, stk_value y);

#endif
