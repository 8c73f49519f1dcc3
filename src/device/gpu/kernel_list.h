/* The ops that GPUs have kernels of: a function gpu_make_<op> in ops/, which says with what launches the op is
 * computed. Whatever is neither here nor a primitive is decomposed. */
#define GPU_KERNEL_LIST(X)                                                                                             \
    X(constant)                                                                                                        \
    X(unary)                                                                                                           \
    X(binary)                                                                                                          \
    X(compare)                                                                                                         \
    X(select)                                                                                                          \
    X(cast)                                                                                                            \
    X(broadcast)                                                                                                       \
    X(reduce)                                                                                                          \
    X(max_pool2d)                                                                                                      \
    X(max_pool2d_grad)                                                                                                 \
    X(avg_pool2d)                                                                                                      \
    X(avg_pool2d_grad)                                                                                                 \
    X(max_pool3d)                                                                                                      \
    X(max_pool3d_grad)                                                                                                 \
    X(avg_pool3d)                                                                                                      \
    X(avg_pool3d_grad)                                                                                                 \
    X(reshape)                                                                                                         \
    X(transpose)                                                                                                       \
    X(slice)                                                                                                           \
    X(slice_grad)                                                                                                      \
    X(pad)                                                                                                             \
    X(concat)                                                                                                          \
    X(accumulate)                                                                                                      \
    X(carry)                                                                                                           \
    X(gather)                                                                                                          \
    X(scatter_add)                                                                                                     \
    X(iota)                                                                                                            \
    X(argmax)                                                                                                          \
    X(cumsum)                                                                                                          \
    X(matmul)                                                                                                          \
    X(conv2d)                                                                                                          \
    X(conv2d_grad_data)                                                                                                \
    X(conv2d_grad_weight)                                                                                              \
    X(conv3d)                                                                                                          \
    X(conv3d_grad_data)                                                                                                \
    X(conv3d_grad_weight)                                                                                              \
    X(softmax)                                                                                                         \
    X(softmax_grad)                                                                                                    \
    X(dropout)                                                                                                         \
    X(write_at)                                                                                                        \
    X(sgd_update)                                                                                                      \
    X(adam_update)                                                                                                     \
    X(copy_to)                                                                                                         \
    X(all_reduce)                                                                                                      \
    X(fused)
