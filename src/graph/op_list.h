/* Every op, once: the only list of them. An op is one line here, one rule src/ops/<name>.c, and one kernel function in
 * each device; enum, names, rules, the devices' tables, harness and benchmark expand from this list. See
 * docs/adding-an-op.md.
 */

/* Leaves and marks, which nothing computes, so that no device has a kernel for them: the engine gives inputs and
 * variables their memory, and a pass replaces grad by the nodes that compute it. */
#define STK_MARK_OP_LIST(X)                                                                                            \
    X(input)                                                                                                           \
    X(variable)                                                                                                        \
    X(grad)

/* What devices compute. The cpu device and the reference device have a kernel function for each, or do not link; a
 * device that has fewer keeps a table of its own, and what it lacks is refused by name. */
#define STK_KERNEL_OP_LIST(X)                                                                                          \
    /* primitives */                                                                                                   \
    X(constant)                                                                                                        \
    X(unary)                                                                                                           \
    X(binary)                                                                                                          \
    X(compare)                                                                                                         \
    X(select)                                                                                                          \
    X(cast)                                                                                                            \
    X(broadcast)                                                                                                       \
    X(reshape)                                                                                                         \
    X(transpose)                                                                                                       \
    X(slice)                                                                                                           \
    X(slice_grad)                                                                                                      \
    X(pad)                                                                                                             \
    X(concat)                                                                                                          \
    X(reduce)                                                                                                          \
    /* library ops */                                                                                                  \
    X(matmul)                                                                                                          \
    X(conv2d)                                                                                                          \
    X(conv2d_grad_data)                                                                                                \
    X(conv2d_grad_weight)                                                                                              \
    X(conv3d)                                                                                                          \
    X(conv3d_grad_data)                                                                                                \
    X(conv3d_grad_weight)                                                                                              \
    X(max_pool2d)                                                                                                      \
    X(max_pool2d_grad)                                                                                                 \
    X(avg_pool2d)                                                                                                      \
    X(avg_pool2d_grad)                                                                                                 \
    X(max_pool3d)                                                                                                      \
    X(max_pool3d_grad)                                                                                                 \
    X(avg_pool3d)                                                                                                      \
    X(avg_pool3d_grad)                                                                                                 \
    X(batch_norm)                                                                                                      \
    X(batch_norm_grad)                                                                                                 \
    X(batch_norm_apply)                                                                                                \
    X(batch_norm_sum_grad)                                                                                             \
    X(accumulate)                                                                                                      \
    X(carry)                                                                                                           \
    X(layer_norm)                                                                                                      \
    X(layer_norm_grad)                                                                                                 \
    X(group_norm)                                                                                                      \
    X(group_norm_grad)                                                                                                 \
    X(gather)                                                                                                          \
    X(scatter_add)                                                                                                     \
    X(iota)                                                                                                            \
    X(argmax)                                                                                                          \
    X(cumsum)                                                                                                          \
    X(softmax)                                                                                                         \
    X(softmax_grad)                                                                                                    \
    X(cross_entropy)                                                                                                   \
    X(cross_entropy_grad)                                                                                              \
    X(in_top_k)                                                                                                        \
    X(dropout)                                                                                                         \
    X(attention)                                                                                                       \
    X(attention_grad)                                                                                                  \
    X(cached_attention)                                                                                                \
    X(write_at)                                                                                                        \
    X(lstm)                                                                                                            \
    X(lstm_grad)                                                                                                       \
    X(gru)                                                                                                             \
    X(gru_grad)                                                                                                        \
    X(linear_cross_entropy)                                                                                            \
    X(linear_cross_entropy_grad)                                                                                       \
    X(sgd_update)                                                                                                      \
    X(adam_update)                                                                                                     \
    /* between devices */                                                                                              \
    X(copy_to)                                                                                                         \
    X(all_reduce)                                                                                                      \
    /* made by passes */                                                                                               \
    X(fused)

/* What ranks compute together: the engine does it through comm, whatever the device. */
#define STK_RANK_OP_LIST(X)                                                                                            \
    X(rank_sum)                                                                                                        \
    X(rank_scatter)                                                                                                    \
    X(rank_part)                                                                                                       \
    X(rank_gather)                                                                                                     \
    X(rank_begin)                                                                                                      \
    X(rank_await)

#define STK_OP_LIST(X)                                                                                                 \
    STK_MARK_OP_LIST(X)                                                                                                \
    STK_KERNEL_OP_LIST(X)                                                                                              \
    STK_RANK_OP_LIST(X)
