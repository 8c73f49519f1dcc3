/* Reads an ONNX model into a graph: opset 1 to 28, the ops of src/onnx/table.c, shapes that are known beforehand.
 *
 * Inputs and outputs keep their names, and NCHW is what the model says: convolutions and pooling work on NHWC inside,
 * and what lies between two of them is not transposed. Weights become trainable variables of the graph, of the
 * initialisers' names, with their numbers in the stk_onnx until it is freed.
 *
 * Format: onnx.ai, onnx.proto. Threads: one at a time for each stk_onnx.
 */
#ifndef STOKER_FILES_ONNX_H
#define STOKER_FILES_ONNX_H

#include "stoker/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_onnx stk_onnx;

/* Numbers with a name: row-major, in native byte order. */
typedef struct stk_onnx_tensor {
    const char *name;
    stk_dtype dtype;
    stk_shape shape;
    const void *data;
} stk_onnx_tensor;

/* A size for a dimension that the model leaves open under a name, as PyTorch's dynamic axes: {"batch", 8}. */
typedef struct stk_onnx_size {
    const char *name;
    int64_t n;
} stk_onnx_size;

typedef struct stk_onnx_options {
    /* Values of inputs that decide about shapes, as Reshape's second: [n_known], borrowed until the call returns. Those
     * that decide about none stay inputs. */
    const stk_onnx_tensor *known;
    int n_known;
    const stk_onnx_size *size; /* [n_sizes], borrowed likewise; names that no input has do nothing */
    int n_sizes;
} stk_onnx_options;

/* options may be NULL. Weights that lie in another file are read from the model's folder, and from nowhere else; a
 * model that is parsed from memory has none. Of an input only the first dimension may stay open, and it must be given a
 * size where the model computes with it. STK_CORRUPT: not a model; STK_UNSUPPORTED: it names the node and the op; also
 * where Stoker was built without protobuf-c. Returned in *out: free with stk_onnx_free. */
STK_API stk_status stk_onnx_open(const char *path, const stk_onnx_options *options, stk_onnx **out);
STK_API stk_status stk_onnx_parse(const void *data, size_t n_bytes, const stk_onnx_options *options, stk_onnx **out);
STK_API void stk_onnx_free(stk_onnx *model); /* accepts NULL */

/* What a model reads under one of its inputs' names. */
typedef struct stk_onnx_feed {
    const char *name;
    stk_value x;
} stk_onnx_feed;

/* Which part of a model is wanted, and how; all zero: the whole. */
typedef struct stk_onnx_part {
    /* The value inside that x takes the place of; what makes it is left out, as the scaling of pixels is where x has
     * been scaled. NULL: the model's own input. */
    const char *input;
    const char *output;        /* the value inside that comes back; NULL: the first output */
    const stk_onnx_feed *more; /* the model's inputs but the one that x is: [n_more], borrowed until the call returns */
    int n_more;
    /* In training by the batch's statistics, which the running ones follow. false: always by the running statistics,
     * which stay. */
    bool trains_batch_norm;
} stk_onnx_part;

/* Goes on from x with a model's network: x is its one input, or the one that part->input says
 * where there are more, and its output comes back, or a value inside of it.
 * Images and volumes, of rank 4 and 5, have their channels last on both sides; a model has them first, unless Stoker
 * wrote it, or the sizes that it says fit only as they are. What the model leaves open of its input is as x is, and so
 * is the first dimension, the batch's: nodes may make shapes of it, and nothing else. Weights become variables of their
 * names, in the scopes around (stk_scope_push), and begin with the model's numbers, which are kept until x's graph is
 * freed; all are trainable but whole numbers, scalars, constants, and batch norm's running statistics. Errors are kept
 * in the graph. part may be NULL. */
STK_API stk_value stk_onnx_apply(stk_value x, const char *path, const char *output);
STK_API stk_value stk_onnx_apply_with(stk_value x, const char *path, const stk_onnx_part *part);

/* Borrowed. */
STK_API stk_graph *stk_onnx_graph(stk_onnx *model);
STK_API int stk_onnx_n_weights(const stk_onnx *model);
/* Weight number i; borrowed. */
STK_API stk_onnx_tensor stk_onnx_weight(const stk_onnx *model, int i);

#ifdef __cplusplus
}
#endif
#endif
