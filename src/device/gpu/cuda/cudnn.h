/* The part of cuDNN's graph interface that Stoker uses, by NVIDIA's documents of cuDNN 9; loaded at run time, and
 * optional. CUDNN_SYMBOL_LIST is the only list of functions; all but the version and the texts return 0, or an error.
 *
 * All is said by descriptors: made, given attributes (an array of one type each), finalized, read. CUDNN_VALUE_LIST has
 * the numbers by NVIDIA's own names, which tests/device/gpu/test_cudnn_library.c compares with NVIDIA's header.
 */
#ifndef STK_DEVICE_GPU_CUDA_CUDNN_H
#define STK_DEVICE_GPU_CUDA_CUDNN_H

#include <stddef.h>
#include <stdint.h>

#include "device/gpu/cuda/cu.h"

typedef struct cudnn_handle_state *cudnn_handle;
typedef void *cudnn_descriptor;

#define CUDNN_VALUE_LIST(X)                                                                                            \
    /* types of elements */                                                                                            \
    X(CUDNN_DATA_FLOAT, 0)                                                                                             \
    X(CUDNN_DATA_HALF, 2)                                                                                              \
    X(CUDNN_DATA_BFLOAT16, 9)                                                                                          \
    /* types of attributes */                                                                                          \
    X(CUDNN_TYPE_HANDLE, 0)                                                                                            \
    X(CUDNN_TYPE_DATA_TYPE, 1)                                                                                         \
    X(CUDNN_TYPE_BOOLEAN, 2)                                                                                           \
    X(CUDNN_TYPE_INT64, 3)                                                                                             \
    X(CUDNN_TYPE_FLOAT, 4)                                                                                             \
    X(CUDNN_TYPE_VOID_PTR, 6)                                                                                          \
    X(CUDNN_TYPE_CONVOLUTION_MODE, 7)                                                                                  \
    X(CUDNN_TYPE_HEUR_MODE, 8)                                                                                         \
    X(CUDNN_TYPE_NAN_PROPOGATION, 10)                                                                                  \
    X(CUDNN_TYPE_NUMERICAL_NOTE, 11)                                                                                   \
    X(CUDNN_TYPE_POINTWISE_MODE, 14)                                                                                   \
    X(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                                                               \
    X(CUDNN_TYPE_CHAR, 24)                                                                                             \
    /* descriptors */                                                                                                  \
    X(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                                                                           \
    X(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                                                                         \
    X(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                                                              \
    X(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                                                           \
    X(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                                                                          \
    X(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                                                                      \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)                                                      \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11)                                              \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)                                                \
    X(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                                                                \
    X(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                                                                     \
    X(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                                                                       \
    X(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                                                             \
    X(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, 38)                                                                         \
    /* their attributes */                                                                                             \
    X(CUDNN_ATTR_POINTWISE_MODE, 0)                                                                                    \
    X(CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                                                                               \
    X(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, 2)                                                                         \
    X(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                                                                           \
    X(CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                                                                           \
    X(CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                                                                           \
    X(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                                                                      \
    X(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                                                                       \
    X(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                                                                        \
    X(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                                                                        \
    X(CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                                                                 \
    X(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                                                                      \
    X(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                                                              \
    X(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 204)                                                                           \
    X(CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                                                                \
    X(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                                                           \
    X(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                                                                    \
    X(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                                                                   \
    X(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, 405)                                                              \
    X(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 407)                                                                       \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                                                             \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                                                              \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)                                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                                                                 \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                                                                 \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                                                                 \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)                                                            \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)                                                             \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)                                                        \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)                                                                \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)                                                               \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)                                                               \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)                                                          \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)                                                           \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714)                                                      \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)                                                             \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)                                                              \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)                                                             \
    X(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                                                               \
    X(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                                                                       \
    X(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                                                                       \
    X(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                                                                       \
    X(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                                                                           \
    X(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                                                              \
    X(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                                                                           \
    X(CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                                                                \
    X(CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                                                               \
    X(CUDNN_ATTR_TENSOR_STRIDES, 903)                                                                                  \
    X(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                                                                \
    X(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                                                               \
    X(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                                                                        \
    X(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                                                                     \
    X(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                                                                         \
    X(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                                                                          \
    X(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)                                                                 \
    /* their values */                                                                                                 \
    X(CUDNN_CROSS_CORRELATION, 1)                                                                                      \
    X(CUDNN_POINTWISE_ADD, 0)                                                                                          \
    X(CUDNN_POINTWISE_IDENTITY, 21)                                                                                    \
    X(CUDNN_POINTWISE_RELU_FWD, 100)                                                                                   \
    X(CUDNN_PROPAGATE_NAN, 1)                                                                                          \
    X(CUDNN_HEUR_MODE_FALLBACK, 2)                                                                                     \
    X(CUDNN_HEUR_MODE_A, 3)                                                                                            \
    /* how an engine's numbers are made */                                                                             \
    X(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                                                                             \
    X(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                                                                     \
    X(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)                                                             \
    X(CUDNN_NUMERICAL_NOTE_FFT, 3)                                                                                     \
    X(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4)                                                                        \
    X(CUDNN_NUMERICAL_NOTE_WINOGRAD, 5)                                                                                \
    /* errors, by their thousands */                                                                                   \
    X(CUDNN_STATUS_BAD_PARAM, 2000)                                                                                    \
    X(CUDNN_STATUS_NOT_SUPPORTED, 3000)                                                                                \
    X(CUDNN_STATUS_EXECUTION_FAILED, 5000)

#define X(name, value) name = value,
enum { CUDNN_VALUE_LIST(X) };
#undef X

#define CUDNN_SYMBOL_LIST(X)                                                                                           \
    X(size_t, cudnnGetVersion, (void))                                                                                 \
    X(size_t, cudnnGetCudartVersion, (void))                                                                           \
    X(const char *, cudnnGetErrorString, (int code))                                                                   \
    X(void, cudnnGetLastErrorString, (char *out, size_t n))                                                            \
    X(int, cudnnCreate, (cudnn_handle * out))                                                                          \
    X(int, cudnnDestroy, (cudnn_handle handle))                                                                        \
    X(int, cudnnSetStream, (cudnn_handle handle, cu_stream stream))                                                    \
    X(int, cudnnBackendCreateDescriptor, (int kind, cudnn_descriptor *out))                                            \
    X(int, cudnnBackendDestroyDescriptor, (cudnn_descriptor descriptor))                                               \
    X(int, cudnnBackendFinalize, (cudnn_descriptor descriptor))                                                        \
    X(int, cudnnBackendSetAttribute,                                                                                   \
      (cudnn_descriptor descriptor, int attribute, int type, int64_t n, const void *values))                           \
    X(int, cudnnBackendGetAttribute,                                                                                   \
      (cudnn_descriptor descriptor, int attribute, int type, int64_t n_wanted, int64_t *n, void *out))                 \
    X(int, cudnnBackendExecute, (cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor memory))

#define X(result, name, parameters) result(*name) parameters;
typedef struct cudnn_symbols {
    CUDNN_SYMBOL_LIST(X)
} cudnn_symbols;
#undef X

#endif
