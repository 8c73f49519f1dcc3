/* The functions that build ops, one for each; the list makes declarations and table.
 *
 *   X(Op, attributes)   those that are honoured, "name:type" or "name:type=value|value" each. Types: i, f, s, t and, of
 *                       lists, is, fs, ss. What is not there, or has another value, is refused: attributes.c.
 */
#ifndef STK_ONNX_BUILD_LIST_H
#define STK_ONNX_BUILD_LIST_H

#include "onnx/model.h"

#define STK_ONNX_WINDOW    "auto_pad:s=NOTSET|SAME_UPPER|SAME_LOWER|VALID dilations:is kernel_shape:is pads:is strides:is"
#define STK_ONNX_RECURRENT "activations:ss direction:s=forward|reverse|bidirectional hidden_size:i layout:i=0|1"
#define STK_ONNX_REDUCTION "axes:is keepdims:i=0|1 noop_with_empty_axes:i=0|1"

/* clang-format off */
#define STK_ONNX_OPS(X) \
    X(Abs, "") \
    X(Acos, "") \
    X(Acosh, "") \
    X(Add, "broadcast:i=0|1") \
    X(AffineGrid, "align_corners:i=0|1") \
    X(And, "broadcast:i=0|1") \
    X(ArgMax, "axis:i keepdims:i=0|1 select_last_index:i=0|1") \
    X(ArgMin, "axis:i keepdims:i=0|1 select_last_index:i=0|1") \
    X(Asin, "") \
    X(Asinh, "") \
    X(Atan, "") \
    X(Atanh, "") \
    X(Attention, "is_causal:i=0|1 kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i=0|1|2|3 " \
                 "right_window_size:i scale:f softcap:f softmax_precision:i") \
    X(AveragePool, STK_ONNX_WINDOW " ceil_mode:i=0|1 count_include_pad:i=0|1") \
    X(BatchNormalization, "epsilon:f is_test:i=0|1 momentum:f spatial:i=1 training_mode:i=0") \
    X(BlackmanWindow, "output_datatype:i periodic:i=0|1") \
    X(Cast, "round_mode:s saturate:i to:i") \
    X(CastLike, "round_mode:s saturate:i") \
    X(CausalConvWithState, "activation:s=none|silu|swish") \
    X(Ceil, "") \
    X(Celu, "alpha:f") \
    X(CenterCropPad, "axes:is") \
    X(Clip, "max:f min:f") \
    X(Col2Im, "dilations:is pads:is strides:is") \
    X(Compress, "axis:i") \
    X(Concat, "axis:i") \
    X(Constant, "value:t value_float:f value_floats:fs value_int:i value_ints:is") \
    X(ConstantOfShape, "value:t") \
    X(Conv, STK_ONNX_WINDOW " group:i") \
    X(ConvTranspose, STK_ONNX_WINDOW " group:i output_padding:is output_shape:is") \
    X(Cos, "") \
    X(Cosh, "") \
    X(CumProd, "exclusive:i=0|1 reverse:i=0|1") \
    X(CumSum, "exclusive:i=0|1 reverse:i=0|1") \
    X(DFT, "axis:i inverse:i=0|1 onesided:i=0|1") \
    X(DepthToSpace, "blocksize:i mode:s=DCR|CRD") \
    X(Det, "") \
    X(Div, "broadcast:i=0|1") \
    X(Dropout, "is_test:i=0|1 ratio:f seed:i") \
    X(Einsum, "equation:s") \
    X(Elu, "alpha:f") \
    X(Equal, "broadcast:i=0|1") \
    X(Erf, "") \
    X(Exp, "") \
    X(Expand, "") \
    X(EyeLike, "dtype:i k:i") \
    X(Flatten, "axis:i") \
    X(Floor, "") \
    X(GRU, STK_ONNX_RECURRENT " linear_before_reset:i=0|1") \
    X(Gather, "axis:i") \
    X(GatherElements, "axis:i") \
    X(GatherND, "batch_dims:i") \
    X(Gelu, "approximate:s=none|tanh") \
    X(Gemm, "alpha:f beta:f broadcast:i=0|1 transA:i=0|1 transB:i=0|1") \
    X(GlobalAveragePool, "") \
    X(GlobalMaxPool, "") \
    X(Greater, "broadcast:i=0|1") \
    X(GreaterOrEqual, "") \
    X(GridSample, "align_corners:i=0|1 mode:s=bilinear|linear|nearest|bicubic|cubic padding_mode:s=zeros|border|reflection") \
    X(GroupNormalization, "epsilon:f num_groups:i stash_type:i=1") \
    X(HammingWindow, "output_datatype:i periodic:i=0|1") \
    X(HannWindow, "output_datatype:i periodic:i=0|1") \
    X(HardSigmoid, "alpha:f beta:f") \
    X(HardSwish, "") \
    X(Hardmax, "axis:i") \
    X(Identity, "") \
    X(InstanceNormalization, "epsilon:f") \
    X(IsInf, "detect_negative:i=0|1 detect_positive:i=0|1") \
    X(IsNaN, "") \
    X(LRN, "alpha:f beta:f bias:f size:i") \
    X(LSTM, STK_ONNX_RECURRENT " input_forget:i=0") \
    X(LayerNormalization, "axis:i epsilon:f stash_type:i=1") \
    X(LeakyRelu, "alpha:f") \
    X(Less, "broadcast:i=0|1") \
    X(LessOrEqual, "") \
    X(LinearAttention, "chunk_size:i kv_num_heads:i q_num_heads:i scale:f update_rule:s=linear|gated|delta|gated_delta") \
    X(Log, "") \
    X(LogSoftmax, "axis:i") \
    X(LpNormalization, "axis:i p:i=1|2") \
    X(LpPool, STK_ONNX_WINDOW " ceil_mode:i=0|1 p:i") \
    X(MatMul, "") \
    X(Max, "") \
    X(MaxPool, STK_ONNX_WINDOW " ceil_mode:i=0|1 storage_order:i=0|1") \
    X(Mean, "") \
    X(MeanVarianceNormalization, "axes:is") \
    X(Min, "") \
    X(Mish, "") \
    X(Mod, "fmod:i=0|1") \
    X(Mul, "broadcast:i=0|1") \
    X(Neg, "") \
    X(NegativeLogLikelihoodLoss, "ignore_index:i reduction:s=none|sum|mean") \
    X(NonZero, "") \
    X(Not, "") \
    X(OneHot, "axis:i") \
    X(Or, "broadcast:i=0|1") \
    X(PRelu, "") \
    X(Pad, "mode:s=constant|reflect|edge|wrap pads:is value:f") \
    X(Pow, "broadcast:i=0|1") \
    X(RMSNormalization, "axis:i epsilon:f stash_type:i=1") \
    X(RNN, STK_ONNX_RECURRENT) \
    X(Range, "stash_type:i=1") \
    X(Reciprocal, "") \
    X(ReduceL1, STK_ONNX_REDUCTION) \
    X(ReduceL2, STK_ONNX_REDUCTION) \
    X(ReduceLogSum, STK_ONNX_REDUCTION) \
    X(ReduceLogSumExp, STK_ONNX_REDUCTION) \
    X(ReduceMax, STK_ONNX_REDUCTION) \
    X(ReduceMean, STK_ONNX_REDUCTION) \
    X(ReduceMin, STK_ONNX_REDUCTION) \
    X(ReduceProd, STK_ONNX_REDUCTION) \
    X(ReduceSum, STK_ONNX_REDUCTION) \
    X(ReduceSumSquare, STK_ONNX_REDUCTION) \
    X(Relu, "") \
    X(Reshape, "allowzero:i=0|1 shape:is") \
    X(Resize, "antialias:i=0|1 axes:is coordinate_transformation_mode:s=half_pixel|half_pixel_symmetric|pytorch_half_pixel|" \
              "align_corners|asymmetric|tf_crop_and_resize|tf_half_pixel_for_nn cubic_coeff_a:f exclude_outside:i=0|1 " \
              "extrapolation_value:f keep_aspect_ratio_policy:s=stretch|not_larger|not_smaller mode:s=nearest|linear|cubic " \
              "nearest_mode:s=round_prefer_floor|round_prefer_ceil|floor|ceil") \
    X(ReverseSequence, "batch_axis:i time_axis:i") \
    X(RotaryEmbedding, "interleaved:i=0|1 num_heads:i rotary_embedding_dim:i") \
    X(Round, "") \
    X(Scatter, "axis:i") \
    X(ScatterElements, "axis:i reduction:s=none|add|mul|max|min") \
    X(ScatterND, "reduction:s=none|add|mul|max|min") \
    X(Selu, "alpha:f gamma:f") \
    X(Shape, "end:i start:i") \
    X(Shrink, "bias:f lambd:f") \
    X(Sigmoid, "") \
    X(Sign, "") \
    X(Sin, "") \
    X(Sinh, "") \
    X(Size, "") \
    X(Slice, "axes:is ends:is starts:is") \
    X(Softmax, "axis:i") \
    X(SoftmaxCrossEntropyLoss, "ignore_index:i reduction:s=none|sum|mean") \
    X(Softplus, "") \
    X(Softsign, "") \
    X(SpaceToDepth, "blocksize:i mode:s=DCR|CRD") \
    X(Split, "axis:i num_outputs:i split:is") \
    X(Sqrt, "") \
    X(Squeeze, "axes:is") \
    X(Sub, "broadcast:i=0|1") \
    X(Sum, "") \
    X(SwiGLU, "alpha:f") \
    X(Swish, "alpha:f") \
    X(Tan, "") \
    X(Tanh, "") \
    X(TensorScatter, "axis:i mode:s=linear|circular") \
    X(ThresholdedRelu, "alpha:f") \
    X(Tile, "") \
    X(TopK, "axis:i k:i largest:i=0|1 sorted:i=0|1") \
    X(Transpose, "perm:is") \
    X(Trilu, "upper:i=0|1") \
    X(Unsqueeze, "axes:is") \
    X(Upsample, "mode:s=nearest|linear") \
    X(Where, "") \
    X(Xor, "broadcast:i=0|1")
/* clang-format on */

#define X(name, attributes) stk_status stk_onnx_build_##name(stk_build *b);
STK_ONNX_OPS(X)
#undef X

#endif
