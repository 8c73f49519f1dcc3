/* Networks: a model is a graph with an input, a label, a loss, and layers that own parameters.
 *
 * Layers take a value and return one; parameters get names from the layer's kind and a counter ("conv2d_1.weight"),
 * with the scopes around it in front ("layer1.0.conv2d.weight"). Layouts: images [N,H,W,C]; the batch N stays open
 * until the model is trained or evaluated. The first error is kept: check stk_model_status once, at the end. Threads:
 * one at a time for each model.
 */
#ifndef STOKER_NN_NN_H
#define STOKER_NN_NN_H

#include "stoker/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_model stk_model;

STK_API stk_model *stk_model_new(const char *name); /* never NULL */
STK_API void stk_model_free(stk_model *model);      /* accepts NULL */
STK_API stk_status stk_model_status(const stk_model *model);
STK_API stk_graph *stk_model_graph(stk_model *model); /* borrowed */

/* The input, named "image" to match the data's field; sample is the shape without the batch. */
STK_API stk_value stk_model_input_shape(stk_model *model, stk_dtype dtype, stk_shape sample);
#ifndef __cplusplus
/* stk_model_input(model, STK_F32, 32, 32, 3). Other languages: stk_model_input_shape with stk_shape_make. */
#define stk_model_input(model, dtype, ...) stk_model_input_shape(model, dtype, STK_SHAPE(__VA_ARGS__))
#endif
/* Another input, which takes the data's field of that name. */
STK_API stk_value stk_model_input_named(stk_model *model, const char *name, stk_dtype dtype, stk_shape sample);
/* The label, named "label": class numbers i32 [N]; or any other shape and dtype. */
STK_API stk_value stk_model_label(stk_model *model);
STK_API stk_value stk_model_label_shape(stk_model *model, stk_dtype dtype, stk_shape sample);
/* A loss for each sample [N]. Training minimises its mean. Where it is a cross-entropy its logits become the output. */
STK_API void stk_model_loss(stk_model *model, stk_value loss);
/* What each sample's loss counts for, f32 [N]: training then minimises sum(loss * weight) / sum(weight), over the whole
 * batch however it is divided, and evaluation gives the same over all samples. Weights of 0 or above; where all are 0
 * there is no gradient. Without this every sample counts 1. See stk_count_targets. */
STK_API void stk_model_loss_weight(stk_model *model, stk_value weight);
/* The output for prediction and for accuracy; only needed where the loss is no cross-entropy. */
STK_API void stk_model_output(stk_model *model, stk_value logits);
/* The same for rows [N,D] that are compared with each other: no classes, so no accuracy. A loss that compares the rows
 * of a batch is never divided by memory's wish, and an evaluation's loss leaves out a last batch that is not full. */
STK_API void stk_model_embedding(stk_model *model, stk_value rows);
STK_API bool stk_model_is_embedding(const stk_model *model);
/* What metrics compare the output with, where it is not the label as it comes: class numbers i32 [N,...], or f32 like
 * the output. Labels of ignore_index do not count if `ignores`. */
STK_API void stk_model_target(stk_model *model, stk_value target, bool ignores, int64_t ignore_index);
/* What was set above; id -1 where nothing was. */
STK_API stk_value stk_model_get_loss(const stk_model *model);
STK_API stk_value stk_model_get_output(const stk_model *model);
STK_API stk_value stk_model_get_target(const stk_model *model, bool *ignores, int64_t *ignore_index);
STK_API stk_value stk_model_get_loss_weight(const stk_model *model);

/* Names of parameters made between push and pop start with "name.". */
STK_API void stk_scope_push(stk_graph *graph, const char *name);
STK_API void stk_scope_pop(stk_graph *graph);

/* Running statistics, which the forward pass updates itself, count as no parameters. All 0 after an error. */
typedef struct stk_model_size {
    int64_t n_parameters, n_trainable;
    double forward_flops; /* for one sample; up to the output, or the loss where there is no output */
} stk_model_size;
STK_API stk_model_size stk_model_get_size(const stk_model *model);

/* --- layers --- */
/* `name` in a configuration is the layer's whole name within its scopes, with no counter added; NULL: the kind's own.
 * Parameters are f32 (f64 for f64 input). Bad arguments are errors that name the layer. */
typedef enum stk_initializer {
    STK_INIT_DEFAULT,   /* dense and conv: He uniform with a = sqrt(5), as PyTorch: uniform +-1/sqrt(fan_in) */
    STK_INIT_HE_NORMAL, /* He et al. 2015, fan in */
    STK_INIT_HE_UNIFORM,
    STK_INIT_GLOROT_NORMAL, /* Glorot & Bengio 2010 */
    STK_INIT_GLOROT_UNIFORM,
    STK_INIT_ZERO,
    STK_INIT_HE_NORMAL_FAN_OUT, /* fan out: the convolutions of ResNets, as torchvision */
    STK_INIT_DIRAC              /* the first outputs give the inputs as they are, the others begin as with the default:
                                   torch.nn.init.dirac_ of the first rows; Zagoruyko & Komodakis 2017. Of one group */
} stk_initializer;

/* x [N,...,C] -> [N,...,units], with bias. Weight is stored [units, C]. */
STK_API stk_value stk_dense(stk_value x, int64_t units);
typedef struct stk_dense_config {
    int64_t units;
    bool no_bias;
    stk_initializer init; /* of the weight; the bias is 0, or uniform like the weight with STK_INIT_DEFAULT */
    double deviation;     /* above 0: the weight is normal with it instead, and the bias 0 */
    bool in_out;          /* the weight is stored [C, units] */
    const char *name;
} stk_dense_config;
STK_API stk_value stk_dense_with(stk_value x, const stk_dense_config *config);

/* Stride 1, output as large as the input, with bias. Weight [filters,k,k,C]. */
STK_API stk_value stk_conv2d(stk_value x, int64_t filters, int kernel);
typedef struct stk_conv2d_config {
    int64_t filters;
    int kernel, stride, dilation, groups; /* 0: kernel 3, the others 1 */
    int padding; /* on each side; -1: none; 0: "same" = dilation * (kernel - 1) / 2, an odd pixel more at the end */
    bool no_bias;
    bool like_keras; /* padding "same" as TensorFlow: asymmetric on stride 2 */
    stk_initializer init;
    const char *name;
} stk_conv2d_config;
STK_API stk_value stk_conv2d_with(stk_value x, const stk_conv2d_config *config);
/* The same over volumes [N,D,H,W,C], with a cube as kernel. Weight [filters,k,k,k,C]. */
STK_API stk_value stk_conv3d(stk_value x, int64_t filters, int kernel);
STK_API stk_value stk_conv3d_with(stk_value x, const stk_conv2d_config *config);
/* A filter of its own for each channel, or with `filters` a multiple of C several: groups is C, whatever config says.
 * Weight [filters,k,k,1]. Sifre 2014. */
STK_API stk_value stk_depthwise_conv2d(stk_value x, int kernel);
STK_API stk_value stk_depthwise_conv2d_with(stk_value x, const stk_conv2d_config *config);

/* [N,H,W,C] -> [N,H',W',filters], larger by the stride: Zeiler et al. 2010. Weight [C,k,k,filters]. */
STK_API stk_value stk_conv2d_transpose(stk_value x, int64_t filters, int kernel, int stride);
typedef struct stk_conv2d_transpose_config {
    int64_t filters;
    int kernel, stride, dilation, groups; /* 0: kernel 2, stride as the kernel, the others 1 */
    int padding, output_padding;          /* H' = (H - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 +
                                             output_padding */
    bool no_bias;
    stk_initializer init;
    const char *name;
} stk_conv2d_transpose_config;
STK_API stk_value stk_conv2d_transpose_with(stk_value x, const stk_conv2d_transpose_config *config);

/* Ioffe & Szegedy 2015, over all axes but the last. PyTorch's defaults: momentum 0.1, eps 1e-5, unbiased running
 * variance. In evaluation the running statistics are used. Scale and bias are named weight and bias, as PyTorch's. */
STK_API stk_value stk_batch_norm(stk_value x);
typedef struct stk_batch_norm_config {
    double momentum, eps; /* 0: the default */
    bool like_keras;      /* momentum 0.99 in Keras' sense, eps 1e-3, biased running variance */
    bool zero_scale;      /* scale starts at 0: the last of a residual block, Goyal et al. 2017 */
    bool fixed_scale;     /* scale is 1 and not trained */
    const char *name;
} stk_batch_norm_config;
STK_API stk_value stk_batch_norm_with(stk_value x, const stk_batch_norm_config *config);

/* Ba et al. 2016, over the last axis of [N,...,C]. Scale and bias are named weight and bias, as PyTorch's. */
STK_API stk_value stk_layer_norm(stk_value x);
typedef struct stk_layer_norm_config {
    double eps;      /* 0: 1e-5, or 1e-3 like Keras; BERT takes 1e-12 */
    bool like_keras; /* that default only */
    const char *name;
} stk_layer_norm_config;
STK_API stk_value stk_layer_norm_with(stk_value x, const stk_layer_norm_config *config);

/* A vector for each number: ids i32 [N,...] -> [N,...,width]. Weight [rows,width], normal with deviation 1, as
 * PyTorch's; a number that is not in [0, rows) fails the run with STK_CORRUPT. */
STK_API stk_value stk_embedding(stk_value ids, int64_t rows, int64_t width);
typedef struct stk_embedding_config {
    int64_t rows, width;
    double deviation; /* of the first weights; 0: 1 */
    bool like_keras;  /* they are uniform in [-0.05, 0.05) */
    const char *name;
} stk_embedding_config;
STK_API stk_value stk_embedding_with(stk_value ids, const stk_embedding_config *config);

/* size x size windows, stride size. */
STK_API stk_value stk_max_pool(stk_value x, int size);
STK_API stk_value stk_avg_pool(stk_value x, int size);
STK_API stk_value stk_max_pool_with(stk_value x, int size, int stride, int padding);
/* Padding is not counted. */
STK_API stk_value stk_avg_pool_with(stk_value x, int size, int stride, int padding);
/* Over volumes [N,D,H,W,C]. */
STK_API stk_value stk_max_pool3d(stk_value x, int size);
STK_API stk_value stk_avg_pool3d(stk_value x, int size);
STK_API stk_value stk_max_pool3d_with(stk_value x, int size, int stride, int padding);
STK_API stk_value stk_avg_pool3d_with(stk_value x, int size, int stride, int padding);
/* [N,H,W,C] or [N,D,H,W,C] -> [N,C], the mean. */
STK_API stk_value stk_global_pool(stk_value x);
/* [N,...] -> [N,count]. */
STK_API stk_value stk_flatten(stk_value x);
/* In training only; in evaluation it does nothing. */
STK_API stk_value stk_dropout(stk_value x, double rate);
STK_API stk_value stk_gelu(stk_value x);      /* exact, with erf */
STK_API stk_value stk_gelu_tanh(stk_value x); /* Hendrycks & Gimpel 2016: GPT-2's */
STK_API stk_value stk_silu(stk_value x);

/* --- losses, one number a sample [N] --- */
STK_API stk_value stk_cross_entropy(stk_value logits, stk_value labels);
STK_API stk_value stk_cross_entropy_smooth(stk_value logits, stk_value labels, double smoothing);
/* Mean over all but the batch of (x - y)^2. */
STK_API stk_value stk_mean_squared_error(stk_value x, stk_value y);

/* --- networks: from the input to logits [N,classes] --- */
/* Flatten, then for each hidden width: dense, ReLU, dropout (rate 0: none), then dense to classes. */
STK_API stk_value stk_mlp(stk_value x, const int64_t *hidden, int n_hidden, double dropout, int64_t classes);
/* For each width: conv 3x3 without bias, batch norm, ReLU, with 2x2 max pooling between them; global mean, dense. */
STK_API stk_value stk_cnn(stk_value x, const int64_t *widths, int n_widths, int64_t classes);
typedef enum stk_resnet_stem { STK_STEM_IMAGENET, STK_STEM_CIFAR } stk_resnet_stem;
/* He et al. 2016; depth 18, 34, 50 or 101, the last two with a bottleneck's stride in its 3x3 convolution (v1.5). The
 * imagenet stem is conv 7x7 stride 2 and max pooling; the cifar stem conv 3x3. Names follow torchvision
 * ("layer1.0.conv1.weight"). ResNet-18 has 11,173,962 parameters with the cifar stem and 10 classes, ResNet-50
 * 25,557,032 with the imagenet stem and 1000. */
STK_API stk_value stk_resnet(stk_value x, int depth, int64_t classes, stk_resnet_stem stem);
STK_API stk_value stk_resnet18(stk_value x, int64_t classes, stk_resnet_stem stem);

#ifdef __cplusplus
}
#endif
#endif
