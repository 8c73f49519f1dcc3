/* The functions that build ops, one for each; the list makes declarations and table. */
#ifndef STK_ONNX_BUILD_LIST_H
#define STK_ONNX_BUILD_LIST_H

#include "onnx/model.h"

/* clang-format off */
#define STK_ONNX_OPS(X) \
    X(Abs) X(Acosh) X(Add) X(And) X(ArgMax) X(ArgMin) X(Asinh) X(Atanh) X(AveragePool) X(BatchNormalization) \
    X(Cast) X(CastLike) X(Ceil) X(Celu) X(Clip) X(Concat) X(Constant) X(ConstantOfShape) X(Conv) \
    X(ConvTranspose) X(Cos) X(Cosh) X(CumSum) X(DepthToSpace) X(Div) X(Dropout) X(Elu) X(Equal) X(Erf) \
    X(Exp) X(Expand) X(EyeLike) X(Flatten) X(Floor) X(Gather) X(GatherElements) X(GatherND) X(Gelu) X(Gemm) \
    X(GlobalAveragePool) X(GlobalMaxPool) X(Greater) X(GreaterOrEqual) X(GroupNormalization) X(HardSigmoid) X(HardSwish) X(Hardmax) X(Identity) \
    X(InstanceNormalization) X(IsInf) X(IsNaN) X(LRN) X(LayerNormalization) X(LeakyRelu) X(Less) \
    X(LessOrEqual) X(Log) X(LogSoftmax) X(MatMul) X(Max) X(MaxPool) X(Mean) X(MeanVarianceNormalization) \
    X(Min) X(Mish) X(Mod) X(Mul) X(Neg) X(NegativeLogLikelihoodLoss) X(Not) X(OneHot) X(Or) X(PRelu) X(Pad) X(Pow) \
    X(Range) X(Reciprocal) X(ReduceL1) X(ReduceL2) X(ReduceLogSum) X(ReduceLogSumExp) X(ReduceMax) \
    X(ReduceMean) X(ReduceMin) X(ReduceProd) X(ReduceSum) X(ReduceSumSquare) X(Relu) X(Reshape) X(Round) \
    X(Selu) X(Shape) X(Shrink) X(Sigmoid) X(Sign) X(Sin) X(Sinh) X(Size) X(Slice) X(Softmax) \
    X(SoftmaxCrossEntropyLoss) X(Softplus) X(Softsign) X(SpaceToDepth) X(Split) X(Sqrt) X(Squeeze) X(Sub) \
    X(Sum) X(Tan) X(Tanh) X(ThresholdedRelu) X(Tile) X(Transpose) X(Trilu) X(Unsqueeze) X(Where) X(Xor)
/* clang-format on */

#define X(name) stk_status stk_onnx_build_##name(stk_build *b);
STK_ONNX_OPS(X)
#undef X

#endif
