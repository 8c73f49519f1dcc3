/* Every op, once. An op is one line here, one rule src/ops/<name>.c, and one slot in each device's kernel table; enum,
 * names, rules, harness and benchmark expand from this list. See docs/adding-an-op.md.
 */
#define STK_OP_LIST(X)                                                                                                 \
    /* leaves and marks */                                                                                             \
    X(input)                                                                                                           \
    X(variable)                                                                                                        \
    X(constant)                                                                                                        \
    X(grad)                                                                                                            \
    /* primitives */                                                                                                   \
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
    X(linear_cross_entropy)                                                                                            \
    X(linear_cross_entropy_grad)                                                                                       \
    X(sgd_update)                                                                                                      \
    X(adam_update)                                                                                                     \
    /* made by passes */                                                                                               \
    X(fused)
