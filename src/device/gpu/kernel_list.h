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
    X(dropout)                                                                                                         \
    X(fused)
